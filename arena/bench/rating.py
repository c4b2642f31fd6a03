"""What ratings and pairings of large fields cost: 200 bots over a million deals, 500 bots through a Swiss."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random

import msgspec

from arena.rating.covariance import estimate
from arena.rating.duels import Collector
from arena.rating.fit import fit
from arena.rating.ranks import rank_intervals
from arena.records import BotHash, RatedDeal, Round, TableScore
from arena.schedule.swiss import next_round

BOTS = 200
DECKS_OF_A_DEAL = 10
"""So many deals share a deck."""


class RatingCost(msgspec.Struct, frozen=True):
    """What a pool of two seats costs to rate.

    Attributes:
        collect_s: to take all deals, once.
        fit_ms: the most likely strengths, the median over the rounds.
        errors_ms: their covariance, likewise.
        ranks_ms: the rank intervals, likewise.
    """

    deals: int
    collect_s: float
    fit_ms: float
    errors_ms: float
    ranks_ms: float


class SwissCost(msgspec.Struct, frozen=True):
    """What all pairings of a Swiss of two seats cost.

    Attributes:
        repeats: pairs that met twice.
    """

    bots: int
    rounds: int
    seconds: float
    repeats: int


def rating_cost(deals: int, rounds: int) -> RatingCost:
    """Measure a pool of that many deals."""
    collector = Collector("ranking")
    collect_s = _seconds(lambda: collector.add(_deals(deals)))
    duels = collector.total()
    fitted = fit(duels)
    estimated = estimate(collector, fitted)

    def median_ms(work: Callable[[], object]) -> float:
        return 1000 * statistics.median(_seconds(work) for _ in range(rounds))

    return RatingCost(
        deals,
        collect_s,
        median_ms(lambda: fit(duels)),
        median_ms(lambda: estimate(collector, fitted)),
        median_ms(lambda: rank_intervals(estimated)),
    )


def swiss_cost(bots: int, rounds: int) -> SwissCost:
    """Measure the pairings of a Swiss whose results are drawn by lot."""
    luck = Random(1)
    history: list[Round] = []
    scores: list[TableScore] = []
    seconds, met, repeats = 0.0, set[frozenset[int]](), 0
    for _ in range(rounds):
        began = time.perf_counter()
        played = next_round(range(bots), 2, history, scores, b"bench", bye_score=Fraction(1, 2))
        seconds += time.perf_counter() - began
        history.append(played)
        for table in played.tables:
            repeats += frozenset(table) in met
            met.add(frozenset(table))
            won = luck.randrange(21)
            scores.append(TableScore(played.number, table, ((0, won), (20 - won, 0)), 10))
    return SwissCost(bots, rounds, seconds, repeats)


def _deals(count: int) -> Iterator[RatedDeal]:
    luck = Random(1)
    bots = [BotHash(f"{number:064}") for number in range(BOTS)]
    for number in range(count):
        one, other = luck.sample(range(BOTS), 2)
        better = luck.random() < 0.5 + (one - other) / (4 * BOTS)
        yield RatedDeal(str(number // DECKS_OF_A_DEAL), (bots[one], bots[other]), (1, 2) if better else (2, 1))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
