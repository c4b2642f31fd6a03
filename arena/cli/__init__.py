"""The command line; `commands` says where each command is."""

from __future__ import annotations

from arena.cli.app import main

__all__ = ["main"]
