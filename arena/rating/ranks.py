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
_SEED = 20240501  # any: equal pools are to give equal intervals
_CONFIDENCE = 0.95
_NO_SPREAD = 1e-9  # of Elo: copies of one bot share each deck's luck exactly


def rank_intervals(estimate: Estimate) -> dict[BotHash, RankInterval]:
    """Return the rank interval of every bot that has an error bar, among all bots."""
    chosen = [i for i, bot in enumerate(estimate.bots) if estimate.error(bot) is not None]
    elo, covariance = estimate.elo[chosen], estimate.covariance[np.ix_(chosen, chosen)]
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0.0))
    draws = _draws(covariance)
    found = {}
    for row, index in enumerate(chosen):
        limit = _critical(draws, row, spread[row])
        above, below = _apart(elo - elo[row], spread[row], limit), _apart(elo[row] - elo, spread[row], limit)
        found[estimate.bots[index]] = 1 + int(above.sum()), len(estimate.bots) - int(below.sum())
    return found


def _draws(covariance: Floats) -> Floats:
    """Return errors of all bots as they might have been, one row a draw."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # the symmetric one is unique
    draws: Floats = np.random.default_rng(_SEED).standard_normal((_DRAWS, len(covariance))) @ root
    return draws


def _critical(draws: Floats, row: int, spread: Floats) -> float:
    """Return what the largest difference of a bot to another, in standard errors, stays below in 95 % of the draws."""
    rivals = spread > _NO_SPREAD
    if not rivals.any():
        return 0.0
    largest = (np.abs(draws[:, rivals] - draws[:, [row]]) / spread[rivals]).max(axis=1)
    return float(np.quantile(largest, _CONFIDENCE))


def _apart(difference: Floats, spread: Floats, limit: float) -> Bools:
    return difference > np.maximum(limit * spread, _NO_SPREAD)
