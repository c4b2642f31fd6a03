"""Swiss rounds for tables of two and more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import count

import numpy as np

from arena.errors import ConfigError
from arena.luck import Stream
from arena.records import Round, TableScore
from arena.schedule.costs import Field, Shape, pairing_costs
from arena.schedule.matching import match_pairs
from arena.schedule.meetings import circle, meetings, met_matrix, predecessors
from arena.schedule.scores import HALF, Sheet, completed, sheets
from arena.schedule.swaps import WORK, chopped, group_tables


def next_round(
    entrants: Iterable[int],
    seats: int,
    history: Sequence[Round],
    scores: Sequence[TableScore],
    key: bytes,
    *,
    smaller_tables: bool = False,
    withdrawn: Collection[int] = (),
    bye_score: Fraction = HALF,
    apart: Iterable[Collection[int]] = (),
    work: int = WORK,
) -> Round:
    """Pair the next round; a pure function of its arguments, whatever their order.

    The first round is drawn by lot. Later ones minimise, in this order: repeated meetings, the points of those on short
    rations, squared differences in points within a table, entrants that drift twice in the same direction; exactly for
    two seats, by a search for more. Byes, or smaller tables, go to those with the fewest so far, whatever that
    costs: nobody has a second one before everybody still paired had one.

    Args:
        entrants: everybody who may be paired, the withdrawn too.
        seats: the size of a table.
        history: all earlier rounds.
        scores: the scores of all their tables.
        key: of the lots.
        smaller_tables: tables of `seats - 1` may stand in for byes.
        withdrawn: entrants no longer paired.
        bye_score: the round score of a bye.
        apart: groups of entrants who should not meet, such as those of one author; more to be avoided than any
            repeated meeting.
        work: bound of the search, see `arena.schedule.swaps`.

    Returns:
        The round, the strongest table first; tables in the order of the circle with the most new predecessors.

    Raises:
        ConfigError: too few entrants are left for a table.
        ValueError: a round of the history is not complete, or the rounds are not numbered 1, 2, ...
    """
    active = sorted(set(entrants) - set(withdrawn))
    shape = round_shape(len(active), seats, smaller_tables=smaller_tables)
    rounds = _checked(history, scores)
    stream = Stream(key, "swiss", len(rounds) + 1)
    drawn = stream.shuffled(active)
    field = _field(drawn, rounds, sheets(drawn, rounds, scores, bye_score), shape)
    for group in apart:
        members = [drawn.index(entrant) for entrant in group if entrant in drawn]
        field.met[np.ix_(members, members)] += 1 + len(rounds)
    np.fill_diagonal(field.met, 0)
    costs = pairing_costs(field, shape)
    if not costs.pair.any() and not costs.short.any():
        tables, byes = chopped(field, shape)
    elif seats == 2:
        tables, byes = match_pairs(field, costs, stream)
    else:
        tables, byes = group_tables(field, costs, shape, stream, work)
    tables.sort(key=lambda table: (-sum((field.points[i] for i in table), Fraction()) / len(table), table))
    before = predecessors(table for round_ in rounds for table in round_.tables)
    seated = tuple(circle([drawn[i] for i in table], before) for table in tables)
    return Round(len(rounds) + 1, seated, tuple(sorted(drawn[i] for i in byes)))


def swiss_rounds(entrants: int, seats: int) -> int:
    """Return the default number of rounds: enough to find one winner among so many, and two to sort the others."""
    base = max(seats, 2)
    return 2 + next(n for n in count(1) if base**n >= entrants)


def round_shape(entrants: int, seats: int, *, smaller_tables: bool = False) -> Shape:
    """Return the tables for a number of entrants: the fewest byes, then the fewest smaller tables.

    Smaller tables are those of `seats - 1`, which must be at least 2.

    Raises:
        ConfigError: not even one table can be filled.
    """
    if smaller_tables and seats > 2:
        for byes in range(entrants):
            small = (byes - entrants) % seats
            full = (entrants - byes - small * (seats - 1)) // seats
            if full >= 0:
                return Shape(seats, full, small, byes)
    elif entrants >= seats:
        return Shape(seats, entrants // seats, 0, entrants % seats)
    least = seats - 1 if smaller_tables and seats > 2 else seats
    raise ConfigError(f"a table needs {least} entrants, only {entrants} are left to be paired")


def _checked(history: Sequence[Round], scores: Sequence[TableScore]) -> tuple[Round, ...]:
    rounds = tuple(sorted(history, key=lambda round_: round_.number))
    numbers = [round_.number for round_ in rounds]
    if numbers != list(range(1, len(rounds) + 1)):
        raise ValueError(f"rounds must be numbered 1, 2, ..., not {numbers}")
    if open_rounds := sorted({*numbers} - {round_.number for round_ in completed(rounds, scores)}):
        raise ValueError(f"round {open_rounds[0]} is not complete; nobody is paired past it")
    return rounds


def _field(drawn: Sequence[int], rounds: Sequence[Round], sheet: Mapping[int, Sheet], shape: Shape) -> Field:
    return Field(
        points=tuple(sheet[entrant].points for entrant in drawn),
        met=met_matrix(drawn, meetings(table for round_ in rounds for table in round_.tables)),
        burden=tuple(_burden(sheet[entrant], shape) for entrant in drawn),
        drift=tuple(_drift(entrant, sheet) for entrant in drawn),
    )


def _burden(sheet: Sheet, shape: Shape) -> int:
    """Return a number that orders entrants by what they had: where byes are given, byes count before smaller tables.

    Rounds before a late entry count like byes, else newcomers would sit out until they had as many as the others.
    """
    small = sum(0 < len(line.opponents) < shape.seats - 1 for line in sheet.lines)
    sat_out = sum(not line.opponents for line in sheet.lines)
    return sat_out * (1 + len(sheet.lines) * bool(shape.byes)) + small


def _drift(entrant: int, sheet: Mapping[int, Sheet]) -> int:
    """Return 1 if it met weaker opponents in the last round or had a bye, -1 if stronger ones, else 0.

    Weaker by the mean of the points before that round.
    """
    if not sheet[entrant].lines:
        return 0
    last = sheet[entrant].lines[-1]
    if not last.opponents:
        return int(last.bye)
    own = sheet[entrant].points - last.score
    others = sum((sheet[o].points - sheet[o].lines[-1].score for o in last.opponents), Fraction())
    mean = others / len(last.opponents)
    return (own > mean) - (own < mean)
