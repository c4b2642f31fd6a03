"""The fit, pools and the overall rating: published examples, an independent optimiser, and corner cases."""

from __future__ import annotations

import gc
import math
import threading
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
import scipy.optimize

from arena.rating import duels as counting
from arena.rating.covariance import ELO
from arena.rating.duels import Collector, Duels, collect, joined
from arena.rating.fit import bounds, fit, groups
from arena.rating.pool import history, overall, rate, rate_pool
from arena.records import BotHash, RatedDeal, RatedMatch, Rating
from arena.rules import OutcomeType
from tests.fakes_executor import apart


def deal(deck: object, bots: str, *places: int) -> RatedDeal:
    """A deal of bots with one-letter hashes; without places they finish in the order given."""
    return RatedDeal(str(deck), tuple(map(BotHash, bots)), places or tuple(range(1, len(bots) + 1)))


def won(results: Mapping[str, int]) -> list[RatedDeal]:
    """`{"ab": 3}`: a beat b three times, each on its own deck."""
    return [deal(f"{pair}{i}", pair) for pair, times in results.items() for i in range(times)]


def summed(deals: Iterable[RatedDeal], outcome_type: OutcomeType = "ranking") -> Duels:
    return collect(deals, outcome_type).total()


def by_deck(collector: Collector) -> Duels:
    return joined([*collector.blocks()])


def elo_of(deals: Iterable[RatedDeal], outcome_type: OutcomeType = "ranking") -> dict[str, float]:
    return {r.bot: r.elo for r in rate(deals, outcome_type)}


def simulated(seed: int, bots: int, seats: int, decks: int, outcome_type: OutcomeType) -> tuple[list[RatedDeal], Any]:
    """Deals in which the loser is drawn with chance ~ exp(-theta), or the ranking by Plackett-Luce."""
    luck = np.random.default_rng(seed)
    theta = np.linspace(-1, 1, bots)
    deals = []
    for deck in range(decks):
        table = luck.permutation(bots)[:seats]
        noise = luck.gumbel(size=seats)
        if outcome_type == "ranking":
            places = 1 + np.argsort(np.argsort(-(theta[table] + noise)))
        else:
            places = np.where(np.arange(seats) == np.argmax(noise - theta[table]), seats, 1)
        names = "".join(chr(97 + i) for i in table)
        deals.append(deal(deck, names, *places.tolist()))
    return deals, theta


# Published examples


def test_bradley_terry_example_of_wikipedia() -> None:
    results = {"ab": 2, "ba": 3, "ad": 1, "da": 4, "bc": 5, "cb": 3, "cd": 1, "dc": 3}
    theta = fit(summed(won(results)), prior=0.0).theta
    assert np.exp(theta) == pytest.approx([0.640, 1.043, 0.660, 2.270], abs=6e-4)
    assert theta * ELO == pytest.approx([-77.57, 7.37, -72.23, 142.44], abs=0.006)


def test_pairwise_example_of_choix() -> None:
    theta = fit(summed(won({"ab": 2, "bc": 1, "ca": 1})), prior=0.0).theta
    assert theta == pytest.approx([0.419617624, -0.419617624, 0.0], abs=1e-9)


# An independent optimiser


def most_likely(deals: list[RatedDeal], bots: str, prior: float, outcome_type: OutcomeType) -> Any:
    """Maximise the likelihood deal by deal and pair by pair, as the definition reads."""

    def loss(theta: Any) -> float:
        total = sum(prior / 2 * (np.logaddexp(0, t) + np.logaddexp(0, -t)) for t in theta)
        for d in deals:
            k = len(d.bots)
            weight = 3 / (k + 1) if outcome_type == "ranking" else 2 / k
            for i in range(k):
                for j in range(k):
                    score = 1.0 if d.places[i] < d.places[j] else 0.5 if d.places[i] == d.places[j] else 0.0
                    if score == 0.5 and outcome_type == "single_loser" and len(set(d.places)) > 1:
                        continue
                    if i != j:
                        gap = theta[bots.index(d.bots[i])] - theta[bots.index(d.bots[j])]
                        total += weight * score * np.logaddexp(0, -gap)
        return float(total)

    found = scipy.optimize.minimize(loss, np.zeros(len(bots)), method="BFGS", options={"gtol": 1e-7}).x
    return found - found.mean()


