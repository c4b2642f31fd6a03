"""Everybody against everybody: the duels of each pair over all complete matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from arena.records import TableScore


class Encounter(NamedTuple):
    """What an entrant did against another.

    Attributes:
        halves: half points of their duels: 2 for a win, 1 for a tie; as in standings, ties count in every game.
        deals: that both sat in.
    """

    halves: int
    deals: int

    @property
    def share(self) -> Fraction:
        """The share of their duels, 0 ... 1."""
        return Fraction(self.halves, 2 * self.deals)


def encounters(scores: Iterable[TableScore]) -> dict[tuple[int, int], Encounter]:
    """Return the encounter of every ordered pair that has met: `[a, b]` is what a did against b."""
    found: dict[tuple[int, int], Encounter] = {}
    for score in scores:
        for i, own in enumerate(score.table):
            for j, other in enumerate(score.table):
                if i != j:
                    halves, deals = found.get((own, other), Encounter(0, 0))
                    found[own, other] = Encounter(halves + score.duels[i][j], deals + score.deals)
    return found


def in_order(order: Sequence[int], met: Mapping[tuple[int, int], Encounter]) -> Iterator[tuple[int, int, Encounter]]:
    """Yield the ordered pairs that have met, row by row of a crosstable whose rows and columns have this order."""
    for own in order:
        for other in order:
            if (own, other) in met:
                yield own, other, met[own, other]
