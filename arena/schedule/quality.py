"""How good a schedule is: what tests compare with exact solvers, and what a user is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from statistics import fmean

import msgspec
import rustworkx

from arena.records import Round
from arena.schedule.meetings import Table, meetings, predecessors


class RoundQuality(msgspec.Struct, frozen=True):
    """What a round did, given the rounds before it.

    Attributes:
        repeats: pairs of this round that had met before.
        least_repeats: a proved bound of that, whoever of those at its tables sits with whom; None if it is not known.
        most_meetings: of one pair, this round included.
        mean_spread: mean over the tables of best minus worst points before the round.
        most_spread: the largest of these.
        most_before: how often somebody sat directly before the same other, at most, this round included.
        most_byes: of one entrant, this round included.
    """

    repeats: int
    least_repeats: int | None
    most_meetings: int
    mean_spread: float
    most_spread: float
    most_before: int
    most_byes: int


class DesignQuality(msgspec.Struct, frozen=True):
    """How even the tables of a round robin are.

    Attributes:
        tables: their number.
        least_appearances: tables of the entrant with the fewest.
        most_appearances: tables of the entrant with the most.
        least_meetings: of a pair.
        most_meetings: of a pair.
        squares: the sum over the pairs of squared meetings.
        bound: the least that sum could be with these tables.
        most_before: how often somebody sat directly before the same other, at most.
    """

    tables: int
    least_appearances: int
    most_appearances: int
    least_meetings: int
    most_meetings: int
    squares: int
    bound: int
    most_before: int

    @property
    def gap(self) -> float:
        """How far `squares` is above `bound`, as a share of it."""
        return self.squares / self.bound - 1


def round_quality(round_: Round, earlier: Sequence[Round], points: Mapping[int, Fraction]) -> RoundQuality:
    """Judge a round with at least one table by the rounds and everybody's points before it."""
    past = meetings(table for r in earlier for table in r.tables)
    now = meetings(round_.tables)
    spreads = [_spread(table, points) for table in round_.tables]
    byes = Counter(entrant for r in (*earlier, round_) for entrant in r.byes)
    repeats = sum(past[pair] > 0 for pair in now)
    return RoundQuality(
        repeats=repeats,
        least_repeats=least_repeats(round_, earlier) if repeats else 0,
        most_meetings=max((past + now).values()),
        mean_spread=fmean(spreads),
        most_spread=max(spreads),
        most_before=max(predecessors(t for r in (*earlier, round_) for t in r.tables).values()),
        most_byes=max(byes.values(), default=0),
    )


def least_repeats(round_: Round, earlier: Sequence[Round]) -> int | None:
    """Return how many pairs at the tables of a round have met before at least, however its entrants share the tables.

    At two seats that is exact. Else it is the best of two bounds: those of one earlier table must go somewhere, and who
    has met nearly everybody cannot sit with strangers only. None if somebody sits at several tables.
    """
    seated = {entrant for table in round_.tables for entrant in table}
    if not _is_disjoint(round_):
        return None
    past = meetings(table for r in earlier for table in r.tables)
    strangers = [pair for pair in combinations(sorted(seated), 2) if not past[pair]]
    smallest = min(map(len, round_.tables))
    if max(map(len, round_.tables)) == 2:
        graph = rustworkx.PyGraph(multigraph=False)
        graph.extend_from_edge_list(strangers)
        return len(round_.tables) - len(rustworkx.max_weight_matching(graph, max_cardinality=True))
    free = Counter(entrant for pair in strangers for entrant in pair)
    lacking = sum(max(0, smallest - 1 - free[entrant]) for entrant in seated)
    return max([-(-lacking // 2), *(_kept_together(r, seated, len(round_.tables)) for r in earlier if _is_disjoint(r))])


def _is_disjoint(round_: Round) -> bool:
    return sum(map(len, round_.tables)) == len({entrant for table in round_.tables for entrant in table})


def _kept_together(round_: Round, seated: set[int], tables: int) -> int:
    """Return how many pairs of a round's tables meet again if those who are still seated are spread over new tables."""
    left = (len(seated.intersection(table)) for table in round_.tables)
    return sum(tables * comb(each, 2) + more * each for each, more in (divmod(number, tables) for number in left))


def _spread(table: Table, points: Mapping[int, Fraction]) -> float:
    values = [points[entrant] for entrant in table]
    return float(max(values) - min(values))


def design_quality(tables: Iterable[Table]) -> DesignQuality:
    """Judge the tables of a round robin; everybody sits at one at least."""
    seated = list(tables)
    met = meetings(seated)
    sits = Counter(entrant for table in seated for entrant in table)
    counts = [met[pair] for pair in combinations(sorted(sits), 2)]
    return DesignQuality(
        tables=len(seated),
        least_appearances=min(sits.values()),
        most_appearances=max(sits.values()),
        least_meetings=min(counts),
        most_meetings=max(counts),
        squares=sum(count * count for count in counts),
        bound=least_squares(len(sits), sum(counts)),
        most_before=max(predecessors(seated).values()),
    )


def least_squares(entrants: int, total: int) -> int:
    """Return the least sum of squares of whole meetings of all pairs that add up to a total: all equal or one apart."""
    number = entrants * (entrants - 1) // 2
    each, more = divmod(total, number)
    return number * each * each + more * (2 * each + 1)
