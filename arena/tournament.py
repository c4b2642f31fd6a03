"""Runs a tournament: schedule, executor, store, and again until every round is complete.

Everything that is decided (pairings, decks, ratings) is a function of the master seed and of complete rounds in the
store, so that a run that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import trio
from sqlite_utils import Database

from arena.errors import ArenaError, InfraError, LaneError, OverloadError
from arena.executor import Executor
from arena.plan import all_rounds, match_counts, plan_of, round_after, scheduled, table_scores
from arena.rating.duels import Collector
from arena.rating.pool import rate_collected
from arena.records import BotHash, BotRef, MatchRecord, MatchSpec, PoolKey, Round
from arena.retelling import rules_of
from arena.store import matches, ratings, tournaments
from arena.store.corrections import corrections
from arena.store.database import writing
from arena.store.tournaments import Scheduled, Tournament

ATTEMPTS = 3
"""A match that was void so often stops the tournament: the fault is ours, and playing on would not mend it."""
OVERLOADS = 2
"""The same for a machine that was too loaded: a bot that can bring that about must not gain by trying again."""
_AHEAD = 2
"""Matches handed to the executor for each lane, so that none waits for the coordinator."""


class RoundBegan(msgspec.Struct, frozen=True):
    """A round is scheduled or, after a stop, goes on."""

    game: str
    round: int
    matches: int
    left: int


class MatchPlayed(msgspec.Struct, frozen=True):
    """A match is stored."""

    game: str
    names: tuple[str, ...]
    record: MatchRecord


class MatchVoid(msgspec.Struct, frozen=True):
    """A match could not be played, for reasons of ours; it is played again."""

    game: str
    match: int
    reason: str


class RoundComplete(msgspec.Struct, frozen=True):
    """A round is complete and rated."""

    game: str
    round: int


Report = Callable[[RoundBegan | MatchPlayed | MatchVoid | RoundComplete], None]


class _Contest:
    """One game of a tournament: its rounds, one after the other."""

    def __init__(self, db: Database, tournament: Tournament, game: str, bots: Mapping[BotHash, BotRef]) -> None:
        self.db = db
        self.tournament = tournament
        self.game = game
        self.plan = plan_of(tournament)
        entrants = tournaments.entrants(db, tournament.id)
        self.numbers = [entrant.number for entrant in entrants if game in entrant.games]
        self._bots = bots
        counts = match_counts(self.plan, entrants)
        earlier = list(counts)[: list(counts).index(game)]
        self._first_match = tournament.first_match + sum(counts[one] for one in earlier)
        self.lane_deaths: Counter[str] = Counter()
        self._pools: dict[int, Collector] = {}

    def rounds(self) -> Iterator[Round]:
        """Yield the rounds that are not complete, scheduling each when asked for it, once those before are complete."""
        stored = tournaments.rounds(self.db, self.tournament.id, self.game)
        yield from (played for played, complete in stored if not complete)
        for following in self._following([played for played, _ in stored]):
            with writing(self.db):
                tables = [self._scheduled(following.number, table) for table in following.tables]
                tournaments.add_round(self.db, self.tournament.id, self.game, following, tables, self._first_match)
            yield following

    def _following(self, history: list[Round]) -> Iterator[Round]:
        made = corrections(self.db, self.tournament.id)  # nobody else writes while a tournament runs
        if self.plan.format == "round-robin":
            yield from islice(all_rounds(self.tournament, self.game, self.numbers, made), len(history), None)
            return
        while len(history) < self.plan.rounds:
            scores = table_scores(self.db, self.tournament.id, self.game)
            following = round_after(self.tournament, self.game, self.numbers, history, scores, made)
            if following is None:  # too few are left
                return
            history.append(following)
            yield following

    def _scheduled(self, number: int, table: Sequence[int]) -> Scheduled:
        return scheduled(self.plan, self.tournament, self.game, number, table)

    def spec(self, number: int) -> MatchSpec:
        """Return what a lane needs to play a stored match.

        Raises:
            ConfigError: it was scheduled for another version of the rules.
        """
        stored = matches.match(self.db, number)
        assert stored is not None
        game, options = rules_of(stored)
        bots = tuple(self._bots[bot] for bot in stored.hashes)
        return MatchSpec(number, game.name, game.version, options, bots, stored.decks, stored.legs, self.plan.clock)

    def complete(self, number: int) -> None:
        """Mark a round as complete and rate the pools that it changed."""
        with writing(self.db):
            tournaments.complete_round(self.db, self.tournament.id, self.game, number)
            for pool, key in ratings.pools_of_round(self.db, self.tournament.id, self.game, number):
                fitted = rate_collected(self._collected(pool, key, number))
                ratings.save(self.db, pool, self.tournament.id, number, fitted)

    def _collected(self, pool: int, key: PoolKey, number: int) -> Collector:
        """Return all rated deals of a pool; after the first time only those of the round are read."""
        collector = self._pools.get(pool)
        if collector is None:
            collector = self._pools[pool] = Collector(key.outcome_type)
            collector.add(matches.rated_deals(self.db, pool))
        else:
            collector.add(matches.rated_deals(self.db, pool, (self.tournament.id, self.game, number)))
        return collector


async def run(
    db: Database,
    tournament: Tournament,
    bots: Mapping[BotHash, BotRef],
    executor: Executor,
    report: Report,
    now: Callable[[], float],
    stopping: trio.Event,
) -> bool:
    """Play what is left of a tournament; its games side by side, the rounds of each one after the other.

    Args:
        bots: the bots of all entrants.
        report: told what happens, in the order in which it is stored.
        stopping: once set no further match is begun; those being played are finished and stored.

    Returns:
        True if the tournament is finished, False if it was stopped.

    Raises:
        InfraError: a match was void too often.
        ConfigError: a match was scheduled for another version of the rules.
    """
    places = trio.CapacityLimiter(_AHEAD * executor.lanes)
    known: ArenaError | None = None
    try:
        async with trio.open_nursery() as nursery:
            for game in plan_of(tournament).games:
                contest = _Contest(db, tournament, game, bots)
                nursery.start_soon(_play_rounds, contest, executor, places, report, stopping)
    except* ArenaError as group:
        known = _first(group)
    if known is not None:
        raise known
    if stopping.is_set():
        return False
    with writing(db):
        tournaments.finish(db, tournament.id, now())
    return True


def _first(group: ExceptionGroup[ArenaError]) -> ArenaError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


async def _play_rounds(
    contest: _Contest, executor: Executor, places: trio.CapacityLimiter, report: Report, stopping: trio.Event
) -> None:
    for current in contest.rounds():
        left = matches.unplayed(contest.db, contest.tournament.id, contest.game, current.number)
        report(RoundBegan(contest.game, current.number, len(current.tables), len(left)))
        async with trio.open_nursery() as nursery:
            for number in left:
                await places.acquire_on_behalf_of(number)
                if stopping.is_set():
                    places.release_on_behalf_of(number)
                    break
                nursery.start_soon(_play, contest, number, executor, places, report)
        if stopping.is_set():
            return
        contest.complete(current.number)
        report(RoundComplete(contest.game, current.number))
        if stopping.is_set():  # before the next round is scheduled, so that corrections made meanwhile reach it
            return


async def _play(
    contest: _Contest, number: int, executor: Executor, places: trio.CapacityLimiter, report: Report
) -> None:
    spec = contest.spec(number)
    try:
        record = await play_until_valid(spec, executor, report, contest.lane_deaths)
    finally:
        places.release_on_behalf_of(number)
    with writing(contest.db):
        matches.record(contest.db, record)
    report(MatchPlayed(contest.game, tuple(bot.name for bot in spec.bots), record))


async def play_until_valid(
    spec: MatchSpec, executor: Executor, report: Callable[[MatchVoid], None], lane_deaths: Counter[str]
) -> MatchRecord:
    """Play a match, again while it is void.

    Args:
        lane_deaths: counts by name the bots of matches in which lanes have died.

    Raises:
        InfraError: it was void too often.
    """
    voids = overloads = 0
    while True:
        try:
            return await executor.play(spec)
        except InfraError as error:
            report(MatchVoid(spec.game, spec.id, str(error)))
            voids += 1
            overloads += isinstance(error, OverloadError)
            if isinstance(error, LaneError):
                lane_deaths.update(bot.name for bot in spec.bots)
            if voids == ATTEMPTS or overloads == OVERLOADS:
                told = f"match {spec.id} was void {voids} times; the last time: {error}{_suspects(lane_deaths)}"
                raise InfraError(told) from error


def _suspects(lane_deaths: Counter[str]) -> str:
    """Return in whose matches lanes have died: a bot that can kill its lane may not hide it."""
    counted = ", ".join(f"{name} ({times})" for name, times in lane_deaths.most_common(4))
    return f"; lanes have died in matches of {counted}" if counted else ""
