"""The registry of games."""

from __future__ import annotations

from arena.rules import Game

GAMES: dict[str, Game] = {}
"""Every game by its name."""
