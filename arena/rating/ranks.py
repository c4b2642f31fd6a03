"""How sure a place in a table is: the places that a bot may have, given how far its rivals could be from it.

The interval of a bot holds its true place in 95 of 100 pools. It is found as Mogstad, Romano, Shaikh and Wilhelm
("Inference for Ranks", Review of Economic Studies 91, 2024) do for one unit: the largest of its differences to all
others, each in its own standard errors, is simulated from the covariance; a rival counts as above or below only if
the difference that was seen is larger than the 95 % point of that. Simulating places directly would be too sure where
many bots are nearly equal. A bot without an error bar may have any place, so it counts neither as above nor as below.
"""

from __future__ import annotations

import numpy as np

from arena.rating.covariance import Estimate
from arena.rating.duels import Bools, Floats
from arena.records import BotHash

RankInterval = tuple[int, int]
"""The best and the worst place a bot may have, from 1."""

_DRAWS = 1000
_DRAWS_AT_ONCE = 250  # so few that they stay in the processor's cache
_SEED = 20240501  # any: equal pools are to give equal intervals
_CONFIDENCE = 0.95
_NO_SPREAD = 1e-9  # of Elo: copies of one bot share each deck's luck exactly


def rank_intervals(estimate: Estimate) -> dict[BotHash, RankInterval]:
    """Return the rank interval of every bot that has an error bar, among all bots."""
    chosen = [i for i, bot in enumerate(estimate.bots) if estimate.error(bot) is not None]
    elo, covariance = estimate.elo[chosen], estimate.covariance[np.ix_(chosen, chosen)]
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0.0))
    limits = _limits(_draws(covariance), spread)
    found = {}
    for row, index in enumerate(chosen):
        above = _apart(elo - elo[row], spread[row], limits[row])
        below = _apart(elo[row] - elo, spread[row], limits[row])
        found[estimate.bots[index]] = 1 + int(above.sum()), len(estimate.bots) - int(below.sum())
    return found


def _draws(covariance: Floats) -> Floats:
    """Return errors of all bots as they might have been, one row a draw."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the symmetric one is unique
    draws: Floats = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(covariance))) @ root
    return draws


def _limits(draws: Floats, spread: Floats) -> Floats:
    """Return by bot what its largest difference to another, in standard errors, stays below in 95 % of the draws."""
    weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > _NO_SPREAD)
    largest = [_largest(draws[start : start + _DRAWS_AT_ONCE], weight) for start in range(0, _DRAWS, _DRAWS_AT_ONCE)]
    return np.quantile(np.concatenate(largest, axis=1), _CONFIDENCE, axis=1)


def _largest(draws: Floats, weight: Floats) -> Floats:
    """Return the largest weighted difference of each bot, one row a bot, one column a draw.

    A pair is looked at once, for both of its bots.
    """
    drawn = np.ascontiguousarray(draws.T)
    largest, room = np.zeros_like(drawn), np.empty_like(drawn)
    for row in range(len(drawn) - 1):
        apart = np.subtract(drawn[row + 1 :], drawn[row], out=room[row + 1 :])
        apart *= weight[row + 1 :, [row]]
        np.abs(apart, out=apart)
        np.maximum(largest[row + 1 :], apart, out=largest[row + 1 :])
        np.maximum(largest[row], apart.max(axis=0), out=largest[row])
    return largest


def _apart(difference: Floats, spread: Floats, limit: np.float64) -> Bools:
    return difference > np.maximum(limit * spread, _NO_SPREAD)
