"""Ratings of a pool and their history.

A rating is a pure function of stored deals: equal deals give equal bytes, in whatever order or portions they come.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
import numpy as np

from arena.rating.certainty import Certainty, overall
from arena.rating.covariance import Estimate, design_effect, estimate, naive_covariance
from arena.rating.duels import Collector, Rated, collect
from arena.rating.fit import bounds, fit, groups
from arena.rating.ranks import rank_intervals
from arena.records import BotHash, Rating
from arena.rules import OutcomeType

__all__ = ["Anchor", "Pool", "history", "overall", "rate", "rate_collected", "rate_pool"]

Anchor: TypeAlias = tuple[BotHash, float]
"""A bot and the Elo it is held at."""

_DECIMALS = 6  # of Elo: what is promised across machines, and coarser than what the number of BLAS threads can move


class Pool(msgspec.Struct, frozen=True, eq=False):
    """Everything a pool's results say.

    Attributes:
        ratings: best first, equal Elo by hash.
        estimate: Elo with the full covariance, for differences and the likelihood of superiority.
        groups: sets of bots linked by results; with more than one, differences between them rest on the prior.
        certainty: how sure the ratings are, as it is kept beside them.
    """

    ratings: tuple[Rating, ...]
    estimate: Estimate
    groups: tuple[tuple[BotHash, ...], ...]
    certainty: Certainty


def rate(deals: Iterable[Rated], outcome_type: OutcomeType, anchor: Anchor | None = None) -> tuple[Rating, ...]:
    """Return the ratings of a pool, best first, equal Elo by hash."""
    return rate_pool(deals, outcome_type, anchor).ratings


def rate_collected(collector: Collector) -> Pool:
    """Return what the deals say that a collector has taken so far, as `rate_pool` would."""
    return _pool(collector, None)


def rate_pool(deals: Iterable[Rated], outcome_type: OutcomeType, anchor: Anchor | None = None) -> Pool:
    """Return the ratings of a pool with what else a leaderboard shows.

    Args:
        deals: rated deals of one pool, streamed once.
        outcome_type: as the game declares it.
        anchor: holds one bot's Elo instead of the pool's mean.
    """
    return _pool(collect(deals, outcome_type), anchor)


def history(
    rounds: Iterable[Iterable[Rated]], outcome_type: OutcomeType, anchor: Anchor | None = None
) -> Iterator[tuple[Rating, ...]]:
    """Yield after each round what `rate` gives for all deals so far."""
    collector = Collector(outcome_type)
    for deals in rounds:
        collector.add(deals)
        yield _pool(collector, anchor).ratings


def _pool(collector: Collector, anchor: Anchor | None) -> Pool:
    duels = collector.total()
    fitted = fit(duels)
    estimated = estimate(collector, fitted, anchor)
    ranks = rank_intervals(estimated)
    found = zip(duels.bots, estimated.elo.tolist(), bounds(duels), duels.deals, duels.wins, strict=True)
    ratings = [
        Rating(
            bot=bot,
            elo=round(elo, _DECIMALS),
            error=_error(estimated, bot, bound),
            deals=int(deals),
            wins=int(wins),
            bound=bound,
            ranks=None if bound else ranks.get(bot),
        )
        for bot, elo, bound, deals, wins in found
    ]
    ratings.sort(key=lambda r: (-r.elo, r.bot))
    linked, naive = groups(duels), naive_covariance(fitted)
    below = np.tril_indices(len(duels.bots))
    kept = Certainty(
        duels.bots,
        array("d", estimated.covariance[below].tobytes()),
        array("d", naive[below].tobytes()),
        tuple(estimated.decks.tolist()),
        linked,
        design_effect(estimated, naive),
    )
    named = tuple(tuple(duels.bots[i] for i in group) for group in linked)
    return Pool(tuple(ratings), estimated, named, kept)


def _error(estimated: Estimate, bot: BotHash, bound: str) -> float | None:
    """Return the error of a rating; none for a bound, where the spread of the results says nothing of its distance."""
    error = estimated.error(bot)
    return None if bound or error is None else round(error, _DECIMALS)
