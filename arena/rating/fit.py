"""The fit: strengths that make the duels most likely, all at once.

Bot i beats bot j with probability 1 / (1 + exp(theta_j - theta_i)); a tie is half a win and half a loss. Each bot also
draws one virtual duel against a ghost at 0, which keeps every value finite and matters less with every real duel.
The maximum is unique, so the answer depends on the results alone, never on their order.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from arena.rating.duels import Duels, Floats, Ints

PRIOR = 1.0
"""Weight of the virtual duel against the ghost."""

_TOLERANCE = 1e-10
_MOST_STEPS = 60  # six to twenty are usual; rounding keeps some huge pools just above the tolerance
_SAFE_STEP = 1e-3  # below it Newton's method converges and the gain drowns in rounding


class Fit(msgspec.Struct, frozen=True, eq=False):
    """Strengths in natural units.

    Attributes:
        theta: by bot.
        information: minus the second derivatives of the log likelihood at theta, prior included.
        pull: the gradient of the prior at theta, by bot.
    """

    theta: Floats
    information: Floats
    pull: Floats


def fit(duels: Duels, prior: float = PRIOR) -> Fit:
    """Return the most likely strengths, by Newton's method on the summed duels.

    Args:
        duels: all duels of a pool.
        prior: weight of the virtual duel. With 0 the mean is held at 0, and a finite maximum exists only if
            everybody is linked to everybody by wins (`groups` has one element).
    """
    points = _points(duels)
    theta = np.zeros(len(duels.bots))
    size, steps = np.inf, 0
    while size > _TOLERANCE and steps < _MOST_STEPS:
        gradient, information = _derivatives(points, theta, prior)
        step = np.linalg.solve(information, gradient)
        before = _log_likelihood(points, theta, prior)
        while np.abs(step).max(initial=0) > _SAFE_STEP and _log_likelihood(points, theta + step, prior) < before:
            step = step / 2
        theta = theta + step
        size, steps = np.abs(step).max(initial=0), steps + 1
    return Fit(theta, _derivatives(points, theta, prior)[1], _pull(theta, prior))


def _pull(theta: Floats, prior: float) -> Floats:
    pull: Floats = prior * (0.5 - 1.0 / (1.0 + np.exp(-theta)))
    return pull


def bounds(duels: Duels) -> tuple[Literal["", ">", "<"], ...]:
    """Return for each bot `>` if it won all its duels, `<` if it lost them all; the prior alone holds those."""
    n = len(duels.bots)
    count = _sums(duels.low, duels.count, n) + _sums(duels.high, duels.count, n)
    halves = _sums(duels.low, duels.halves, n) + _sums(duels.high, 2 * duels.count - duels.halves, n)
    return tuple("" if not c or 0 < h < 2 * c else ">" if h else "<" for h, c in zip(halves, count, strict=True))


def groups(duels: Duels) -> tuple[tuple[int, ...], ...]:
    """Return the largest groups within which everybody is linked to everybody by chains of wins or ties.

    Differences between groups rest on the prior. Groups and their members ascend.
    """
    n = len(duels.bots)
    reach = np.eye(n, dtype=np.bool_)
    reach[duels.low[duels.halves > 0], duels.high[duels.halves > 0]] = True
    lost = duels.halves < 2 * duels.count
    reach[duels.high[lost], duels.low[lost]] = True
    for _ in range(n.bit_length()):  # squaring doubles the length of the chains
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    mutual = reach & reach.T
    return tuple(tuple(np.flatnonzero(mutual[i]).tolist()) for i in range(n) if not mutual[i, :i].any())


def _points(duels: Duels) -> Floats:
    """Return weighted points, `[i, j]` those of i against j; exact integers until the weights are applied."""
    n = len(duels.bots)
    points = np.zeros((n, n))
    weights = duels.weights()
    for seats in np.unique(duels.seats):
        rows = np.flatnonzero(duels.seats == seats)
        low, high, halves = duels.low[rows], duels.high[rows], duels.halves[rows]
        whole = _sums(low * n + high, halves, n * n) + _sums(high * n + low, 2 * duels.count[rows] - halves, n * n)
        points += whole.reshape(n, n) * (weights[rows[0]] / 2)
    return points


def _sums(where: Ints, amounts: Ints, size: int) -> Floats:
    return np.bincount(where, weights=amounts, minlength=size).astype(np.float64, copy=False)


def _derivatives(points: Floats, theta: Floats, prior: float) -> tuple[Floats, Floats]:
    """Return the gradient of the log likelihood and minus its second derivatives."""
    chance = 1.0 / (1.0 + np.exp(theta[None, :] - theta[:, None]))  # of i against j; its transpose is 1 - chance
    ghost = 1.0 / (1.0 + np.exp(-theta))
    gradient = (points * chance.T - points.T * chance).sum(axis=1) + _pull(theta, prior)
    links = (points + points.T) * chance * chance.T
    information = np.diag(links.sum(axis=1) + prior * ghost * (1.0 - ghost)) - links
    if prior == 0:
        information += 1.0  # only differences are determined: without this the matrix is singular
    return gradient, information


def _log_likelihood(points: Floats, theta: Floats, prior: float) -> float:
    ghost = np.logaddexp(0.0, theta) + np.logaddexp(0.0, -theta)
    duels = points * np.logaddexp(0.0, theta[None, :] - theta[:, None])
    return -float(duels.sum() + prior / 2 * ghost.sum())
