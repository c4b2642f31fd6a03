"""tournament.toml and bot.toml: every mistake of a file at once, each with its line, its value and what is allowed."""

from __future__ import annotations

from arena.config.manifest import BotManifest, load_manifest, parse_manifest
from arena.config.name import RESERVED, is_name
from arena.config.tournament import ClockTable, TournamentConfig, load_tournament, tournament_from_options

__all__ = [
    "RESERVED",
    "BotManifest",
    "ClockTable",
    "TournamentConfig",
    "is_name",
    "load_manifest",
    "load_tournament",
    "parse_manifest",
    "tournament_from_options",
]
