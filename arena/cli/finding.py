"""What a name on the command line stands for: a tournament, its games, a deal."""

from __future__ import annotations

from typing import Annotated

import typer
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import DealRecord, Fault
from arena.store import matches, tournaments
from arena.store.matches import StoredMatch

Deal = Annotated[str, typer.Argument(help="A deal's name, MATCH-DECK-LEG, e.g. 17-3-0; `last` for the newest.")]


def find_tournament(db: Database, name: str) -> tournaments.Tournament:
    """Return a tournament by its name, or the newest for `last`.

    Raises:
        ConfigError: there is none of that name; names those there are.
    """
    known = tournaments.tournaments(db)
    found = (known[0] if known else None) if name == "last" else tournaments.find(db, name)
    if found is None:
        names = ", ".join(one.name for one in known) or "none yet"
        raise ConfigError(f"there is no tournament {name!r}; there are: {names}")
    return found


def games_of(tournament: tournaments.Tournament, game: str) -> list[str]:
    """Return the games of a tournament, or the one asked for.

    Raises:
        ConfigError: it has no such game; names those it has.
    """
    from arena.plan import plan_of

    games = list(plan_of(tournament).games)
    if game and game not in games:
        raise ConfigError(f"tournament {tournament.name} has no game {game!r}; it has {', '.join(games)}")
    return [game] if game else games


def find_deal(db: Database, name: str) -> tuple[StoredMatch, DealRecord, list[Fault]]:
    """Return a stored deal by its name, with its match and its faults.

    Raises:
        ConfigError: there is none of that name.
    """
    key = matches.last_deal(db) if name == "last" else _deal_key(name)
    match = matches.match(db, key[0]) if key else None
    deal = matches.deal(db, *key) if key else None
    if key is None or match is None or deal is None:
        raise ConfigError(f"there is no deal {name!r}; a deal's name is MATCH-DECK-LEG, e.g. 1-0-0, or `last`")
    faults = [found.fault for found in matches.faults(db, number=key[0])]
    return match, deal, [fault for fault in faults if (fault.deck, fault.leg) == key[1:]]


def _deal_key(name: str) -> tuple[int, int, int] | None:
    parts = name.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])
