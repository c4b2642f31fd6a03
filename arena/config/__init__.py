"""tournament.toml and bot.toml: every mistake of a file at once, each with its line, its value and what is allowed."""

from __future__ import annotations

from arena.config.manifest import BotManifest, load_manifest, manifest_of, parse_manifest
from arena.config.name import NAME_PATTERN, RESERVED_NAMES, is_name
from arena.config.setting import game_of, parse_game, parse_settings
from arena.config.tournament import ClockTable, TournamentConfig, load_tournament, tournament_from_options

__all__ = [
    "NAME_PATTERN",
    "RESERVED_NAMES",
    "BotManifest",
    "ClockTable",
    "TournamentConfig",
    "game_of",
    "is_name",
    "load_manifest",
    "load_tournament",
    "manifest_of",
    "parse_game",
    "parse_manifest",
    "parse_settings",
    "tournament_from_options",
]
