"""The knockout: the classical bracket, byes to the top seeds, and one winner."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.records import Round, TableScore
from arena.schedule.knockout import Deciding, Pairing, bracket, knockout_round, pairings, reached, rounds_of


def score(number: int, table: tuple[int, ...], first: int, sets_won: tuple[int, ...] = ()) -> TableScore:
    """The score of a match of ten deals of which the first of the pair won so many half points."""
    return TableScore(number, table, ((0, first), (20 - first, 0)), 10, sets_won)


def test_the_classical_bracket() -> None:
    assert bracket([1, 2, 3, 4, 5, 6, 7, 8]) == [1, 8, 4, 5, 2, 7, 3, 6]
    assert bracket([1, 2, 3, 4, 5, 6]) == [1, None, 4, 5, 2, None, 3, 6]
    assert bracket([7]) == [7]


@pytest.mark.parametrize(("entrants", "rounds"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_rounds_until_one_is_left(entrants: int, rounds: int) -> None:
    assert rounds_of(entrants) == rounds


def test_byes_go_to_the_top_seeds_and_winners_meet() -> None:
    seeding = [10, 11, 12, 13, 14]
    first = knockout_round(seeding, [], [])
    assert first == Round(1, ((13, 14),), (10, 11, 12))
    assert first is not None
    scores = [score(1, (13, 14), 9)]
    second = knockout_round(seeding, [first], scores)
    assert second == Round(2, ((10, 14), (11, 12)), ())
    assert second is not None
    scores += [score(2, (10, 14), 5), score(2, (11, 12), 20)]
    final = knockout_round(seeding, [first, second], scores)
    assert final == Round(3, ((14, 11),), ())
    assert final is not None
    scores.append(score(3, (14, 11), 12))
    assert knockout_round(seeding, [first, second, final], scores) is None
    assert reached(seeding, [first, second, final], scores) == {14: 3, 11: 2, 10: 1, 12: 1, 13: 0}


@pytest.mark.parametrize(
    ("sets_won", "winner", "rule"),
    [((3, 2), 5, "deal sets"), ((2, 3), 6, "deal sets"), ((2, 2), 5, "seed"), ((), 5, "seed")],
    ids=["sets", "sets, other", "seed", "none"],
)
def test_a_tied_match_goes_to_more_sets_then_to_the_better_seed(
    sets_won: tuple[int, ...], winner: int, rule: Deciding
) -> None:
    (first,) = [knockout_round([5, 6], [], [])]
    assert first is not None
    scores = [score(1, (5, 6), 10, sets_won)]
    assert reached([5, 6], [first], scores)[winner] == 1
    assert list(pairings([5, 6], [first], scores)) == [(Pairing((5, 6), (5, 6), winner, rule),)]


def test_pairings_tell_who_goes_on_and_why() -> None:
    seeding = [1, 2, 3, 4, 5]
    rounds = [Round(1, ((4, 5),), (1, 2, 3)), Round(2, ((1, 5),), (2,)), Round(3, ((2, 5),), ())]
    first, second, final = pairings(seeding, rounds, [score(1, (4, 5), 9), score(2, (1, 5), 10)])
    assert first == (
        Pairing((1, None), (1,), 1, "bye"),
        Pairing((4, 5), (4, 5), 5, "duels"),
        Pairing((2, None), (2,), 2, "bye"),
        Pairing((3, None), (3,), 3, "bye"),
    )
    assert second == (Pairing((1, 5), (1, 5), 5, "earlier"), Pairing((2, 3), (2,), 2, "left"))
    assert final == (Pairing((5, 2), (5, 2), None, ""),), "not yet complete"
    assert [one.loser for one in (*first, *second, *final)] == [None, 4, None, None, 1, None, None]


def test_a_pairing_of_two_who_left_has_no_winner() -> None:
    rounds = [Round(1, ((2, 3),), ()), Round(2, (), (2,))]
    first, second = pairings([1, 2, 3, 4], rounds, [score(1, (2, 3), 20)])
    assert first == (Pairing((1, 4), (), None, ""), Pairing((2, 3), (2, 3), 2, "duels"))
    assert second == (Pairing((None, 2), (2,), 2, "bye"),)


def test_who_has_gone_on_stays_so_when_a_match_is_void_later() -> None:
    seeding = [1, 2, 3]
    rounds = [Round(1, ((2, 3),), (1,)), Round(2, ((1, 3),), ())]
    void, final = score(1, (2, 3), 10), score(2, (1, 3), 20)
    assert reached(seeding, rounds, [void, final]) == {1: 2, 3: 1, 2: 0}
    assert reached(seeding, rounds[:1], [void]) == {1: 1, 2: 1, 3: 0}, "not yet"


def test_who_withdraws_leaves_its_place_to_its_opponent() -> None:
    first = knockout_round([1, 2, 3, 4], [], [])
    assert first is not None
    scores = [score(1, (1, 4), 20), score(1, (2, 3), 20)]
    assert knockout_round([1, 2, 3, 4], [first], scores, withdrawn=[2]) is None, "one is left"
    assert knockout_round([1, 2, 3, 4], [], [], withdrawn=[3, 2]) == Round(1, ((1, 4),), ())
    assert knockout_round([1, 2, 3, 4], [], [], withdrawn=[3]) == Round(1, ((1, 4),), (2,))
    later = Round(1, ((1, 4),), ())
    assert reached([1, 2, 3, 4], [later], [score(1, (1, 4), 20)]) == {1: 1, 2: 0, 3: 0, 4: 0}


@given(st.integers(2, 40), st.randoms(use_true_random=False))
def test_everybody_but_the_winner_loses_once(entrants: int, luck: Random) -> None:
    seeding = list(range(entrants))
    history: list[Round] = []
    scores: list[TableScore] = []
    while (due := knockout_round(seeding, history, scores)) is not None:
        assert not due.byes or len(history) == 0
        history.append(due)
        scores += [score(due.number, table, luck.choice([0, 20])) for table in due.tables]
    assert len(history) == rounds_of(entrants)
    assert sum(len(played.tables) for played in history) == entrants - 1
    survived = sorted(reached(seeding, history, scores).values())
    assert survived[-1] == len(history)
    assert survived.count(len(history)) == 1
