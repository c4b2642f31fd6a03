"""The registry of games."""

from __future__ import annotations

from arena.games.durak import DURAK
from arena.rules import Game

GAMES: dict[str, Game] = {
    "durak": DURAK,
}
"""Every game by its name."""
