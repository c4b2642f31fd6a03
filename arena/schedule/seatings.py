"""Who sits where in each leg of a match."""

from __future__ import annotations

from itertools import permutations
from typing import Literal, TypeAlias, assert_never

Mode: TypeAlias = Literal["mirror", "rotate", "all"]
"""Which seatings of a table every deck is played in."""
Seating: TypeAlias = tuple[int, ...]
"""`seating[seat]` is an index into the table."""


def seatings(seats: int, mode: Mode = "mirror") -> tuple[Seating, ...]:
    """Return the legs of a match; every index sits in every seat equally often.

    Args:
        seats: the size of the table, at least 2.
        mode: `rotate`: the `seats` cyclic seatings. `mirror`: also those of the reversed circle, since rotation alone
            leaves who sits before whom fixed, and two equal bots then score differently; two seats have no
            other circle. `all`: every permutation.

    Raises:
        ValueError: a table of less than two.
    """
    if seats < 2:
        raise ValueError(f"a table has at least 2 seats, not {seats}")
    circle = tuple(range(seats))
    match mode:
        case "rotate":
            return _rotations(circle)
        case "mirror":
            return _rotations(circle) if seats == 2 else _rotations(circle) + _rotations(circle[::-1])
        case "all":
            return tuple(permutations(circle))
        case _:
            assert_never(mode)


def _rotations(circle: Seating) -> tuple[Seating, ...]:
    return tuple(circle[shift:] + circle[:shift] for shift in range(len(circle)))
