"""Which tables tell most about the differences between bots that are not sure enough yet.

The error of a difference shrinks with what is known of it, its information. A duel of i and j adds w p (1 - p) to that
of their difference, w being its weight and p the chance that i wins: close bots tell more than unlike ones, and whoever
has many uncertain differences is worth more than others. How much all variances would shrink by it follows from the
covariance by one update of rank one (Sherman and Morrison), so nothing is fitted while tables are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from arena.luck import Stream
from arena.rating.certainty import NORMAL_95, Certainty
from arena.rating.covariance import ELO, MEAN
from arena.rating.duels import Bools, Floats
from arena.records import BotHash, Rating
from arena.rules import OutcomeType

FEWEST_TABLES = 4
"""Tables of a round at least, so that a few lanes are busy; more are chosen on results that are older by then."""
_UNKNOWN = 400.0**2  # Elo squared, of a bot without an error bar: far above any target, so that it is looked at first


class Known(NamedTuple):
    """What is known of the bots of a tournament, in their order.

    Attributes:
        elo: the mean where nothing is known.
        expected: covariance in Elo squared that results with these strengths have; what is unknown is large.
        seen: the variance of each difference as the decks say, infinite where a bot has no error bar.
        worth: of a deal, in deals of decks of their own.
    """

    elo: Floats
    expected: Floats
    seen: Floats
    worth: float


def known_of(bots: Sequence[BotHash], ratings: Sequence[Rating], certainty: Certainty | None) -> Known:
    """Return what a pool tells of some bots.

    Args:
        bots: those that are to be compared, rated or not.
        ratings: of the pool.
        certainty: of the pool; None if it has not been rated yet.
    """
    n = len(bots)
    known = Known(np.full(n, MEAN), _UNKNOWN * np.eye(n), np.full((n, n), math.inf), 1.0)
    if certainty is None:
        return known
    index, rated = {bot: i for i, bot in enumerate(certainty.bots)}, {rating.bot: rating for rating in ratings}
    group = {i: number for number, members in enumerate(certainty.groups) for i in members}
    worth = certainty.design_effect or 1.0
    there = [i for i, bot in enumerate(bots) if bot in index]
    inner = [index[bots[i]] for i in there]
    known.elo[there] = [rated[bots[i]].elo for i in there]
    linked = np.equal.outer([group[i] for i in inner], [group[i] for i in inner])
    # Nothing but the prior relates groups to each other, so that each may be off as a whole.
    known.expected[np.ix_(there, there)] = _square(certainty.naive, inner) / worth + _UNKNOWN * linked
    unsure = np.array([rated[bots[i]].error is None for i in there], np.bool_)
    seen = _variances(_square(certainty.covariance, inner))
    known.seen[np.ix_(there, there)] = np.where(unsure[:, None] | unsure | ~linked, math.inf, seen)
    return known._replace(worth=worth)


def _square(triangle: Sequence[float], chosen: Sequence[int]) -> Floats:
    """Return the part of a matrix that belongs to some bots."""
    size = math.isqrt(2 * len(triangle))
    whole = np.zeros((size, size))
    whole[np.tril_indices(size)] = triangle
    found: Floats = (whole + np.tril(whole, -1).T)[np.ix_(chosen, chosen)]
    return found


def widest(known: Known) -> tuple[float, int, int]:
    """Return half the width of the widest 95 % interval of a difference, in Elo, and whose; infinite if unknown.

    An interval is at least as wide as it has to be expected: what a few decks say may be too sure.
    """
    widths = NORMAL_95 * np.sqrt(np.maximum(known.seen, _variances(known.expected)))
    np.fill_diagonal(widths, -1.0)
    i, j = divmod(int(np.argmax(widths)), len(widths))
    return float(widths[i, j]), i, j


def choose_tables(
    known: Known, target: float, seats: int, deals: int, outcome_type: OutcomeType, stream: Stream
) -> tuple[tuple[int, ...], ...]:
    """Return the tables of the next round, each of other bots; empty if all error bars are within a target.

    Each is the one that, after those before it, should shrink the variances of all differences that are too wide
    most, together. A bot may sit at several.

    Args:
        target: half the width of a 95 % interval of a difference, in Elo.
        seats: of a table; not more than there are bots.
        deals: of a match.
        stream: of the lot among equally good ones.
    """
    drawn = stream.shuffled(range(len(known.elo)))
    order = np.array(drawn)
    covariance, seen = known.expected[np.ix_(order, order)], known.seen[np.ix_(order, order)]
    links = _links(known.elo[order], seats, outcome_type) * (deals * known.worth)
    variance = (target / NORMAL_95) ** 2
    free = np.triu(np.ones(links.shape, np.bool_), 1)
    tables: list[tuple[int, ...]] = []
    while len(tables) < max(FEWEST_TABLES, len(drawn) // seats) and free.any():
        wide = _variances(covariance) > variance
        if not tables:  # what is seen is not what is expected: one look is a step, whatever it should bring
            wide |= seen > variance
        np.fill_diagonal(wide, False)
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
