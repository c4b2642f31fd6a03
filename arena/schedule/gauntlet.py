"""A gauntlet: each challenger meets the whole field, cycle after cycle; challengers never meet each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from arena.luck import Stream
from arena.records import Round
from arena.schedule.meetings import circle, predecessors


def gauntlet_round(
    entrants: Iterable[int], challengers: Collection[int], seats: int, history: Sequence[Round], key: bytes
) -> Round | None:
    """Return the next cycle as one round, in which a challenger sits at a table with each part of the field.

    At more than two seats the field is drawn by lot into parts of `seats - 1`, the same for all challengers. What
    is missing in the last part is filled up with those who have been asked for that least often.

    Args:
        entrants: everybody who still plays, in any order.
        challengers: those who meet the others; whoever is no entrant is left out.
        seats: of a table.
        history: all earlier rounds.
        key: of the lots.

    Returns:
        None if no challenger is left, or too few to fill a table with.
    """
    active = sorted(set(entrants))
    coming = [entrant for entrant in active if entrant in challengers]
    field = [entrant for entrant in active if entrant not in challengers]
    if not coming or len(field) < seats - 1:
        return None
    number = len(history) + 1
    sat = Counter(entrant for round_ in history for table in round_.tables for entrant in table)
    groups = _groups(Stream(key, "gauntlet", number).shuffled(field), seats - 1, sat)
    before = predecessors(table for round_ in history for table in round_.tables)
    tables = tuple(circle([challenger, *group], before) for challenger in coming for group in groups)
    return Round(number, tables)


def tables_per_cycle(entrants: int, challengers: int, seats: int) -> int:
    """Return the number of tables of a cycle."""
    return challengers * -(-(entrants - challengers) // (seats - 1))


def _groups(drawn: Sequence[int], size: int, sat: Counter[int]) -> list[list[int]]:
    """Return the field in parts of a size; as few as possible are in two of them, and those had sat least."""
    missing = -len(drawn) % size
    fillers = sorted(drawn, key=lambda entrant: sat[entrant])[:missing]  # of equals the first drawn
    once = [entrant for entrant in drawn if entrant not in fillers]
    last = [*once[: size - missing], *fillers] if missing else []
    others = [entrant for entrant in drawn if entrant not in last[: size - missing]]
    groups = [list(others[start : start + size]) for start in range(0, len(others), size)]
    return [*groups, last] if missing else groups
