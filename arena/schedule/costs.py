"""What a Swiss pairing costs: one integer that compares pairings lexicographically.

From the most important: repeated meetings, who sits out or at a smaller table, differences in score, floats. A mixed
radix joins the levels, so no amount of a lower level outweighs one unit of a higher one.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np

from arena.schedule.meetings import Integers

_FINEST = 1024
"""Steps a point in differences of points; halved until the largest possible cost fits."""
_LIMIT = 1 << 62  # half the range of int64, since a search adds up two sides


class Field(NamedTuple):
    """The entrants of a round as pairing sees them, indexed by lot (0 is drawn first).

    Attributes:
        points: before the round.
        met: `met[i, j]` earlier meetings.
        burden: what one has had of byes and smaller tables; less is sooner put on short rations.
        drift: -1 for who met stronger opponents on average in the last round, 1 for weaker ones or a bye, else 0.
    """

    points: tuple[Fraction, ...]
    met: Integers
    burden: tuple[int, ...]
    drift: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of entrants."""
        return len(self.points)


class Shape(NamedTuple):
    """The tables of a round; smaller tables and byes never stand together.

    Attributes:
        full: tables of `seats`.
        small: tables of `seats - 1`.
        byes: entrants that do not play.
    """

    seats: int
    full: int
    small: int
    byes: int

    @property
    def short(self) -> int:
        """The number of entrants at smaller tables or without one."""
        return self.small * (self.seats - 1) + self.byes

    @property
    def pairs(self) -> int:
        """The number of pairs that meet."""
        seats = self.seats
        return (self.full * seats * (seats - 1) + self.small * (seats - 1) * (seats - 2)) // 2


class Costs(NamedTuple):
    """The cost of a round is the sum of `pair` over the pairs that meet and of `short` over who gets less."""

    pair: Integers
    short: Integers


def pairing_costs(field: Field, shape: Shape) -> Costs:
    """Return the costs of a round.

    The levels are: for every pair met m times before 2m (the growth of the squared meetings), the rank by points of
    everybody on short rations, the squared difference in points, and 1 for each that would float the same way twice.
    """
    ladder = sorted(set(field.points))
    ranks = np.array([ladder.index(points) for points in field.points], dtype=np.int64)
    repeats = 2 * field.met
    spread = ladder[-1] - ladder[0]
    steps = Fraction(_FINEST)
    while True:
        squares = shape.pairs * (int(spread * steps) + 1) ** 2
        most = (shape.pairs * int(repeats.max()), shape.short * len(ladder), squares, 2 * shape.pairs)
        weights = [prod(value + 1 for value in most[level:]) for level in range(4)]
        if weights[0] < _LIMIT or steps * spread < 1:
            break
        steps /= 2
    points = np.array([round(value * steps) for value in field.points], dtype=np.int64)
    squared = (points[:, None] - points[None, :]) ** 2
    pair = weights[1] * repeats + weights[3] * squared + _floats(field, ranks)
    return Costs(pair, weights[2] * ranks)


def _floats(field: Field, ranks: Integers) -> Integers:
    """Count for each pair who of the two would drift as in the last round."""
    drift = np.array(field.drift, dtype=np.int64)
    direction = np.sign(ranks[:, None] - ranks[None, :])  # 1: the row would meet a weaker one
    again: Integers = ((direction == drift[:, None]) & (direction != 0)).astype(np.int64)
    return again + again.T
