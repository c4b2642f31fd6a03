"""The command line; each module registers its commands."""

from __future__ import annotations

from arena.cli import bots, new, play, run, views
from arena.cli.app import app, main

__all__ = ["app", "bots", "main", "new", "play", "run", "views"]
