"""Tables that tell most: what is unknown comes first, the saving is real, and error bars stay honest."""

from __future__ import annotations

import math
from array import array
from itertools import combinations
from statistics import fmean

import msgspec
import numpy as np
import pytest

from arena.luck import Stream
from arena.rating.certainty import Certainty
from arena.rating.duels import Collector, collect
from arena.rating.focus import ENOUGH_DECKS, FEWEST_TABLES, Known, choose_tables, known_of, widest
from arena.rating.pool import rate_collected
from arena.records import BotHash, RatedDeal, Rating

DECKS = 5


def bots(count: int) -> list[BotHash]:
    return [BotHash(f"{number:02}") for number in range(count)]


def lot(number: int = 0) -> Stream:
    return Stream(bytes(32), "test", number)


def chosen(known: Known, target: float = 30.0, seats: int = 2, number: int = 0) -> tuple[tuple[int, ...], ...]:
    return choose_tables(known, target, seats, 2 * DECKS, "ranking", lot(number))


def rated(count: int, error: float | None = 10.0, variance: float = 100.0) -> tuple[list[Rating], Certainty]:
    """Bots of equal Elo, each known so well, all linked."""
    ratings = [Rating(bot, 1500.0, error, 50, 25) for bot in bots(count)]
    spread = array("d", [variance * (i == j) for i in range(count) for j in range(i + 1)])
    return ratings, Certainty(tuple(bots(count)), spread, spread, (50,) * count, (tuple(range(count)),), 1.0)


def test_of_unknown_bots_all_are_looked_at_and_nobody_twice() -> None:
    known = known_of(bots(8), [], None)
    assert widest(known)[0] == math.inf
    tables = chosen(known)
    assert sorted(bot for table in tables for bot in table) == list(range(8))
    assert chosen(known) == tables
    assert chosen(known, number=1) != tables, "by lot"


