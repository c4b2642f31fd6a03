"""Bots as contained subprocesses: what they may reach, how they start, how all of them is gone at the end."""

from __future__ import annotations

from arena.records import Level
from arena.sandbox.launch import open_sandboxed
from arena.sandbox.levels import available_level, require_level
from arena.sandbox.private import sweep
from arena.sandbox.process import Excess, Sandboxed
from arena.sandbox.room import Limits, Room
from arena.sandbox.tree import Usage

__all__ = [
    "Excess",
    "Level",
    "Limits",
    "Room",
    "Sandboxed",
    "Usage",
    "available_level",
    "open_sandboxed",
    "require_level",
    "sweep",
]
