"""Round robins: every pair (two seats), every table (`full`) or every pair about equally often (`balanced`).

Rounds come one by one, so that a million matches need no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count, islice
from math import comb, gcd
from typing import Literal, NamedTuple, TypeAlias

from arena.errors import ConfigError
from arena.luck import Stream
from arena.records import Round
from arena.schedule.designs import WORK, appearances, balanced_tables
from arena.schedule.meetings import Pair, Table, circle, met_matrix, neighbours, pairs

Design: TypeAlias = Literal["full", "balanced"]

FULL_TABLES = 100
"""With up to so many possible tables a cycle plays them all: 8 entrants at tables of 4 (70), 9 at 3 (84)."""

_WINDOW = 512
"""Tables among which disjoint ones are looked for to make up a round."""


def chosen_design(entrants: int, seats: int) -> Design:
    """Return the design used if none is asked for: `full` for two seats and up to `FULL_TABLES` tables."""
    return "full" if seats == 2 or comb(entrants, seats) <= FULL_TABLES else "balanced"


def tables_per_cycle(entrants: int, seats: int, design: Design | None = None) -> int:
    """Return the number of tables of a cycle."""
    if (design or chosen_design(entrants, seats)) == "full" or seats == 2:
        return comb(entrants, seats)
    return appearances(entrants, seats) * entrants // seats


def round_robin(
    entrants: Iterable[int], seats: int, cycles: int, key: bytes, *, design: Design | None = None, work: int = WORK
) -> Iterator[Round]:
    """Return the rounds of a round robin; in each nobody sits twice, and who does not sit has a bye.

    Args:
        entrants: in any order.
        seats: the size of the tables.
        cycles: how often everything is played; the rounds of a cycle come before those of the next.
        key: of the lots; places in a design, the order of tables and searches hang on it.
        design: forces one; by default `chosen_design`. Two seats have one design only.
        work: bound of the search for a balanced design, see `arena.schedule.designs`.

    Raises:
        ConfigError: fewer entrants than seats.
    """
    field = sorted(set(entrants))
    if len(field) < seats:
        raise ConfigError(f"a round robin at tables of {seats} needs {seats} entrants, not {len(field)}")
    return _rounds(field, cycles, key, _Plan(seats, design or chosen_design(len(field), seats), work))


def without(round_: Round, withdrawn: Collection[int], seats: int, *, smaller_tables: bool = False) -> Round:
    """Return a round without the withdrawn; a table that lost too many is gone and its others have a bye.

    Args:
        round_: a round of a schedule made before they withdrew.
        withdrawn: who does not play any more.
        seats: the size of a table.
        smaller_tables: tables of `seats - 1`, at least 2, may be played.
    """
    least = max(2, seats - 1) if smaller_tables else seats
    left = [tuple(entrant for entrant in table if entrant not in withdrawn) for table in round_.tables]
    idle = chain(round_.byes, *(table for table in left if len(table) < least))
    byes = sorted(entrant for entrant in idle if entrant not in withdrawn)
    return Round(round_.number, tuple(table for table in left if len(table) >= least), tuple(byes))


class _Plan(NamedTuple):
    seats: int
    design: Design
    work: int


def _rounds(field: list[int], cycles: int, key: bytes, plan: _Plan) -> Iterator[Round]:
    numbers = count(1)
    before: Counter[Pair] = Counter()
    met: Counter[Pair] = Counter()
    for cycle in range(1, cycles + 1):
        stream = Stream(key, "round robin", cycle)
        drawn = stream.shuffled(field)
        for tables in _cycle(plan, stream, drawn, met):
            seated = [circle([drawn[i] for i in table], before) for table in tables]
            before.update(pair for table in seated for pair in neighbours(table))
            if plan.design == "balanced":  # which alone asks: of many entrants there are very many pairs
                met.update(pair for table in seated for pair in pairs(table))
            byes = sorted(set(field).difference(*seated))
            yield Round(next(numbers), tuple(seated), tuple(byes))


def _cycle(plan: _Plan, stream: Stream, drawn: list[int], met: Mapping[Pair, int]) -> Iterator[list[Table]]:
    """Yield the rounds of a cycle as tables of indices into `drawn`."""
    entrants = len(drawn)
    if plan.seats == 2:
        return _berger(entrants)
    if plan.design == "full":
        return _packed(_all_tables(entrants, plan.seats, stream), entrants // plan.seats)
    tables = balanced_tables(entrants, plan.seats, stream, met_matrix(drawn, met), plan.work)
    return _packed(iter(tables), entrants // plan.seats)


def _berger(entrants: int) -> Iterator[list[Table]]:
    """Yield the rounds of the circle method: one stays, the others move on by a place; odd fields have a bye."""
    moving = entrants - 1 + entrants % 2
    for r in range(moving):
        tables: list[Table] = [] if entrants % 2 else [(r, moving)]
        yield tables + [((r + i) % moving, (r - i) % moving) for i in range(1, (moving + 1) // 2)]


def _all_tables(entrants: int, seats: int, stream: Stream) -> Iterator[Table]:
    """Yield every table once, in a scattered order, without keeping them."""
    total = comb(entrants, seats)
    start, step = stream.below(total), 1 + stream.below(total)
    while gcd(step, total) > 1:
        step = 1 + stream.below(total)
    for i in range(total):
        yield _table_at((start + i * step) % total, entrants, seats)


def _table_at(rank: int, entrants: int, seats: int) -> Table:
    """Return the table at a place of the lexicographic list of all of them."""
    table: list[int] = []
    member = 0
    while len(table) < seats:
        starting_here = comb(entrants - member - 1, seats - len(table) - 1)
        if rank < starting_here:
            table.append(member)
        else:
            rank -= starting_here
        member += 1
    return tuple(table)


def _packed(tables: Iterator[Table], room: int) -> Iterator[list[Table]]:
    """Yield rounds of at most `room` disjoint tables, each time those that waited longest and fit."""
    waiting = list(islice(tables, _WINDOW))
    while waiting:
        taken: list[Table] = []
        left: list[Table] = []
        busy: set[int] = set()
        for table in waiting:
            if len(taken) < room and busy.isdisjoint(table):
                taken.append(table)
                busy.update(table)
            else:
                left.append(table)
        yield taken
        waiting = left + list(islice(tables, _WINDOW - len(left)))
