"""How sure a pool is, as it is kept: what readers tell of differences between bots without fitting anything again.

It needs no numpy, so that a command which only reads starts quickly.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

import msgspec

from arena.records import BotHash, Rating

FEWEST_DECKS = 10
"""With fewer decks an error bar would be a guess."""
NORMAL_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""

_DECIMALS = 6  # as those of Elo
_LIKE = 1e-5  # of Elo squared: far above rounding, far below what anybody is told


class Certainty(msgspec.Struct, frozen=True, eq=False):
    """What a fit says beside the ratings.

    Attributes:
        bots: ascending; the order of all that follows.
        covariance: of Elo, the lower triangle with its diagonal, row after row; only differences mean anything.
        naive: the same if each deal had a deck of its own and went as the strengths say.
        decks: by bot, decks on which it has a duel.
        groups: indices of bots linked by results; with more than one group, differences between them rest on the prior.
        design_effect: how many times the deals the same errors would have taken had each deal had a deck of its own;
            None below ten decks.
    """

    bots: tuple[BotHash, ...]
    covariance: array[float]
    naive: array[float]
    decks: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    design_effect: float | None = None

    def variance(self, i: int, j: int) -> float:
        """Return the variance of the difference between two bots, by their indices, in Elo squared."""
        cells = ((i, i, 1), (j, j, 1), (max(i, j), min(i, j), -2))
        return max(0.0, sum(times * self.covariance[high * (high + 1) // 2 + low] for high, low, times in cells))

    def is_like(self, other: Certainty) -> bool:
        """Tell whether it says the same, but for what machines may compute differently."""
        own, others = self._numbers(), other._numbers()
        if self._exact() != other._exact() or len(own) != len(others):
            return False
        return all(math.isclose(one, two, rel_tol=_LIKE, abs_tol=_LIKE) for one, two in zip(own, others, strict=True))

    def _exact(self) -> tuple[object, ...]:
        return self.bots, self.decks, self.groups, self.design_effect is None

    def _numbers(self) -> list[float]:
        return [*self.covariance, *self.naive, self.design_effect or 0.0]

    def is_known(self, i: int) -> bool:
        """Tell whether a bot has played on enough decks for an error bar."""
        return self.decks[i] >= FEWEST_DECKS

    def error(self, a: BotHash, b: BotHash) -> float | None:
        """Return half the width of the 95 % interval of the difference of two bots, in Elo; None below ten decks."""
        i, j = self.bots.index(a), self.bots.index(b)
        if not (self.is_known(i) and self.is_known(j)):
            return None
        return round(NORMAL_95 * math.sqrt(self.variance(i, j)), _DECIMALS)

    def superiority(self, a: Rating, b: Rating) -> float | None:
        """Return the likelihood that a is stronger than b, uncorrected for many pairs; None below ten decks."""
        i, j = self.bots.index(a.bot), self.bots.index(b.bot)
        if not (self.is_known(i) and self.is_known(j)):
            return None
        return superiority(a.elo - b.elo, self.variance(i, j))


def superiority(difference: float, variance: float) -> float:
    """Return the likelihood that a difference is above 0, given the variance of its estimate."""
    if variance <= 0:
        return 0.5 + 0.5 * ((difference > 0) - (difference < 0))
    return 0.5 * math.erfc(-difference / math.sqrt(2 * variance))


def anchored(ratings: Sequence[Rating], certainty: Certainty | None, anchor: BotHash, at: float) -> tuple[Rating, ...]:
    """Return ratings shifted so that one bot has a given Elo, with errors against it.

    A rating has no error if its bot or the anchor has only a bound or too few decks.

    Args:
        ratings: of one pool, the anchor among them.
        certainty: of the pool; without it no error is known.
        anchor: the bot whose Elo is given.
        at: that Elo.
    """
    held = next(rating for rating in ratings if rating.bot == anchor)

    def moved(rating: Rating) -> Rating:
        known = None if rating.bound or held.bound else certainty
        error = None if known is None else known.error(rating.bot, anchor)
        return msgspec.structs.replace(rating, elo=round(rating.elo - held.elo + at, _DECIMALS), error=error)

    return tuple(map(moved, ratings))


def overall(per_game: Mapping[str, Sequence[Rating]]) -> tuple[Rating, ...]:
    """Return the mean rating over games, each game with equal weight.

    A bot that lacks a game is marked partial: its mean is over the games it has, and it follows those that are ranked.
    Errors are combined as if the games were independent; decks of different games are.

    Args:
        per_game: the ratings of one pool of each game.

    Returns:
        Best first, equal Elo by hash; partial ones last.
    """
    by_bot: dict[BotHash, list[Rating]] = {}
    for ratings in per_game.values():
        for rating in ratings:
            by_bot.setdefault(rating.bot, []).append(rating)
    means = [_mean(bot, ratings, len(per_game)) for bot, ratings in by_bot.items()]
    return tuple(sorted(means, key=lambda r: (r.partial, -r.elo, r.bot)))


def _mean(bot: BotHash, ratings: Sequence[Rating], games: int) -> Rating:
    m = len(ratings)
    errors = [r.error for r in ratings if r.error is not None]
    kinds = {r.bound for r in ratings if r.bound}
    return Rating(
        bot=bot,
        elo=round(math.fsum(r.elo for r in ratings) / m, _DECIMALS),
        error=round(math.sqrt(math.fsum(e * e for e in errors)) / m, _DECIMALS) if len(errors) == m else None,
        deals=sum(r.deals for r in ratings),
        wins=sum(r.wins for r in ratings),
        bound=kinds.pop() if len(kinds) == 1 else "",
        partial=m < games,
    )
