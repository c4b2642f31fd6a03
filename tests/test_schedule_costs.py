from __future__ import annotations

from fractions import Fraction

import numpy as np

from arena.schedule.costs import Field, Shape, pairing_costs


def field(points: list[int], drift: list[int] | None = None) -> Field:
    size = len(points)
    met = np.zeros((size, size), dtype=np.int64)
    return Field(tuple(Fraction(p) for p in points), met, (0,) * size, tuple(drift or [0] * size))


def test_no_lower_level_outweighs_a_higher_one() -> None:
    points = field([0, 3, 5, 9, 9], [1, -1, 0, 1, -1])
    shape = Shape(2, 2, 0, 1)
    costs = pairing_costs(points, shape)
    assert 2 * costs.pair.max() < costs.short[1] - costs.short[0]
    points.met[0, 1] = points.met[1, 0] = 1
    costs = pairing_costs(points, shape)
    assert 2 * np.delete(np.delete(costs.pair, 1, 0), 1, 1).max() + costs.short.max() < costs.pair[0, 1]


def test_floats_decide_between_equal_spreads() -> None:
    costs = pairing_costs(field([1, 1, 0, 0], [1, 0, -1, 0]), Shape(2, 2, 0, 0))
    assert costs.pair[0, 2] - costs.pair[1, 3] == 2
    assert costs.pair[0, 3] - costs.pair[1, 3] == costs.pair[1, 2] - costs.pair[1, 3] == 1
    assert costs.pair[0, 1] == costs.pair[2, 3] == 0


def test_met_pairs_grow_the_squares() -> None:
    equal = field([1, 1, 1])
    equal.met[:] = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    costs = pairing_costs(equal, Shape(3, 1, 0, 0))
    assert costs.pair[0, 2] == 2 * costs.pair[0, 1] > 0
    assert costs.pair[1, 2] == 0


def test_huge_fields_fit_by_coarser_differences() -> None:
    size = 900
    points = [7 * i for i in range(size)]
    huge = field(points, [1] * size)
    huge.met[:] = 40
    np.fill_diagonal(huge.met, 0)
    shape = Shape(6, 148, 2, 2)
    costs = pairing_costs(huge, shape)
    most = shape.pairs * int(costs.pair.max()) + shape.short * int(costs.short.max())
    assert 0 < most < 1 << 63
    assert costs.pair.min() == 0
