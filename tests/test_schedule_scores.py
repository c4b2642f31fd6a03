from __future__ import annotations

from fractions import Fraction

import pytest

from arena.records import DealRecord, Round, TableScore
from arena.schedule.scores import HALF, Line, Sheet, completed, sheets, table_score
from arena.schedule.seatings import seatings


def deal(deck: int, leg: int, seating: tuple[int, ...], places: tuple[int, ...]) -> DealRecord:
    nobody = (0,) * len(seating)
    return DealRecord(
        deck=deck,
        leg=leg,
        seating=seating,
        steps=(),
        places=places,
        points=nobody,
        reason="stock",
        rated=True,
        digests=(b"",) * len(seating),
        first_ids=nobody,
        cpu_us=nobody,
        stale=nobody,
        lag_us=0,
        duration_us=0,
    )


def test_two_seats_win_and_tie() -> None:
    deals = [
        deal(0, 0, (0, 1), (2, 1)),
        deal(0, 1, (1, 0), (1, 1)),
        deal(1, 0, (0, 1), (1, 2)),
        deal(1, 1, (1, 0), (1, 2)),
    ]
    score = table_score(4, (7, 3), deals)
    assert score == TableScore(4, (7, 3), ((0, 3), (5, 0)), 4, (0, 1))
    assert table_score(4, (7, 3), deals[::-1]) == score


def test_one_loser_of_four_ties_count_half() -> None:
    deals = [
        deal(0, leg, seating, tuple(4 if i == 2 else 1 for i in seating)) for leg, seating in enumerate(seatings(4))
    ]
    score = table_score(1, (5, 6, 7, 8), deals)
    assert score.duels == ((0, 8, 16, 8), (8, 0, 16, 8), (0, 0, 0, 0), (8, 8, 16, 0))
    assert score.sets_won == (0, 0, 0, 0)
    lines = sheets((5,), [Round(1, ((5, 6, 7, 8),))], [score])
    assert lines[5].points == Fraction(2, 3)
    assert lines[7].points == 0
    assert sum(sheet.points for sheet in lines.values()) == 2


def test_the_strict_top_of_a_deck_wins_its_set() -> None:
    deals = [deal(deck, leg, (0, 1, 2), (1, 2, 3)) for deck in range(2) for leg in range(2)]
    deals += [deal(2, 0, (2, 1, 0), (1, 3, 2)), deal(2, 1, (0, 1, 2), (1, 3, 2))]
    assert table_score(1, (1, 2, 3), deals).sets_won == (2, 0, 0)


@pytest.mark.parametrize(
    "deals", [[], [deal(0, 0, (0, 1), (1, 2)), deal(0, 1, (1, 0), (1, 2)), deal(1, 0, (0, 1), (1, 2))]]
)
def test_incomplete_deal_sets_are_refused(deals: list[DealRecord]) -> None:
    with pytest.raises(ValueError, match=r"round 2, table \(0, 1\): incomplete deal sets"):
        table_score(2, (0, 1), deals)


def test_only_complete_rounds_count() -> None:
    history = [Round(2, ((0, 2), (1, 3))), Round(1, ((1, 0), (2, 3)), (9,))]
    win = ((0, 2), (0, 0))
    scores = [TableScore(2, (0, 2), win, 1), TableScore(1, (2, 3), win, 1), TableScore(1, (0, 1), win, 1)]
    assert completed(history, scores) == (history[1],)
    found = sheets([9, 8], history, scores)
    assert list(found) == [0, 1, 2, 3, 8, 9]
    assert found[0] == Sheet((Line((1,), (Fraction(1),), Fraction(1), 1),))
    assert found[8] == Sheet((Line((), (), Fraction(0)),))
    assert found[9] == Sheet((Line((), (), HALF, bye=True),))
    assert (found[9].points, found[9].byes, found[8].byes) == (HALF, 1, 0)
    assert sheets([9], history, scores, Fraction(1))[9].points == 1


def test_several_tables_of_one_round_are_one_line() -> None:
    round_ = Round(1, ((0, 1), (0, 2), (3, 4)))
    scores = [
        TableScore(1, (0, 1), ((0, 4), (0, 0)), 2, (1, 0)),
        TableScore(1, (0, 2), ((0, 2), (6, 0)), 4, (0, 1)),
        TableScore(1, (3, 4), ((0, 2), (2, 0)), 2),
    ]
    found = sheets([], [round_], scores)
    assert found[0].lines == (Line((1, 2), (Fraction(1), Fraction(1, 4)), Fraction(5, 8), 6, 1),)
    assert found[2].lines == (Line((0,), (Fraction(3, 4),), Fraction(3, 4), 4, 1),)
    assert found[3].points == HALF
