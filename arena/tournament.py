"""Runs a tournament: schedule, executor, store, and again until every round is complete.

Everything that is decided (pairings, decks, ratings) is a function of the master seed and of complete rounds in the
store, so that a run that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
import trio
from sqlite_utils import Database

from arena.errors import ArenaError, InfraError, LaneError, OverloadError
from arena.executor import Executor
from arena.plan import (
    cycles,
    is_cut,
    match_counts,
    plan_of,
    players,
    round_after,
    rounds_before,
    scheduled,
    table_scores,
    without_excluded,
)
from arena.rating.duels import Collector
from arena.rating.pool import rate_collected
from arena.records import BotHash, BotRef, MatchRecord, MatchSpec, PoolKey, Round
from arena.retelling import rules_of
from arena.store import matches, ratings, tournaments
from arena.store.corrections import Correction, corrections, last_correction
from arena.store.database import writing
from arena.store.tournaments import Scheduled, Stage, Tournament

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


class Memory:
    """The rated deals of complete rounds that were read before; forgotten when others have corrected something."""

    def __init__(self) -> None:
        self._pools: dict[int, Collector] = {}
        self._corrected = 0

    def rated(self, db: Database, pool: int, key: PoolKey, of: tuple[int, str, int]) -> Collector:
        """Return all rated deals of a pool; those of one complete round, which is the only new one, are read."""
        if self._corrected != (corrected := last_correction(db)):
            self._corrected = corrected
            self._pools.clear()
        collector = self._pools.get(pool)
        if collector is None:
            collector = self._pools[pool] = Collector(key.outcome_type)
            collector.add(matches.rated_deals(db, pool))
        else:
            collector.add(matches.rated_deals(db, pool, of))
        return collector


class _Contest:
    """One game of a stage of a tournament: its rounds, one after the other."""

    def __init__(
        self,
        db: Database,
        tournament: Tournament,
        stage: Stage,
        game: str,
        bots: Mapping[BotHash, BotRef],
        memory: Memory,
    ) -> None:
        self.db = db
        self.tournament = tournament
        self.game = game
        self.plan = plan_of(stage)
        self.lane_deaths: Counter[str] = Counter()
        self._stage = stage
        self._numbers = players(db, tournament, stage, game)
        self._bots = bots
        before = rounds_before(db, tournament, stage.number)
        entrants = [one for one in tournaments.entrants(db, tournament.id) if one.number in stage.players]
        counts = match_counts(self.plan, entrants, before)
        earlier = list(counts)[: list(counts).index(game)]
        self._first_match = stage.first_match + sum(counts[one] for one in earlier)
        self._cycles_before = before[game]
        self._memory = memory

    def rounds(self) -> Iterator[Round]:
        """Yield the rounds that are not complete, scheduling each when asked for it, once those before are complete."""
        stored = tournaments.rounds(self.db, self.tournament.id, self.game)
        yield from (played for played, complete in stored if not complete)
        if is_cut(self.tournament, self._stage):
            return
        history = [played for played, _ in stored]
        if self.plan.format == "round-robin":
            yield from self._cycles(len(history))
            return
        for _ in range(self._rounds_left(len(history))):
            following = self._schedule(partial(self._paired, history))
            if following is None:  # too few are left
                return
            history.append(following)
            yield following

    def _rounds_left(self, rounds: int) -> int:
        """Return how many rounds are to be scheduled yet in a format that pairs round by round."""
        if self.plan.format == "until-error":  # a game may have no part in a stage
            stages = tournaments.round_stages(self.db, self.tournament.id, self.game)
            return int(self._stage.number not in stages)
        return self.plan.rounds - rounds

    def _cycles(self, rounds: int) -> Iterator[Round]:
        stages = tournaments.round_stages(self.db, self.tournament.id, self.game)
        before = rounds - stages.count(self._stage.number)
        every = cycles(self._stage, self.game, self._numbers, self._cycles_before, before + 1)
        for due in islice(every, rounds - before, None):
            following = self._schedule(partial(without_excluded, self._stage, self.game, due))
            assert following is not None
            yield following

    def _paired(self, history: Sequence[Round], made: Sequence[Correction]) -> Round | None:
        scores = table_scores(self.db, self.tournament.id, self.game)
        return round_after(self._stage, self.game, self._numbers, history, scores, made)

    def _schedule(self, find: Callable[[Sequence[Correction]], Round | None]) -> Round | None:
        """Store the round that is due by the corrections made so far."""
        while True:
            made = corrections(self.db, self.tournament.id)
            following = find(made)
            if following is None:
                return None
            tables = [self._scheduled(following.number, table) for table in following.tables]
            with writing(self.db):
                if corrections(self.db, self.tournament.id) == made:  # else somebody corrected while it was found
                    stage = self._stage.number
                    tournaments.add_round(
                        self.db, self.tournament.id, self.game, following, tables, self._first_match, stage
                    )
                    return following

    def _scheduled(self, number: int, table: Sequence[int]) -> Scheduled:
        return scheduled(self.tournament, self._stage, self.game, number, table)

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
                rated = self._memory.rated(self.db, pool, key, (self.tournament.id, self.game, number))
                fitted = rate_collected(rated)
                ratings.save(
                    self.db,
                    pool,
                    self.tournament.id,
                    number,
                    fitted.ratings,
                    rated.taken,
                    certainty=fitted.certainty,
                )


async def run(
    db: Database,
    tournament: Tournament,
    bots: Mapping[BotHash, BotRef],
    executor: Executor,
    report: Report,
    now: Callable[[], float],
    stopping: trio.Event,
    memory: Memory | None = None,
) -> bool:
    """Play what is left of a tournament: its stages one after the other, in each all games side by side.

    Others may submit bots and correct results meanwhile; the rounds to come follow corrections.

    Args:
        bots: the bots of all entrants.
        report: told what happens, in the order in which it is stored.
        stopping: once set no further match is begun; those being played are finished and stored.
        memory: of an earlier run by the same runner, so that less is read.

    Returns:
        True if the tournament is finished, False if it was stopped.

    Raises:
        InfraError: a match was void too often.
        ConfigError: a match was scheduled for another version of the rules.
    """
    memory = memory or Memory()
    for stage in tournament.stages:
        if stage.finished_at is not None:
            continue
        contests = [_Contest(db, tournament, stage, game, bots, memory) for game in plan_of(stage).games]
        await _play_stage(contests, executor, report, stopping)
        if stopping.is_set():
            return False
        with writing(db):
            tournaments.finish(db, tournament.id, now(), stage.number)
    return True


async def _play_stage(contests: Sequence[_Contest], executor: Executor, report: Report, stopping: trio.Event) -> None:
    places = trio.CapacityLimiter(_AHEAD * executor.lanes)
    known: ArenaError | None = None
    try:
        async with trio.open_nursery() as nursery:
            for contest in contests:
                nursery.start_soon(_play_rounds, contest, executor, places, report, stopping)
    except* ArenaError as group:
        known = _first(group)
    if known is not None:
        raise known


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
    except InfraError as error:
        raise InfraError(
            f"{error}; mend that and give the same command again, or take the match out by `arena void {number}`"
        ) from error
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
