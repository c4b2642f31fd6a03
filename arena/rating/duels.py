"""From deals to duels: who did better against whom, on which deck, as integers.

A deal of k seats is k(k-1)/2 duels, counted in half points: 2 win, 1 tie, 0 loss. In a `single_loser` game the ties
among those who did not lose carry no information (without dropping them no bot could be rated more than 120 Elo above
its opponents at four seats) and are dropped; where all places are equal nobody lost, and each duel is a tie.

Everything here is counted in integers and ordered by name, so that the order in which deals arrive can reach the
floating-point work that follows only as the order in which blocks of decks are added up, which rounding hides.
"""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations, islice
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from arena.records import BotHash, RatedDeal
from arena.rules import OutcomeType

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_PORTION = 8192  # deals that are summed up at once
_BLOCK_ROWS = 1 << 15  # few enough to be unpacked in little memory, and many enough to be packed well


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


class _Rows(NamedTuple):
    """Columns of duels as a collector keeps them; bots by the order in which they came, decks by their ids."""

    deck: npt.NDArray[np.uint64]
    low: Longs
    high: Longs
    seats: Longs
    halves: Longs
    amount: Longs


_NO_ROWS = _Rows(np.zeros(0, np.uint64), *(np.zeros(0, np.int64) for _ in range(5)))


class _Block(NamedTuple):
    """Rows that are packed: all duels of some decks.

    Attributes:
        decks: their ids, ascending.
        packed: the other columns, the deck as its place in `decks`.
    """

    decks: npt.NDArray[np.uint64]
    packed: bytes


class Collector:
    """Takes deals as they come and sums them up on demand.

    Duels are kept in blocks of whole decks, packed to about a byte each; whatever is computed from them is computed
    block by block, so that a million deals need little memory.

    Attributes:
        taken: how many deals.
    """

    def __init__(self, outcome_type: OutcomeType) -> None:
        self.taken = 0
        self._outcome_type: OutcomeType = outcome_type
        self._bots: dict[str, int] = {}
        self._deals = self._wins = np.zeros(0, np.int64)
        self._blocks: list[_Block] = []
        self._open: list[_Rows] = []
        self._sealed = _NO_ROWS  # all blocks, summed over their decks

    def add(self, deals: Iterable[RatedDeal]) -> None:
        """Take deals of one pool.

        Raises:
            ValueError: a deal has no bots, or not one place for each.
        """
        stream = iter(deals)
        while portion := list(islice(stream, _PORTION)):
            self._take(portion)
            self.taken += len(portion)

    def _take(self, portion: list[RatedDeal]) -> None:
        bots, decks = self._bots, dict[str, int]()
        flat: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
        for deal in portion:
            seats = len(deal.bots)
            if not 0 < seats == len(deal.places):
                raise ValueError(f"a deal of deck {deal.deck!r} has {seats} bots and {len(deal.places)} places")
            deck = decks.setdefault(deal.deck, len(decks))
            flat[seats].fromlist([deck, *[bots.setdefault(b, len(bots)) for b in deal.bots], *deal.places])
        n, ids = len(bots), np.array([_deck_id(name) for name in decks], np.uint64)
        self._deals, self._wins = (np.pad(sums, (0, n - len(sums))) for sums in (self._deals, self._wins))
        self._open_again(ids)
        for seats, numbers in flat.items():
            rows = np.frombuffer(numbers, np.intc).reshape(-1, 2 * seats + 1)
            seated, places = rows[:, 1 : seats + 1].astype(np.int64), rows[:, seats + 1 :]
            self._deals += _appearances(seated, n)
            self._wins += _appearances(np.where(_won(places, self._outcome_type), seated, n), n)
            for where, low, high, halves in _duels(seated, places, self._outcome_type):
                same = np.ones(len(where), np.int64)
                self._open.append(_Rows(ids[rows[where, 0]], low, high, seats * same, halves, same))
        if sum(len(rows.deck) for rows in self._open) >= _BLOCK_ROWS:
            self._open = [_summed(self._open)]
            if len(self._open[0].deck) >= _BLOCK_ROWS:
                self._seal(self._open.pop())

    def _seal(self, rows: _Rows) -> None:
        self._blocks.append(_packed(rows))
        self._sealed = _summed([self._sealed, _of_one_deck(rows)])

    def _open_again(self, ids: npt.NDArray[np.uint64]) -> None:
        """Open the blocks that hold any of these decks, so that all duels of a deck stay in one."""
        late = [block for block in self._blocks if np.isin(ids, block.decks).any()]
        if not late:
            return
        kept = [block for block in self._blocks if not any(block is one for one in late)]
        self._blocks, self._sealed = [], _NO_ROWS
        for block in kept:
            self._seal(_unpacked(block))
        self._open += map(_unpacked, late)

    def blocks(self) -> Iterator[Duels]:
        """Yield the duels of all deals taken so far in parts that hold whole decks; there is at least one."""
        for block in self._blocks:
            yield self._table(_unpacked(block))
        self._open = [_summed(self._open)]
        if len(self._open[0].deck) or not self._blocks:
            yield self._table(self._open[0])

    def total(self) -> Duels:
        """Return the duels of all deals taken so far, summed over all decks as if they were one."""
        return self._table(_summed([self._sealed, *map(_of_one_deck, self._open)]))

    def _table(self, rows: _Rows) -> Duels:
        """Return rows, which are in the order of their decks, with the bots in ascending order."""
        n, base = len(self._bots), int(rows.seats.max(initial=0)) + 1
        ranks = _ranks(self._bots)
        one, two = ranks[rows.low], ranks[rows.high]
        halves = np.where(one < two, rows.halves, 2 * rows.amount - rows.halves)
        low, high = np.minimum(one, two), np.maximum(one, two)
        cluster = np.maximum(np.cumsum(rows.deck != np.roll(rows.deck, 1)) - 1, 0)
        order = np.argsort(((cluster * n + low) * n + high) * base + rows.seats)
        columns = (column[order].astype(np.int32) for column in (cluster, low, high, rows.seats, halves, rows.amount))
        deals, wins = np.empty_like(self._deals), np.empty_like(self._wins)
        deals[ranks], wins[ranks] = self._deals, self._wins
        names = tuple(BotHash(bot) for bot in sorted(self._bots))
        return Duels(self._outcome_type, names, deals, wins, *columns)


