"""Bots as contained subprocesses: what they may reach, how they start, how all of them is gone at the end."""

from __future__ import annotations

from arena.sandbox.levels import Level, available_level, require_level
from arena.sandbox.process import Sandboxed, open_sandboxed
from arena.sandbox.room import Limits, Room

__all__ = ["Level", "Limits", "Room", "Sandboxed", "available_level", "open_sandboxed", "require_level"]
