"""Error bars: published numbers, refits without each deck, and what duplicates may and may not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arena.rating.covariance import ELO, Estimate, estimate, sandwich
from arena.rating.duels import Floats, collect
from arena.rating.fit import fit
from arena.rating.pool import rate, rate_pool
from arena.records import BotHash, RatedDeal

A, B = BotHash("a"), BotHash("b")


def deal(deck: object, bots: str, *places: int) -> RatedDeal:
    return RatedDeal(str(deck), tuple(map(BotHash, bots)), places)


def lucky(seed: int, bots: int, seats: int, decks: int, legs: int) -> list[RatedDeal]:
    """Equal bots whose points are luck of the seat, of the bot on the deck, and of the leg."""
    luck = np.random.default_rng(seed)
    deals = []
    for deck in range(decks):
        table = luck.permutation(bots)[:seats]
        seat_luck, bot_luck = luck.normal(size=seats), luck.normal(size=bots)
        for leg in range(legs):
            seated = np.roll(table, leg)
            points = seat_luck + 0.7 * bot_luck[seated] + 0.7 * luck.normal(size=seats)
            places = 1 + np.argsort(np.argsort(-points))
            deals.append(deal(deck, "".join(chr(97 + i) for i in seated), *places.tolist()))
    return deals


def theta_covariance(deals: list[RatedDeal], prior: float = 1.0) -> Floats:
    duels = collect(deals, "ranking")
    return sandwich(duels, fit(duels.total(), prior)).covariance


def without_prior(deals: list[RatedDeal]) -> Estimate:
    duels = collect(deals, "ranking")
    return estimate(duels, fit(duels.total(), prior=0.0))


def difference(estimated: Estimate) -> tuple[float, float]:
    """Elo difference of the first two bots and half its 95 % interval."""
    v = estimated.covariance
    return estimated.elo[0] - estimated.elo[1], 1.96 * np.sqrt(v[0, 0] + v[1, 1] - 2 * v[0, 1])


# Published numbers: fastchess transforms the interval of the score, we linearise, hence the tolerance.


def test_error_of_single_games() -> None:
    places = [(1, 2)] * 136 + [(1, 1)] * 111 + [(2, 1)] * 96
    estimated = without_prior([deal(i, "ab", *p) for i, p in enumerate(places)])
    elo, error = difference(estimated)
    assert elo == pytest.approx(40.70, abs=0.005)
    assert error == pytest.approx(30.43, rel=0.005)
    assert estimated.los(A, B) == pytest.approx(0.99601, abs=5e-4)


def test_error_of_pairs_of_games() -> None:
    legs = {0: ((2, 1), (2, 1)), 1: ((1, 1), (2, 1)), 2: ((1, 1), (1, 1)), 3: ((1, 2), (1, 1)), 4: ((1, 2), (1, 2))}
    decks = [half_points for half_points, times in enumerate((34, 54, 63, 64, 75)) for _ in range(times)]
    estimated = without_prior([deal(i, "ab", *p) for i, half_points in enumerate(decks) for p in legs[half_points]])
    elo, error = difference(estimated)
    assert elo == pytest.approx(55.58, abs=0.005)
    assert error == pytest.approx(27.65, rel=0.01)
    assert estimated.los(A, B) == pytest.approx(0.99997, abs=5e-5)


# Refits


def test_the_jackknife_is_close_to_refits_without_each_deck() -> None:
    deals = lucky(1, bots=5, seats=3, decks=40, legs=3)
    fitted = fit(collect(deals, "ranking").total())
    left = [fit(collect([d for d in deals if d.deck != str(c)], "ranking").total()).theta for c in range(40)]
    prior = np.linalg.inv(fitted.information) * fitted.pull
    expected = 39 / 40 * sum(np.outer(s, s) for s in left - fitted.theta)
    assert theta_covariance(deals) - prior @ prior.T == pytest.approx(expected, rel=0.02, abs=1e-5)


def test_from_500_decks_on_the_plain_sandwich_is_used() -> None:
    deals = lucky(2, bots=4, seats=2, decks=4500, legs=2)
    duels = collect(deals, "ranking")
    fitted = fit(duels.total())
    scores = np.zeros((4500, 4))
    for d in deals:
        i, j = (ord(b) - 97 for b in d.bots)
        surplus = (d.places[0] < d.places[1]) - 1 / (1 + np.exp(fitted.theta[j] - fitted.theta[i]))
        scores[int(d.deck), i] += surplus
        scores[int(d.deck), j] -= surplus
    inverse = np.linalg.inv(fitted.information)
    centre = np.eye(4) - 0.25
    expected = ELO**2 * 4500 / 4499 * centre @ inverse @ scores.T @ scores @ inverse @ centre
    assert estimate(duels, fitted).covariance == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_both_forms_agree_where_they_meet() -> None:
    below, above = (theta_covariance(lucky(3, 5, 3, decks, 3), prior=0.0) * decks for decks in (499, 501))
    assert below.diagonal() == pytest.approx(above.diagonal(), rel=0.03)


# Invariants


def test_twice_the_decks_halve_the_variance() -> None:
    deals = lucky(4, bots=5, seats=3, decks=600, legs=3)
    again = [RatedDeal(f"again {d.deck}", d.bots, d.places) for d in deals]
    once, twice = without_prior(deals), without_prior(deals + again)
    assert twice.elo == pytest.approx(once.elo, abs=1e-9)
    assert 2 * twice.covariance / (1200 / 1199) == pytest.approx(once.covariance / (600 / 599), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("decks", [40, 600])
def test_copies_on_the_same_deck_do_not_shrink_the_error(decks: int) -> None:
    deals = lucky(5, bots=5, seats=3, decks=decks, legs=2)
    once, copied = without_prior(deals), without_prior(deals * 3)
    assert copied.elo == pytest.approx(once.elo, abs=1e-9)
    assert copied.covariance == pytest.approx(once.covariance, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("decks", [20, 600])
def test_a_deterministic_bot_against_its_copy_has_no_variance(decks: int) -> None:
    luck = np.random.default_rng(6)
    deals = []
    for deck in range(decks):
        places = luck.permutation(2) + 1  # of the seats: the same play in both legs
        deals += [deal(deck, bots, *places.tolist()) for bots in ("ab", "ba")]
    pool = rate_pool(deals, "ranking")
    assert [(r.elo, r.error) for r in pool.ratings] == [(1500.0, 0.0)] * 2
    assert pool.estimate.los(A, B) == 0.5


def test_errors_are_given_from_ten_decks_of_the_bot_on() -> None:
    deals = lucky(7, bots=3, seats=2, decks=30, legs=2)
    some = {True: 9, False: 10}
    for few, decks in some.items():
        new = [deal(i, "az", 1 + i % 2, 2 - i % 2) for i in range(decks)]
        pool = rate_pool(deals + new, "ranking")
        errors = {r.bot: r.error for r in pool.ratings}
        assert (errors[BotHash("z")] is None, errors[A] is None) == (few, False)
        assert (pool.estimate.los(A, BotHash("z")) is None) == few
        anchored = rate(deals + new, "ranking", (BotHash("z"), 1000.0))
        assert {r.error is None for r in anchored} == {few}
    assert {r.error for r in rate(lucky(8, 3, 2, 9, 2), "ranking")} == {None}


def test_los_of_both_directions_adds_up_and_does_not_depend_on_the_reference() -> None:
    deals = lucky(9, bots=4, seats=2, decks=50, legs=2)
    free = rate_pool(deals, "ranking").estimate
    held = rate_pool(deals, "ranking", (BotHash("c"), 0.0)).estimate
    up, down = free.los(A, B), free.los(B, A)
    assert up is not None
    assert down is not None
    assert up + down == pytest.approx(1.0)
    assert held.los(A, B) == pytest.approx(up)
    assert free.los(A, A) == 0.5


def test_the_reference_is_the_mean_or_the_anchor() -> None:
    deals = lucky(10, bots=4, seats=2, decks=50, legs=2)
    free = rate_pool(deals, "ranking").estimate
    assert free.covariance.sum(axis=0) == pytest.approx([0.0] * 4, abs=1e-9)
    held = rate_pool(deals, "ranking", (B, 1200.0)).estimate
    v = free.covariance
    assert held.covariance[0, 0] == pytest.approx(v[0, 0] + v[1, 1] - 2 * v[0, 1])
    assert held.covariance[1].tolist() == pytest.approx([0.0] * 4, abs=1e-9)


def test_a_certain_difference_has_a_likelihood_of_one() -> None:
    sure = Estimate((A, B), np.array([1510.0, 1490.0]), np.zeros((2, 2)), np.array([10, 10]), 10)
    assert (sure.los(A, B), sure.los(B, A), sure.error(A)) == (1.0, 0.0, 0.0)


def coverage(runs: int, decks: int) -> float:
    """Return how often the 95 % interval of a difference holds the truth, which is 0."""
    inside: list[Any] = []
    upper = np.triu_indices(8, 1)
    for run in range(runs):
        found = rate_pool(lucky(1000 + run, bots=8, seats=4, decks=decks, legs=4), "ranking").estimate
        v = found.covariance
        error = 1.96 * np.sqrt(v.diagonal()[:, None] + v.diagonal()[None, :] - 2 * v)
        gap = found.elo[:, None] - found.elo[None, :]
        inside.append((np.abs(gap) <= error)[upper])
    return float(np.mean(inside))


@pytest.mark.nightly
@pytest.mark.parametrize("decks", [15, 60, 200])
def test_intervals_hold_what_they_promise(decks: int, record_property: Callable[[str, object], None]) -> None:
    held = coverage(200, decks)
    what = f"differences that a 95 % interval holds, {decks:3} decks at tables of 4, 200 pools of 8 bots"
    record_property("calibration", f"| {what} | .92 to .97 | {held:.3f} |")
    assert 0.92 <= held <= 0.97


def test_intervals_are_about_right_in_a_small_sample() -> None:
    assert 0.90 <= coverage(20, 60) <= 0.98


def test_elo_is_ten_to_one_at_400() -> None:
    assert np.exp(400 / ELO) == pytest.approx(10.0)


@pytest.mark.parametrize("decks", [60, 600])
def test_copies_are_not_told_apart_by_what_the_prior_does_to_them(decks: int) -> None:
    """They beat a third bot always, one of them more often; the prior alone holds that distance."""
    seatings = [
        (str(number) + pair, pair) for pair, most in (("ab", 10), ("ac", 10), ("bc", decks)) for number in range(most)
    ]
    deals = [deal(deck, pair, 1, 2) for deck, pair in seatings]
    deals += [deal(deck, pair[::-1], *((1, 2) if pair == "ab" else (2, 1))) for deck, pair in seatings]
    pool = rate_pool(deals, "ranking")
    assert 0.1 < (pool.estimate.los(A, B) or 0) < 0.5
    assert {rating.bot: rating.ranks for rating in pool.ratings if not rating.bound} == {A: (1, 2), B: (1, 2)}