def collect(deals: Iterable[RatedDeal], outcome_type: OutcomeType) -> Collector:
    """Return a collector of a stream of deals."""
    collector = Collector(outcome_type)
    collector.add(deals)
    return collector


def joined(blocks: Sequence[Duels]) -> Duels:
    """Return blocks as one table."""
    if len(blocks) == 1:
        return blocks[0]
    starts = np.cumsum([0, *(block.clusters for block in blocks)])
    columns = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("low", "high", "seats", "halves", "count")
    }
    cluster = np.concatenate([block.cluster + start for block, start in zip(blocks, starts, strict=False)])
    return msgspec.structs.replace(blocks[0], cluster=cluster.astype(np.int32), **columns)


def _deck_id(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")


def _summed(parts: Sequence[_Rows]) -> _Rows:
    """Return rows with those of the same deck, pair and number of seats added up, in their order."""
    columns = [np.concatenate(column) for column in zip(_NO_ROWS, *parts, strict=True)]
    keys = columns[:4]
    order = np.lexsort(keys[::-1])
    keys = [key[order] for key in keys]
    is_new = np.zeros(len(order), np.bool_)
    is_new[:1] = True
    for key in keys:
        is_new[1:] |= key[1:] != key[:-1]
    starts = np.flatnonzero(is_new)
    sums = [np.add.reduceat(amounts[order], starts) if len(starts) else amounts for amounts in columns[4:]]
    return _Rows(*(key[starts] for key in keys), *sums)


def _of_one_deck(rows: _Rows) -> _Rows:
    """Return rows summed over their decks."""
    return _summed([rows._replace(deck=np.zeros_like(rows.deck))])


def _packed(rows: _Rows) -> _Block:
    decks, places = np.unique(rows.deck, return_inverse=True)
    columns = [np.diff(places, prepend=0), *rows[1:]]
    return _Block(decks, zlib.compress(b"".join(column.astype(np.int32).tobytes() for column in columns)))


def _unpacked(block: _Block) -> _Rows:
    columns = np.frombuffer(zlib.decompress(block.packed), np.int32).reshape(len(_Rows._fields), -1).astype(np.int64)
    return _Rows(block.decks[np.cumsum(columns[0])], *columns[1:])


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
