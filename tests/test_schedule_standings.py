from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

import msgspec
import pytest

from arena.luck import Stream
from arena.plan import Plan
from arena.records import TIEBREAKS, Round, Standing, TableScore
from arena.schedule.scores import HALF, Line, Sheet
from arena.schedule.standings import decided_by, opponent_points, standings, virtual_opponent

ABSENT = Line((), (), Fraction())
BYE = Line((), (), HALF, bye=True)


def played(*scores: float) -> tuple[Line, ...]:
    return tuple(Line((99,), (Fraction(score),), Fraction(score)) for score in scores)


def event(*rounds: Mapping[tuple[int, int], float]) -> tuple[list[Round], list[TableScore]]:
    """Return rounds of two seats from (a, b) -> score of a; `(a, a)` is a bye of a."""
    history, scores = [], []
    for number, results in enumerate(rounds, 1):
        tables = tuple(pair for pair in results if pair[0] != pair[1])
        history.append(Round(number, tables, tuple(a for a, b in results if a == b)))
        for table in tables:
            won = int(2 * results[table])
            scores.append(TableScore(number, table, ((0, won), (2 - won, 0)), 1, (int(won == 2), int(won == 0))))
    return history, scores


def named(standing: Standing) -> dict[str, float | None]:
    return dict(zip(TIEBREAKS, standing.tiebreaks, strict=True))


@pytest.mark.parametrize(
    ("before", "missed", "after", "virtual"), [((1, 0.5), 0, 6, 5.5), ((1, 1, 1, 0.5, 0), 1, 3, 5.0)]
)
def test_virtual_opponent_of_fide(before: tuple[float, ...], missed: float, after: int, virtual: float) -> None:
    """C.02 13.15: nine rounds, absent in round 3 with 1.5 points; a forfeit win in round 6 with 3.5."""
    sheet = Sheet((*played(*before), Line((), (), Fraction(missed)), *played(*[1.0] * after)))
    assert virtual_opponent(sheet, len(before)) == Fraction(virtual)


def test_rounds_not_played_by_opponents_count_half() -> None:
    """Opponents with 5, 1.5, 2, 1, 4, 2: 15.5; the one with 1 was absent four times: 17.5."""
    plain = [Sheet(played(1, 1, 1, 1, 1)), *(Sheet(played(*s)) for s in ((1, 0.5), (1, 1), (1, 1, 1, 1), (1, 1)))]
    absent = Sheet((*played(1), *[ABSENT] * 4))
    assert sum(sheet.points for sheet in (*plain, absent)) == Fraction("15.5")
    assert sum(opponent_points(sheet) for sheet in (*plain, absent)) == Fraction("17.5")


def test_values_at_two_seats_equal_the_fide_definitions() -> None:
    history, scores = event(
        {(1, 2): 1, (3, 4): 0.5, (5, 5): 0},
        {(1, 3): 0.5, (5, 2): 1, (4, 4): 0},
        {(1, 5): 1, (2, 4): 1, (3, 3): 0},
    )
    table = {standing.entrant: standing for standing in standings(range(1, 6), history, scores)}
    assert {e: s.points for e, s in table.items()} == {1: 2.5, 2: 1, 3: 1.5, 4: 1, 5: 1.5}
    assert [s.entrant for s in table.values()] == [1, 3, 5, 2, 4]
    assert named(table[1]) == {
        "direct encounter": None,
        "buchholz": 1 + 1.5 + 1.5,
        "buchholz cut 1": 3,
        "sonneborn-berger": 1 + 0.5 * 1.5 + 1.5,
        "median duel": 1,
        "sets won": 2,
        "lot": None,
    }
    assert named(table[5])["buchholz"] == 1.5 + 1 + 2.5  # its bye: somebody with its own points
    assert named(table[5])["sonneborn-berger"] == 0.5 * 1.5 + 1 + 0
    assert named(table[2])["direct encounter"] == 1
    assert named(table[4])["direct encounter"] == 0
    assert named(table[3])["direct encounter"] is None  # 3 and 5 never met
    assert named(table[3])["median duel"] == 0.5
    assert (table[5].rounds, table[5].deals, table[5].byes) == (2, 2, 1)
    virtual = standings(range(1, 6), history, scores, unplayed="virtual")
    assert named(next(s for s in virtual if s.entrant == 5))["buchholz"] == (0 + 0.5 + 1) + 1 + 2.5


def test_direct_encounter_needs_all_to_have_met() -> None:
    rounds = [{(1, 2): 1.0, (3, 4): 0.5}, {(1, 3): 0.0, (2, 4): 0.5}, {(1, 4): 0.5, (2, 3): 1.0}]
    table = standings(range(1, 5), *event(*rounds))
    assert {s.entrant: s.points for s in table} == {1: 1.5, 2: 1.5, 3: 1.5, 4: 1.5}
    assert {named(s)["direct encounter"] for s in table} == {0.5}
    assert [s.place for s in table] == [1, 1, 1, 4]  # only 4 won no set
    unfinished = standings(range(1, 5), *event({(1, 2): 0.5, (3, 4): 0.5}))
    assert [named(s)["direct encounter"] for s in unfinished] == [None] * 4


