"""Pairing of tables of three and more: a descent by swaps of two entrants, with seeded kicks.

The number of steps is bounded, not the time, so the result is the same on every machine. An exact solver (HiGHS) never
did better in the rounds tried up to 24 entrants; see tests/test_schedule_swaps.py.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import numpy.typing as npt

from arena.luck import Stream
from arena.schedule.costs import Costs, Field, Shape
from arena.schedule.meetings import Integers

WORK = 30_000_000
"""Pairs of entrants looked at in one search: below a second for 500 entrants on one core."""
_MOST_STEPS = 3000
_FEWEST_STEPS = 60
_KICKS = 3


def group_tables(
    field: Field, costs: Costs, shape: Shape, stream: Stream, work: int = WORK
) -> tuple[list[list[int]], list[int]]:
    """Return (tables, byes) of the least cost found.

    Args:
        field: the entrants.
        costs: of pairs and short rations.
        shape: the tables to fill.
        stream: for the kicks.
        work: pairs of entrants to look at, all steps together.
    """
    tables, byes = chopped(field, shape)
    table = np.zeros(field.size, dtype=np.int64)
    for number, members in enumerate([*tables, byes]):
        table[members] = number
    seating = _Seating(field, costs, shape, table)
    steps = min(_MOST_STEPS, max(_FEWEST_STEPS, work // field.size**2))
    cost = seating.cost()
    change, used = _descend(seating, steps)
    cost += change
    while used < steps and cost > 0:
        table, at = seating.table.copy(), seating.at.copy()
        kicked = _kick(seating, stream)
        change, more = _descend(seating, steps - used)
        used += more
        if kicked + change <= 0:
            cost += kicked + change
        else:
            seating.table, seating.at = table, at
    filled = [np.flatnonzero(seating.table == number).tolist() for number in range(shape.full + shape.small)]
    return filled, np.flatnonzero(seating.table == len(filled)).tolist()


def chopped(field: Field, shape: Shape) -> tuple[list[list[int]], list[int]]:
    """Return (tables, byes) cut from the order of points and lot; the least burdened, then the weakest get less."""
    modest = sorted(range(field.size), key=lambda i: (field.burden[i], field.points[i], i))
    short = set(modest[: shape.short])
    sizes = [shape.seats] * shape.full + [shape.seats - 1] * shape.small
    order = iter(sorted(range(field.size), key=lambda i: (i in short, -field.points[i], i)))
    return [list(islice(order, size)) for size in sizes], list(order)


def _descend(seating: _Seating, steps: int) -> tuple[int, int]:
    """Swap while it helps, each step many pairs of tables at once; return (change of cost, steps used)."""
    change, used = 0, 0
    everybody = np.arange(len(seating.table))
    while used < steps:
        used += 1
        gains = seating.gains()
        partner = gains.argmin(axis=1)
        best = gains[everybody, partner]
        if best.min() >= 0:
            break
        touched: set[int] = set()
        for a in np.argsort(best, kind="stable")[: int((best < 0).sum())].tolist():
            b = int(partner[a])
            two = {int(seating.table[a]), int(seating.table[b])}
            if touched.isdisjoint(two):
                touched |= two
                change += int(best[a])
                seating.swap(a, b)
    return change, used


def _kick(seating: _Seating, stream: Stream) -> int:
    """Make a few random swaps; return the change of cost."""
    change = 0
    for _ in range(_KICKS):
        a, b = stream.below(len(seating.table)), stream.below(len(seating.table))
        gain = seating.gain(a, b)
        if gain is not None:
            change += gain
            seating.swap(a, b)
    return change


class _Seating:
    """Who sits where, and what it costs to put anybody at any table.

    Attributes:
        table: by entrant, its table; the byes are the last one, at which nobody meets anybody.
        at: `at[a, t]` the cost of `a` with those now at table t (`a` itself not counted).
        unequal: who must not trade a short ration: their burdens differ, so the less burdened has it.
    """

    def __init__(self, field: Field, costs: Costs, shape: Shape, table: Integers) -> None:
        count = shape.full + shape.small + bool(shape.byes)
        self.pair = costs.pair
        self.short_cost = costs.short
        self.table = table
        self.meets = np.ones(count, dtype=np.int64)
        self.meets[shape.full + shape.small :] = 0
        self.short = np.arange(count) >= shape.full
        member = (table[:, None] == np.arange(count)).astype(np.int64)
        self.at = (costs.pair @ member) * self.meets + costs.short[:, None] * self.short
        burden = np.array(field.burden)
        self.unequal: npt.NDArray[np.bool_] = burden[:, None] != burden[None, :]
        self.mixed = bool(self.unequal.any() and self.short.any())

    def cost(self) -> int:
        """Return the cost of the round."""
        everybody = np.arange(len(self.table))
        short = self.short_cost[self.short[self.table]].sum()
        twice = self.at[everybody, self.table].sum() - short  # each pair is seen from both sides
        return int(twice // 2 + short)

    def gains(self) -> Integers:
        """Return the change of cost for every swap; 0 for two of one table and for those who may not swap."""
        one_way = self.at[:, self.table]
        one_way -= one_way.diagonal()[:, None].copy()
        one_way -= self.meets[self.table] * self.pair
        change: Integers = one_way + one_way.T
        change[self.table[:, None] == self.table[None, :]] = 0
        if self.mixed:
            short = self.short[self.table]
            change[(short[:, None] != short[None, :]) & self.unequal] = 0
        return change

    def gain(self, a: int, b: int) -> int | None:
        """Return the change of cost for one swap, None if the two may not swap."""
        s, t = self.table[a], self.table[b]
        if s == t or (self.unequal[a, b] and self.short[s] != self.short[t]):
            return None
        meet = self.pair[a, b] * (self.meets[s] + self.meets[t])
        return int(self.at[a, t] - self.at[a, s] + self.at[b, s] - self.at[b, t] - meet)

    def swap(self, a: int, b: int) -> None:
        """Exchange two entrants of different tables."""
        s, t = self.table[a], self.table[b]
        moved = self.pair[:, b] - self.pair[:, a]
        self.at[:, s] += moved * self.meets[s]
        self.at[:, t] -= moved * self.meets[t]
        self.table[a], self.table[b] = t, s
