"""What a page is, where pages are, and what most of them want to know of the database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec
from sqlite_utils import Database

from arena.config import parse_manifest
from arena.errors import ConfigError
from arena.records import BotHash
from arena.store import bots, ratings
from arena.store.bots import Submission
from arena.store.ratings import PoolRow
from arena.words import rule_words

Data = dict[str, Any]
"""What a page holds: what JSON can hold. Of something that has a page of its own `page` is the address, or None."""


class Page(msgspec.Struct, frozen=True):
    """What an address shows.

    Attributes:
        kind: names the template, and the schema of the JSON twin.
        tab: the address of the entry of the navigation that it belongs to.
    """

    kind: str
    title: str
    data: Data
    tab: str = ""


class Source:
    """A database at one moment.

    Attributes:
        stderr: the end of what a failed bot wrote to stderr may be shown; it can hold secrets of its author.
    """

    def __init__(self, db: Database, *, stderr: bool = False) -> None:
        self.db = db
        self.stderr = stderr

    @cached_property
    def pools(self) -> list[PoolRow]:
        """The pools that hold ratings."""
        return ratings.pools(self.db)

    @cached_property
    def largest(self) -> list[PoolRow]:
        """The pool with the most rated deals of each game."""
        return ratings.largest(self.pools)

    @cached_property
    def names(self) -> Mapping[BotHash, str]:
        """A name for every bot."""
        return bots.names_by_hash(self.db)

    @cached_property
    def submissions(self) -> Mapping[BotHash, Submission]:
        """The newest submission of each bot that was submitted."""
        return {one.hash: one for one in bots.all_versions(self.db)}

    def name(self, bot: BotHash) -> str:
        """Return what to call a bot."""
        return self.names.get(bot, bot[:12])

    @cached_property
    def tabs(self) -> list[tuple[str, str]]:
        """Address and name of what the navigation offers, the games that have ratings first."""
        games = [(pool_path(pool.id), pool.key.game) for pool in self.largest]
        return [*games, *_TABS]


_TABS = [
    ("tournaments.html", "tournaments"),
    ("bots.html", "bots"),
    ("faults.html", "faults"),
    ("data.html", "data"),
    ("docs/rules.html", "rules"),
]


def slug(name: str) -> str:
    """Return a name as a part of an address; names that only an import can hold become a digest."""
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        return name
    return "~" + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def bot_path(name: str) -> str:
    """Return where a bot's page is; all versions of a name share one."""
    return f"b/{slug(name.partition('@')[0])}.html"


def bot_link(name: str) -> Data:
    """Return a bot's name with its page."""
    return {"name": name, "page": bot_path(name)}


def pool_path(pool: int) -> str:
    """Return where a pool's leaderboard is."""
    return f"leaderboard/{pool}.html"


def tournament_path(name: str, kind: str = "tournament") -> str | None:
    """Return where a tournament's page is; a play has none."""
    return f"t/{slug(name)}.html" if kind == "tournament" else None


def game_path(name: str, game: str, number: int | None = None) -> str:
    """Return where a game of a tournament is, or one of its rounds."""
    return f"t/{slug(name)}/{game}.html" if number is None else f"t/{slug(name)}/{game}-{number}.html"


def match_path(number: int) -> str:
    """Return where a match is."""
    return f"m/{number}.html"


def deal_name(match: int, deck: int, leg: int) -> str:
    """Return what a deal is called."""
    return f"{match}-{deck}-{leg}"


def replay_path(deal: str) -> str:
    """Return where a deal's replay is, once it is published."""
    return f"r/{deal}.html"


def pool_words(pool: PoolRow) -> str:
    """Return what tells a pool from others."""
    rules = rule_words(pool.key.rule_set, pool.key.seats)
    return " · ".join([*rules, f"{pool.key.seats} seats", isolation_words(pool.key.isolation)])


def isolation_words(level: str) -> str:
    """Return an isolation level for somebody who does not know that there are any."""
    return "no isolation" if level == "none" else level


@lru_cache(maxsize=4096)
def language(manifest: str) -> str:
    """Return the language that a bot.toml names, or nothing."""
    try:
        return parse_manifest(manifest).language or ""
    except ConfigError:  # of another version, or of an import
        return ""