def test_two_seats_without_prior_equal_a_plain_maximum_likelihood_fit() -> None:
    deals = simulated(1, bots=5, seats=2, decks=150, outcome_type="ranking")[0]
    deals += [deal(f"draw{i}", pair, 1, 1) for i, pair in enumerate(("ab", "ce", "ad"))]
    theta = fit(summed(deals), prior=0.0).theta
    assert theta * ELO == pytest.approx(most_likely(deals, "abcde", 0.0, "ranking") * ELO, abs=1e-3)


@pytest.mark.parametrize("outcome_type", ["ranking", "single_loser"])
def test_mixed_numbers_of_seats_equal_the_definition(outcome_type: OutcomeType) -> None:
    deals = [d for k in (2, 3, 4) for d in simulated(k, 5, k, 40, outcome_type)[0]]
    deals += [deal("draw", "abcd", 1, 1, 1, 1), deal("two faults", "abcd", 1, 4, 3, 1)]
    expected = 1500 + most_likely(deals, "abcde", 1.0, outcome_type) * ELO
    got = elo_of(deals, outcome_type)
    assert [got[b] for b in "abcde"] == pytest.approx(expected.tolist(), abs=1e-3)


# One loser


def never_losing(deals: int) -> list[RatedDeal]:
    return [deal(i, "abcd", *[4 if seat == 1 + i % 3 else 1 for seat in range(4)]) for i in range(deals)]


def test_a_bot_that_never_loses_rises_without_a_cap() -> None:
    leads = []
    for number in (30, 300, 3000):
        elo = elo_of(never_losing(number), "single_loser")
        leads.append(elo["a"] - elo["b"])
    assert leads[0] > 300
    assert leads[1] > leads[0] + 300
    assert leads[2] > leads[1] + 300
    with_ties = elo_of(never_losing(3000), "ranking")
    assert with_ties["a"] - with_ties["b"] < 121  # what dropping structural ties is for


@pytest.mark.parametrize("seats", [2, 4, 6])
def test_one_loser_keeps_the_scale(seats: int) -> None:
    deals, theta = simulated(7, bots=8, seats=seats, decks=6000, outcome_type="single_loser")
    fitted = fit(summed(deals, "single_loser")).theta
    assert np.polyfit(theta, fitted, 1)[0] == pytest.approx(1.0, abs=0.06)


def test_a_full_ranking_keeps_the_scale() -> None:
    deals, theta = simulated(8, bots=8, seats=4, decks=4000, outcome_type="ranking")
    assert np.polyfit(theta, fit(summed(deals)).theta, 1)[0] == pytest.approx(1.0, abs=0.06)


def test_structural_ties_are_dropped_and_a_draw_is_not() -> None:
    assert len(summed([deal(1, "abc", 1, 1, 3)], "single_loser").low) == 2
    draw = summed([deal(1, "abc", 1, 1, 1)], "single_loser")
    assert draw.halves.tolist() == [1, 1, 1]
    assert draw.wins.tolist() == [0, 0, 0], "nobody lost, so nobody won"


# Counting


def test_duels_are_summed_by_deck_pair_and_seats() -> None:
    duels = by_deck(collect([deal("y", "ba"), deal("y", "ab"), deal("y", "abc", 1, 1, 3), deal("x", "ba")], "ranking"))
    rows = zip(duels.cluster, duels.low, duels.high, duels.seats, duels.halves, duels.count, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (0, 0, 1, 2, 0, 1),
        (1, 0, 1, 2, 2, 2),
        (1, 0, 1, 3, 1, 1),
        (1, 0, 2, 3, 2, 1),
        (1, 1, 2, 3, 2, 1),
    ]
    assert duels.weights().tolist() == [1, 1, 0.75, 0.75, 0.75]
    assert (duels.deals.tolist(), duels.wins.tolist()) == ([4, 4, 1], [1, 2, 0])


def test_a_bot_that_meets_itself_learns_nothing_from_it() -> None:
    duels = by_deck(collect([deal(1, "aab", 1, 2, 3), deal(2, "aa", 1, 2)], "ranking"))
    assert (duels.halves.tolist(), duels.count.tolist(), duels.clusters) == ([4], [2], 1)
    assert (duels.deals.tolist(), duels.wins.tolist()) == ([2, 1], [2, 0])