@pytest.mark.parametrize(("count", "seats"), [(9, 3), (8, 4), (5, 4), (3, 3)])
def test_larger_tables_are_full_and_differ(count: int, seats: int) -> None:
    tables = chosen(known_of(bots(count), [], None), seats=seats)
    assert {len(set(table)) for table in tables} == {seats}
    assert len({frozenset(table) for table in tables}) == len(tables) <= max(FEWEST_TABLES, count // seats)
    assert {bot for table in tables for bot in table} == set(range(count))


def test_what_is_sure_enough_is_not_played() -> None:
    known = known_of(bots(6), *rated(6, variance=100.0))
    assert widest(known)[0] == pytest.approx(1.96 * math.sqrt(200.0), abs=0.01)
    assert chosen(known, target=28.0) == ()
    assert chosen(known, target=27.0) != ()


def test_the_least_known_bot_sits_at_every_table() -> None:
    ratings, certainty = rated(6)
    certainty.covariance[14] = certainty.naive[14] = 900.0  # of bot 4 with itself
    known = known_of(bots(6), ratings, certainty)
    assert 4 in widest(known)[1:]
    tables = chosen(known, target=30.0)
    assert tables
    assert all(4 in table for table in tables)


def test_close_bots_tell_more_than_unlike_ones() -> None:
    known = known_of(bots(3), *rated(3, variance=500.0))
    known.elo[:] = 1500.0, 1510.0, 2300.0
    assert set(chosen(known, target=50.0)[0]) == {0, 1}


@pytest.mark.parametrize("outcome", ["ranking", "single_loser"])
def test_a_new_bot_and_one_with_a_bound_are_too_wide(outcome: str) -> None:
    ratings, certainty = rated(4, variance=10.0)
    ratings[1] = msgspec.structs.replace(ratings[1], error=None, bound=">")
    known = known_of(bots(5), ratings, certainty)
    assert widest(known)[0] == math.inf
    wide = {pair for pair in combinations(range(5), 2) if math.isinf(known.variance[pair])}
    assert wide == {pair for pair in combinations(range(5), 2) if {1, 4} & set(pair)}
    tables = choose_tables(known, 30.0, 2, 10, outcome, lot())  # type: ignore[arg-type]  # one of two words
    assert 4 in tables[0]


def test_groups_that_never_met_are_as_unknown_as_new_bots() -> None:
    ratings, certainty = rated(4, variance=10.0)
    apart = msgspec.structs.replace(certainty, groups=((0, 1), (2, 3)))
    known = known_of(bots(4), ratings, apart)
    assert math.isinf(known.variance[0, 2])
    assert known.variance[0, 1] == pytest.approx(20.0)
    (first, *_) = chosen(known)
    assert len({0, 1} & set(first)) == 1, "it links them"


def test_an_error_bar_is_at_least_as_wide_as_it_has_to_be_expected_of_few_decks() -> None:
    ratings, certainty = rated(3, variance=100.0)
    lucky = msgspec.structs.replace(certainty, covariance=array("d", [1e-6 * (v > 0) for v in certainty.covariance]))
    assert widest(known_of(bots(3), ratings, lucky))[0] == pytest.approx(27.72, abs=0.01)
    shared = msgspec.structs.replace(lucky, design_effect=4.0)
    assert widest(known_of(bots(3), ratings, shared))[0] == pytest.approx(13.86, abs=0.01)
    half = msgspec.structs.replace(shared, decks=(ENOUGH_DECKS, ENOUGH_DECKS - 1, ENOUGH_DECKS))
    assert widest(known_of(bots(3), ratings, half))[1:] == (0, 1)


def test_copies_are_known_as_well_as_the_leaderboard_says_once_there_are_enough_decks() -> None:
    """They play alike, so that each deck is even; what such decks are worth on average says nothing of them."""
    for decks, wide in ((ENOUGH_DECKS - 1, True), (ENOUGH_DECKS, False)):
        deals = [
            RatedDeal(f"{deck:03}", (BotHash("00"), BotHash("01")), places)
            for deck in range(decks)
            for places in ((1, 2), (2, 1))
        ]
        pool = rate_collected(collect(deals, "ranking"))
        known = known_of(bots(2), pool.ratings, pool.certainty, deals)
        told = pool.certainty.error(*bots(2))
        assert told is not None
        assert (widest(known)[0] > 30.0 > told) if wide else widest(known)[0] == pytest.approx(told, abs=1e-5)
        assert bool(chosen(known)) is wide


def test_a_difference_that_decks_tell_better_than_expected_goes_on_so() -> None:
    ratings, certainty = rated(8, variance=900.0)
    better = msgspec.structs.replace(
        certainty, covariance=array("d", [v / 4 for v in certainty.covariance]), decks=(ENOUGH_DECKS,) * 8
    )
    known = known_of(bots(8), ratings, better)
    assert widest(known)[0] == pytest.approx(1.96 * math.sqrt(450.0), abs=0.01)
    assert chosen(known, target=42.0) == ()
    assert chosen(known, target=41.0) != ()


# The saving, against a round robin that goes on to the same precision


class Played(msgspec.Struct):
    """What it took: deals, and the share of intervals that held the truth."""

    deals: int
    held: float


def simulated(
    strength: np.ndarray[tuple[int], np.dtype[np.float64]], target: float, seed: int, *, focused: bool
) -> Played:
    """Play independent deals until every error bar is small enough."""
    luck, count = np.random.default_rng(seed), len(strength)
    collector, deals, deck, number = Collector("ranking"), 0, 0, 0
    known, pool = known_of(bots(count), [], None), rate_collected(collector)
    while widest(known)[0] > target:
        tables = chosen(known, target, number=number) if focused else berger(count, number, seed)
        number += 1
        new = []
        for one, other in tables:
            for _ in range(DECKS):
                deck += 1
                won = luck.random(2) < 1 / (1 + np.exp(strength[other] - strength[one]))
                pair = (BotHash(f"{one:02}"), BotHash(f"{other:02}"))
                new += [RatedDeal(f"{deck:07}", pair, (1, 2) if first else (2, 1)) for first in won.tolist()]
        deals += len(new)
        collector.add(new)
        pool = rate_collected(collector)
        known = known_of(bots(count), pool.ratings, pool.certainty)
    elo = {rating.bot: rating.elo for rating in pool.ratings}
    truth = 400 / math.log(10) * strength
    held = [
        abs(elo[bots(count)[i]] - elo[bots(count)[j]] - truth[i] + truth[j])
        <= (pool.certainty.error(bots(count)[i], bots(count)[j]) or 0.0)
        for i, j in combinations(range(count), 2)
    ]
    return Played(deals, fmean(held))


def berger(count: int, number: int, seed: int) -> list[tuple[int, int]]:
    """Return a round of a round robin; each cycle is drawn anew."""
    cycle, step = divmod(number, count - 1)
    first, *order = np.random.default_rng((seed, cycle)).permutation(count).tolist()
    circle = [first, *order[step:], *order[:step]]
    return [(circle[i], circle[count - 1 - i]) for i in range(count // 2)]


def compared(count: int, spread: float, target: float, runs: int) -> tuple[float, float]:
    """Return the share of deals saved, and the share of error bars that held."""
    strength = np.linspace(-spread, spread, count)
    plain = [simulated(strength, target, seed, focused=False) for seed in range(runs)]
    focused = [simulated(strength, target, seed, focused=True) for seed in range(runs)]
    saved = 1 - sum(one.deals for one in focused) / sum(one.deals for one in plain)
    return saved, fmean(one.held for one in focused)


@pytest.mark.slow
def test_unlike_bots_are_known_as_well_by_fewer_deals() -> None:
    saved, held = compared(8, 2.0, 60.0, runs=3)
    assert saved > 0.1
    assert held > 0.85


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("count", "spread", "target", "least"),
    [(8, 0.0, 30.0, 0.0), (8, 1.0, 30.0, 0.06), (8, 2.0, 30.0, 0.16), (16, 1.5, 40.0, 0.1)],
)
def test_the_saving_against_a_round_robin(count: int, spread: float, target: float, least: float) -> None:
    saved, held = compared(count, spread, target, runs=20)
    print(f"{count} bots over {2 * spread * 173.7:.0f} Elo until ±{target:g}: {saved:.1%} fewer deals, {held:.3f} held")
    assert saved > least
    assert 0.90 <= held <= 0.98, "0.95 within two and a half standard deviations of so many runs"


# Error bars after stopping, with bots that share the luck of the decks


def stopped(count: int, alike: int, swing: float, target: float, seed: int) -> list[bool]:
    """Play equal bots until every error bar is small enough; tell of each whether it held.

    Args:
        alike: so many of them play alike, so that the deck decides.
        swing: standard deviation of the deck's luck, in natural units.
    """
    luck, names = np.random.default_rng(seed), bots(count)
    collector, number = Collector("ranking"), 0
    known, pool = known_of(names, [], None), rate_collected(collector)
    while widest(known)[0] > target:
        number += 1
        decks, draws = luck.normal(0.0, swing, DECKS), luck.random(DECKS)
        new = []
        for one, other in chosen(known, target, number=number):
            for deck in range(DECKS):
                chance = 1 / (1 + math.exp(-decks[deck]))
                same = max(one, other) < alike
                won = (np.full(2, draws[deck]) if same else luck.random(2)) < chance
                tables = ((names[one], names[other]), (names[other], names[one]))
                new += [
                    RatedDeal(f"{number}-{deck}", table, (1, 2) if first else (2, 1))
                    for table, first in zip(tables, won.tolist(), strict=True)
                ]
        collector.add(new)
        pool = rate_collected(collector)
        known = known_of(names, pool.ratings, pool.certainty)
    elo = {rating.bot: rating.elo for rating in pool.ratings}
    return [
        abs(elo[one] - elo[other]) <= (pool.certainty.error(one, other) or 0.0) + 1e-6
        for one, other in combinations(names, 2)
    ]


@pytest.mark.slow
def test_error_bars_hold_after_stopping() -> None:
    held = [fmean(stopped(6, 2, 1.5, 100.0, seed)) for seed in range(25)]
    assert 0.88 <= fmean(held) <= 0.99, "0.95 within what so few runs tell"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("alike", "swing", "target"), [(0, 0.0, 100.0), (0, 2.0, 100.0), (3, 1.5, 100.0), (3, 1.5, 50.0), (0, 2.0, 50.0)]
)
def test_error_bars_hold_after_stopping_in_many_runs(alike: int, swing: float, target: float) -> None:
    held = fmean(fmean(stopped(6, alike, swing, target, seed)) for seed in range(150))
    print(f"6 bots, {alike} alike, luck {swing:g}, until ±{target:g}: {held:.3f} held")
    assert 0.92 <= held <= 0.97
