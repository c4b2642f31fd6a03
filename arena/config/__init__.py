"""tournament.toml and bot.toml: every mistake of a file at once, each with its line, its value and what is allowed."""

from __future__ import annotations

from arena.config.manifest import BotManifest, load_manifest, parse_manifest
from arena.config.name import ALLOWED, is_name
from arena.config.tournament import (
    ClockTable,
    TournamentConfig,
    load_tournament,
    parse_game,
    parse_settings,
    tournament_from_options,
)

__all__ = [
    "ALLOWED",
    "BotManifest",
    "ClockTable",
    "TournamentConfig",
    "is_name",
    "load_manifest",
    "load_tournament",
    "parse_game",
    "parse_manifest",
    "parse_settings",
    "tournament_from_options",
]
