"""Further tables that can be exported: who met whom, who sat with whom, who is stronger, and ratings as they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from sqlite_utils import Database

from arena.bracket import read_bracket
from arena.pairings import paired
from arena.plan import challengers_of, final_standings, plan_of, table_scores
from arena.records import PoolKey
from arena.schedule.crosstable import encounters, in_order
from arena.store import bots as kept_bots
from arena.store import ratings, tournaments
from arena.store.tournaments import Tournament
from arena.strength import compared


class CrosstableRow(msgspec.Struct, frozen=True):
    """A bot against another that it met.

    Attributes:
        challenger: the first is one, of a gauntlet.
        share: of their duels, 0 ... 1.
    """

    tournament: str
    game: str
    name: str
    opponent: str
    challenger: bool
    share: float
    deals: int


class PairingRow(msgspec.Struct, frozen=True):
    """A match of a round, as scheduled; `bots`, `scores` and `seeds` are by place at the table.

    Attributes:
        complete: its round is.
        byes: of its round.
        challengers: those of its bots that are, of a gauntlet.
        quality: of its round, as `arena.schedule.quality` says; None in a knockout or a gauntlet.
        seeds: with `goes_on` and `decided_by`, of a knockout.
    """

    tournament: str
    game: str
    round: int
    complete: bool
    match: int
    bots: list[str]
    challengers: list[str]
    played: bool
    void: bool
    scores: list[float] | None
    byes: list[str]
    quality: dict[str, float | None] | None
    seeds: list[int] | None
    goes_on: str | None
    decided_by: str | None


class LosRow(msgspec.Struct, frozen=True):
    """How likely a bot of a pool is stronger than another one."""

    game: str
    rule_set: str
    seats: int
    isolation: str
    name: str
    opponent: str
    los: float | None


class HistoryRow(msgspec.Struct, frozen=True):
    """A bot's rating in a pool after a round."""

    game: str
    rule_set: str
    seats: int
    isolation: str
    tournament: str
    round: int
    name: str
    hash: str
    elo: float
    error: float | None
    deals: int
    provisional: bool


def crosstable(db: Database, chosen: Iterable[Tournament]) -> Iterator[CrosstableRow]:
    """Yield every ordered pair that has met, in the order of the standings."""
    for one, game in _games(chosen):
        names = _names(db, one)
        coming = challengers_of(one)
        order = [line.entrant for line in final_standings(db, one, game)]
        for own, other, met in in_order(order, encounters(table_scores(db, one.id, game))):
            told = names[own], names[other], own in coming, float(met.share), met.deals
            yield CrosstableRow(one.name, game, *told)


def pairings(db: Database, chosen: Iterable[Tournament]) -> Iterator[PairingRow]:
    """Yield the matches of every round that is scheduled."""
    for one, game in _games(chosen):
        names = _names(db, one)
        for played in paired(db, one, game, read_bracket(db, one, game)):
            for document in played.documents(names):
                told: dict[str, Any] = document
                yield PairingRow(one.name, **told)


def los(db: Database) -> Iterator[LosRow]:
    """Yield every ordered pair of each pool, the strongest first."""
    names = kept_bots.names_by_hash(db)
    for pool in ratings.pools(db):
        for document in compared(db, pool, names).pairs():
            told: dict[str, Any] = document
            yield LosRow(**_of_pool(pool.key), **told)


def history(db: Database, chosen: Iterable[Tournament]) -> Iterator[HistoryRow]:
    """Yield the ratings after each round of some tournaments, pool by pool; the strongest of a round first."""
    names = kept_bots.names_by_hash(db)
    called = {one.id: one.name for one in chosen}
    for pool in ratings.pools(db):
        for tournament, number in (one for alike in ratings.rounds(db, pool.id) for one in alike if one[0] in called):
            found = ratings.history_after(db, pool.id, tournament, number)
            for bot, (elo, error, deals) in sorted(found.items(), key=lambda one: (-one[1][0], one[0])):
                yield HistoryRow(
                    **_of_pool(pool.key),
                    tournament=called[tournament],
                    round=number,
                    name=names[bot],
                    hash=bot,
                    elo=elo,
                    error=error,
                    deals=deals,
                    provisional=error is None,
                )


def _games(chosen: Iterable[Tournament]) -> Iterator[tuple[Tournament, str]]:
    for one in chosen:
        if one.kind == "tournament":
            for game in plan_of(one).games:
                yield one, game


def _names(db: Database, one: Tournament) -> dict[int, str]:
    return {entrant.number: entrant.name for entrant in tournaments.entrants(db, one.id)}


def _of_pool(key: PoolKey) -> dict[str, Any]:
    return {"game": key.game, "rule_set": key.rule_set, "seats": key.seats, "isolation": key.isolation}
