"""The registry of games."""

from __future__ import annotations

from arena.games.avalanche import AVALANCHE
from arena.games.durak import DURAK
from arena.games.smokestack import SMOKESTACK
from arena.rules import Game, Value

GAMES: dict[str, Game] = {
    "avalanche": AVALANCHE,
    "durak": DURAK,
    "smokestack": SMOKESTACK,
}
"""Every game by its name."""

PRESETS: dict[str, tuple[str, dict[str, Value]]] = {
    "smokestack-junior": ("smokestack", {"double": "off", "straight": "off"}),
}
"""Named rule sets: the game and the options that differ from its defaults."""