def test_a_deal_without_a_place_for_each_bot_is_refused() -> None:
    with pytest.raises(ValueError, match="1 deals of deck 'x' on with 2 bots have 2 seats and 3 places"):
        rate([deal("x", "ab", 1, 2, 3)], "ranking")
    with pytest.raises(ValueError, match="0 bots"):
        rate([RatedDeal("x", (), ())], "ranking")


@pytest.mark.parametrize(
    ("dealt", "seatings", "match"),
    [((1,), b"\0\1", "decks that the match has not"), ((-1,), b"\0\1", "has not"), ((0,), b"\1\1", "sits twice")],
)
def test_a_match_that_does_not_fit_together_is_refused(dealt: tuple[int, ...], seatings: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        RatedMatch((BotHash("a"), BotHash("b")), ("x",), dealt, seatings, b"\1\2")


def test_a_match_counts_as_its_deals() -> None:
    # Two decks in both seatings; c has no deal of the second deck that is rated but one.
    match = RatedMatch(
        tuple(map(BotHash, "cab")), ("x", "y"), (0, 0, 1), bytes([0, 1, 2, 2, 1, 0, 1, 2, 0]), bytes([1, 2, 3] * 3)
    )
    alone = [deal("x", "cab", 1, 2, 3), deal("x", "bac", 1, 2, 3), deal("y", "abc", 1, 2, 3)]
    assert apart([match]) == alone
    assert rate([match], "ranking") == rate(alone, "ranking")
    duels = by_deck(collect([match], "ranking"))
    assert (duels.deals.tolist(), duels.wins.tolist(), duels.clusters) == ([3, 3, 3], [1, 1, 1], 2)
    assert collect([match, deal("z", "ab")], "ranking").taken == 4


@pytest.mark.parametrize("decks", [40, 700])
def test_ratings_do_not_depend_on_how_duels_are_kept(monkeypatch: pytest.MonkeyPatch, decks: int) -> None:
    deals = simulated(5, bots=6, seats=3, decks=decks, outcome_type="ranking")[0]
    deals += [msgspec.structs.replace(one, places=one.places[::-1]) for one in deals]  # of decks that came before
    expected = rate(deals, "ranking")
    assert len([*collect(deals, "ranking").blocks()]) == 1
    for portion, rows in ((7, 20), (300, 500), (20, 1)):
        monkeypatch.setattr(counting, "_PORTION", portion)
        monkeypatch.setattr(counting, "_BLOCK_ROWS", rows)
        assert rate(deals, "ranking") == expected
        collector = collect(deals, "ranking")
        found = by_deck(collector)
        assert (found.clusters, int(found.count.sum())) == (decks, 6 * decks)
        assert int(collector.total().count.sum()) == 6 * decks
    assert len([*collect(deals[:decks], "ranking").blocks()]) > 1


def test_duels_are_kept_in_about_a_byte_a_deal() -> None:
    luck = np.random.default_rng(1)

    def some(first: int) -> Iterator[RatedDeal]:
        for deck in range(first, first + 1250):
            for table in luck.permutation(32).reshape(16, 2):
                places = (1, 2) if luck.random() < 0.5 else (2, 1)
                names = tuple(BotHash(f"{bot:064}") for bot in table)
                yield from (RatedDeal(f"{deck:064}", names, places), RatedDeal(f"{deck:064}", names[::-1], places))

    collector = Collector("ranking")
    tracemalloc.start(1)
    try:
        held = []
        for part in range(3):
            collector.add(some(part * 1250))
            for rows in list(collector.blocks()):
                assert rows.clusters
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0] - 48 * sum(len(rows.deck) for rows in collector._open))
    finally:
        tracemalloc.stop()
    assert (held[2] - held[0]) / 80_000 < 4


# Corners: always finite


def test_no_deals() -> None:
    pool = rate_pool([], "ranking")
    assert (pool.ratings, pool.groups) == ((), ())
    assert rate([], "single_loser", (BotHash("a"), 1000.0)) == ()
    assert list(history([[], []], "ranking")) == [(), ()]


