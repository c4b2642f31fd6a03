"""Gauntlets: everybody of the field meets every challenger in each cycle, and nobody is favoured over cycles."""

from __future__ import annotations

from collections import Counter

import pytest

from arena.records import Round
from arena.schedule.gauntlet import gauntlet_round, tables_per_cycle
from arena.schedule.meetings import meetings, pairs

KEY = bytes(32)


def played(entrants: int, challengers: set[int], seats: int, cycles: int) -> list[Round]:
    history: list[Round] = []
    for _ in range(cycles):
        following = gauntlet_round(range(entrants), challengers, seats, history, KEY)
        assert following is not None
        history.append(following)
    return history


def test_at_two_seats_each_challenger_meets_each_other_once_a_cycle() -> None:
    first, second = played(7, {2, 5}, 2, 2)
    for round_ in (first, second):
        due = [tuple(sorted((challenger, other))) for challenger in (2, 5) for other in (0, 1, 3, 4, 6)]
        assert sorted(pair for table in round_.tables for pair in pairs(table)) == sorted(due)
        assert round_.byes == ()
        assert len(round_.tables) == tables_per_cycle(7, 2, 2) == 10
    assert (first.number, second.number) == (1, 2)


@pytest.mark.parametrize(("field", "seats"), [(3, 3), (7, 3), (8, 3), (7, 4), (10, 5), (11, 5), (4, 5)])
def test_larger_tables_hold_the_whole_field_and_fill_up_in_turn(field: int, seats: int) -> None:
    history = played(field + 2, {0, 1}, seats, 12)
    for round_ in history:
        assert {len(table) for table in round_.tables} == {seats}
        assert len(round_.tables) == tables_per_cycle(field + 2, 2, seats)
        for challenger, rival in ((0, 1), (1, 0)):
            own = [table for table in round_.tables if challenger in table]
            sat = Counter(entrant for table in own for entrant in table if entrant != challenger)
            assert rival not in sat
            assert set(sat) == set(range(2, field + 2)), "everybody sits with it"
            assert max(sat.values()) <= 2
            assert all(len(set(table)) == seats for table in own)
    sat = Counter(entrant for round_ in history for table in round_.tables for entrant in table if entrant > 1)
    assert max(sat.values()) - min(sat.values()) <= 2, "as often as the others, at both challengers' tables"
    if field > seats:
        met = meetings(tuple(e for e in table if e > 1) for round_ in history for table in round_.tables)
        assert len(met) >= 0.8 * field * (field - 1) / 2, "the parts are drawn anew"


def test_a_cycle_is_a_function_of_key_and_history() -> None:
    history = played(9, {0}, 3, 2)
    assert gauntlet_round(range(9)[::-1], [0], 3, history, KEY) == gauntlet_round(range(9), {0}, 3, history, KEY)
    assert gauntlet_round(range(9), {0}, 3, history, b"1" * 32) != gauntlet_round(range(9), {0}, 3, history, KEY)


def test_without_a_challenger_or_a_field_it_ends() -> None:
    assert gauntlet_round([1, 2, 3], {0}, 2, [], KEY) is None
    assert gauntlet_round([0, 1], {0, 1}, 2, [], KEY) is None
    assert gauntlet_round([0, 1, 2], {0}, 4, [], KEY) is None
