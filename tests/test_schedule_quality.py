"""The bound of repeated meetings, against all ways to fill the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.luck import Stream
from arena.records import Round
from arena.schedule.meetings import Table, meetings, pairs
from arena.schedule.quality import design_quality, least_repeats, round_quality


def fillings(entrants: Sequence[int], sizes: Sequence[int]) -> Iterator[list[Table]]:
    """Yield all ways to fill tables of these sizes."""
    if not sizes:
        yield []
        return
    for table in combinations(entrants, sizes[0]):
        left = [entrant for entrant in entrants if entrant not in table]
        for others in fillings(left, sizes[1:]):
            yield [table, *others]


def repeats(tables: Sequence[Table], earlier: Sequence[Round]) -> int:
    met = meetings(table for round_ in earlier for table in round_.tables)
    return sum(met[pair] > 0 for table in tables for pair in pairs(table))


def random_round(number: int, entrants: int, sizes: Sequence[int], key: int) -> Round:
    drawn = Stream(b"quality", "round", number, entrants, key).shuffled(range(entrants))
    tables = [tuple(drawn[sum(sizes[:i]) : sum(sizes[: i + 1])]) for i in range(len(sizes))]
    return Round(number, tuple(tables), tuple(sorted(drawn[sum(sizes) :])))


SIZES = {2: [2, 2, 2], 3: [3, 3], 4: [4, 4], 5: [3, 2, 2]}


@given(st.sampled_from([*SIZES]), st.integers(0, 1), st.integers(1, 5), st.integers(0, 1000))
def test_no_way_to_fill_the_tables_is_below_the_bound(kind: int, byes: int, rounds: int, key: int) -> None:
    sizes = SIZES[kind]
    *earlier, now = (random_round(number, sum(sizes) + byes, sizes, key) for number in range(1, rounds + 2))
    seated = sorted(entrant for table in now.tables for entrant in table)
    least = min(repeats(tables, earlier) for tables in fillings(seated, sizes))
    bound = least_repeats(now, earlier)
    assert bound is not None
    assert bound == least if kind == 2 else bound <= least


def test_eight_at_tables_of_four_meet_four_again() -> None:
    first, second = Round(1, ((0, 1, 2, 3), (4, 5, 6, 7))), Round(2, ((0, 1, 4, 5), (2, 3, 6, 7)))
    quality = round_quality(second, [first], dict.fromkeys(range(8), Fraction()))
    assert (quality.repeats, quality.least_repeats) == (4, 4)


def test_who_has_met_everybody_sits_with_acquaintances() -> None:
    earlier = [Round(1, ((0, 1, 2), (3, 4, 5))), Round(2, ((0, 3, 4), (1, 5, 2))), Round(3, ((0, 5, 1), (2, 3, 4)))]
    assert least_repeats(Round(4, ((0, 1, 2), (3, 4, 5))), earlier) == 4


def test_nothing_is_proved_where_somebody_sits_twice() -> None:
    gauntlet = [Round(number, ((0, 1), (0, 2))) for number in (1, 2)]
    quality = round_quality(gauntlet[1], gauntlet[:1], dict.fromkeys(range(3), Fraction()))
    assert (quality.repeats, quality.least_repeats) == (2, None)
    assert least_repeats(Round(3, ((1, 2),)), gauntlet) == 0


def test_the_classical_design_of_ten_in_fifteen_tables_of_four() -> None:
    """(10, 4, 2): every pair meets exactly twice, everybody sits at six tables."""
    lines = "0123 0145 0246 0378 0579 0689 1278 1369 1479 1568 2359 2489 2567 3458 3467"
    quality = design_quality(tuple(map(int, line)) for line in lines.split())
    assert (quality.tables, quality.least_appearances, quality.most_appearances) == (15, 6, 6)
    assert (quality.least_meetings, quality.most_meetings, quality.gap) == (2, 2, 0)


@pytest.mark.parametrize(("again", "least"), [((0, 1), 1), ((2, 3), 0)])
def test_at_two_seats_the_bound_is_exact(again: tuple[int, int], least: int) -> None:
    """Of four who met three times, any pairing repeats; while two rounds are left to them, one does not."""
    rounds = [Round(1, ((0, 1), (2, 3))), Round(2, ((0, 2), (1, 3))), Round(3, ((0, 3), (1, 2)))]
    assert least_repeats(Round(4, (again,)), rounds[: 3 if least else 0]) == least
    assert least_repeats(Round(4, ((0, 1), (2, 3))), rounds) == 2
    assert least_repeats(Round(3, ((0, 1), (2, 3))), rounds[:2]) == 0
