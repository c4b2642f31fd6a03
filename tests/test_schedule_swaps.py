"""The search against an exact solver: all levels of the cost, solved one after the other by HiGHS."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from arena.luck import Stream
from arena.schedule.costs import Field, Shape, pairing_costs
from arena.schedule.matching import match_pairs
from arena.schedule.meetings import meetings, met_matrix
from arena.schedule.swaps import chopped, group_tables
from arena.schedule.swiss import round_shape

Levels = tuple[int, int, int]
"""Repeats (growth of squared meetings), ranks of the short, squared differences of points."""


def some_field(entrants: int, seats: int, rounds: int, *, smaller: bool = False) -> tuple[Field, Shape]:
    """Return a field after some rounds at random tables, with random points."""
    stream = Stream(b"swaps", "test", entrants, seats, rounds)
    shape = round_shape(entrants, seats, smaller_tables=smaller)
    tables: list[tuple[int, ...]] = []
    burden = [0] * entrants
    for _ in range(rounds):
        drawn = stream.shuffled(range(entrants))
        whole = shape.full * seats
        tables += [tuple(drawn[i : i + seats]) for i in range(0, whole, seats)]
        tables += [tuple(drawn[i : i + seats - 1]) for i in range(whole, entrants - shape.byes, seats - 1)]
        for i in drawn[whole:]:
            burden[i] += 1
    points = tuple(Fraction(stream.below(2 * rounds + 1), 2) for _ in range(entrants))
    met = met_matrix(range(entrants), meetings(tables))
    return Field(points, met, tuple(burden), (0,) * entrants), shape


def ranks(field: Field) -> list[int]:
    ladder = sorted(set(field.points))
    return [ladder.index(p) for p in field.points]


def levels(field: Field, members: tuple[int, ...], *, plays: bool, short: bool) -> Levels:
    pairs = list(combinations(members, 2)) if plays else []
    return (
        sum(2 * int(field.met[a, b]) for a, b in pairs),
        sum(ranks(field)[i] for i in members) if short else 0,
        sum(int(4 * (field.points[a] - field.points[b]) ** 2) for a, b in pairs),
    )


def solved(field: Field, shape: Shape) -> Levels:
    """Return the least levels, each under the least of those before it."""
    columns = [(c, True, False) for c in combinations(range(field.size), shape.seats)]
    if shape.small:
        columns += [(c, True, True) for c in combinations(range(field.size), shape.seats - 1)]
    if shape.byes:
        columns += [((i,), False, True) for i in range(field.size)]
    costs = np.array([levels(field, c, plays=plays, short=short) for c, plays, short in columns]).T
    sits = np.array([[i in c for c, _, _ in columns] for i in range(field.size)], dtype=float)
    is_short = np.array([short for _, _, short in columns])
    burdens = sorted(field.burden)[: shape.short]
    limits = np.array([[b < max(burdens), b <= max(burdens)] if burdens else [0, 0] for b in field.burden], dtype=float)
    rules = [LinearConstraint(sits, 1, 1), LinearConstraint(sits * is_short, limits[:, 0], limits[:, 1])]
    rules.append(LinearConstraint(is_short[None, :].astype(float), 0, shape.byes or shape.small))
    found: list[int] = []
    for cost in costs:
        found.append(least(cost, rules))
        rules.append(LinearConstraint(cost[None, :], 0, found[-1]))
    return found[0], found[1], found[2]


def least(cost: npt.NDArray[np.int64], rules: list[LinearConstraint]) -> int:
    result = milp(
        cost, constraints=rules, integrality=np.ones(len(cost)), bounds=Bounds(0, 1), options={"mip_rel_gap": 0}
    )
    assert result.success
    return int(np.rint(result.fun))


def searched(field: Field, shape: Shape) -> Levels:
    costs, stream = pairing_costs(field, shape), Stream(b"search", "test")
    if shape.seats == 2:
        tables, byes = match_pairs(field, costs, stream)
    else:
        tables, byes = group_tables(field, costs, shape, stream)
    assert sorted([*byes, *(i for table in tables for i in table)]) == list(range(field.size))
    assert [len(table) for table in tables] == [shape.seats] * shape.full + [shape.seats - 1] * shape.small
    parts = [levels(field, tuple(t), plays=True, short=len(t) < shape.seats) for t in tables]
    parts.append(levels(field, tuple(byes), plays=False, short=True))
    return sum(p[0] for p in parts), sum(p[1] for p in parts), sum(p[2] for p in parts)


@pytest.mark.parametrize(
    ("entrants", "seats", "rounds"),
    [
        (8, 4, 1),
        (8, 4, 2),
        (9, 3, 3),
        (12, 3, 3),
        (12, 4, 1),
        (12, 4, 3),
        (12, 6, 1),
        (10, 5, 2),
        (16, 4, 1),
        (16, 4, 4),
    ],
)
def test_the_search_equals_an_exact_solver(entrants: int, seats: int, rounds: int) -> None:
    field, shape = some_field(entrants, seats, rounds)
    assert searched(field, shape) == solved(field, shape)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("entrants", "seats", "rounds"),
    [(18, 3, 5), (20, 4, 2), (20, 4, 5), (20, 5, 1), (24, 3, 4), (24, 3, 7), (24, 4, 1), (24, 4, 5)],
)
def test_the_search_equals_an_exact_solver_up_to_24(entrants: int, seats: int, rounds: int) -> None:
    field, shape = some_field(entrants, seats, rounds)
    assert searched(field, shape) == solved(field, shape)


@pytest.mark.parametrize(("entrants", "rounds"), [(6, 4), (8, 3), (9, 3), (12, 9), (13, 5), (24, 15), (25, 8)])
def test_two_seats_are_matched_as_an_exact_solver_would(entrants: int, rounds: int) -> None:
    field, shape = some_field(entrants, 2, rounds)
    assert searched(field, shape) == solved(field, shape)


@pytest.mark.parametrize(
    ("entrants", "seats", "rounds", "smaller"),
    [(10, 4, 1, False), (10, 4, 3, False), (11, 3, 2, False), (10, 4, 2, True), (11, 4, 3, True), (14, 4, 2, True)],
)
def test_byes_and_smaller_tables_are_as_good_as_the_solver_s(
    entrants: int, seats: int, rounds: int, smaller: bool
) -> None:
    field, shape = some_field(entrants, seats, rounds, smaller=smaller)
    assert searched(field, shape) == solved(field, shape)


def test_the_start_is_cut_from_the_order_of_points() -> None:
    met = np.zeros((5, 5), dtype=np.int64)
    field = Field((Fraction(0), Fraction(2), Fraction(1), Fraction(2), Fraction(0)), met, (1, 0, 0, 0, 0), (0,) * 5)
    assert chopped(field, Shape(4, 1, 0, 1)) == ([[1, 3, 2, 0]], [4])
    assert chopped(field, Shape(3, 1, 1, 0)) == ([[1, 3, 0], [2, 4]], [])


def test_a_free_round_is_found_without_kicks() -> None:
    met = np.zeros((6, 6), dtype=np.int64)
    met[0, 1] = met[1, 0] = 1
    field = Field((Fraction(0),) * 6, met, (0,) * 6, (0,) * 6)
    shape = Shape(3, 2, 0, 0)
    tables, _ = group_tables(field, pairing_costs(field, shape), shape, Stream(b"", "test"), work=0)
    assert not any({0, 1} <= set(table) for table in tables)


def test_the_steps_are_bounded() -> None:
    field, shape = some_field(100, 4, 6)
    tables, byes = group_tables(field, pairing_costs(field, shape), shape, Stream(b"", "test"), work=1)
    assert sorted(i for table in tables for i in table) == list(range(100))
    assert byes == []