def test_direct_encounter_averages_repeated_meetings() -> None:
    history, scores = event({(1, 2): 1}, {(1, 2): 0.5}, {(1, 2): 0.5}, {(1, 1): 0}, {(2, 2): 0}, {(2, 2): 0})
    table = standings([1, 2], history, scores, bye_score=Fraction(1))
    assert [s.points for s in table] == [3, 3]
    assert [named(s)["direct encounter"] for s in table] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]


def test_tables_of_different_sizes_compare_by_means() -> None:
    history = [Round(1, ((0, 1, 2), (3, 4)))]
    scores = [
        TableScore(1, (0, 1, 2), ((0, 2, 2), (0, 0, 1), (0, 1, 0)), 1),
        TableScore(1, (3, 4), ((0, 2), (0, 0)), 1),
    ]
    table = {s.entrant: s for s in standings(range(5), history, scores)}
    assert {e: s.points for e, s in table.items()} == {0: 1, 1: 0.25, 2: 0.25, 3: 1, 4: 0}
    assert named(table[0])["buchholz"] == 0.25
    assert named(table[1])["buchholz"] == (1 + 0.25) / 2
    assert named(table[1])["sonneborn-berger"] == 0.25 / 4
    assert named(table[0])["sets won"] == 0


def test_the_lot_decides_last() -> None:
    history, scores = event({(1, 2): 0.5, (3, 4): 0.5})
    shared = standings([4, 3, 2, 1], history, scores)
    assert [(s.entrant, s.place) for s in shared] == [(1, 1), (2, 1), (3, 1), (4, 1)]
    drawn = standings([1, 2, 3, 4], history, scores, key=b"lot")
    assert [s.place for s in drawn] == [1, 2, 3, 4]
    assert sorted(s.tiebreaks[-1] or 0 for s in drawn) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["buchholz", "sonneborn-berger", "median duel", "sets won"])
def test_a_tournament_may_have_another_order_of_tie_breaks(name: str) -> None:
    rounds = [
        {(1, 2): 1.0, (3, 4): 1.0, (5, 6): 0.0},
        {(1, 3): 0.0, (2, 5): 0.5, (6, 4): 0.5},
        {(3, 6): 0.0, (1, 5): 1.0, (2, 4): 1.0},
    ]
    lines = standings(range(1, 7), *event(*rounds), order=[name])
    merits = [(line.points, named(line)[name] or 0) for line in lines]
    assert merits == sorted(merits, reverse=True)
    assert [line.place for line in lines] == [1 + merits.index(merit) for merit in merits]
    usual = standings(range(1, 7), *event(*rounds))
    assert {line.entrant: line.tiebreaks for line in usual} == {line.entrant: line.tiebreaks for line in lines}
    points = [line.points for line in usual]
    alone = standings(range(1, 7), *event(*rounds), order=[])
    assert [line.place for line in alone] == [1 + points.index(line.points) for line in alone]


def test_before_the_first_round_all_share_the_first_place() -> None:
    assert [(s.place, s.points, named(s)["median duel"]) for s in standings([2, 1], [], [])] == [(1, 0, None)] * 2
    assert standings([], [], []) == []


def test_the_order_of_inputs_does_not_show() -> None:
    stream = Stream(b"order", "test")
    pairs = list(combinations(range(6), 2))
    history, scores = event(*[{pair: stream.below(3) / 2} for pair in pairs])

    def encoded() -> bytes:
        entrants = stream.shuffled(range(6))
        table = standings(entrants, stream.shuffled(history), stream.shuffled(scores), key=b"k")
        return msgspec.msgpack.encode(table)

    assert len({encoded() for _ in range(5)}) == 1


def test_older_plans_name_a_rating_that_never_decided() -> None:
    plan = msgspec.convert({"format": "swiss", "games": {}, "rounds": 1, "tiebreaks": ["rating", "lot"]}, Plan)
    assert plan.tiebreaks == ("lot",)
    assert Plan("swiss", {}, 1).tiebreaks == TIEBREAKS


def test_what_decided_about_each_place_is_told() -> None:
    history, scores = event({(1, 2): 1.0, (3, 4): 0.5, (5, 6): 0.5})
    drawn = standings(range(1, 7), history, scores, key=b"k")
    assert [drawn[0].entrant, drawn[-1].entrant] == [1, 2]
    assert decided_by(drawn, TIEBREAKS) == [None, "points", "lot", "lot", "lot", "points"]
    shared = standings(range(1, 7), history, scores)
    assert decided_by(shared, TIEBREAKS) == [None, "points", None, None, None, "points"]
    out = msgspec.structs.replace(shared[0], place=7, mark="disqualified")
    assert decided_by([*shared[1:], out], TIEBREAKS)[-1] == "disqualified"
    assert decided_by([], TIEBREAKS) == []
    near = [msgspec.structs.replace(shared[0], place=place) for place in (1, 2)]
    assert decided_by(near, TIEBREAKS) == [None, None], "fractions that are the same number"
