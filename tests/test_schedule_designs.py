from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from arena.luck import Stream
from arena.schedule.designs import DIFFERENCE_SETS, affine_plane, appearances, balanced_tables, cyclic_design
from arena.schedule.meetings import meetings, met_matrix
from arena.schedule.quality import design_quality, least_squares

WORK = 10_000_000


def stream() -> Stream:
    return Stream(b"design", "test")


@pytest.mark.parametrize(("entrants", "seats"), DIFFERENCE_SETS)
def test_difference_sets_let_every_pair_meet_once_and_everybody_sit_everywhere_once(entrants: int, seats: int) -> None:
    tables = cyclic_design(DIFFERENCE_SETS[entrants, seats], entrants)
    quality = design_quality(tables)
    assert quality.tables == entrants
    assert (quality.least_meetings, quality.most_meetings) == (1, 1)
    places = Counter((place, member) for table in tables for place, member in enumerate(table))
    assert len(places) == entrants * seats
    assert balanced_tables(entrants, seats, stream()) == tables


@pytest.mark.parametrize("order", [3, 4, 5])
def test_affine_planes_let_every_pair_meet_once_in_whole_rounds(order: int) -> None:
    tables = balanced_tables(order * order, order, stream())
    assert tables == affine_plane(order)
    quality = design_quality(tables)
    assert (quality.least_meetings, quality.most_meetings) == (1, 1)
    assert len(tables) == order * (order + 1)
    for first in range(0, len(tables), order):
        assert len({member for table in tables[first : first + order] for member in table}) == order * order


@pytest.mark.parametrize(
    ("entrants", "seats", "tables", "gap"),
    [
        (10, 4, 10, 0),
        (11, 4, 11, 0),
        (12, 4, 12, 0),
        (15, 3, 35, 0),
        (20, 4, 35, 0),
        (8, 4, 6, 0.04),
        (24, 4, 48, 0.06),
    ],
)
def test_searched_designs_come_near_the_bound(entrants: int, seats: int, tables: int, gap: float) -> None:
    quality = design_quality(balanced_tables(entrants, seats, stream(), work=WORK))
    assert quality.tables == tables == appearances(entrants, seats) * entrants // seats
    assert quality.least_appearances == quality.most_appearances == appearances(entrants, seats)
    assert quality.bound <= quality.squares <= quality.bound * (1 + gap)
    assert quality.gap <= gap


def test_a_later_cycle_evens_out_the_earlier_ones() -> None:
    first = balanced_tables(8, 4, stream(), work=WORK)
    met = met_matrix(range(8), meetings(first))
    second = balanced_tables(8, 4, Stream(b"design", "test", 2), met, work=WORK)
    both = design_quality(first + second)
    assert both.squares == both.bound
    assert met.tolist() == met_matrix(range(8), meetings(first)).tolist()


def test_the_same_seed_gives_the_same_design_within_its_bound() -> None:
    assert balanced_tables(8, 4, stream(), work=WORK) == balanced_tables(8, 4, stream(), work=WORK)
    assert len(balanced_tables(24, 4, stream(), work=50_000)) == 48


def test_one_table_is_a_design() -> None:
    assert [sorted(table) for table in balanced_tables(4, 4, stream(), np.zeros((4, 4), dtype=np.int64))] == [
        [0, 1, 2, 3]
    ]


def test_least_squares() -> None:
    assert least_squares(4, 6) == 6
    assert least_squares(4, 8) == 4 + 2 * 4
