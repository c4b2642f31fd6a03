"""Ratings of a pool, their history, and the overall rating over several games.

A rating is a pure function of stored deals: equal deals give equal bytes, in whatever order or portions they come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from arena.rating.covariance import Estimate, estimate
from arena.rating.duels import Collector, collect
from arena.rating.fit import bounds, fit, groups
from arena.records import BotHash, RatedDeal, Rating
from arena.rules import OutcomeType

Anchor: TypeAlias = tuple[BotHash, float]
"""A bot and the Elo it is held at."""

_DECIMALS = 6  # of Elo: what is promised across machines, and coarser than what the number of BLAS threads can move


class Pool(msgspec.Struct, frozen=True, eq=False):
    """Everything a pool's results say.

    Attributes:
        ratings: best first, equal Elo by hash.
        estimate: Elo with the full covariance, for differences and the likelihood of superiority.
        groups: sets of bots linked by results; with more than one, differences between them rest on the prior.
    """

    ratings: tuple[Rating, ...]
    estimate: Estimate
    groups: tuple[tuple[BotHash, ...], ...]


def rate(deals: Iterable[RatedDeal], outcome_type: OutcomeType, anchor: Anchor | None = None) -> tuple[Rating, ...]:
    """Return the ratings of a pool, best first, equal Elo by hash."""
    return rate_pool(deals, outcome_type, anchor).ratings


def rate_collected(collector: Collector) -> tuple[Rating, ...]:
    """Return the ratings of the deals that a collector has taken so far, as `rate` would."""
    return _pool(collector, None).ratings


def rate_pool(deals: Iterable[RatedDeal], outcome_type: OutcomeType, anchor: Anchor | None = None) -> Pool:
    """Return the ratings of a pool with what else a leaderboard shows.

    Args:
        deals: rated deals of one pool, streamed once.
        outcome_type: as the game declares it.
        anchor: holds one bot's Elo instead of the pool's mean.
    """
    return _pool(collect(deals, outcome_type), anchor)


def history(
    rounds: Iterable[Iterable[RatedDeal]], outcome_type: OutcomeType, anchor: Anchor | None = None
) -> Iterator[tuple[Rating, ...]]:
    """Yield after each round what `rate` gives for all deals so far."""
    collector = Collector(outcome_type)
    for deals in rounds:
        collector.add(deals)
        yield _pool(collector, anchor).ratings


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


def _pool(collector: Collector, anchor: Anchor | None) -> Pool:
    duels = collector.total()
    estimated = estimate(collector, fit(duels), anchor)
    ratings = [
        Rating(
            bot=bot,
            elo=round(float(elo), _DECIMALS),
            error=_error(estimated, bot, bound),
            deals=int(deals),
            wins=int(wins),
            bound=bound,
        )
        for bot, elo, bound, deals, wins in zip(
            duels.bots, estimated.elo, bounds(duels), duels.deals, duels.wins, strict=True
        )
    ]
    ratings.sort(key=lambda r: (-r.elo, r.bot))
    linked = tuple(tuple(duels.bots[i] for i in group) for group in groups(duels))
    return Pool(tuple(ratings), estimated, linked)


def _error(estimated: Estimate, bot: BotHash, bound: str) -> float | None:
    """Return the error of a rating; none for a bound, where the spread of the results says nothing of its distance."""
    error = estimated.error(bot)
    return None if bound or error is None else round(error, _DECIMALS)


def _mean(bot: BotHash, ratings: Sequence[Rating], games: int) -> Rating:
    m = len(ratings)
    errors = [r.error for r in ratings if r.error is not None]
    kinds = {r.bound for r in ratings if r.bound}
    bound: Literal["", ">", "<"] = kinds.pop() if len(kinds) == 1 else ""
    return Rating(
        bot=bot,
        elo=round(math.fsum(r.elo for r in ratings) / m, _DECIMALS),
        error=round(math.sqrt(math.fsum(e * e for e in errors)) / m, _DECIMALS) if len(errors) == m else None,
        deals=sum(r.deals for r in ratings),
        wins=sum(r.wins for r in ratings),
        bound=bound,
        partial=m < games,
    )
