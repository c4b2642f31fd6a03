"""The command line; each module registers its commands."""

from __future__ import annotations

from arena.cli import bench, bots, new, play, replay, run, verify, views
from arena.cli.app import app, main

__all__ = ["app", "bench", "bots", "main", "new", "play", "replay", "run", "verify", "views"]
