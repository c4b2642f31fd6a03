"""The registry of games."""

from __future__ import annotations

from arena.rules import Game, Value

GAMES: dict[str, Game] = {}
"""Every game by its name."""

PRESETS: dict[str, tuple[str, dict[str, Value]]] = {}
"""Named rule sets: the game and the options that differ from its defaults."""
