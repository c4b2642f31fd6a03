"""A knockout of pairs: who loses a match is out, until one is left; byes of the first round go to the top seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from arena.records import Round, TableScore

Slot = int | None
"""An entrant, or nobody: whoever meets nobody goes on without playing."""


def bracket(seeding: Sequence[int]) -> list[Slot]:
    """Return the slots of the first round, neighbours meet: the first two seeds can meet in the final only.

    Args:
        seeding: entrants, the best first.
    """
    order = [0]
    while len(order) < len(seeding):
        size = 2 * len(order)
        order = [one for seed in order for one in (seed, size - 1 - seed)]
    return [seeding[seed] if seed < len(seeding) else None for seed in order]


def rounds_of(entrants: int) -> int:
    """Return how many rounds it takes until one is left."""
    return max(entrants - 1, 0).bit_length()


def knockout_round(
    seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore], withdrawn: Collection[int] = ()
) -> Round | None:
    """Return the round that follows on complete ones, or None if the winner is known.

    A match goes to whoever won more duels; with equally many to whoever won more deal sets, then to the better seed.
    """
    slots = _after(seeding, history, scores)
    slots = [None if entrant in withdrawn else entrant for entrant in slots]
    if len([entrant for entrant in slots if entrant is not None]) < 2:
        return None
    pairs = list(zip(slots[::2], slots[1::2], strict=True))
    tables = tuple((a, b) for a, b in pairs if a is not None and b is not None)
    byes = tuple(sorted(one for a, b in pairs for one in (a, b) if one is not None and None in (a, b)))
    return Round(len(history) + 1, tables, byes)


def reached(seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore]) -> dict[int, int]:
    """Return for each entrant how many rounds it has survived."""
    survived = dict.fromkeys(seeding, 0)
    for number in range(1, len(history) + 1):
        for entrant in _after(seeding, history[:number], scores):
            if entrant is not None:
                survived[entrant] = number
    return survived


def _after(seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore]) -> list[Slot]:
    """Return the slots after some rounds."""
    slots = bracket(seeding)
    seeds = {entrant: seed for seed, entrant in enumerate(seeding)}
    by_table = {(score.round, frozenset(score.table)): score for score in scores}
    for played in history:
        there = {*played.byes, *(entrant for table in played.tables for entrant in table)}
        pairs = zip(slots[::2], slots[1::2], strict=True)
        slots = [
            _winner([one for one in pair if one in there], seeds, by_table.get((played.number, frozenset(pair))))  # type: ignore[arg-type]  # a pair with nobody has no score
            for pair in pairs
        ]
    return slots


def _winner(pair: Sequence[Slot], seeds: dict[int, int], score: TableScore | None) -> Slot:
    entrants = [one for one in pair if one is not None]
    if score is None:
        return entrants[0] if entrants else None

    def merit(entrant: int) -> tuple[int, int, int]:
        place = score.table.index(entrant)
        sets_won = score.sets_won[place] if score.sets_won else 0
        return sum(score.duels[place]), sets_won, -seeds[entrant]

    return max(entrants, key=merit)
