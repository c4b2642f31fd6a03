"""Compares two bots: deal sets, played and judged until a sequential test ends.

A comparison is stored as a play, whose plan has hypotheses: entrant 0 is NEW, 1 is OLD, the others are the field.
A round is one match of NEW against OLD; with a field two matches on the same decks in the same seating, in which NEW
and OLD take the same place among the same others. Rounds are judged in their order, as soon as all before them are
complete, so that the result follows from the master seed and the bots alone, whatever was finished first or stopped
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import trio
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.executor import Executor
from arena.games import GAMES
from arena.luck import Stream
from arena.plan import Plan, new_tournament, plan_of, practice_master, scheduled
from arena.rating.gain import set_scores, set_shape
from arena.rating.sequential import Judgement, SequentialTest, SetShape, check_hypotheses
from arena.records import BotHash, BotRef, MatchSpec, Round
from arena.retelling import rules_of
from arena.rules import complete_options
from arena.schedule.seatings import seatings
from arena.store import matches, tournaments
from arena.store.database import writing
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import MatchPlayed, MatchVoid, play_until_valid

NEW, OLD = 0, 1
"""The numbers of both bots as entrants."""
_AHEAD = 2
"""Matches handed to the executor for each lane, so that none waits for the coordinator."""


class Judged(msgspec.Struct, frozen=True):
    """A round is complete and judged."""

    judgement: Judgement


Report = Callable[[MatchPlayed | MatchVoid | Judged], None]


def check_comparison(plan: Plan, entrants: int) -> None:
    """Raise ConfigError if two bots and so many entrants in all cannot be compared by a plan."""
    (game,) = plan.games
    complete_options(GAMES[game], plan.seats, plan.games[game])
    field = entrants - 2
    if plan.seats > 2 and not field:
        raise ConfigError(f"at tables of {plan.seats} others sit beside the two: name them with --field")
    if 0 < field < plan.seats - 1:
        raise ConfigError(f"tables of {plan.seats} need {plan.seats - 1} others that play {game}, not {field}")
    assert plan.hypotheses is not None
    if problem := check_hypotheses(plan.hypotheses, shape_of(plan, entrants)):
        raise ConfigError(problem)


def shape_of(plan: Plan, entrants: int) -> SetShape:
    """Return what a deal set of a comparison of so many entrants is made of."""
    (game,) = plan.games
    rules = GAMES[game]
    outcome_type = rules.outcome_type(complete_options(rules, plan.seats, plan.games[game]))
    legs = 1 if plan.one_leg else len(seatings(plan.seats, plan.seatings))
    return set_shape(plan.seats, legs, substituted=entrants > 2, outcome_type=outcome_type)


def find_comparison(
    db: Database, plan: Plan, entrants: Sequence[Entrant], isolation: str, seed: int | None
) -> Tournament | None:
    """Return the newest stored comparison of the same bots by the same plan, finished or not."""
    hashes = [entrant.hash for entrant in entrants]
    for stored in tournaments.tournaments(db, "play"):
        same = plan_of(stored) == plan and stored.isolation == isolation and bool(stored.stages[0].master)
        if seed is not None and stored.stages[0].master != practice_master(seed):
            continue
        if same and [entrant.hash for entrant in tournaments.entrants(db, stored.id)] == hashes:
            return stored
    return None


def begin(
    db: Database, plan: Plan, entrants: Sequence[Entrant], isolation: str, now: float, seed: int | None
) -> Tournament:
    """Store a new comparison."""
    count = plan.rounds * (1 if len(entrants) == 2 else 2)
    with writing(db):
        name = f"play {len(tournaments.tournaments(db, 'play')) + 1}"
        made = new_tournament(name, plan, isolation, now, count, seed=seed, kind="play")
        return tournaments.get(db, tournaments.create(db, made, entrants))


class Comparison:
    """A stored comparison and what its complete rounds say.

    Attributes:
        faults: by entrant, in all matches that are stored.
        is_over: it is decided, or all of its rounds are complete.
    """

    def __init__(self, db: Database, tournament: Tournament) -> None:
        self.tournament = tournament
        self.plan = plan_of(tournament)
        (self.game,) = self.plan.games
        self._db = db
        (self._stage,) = tournament.stages
        self._entrants = tournaments.entrants(db, tournament.id)
        self.shape = shape_of(self.plan, len(self._entrants))
        assert self.plan.hypotheses is not None
        self._test = SequentialTest(self.plan.hypotheses, self.shape)
        self._stored = {played.number for played, _ in tournaments.rounds(db, tournament.id, self.game)}
        self._played = set(matches.played(db, tournament.id))
        self.faults = Counter(one.entrant for one in matches.faults(db, tournament=tournament.id))
        self._next = 1
        self._judge()

    @property
    def is_over(self) -> bool:
        """Whether it is decided, or all of its rounds are complete."""
        return self._test.is_decided or self._next > self.plan.rounds

    def judgement(self) -> Judgement:
        """Return what the rounds say that are complete and follow one on the other."""
        return self._test.judgement()

    def due(self, number: int) -> list[int]:
        """Return the matches of a round that are still to be played; the round is stored if it is not yet."""
        if number not in self._stored:
            tables = self._tables(number)
            ready = [scheduled(self.tournament, self._stage, self.game, number, table) for table in tables]
            with writing(self._db):
                round_, first = Round(number, tables), self._stage.first_match
                tournaments.add_round(self._db, self.tournament.id, self.game, round_, ready, first)
            self._stored.add(number)
        return [match for match in self._matches(number) if match not in self._played]

    def spec(self, match: int, bots: Mapping[BotHash, BotRef]) -> MatchSpec:
        """Return what a lane needs to play a stored match.

        Raises:
            ConfigError: it was scheduled for another version of the rules.
        """
        stored = matches.match(self._db, match)
        assert stored is not None
        game, options = rules_of(stored)
        refs = tuple(
            msgspec.structs.replace(bots[bot], name=name) for bot, name in zip(stored.hashes, stored.names, strict=True)
        )
        return MatchSpec(match, game.name, game.version, options, refs, stored.decks, stored.legs, self.plan.clock)

    def take(self, match: int) -> bool:
        """Count a match that was stored; return whether that let a round be judged."""
        self._played.add(match)
        self.faults.update(one.entrant for one in matches.faults(self._db, number=match))
        return self._judge()

    def _judge(self) -> bool:
        before = self._next
        while not self.is_over and self._next in self._stored:
            numbers = self._matches(self._next)
            if not self._played.issuperset(numbers):
                break
            self._test.add(set_scores(self.shape, [matches.deals(self._db, number) for number in numbers]))
            self._next += 1
        return self._next > before

    def _matches(self, number: int) -> list[int]:
        return [match for match, _ in matches.tables(self._db, self.tournament.id, self.game, number)]

    def _tables(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return who sits with whom in a round: who of the field, and in which order, is drawn anew each time."""
        field = [entrant.number for entrant in self._entrants if entrant.number not in (NEW, OLD)]
        if not field:
            return ((NEW, OLD),)
        drawn = Stream(self._stage.master, "field", self.game, number).shuffled(field)[: self.plan.seats - 1]
        return (NEW, *drawn), (OLD, *drawn)


