"""Who is too far above whom to be measured.

Where a bot, or a group of them, took every point from another, no amount of play makes their difference finite: the
likelihood only bounds it from below. Once the bound is high enough, the difference is beyond measure. A deck is one
piece of evidence, however many deals it has: those of one deck are not independent. A point in a hundred deals makes
the difference finite, but to measure it takes 25 times the deals of an even pair, so the same bound holds for those.

What such results tell of others, along chains or by the ratings, is believed of two bots only once they have met, and
only if what they did there fits: results may go round in circles, and no rating describes those. There a bot that took
every point of another on as many decks has swept it, and no more is told of the two.

Where only the loser of a deal is told, those who never lose have no duels with each other. They are level: no amount
of play tells them apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from arena.rating.certainty import NORMAL_95
from arena.rating.duels import Bools, Floats
from arena.records import BotHash, RatedDeal

FAR = 400
"""Elo, ten wins to a loss: how far bots are apart at least that are beyond measure."""
DECKS = math.ceil(math.log(0.025) / math.log(10 / 11))
"""Decks without a point for the weaker one that say so with 97.5 % confidence: (10/11)^39 is .024."""
_SHARE = 1 / 11  # of the points that the weaker one takes at most


class Apart(NamedTuple):
    """What is not measured, for each two bots.

    Attributes:
        above: the first is more than 400 Elo above the second, and what they did where they met fits.
        level: they hardly ever have a duel where they sit together, as always others lose; symmetric.
        unmet: the first would be above the second by what others did, but they have never sat together.
        swept: the first took every point of the second on 39 decks, but results of others rate them closer together,
            or the other way round.
    """

    above: Bools
    level: Bools
    unmet: Bools
    swept: Bools

    @property
    def settled(self) -> Bools:
        """Tell which pairs are told apart, level or swept."""
        found: Bools = self.above | self.above.T | self.level | self.swept | self.swept.T
        return found


def tiers_of(elo: Floats, above: Bools) -> list[list[int]]:
    """Return the bots, the best first, cut wherever all before are above all that follow."""
    order = np.argsort(-elo, kind="stable").tolist()
    cuts = [i for i in range(1, len(order)) if above[np.ix_(order[:i], order[i:])].all()]
    return [order[start:stop] for start, stop in pairwise([0, *cuts, len(order)])]


def told_apart(
    bots: Sequence[BotHash],
    pool: Sequence[BotHash],
    elo: Floats,
    leads: Bools,
    linked: Bools,
    deals: Iterable[RatedDeal],
) -> Apart:
    """Tell of which bots of a pool the deals say that they are beyond measure, in the order of the pool.

    One is above another if it leads so far by the ratings, or took every point on 39 decks, or if a chain of such leads
    to it. What is told of a bot holds for those that are linked to it by results and are rated no lower; of whom it is
    told, no higher. Nothing is told of two bots against what they did where they met, and nothing of linked ones if
    others of the bots stand between: those tell the difference at no great expense.

    Args:
        bots: those that are looked at; others of the pool may be links between them.
        pool: all bots that have been rated.
        elo: of the pool.
        leads: who leads by more than 400 Elo with its error bar taken off.
        linked: who is in the same group.
        deals: all of the pool, read only as far as they can tell something.
    """
    index = {bot: i for i, bot in enumerate(pool)}
    chosen = [index[bot] for bot in bots if bot in index]
    here = np.ix_(chosen, chosen)
    cut = chosen if len(chosen) == len(bots) else []  # a bot that is not known may stand anywhere
    no_weaker = linked & np.greater_equal.outer(elo, elo)
    above = _closed(no_weaker, leads)
    by_lead = bool((~_between(linked, elo, above | ~linked, cut) & linked)[here].any())
    direct = _Direct(index, linked)
    if by_lead or not linked[here].all():
        for has_won in direct.read(deals):
            above = _closed(no_weaker, leads | direct.beaten) if has_won else above
            if not by_lead and (linked | direct.level | ((above | above.T) & direct.met))[here].all():
                break
    refuted = direct.refuted()
    above = _closed(no_weaker, (leads | direct.beaten) & ~refuted) & ~refuted
    above &= ~_between(linked, elo, above, cut)
    swept = (
        direct.swept() & ~above & by_lead
    )  # else not all has been read, and play tells how far linked ones are apart
    return Apart(above & direct.met, direct.level, above & ~direct.met, swept)


class _Direct:
    """What bots did in the deals in which they sat together.

    Attributes:
        met: who did; symmetric.
        beaten: the first took every point of the second, of another group, on enough decks.
        level: those of different groups that hardly ever have a duel; symmetric.
    """

    def __init__(self, index: Mapping[BotHash, int], linked: Bools) -> None:
        self.met, self.beaten, self.level = np.zeros((3, *linked.shape), np.bool_)
        self._index = index
        self._linked: list[list[bool]] = linked.tolist()
        self._points: defaultdict[tuple[int, int], float] = defaultdict(float)
        self._won: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        self._level: defaultdict[tuple[int, int], set[str]] = defaultdict(set)

    def read(self, deals: Iterable[RatedDeal]) -> Iterator[bool]:
        """Read deals; stop whenever an attribute has changed, and tell whether it is who has beaten whom."""
        met = set[tuple[int, int]]()
        for deal in deals:
            all_even = len(set(deal.places)) == 1
            for (one, first), (other, second) in combinations(zip(deal.bots, deal.places, strict=True), 2):
                i, j = self._index[one], self._index[other]
                pair = (i, j) if first < second or (first == second and i < j) else (j, i)
                has_duel = first != second
                self._points[pair] += 1.0 if has_duel else 0.5 * all_even
                self._points[pair[::-1]] += 0.0 if has_duel else 0.5 * all_even
                if pair not in met:
                    met |= {pair, pair[::-1]}
                    self.met[i, j] = self.met[j, i] = True
                    yield False
                if self._is_told(pair, deal.deck, has_duel):
                    yield has_duel

    def _is_told(self, pair: tuple[int, int], deck: str, has_duel: bool) -> bool:
        """Tell whether a deck is the one with which the first has beaten the other or they are level.

        Points between groups went one way only. Whoever is level had no duel, since a tie would link them.
        """
        told = self.beaten if has_duel else self.level
        if told[pair]:
            return False
        won, level = self._won[pair], self._level[pair]
        (won if has_duel else level).add(deck)
        if self._linked[pair[0]][pair[1]]:
            return False
        if has_duel:
            self.beaten[pair] = len(won) >= DECKS
        else:
            self.level[pair] = self.level[pair[::-1]] = _is_level(level, won | self._won[pair[::-1]])
        return bool(told[pair])

    def swept(self) -> Bools:
        """Tell who took every point of whom on enough decks."""
        found: Bools = np.zeros_like(self.met)
        for pair, decks in self._won.items():
            found[pair] = len(decks) >= DECKS and not self._points[pair[::-1]]
        return found

    def refuted(self) -> Bools:
        """Tell whom points of the second speak against: more than ten wins to a loss make likely, of independent deals.

        A single deal or a match without a point for the first are enough.
        """
        found: Bools = np.zeros_like(self.met)
        for (i, j), lost in self._points.items():
            duels = lost + self._points.get((j, i), 0.0)
            found[j, i] = lost > duels * _SHARE + NORMAL_95 * math.sqrt(duels * _SHARE * (1 - _SHARE))
        return found


def _between(linked: Bools, elo: Floats, above: Bools, cut: list[int]) -> Bools:
    """Tell which bots are linked and in the same tier, where bots are cut into tiers by who is above whom."""
    tier = np.zeros(len(elo), np.int64)
    for number, members in enumerate(tiers_of(elo[cut], above[np.ix_(cut, cut)])):
        tier[[cut[i] for i in members]] = number
    found: Bools = linked & np.equal.outer(tier, tier)
    return found


def _is_level(together: set[str], duels: set[str]) -> bool:
    """Tell whether bots have a duel on at most one of forty decks."""
    return len(together - duels) >= DECKS * (1 + len(duels))


def _closed(no_weaker: Bools, beaten: Bools) -> Bools:
    """Return who is above whom by chains."""
    linked = no_weaker.astype(np.float32)
    above = (linked @ beaten @ linked) > 0
    for _ in range(len(above).bit_length()):  # squaring doubles the length of the chains
        step = above.astype(np.float32)
        above = above | ((step @ step) > 0)
    return above
