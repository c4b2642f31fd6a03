"""A walk with drift between two barriers: what a sequential test is, seen from afar.

All lengths are in standard deviations of one step, so a step adds `drift` on average and 1 to the variance.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

_SHORT = 0.01  # of steps / width²: below it the other barrier is out of reach, above it the series converges at once
_TERMS = np.arange(1, 41)
_HALVINGS = 60
_REACH = 12.0  # standard errors about the plain estimate, within which every quantile in use lies
_FAR_TAIL = 25.0  # from here on exp(z²/2) comes near the largest float
_STILL = 1e-6


class Walk(msgspec.Struct, frozen=True):
    """Where a walk that began at 0 is, or where it ended.

    Attributes:
        steps: how many it took; need not be whole.
        place: from `low` to `high`; it has ended if it is at one of them.
        low: the lower barrier, below 0.
        high: the upper barrier, above 0.
    """

    steps: float
    place: float
    low: float
    high: float


def unbiased_drift(walk: Walk, probability: float = 0.5) -> float:
    """Return the drift at which a walk ends lower than this one, or as low, with a probability.

    With one half that is the median-unbiased estimate, which stopping does not exaggerate; other probabilities give the
    ends of an interval. Of two walks that ended at the lower barrier the earlier is the lower one, at the upper barrier
    the later.
    """
    middle, reach = walk.place / walk.steps, _REACH / math.sqrt(walk.steps)
    low, high = middle - reach, middle + reach
    for _ in range(_HALVINGS):
        drift = (low + high) / 2
        low, high = (drift, high) if lower_chance(walk, drift) > probability else (low, drift)
    return (low + high) / 2


def lower_chance(walk: Walk, drift: float) -> float:
    """Return the probability that a walk of so many steps is or has ended lower than this one, or as low."""
    if walk.steps < _SHORT * (walk.high - walk.low) ** 2:
        chance = _short_chance(walk, drift)
    else:
        chance = _absorbed(walk, drift) + _alive(walk, drift)
    return min(max(chance, 0.0), 1.0)


def expected_steps(walk: Walk, drift: float) -> float:
    """Return how many more steps a walk takes on average until it ends."""
    below, above = walk.place - walk.low, walk.high - walk.place
    if abs(drift) * (below + above) < _STILL:
        return below * above
    # The chance to end above, by the martingale exp(-2 * drift * place); written so that no exponent is positive.
    if drift > 0:
        up = math.expm1(-2 * drift * below) / math.expm1(-2 * drift * (below + above))
    else:
        up = 1 - math.expm1(2 * drift * above) / math.expm1(2 * drift * (below + above))
    return (up * above - (1 - up) * below) / drift


def _short_chance(walk: Walk, drift: float) -> float:
    """As `lower_chance`, where one barrier at most can have been reached."""
    if walk.place >= walk.high:
        return 1 - _reached(walk.high, drift, walk.steps)
    if walk.place <= walk.low:
        return _reached(-walk.low, -drift, walk.steps)
    return _normal((walk.place - drift * walk.steps) / math.sqrt(walk.steps))


def _reached(distance: float, drift: float, steps: float) -> float:
    """Return the chance that a single barrier above has been reached: the inverse Gaussian distribution."""
    root = math.sqrt(steps)
    gap = (distance - drift * steps) / root
    return _normal(-gap) + math.exp(-gap * gap / 2) * _mills((distance + drift * steps) / root)


def _normal(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def _mills(z: float) -> float:
    """Return the normal distribution's upper tail at z, times exp(z²/2)."""
    if z > _FAR_TAIL:
        return (1 - 1 / (z * z)) / (z * math.sqrt(2 * math.pi))
    return _normal(-z) * math.exp(z * z / 2)


def _absorbed(walk: Walk, drift: float) -> float:
    """Return the chance that the lower barrier has been reached first: in the end, less what is still to come."""
    width = walk.high - walk.low
    waves = _TERMS * np.pi / width
    rates = (drift**2 + waves**2) / 2
    weights = np.exp(drift * walk.low - rates * walk.steps)
    to_come = float((waves * np.sin(-waves * walk.low) * weights / rates).sum()) / width
    return _ends_low(walk, drift) - to_come


def _ends_low(walk: Walk, drift: float) -> float:
    if abs(drift) * (walk.high - walk.low) < _STILL:
        return walk.high / (walk.high - walk.low)
    if drift > 0:
        rest = math.expm1(-2 * drift * walk.high) / math.expm1(-2 * drift * (walk.high - walk.low))
        return math.exp(2 * drift * walk.low) * rest
    return math.expm1(2 * drift * walk.high) / math.expm1(2 * drift * (walk.high - walk.low))


def _alive(walk: Walk, drift: float) -> float:
    """Return the chance that no barrier has been reached and that the place is not above this one's."""
    width = walk.high - walk.low
    waves = _TERMS * np.pi / width
    up = walk.place - walk.low
    # The integral of exp(drift * u) * sin(wave * u) over u = 0 ... up, with the factor exp(drift * low) of its start.
    edge = np.exp(drift * walk.place) * (drift * np.sin(waves * up) - waves * np.cos(waves * up))
    integral = (edge + waves * np.exp(drift * walk.low)) / (drift**2 + waves**2)
    weights = np.sin(-waves * walk.low) * np.exp(-(drift**2 + waves**2) * walk.steps / 2)
    return float((weights * integral).sum()) * 2 / width
