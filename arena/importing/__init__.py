"""Reads a file of everything into an empty database, and believes nothing of it.

What a line says is checked before it is stored, ratings are computed again, and every deal is executed again: one that
does not come out as the file says, or that is of other rules, is marked as unverified. Bots come by their hashes only,
so they can be shown but not run.
"""

from __future__ import annotations

from arena.importing.reading import begin
from arena.importing.storing import Imported, import_everything

__all__ = ["Imported", "begin", "import_everything"]
