from __future__ import annotations

from collections import Counter
from math import factorial

import pytest

from arena.schedule.seatings import Mode, seatings

MODES: tuple[Mode, ...] = ("rotate", "mirror", "all")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seats", range(2, 7))
def test_everybody_sits_everywhere_equally_often(seats: int, mode: Mode) -> None:
    legs = seatings(seats, mode)
    assert len(legs) == {"rotate": seats, "mirror": 2 * seats if seats > 2 else 2, "all": factorial(seats)}[mode]
    assert len(set(legs)) == len(legs)
    counts = Counter((seat, index) for leg in legs for seat, index in enumerate(leg))
    assert len(counts) == seats * seats
    assert set(counts.values()) == {len(legs) // seats}


def test_mirror_is_the_default_and_shows_both_circles() -> None:
    assert seatings(3) == ((0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (1, 0, 2), (0, 2, 1))
    assert seatings(2) == seatings(2, "rotate") == ((0, 1), (1, 0))


@pytest.mark.parametrize("seats", range(3, 7))
def test_mirror_evens_out_who_sits_before_whom_between_the_neighbours(seats: int) -> None:
    before = Counter((leg[i - 1], leg[i]) for leg in seatings(seats) for i in range(seats))
    assert all(before[a, b] == before[b, a] for a, b in before)


def test_a_table_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="not 1"):
        seatings(1)
