"""Whether one bot is better than another, played until it is known: a sequential test on the scores of deal sets.

The score of a deal set is what NEW won of it, from 0 to 1, one half on average if both bots are equal. Two bots meet
at a table of two, or each takes the same seat of the same deals among the same others, and the difference counts.
The test compares two hypotheses, that NEW is stronger by `elo0` and by `elo1`, by the exact multinomial likelihood
of all scores so far, and ends when one of them is likelier by enough. The scores are judged one after the other, so
what it says is a function of their sequence alone, however it was played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from arena.rating.brownian import Walk, expected_steps, unbiased_drift
from arena.rating.duels import Floats
from arena.rating.interval import Interval, effect_at, mean_at
from arena.rating.likelihood import fitted_effect, fitted_mean, llr, moments

LEAST_SETS = 32
"""No test ends before: with fewer scores their spread is not known, on which the LLR depends."""
LARGEST_EFFECT = 0.5
"""Of a hypothesis, in standard deviations of a set: beyond it the normalised likelihood has no stable solution."""

LEAST_RISK = 1e-6
"""Of alpha and beta."""
LEAST_WIDTH = 0.1
"""From elo0 to elo1: nearer to each other no number of sets that can be played tells them apart."""

_ELO = 400 / math.log(10)
_NORMALISED = 2 * _ELO  # in games without ties, equal bots' normalised and logistic Elo are the same
_FLOOR = 0.001  # weight of the ends of the scale where no score is, so that each hypothesis remains possible
_Z95 = 1.959963984540054
_Z_ALIKE = math.sqrt(-2 * math.log(0.025))  # where all scores are alike, .025 is the chance of that at the end itself
_AT_ONCE = 256

Verdict: TypeAlias = Literal["", "H0", "H1"]


class Hypotheses(msgspec.Struct, frozen=True):
    """What is tested.

    Attributes:
        elo0: by H0 NEW is stronger by this.
        elo1: by H1 NEW is stronger by this; more than `elo0`.
        alpha: the chance to accept H1 where H0 holds.
        beta: the chance to accept H0 where H1 holds.
        logistic: both are logistic Elo, which depends on how much luck a game has; else normalised Elo, measured in
            standard deviations of a deal.
    """

    elo0: float = 0.0
    elo1: float = 20.0
    alpha: float = 0.05
    beta: float = 0.05
    logistic: bool = False

    @property
    def lower(self) -> float:
        """The LLR at which H0 is accepted."""
        return math.log(self.beta / (1 - self.alpha))

    @property
    def upper(self) -> float:
        """The LLR at which H1 is accepted."""
        return math.log((1 - self.beta) / self.alpha)


class SetShape(msgspec.Struct, frozen=True):
    """What a deal set is made of.

    Attributes:
        top: scores are integers from 0 to this.
        deals: played for one set.
        substituted: NEW and OLD do not meet, but take the same seat among others; only half of what each gains over
            the field is then in a score.
        spare: no score is nearer to the ends of the scale than this, unless several bots of a deal fault.
    """

    top: int
    deals: int
    substituted: bool = False
    spare: int = 0

    def score_of(self, elo: float) -> float:
        """Return the mean score, 0 to 1, that a logistic difference stands for."""
        return 1 / (1 + math.exp(-elo / (_ELO * self._sides)))

    def elo_of(self, score: float) -> float:
        """Return the logistic difference that a mean score stands for."""
        return _ELO * self._sides * math.log(score / (1 - score))

    def effect_of(self, normalised: float) -> float:
        """Return in standard deviations of a set what a normalised difference stands for."""
        return normalised * math.sqrt(self.deals) / (_NORMALISED * self._sides)

    def normalised_of(self, effect: float) -> float:
        """Return the normalised difference that an effect stands for."""
        return effect * _NORMALISED * self._sides / math.sqrt(self.deals)

    @property
    def _sides(self) -> int:
        return 2 if self.substituted else 1


class Judgement(msgspec.Struct, frozen=True):
    """What the scores so far say.

    Attributes:
        sets: that were judged.
        lower: the LLR at which H0 is accepted, corrected for the size of the last steps.
        upper: the same for H1.
        elo: by how much NEW is stronger, logistic; None before the first set. Once the test has ended it is
            median-unbiased: neither too high nor too low more often than the other. The ends of the interval are as
            far by the likelihood of the scores as a normal walk between both bounds would have them.
        normalised: the same, normalised.
        more_sets: how many more it takes on average, as far as is known; None before the least number.
    """

    sets: int
    llr: float
    lower: float
    upper: float
    verdict: Verdict
    elo: Interval | None
    normalised: Interval | None
    more_sets: float | None


def check_hypotheses(hypotheses: Hypotheses, shape: SetShape) -> str:
    """Return why these cannot be tested, or an empty string."""
    h = hypotheses
    for name, value in (("alpha", h.alpha), ("beta", h.beta)):
        if not LEAST_RISK <= value < 0.5:
            return f"--{name} {value:g} is no risk of a test: name one from {LEAST_RISK:g} to below 0.5, such as 0.05"
    if not h.elo1 - h.elo0 >= LEAST_WIDTH:
        told = f"--elo1 {h.elo1:g} must be more than --elo0 {h.elo0:g}, by {LEAST_WIDTH} or more"
        return f"{told}: name numbers farther apart, such as 0 and 20"
    reach = 1 - 2 * shape.spare / shape.top  # a mean beyond all possible scores cannot be tested
    most = 4 * _ELO * reach if h.logistic else shape.normalised_of(LARGEST_EFFECT)
    for name, value in (("elo0", h.elo0), ("elo1", h.elo1)):
        if not abs(value) <= most:
            return f"--{name} {value:g} is beyond {most:.0f}, where this test loses its meaning: name one nearer to 0"
    return ""


class SequentialTest:
    """Takes the scores of deal sets in the order of their schedule; what follows on its end is not judged."""

    def __init__(self, hypotheses: Hypotheses, shape: SetShape) -> None:
        self._hypotheses = hypotheses
        self._shape = shape
        self._counts = np.zeros(shape.top + 1)
        self._sets = 0
        self._llr = 0.0
        self._up = _Ladder()
        self._down = _Ladder()
        self._verdict: Verdict = ""
        self._said: Judgement | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the test has ended."""
        return self._verdict != ""

    def add(self, scores: Iterable[int]) -> None:
        """Judge further scores, one after the other, until the test ends."""
        waiting = np.fromiter(scores, np.int64)
        if self.is_decided:
            return
        while len(waiting):
            due, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            prefixes = self._counts + np.cumsum(np.eye(len(self._counts))[due], axis=0)
            self._said = None
            for counts, value in zip(prefixes, self._llrs(prefixes), strict=True):
                self._counts, self._llr = counts, float(value)
                self._sets += 1
                if self._judge():
                    return

    def judgement(self) -> Judgement:
        """Return what the scores so far say."""
        if self._said is None:
            bounds, estimates = self._bounds(), self._estimates()
            self._said = Judgement(self._sets, self._llr, *bounds, self._verdict, *estimates, self._more_sets())
        return self._said

    def _llrs(self, prefixes: Floats) -> Floats:
        h, shape = self._hypotheses, self._shape
        seen, values = _weights(prefixes, shape.spare)
        if h.logistic:
            return llr(seen, values, shape.score_of(h.elo0), shape.score_of(h.elo1), fitted_mean)
        return llr(seen, values, shape.effect_of(h.elo0), shape.effect_of(h.elo1), fitted_effect)

    def _judge(self) -> bool:
        """Judge the last score; return whether the test ends with it."""
        if self._sets < LEAST_SETS:
            return False
        self._up.climb(self._llr)
        self._down.climb(-self._llr)
        lower, upper = self._bounds()
        self._verdict = "H1" if self._llr >= upper else "H0" if self._llr <= lower else ""
        return self.is_decided

    def _bounds(self) -> tuple[float, float]:
        """Return the bounds, nearer by what a step is expected to pass them, which keeps the errors as promised.

        Where most sets are even a single step may be longer than the way to a bound; half of the way always remains.
        """
        h = self._hypotheses
        lower, upper = min(self._down.overshoot, -h.lower / 2), min(self._up.overshoot, h.upper / 2)
        return h.lower + lower, h.upper - upper

    def _effects(self) -> tuple[float, float]:
        """Return elo0 and elo1 in standard deviations of a set as they are known now."""
        h, shape = self._hypotheses, self._shape
        if not h.logistic:
            return shape.effect_of(h.elo0), shape.effect_of(h.elo1)
        sigma = self._moments()[1]
        return (shape.score_of(h.elo0) - 0.5) / sigma, (shape.score_of(h.elo1) - 0.5) / sigma

    def _moments(self) -> tuple[float, float]:
        counts, values = _weights(self._counts, self._shape.spare)
        mean, sigma = moments(counts / counts.sum(), values)
        return float(mean), float(sigma)

    def _walk(self) -> Walk:
        """Return the walk of the LLR, in standard deviations of a score; one that has ended ends at the bound."""
        null, alternative = self._effects()
        lower, upper = self._bounds()
        place = min(max(self._llr, lower), upper)
        steps = self._sets * place / self._llr if self._llr else float(self._sets)
        unit = 1 / (alternative - null)
        mean, sigma = self._moments()
        walked = self._sets * ((mean - 0.5) / sigma - (null + alternative) / 2)
        if (
            self.is_decided and walked * self._llr > 0
        ):  # what was walked, where the exact LLR is far from its normal limit
            unit = walked / self._llr
        return Walk(steps, place * unit, lower * unit, upper * unit)

    def _more_sets(self) -> float | None:
        if self._sets < LEAST_SETS:
            return None
        if self.is_decided:
            return 0.0
        walk = self._walk()
        return expected_steps(walk, walk.place / walk.steps)

    def _estimates(self) -> tuple[Interval | None, Interval | None]:
        if not self._sets:
            return None, None
        shape, seen = self._shape, np.flatnonzero(self._counts)
        counts, values = _weights(self._counts, shape.spare)
        errors = tuple(z * (1 + (z * z + 1) / (4 * self._sets)) for z in self._errors())  # as Student's t, for few sets
        end, at_end = None, seen[0] in (0, shape.top)
        if len(seen) == 1 and 2 * seen[0] != shape.top:  # without any spread nothing bounds the effect
            end = "high" if 2 * seen[0] > shape.top else "low"
            errors = (0.0, -_Z_ALIKE, _Z_ALIKE)
        elo = _interval(lambda z: shape.elo_of(mean_at(counts, values, z)), errors, end if at_end else None)
        return elo, _interval(lambda z: shape.normalised_of(effect_at(counts, values, z)), errors, end)

    def _errors(self) -> tuple[float, ...]:
        """Return by how many standard errors the estimate and the ends of its interval lie above the scores' own."""
        if not self.is_decided or self._sets == LEAST_SETS:  # where it could not end before, nothing is exaggerated
            return 0.0, -_Z95, _Z95
        return self._unbiased()

    def _unbiased(self) -> tuple[float, ...]:
        """As `_errors`: of the median-unbiased effect and the ends of its interval.

        Where the effect is e, the LLR walks with a drift of e less the middle of both hypotheses.
        """
        walk = self._walk()
        found, root = walk.place / walk.steps, math.sqrt(self._sets)
        return tuple((unbiased_drift(walk, probability) - found) * root for probability in (0.5, 0.975, 0.025))


