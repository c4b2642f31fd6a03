"""The registry of games."""

from __future__ import annotations

from arena.games.avalanche import AVALANCHE
from arena.rules import Game

GAMES: dict[str, Game] = {
    "avalanche": AVALANCHE,
}
"""Every game by its name."""
