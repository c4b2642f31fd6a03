"""What faults do to a deal: when it is decided, and who finishes where."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from arena.rules import Outcome, OutcomeType, Seat

FORFEIT_FAULTS = 3
"""From this fault of a bot in a match on, its deals are forfeited or played by the house."""


def is_decided(faulted: Collection[Seat], seats: int, outcome_type: OutcomeType) -> bool:
    """Tell whether faults leave nothing to play for: one clean seat at most, or the one loser is known."""
    return len(faulted) >= seats - 1 or (outcome_type == "single_loser" and bool(faulted))


def places_with_faults(
    outcome: Outcome | None, faulted: Mapping[Seat, int], seats: int, outcome_type: OutcomeType
) -> tuple[int, ...]:
    """Return the places of a deal in which seats faulted.

    Faulted seats place below all others, a later fault above an earlier one. The others keep the game's order among
    themselves, or share the first place where the faulted seat is the one loser or the deal was not played out.

    Args:
        faulted: the step at which each faulted.
    """
    clean = [seat for seat in range(seats) if seat not in faulted]
    ranked = outcome is not None and outcome_type == "ranking"
    order = outcome.places if outcome is not None and ranked else (1,) * seats
    return tuple(
        1 + len(clean) + sum(step > faulted[seat] for step in faulted.values())
        if seat in faulted
        else 1 + sum(order[other] < order[seat] for other in clean)
        for seat in range(seats)
    )


class Verdict(msgspec.Struct, frozen=True):
    """What is recorded of how a deal ended; the names are those of `arena.records.DealRecord`."""

    places: tuple[int, ...]
    points: tuple[int, ...]
    reason: str
    rated: bool


def verdict(outcome: Outcome | None, faulted: Mapping[Seat, int], seats: int, outcome_type: OutcomeType) -> Verdict:
    """Return the verdict of a deal.

    Args:
        outcome: the game's, or None if the deal was not played out.
        faulted: the step at which each faulted seat did; -1 for one that had forfeited before the deal.
    """
    faults = any(step >= 0 for step in faulted.values())
    return Verdict(
        outcome.places if outcome and not faulted else places_with_faults(outcome, faulted, seats, outcome_type),
        outcome.points if outcome else (0,) * seats,
        outcome.reason if outcome else "fault" if faults else "forfeit",
        rated=all(step >= 0 for step in faulted.values()),
    )
