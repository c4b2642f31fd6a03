"""Comparisons without processes: whatever the order and the stops, the answer is the same, and equal bots are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.comparison import Comparison, Judged, begin, check_comparison, find_comparison, run
from arena.errors import ConfigError, InfraError
from arena.games import GAMES
from arena.plan import Plan, plan_of
from arena.rating.gain import set_scores
from arena.rating.sequential import LEAST_SETS, Hypotheses, Judgement
from arena.records import BotRef
from arena.schedule.seatings import Mode, seatings
from arena.store import bots as kept_bots
from arena.store import matches, ratings, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant
from arena.tournament import MatchPlayed, MatchVoid
from tests.fakes_executor import FakeLanes, by_hash, refs, use_fake_bots

SOON = Hypotheses(0, 100)
PAIR = Plan("round-robin", {"durak": {}}, 60, decks=2, hypotheses=SOON)
FIELD = Plan("round-robin", {"avalanche": {}}, 5, seats=3, decks=2, hypotheses=Hypotheses(0, 60), one_leg=True)
TABLES = [(name, seats) for name, game in GAMES.items() for seats in game.seats]


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "other.db") as opened:
        yield opened


def entered(db: Database, plan: Plan, bots: Sequence[BotRef]) -> list[Entrant]:
    with writing(db):
        for bot in bots:
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
    return [Entrant(number, bot.name, bot.hash, tuple(plan.games)) for number, bot in enumerate(bots)]


def opened(db: Database, plan: Plan, bots: Sequence[BotRef], seed: int = 1) -> Comparison:
    return Comparison(db, begin(db, plan, entered(db, plan, bots), "none", 1.0, seed))


def play(
    db: Database, comparison: Comparison, bots: Sequence[BotRef], lanes: FakeLanes | None = None
) -> tuple[bool, list[MatchPlayed | MatchVoid | Judged]]:
    lanes = lanes or FakeLanes()
    events: list[MatchPlayed | MatchVoid | Judged] = []

    async def main() -> bool:
        return await run(db, comparison, by_hash(bots), lanes, events.append, lambda: 2.0, lanes.stopping)

    return trio.run(main, clock=MockClock(autojump_threshold=0)), events


def whole(db: Database, plan: Plan, bots: Sequence[BotRef], lanes: FakeLanes | None = None) -> Judgement:
    comparison = opened(db, plan, bots)
    assert play(db, comparison, bots, lanes)[0]
    return comparison.judgement()


def with_a_copy(bots: Sequence[BotRef]) -> list[BotRef]:
    """Return bots of which the second is the first under another name."""
    return [bots[0], msgspec.structs.replace(bots[0], name="copy"), *bots[2:]]


# The answer


@pytest.mark.parametrize(("faulty", "verdict"), [(0, "H0"), (1, "H1")])
def test_a_bot_that_fails_is_found_worse(db: Database, faulty: int, verdict: str) -> None:
    bots = refs(2, {faulty: ("illegal", 20)})
    comparison = opened(db, PAIR, bots)
    over, events = play(db, comparison, bots)
    said = comparison.judgement()
    assert over
    assert comparison.is_over
    assert said.verdict == verdict
    assert comparison.faults[faulty] == len(matches.faults(db)) > 0
    assert comparison.faults[1 - faulty] == 0
    assert isinstance(events[-1], Judged | MatchPlayed)
    assert [event.judgement for event in events if isinstance(event, Judged)][-1] == said
    assert tournaments.get(db, comparison.tournament.id).finished_at == 2.0


@pytest.mark.parametrize(("name", "seats"), TABLES)
def test_equal_bots_score_one_half_in_every_set_among_others(db: Database, name: str, seats: int) -> None:
    turns = len(seatings(seats))
    plan = msgspec.structs.replace(FIELD, games={name: {}}, seats=seats, rounds=turns, decks=1)
    comparison = opened(db, plan, bots := with_a_copy(refs(seats + 2)))
    assert play(db, comparison, bots)[0]
    assert comparison.judgement().sets == turns
    for number in range(1, turns + 1):
        both = [match for match, _ in matches.tables(db, comparison.tournament.id, name, number)]
        assert set_scores(comparison.shape, [matches.deals(db, match) for match in both]) == [comparison.shape.top // 2]


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_equal_bots_have_the_same_elo_among_others(db: Database, seats: int) -> None:
    said = whole(db, msgspec.structs.replace(FIELD, seats=seats, rounds=17), with_a_copy(refs(6)))
    assert (said.sets, said.verdict) == (34, "")
    assert said.elo is not None
    assert said.elo.value == pytest.approx(0, abs=1e-6)


def test_equal_bots_score_one_half_in_every_set_against_each_other(db: Database) -> None:
    said = whole(db, msgspec.structs.replace(PAIR, rounds=17, hypotheses=Hypotheses(0, 60)), with_a_copy(refs(2)))
    assert said.elo is not None
    assert said.elo.value == pytest.approx(0, abs=1e-6)


def test_new_and_old_sit_in_the_same_seats_of_the_same_deals(db: Database) -> None:
    bots = refs(6)
    whole(db, FIELD, bots)
    (tournament,) = tournaments.tournaments(db, "play")
    fields = set()
    for played, _ in tournaments.rounds(db, tournament.id, "avalanche"):
        new, old = (
            matches.match(db, number) for number, _ in matches.tables(db, tournament.id, "avalanche", played.number)
        )
        assert new is not None
        assert old is not None
        assert (new.entrants[0], old.entrants[0]) == (0, 1)
        assert (new.entrants[1:], new.decks, new.legs) == (old.entrants[1:], old.decks, old.legs)
        assert not {0, 1} & {*new.entrants[1:]}
        fields.add(new.entrants[1:])
    assert len(fields) > 1


@pytest.mark.parametrize(("seats", "mode"), [(2, "mirror"), (3, "rotate"), (3, "mirror"), (4, "mirror")])
def test_among_others_a_match_has_one_leg_and_the_seatings_come_in_turn(db: Database, seats: int, mode: Mode) -> None:
    due = seatings(seats, mode)
    plan = msgspec.structs.replace(FIELD, seats=seats, seatings=mode, rounds=2 * len(due), decks=1)
    comparison = opened(db, plan, bots := refs(seats + 1))
    assert play(db, comparison, bots)[0]
    legs = []
    for number in range(1, plan.rounds + 1):
        for match, _ in matches.tables(db, comparison.tournament.id, "avalanche", number):
            stored = matches.match(db, match)
            assert stored is not None
            legs.append(stored.legs)
    assert legs == [(seating,) for seating in due * 2 for _ in ("NEW", "OLD")]


def test_a_comparison_in_all_seatings_at_once_is_another_one(db: Database) -> None:
    """What was stored before seatings came in turn is still told and verified, but it does not go on."""
    before = msgspec.structs.replace(FIELD, one_leg=False, seatings="rotate")
    said = whole(db, before, bots := with_a_copy(refs(4)))
    assert said.sets == 10
    (tournament,) = tournaments.tournaments(db, "play")
    assert Comparison(db, tournament).shape.deals == 6
    assert [difference for _, found in audit(db, [tournament]) for difference in found] == []
    assert find_comparison(db, before, entered(db, FIELD, bots), "none", None) == tournament
    assert find_comparison(db, FIELD, entered(db, FIELD, bots), "none", None) is None


def test_nothing_of_it_is_rated_and_all_of_it_is_verified(db: Database) -> None:
    whole(db, FIELD, refs(4))
    assert ratings.pools(db) == []
    found = list(audit(db, tournaments.tournaments(db, "play")))
    assert sum(deals for deals, _ in found) == 5 * 2 * 2
    assert [difference for _, differences in found for difference in differences] == []


def test_at_the_cap_it_stays_undecided(db: Database) -> None:
    comparison = opened(db, msgspec.structs.replace(PAIR, rounds=3), bots := refs(2))
    assert play(db, comparison, bots)[0]
    said = comparison.judgement()
    assert (said.sets, said.verdict, comparison.is_over) == (6, "", True)


# Stops, order, trouble


def test_neither_the_order_nor_stops_matter(db: Database, other: Database) -> None:
    bots = refs(2, {1: ("illegal", 40)})
    expected = whole(db, PAIR, bots)
    assert expected.sets > LEAST_SETS - 1
    comparison = opened(other, PAIR, bots)
    for stop in (1, 3):
        lanes = FakeLanes(shuffle=stop)
        lanes.stop_after = stop
        assert not play(other, comparison, bots, lanes)[0]
        found = find_comparison(other, PAIR, entered(other, PAIR, bots), "none", None)
        assert found is not None
        assert found.finished_at is None
        comparison = Comparison(other, found)
    lanes = FakeLanes(shuffle=2)
    lanes.fail_after = 2
    with pytest.raises(BaseExceptionGroup):
        play(other, comparison, bots, lanes)
    comparison = Comparison(other, comparison.tournament)
    assert play(other, comparison, bots, FakeLanes(lanes=3, shuffle=9))[0]
    assert msgspec.structs.replace(comparison.judgement(), llr=0) == msgspec.structs.replace(expected, llr=0)
    assert comparison.judgement() == Comparison(other, comparison.tournament).judgement()


def test_a_void_match_is_played_again_and_at_last_stops_it(db: Database) -> None:
    comparison = opened(db, PAIR, bots := refs(2))
    first = comparison.tournament.stages[0].first_match
    lanes = FakeLanes()
    lanes.voids = {first: 1}
    lanes.stop_after = 2
    _, events = play(db, comparison, bots, lanes)
    assert [event.match for event in events if isinstance(event, MatchVoid)] == [first]
    lanes = FakeLanes()
    lanes.voids = {first + 6: -1}
    with pytest.raises(BaseExceptionGroup) as caught:
        play(db, Comparison(db, comparison.tournament), bots, lanes)
    assert caught.group_contains(InfraError, match=f"match {first + 6} was void 3 times")


# Which comparison


def test_a_comparison_is_found_by_bots_plan_and_isolation(db: Database) -> None:
    bots = refs(2)
    entrants = entered(db, PAIR, bots)
    comparison = opened(db, PAIR, bots)
    tournaments_of = [
        find_comparison(db, PAIR, entrants, "none", None),
        find_comparison(db, PAIR, entrants, "none", 1),
    ]
    assert [found and found.id for found in tournaments_of] == [comparison.tournament.id] * 2
    assert plan_of(comparison.tournament) == PAIR
    others = [
        (PAIR, entrants, "none", 2),
        (PAIR, entrants, "strict", None),
        (PAIR, entrants[::-1], "none", None),
        (msgspec.structs.replace(PAIR, hypotheses=Hypotheses(0, 10)), entrants, "none", None),
    ]
    for plan, named, isolation, seed in others:
        assert find_comparison(db, plan, named, isolation, seed) is None


@pytest.mark.parametrize(
    ("plan", "entrants", "problem"),
    [
        (FIELD, 2, "name them with --field"),
        (FIELD, 3, "need 2 others that play avalanche, not 1"),
        (msgspec.structs.replace(PAIR, hypotheses=Hypotheses(3, 2)), 2, "elo1"),
        (msgspec.structs.replace(PAIR, games={"durak": {}}, seats=20), 25, "seats|players"),
    ],
)
def test_what_cannot_be_compared_is_told(plan: Plan, entrants: int, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_comparison(plan, entrants)
    check_comparison(PAIR, 2)
    check_comparison(FIELD, 4)
