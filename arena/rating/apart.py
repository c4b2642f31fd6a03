"""Who is too far above whom to be measured.

Where a bot, or a group of them, took every point from another, no amount of play makes their difference finite: the
likelihood only bounds it from below. Once the bound is high enough, the difference is beyond measure. A deck is one
piece of evidence, however many deals it has: those of one deck are not independent. A point in a hundred deals makes
the difference finite, but to measure it takes 25 times the deals of an even pair, so the same bound holds for those.

Where only the loser of a deal is told, those who never lose have no duels with each other. They are level: no amount
of play tells them apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from arena.rating.certainty import Certainty
from arena.rating.duels import Bools, Floats, Longs
from arena.records import BotHash, RatedDeal

FAR = 400
"""Elo, ten wins to a loss: how far bots are apart at least that are beyond measure."""
DECKS = math.ceil(math.log(0.025) / math.log(10 / 11))
"""Decks without a point for the weaker one that say so with 97.5 % confidence: (10/11)^39 is .024."""


class Apart(NamedTuple):
    """What is not measured, for each two bots.

    Attributes:
        above: the first is more than 400 Elo above the second.
        level: they hardly ever have a duel where they sit together, as always others lose; symmetric.
    """

    above: Bools
    level: Bools

    @property
    def settled(self) -> Bools:
        """Tell which pairs are told apart or level."""
        found: Bools = self.above | self.above.T | self.level
        return found


def told_apart(
    bots: Sequence[BotHash], elo: Floats, leads: Bools, certainty: Certainty, deals: Iterable[RatedDeal]
) -> Apart:
    """Tell of which bots of a pool the deals say that they are beyond measure.

    One is above another if it leads so far by the ratings, or took every point on 39 decks, or if a chain of such leads
    to it. What is told of a bot holds for those that are linked to it by results and are rated no lower; of whom it is
    told, no higher.

    Args:
        bots: once all is told of these, no more deals are read; others of the pool may be links between them.
        elo: of all bots of the pool, in the order of its certainty, as the answer.
        leads: who leads by more than 400 Elo with its error bar taken off.
        certainty: of the pool.
        deals: all of the pool.
    """
    index = {bot: i for i, bot in enumerate(certainty.bots)}
    group = np.zeros(len(index), np.int64)
    for number, members in enumerate(certainty.groups):
        group[list(members)] = number
    apart = np.not_equal.outer(group, group)
    no_weaker = ~apart & np.greater_equal.outer(elo, elo)
    chosen = [index[bot] for bot in bots if bot in index]
    beaten = leads.copy()
    told = Apart(_closed(no_weaker, beaten), np.zeros_like(beaten))
    if not apart[np.ix_(chosen, chosen)].any():
        return told
    for winner, loser, has_won in _pairs(deals, index, group):
        if has_won:
            beaten[winner, loser] = True
            told = told._replace(above=_closed(no_weaker, beaten))
        else:
            told.level[[winner, loser], [loser, winner]] = True
        if not (apart & ~told.settled)[np.ix_(chosen, chosen)].any():
            break
    return told


def _pairs(deals: Iterable[RatedDeal], index: Mapping[BotHash, int], group: Longs) -> Iterator[tuple[int, int, bool]]:
    """Yield two bots of different groups, once the first has beaten the other on enough decks or they are level.

    Points between groups went one way only. Whoever is level had no duel, since a tie would link them.
    """
    won: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    level: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    told: set[tuple[int, int]] = set()
    for deal in deals:
        for (one, first), (other, second) in combinations(zip(deal.bots, deal.places, strict=True), 2):
            i, j = index[one], index[other]
            pair = (i, j) if first < second or (first == second and i < j) else (j, i)
            if group[i] == group[j] or pair in told:
                continue
            has_won = first != second
            (won if has_won else level)[pair].add(deal.deck)
            if len(won[pair]) >= DECKS if has_won else _is_level(level[pair], won[pair] | won[pair[::-1]]):
                told.add(pair)
                yield *pair, has_won


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
