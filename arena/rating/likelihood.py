"""How much likelier one hypothesis makes some scores than another, by the exact multinomial likelihood.

Scores take finitely many values. A hypothesis fixes the mean of their distribution, or how many standard deviations the
mean lies above one half; everything else about the distribution is what fits the scores best. The logarithm of the
ratio of both likelihoods is the LLR. Arrays of counts may have leading axes: everything is computed for all rows at
once, each row until it stays, so that what is found for one does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from arena.rating.duels import Floats

_STEPS = 60  # halving alone would be done by then; Newton's method needs six to ten
_ROUNDS = 100  # of the fixed point for a normalised mean; ten are usual
_TOLERANCE = 1e-11
_NEAR = 1e-6
_SHORT = 1e-3  # of the bracket

Fitted = Callable[[Floats, Floats, float], Floats]


def llr(counts: Floats, values: Floats, null: float, alternative: float, fitted: Fitted) -> Floats:
    """Return the LLR of two hypotheses, by row.

    Args:
        counts: by row, how often each value came; the least and the greatest value must have some weight.
        values: ascending.
        null: what the first hypothesis says; positive results speak for the second.
        fitted: `fitted_mean` or `fitted_effect`.
    """
    total = counts.sum(axis=-1)
    shares = counts / total[..., None]
    ratio = np.where(shares > 0, fitted(shares, values, alternative) / fitted(shares, values, null), 1.0)
    found: Floats = total * (shares * np.log(ratio)).sum(axis=-1)
    return found


def fitted_mean(shares: Floats, values: Floats, mean: float) -> Floats:
    """Return, by row, the likeliest distribution with a mean, relative to the shares: 1 where nothing changes.

    Args:
        mean: between the least and the greatest value.
    """
    return _tilt(shares, np.broadcast_to(values - mean, shares.shape))


def fitted_effect(shares: Floats, values: Floats, effect: float) -> Floats:
    """Return, by row, the likeliest distribution whose mean is so many standard deviations above one half.

    The condition is not linear in the distribution, so it is linearised about the last one found until that stays.
    """
    here = shares > 0
    flat = here / here.sum(axis=-1, keepdims=True)
    current, factors = flat, np.ones(shares.shape)
    moving, rounds = np.ones((*shares.shape[:-1], 1), np.bool_), 0
    while moving.any() and rounds < _ROUNDS:
        mean, sigma = (part[..., None] for part in moments(current, values))
        offsets = values - 0.5 - effect * sigma * (1 + ((values - mean) / sigma) ** 2) / 2
        low, high = _range(shares, offsets)
        solvable = ((low < 0) & (high > 0))[..., None]
        factors = np.where(moving, _tilt(shares, np.where(solvable, offsets, values - 0.5)), factors)
        following = np.where(solvable, shares * factors, (current + flat) / 2)
        following = np.where(moving, following, current)
        moving, rounds = moving & (np.abs(following - current).max(axis=-1, keepdims=True) > _TOLERANCE), rounds + 1
        current = following
    return factors


def moments(shares: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation by row."""
    mean = (shares * values).sum(axis=-1)
    variance = (shares * (values - mean[..., None]) ** 2).sum(axis=-1)
    return mean, np.sqrt(variance)


def _range(shares: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest offset that has any share, by row."""
    here = shares > 0
    return np.where(here, offsets, np.inf).min(axis=-1), np.where(here, offsets, -np.inf).max(axis=-1)


def _tilt(shares: Floats, offsets: Floats) -> Floats:
    """Return the factors 1 / (1 + x * offset) with which the shares have a mean offset of 0.

    The mean falls in x, between a pole on each side; Newton's method, halving wherever it would leave the bracket
    or gets nowhere.
    """
    least, greatest = _range(shares, offsets)
    low, high = -1 / greatest, -1 / least
    x = np.zeros(low.shape)
    offsets = np.where(shares > 0, offsets, 0.0)
    moving, steps = np.ones(x.shape, np.bool_), 0
    while moving.any() and steps < _STEPS:
        terms = offsets / (1 + x[..., None] * offsets)
        excess = (shares * terms).sum(axis=-1)
        low, high = np.where(excess > 0, x, low), np.where(excess > 0, high, x)
        slope = (shares * terms**2).sum(axis=-1)
        # How far the root is in units of the curve: beside a pole a step is short without being near it.
        is_near = excess**2 <= _NEAR * slope
        newton = x + excess / slope
        is_step = (newton > low) & (newton < high) & (is_near | (np.abs(newton - x) > _SHORT * (high - low)))
        following = np.where(moving, np.where(is_step, newton, (low + high) / 2), x)
        moving, steps = moving & ~(is_near & (np.abs(following - x) <= _TOLERANCE)), steps + 1
        x = following
    return 1 / (1 + x[..., None] * offsets)
