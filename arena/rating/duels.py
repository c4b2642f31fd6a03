"""From deals to duels: who did better against whom, on which deck, as integers.

A deal of k seats is k(k-1)/2 duels, counted in half points: 2 win, 1 tie, 0 loss. In a `single_loser` game the ties
among those who did not lose carry no information (without dropping them no bot could be rated more than 120 Elo above
its opponents at four seats) and are dropped; where all places are equal nobody lost, and each duel is a tie.

Everything here is counted in integers and ordered by name, so that neither the order nor the grouping in which deals
arrive can reach the floating-point work that follows.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt

from arena.records import BotHash, RatedDeal
from arena.rules import OutcomeType

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Duels(msgspec.Struct, frozen=True, eq=False):
    """Duels summed by deck, number of seats and pair of bots.

    The last six are columns of one table, ordered by cluster, low, high and seats.

    Attributes:
        bots: ascending; everywhere else a bot is its index here.
        deals: by bot, deals it sat in.
        wins: by bot, deals in which it was first alone; in a single_loser game, in which it did not lose.
        cluster: the deck, numbered from 0 among the decks with a duel.
        low: with `high`, the pair; low < high.
        seats: of the deal.
        halves: half points of `low`.
        count: duels; `high` has 2 * count - halves half points.
    """

    outcome_type: OutcomeType
    bots: tuple[BotHash, ...]
    deals: Longs
    wins: Longs
    cluster: Ints
    low: Ints
    high: Ints
    seats: Ints
    halves: Ints
    count: Ints

    @property
    def clusters(self) -> int:
        """The number of decks with a duel."""
        return int(self.cluster[-1]) + 1 if len(self.cluster) else 0

    def weights(self) -> Floats:
        """Return the weight of a duel, by row of the table.

        The duels of one deal are correlated; these weights make information and variance agree at equal strength.
        """
        seats = self.seats.astype(np.float64)
        return 2.0 / seats if self.outcome_type == "single_loser" else 3.0 / (seats + 1.0)


class Collector:
    """Takes deals as they come and sums them up on demand; a deal of k seats is kept in 8k + 4 bytes."""

    def __init__(self, outcome_type: OutcomeType) -> None:
        self._outcome_type: OutcomeType = outcome_type
        self._bots: dict[str, int] = {}
        self._decks: dict[str, int] = {}
        self._rows: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))

    def add(self, deals: Iterable[RatedDeal]) -> None:
        """Take deals of one pool.

        Raises:
            ValueError: a deal has no bots, or not one place for each.
        """
        bots, decks = self._bots, self._decks
        for deal in deals:
            seats = len(deal.bots)
            if not 0 < seats == len(deal.places):
                raise ValueError(f"a deal of deck {deal.deck!r} has {seats} bots and {len(deal.places)} places")
            deck = decks.setdefault(deal.deck, len(decks))
            self._rows[seats].fromlist([deck, *[bots.setdefault(b, len(bots)) for b in deal.bots], *deal.places])

    def duels(self) -> Duels:
        """Return the duels of all deals taken so far."""
        n, outcome_type = len(self._bots), self._outcome_type
        bot_ranks, deck_ranks = _ranks(self._bots), _ranks(self._decks)
        deals, wins = np.zeros(n, np.int64), np.zeros(n, np.int64)
        codes = [np.empty(0, np.int64)]
        base = max(self._rows, default=0) + 1
        for seats, flat in self._rows.items():
            rows = np.frombuffer(flat, np.intc).reshape(-1, 2 * seats + 1)
            bots, places = bot_ranks[rows[:, 1 : seats + 1]], rows[:, seats + 1 :]
            deals += _appearances(bots, n)
            wins += _appearances(np.where(_won(places, outcome_type), bots, n), n)
            for where, low, high, halves in _duels(bots, places, outcome_type):
                deck = deck_ranks[rows[where, 0]]
                codes.append((((deck * n + low) * n + high) * base + seats) * 3 + halves)
        columns = _sum_codes(codes, n, base)
        return Duels(outcome_type, tuple(BotHash(b) for b in sorted(self._bots)), deals, wins, *columns)


def collect(deals: Iterable[RatedDeal], outcome_type: OutcomeType) -> Duels:
    """Return the duels of a stream of deals."""
    collector = Collector(outcome_type)
    collector.add(deals)
    return collector.duels()


def _ranks(numbers: Mapping[str, int]) -> Longs:
    """Return for each number the place of its name in sorted order."""
    ranks = np.empty(len(numbers), np.int64)
    ranks[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    return ranks


def _won(places: Ints, outcome_type: OutcomeType) -> Bools:
    first: Bools = places == 1
    if outcome_type == "ranking":
        first &= first.sum(axis=1, keepdims=True) == 1
    else:
        first &= ~first.all(axis=1, keepdims=True)
    return first


def _appearances(bots: Longs, n: int) -> Longs:
    """Count for each bot below n the rows that hold it, once or more often."""
    rows = np.sort(bots, axis=1)
    fresh = np.ones(rows.shape, np.bool_)
    fresh[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return np.bincount(rows[fresh], minlength=n + 1)[:n]


def _duels(bots: Longs, places: Ints, outcome_type: OutcomeType) -> Iterator[tuple[Longs, Longs, Longs, Longs]]:
    """Yield for each pair of seats the rows with a duel, the lower bot, the higher bot, and the lower's half points."""
    draw = (places == places[:, :1]).all(axis=1)
    for a, b in combinations(range(bots.shape[1]), 2):
        informative = bots[:, a] != bots[:, b]  # nobody learns from meeting itself
        if outcome_type == "single_loser":
            informative &= (places[:, a] != places[:, b]) | draw
        where = np.flatnonzero(informative)
        one, two = bots[where, a], bots[where, b]
        better = np.sign(places[where, b] - places[where, a]) * np.sign(two - one)
        yield where, np.minimum(one, two), np.maximum(one, two), 1 + better


def _sum_codes(parts: list[Longs], n: int, base: int) -> list[Ints]:
    """Sort and sum up duels, each coded (((deck * n + low) * n + high) * base + seats) * 3 + half points of low.

    Empties `parts`: of millions of duels no column should be held twice.

    Returns:
        The columns cluster, low, high, seats, halves, count.
    """
    codes = np.concatenate(parts)
    parts.clear()
    codes.sort()
    halves = (codes % 3).astype(np.int32)
    codes //= 3
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    columns = [np.diff(starts, append=len(codes)).astype(np.int32), np.add.reduceat(halves, starts, dtype=np.int32)]
    keys = codes[starts]
    for radix in (base, n, n):
        keys, digit = np.divmod(keys, max(radix, 1))
        columns.append(digit.astype(np.int32))
    columns.append(np.cumsum(np.diff(keys, prepend=keys[:1]) != 0, dtype=np.int32))
    return columns[::-1]
