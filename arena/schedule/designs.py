"""Balanced designs: few tables at which every pair meets about equally often.

Known designs in which every pair meets exactly once are used where they fit: cyclic difference sets (projective planes)
and affine planes. Else swaps search for one, from a seed and with a bounded number of steps; `arena.schedule.quality`
tells how near to the bound it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from arena.luck import Stream
from arena.schedule.meetings import Integers, Table
from arena.schedule.quality import least_squares

Tables: TypeAlias = list[Table]

WORK = 100_000_000
"""Swaps looked at in one search: about a second up to 50 entrants, 4 s for 100 on one core."""
_MOST_STEPS = 20_000
_STEP_WORK = 1500  # what a step costs beside its swaps, as measured
_KICKS = 2

DIFFERENCE_SETS: dict[tuple[int, int], Table] = {
    (7, 3): (0, 1, 3),
    (13, 4): (0, 1, 3, 9),
    (21, 5): (0, 1, 4, 14, 16),
    (31, 6): (1, 5, 11, 24, 25, 27),
}
"""By (entrants, seats): shifted by 0 ... entrants - 1, every difference, so every pair, occurs exactly once."""

_GF4 = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
"""Multiplication in the field of four elements; its addition is exclusive or."""


def cyclic_design(base: Table, entrants: int) -> Tables:
    """Return the shifts of a difference set; everybody sits in every place of the table once."""
    return [tuple((member + shift) % entrants for member in base) for shift in range(entrants)]


def affine_plane(order: int) -> Tables:
    """Return the lines of the affine plane of order 3, 4 or 5: order + 1 classes of `order` disjoint lines."""
    field = range(order)

    def on_line(slope: int, shift: int, x: int) -> int:
        return _GF4[slope][x] ^ shift if order == 4 else (slope * x + shift) % order

    sloped = [tuple(x * order + on_line(slope, c, x) for x in field) for slope in field for c in field]
    return sloped + [tuple(x * order + y for y in field) for x in field]


def appearances(entrants: int, seats: int) -> int:
    """Return at how many tables of a design everybody sits: the fewest with which every pair could meet."""
    tables = -(-(entrants - 1) // (seats - 1))
    while tables * entrants % seats:
        tables += 1
    return tables


def balanced_tables(entrants: int, seats: int, stream: Stream, met: Integers | None = None, work: int = WORK) -> Tables:
    """Return the tables of a balanced design over 0 ... entrants - 1.

    Args:
        entrants: at least `seats`.
        seats: the size of the tables, at least 3.
        stream: for the search.
        met: a symmetric matrix of earlier meetings that the search evens out; unused for known designs.
        work: swaps the search looks at, at most; it is bounded by steps, not by time.
    """
    if base := DIFFERENCE_SETS.get((entrants, seats)):
        return cyclic_design(base, entrants)
    if seats in (3, 4, 5) and entrants == seats * seats:
        return affine_plane(seats)
    search = _Search(entrants, seats, met)
    per_step = _STEP_WORK + seats * seats * len(search.tables)
    search.run(stream, min(_MOST_STEPS, work // per_step))
    return [tuple(table) for table in search.tables.tolist()]


class _Search:
    """A design under change.

    Attributes:
        tables: by table, its members.
        sits: `sits[t, a]` 1 if `a` sits at table t.
        met: by pair, meetings here and earlier; 0 on the diagonal.
    """

    def __init__(self, entrants: int, seats: int, met: Integers | None) -> None:
        count = appearances(entrants, seats) * entrants // seats
        self.tables: Integers = (np.arange(count * seats, dtype=np.int64) % entrants).reshape(count, seats)
        self.sits = np.zeros((count, entrants), dtype=np.int64)
        self.sits[np.arange(count)[:, None], self.tables] = 1
        self.met = self.sits.T @ self.sits + (0 if met is None else met)
        np.fill_diagonal(self.met, 0)

    def squares(self) -> int:
        """Return the sum of squared meetings over the pairs."""
        return int((self.met**2).sum()) // 2

    def run(self, stream: Stream, steps: int) -> None:
        """Lower the sum of squares by swaps and kicks until it reaches its bound or the steps are used."""
        bound = least_squares(len(self.met), int(self.met.sum()) // 2)
        self.kick(stream, self.tables.size)
        best, kept = self.squares(), self.snapshot()
        used = self.descend(range(len(self.tables)), steps)
        while True:
            if (found := self.squares()) <= best:
                best, kept = found, self.snapshot()
            else:
                self.tables, self.sits, self.met = kept
                kept = self.snapshot()
            if used >= steps or best == bound:
                break
            used += 1 + self.descend(self.kick(stream, _KICKS), steps - used)

    def snapshot(self) -> tuple[Integers, Integers, Integers]:
        """Return copies of what changes."""
        return self.tables.copy(), self.sits.copy(), self.met.copy()

    def descend(self, touched: Sequence[int], steps: int) -> int:
        """Make the best swap of a touched table while there is one that helps; return the steps used."""
        waiting, used = list(touched), 0
        while waiting and used < steps:
            used += 1
            t = waiting.pop()
            change = self.changes(t)
            best = int(change.argmin())
            if change.flat[best] < 0:
                i, other, j = map(int, np.unravel_index(best, change.shape))
                self.swap(t, i, other, j)
                waiting += [t, other]
        return used

    def changes(self, t: int) -> Integers:
        """Return the change of the sum of squares for each swap of table t: [its place, other table, place there].

        A pair met m times adds 2m + 1 to the squares when it meets, 2m - 1 less when it parts. Impossible swaps
        change 0.
        """
        here, met, sits = self.tables[t], self.met, self.sits
        cross = met[here][:, self.tables]
        leave = met[np.ix_(here, here)].sum(axis=1)
        join = cross.sum(axis=2)
        their_join = cross.sum(axis=0)
        their_leave = met[self.tables[:, :, None], self.tables[:, None, :]].sum(axis=2)
        shared = sits[:, here].sum(axis=1)
        change: Integers = join[:, :, None] + their_join[None] - leave[:, None, None] - their_leave[None] - 2 * cross
        change = 2 * change + 4 * (len(here) - 1) - 4 * shared[None, :, None]
        impossible = sits[:, here].T[:, :, None] + sits[t][self.tables][None]
        return np.where(impossible > 0, 0, change)

    def swap(self, t: int, i: int, other: int, j: int) -> None:
        """Exchange the member in place i of table t with the one in place j of another."""
        for table, place, comes in ((t, i, int(self.tables[other, j])), (other, j, int(self.tables[t, i]))):
            goes = int(self.tables[table, place])
            rest = np.delete(self.tables[table], place)
            for member, sign in ((goes, -1), (comes, 1)):
                self.met[member, rest] += sign
                self.met[rest, member] += sign
            self.sits[table, goes], self.sits[table, comes] = 0, 1
            self.tables[table, place] = comes

    def kick(self, stream: Stream, swaps: int) -> list[int]:
        """Make random swaps; return the tables touched."""
        touched = []
        for _ in range(swaps):
            t, other = stream.below(len(self.tables)), stream.below(len(self.tables))
            i, j = stream.below(self.tables.shape[1]), stream.below(self.tables.shape[1])
            if not self.sits[other, self.tables[t, i]] and not self.sits[t, self.tables[other, j]]:
                self.swap(t, i, other, j)
                touched += [t, other]
        return touched
