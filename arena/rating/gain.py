"""From deals to the scores of a comparison: what NEW won of each deal set, as integers.

A deal is counted in half points, 2 for each bot that is beaten and 1 for a tie, so that ties among those who did not
lose count as well; forfeited deals count too. The first bot of a table is the one that is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from arena.rating.sequential import SetShape
from arena.records import Placing
from arena.rules import OutcomeType


def set_shape(seats: int, legs: int, *, substituted: bool, outcome_type: OutcomeType = "ranking") -> SetShape:
    """Return what a deal set is made of.

    Args:
        seats: of a table; NEW and OLD meet only at tables of 2.
        legs: of a match.
        substituted: NEW and OLD play the set in two matches, each in the same seat among the same others.
        outcome_type: of the game; where only one loses, those who do not tie, and no bot wins all points of a deal.
    """
    most = 2 * (seats - 1) * legs
    if not substituted:
        return SetShape(most, legs)
    spare = (seats - 2) * legs if outcome_type == "single_loser" else 0
    return SetShape(2 * most, 2 * legs, True, spare)


def set_scores(shape: SetShape, played: Sequence[Sequence[Placing]]) -> list[int]:
    """Return the score of each deck of a round, in the order of the decks.

    Args:
        played: the deals of the match in which NEW met OLD; or of the one of NEW, then of the one of OLD.
    """
    if not shape.substituted:
        (met,) = played
        return list(_points(met).values())
    new, old = map(_points, played)
    return [shape.top // 2 + new[deck] - old[deck] for deck in new]


def _points(deals: Sequence[Placing]) -> Counter[int]:
    """Return the half points of a table's first bot by deck, in ascending order."""
    points = Counter(dict.fromkeys(sorted({deal.deck for deal in deals}), 0))
    for deal in deals:
        own = deal.places[deal.seating.index(0)]
        points[deal.deck] += sum(1 + (place > own) - (place < own) for place in deal.places) - 1
    return points
