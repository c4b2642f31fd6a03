"""From deals to scores: what a match says about its table, and each entrant's sheet of rounds.

All arithmetic is exact. A duel is one entrant against another in one deal: 2 half points for the better place, 1 each
for the same place. (Ties count here even in a single_loser game; only ratings drop them.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import msgspec
import numpy as np

from arena.records import DealRecord, Placing, Round, TableScore
from arena.schedule.meetings import Table

HALF = Fraction(1, 2)


def tied(score: TableScore) -> TableScore:
    """Return the score of a table at which everybody tied in every deal, as a void match counts."""
    seats = range(len(score.table))
    duels = tuple(tuple(score.deals * (i != j) for j in seats) for i in seats)
    return msgspec.structs.replace(score, duels=duels, sets_won=(0,) * len(seats) if score.sets_won else ())


def exact_sum(values: Iterable[Fraction]) -> Fraction:
    """Return the sum of many fractions of few denominators, a few times as fast as one addition after the other."""
    found = [*values]
    whole = lcm(*{value.denominator for value in found})
    return Fraction(sum(value.numerator * (whole // value.denominator) for value in found), whole)


class Line(NamedTuple):
    """What one complete round was for an entrant.

    Attributes:
        opponents: the others at its table; () if it did not play.
        shares: by opponent, its share of their duels, 0 ... 1.
        score: the round score: the mean of `shares`, the bye score, or 0 for an absence.
        bye: it was paired with nobody.
    """

    opponents: tuple[int, ...]
    shares: tuple[Fraction, ...]
    score: Fraction
    deals: int = 0
    sets_won: int = 0
    bye: bool = False


class Sheet(NamedTuple):
    """An entrant's lines, one for each complete round, in the order of the rounds."""

    lines: tuple[Line, ...]

    @property
    def points(self) -> Fraction:
        """The sum of the round scores."""
        return exact_sum(line.score for line in self.lines)

    @property
    def byes(self) -> int:
        """The number of byes."""
        return sum(line.bye for line in self.lines)


def table_score(number: int, table: Table, deals: Sequence[DealRecord] | Sequence[Placing]) -> TableScore:
    """Return what a match says about its table.

    Args:
        number: the round, 1-based.
        table: the entrants, in the order that the deals' seatings index.
        deals: all deals of the match, in any order; forfeited ones too.

    Raises:
        ValueError: there is no deal, or a deal set lacks a leg that another one has.
    """
    legs: dict[int, list[int]] = {}
    for deal in deals:
        legs.setdefault(deal.deck, []).append(deal.leg)
    if len({tuple(sorted(played)) for played in legs.values()}) != 1:
        raise ValueError(f"round {number}, table {table}: incomplete deal sets, legs by deck {legs}")
    seats = len(table)
    duels = np.zeros((seats, seats), dtype=np.int64)
    by_deck = {deck: np.zeros(seats, dtype=np.int64) for deck in legs}
    for deal in deals:
        places = np.empty(seats, dtype=np.int64)
        places[list(deal.seating)] = deal.places
        won = 1 + np.sign(places[None, :] - places[:, None])
        np.fill_diagonal(won, 0)
        duels += won
        by_deck[deal.deck] += won.sum(axis=1)
    sets_won = [sum(_is_alone_first(totals, i) for totals in by_deck.values()) for i in range(seats)]
    return TableScore(number, table, tuple(map(tuple, duels.tolist())), len(deals), tuple(sets_won))


def _is_alone_first(totals: np.ndarray[tuple[int, ...], np.dtype[np.int64]], index: int) -> bool:
    return bool((totals < totals[index]).sum() == len(totals) - 1)


def completed(history: Iterable[Round], scores: Iterable[TableScore]) -> tuple[Round, ...]:
    """Return the rounds of which every table has its score, by number."""
    return tuple(round_ for round_, _ in _scored(history, scores))


def _scored(history: Iterable[Round], scores: Iterable[TableScore]) -> Iterator[tuple[Round, list[TableScore]]]:
    """Yield the rounds of which every table has its score, by number, each with the scores of its tables."""
    by_round: dict[int, list[TableScore]] = {}
    for score in scores:
        by_round.setdefault(score.round, []).append(score)
    for round_ in sorted(history, key=lambda round_: round_.number):
        by_table = {frozenset(score.table): score for score in by_round.get(round_.number, ())}
        found = [by_table.get(frozenset(table)) for table in round_.tables]
        if None not in found:
            yield round_, [score for score in found if score is not None]


def sheets(
    entrants: Iterable[int], history: Iterable[Round], scores: Sequence[TableScore], bye_score: Fraction = HALF
) -> dict[int, Sheet]:
    """Return the sheet of every entrant and of everybody else who played, in ascending order.

    Rounds that are not complete, and scores outside the complete rounds, count nowhere.
    """
    rounds = [*_scored(history, scores)]
    absent = Line((), (), Fraction())
    bye = Line((), (), bye_score, bye=True)
    everybody = {*entrants}.union(*(seen for r, _ in rounds for seen in (*r.tables, r.byes)))
    lines: dict[int, list[Line]] = {entrant: [] for entrant in sorted(everybody)}
    same: dict[tuple[object, ...], dict[int, Line]] = {}  # equal lines are one, since a long tournament repeats them
    for round_, found in rounds:
        sat = dict.fromkeys(round_.byes, bye)
        for score in found:
            key = score.table, score.duels, score.deals, score.sets_won
            if key not in same:
                same[key] = _table_lines(score)
            sat |= same[key]
        for entrant, own in lines.items():
            own.append(sat.get(entrant, absent))
    return {entrant: Sheet(tuple(own)) for entrant, own in lines.items()}


def _table_lines(score: TableScore) -> dict[int, Line]:
    lines = {}
    for i, entrant in enumerate(score.table):
        others = [j for j in range(len(score.table)) if j != i]
        shares = tuple(Fraction(score.duels[i][j], 2 * score.deals) for j in others)
        mean = sum(shares, Fraction()) / len(shares)
        won = score.sets_won[i] if score.sets_won else 0
        lines[entrant] = Line(tuple(score.table[j] for j in others), shares, mean, score.deals, won)
    return lines
