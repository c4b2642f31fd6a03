"""The history of a pool: what `arena.rating` says of its deals after each round, with the corrections made since.

It is derived like the ratings themselves, so after a correction the rounds that it concerns are fitted again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from sqlite_utils import Database

from arena.rating.duels import Collector
from arena.rating.pool import Pool, rate_collected
from arena.records import PoolKey
from arena.store import corrections, matches, ratings
from arena.store.corrections import Correction
from arena.store.ratings import RoundOf


class Fitted(msgspec.Struct, frozen=True, eq=False):
    """A pool after a round.

    Attributes:
        rounds: that one, and those after it that brought no deal that is rated.
        deals: how many it rests on.
    """

    rounds: tuple[RoundOf, ...]
    pool: Pool
    deals: int


def fits(db: Database, pool: int, key: PoolKey, since: Collection[RoundOf] | None = None) -> Iterator[Fitted]:
    """Fit a pool after each of its rounds, in the order in which they were completed.

    Args:
        since: leave out what comes before the first of these; by default nothing.
    """
    collector = Collector(key.outcome_type)
    is_due = since is None
    for rounds in ratings.rounds(db, pool):
        for tournament, number in rounds:
            collector.add(matches.rated_deals(db, pool, (tournament, key.game, number)))
        is_due = is_due or not set(rounds).isdisjoint(since or ())
        if is_due:
            yield Fitted(rounds, rate_collected(collector), collector.taken)


def rate_again(db: Database, made: Correction) -> None:
    """Fit the ratings again that rest on what was corrected, now and after each round since."""
    concerned = corrections.concerned(db, made)
    for pool in ratings.pools(db):
        if since := concerned.get(pool.id):
            _fit_again(db, pool.id, pool.key, since)


def _fit_again(db: Database, pool: int, key: PoolKey, since: Collection[RoundOf]) -> None:
    every = [one for rounds in ratings.rounds(db, pool) for one in rounds]
    last = None
    for last in fits(db, pool, key, since):
        for one in last.rounds:
            ratings.keep_history(db, pool, *one, last.pool.ratings)
    if last is not None:
        earlier = ratings.history_after(db, pool, *every[-2]) if len(every) > 1 else {}
        before = {bot: elo for bot, (elo, _, _) in earlier.items()}
        found, certainty = last.pool.ratings, last.pool.certainty
        ratings.save(db, pool, *every[-1], found, last.deals, certainty=certainty, before=before)
