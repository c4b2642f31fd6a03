"""How large a difference may be, by the likelihood of all scores: the ends of an interval without a normal limit.

How far the ends lie is asked for in standard errors z. They are the greatest and the least value that any distribution
of the scores gives whose likelihood is less than the greatest by a factor of at most exp(-z²/2). Among equal bots that
is z standard errors as usual; near the ends of the scale, and where the spread is as uncertain as the mean, it is not.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from arena.rating.duels import Floats

_HALVINGS = 50
_ANGLES = 25  # tried at once, three times, each time about the best one
_ZOOMS = 3
_LEAST_LENGTH = 1e-12


class Interval(msgspec.Struct, frozen=True):
    """A value and its 95 % interval; where all scores are alike an end may be open.

    Attributes:
        value: None if it is without bound, as after nothing but victories.
        low: None if it is without bound.
        high: None if it is without bound.
    """

    value: float | None
    low: float | None
    high: float | None


def mean_at(counts: Floats, values: Floats, z: float) -> float:
    """Return the mean that is so many standard errors above that of the scores.

    Args:
        counts: how often each value came; the least and the greatest value must have some weight.
        values: ascending.
    """
    side = math.copysign(1.0, z)
    (shares,) = _farthest(counts, side * values[None], z)
    return float(shares @ values)


def effect_at(counts: Floats, values: Floats, z: float) -> float:
    """Return by how many standard deviations the mean may be above one half, so many standard errors above the found.

    Of all distributions of a likelihood, that with the greatest effect tilts the scores by y - c * y², y from one half
    and c not known; a tilt with another c has a smaller one, so the best of many is taken.
    """
    side = math.copysign(1.0, z)
    y = values - 0.5
    unit = y / math.sqrt(float(counts @ y**2 / counts.sum()))
    middle, reach = 0.0, math.pi / 2 * (1 - 1 / _ANGLES)
    best = 0.0
    for _ in range(_ZOOMS):
        angles = np.linspace(middle - reach, middle + reach, _ANGLES)[:, None]
        shares = _farthest(counts, side * (np.cos(angles) * unit - np.sin(angles) * unit**2), z)
        mean, square = shares @ y, shares @ y**2
        effects = mean / np.sqrt(np.maximum(square - mean**2, _LEAST_LENGTH**2))
        chosen = int(np.argmax(side * effects))
        best, middle, reach = float(effects[chosen]), float(angles[chosen, 0]), 2 * reach / (_ANGLES - 1)
    return best


def _farthest(counts: Floats, offsets: Floats, z: float) -> Floats:
    """Return, by row of offsets, the shares with the greatest mean offset that a likelihood allows."""
    total = counts.sum()
    shares = counts / total
    centred = offsets - (offsets @ shares)[:, None]
    centred /= np.maximum(centred.max(axis=1, keepdims=True), _LEAST_LENGTH)
    low, high = np.zeros((len(offsets), 1)), np.ones((len(offsets), 1))
    for _ in range(_HALVINGS):
        tilt = (low + high) / 2
        scale = 1 - tilt * centred
        lost = total * (np.log(scale) @ shares + np.log((1 / scale) @ shares))[:, None]
        low, high = np.where(lost < z * z / 2, tilt, low), np.where(lost < z * z / 2, high, tilt)
    tilted = shares / (1 - low * centred)
    found: Floats = tilted / tilted.sum(axis=1, keepdims=True)
    return found