def test_one_deal() -> None:
    first, last = rate([deal(1, "ba")], "ranking")
    assert (first.bot, first.bound, first.error, first.deals, first.wins) == ("b", ">", None, 1, 1)
    assert (last.bot, last.bound, last.wins) == ("a", "<", 0)
    assert first.elo - 1500 == pytest.approx(1500 - last.elo)
    t = (first.elo - 1500) / ELO
    assert 1 / (1 + math.exp(2 * t)) == pytest.approx(1 / (1 + math.exp(-t)) - 0.5)  # the win pulls as the ghost does


def test_one_bot() -> None:
    deals = [deal(i, "aa") for i in range(20)] + [deal("alone", "a")]
    assert rate(deals, "ranking") == (Rating(BotHash("a"), 1500.0, None, deals=21, wins=21),)


def test_all_draws() -> None:
    ratings = rate([deal(i, "abc", 1, 1, 1) for i in range(12)], "ranking")
    assert [(r.bot, r.elo, r.error, r.wins, r.bound) for r in ratings] == [(b, 1500.0, 0.0, 0, "") for b in "abc"]


def wins(results: Mapping[str, int]) -> Duels:
    """`{"ab": 1000}`: a beat b a thousand times, all on one deck."""
    duels = summed(deal(pair, pair) for pair in results)
    pairs = ["".join(sorted(pair)) for pair in results]
    times = np.array([times for _, times in sorted(zip(pairs, results.values(), strict=True))], np.int32)
    return msgspec.structs.replace(duels, halves=duels.halves * times, count=duels.count * times)


def test_a_million_wins_stay_finite() -> None:
    assert 2000 < float(np.ptp(fit(wins({"ab": 1_000_000})).theta)) * ELO < 3000


def test_steps_that_overshoot_are_shortened() -> None:
    results = {"ab": 100_000, "bd": 1, "ca": 100_000, "cd": 10_000}
    theta = dict(zip("abcd", fit(wins(results)).theta.tolist(), strict=True))
    slope = {bot: 0.5 - 1 / (1 + math.exp(-value)) for bot, value in theta.items()}
    for pair, times in results.items():
        surplus = times / (1 + math.exp(theta[pair[0]] - theta[pair[1]]))
        slope[pair[0]] += surplus
        slope[pair[1]] -= surplus
    assert list(slope.values()) == pytest.approx([0.0] * 4, abs=1e-9)


def test_a_ladder_where_the_better_always_wins_stays_finite() -> None:
    pool = rate_pool([deal(f"{pair}{i}", pair) for i in range(200) for pair in ("ab", "bc", "cd", "de")], "ranking")
    assert [r.bot for r in pool.ratings] == list("abcde")
    assert [r.bound for r in pool.ratings] == [">", "", "", "", "<"]
    assert [r.error is None for r in pool.ratings] == [True, False, False, False, True]
    assert pool.groups == tuple((b,) for b in "abcde")


def test_bounds_are_for_those_who_only_won_or_only_lost() -> None:
    duels = summed([*won({"ab": 3, "bc": 1, "cb": 1, "ad": 1}), deal("tie", "ae", 1, 1), deal(0, "f")])
    assert bounds(duels) == ("", "", "", "<", "", "")


def test_groups_are_linked_by_chains_of_wins_and_ties() -> None:
    deals = [*won({"ab": 1, "bc": 1, "ca": 1, "ad": 5, "gh": 1, "hg": 1}), deal("tie", "de", 1, 1), deal(0, "f")]
    assert groups(summed(deals)) == ((0, 1, 2), (3, 4), (5,), (6, 7))


# Pools


def test_an_anchor_is_held_and_differences_stay() -> None:
    deals = simulated(3, 5, 3, 60, "ranking")[0]
    free = rate_pool(deals, "ranking")
    held = rate_pool(deals, "ranking", (BotHash("c"), 1000.0))
    elo = {r.bot: r for r in held.ratings}
    shift = 1000.0 - elo_of(deals)["c"]
    assert elo[BotHash("c")].elo == 1000.0
    assert elo[BotHash("c")].error == 0.0
    assert [r.elo for r in held.ratings] == pytest.approx([r.elo + shift for r in free.ratings], abs=2e-6)


def test_an_anchor_that_has_not_played_stands_where_the_prior_puts_it() -> None:
    ratings = rate(won({"ab": 15, "ba": 15}), "ranking", (BotHash("z"), 1000.0))
    assert [(r.bot, r.elo, r.error) for r in ratings] == [("a", 1000.0, None), ("b", 1000.0, None)]


