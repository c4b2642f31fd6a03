"""What is kept of how sure a pool is says what the fit said, anchors included."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from array import array

import msgspec
import numpy as np
import pytest

from arena.rating.certainty import Certainty, anchored, overall, superiority
from arena.rating.pool import Pool, rate_pool
from arena.records import BotHash, RatedDeal, Rating


def simulated(seed: int = 3, bots: int = 5, decks: int = 60, seats: int = 3, legs: int = 1) -> list[RatedDeal]:
    luck = np.random.default_rng(seed)
    deals = []
    for deck in range(decks):
        table = luck.permutation(bots)[:seats]
        places = 1 + np.argsort(np.argsort(luck.gumbel(size=seats) + table / 3))
        names = tuple(BotHash(chr(97 + i)) for i in table)
        deals += [RatedDeal(f"{deck:03}", names, tuple(places.tolist()))] * legs
    return deals


@pytest.fixture(scope="module")
def pool() -> Pool:
    return rate_pool(simulated(), "ranking")


def test_differences_are_those_of_the_fit(pool: Pool) -> None:
    kept, by_bot = pool.certainty, {r.bot: r for r in pool.ratings}
    for a, b in itertools.permutations(kept.bots, 2):
        assert kept.superiority(by_bot[a], by_bot[b]) == pytest.approx(pool.estimate.los(a, b), abs=1e-7)
        held = rate_pool(simulated(), "ranking", (b, 1000.0)).estimate
        assert kept.error(a, b) == pytest.approx(held.error(a), abs=1e-6)


def test_an_anchor_at_display_is_an_anchor_in_the_fit(pool: Pool) -> None:
    held = {r.bot: r for r in rate_pool(simulated(), "ranking", (BotHash("c"), 1200.0)).ratings}
    shown = anchored(pool.ratings, pool.certainty, BotHash("c"), 1200.0)
    assert [r.bot for r in shown] == [r.bot for r in pool.ratings]
    for one in shown:
        assert one.elo == pytest.approx(held[one.bot].elo, abs=2e-6)
        assert one.error == pytest.approx(held[one.bot].error, abs=2e-6)
        assert one.ranks == held[one.bot].ranks


def test_no_error_is_known_against_a_bound_or_without_what_was_kept(pool: Pool) -> None:
    first, *others = pool.ratings
    bound = [msgspec.structs.replace(first, bound=">"), *others]
    assert {r.error for r in anchored(bound, pool.certainty, first.bot, 1200.0)} == {None}
    shown = anchored(bound, pool.certainty, others[0].bot, 1200.0)
    assert [r.error is None for r in shown] == [True, False, False, False, False]
    assert {r.error for r in anchored(pool.ratings, None, first.bot, 1200.0)} == {None}


def test_below_ten_decks_nothing_is_said() -> None:
    few = rate_pool(simulated(decks=9), "ranking")
    a, b, *_ = few.ratings
    assert (few.certainty.error(a.bot, b.bot), few.certainty.superiority(a, b)) == (None, None)
    assert few.certainty.design_effect is None
    assert {r.ranks for r in few.ratings} == {None}


@pytest.mark.parametrize("legs", [1, 2, 4])
def test_the_design_effect_tells_what_a_deal_is_worth(legs: int) -> None:
    """The same result in all legs is one result, so each deal is worth a share of one."""
    found = rate_pool(simulated(decks=400, legs=legs), "ranking").certainty.design_effect
    assert found is not None
    assert found * legs == pytest.approx(1.0, abs=0.12)


def test_the_design_effect_of_seatings_that_cancel_luck_is_large() -> None:
    """One of two bots wins by its seat but on one deck of ten, where it wins both seats: most deals say nothing."""
    a, b = BotHash("a"), BotHash("b")
    deals = []
    for deck in range(100):
        deals += [
            RatedDeal(f"{deck}", (a, b), (1, 2)),
            RatedDeal(f"{deck}", (b, a), (2, 1) if deck % 10 < 2 else (1, 2)),
        ]
        if deck % 20 < 2:
            deals[-2] = RatedDeal(f"{deck}", (a, b), (2, 1))
    found = rate_pool(deals, "ranking").certainty.design_effect
    assert found is not None
    assert found > 4


def test_copies_that_vary_in_nothing_have_no_design_effect() -> None:
    a, b = BotHash("a"), BotHash("b")
    deals = [RatedDeal(f"{deck}", seats, (1, 2)) for deck in range(20) for seats in ((a, b), (b, a))]
    pool = rate_pool(deals, "ranking")
    assert pool.certainty.design_effect is None
    assert rate_pool([], "ranking").certainty.design_effect is None


def test_perfect_scores_have_no_rank_interval() -> None:
    deals = [
        RatedDeal(f"{deck}", (BotHash(pair[0]), BotHash(pair[1])), (1, 2))
        for deck in range(20)
        for pair in ("ab", "bc", "cb")
    ]
    ranks = {r.bot: r.ranks for r in rate_pool(deals, "ranking").ratings}
    assert ranks[BotHash("a")] is None
    assert ranks[BotHash("b")] is not None


def test_superiority_is_the_normal_distribution() -> None:
    assert superiority(1.96, 1.0) == pytest.approx(0.975, abs=1e-4)
    assert superiority(-19.6, 100.0) == pytest.approx(0.025, abs=1e-4)
    assert [superiority(d, 0.0) for d in (-1.0, 0.0, 1.0)] == [0.0, 0.5, 1.0]


def test_what_rounding_moves_is_alike_and_nothing_else(pool: Pool) -> None:
    kept = pool.certainty
    nudged = array("d", (value * (1 + 1e-9) for value in kept.covariance))
    replace = msgspec.structs.replace
    assert kept.is_like(replace(kept, covariance=nudged))
    for other in (
        replace(kept, covariance=array("d", (value + 0.1 for value in kept.covariance))),
        replace(kept, covariance=kept.covariance[:-1]),
        replace(kept, naive=array("d", (value + 0.1 for value in kept.naive))),
        replace(kept, decks=kept.decks[::-1] if kept.decks != kept.decks[::-1] else (0, *kept.decks[1:])),
        replace(kept, groups=((0,), (1, 2, 3, 4))),
        replace(kept, design_effect=None),
        replace(kept, design_effect=9.0),
    ):
        assert not kept.is_like(other)


def test_a_variance_is_never_negative() -> None:
    spread = array("d", [1.0, 1.0 + 1e-15, 1.0])
    same = Certainty((BotHash("a"), BotHash("b")), spread, spread, (20, 20), ((0, 1),))
    assert same.variance(0, 1) == 0.0
    assert same.error(BotHash("a"), BotHash("b")) == 0.0


def test_an_overall_anchor_stands_at_its_value_and_errors_combine() -> None:
    games = {}
    for seed in (3, 4):
        found = rate_pool(simulated(seed), "ranking")
        games[str(seed)] = anchored(found.ratings, found.certainty, BotHash("c"), 1200.0)
    mean = {r.bot: r for r in overall(games)}
    assert (mean[BotHash("c")].elo, mean[BotHash("c")].error) == (1200.0, 0.0)
    errors = [r.error or 0.0 for ratings in games.values() for r in ratings if r.bot == "a"]
    assert mean[BotHash("a")].error == pytest.approx(math.hypot(*errors) / 2, abs=1e-6)
    assert {r.ranks for r in mean.values()} == {None}


def test_readers_need_neither_numpy_nor_trio() -> None:
    look = "import sys, arena.cli.leaderboard, arena.cli.strength; print(*{'numpy', 'trio'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "\n"


def test_ratings_carry_their_places() -> None:
    assert Rating(BotHash("a"), 1500.0, None, 0, 0).ranks is None


def test_linear_algebra_takes_one_thread() -> None:
    """Others would wait by spinning, on the cores that bots play on."""
    code = (
        "import arena.cli, os, numpy; m = numpy.ones((800, 800)); m @ m; numpy.linalg.eigh(m); "
        "print(len(os.listdir('/proc/self/task')))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1\n"
