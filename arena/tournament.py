"""Runs a tournament: schedule, executor, store, and again until every round is complete.

Everything that is decided (pairings, decks, ratings) is a function of the master seed and of complete rounds in the
store, so that a run that was stopped goes on as if it had not been.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count, islice
from typing import Literal

import msgspec
import trio
from sqlite_utils import Database

from arena import __version__
from arena.errors import ArenaError, ConfigError, InfraError
from arena.executor import Executor
from arena.explain import rules_of
from arena.games import GAMES
from arena.luck import commitment, derive
from arena.rating.pool import rate
from arena.records import BotHash, BotRef, Clock, MatchRecord, MatchSpec, PoolKey, Round, Standing, TableScore
from arena.rules import Value, complete_options, rule_set_id
from arena.schedule.roundrobin import round_robin, tables_per_cycle
from arena.schedule.scores import HALF, table_score
from arena.schedule.seatings import Mode, seatings
from arena.schedule.standings import standings
from arena.schedule.swiss import next_round, round_shape
from arena.store import matches, ratings, tournaments
from arena.store.database import writing
from arena.store.tournaments import Entrant, Scheduled, Tournament
from arena.wire import PROTOCOL

ATTEMPTS = 3
"""A match that was void so often stops the tournament: the fault is ours, and playing on would not mend it."""
_AHEAD = 2
"""Matches handed to the executor for each lane, so that none waits for the coordinator."""


class Plan(msgspec.Struct, frozen=True):
    """What is to be played; stored with the tournament.

    Attributes:
        games: for each game the options that differ from its defaults.
        rounds: rounds of a Swiss, cycles of a round robin.
        seats: at a table.
        decks: of a match.
    """

    format: Literal["swiss", "round-robin"]
    games: dict[str, dict[str, Value]]
    rounds: int
    seats: int = 2
    decks: int = 1
    seatings: Mode = "mirror"
    clock: Clock = Clock()


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


def check_plan(plan: Plan, entrants: Sequence[Entrant]) -> None:
    """Raise ConfigError if the plan cannot be played by these entrants; names every problem."""
    problems = [f"{entrant.name} plays none of {', '.join(plan.games)}" for entrant in entrants if not entrant.games]
    for game, options in plan.games.items():
        players = sum(game in entrant.games for entrant in entrants)
        if players < plan.seats:
            problems.append(f"{game} at tables of {plan.seats} needs {plan.seats} bots that play it, not {players}")
        try:
            complete_options(GAMES[game], plan.seats, options)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))


def swiss_rounds(entrants: int, seats: int) -> int:
    """Return the default number of rounds: enough to find one winner among so many, and two to sort the others."""
    base = max(seats, 2)
    return 2 + next(n for n in count(1) if base**n >= entrants)


def new_tournament(
    name: str, plan: Plan, isolation: str, now: float, *, seed: int | None = None, kind: str = "tournament"
) -> Tournament:
    """Return a tournament to be stored, with a fresh master seed or, for practice, one made from a short seed."""
    master = secrets.token_bytes(32) if seed is None else derive(b"practice", "master", seed)
    salt = secrets.token_bytes(32) if seed is None else derive(b"practice", "salt", seed)
    spec = msgspec.json.encode(plan).decode()
    commit = commitment(master, salt)
    practice = seed is not None
    return Tournament(0, name, kind, spec, practice, isolation, __version__, PROTOCOL, commit, salt, master, now)


def scheduled(plan: Plan, tournament: Tournament, game: str, number: int, table: Sequence[int]) -> Scheduled:
    """Return the match of a table: all tables of a round with the same game and size share their decks."""
    seats = len(table)
    rules = GAMES[game]
    options = complete_options(rules, seats, plan.games[game])
    pool = PoolKey(game, rule_set_id(rules, options), seats, tournament.isolation, rules.outcome_type(options))
    decks = tuple(derive(tournament.master, "deck", game, seats, number, deck) for deck in range(plan.decks))
    return Scheduled(pool, tuple(table), decks, seatings(seats, plan.seatings))


class _Contest:
    """One game of a tournament: its rounds, one after the other."""

    def __init__(self, db: Database, tournament: Tournament, game: str, bots: Mapping[BotHash, BotRef]) -> None:
        self.db = db
        self.tournament = tournament
        self.game = game
        self.plan = plan_of(tournament)
        self.numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
        self._bots = bots

    def rounds(self) -> Iterator[Round]:
        """Yield the rounds that are not complete, scheduling each when asked for it, once those before are complete."""
        stored = tournaments.rounds(self.db, self.tournament.id, self.game)
        yield from (played for played, complete in stored if not complete)
        for following in self._following([played for played, _ in stored]):
            with writing(self.db):
                tables = [self._scheduled(following.number, table) for table in following.tables]
                tournaments.add_round(self.db, self.tournament.id, self.game, following, tables)
            yield following

    def _following(self, history: list[Round]) -> Iterator[Round]:
        key = derive(self.tournament.master, "schedule", self.game)
        if self.plan.format == "round-robin":
            yield from islice(round_robin(self.numbers, self.plan.seats, self.plan.rounds, key), len(history), None)
            return
        smaller = _allows_smaller(self.plan, self.game)
        while len(history) < self.plan.rounds:
            scores = table_scores(self.db, self.tournament.id, self.game)
            history.append(next_round(self.numbers, self.plan.seats, history, scores, key, smaller_tables=smaller))
            yield history[-1]

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
                fitted = rate(matches.rated_deals(self.db, pool), key.outcome_type)
                ratings.save(self.db, pool, self.tournament.id, number, fitted)


def plan_of(tournament: Tournament) -> Plan:
    """Return what a stored tournament plays."""
    return msgspec.json.decode(tournament.spec, type=Plan)


def final_standings(db: Database, tournament: Tournament, game: str) -> list[Standing]:
    """Return the standings of a game of a tournament after its complete rounds; the lot decides last."""
    history = [played for played, complete in tournaments.rounds(db, tournament.id, game) if complete]
    numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
    key = derive(tournament.master, "lot", game)
    # In a round robin everybody sits out equally often, so a bye is worth nothing; in a Swiss it is half a round.
    bye = Fraction(0) if plan_of(tournament).format == "round-robin" else HALF
    return standings(numbers, history, table_scores(db, tournament.id, game), bye_score=bye, key=key)


def expected_matches(db: Database, tournament: Tournament) -> int:
    """Return the number of matches of a whole tournament."""
    plan = plan_of(tournament)
    total = 0
    for game in plan.games:
        players = len(tournaments.entrants(db, tournament.id, game))
        if plan.format == "round-robin":
            total += plan.rounds * tables_per_cycle(players, plan.seats)
        else:
            shape = round_shape(players, plan.seats, smaller_tables=_allows_smaller(plan, game))
            total += plan.rounds * (shape.full + shape.small)
    return total


def played_matches(db: Database, tournament: Tournament) -> int:
    """Return the number of matches that are stored as played."""
    return matches.count_played(db, tournament.id)


def _allows_smaller(plan: Plan, game: str) -> bool:
    return plan.seats > 2 and plan.seats - 1 in GAMES[game].seats


def table_scores(db: Database, tournament: int, game: str) -> list[TableScore]:
    """Return what the matches of all complete rounds say about their tables."""
    found = []
    for played, complete in tournaments.rounds(db, tournament, game):
        if complete:
            for number, table in matches.tables(db, tournament, game, played.number):
                found.append(table_score(played.number, table, matches.deals(db, number)))
    return found


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


async def _play(
    contest: _Contest, number: int, executor: Executor, places: trio.CapacityLimiter, report: Report
) -> None:
    spec = contest.spec(number)
    try:
        record = await _play_until_valid(contest, spec, executor, report)
    finally:
        places.release_on_behalf_of(number)
    with writing(contest.db):
        matches.record(contest.db, record)
    report(MatchPlayed(contest.game, tuple(bot.name for bot in spec.bots), record))


async def _play_until_valid(contest: _Contest, spec: MatchSpec, executor: Executor, report: Report) -> MatchRecord:
    attempt = 1
    while True:
        try:
            return await executor.play(spec)
        except InfraError as error:
            report(MatchVoid(contest.game, spec.id, str(error)))
            if attempt == ATTEMPTS:
                raise InfraError(f"match {spec.id} was void {ATTEMPTS} times; the last time: {error}") from error
        attempt += 1


def same_tournament(stored: Tournament, plan: Plan, entrants: Sequence[Entrant], bots: Sequence[Entrant]) -> list[str]:
    """Return what differs between a stored tournament and what was asked for now; empty if nothing does."""
    kept = msgspec.to_builtins(plan_of(stored))
    asked = msgspec.to_builtins(plan)
    differences = [f"{key} was {kept[key]}, now {asked[key]}" for key in kept if kept[key] != asked[key]]
    before, after = ({(bot.name, bot.hash) for bot in side} for side in (entrants, bots))
    differences += [f"{name} ({bot[:12]}) no longer plays" for name, bot in sorted(before - after)]
    differences += [f"{name} ({bot[:12]}) is new" for name, bot in sorted(after - before)]
    return differences
