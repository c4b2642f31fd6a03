"""Which tables tell most about the differences between bots that are not sure enough yet.

The error of a difference shrinks with what is known of it, its information. A duel of i and j adds w p (1 - p) to that
of their difference, w being its weight and p the chance that i wins: close bots tell more than unlike ones, and whoever
has many uncertain differences is worth more than others. How much all variances would shrink by it follows from the
covariance by one update of rank one (Sherman and Morrison), so nothing is fitted while tables are chosen.

Whoever is so far above others that it would take too many deals to say how far is told apart, and not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from arena.luck import Stream
from arena.rating.apart import FAR, Apart, tiers_of, told_apart
from arena.rating.certainty import NORMAL_95, Certainty
from arena.rating.covariance import ELO, MEAN
from arena.rating.duels import Bools, Floats
from arena.records import BotHash, RatedDeal, Rating
from arena.rules import OutcomeType

FEWEST_TABLES = 4
"""Tables of a round at least, so that a few lanes are busy; more are chosen on results that are older by then."""
ENOUGH_DECKS = 100
"""Decks of a bot from which on they are believed even if they are surer than had to be expected. Versions that differ
on one deck in twenty have then shown it (all but .95^100, .6 %); with 30 decks every fifth such pair would not have."""
_UNKNOWN = 400.0**2  # Elo squared, of a bot without an error bar: far above any target, so that it is looked at first


class Known(NamedTuple):
    """What is known of the bots of a tournament, in their order.

    Attributes:
        elo: the mean where nothing is known.
        expected: covariance in Elo squared that results with these strengths have; what is unknown is large.
        variance: of each difference, infinite where a bot has no error bar. It is what the decks say, but with few of
            them no less than is expected: they may be too sure.
        apart: whose difference no play measures.
        worth: of a deal, in deals of decks of their own.
    """

    elo: Floats
    expected: Floats
    variance: Floats
    apart: Apart
    worth: float

    @property
    def measured(self) -> Bools:
        """Tell which differences are to be measured."""
        unmet = self.apart.unmet | self.apart.unmet.T
        found: Bools = ~(self.apart.settled | unmet | np.eye(len(self.elo), dtype=np.bool_))
        return found

    def tiers(self) -> list[list[int]]:
        """Return the bots, the best first, cut wherever all before are beyond measure above all that follow."""
        return tiers_of(self.elo, self.apart.above)


def known_of(
    bots: Sequence[BotHash],
    ratings: Sequence[Rating],
    certainty: Certainty | None,
    deals: Iterable[RatedDeal] = (),
) -> Known:
    """Return what a pool tells of some bots.

    Args:
        bots: those that are to be compared, rated or not.
        ratings: of the pool.
        certainty: of the pool; None if it has not been rated yet.
        deals: of the pool, read only where some of these bots may be beyond measure.
    """
    n = len(bots)
    unknown, nobody = np.full((n, n), math.inf), Apart(*np.zeros((4, n, n), np.bool_))
    known = Known(np.full(n, MEAN), _UNKNOWN * np.eye(n), unknown, nobody, 1.0)
    if certainty is None:
        return known
    index, rated = {bot: i for i, bot in enumerate(certainty.bots)}, {rating.bot: rating for rating in ratings}
    there = [i for i, bot in enumerate(bots) if bot in index]
    inner = [index[bots[i]] for i in there]
    here, chosen = np.ix_(there, there), np.ix_(inner, inner)
    elo = np.array([rated[bot].elo for bot in certainty.bots])
    linked = _linked(certainty)
    worth = certainty.design_effect or 1.0
    # Nothing but the prior relates groups to each other, so that each may be off as a whole.
    expected = _square(certainty.naive) / worth + _UNKNOWN * linked
    unsure = np.array([rated[bot].error is None for bot in certainty.bots], np.bool_)
    few = np.array(certainty.decks) < ENOUGH_DECKS
    variance = _variances(_square(certainty.covariance))
    variance = np.where(few[:, None] | few, np.maximum(variance, _variances(expected)), variance)
    variance = np.where(unsure[:, None] | unsure | ~linked, math.inf, np.maximum(variance, 0.0))
    leads = elo[:, None] - elo - NORMAL_95 * np.sqrt(variance) > FAR
    known.elo[there], known.expected[here], known.variance[here] = elo[inner], expected[chosen], variance[chosen]
    told = told_apart(bots, certainty.bots, elo, leads, linked, deals)
    for mine, found in zip(known.apart, told, strict=True):
        mine[here] = found[chosen]
    return known._replace(worth=worth)


def _linked(certainty: Certainty) -> Bools:
    """Tell which bots are in the same group."""
    group = np.empty(len(certainty.bots), np.int64)
    for number, members in enumerate(certainty.groups):
        group[list(members)] = number
    found: Bools = np.equal.outer(group, group)
    return found


def _square(triangle: Sequence[float]) -> Floats:
    """Return a symmetric matrix of which the lower triangle is given."""
    size = math.isqrt(2 * len(triangle))
    whole = np.zeros((size, size))
    whole[np.tril_indices(size)] = triangle
    found: Floats = whole + np.tril(whole, -1).T
    return found


def widest(known: Known) -> tuple[float, int, int]:
    """Return half the width of the widest 95 % interval of a difference that is measured, in Elo, and whose.

    It is infinite if unknown, as it is of those that are to meet yet, and 0 if no difference is measured.
    """
    variance = np.where(known.apart.unmet, math.inf, known.variance)
    widths = NORMAL_95 * np.sqrt(np.where(known.measured | known.apart.unmet, variance, 0.0))
    i, j = divmod(int(np.argmax(widths)), len(widths))
    return float(widths[i, j]), i, j


def choose_tables(
    known: Known, target: float, seats: int, deals: int, outcome_type: OutcomeType, stream: Stream
) -> tuple[tuple[int, ...], ...]:
    """Return the tables of the next round, each of other bots; empty if all error bars are within a target.

    First those who are told apart by what others did meet once. Each other table is the one that, after those before
    it, should shrink the variances of all differences that are too wide most, together. A bot may sit at several.

    Args:
        target: half the width of a 95 % interval of a difference, in Elo.
        seats: of a table; not more than there are bots.
        deals: of a match.
        stream: of the lot among equally good ones.
    """
    drawn = stream.shuffled(range(len(known.elo)))
    there = np.ix_(drawn, drawn)
    covariance, measured, told = known.expected[there], known.measured[there], known.variance[there]
    unknown = measured & np.isinf(told)
    # A difference that the decks tell better or worse than expected goes on being told so.
    scale = np.divide(told, _variances(covariance), out=np.ones_like(told), where=measured & ~unknown)
    links = _links(known.elo[drawn], seats, outcome_type) * (deals * known.worth)
    variance = (target / NORMAL_95) ** 2
    free = np.triu(measured)
    most = max(FEWEST_TABLES, len(drawn) // seats)
    tables = _meetings(known.apart.unmet[there], known.elo[drawn], seats, most)
    while len(tables) < most and free.any():
        wide = measured & (scale * _variances(covariance) > variance)
        if not tables:  # one look is a step, whatever it should bring
            wide |= unknown
        if not wide.any():
            break
        gains = _gains(covariance, links, wide)
        best = int(np.argmax(np.where(free, gains, -1.0)))
        pair = divmod(best, len(drawn))
        free[pair] = False
        table = _extended(pair, seats, gains)
        if table not in tables:
            tables.append(table)
            for one, other in combinations(table, 2):
                covariance = _after(covariance, one, other, float(links[one, other]))
    return tuple(tuple(drawn[i] for i in table) for table in tables)


def _meetings(unmet: Bools, elo: Floats, seats: int, most: int) -> list[tuple[int, ...]]:
    """Return tables where bots meet that have not yet, as far as there may be so many.

    Whoever is to meet the weaker one sits down with them, then the best: where only a loser is told, it should be that.
    """
    left, tables = unmet.copy(), list[tuple[int, ...]]()
    while left.any() and len(tables) < most:
        above, below = divmod(int(np.argmax(left)), len(left))
        table = [above, below]
        while len(table) < seats:
            worth = elo + np.where(left[:, below], np.ptp(elo) + 1.0, 0.0)
            worth[table] = -math.inf
            table.append(int(np.argmax(worth)))
        left[np.ix_(table, table)] = False
        tables.append(tuple(sorted(table)))
    return tables


def _variances(covariance: Floats) -> Floats:
    """Return the variances of all differences."""
    own = np.diag(covariance)
    found: Floats = own[:, None] + own[None, :] - 2 * covariance
    return found


def _links(elo: Floats, seats: int, outcome_type: OutcomeType) -> Floats:
    """Return the information of a duel of each pair, per Elo squared."""
    chance = 1.0 / (1.0 + np.exp((elo[None, :] - elo[:, None]) / ELO))
    weight = 2.0 / seats if outcome_type == "single_loser" else 3.0 / (seats + 1.0)
    links: Floats = weight / ELO**2 * chance * (1.0 - chance)
    return links


def _gains(covariance: Floats, links: Floats, wide: Bools) -> Floats:
    """Return by how much duels of each pair shrink the variances of the wide differences, summed."""
    laplacian = np.diag(wide.sum(axis=1)).astype(np.float64) - wide
    shrunk = _variances(covariance @ laplacian @ covariance)
    gains: Floats = links * shrunk / (1.0 + links * _variances(covariance))
    return gains


def _extended(pair: tuple[int, int], seats: int, gains: Floats) -> tuple[int, ...]:
    """Return a table around a pair: whoever adds most to those who sit there comes next."""
    table = list(pair)
    while len(table) < seats:
        worth = gains[:, table].sum(axis=1)
        worth[table] = -1.0
        table.append(int(np.argmax(worth)))
    return tuple(sorted(table))


def _after(covariance: Floats, i: int, j: int, link: float) -> Floats:
    """Return the covariance once information about one difference has been added."""
    towards = covariance[:, i] - covariance[:, j]
    spread = float(towards[i] - towards[j])
    after: Floats = covariance - np.outer(towards, towards) * (link / (1.0 + link * spread))
    return after
