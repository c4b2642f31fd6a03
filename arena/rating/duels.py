"""From deals to duels: who did better against whom, on which deck, as integers.

A deal of k seats is k(k-1)/2 duels, counted in half points: 2 win, 1 tie, 0 loss. In a `single_loser` game the ties
among those who did not lose carry no information (without dropping them no bot could be rated more than 120 Elo above
its opponents at four seats) and are dropped; where all places are equal nobody lost, and each duel is a tie.

Everything here is counted in integers and ordered by name, so that the order in which deals arrive can reach the
floating-point work that follows only as the order in which blocks of decks are added up, which rounding hides.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from arena.records import BotHash, RatedDeal, RatedMatch
from arena.rules import OutcomeType

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

Rated: TypeAlias = RatedDeal | RatedMatch
"""A deal by itself, or those of a match."""

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


class _Part(NamedTuple):
    """Deals of matches with the same number of seats.

    Attributes:
        tables: by match, the numbers of the bots by place at the table.
        decks: the ids of all decks, those of each match by themselves.
        match: by deal.
        deck: by deal, an index of `decks`.
        places: by deal, by place at the table.
    """

    tables: Longs
    decks: npt.NDArray[np.uint64]
    match: Longs
    deck: Longs
    places: Longs

    def rows(self, outcome_type: OutcomeType) -> Iterator[_Rows]:
        """Yield for each two places at the table the duels of the bots that sit there, summed by deck and match."""
        size, seats = len(self.decks), self.places.shape[1]
        table = np.zeros((size, seats), np.int64)
        table[self.deck] = self.tables[self.match]
        draw = (self.places == self.places[:, :1]).all(axis=1)
        for a, b in combinations(range(seats), 2):
            better = np.sign(self.places[:, b] - self.places[:, a])
            told = draw | (better != 0) if outcome_type == "single_loser" else np.ones_like(draw)
            count = np.bincount(self.deck[told], minlength=size)
            halves = count + np.bincount(self.deck, better * told, size).astype(np.int64)
            where = np.flatnonzero((count > 0) & (table[:, a] != table[:, b]))  # nobody learns from meeting itself
            one, two, amount = table[where, a], table[where, b], count[where]
            points = np.where(one < two, halves[where], 2 * amount - halves[where])
            low, high = np.minimum(one, two), np.maximum(one, two)
            yield _Rows(self.decks[where], low, high, np.full_like(amount, seats), points, amount)


class _Block(NamedTuple):
    """Rows that are packed: all duels of some decks.

    Attributes:
        decks: their ids.
        packed: all columns, of the decks only where another one begins.
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

    def add(self, deals: Iterable[Rated]) -> None:
        """Take deals of one pool.

        Raises:
            ValueError: a deal has no bots, or not one place for each.
        """
        for portion in _portions(one if isinstance(one, RatedMatch) else _alone(one) for one in deals):
            self._take(portion)
            self.taken += sum(len(match.dealt) for match in portion)

    def _take(self, portion: list[RatedMatch]) -> None:
        by_seats = defaultdict[int, list[RatedMatch]](list)
        for match in portion:
            by_seats[len(match.bots)].append(match)
        parts = [self._part(seats, found) for seats, found in by_seats.items()]
        n = len(self._bots)
        self._deals, self._wins = (np.pad(sums, (0, n - len(sums))) for sums in (self._deals, self._wins))
        self._open_again(np.unique(np.concatenate([part.decks for part in parts])))
        for part in parts:
            seated = part.tables[part.match]
            self._deals += _appearances(seated, n)
            self._wins += _appearances(np.where(_won(part.places, self._outcome_type), seated, n), n)
            self._open += part.rows(self._outcome_type)
        if sum(len(rows.deck) for rows in self._open) >= _BLOCK_ROWS:
            left = _summed(self._open)
            while len(left.deck) >= _BLOCK_ROWS:
                end = int(np.searchsorted(left.deck, left.deck[_BLOCK_ROWS - 1], side="right"))
                self._seal(_cut(left, slice(end)))
                left = _cut(left, slice(end, None))
            self._open = [left]

    def _part(self, seats: int, found: list[RatedMatch]) -> _Part:
        """Return matches of one number of seats as arrays, with numbers for bots."""
        numbers = self._bots
        tables = np.array([[numbers.setdefault(bot, len(numbers)) for bot in match.bots] for match in found], np.int64)
        decks = _deck_ids([name for match in found for name in match.decks])
        first_deck = np.cumsum([0, *(len(match.decks) for match in found[:-1])])
        match = np.repeat(np.arange(len(found)), [len(match.dealt) for match in found])
        dealt = np.concatenate([np.array(match.dealt, np.int64) for match in found])
        seating, places = (
            np.frombuffer(b"".join(getattr(match, name) for match in found), np.uint8).reshape(-1, seats)
            for name in ("seatings", "places")
        )
        by_place = np.empty_like(places)
        np.put_along_axis(by_place, seating.astype(np.int64), places, axis=1)
        return _Part(tables, decks, match, first_deck[match] + dealt, by_place.astype(np.int64))

    def _seal(self, rows: _Rows) -> None:
        self._blocks.append(_packed(rows))
        self._sealed = _summed([self._sealed, _of_one_deck(rows)])

    def _open_again(self, ids: npt.NDArray[np.uint64]) -> None:
        """Open the blocks that hold any of these decks, so that all duels of a deck stay in one."""
        late = [block for block in self._blocks if np.isin(ids, block.decks).any()]
        if not late:
            return
        self._blocks = [block for block in self._blocks if not any(block is one for one in late)]
        for rows in map(_unpacked, late):
            self._open.append(rows)
            without = _of_one_deck(rows)
            without = without._replace(halves=-without.halves, amount=-without.amount)
            self._sealed = _summed([self._sealed, without])

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


