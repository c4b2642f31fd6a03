from __future__ import annotations

from itertools import permutations

import pytest

from arena.luck import Stream
from arena.schedule.meetings import Pair, circle, meetings, met_matrix, neighbours, predecessors


def test_meetings_and_predecessors_of_tables() -> None:
    tables = [(2, 0, 1), (0, 2)]
    assert meetings(tables) == {(0, 2): 2, (1, 2): 1, (0, 1): 1}
    assert predecessors(tables) == {(2, 0): 2, (0, 1): 1, (1, 2): 1, (0, 2): 1}


def test_the_matrix_leaves_out_who_is_not_asked_for() -> None:
    assert met_matrix([5, 3], {(3, 5): 2, (3, 4): 1}).tolist() == [[0, 2], [2, 0]]


def random_before(seats: int, number: int) -> dict[Pair, int]:
    stream = Stream(b"before", "test", seats, number)
    return {(a, b): stream.below(3) for a in range(seats) for b in range(seats) if a != b}


@pytest.mark.parametrize("seats", [3, 4, 5])
@pytest.mark.parametrize("number", range(5))
def test_the_circle_adds_least_to_the_squares(seats: int, number: int) -> None:
    before = random_before(seats, number)

    def squares(table: tuple[int, ...]) -> int:
        counts = before.copy()
        for pair in neighbours(table):
            counts[pair] += 1
        return sum(count**2 for count in counts.values())

    found = circle(range(seats), before)
    assert found[0] == 0
    assert squares(found) == min(squares((0, *rest)) for rest in permutations(range(1, seats)))


def test_a_circle_without_repeats_is_kept() -> None:
    assert circle([4, 2, 9, 1], {}) == (4, 2, 9, 1)
    assert circle([4, 2], {(4, 2): 7}) == (4, 2)


def test_a_large_circle_descends() -> None:
    order = tuple(range(9))
    before = dict.fromkeys(neighbours(order), 1)
    found = circle(order, before)
    assert sorted(found) == list(order)
    assert sum(before.get(pair, 0) for pair in neighbours(found)) <= 1
    assert circle(order, {}) == order