class _Ladder:
    """The rungs of a walk, each a new height, which tell how far it passes a barrier on average."""

    def __init__(self) -> None:
        self._height: float | None = None
        self._sum = 0.0
        self._squares = 0.0

    def climb(self, height: float) -> None:
        """Take the next place of the walk; the first one is the ground."""
        if self._height is None:
            self._height = height
        elif height > self._height:
            rung, self._height = height - self._height, height
            self._sum += rung
            self._squares += rung * rung

    @property
    def overshoot(self) -> float:
        """Half of the mean square of a rung over its mean: Siegmund, Sequential Analysis, 8.33."""
        return self._squares / self._sum / 2 if self._sum else 0.0


def _interval(at: Callable[[float], float], errors: Sequence[float], open_end: str | None) -> Interval:
    value, low, high = errors
    match open_end:
        case "low":
            return Interval(None, None, at(high))
        case "high":
            return Interval(None, at(low), None)
    return Interval(at(value), at(low), at(high))


def _weights(counts: Floats, spare: int) -> tuple[Floats, Floats]:
    """Return counts as weights, the possible ends never without any, and the scores of all columns, 0 to 1."""
    ends = [spare, -1 - spare]
    weights = counts.astype(np.float64)
    weights[..., ends] = np.maximum(weights[..., ends], _FLOOR)
    return weights, np.arange(counts.shape[-1]) / (counts.shape[-1] - 1)
