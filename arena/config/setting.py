"""Games and rule options as they are written on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from arena.config.mistake import not_allowed, unknown
from arena.errors import ConfigError
from arena.games import GAMES, PRESETS
from arena.rules import Value


def game_of(name: str) -> str:
    """Return the game in `GAMES` that a name, perhaps that of a preset, stands for."""
    return PRESETS[name][0] if name in PRESETS else name


def parse_game(name: str) -> tuple[str, dict[str, Value]]:
    """Return the game in `GAMES` that a name stands for, and the options that it sets if it is a preset.

    Raises:
        ConfigError: there is no game of that name.
    """
    known = GAMES.keys() | PRESETS.keys()
    if name not in known:
        raise ConfigError(unknown("game", name, known))
    game, options = PRESETS.get(name, (name, {}))
    return game, dict(options)


def parse_settings(game: str, settings: Sequence[str]) -> dict[str, Value]:
    """Return the options of a game in `GAMES` that texts `option=value` set; a later one wins.

    Raises:
        ConfigError: tells all that cannot be set, each on a line.
    """
    schema = GAMES[game].schema
    given: dict[str, Value] = {}
    mistakes = []
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign:
            mistakes.append(f"{setting}: {not_allowed(setting, 'option=value')}")
        elif name not in schema:
            mistakes.append(f"{name}: {unknown(f'{game} option', name, schema)}")
        elif not schema[name].allows(value := schema[name].parse(text)):
            mistakes.append(f"{name}: {not_allowed(text, schema[name].describe())}")
        else:
            given[name] = value
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return given
