"""Rank intervals: exact where they must be, and as sure as they say."""

from __future__ import annotations

import numpy as np
import pytest

from arena.rating.covariance import Estimate
from arena.rating.duels import Floats
from arena.rating.ranks import _limits, rank_intervals
from arena.records import BotHash


def bots(count: int) -> tuple[BotHash, ...]:
    return tuple(BotHash(f"{number:03}") for number in range(count))


def estimated(elo: list[float] | Floats, covariance: Floats, decks: int = 50) -> Estimate:
    return Estimate(bots(len(elo)), np.array(elo, float), covariance, np.full(len(elo), decks), decks)


def independent(count: int, error: float) -> Floats:
    """Errors against the pool's mean, as `estimate` gives them."""
    contrast = np.eye(count) - 1.0 / count
    return error**2 * (contrast @ contrast.T)


def intervals(found: Estimate) -> list[tuple[int, int]]:
    return [rank_intervals(found)[bot] for bot in found.bots]


def test_bots_far_apart_have_one_place_each() -> None:
    assert intervals(estimated([1700, 1500, 1300], independent(3, 10.0))) == [(1, 1), (2, 2), (3, 3)]


def test_bots_that_cannot_be_told_apart_have_all_places() -> None:
    assert intervals(estimated([1504, 1500, 1496], independent(3, 10.0))) == [(1, 3)] * 3


def test_a_pair_is_judged_by_the_usual_two_sided_test() -> None:
    covariance = np.array([[25.0, -25.0], [-25.0, 25.0]])  # of a difference: a standard error of 10
    assert intervals(estimated([1510.5, 1490], covariance)) == [(1, 1), (2, 2)]
    assert intervals(estimated([1509, 1491], covariance)) == [(1, 2), (1, 2)]


def test_groups_share_places() -> None:
    assert intervals(estimated([1602, 1598, 1402, 1398], independent(4, 8.0))) == [(1, 2), (1, 2), (3, 4), (3, 4)]


@pytest.mark.parametrize("difference", [0.0, 1e-12])
def test_copies_of_one_bot_share_their_place_exactly(difference: float) -> None:
    covariance = np.array([[16.0, 16.0, -32.0], [16.0, 16.0, -32.0], [-32.0, -32.0, 64.0]])
    found = intervals(estimated([1600, 1600 - difference, 1300], covariance))
    assert found == [(1, 2), (1, 2), (3, 3)]


def test_two_copies_without_any_spread_are_told_apart_by_what_they_scored() -> None:
    assert intervals(estimated([1501, 1499], np.zeros((2, 2)))) == [(1, 1), (2, 2)]
    assert intervals(estimated([1500, 1500], np.zeros((2, 2)))) == [(1, 2), (1, 2)]


def test_who_has_no_error_bar_has_no_interval_and_may_have_any_place() -> None:
    found = estimated([1700, 1600, 1300], independent(3, 10.0))
    few = Estimate(found.bots, found.elo, found.covariance, np.array([50, 9, 50]), 50)
    assert rank_intervals(few) == {found.bots[0]: (1, 2), found.bots[2]: (2, 3)}
    assert rank_intervals(estimated([1700, 1300], independent(2, 10.0), decks=9)) == {}
    assert rank_intervals(estimated([], np.zeros((0, 0)))) == {}


def test_an_interval_holds_the_place_in_the_table_whoever_is_not_known() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        elo, decks = 1500 + 30 * rng.normal(size=7), np.where(rng.random(7) < 0.4, 9, 50)
        found = Estimate(bots(7), elo, independent(7, 10.0), decks, 50)
        for bot, (low, high) in rank_intervals(found).items():
            assert low <= 1 + (elo > elo[found.bots.index(bot)]).sum() <= high


def test_equal_pools_have_equal_intervals_in_any_order() -> None:
    rng = np.random.default_rng(5)
    elo = 1500 + 40 * rng.normal(size=12)
    factor = rng.normal(size=(12, 12))
    covariance = 30 * factor @ factor.T
    order = rng.permutation(12)
    shuffled = estimated(elo[order], covariance[np.ix_(order, order)])
    found = intervals(estimated(elo, covariance))
    assert [found[i] for i in order] == intervals(shuffled)
    assert found == intervals(estimated(elo, covariance))


def test_the_limit_is_that_of_every_bot_taken_alone() -> None:
    """Pairs are looked at once and draws in parts; here each bot is compared with each other one."""
    rng = np.random.default_rng(7)
    factor = rng.normal(size=(9, 6))
    factor[4] = factor[5]  # copies of one bot
    covariance = factor @ factor.T
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    draws = rng.normal(size=(1000, 6)) @ factor.T
    for row, limit in enumerate(_limits(draws, spread)):
        others = [other for other in range(9) if spread[row, other] > 1e-9]
        largest = [max(abs(draw[row] - draw[other]) / spread[row, other] for other in others) for draw in draws]
        assert limit == pytest.approx(np.quantile(largest, 0.95), rel=1e-12)


@pytest.mark.parametrize("spread", [0.0, 15.0, 60.0])
def test_an_interval_holds_the_true_place_as_often_as_it_says(spread: float) -> None:
    """Any place that equal bots may share counts as true."""
    rng = np.random.default_rng(int(spread))
    truth = np.sort(spread * rng.normal(size=8))[::-1]
    covariance = independent(8, 12.0)
    held = np.zeros(8)
    for _ in range(120):
        seen = truth + rng.multivariate_normal(np.zeros(8), covariance)
        for row, (low, high) in enumerate(intervals(estimated(seen, covariance))):
            best, worst = 1 + (truth > truth[row]).sum(), (truth >= truth[row]).sum()
            held[row] += low <= best and worst <= high if spread == 0 else low <= best <= high
    assert (held / 120 >= 0.88).all(), "three and a half standard deviations below 0.95"
