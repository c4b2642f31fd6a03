"""What tables say about pairs: who met whom, who sat before whom; and the circle that evens the latter out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Table: TypeAlias = tuple[int, ...]
"""The entrants at a table in the order of the circle they sit in."""
Pair: TypeAlias = tuple[int, int]
Integers: TypeAlias = npt.NDArray[np.int64]

_EXHAUSTIVE = 7
"""The largest table for which every circle is tried: 6! = 720 of them."""


def pairs(table: Iterable[int]) -> Iterator[Pair]:
    """Yield the pairs that meet at a table, the smaller entrant first."""
    return combinations(sorted(table), 2)


def meetings(tables: Iterable[Table]) -> Counter[Pair]:
    """Count how often each pair met; the smaller entrant stands first."""
    return Counter(pair for table in tables for pair in pairs(table))


def met_matrix(entrants: Sequence[int], met: Mapping[Pair, int]) -> Integers:
    """Return meetings as a symmetric matrix indexed as `entrants` are; meetings with others are left out."""
    index = {entrant: i for i, entrant in enumerate(entrants)}
    matrix = np.zeros((len(index), len(index)), dtype=np.int64)
    for (a, b), times in met.items():
        if a in index and b in index:
            matrix[index[a], index[b]] = matrix[index[b], index[a]] = times
    return matrix


def neighbours(table: Sequence[int]) -> Iterator[Pair]:
    """Yield (who sits before, who sits after) around the circle."""
    return zip(table, [*table[1:], *table[:1]], strict=True)


def predecessors(tables: Iterable[Table]) -> Counter[Pair]:
    """Count how often the first of a pair sat directly before the second."""
    return Counter(pair for table in tables for pair in neighbours(table))


def circle(members: Sequence[int], before: Mapping[Pair, int]) -> Table:
    """Order a table so that the sum of squared predecessor counts grows least; the first member stays first.

    Every circle is tried up to seven seats; beyond, swaps of two seats descend from the given order. Of equally good
    circles the first in lexicographic order of positions wins, so a given order without repeats is kept.
    """
    if len(members) == 2:
        return tuple(members)
    # Squares grow by 2c + 1 for a neighbourhood seen c times, so the least sum of c is the least sum of squares.
    if len(members) > _EXHAUSTIVE:
        return _descended(tuple(members), before)
    head, *rest = members
    best, least = tuple(members), _repeats(members, before)
    for order in permutations(rest):
        if least == 0:
            break
        if (repeats := _repeats((head, *order), before)) < least:
            best, least = (head, *order), repeats
    return best


def _repeats(table: Sequence[int], before: Mapping[Pair, int]) -> int:
    return sum(before.get(pair, 0) for pair in neighbours(table))


def _descended(table: Table, before: Mapping[Pair, int]) -> Table:
    least = _repeats(table, before)
    improved = least > 0
    while improved:
        improved = False
        for i, j in combinations(range(1, len(table)), 2):
            order = list(table)
            order[i], order[j] = order[j], order[i]
            if (repeats := _repeats(order, before)) < least:
                table, least, improved = tuple(order), repeats, True
    return table