async def run(
    db: Database,
    comparison: Comparison,
    bots: Mapping[BotHash, BotRef],
    executor: Executor,
    report: Report,
    now: Callable[[], float],
    stopping: trio.Event,
) -> bool:
    """Play what is left of a comparison, until it is decided or all of its rounds are complete.

    Args:
        bots: the bots of all entrants.
        report: told what happens, in the order in which it is stored.
        stopping: once set no further match is begun; those being played are finished and stored.

    Returns:
        True if it is over, False if it was stopped.

    Raises:
        InfraError: a match was void too often.
    """
    places = trio.CapacityLimiter(_AHEAD * executor.lanes)
    deaths: Counter[str] = Counter()

    async def play(match: int) -> None:
        spec = comparison.spec(match, bots)
        try:
            record = await play_until_valid(spec, executor, report, deaths)
        finally:
            places.release_on_behalf_of(match)
        with writing(db):
            matches.record(db, record)
        report(MatchPlayed(spec.game, tuple(bot.name for bot in spec.bots), record))
        if comparison.take(match):
            report(Judged(comparison.judgement()))

    async with trio.open_nursery() as nursery:
        for match in (match for number in range(1, comparison.plan.rounds + 1) for match in comparison.due(number)):
            await places.acquire_on_behalf_of(match)
            if stopping.is_set() or comparison.is_over:
                break
            nursery.start_soon(play, match)
    if comparison.is_over:
        with writing(db):
            tournaments.finish(db, comparison.tournament.id, now())
    return comparison.is_over