def test_history_is_the_same_fit_after_each_round() -> None:
    deals = simulated(4, 5, 3, 60, "single_loser")[0]
    rounds = [deals[:20], deals[20:40], deals[40:]]
    expected = [rate(deals[:end], "single_loser") for end in (20, 40, 60)]
    assert list(history(rounds, "single_loser")) == expected


def bytes_of(deals: Iterable[RatedDeal]) -> bytes:
    pool = rate_pool(deals, "ranking")
    return msgspec.msgpack.encode(pool.ratings) + pool.estimate.elo.tobytes() + pool.estimate.covariance.tobytes()


@pytest.mark.parametrize("legs", [1, 4], ids=["jackknife from few decks", "many decks"])
def test_equal_results_give_equal_bytes_in_any_order_and_in_parallel(legs: int) -> None:
    deals = [
        msgspec.structs.replace(d, deck=f"{i // legs}")
        for k in (2, 3, 4)
        for i, d in enumerate(simulated(k, 9, k, 350, "ranking")[0])
    ]
    luck = np.random.default_rng(legs)
    expected = bytes_of(deals)
    got: list[bytes] = []
    for _ in range(3):
        shuffled = [deals[i] for i in luck.permutation(len(deals))]
        threads = [threading.Thread(target=lambda s=shuffled: got.append(bytes_of(iter(s)))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == [expected] * 6


def test_the_sum_is_conserved() -> None:
    ratings = rate(simulated(5, 8, 4, 250, "ranking")[0], "ranking")
    assert sum(r.elo for r in ratings) == pytest.approx(8 * 1500.0, abs=1e-5)


def test_a_tie_of_equals_moves_nobody_whatever_the_seat() -> None:
    even = [deal(0, "abcd"), deal(1, "dcba"), deal(2, "badc"), deal(3, "cdab")]
    for seating in ("abcd", "dbca"):
        assert [r.elo for r in rate([*even, deal(9, seating, 1, 1, 1, 1)], "ranking")] == [1500.0] * 4


def test_a_win_of_the_favourite_moves_less_than_an_upset() -> None:
    deals = won({"ab": 30, "ba": 10})
    before = elo_of(deals)["a"]
    expected, upset = elo_of([*deals, deal("+", "ab")])["a"], elo_of([*deals, deal("+", "ba")])["a"]
    assert 0 < expected - before < before - upset


# Overall


def rating(bot: str, elo: float, error: float | None = 12.0, bound: Any = "") -> Rating:
    return Rating(BotHash(bot), elo, error, deals=10, wins=4, bound=bound)


def test_overall_is_the_mean_over_games_of_bots_in_all_of_them() -> None:
    durak = (rating("b", 1600.0, 30.0), rating("a", 1500.0, 3.0), rating("c", 1900.0))
    smokestack = (rating("a", 1540.0, 4.0), rating("b", 1440.0, 40.0))
    got = overall({"durak": durak, "smokestack": smokestack})
    assert got == overall({"smokestack": smokestack[::-1], "durak": durak[::-1]})
    assert [(r.bot, r.elo, r.error, r.partial) for r in got] == [
        ("a", 1520.0, 2.5, False),
        ("b", 1520.0, 25.0, False),
        ("c", 1900.0, 12.0, True),
    ]
    assert [(r.deals, r.wins) for r in got] == [(20, 8), (20, 8), (10, 4)]


def test_overall_has_no_error_without_one_in_every_game_and_keeps_bounds_that_agree() -> None:
    one = (rating("a", 1900.0, None, ">"), rating("b", 1900.0, None, ">"), rating("c", 1500.0))
    two = (rating("a", 1700.0), rating("b", 1100.0, None, "<"), rating("c", 1300.0))
    got = {r.bot: (r.elo, r.error, r.bound) for r in overall({"x": one, "y": two})}
    assert got == {"a": (1800.0, None, ">"), "b": (1500.0, None, ""), "c": (1400.0, 8.485281, "")}


def test_overall_of_nothing() -> None:
    assert overall({}) == ()
    assert [r.partial for r in overall({"x": (), "y": (rating("a", 1500.0),)})] == [True]
