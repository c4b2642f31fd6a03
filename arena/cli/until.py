"""`arena run --until-error`: a tournament that goes on until every error bar is small enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import trio
from sqlite_utils import Database

from arena.cli.output import count_of
from arena.cli.site import Player
from arena.errors import ConfigError
from arena.extension import Change, changes
from arena.plan import Plan, plan_of
from arena.precision import Widest, next_stage, next_tables, unmeasured_in_words, widest_errors, words_of
from arena.store import tournaments
from arena.store.tournaments import Entrant, Tournament


class Until(NamedTuple):
    """What is asked for.

    Attributes:
        target: half the width of the widest 95 % interval of a difference that is small enough, in Elo.
        max_rounds: rounds after which it ends all the same.
        players: the bots, as they were found when it began or went on.
        tell: is told in words what a person may want to know.
    """

    db: Database
    target: float
    max_rounds: int
    seed: int | None
    players: list[Player]
    tell: Callable[[str], None]

    async def extended(self, tournament: Tournament, stopping: trio.Event) -> tuple[Tournament, list[Player]] | None:
        """Store the next stage of a tournament and return it; None if it is done."""
        await trio.lowlevel.checkpoint()
        rounds = plan_of(tournament).rounds
        found = widest_errors(self.db, tournament)
        if not found:
            self.tell(f"ended after {count_of(rounds, 'round')}: too few bots are left for a table")
            return None
        told = "; ".join(map(words_of, found))
        if rounds >= self.max_rounds and any(one.error > self.target for one in found):
            self._end(f"ended by --max-rounds after {count_of(rounds, 'round')}; widest: {told}", found)
            return None
        following = next_stage(self.db, tournament, self.target, time.time(), self.seed)
        if following is None:
            within = f"every difference is within ±{self.target:g}" if any(one.bots for one in found) else "ended"
            self._end(f"{within} after {count_of(rounds, 'round')}; widest: {told}", found)
            return None
        self.tell(f"widest: {told}")
        return following, self.players

    def _end(self, told: str, found: Sequence[Widest]) -> None:
        self.tell(told)
        for one in found:
            for words in unmeasured_in_words(one):
                self.tell(words)

    def first(self, plan: Plan, entrants: list[Entrant], isolation: str) -> Plan:
        """Return the plan of a new tournament with the tables of its first round.

        Raises:
            ConfigError: what is known of these bots is sure enough already.
        """
        cast = next_tables(self.db, plan, entrants, isolation, self.target)
        if not cast.tables:
            raise ConfigError(
                f"every difference between these bots is within ±{self.target:g} already or beyond measure, by the "
                "deals of their pools; see `arena leaderboard`"
            )
        return msgspec.structs.replace(plan, cast=cast)


def sureness(db: Database, tournament: Tournament) -> list[dict[str, object]]:
    """Return how sure each game is, for programs; the error is None if unknown."""
    return [
        {
            "game": one.game,
            "error": one.error if math.isfinite(one.error) else None,
            "bots": one.bots,
            "tiers": one.tiers,
            "level": one.level,
            "swept": one.swept,
        }
        for one in widest_errors(db, tournament)
    ]


def find_unfinished(
    db: Database, name: str | None, plan: Plan, entrants: list[Entrant], isolation: str, seed: int | None
) -> Tournament | None:
    """Return the tournament to go on with: the one of a name, or the newest that is alike and not finished.

    Raises:
        ConfigError: that of the name differs; names what differs.
    """
    if name is None:
        alike = (one for one in tournaments.tournaments(db) if not _changes(db, one, plan, entrants, isolation, seed))
        return next((one for one in alike if one.finished_at is None), None)
    stored = tournaments.find(db, name)
    if stored is not None and (found := _changes(db, stored, plan, entrants, isolation, seed)):
        listed = "; ".join(one.text for one in found)
        raise ConfigError(f"tournament {stored.name} was begun differently: {listed}; choose another --name")
    return stored


def _changes(
    db: Database, stored: Tournament, plan: Plan, entrants: list[Entrant], isolation: str, seed: int | None
) -> list[Change]:
    asked = msgspec.structs.replace(plan, rounds=plan_of(stored).rounds)
    return changes(db, stored, asked, entrants, isolation, seed)
