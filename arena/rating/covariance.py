"""How sure a fit is: error bars that know which deals share a deck.

All deals of a deck, at whatever table, share its luck, so the deck is the unit that is independent. The covariance is
the sandwich H^-1 (sum of u u^T over decks) H^-1 with u the score of a deck and H the information: below 500 decks in
the jackknife form (CR3), whose intervals keep close to their 95 % even at 15 decks, above times G / (G - 1) (CR1).

The virtual duel of each bot counts as one more deck. It hardly matters, but where bots beat all others, the prior alone
holds their distance, and pulls copies of one bot apart if one has met the others more often: no deck would show that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from arena.rating.certainty import FEWEST_DECKS, NORMAL_95, superiority
from arena.rating.duels import Bools, Collector, Duels, Floats, Longs, joined
from arena.rating.fit import Fit
from arena.records import BotHash

ELO = 400.0 / math.log(10.0)
"""Elo in a natural unit of strength."""
MEAN = 1500.0
"""The mean of a pool without an anchor, in Elo."""

_CR1_DECKS = 500
_DECKS = 1024  # at once: bounds memory at decks * bots * 8 bytes
_NO_SPREAD = 1e-9  # of Elo squared: copies of one bot differ by rounding alone


class Estimate(msgspec.Struct, frozen=True, eq=False):
    """Elo with its covariance, both against the reference: the mean of the pool, or the anchor.

    Attributes:
        bots: ascending; the order of all that follows.
        elo: by bot.
        covariance: Elo squared; the variance of a difference is V_ii + V_jj - 2 V_ij.
        decks: by bot, decks on which it has a duel.
        reference_decks: the same for the reference; for the mean, all decks.
    """

    bots: tuple[BotHash, ...]
    elo: Floats
    covariance: Floats
    decks: Longs
    reference_decks: int

    def error(self, bot: BotHash) -> float | None:
        """Return half the width of the 95 % interval against the reference, in Elo; None below ten decks."""
        i = self.bots.index(bot)
        if min(self.decks[i], self.reference_decks) < FEWEST_DECKS:
            return None
        return NORMAL_95 * math.sqrt(self.covariance[i, i])

    def los(self, a: BotHash, b: BotHash) -> float | None:
        """Return the likelihood that a is stronger than b, uncorrected for many pairs; None below ten decks."""
        i, j = self.bots.index(a), self.bots.index(b)
        if min(self.decks[i], self.decks[j]) < FEWEST_DECKS:
            return None
        difference = float(self.elo[i] - self.elo[j])
        variance = float(self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j])
        return superiority(difference, variance)


def estimate(collector: Collector, fitted: Fit, anchor: tuple[BotHash, float] | None = None) -> Estimate:
    """Put a fit on the Elo scale, with errors.

    Args:
        collector: of what was fitted.
        fitted: from `arena.rating.fit.fit`.
        anchor: a bot and the Elo it is held at. Without a deal in this pool it stands where the prior puts it.
    """
    spread = sandwich(collector, fitted)
    n = len(spread.bots)
    share, at, reference_decks = np.full(n, 1.0 / max(n, 1)), MEAN, spread.clusters
    if anchor is not None:
        bot, at = anchor
        share = np.array([float(b == bot) for b in spread.bots])
        reference_decks = int(share @ spread.decks)
    contrast = np.eye(n) - share
    return Estimate(
        spread.bots,
        at + ELO * (contrast @ fitted.theta),
        ELO**2 * (contrast @ spread.covariance @ contrast.T),
        spread.decks,
        reference_decks,
    )


def naive_covariance(fitted: Fit) -> Floats:
    """Return the covariance against the mean, in Elo squared, if each deal had a deck of its own."""
    n = len(fitted.theta)
    contrast = np.eye(n) - 1.0 / max(n, 1)
    naive: Floats = ELO**2 * (contrast @ np.linalg.inv(fitted.information) @ contrast.T)
    return naive


def design_effect(estimated: Estimate, naive: Floats) -> float | None:
    """Return by how much shared decks and all seatings make a pool surer than as many deals of decks of their own.

    It is the trace of the covariance that independent deals would have, over that of the one they have, both against
    the mean; None below ten decks and where nothing varies.
    """
    n = len(estimated.bots)
    if estimated.reference_decks < FEWEST_DECKS:
        return None
    contrast = np.eye(n) - 1.0 / n
    clustered = float(np.trace(contrast @ estimated.covariance @ contrast.T))
    return round(float(np.trace(naive)) / clustered, 6) if clustered > _NO_SPREAD else None


class Spread(NamedTuple):
    """How sure theta is.

    Attributes:
        decks: by bot, decks on which it has a duel.
        clusters: all decks with a duel.
        covariance: of theta, clustered by deck, each virtual duel being one.
    """

    bots: tuple[BotHash, ...]
    decks: Longs
    clusters: int
    covariance: Floats


def sandwich(collector: Collector, fitted: Fit) -> Spread:
    """Return the covariance of theta and what it rests on."""
    n = len(fitted.theta)
    decks, clusters, middle = np.zeros(n, np.int64), 0, np.zeros((n, n))
    few: list[Duels] = []  # all blocks, while they have few decks
    bots: tuple[BotHash, ...] = ()
    for block in collector.blocks():
        bots = block.bots
        clusters += block.clusters
        few = [*few, block] if clusters < _CR1_DECKS else []
        for part in _parts(block):
            decks += _seen(part, n).sum(axis=0)
            scores = _scores(part, fitted)
            middle += scores.T @ scores
    inverse = np.linalg.inv(fitted.information)
    pulled = inverse * fitted.pull
    prior = pulled @ pulled.T
    if few:
        shifts = _jackknife(joined(few), fitted)
        return Spread(bots, decks, clusters, (1.0 - 1.0 / max(clusters, 1)) * (shifts.T @ shifts) + prior)
    return Spread(bots, decks, clusters, clusters / (clusters - 1.0) * (inverse @ middle @ inverse.T) + prior)


def _parts(duels: Duels) -> Iterator[Duels]:
    """Yield a block in parts of so few decks that a column a bot can be held for each."""
    edges = np.searchsorted(duels.cluster, np.arange(0, duels.clusters + _DECKS, _DECKS))
    for number, (start, stop) in enumerate(pairwise(edges.tolist())):
        rows = slice(start, stop)
        columns = {name: getattr(duels, name)[rows] for name in ("low", "high", "seats", "halves", "count")}
        yield msgspec.structs.replace(duels, cluster=duels.cluster[rows] - np.int32(number * _DECKS), **columns)


def _seen(duels: Duels, n: int) -> Bools:
    """Tell which bots have a duel on which deck: one row a deck, one column a bot."""
    seen = np.zeros((duels.clusters, n), np.bool_)
    seen[duels.cluster, duels.low] = True
    seen[duels.cluster, duels.high] = True
    return seen


def _chances(duels: Duels, fitted: Fit) -> Floats:
    """Return the chance of `low` in a duel, by row."""
    chance: Floats = 1.0 / (1.0 + np.exp(fitted.theta[duels.high] - fitted.theta[duels.low]))
    return chance


def _scores(duels: Duels, fitted: Fit) -> Floats:
    """Return the gradient of each deck's log likelihood: one row a deck, one column a bot."""
    n, decks = len(duels.bots), duels.clusters
    surplus = duels.weights() * (duels.halves / 2.0 - duels.count * _chances(duels, fitted))
    deck = duels.cluster.astype(np.int64) * n
    won = np.bincount(deck + duels.low, weights=surplus, minlength=decks * n)
    lost = np.bincount(deck + duels.high, weights=surplus, minlength=decks * n)
    return (won - lost).astype(np.float64, copy=False).reshape(decks, n)


def _jackknife(duels: Duels, fitted: Fit) -> Floats:
    """Return how leaving out each deck would shift theta, in one Newton step: one row a deck."""
    scores = _scores(duels, fitted)
    chance = _chances(duels, fitted)
    links = duels.weights() * duels.count * chance * (1.0 - chance)
    edges = np.searchsorted(duels.cluster, np.arange(duels.clusters + 1)).tolist()
    shifts = np.empty((duels.clusters, len(duels.bots)))
    for deck, (start, stop) in enumerate(pairwise(edges)):
        low, high, link = duels.low[start:stop], duels.high[start:stop], links[start:stop]
        without = fitted.information.copy()
        np.subtract.at(without, (low, low), link)
        np.subtract.at(without, (high, high), link)
        np.add.at(without, (low, high), link)
        np.add.at(without, (high, low), link)
        shifts[deck] = np.linalg.solve(without, scores[deck])
    return shifts
