"""The command line; `commands` says where each command is."""

from __future__ import annotations

import os
import sys

# Threads of linear algebra wait for each other by spinning, on cores that belong to lanes; one is faster on busy cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _import_store_without_numpy() -> None:
    """Import sqlite_utils as if numpy were not there: it would import it, which doubles the start of every command."""
    if "numpy" not in sys.modules:
        sys.modules["numpy"] = None  # type: ignore[assignment]  # how an import is made to fail
        try:
            import sqlite_utils  # noqa: F401
        finally:
            del sys.modules["numpy"]


_import_store_without_numpy()

from arena.cli.app import main  # noqa: E402

__all__ = ["main"]
