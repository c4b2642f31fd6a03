"""All commands at once, as help and completion need them; each module registers its own."""

from __future__ import annotations

from arena.cli import bench, bots, check, doctor, faults, new, play, replay, run, verify, views
from arena.cli.app import app

__all__ = ["app", "bench", "bots", "check", "doctor", "faults", "new", "play", "replay", "run", "verify", "views"]
