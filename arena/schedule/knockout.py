"""A knockout of pairs: who loses a match is out, until one is left; byes of the first round go to the top seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

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
    *_, slots = _slots(seeding, history, scores)
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
    for number, slots in enumerate(_slots(seeding, history, scores)):
        survived.update({entrant: number for entrant in slots if entrant is not None})
    return survived


def _slots(seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore]) -> Iterator[list[Slot]]:
    """Yield the slots of the bracket, and those after each round."""
    yield (slots := bracket(seeding))
    seeds = {entrant: seed for seed, entrant in enumerate(seeding)}
    by_table = {(score.round, frozenset(score.table)): score for score in scores}
    sat = [{*played.byes, *(entrant for table in played.tables for entrant in table)} for played in history]
    for played, there, later in zip(history, sat, [*sat, set()][1:], strict=True):
        pairs = zip(slots[::2], slots[1::2], strict=True)
        came = [[one for one in pair if one is not None and one in there] for pair in pairs]
        yield (slots := [_winner(pair, later, seeds, by_table.get((played.number, frozenset(pair)))) for pair in came])


def _winner(pair: Sequence[int], later: Collection[int], seeds: dict[int, int], score: TableScore | None) -> Slot:
    """Return who goes on; who has gone on already does, whatever the match is found to be worth since."""
    entrants = [one for one in pair if one in later] or pair
    if score is None:
        return entrants[0] if entrants else None

    def merit(entrant: int) -> tuple[int, int, int]:
        place = score.table.index(entrant)
        sets_won = score.sets_won[place] if score.sets_won else 0
        return sum(score.duels[place]), sets_won, -seeds[entrant]

    return max(entrants, key=merit)
