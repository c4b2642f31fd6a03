"""Who is too far above whom to be measured.

Where a bot, or a group of them, took every point from another, no amount of play makes their difference finite: the
likelihood only bounds it from below. Once the bound is high enough, the difference is beyond measure. A deck is one
piece of evidence, however many deals it has: those of one deck are not independent.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from arena.rating.certainty import Certainty
from arena.rating.duels import Bools, Longs
from arena.records import BotHash, RatedDeal

FAR = 400
"""Elo, ten wins to a loss: how far bots are apart at least that are beyond measure."""
DECKS = math.ceil(math.log(0.025) / math.log(10 / 11))
"""Decks without a point for the weaker one that say so with 97.5 % confidence: (10/11)^39 is .024."""


def told_apart(
    bots: Sequence[BotHash], elo: Mapping[BotHash, float], certainty: Certainty, deals: Iterable[RatedDeal]
) -> Bools:
    """Tell for each two bots whether the deals say that the first is more than 400 Elo above the second.

    They do if the one took every point on 39 decks, or from one to whom a chain of such leads. What is told of a bot
    holds for those that are linked to it by results and are rated no lower; of whom it is told, no higher.

    Args:
        bots: that the answer is about; others of the pool may be links between them.
        elo: of all bots of the pool.
        certainty: of the pool.
        deals: all of the pool. They are read until nothing is left to be told.
    """
    order = certainty.bots
    index = {bot: i for i, bot in enumerate(order)}
    group = np.zeros(len(order), np.int64)
    for number, members in enumerate(certainty.groups):
        group[list(members)] = number
    rated = [bot for bot in bots if bot in index]
    chosen = np.ix_(*[[index[bot] for bot in rated]] * 2)
    apart = np.not_equal.outer(group, group)
    strength = np.array([elo[bot] for bot in order])
    no_weaker = ~apart & np.greater_equal.outer(strength, strength)
    beaten = np.zeros(apart.shape, np.bool_)
    above = beaten.copy()
    open_pairs = apart[chosen].any()
    for winner, loser in _swept(deals, index, group) if open_pairs else ():
        beaten[winner, loser] = True
        above = _closed(no_weaker, beaten)
        if not (apart & ~above & ~above.T)[chosen].any():
            break
    places = [i for i, bot in enumerate(bots) if bot in index]
    found = np.zeros((len(bots), len(bots)), np.bool_)
    found[np.ix_(places, places)] = above[chosen]
    return found


def _swept(deals: Iterable[RatedDeal], index: Mapping[BotHash, int], group: Longs) -> Iterable[tuple[int, int]]:
    """Yield winner and loser of each pair of different groups, once they have met on enough decks.

    Points between groups went one way only, and whoever is level there had no duel: a tie would be a link.
    """
    decks: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for deal in deals:
        for (one, first), (other, second) in combinations(zip(deal.bots, deal.places, strict=True), 2):
            i, j = index[one], index[other]
            if group[i] == group[j] or first == second:
                continue
            pair = (i, j) if first < second else (j, i)
            met = decks[pair]
            if len(met) < DECKS:
                met.add(deal.deck)
                if len(met) == DECKS:
                    yield pair


def _closed(no_weaker: Bools, beaten: Bools) -> Bools:
    """Return who is above whom by chains."""
    linked = no_weaker.astype(np.float32)
    above = (linked @ beaten @ linked) > 0
    for _ in range(len(above).bit_length()):  # squaring doubles the length of the chains
        step = above.astype(np.float32)
        above = above | ((step @ step) > 0)
    return above