def _alone(deal: RatedDeal) -> RatedMatch:
    """Return a deal as a match without others, everybody at the place of the seat."""
    return RatedMatch(deal.bots, (deal.deck,), (0,), bytes(range(len(deal.bots))), bytes(deal.places))


def _portions(matches: Iterable[RatedMatch]) -> Iterator[list[RatedMatch]]:
    """Yield matches in lists of some thousand deals."""
    portion, deals = list[RatedMatch](), 0
    for match in matches:
        portion.append(match)
        deals += len(match.dealt)
        if deals >= _PORTION:
            yield portion
            portion, deals = [], 0
    if portion:
        yield portion


def collect(deals: Iterable[Rated], outcome_type: OutcomeType) -> Collector:
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


def _deck_ids(names: Sequence[str]) -> npt.NDArray[np.uint64]:
    digests = b"".join([sha256(name.encode()).digest() for name in names])
    return np.frombuffer(digests, ">u8").reshape(len(names), -1)[:, 0].astype(np.uint64)


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


def _cut(rows: _Rows, where: slice) -> _Rows:
    return _Rows(rows.deck[where], *(column[where] for column in rows[1:]))


def _of_one_deck(rows: _Rows) -> _Rows:
    """Return rows summed over their decks."""
    return _summed([rows._replace(deck=np.zeros_like(rows.deck))])


def _packed(rows: _Rows) -> _Block:
    """Pack rows; decks with the same tables follow each other, so that packing sees what repeats."""
    _, starts, places = np.unique(rows.deck, return_index=True, return_inverse=True)
    tables = np.add.reduceat((rows.low * 1_000_003 + rows.high) * 8191 % 999_999_937, starts)
    order = np.argsort(tables[places], kind="stable")
    sorted_decks = rows.deck[order]
    is_new = sorted_decks != np.roll(sorted_decks, 1)
    is_new[:1] = True
    columns = [is_new, *(column[order] for column in rows[1:])]
    packed = zlib.compress(b"".join(column.astype(np.int32).tobytes() for column in columns), 6)
    return _Block(sorted_decks[is_new], packed)


def _unpacked(block: _Block) -> _Rows:
    columns = np.frombuffer(zlib.decompress(block.packed), np.int32).reshape(len(_Rows._fields), -1).astype(np.int64)
    return _Rows(block.decks[np.cumsum(columns[0]) - 1], *columns[1:])


def _ranks(numbers: Mapping[str, int]) -> Longs:
    """Return for each number the place of its name in sorted order."""
    ranks = np.empty(len(numbers), np.int64)
    ranks[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    return ranks


def _won(places: Longs, outcome_type: OutcomeType) -> Bools:
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
