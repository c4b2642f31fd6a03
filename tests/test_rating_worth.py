"""What a duel is worth: the weights, against every other one in use, and what sharing luck saves."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from arena.rating import covariance
from arena.rating.covariance import ELO, Estimate, design_effect, estimate, naive_covariance, sandwich
from arena.rating.duels import Collector, Duels, Floats, collect
from arena.rating.fit import Fit, fit
from arena.rating.sequential import SetShape
from arena.records import BotHash, RatedDeal
from arena.rules import OutcomeType

BOTS = "abcdef"


def deal(deck: object, bots: str, places: tuple[int, ...]) -> RatedDeal:
    return RatedDeal(str(deck), tuple(map(BotHash, bots)), places)


def fitted(deals: list[RatedDeal], outcome_type: OutcomeType = "ranking") -> tuple[Collector, Fit]:
    duels = collect(deals, outcome_type)
    return duels, fit(duels.total(), prior=0.0)


def error(deals: list[RatedDeal]) -> float:
    """Return the standard deviation of a rating against the mean, clustered by deck."""
    return math.sqrt(estimate(*fitted(deals)).covariance[0, 0])


# Published numbers of one pair


def test_expected_scores_of_the_elo_formula() -> None:
    """Elo 1613 against 1609, 1477, 1388, 1586 and 1720 expects 2.8666 points: Wikipedia, Elo rating system."""
    shape = SetShape(2, 1)
    assert sum(shape.score_of(1613 - other) for other in (1609, 1477, 1388, 1586, 1720)) == pytest.approx(
        2.8666, abs=5e-5
    )


def test_expected_shares_of_a_table() -> None:
    """1200, 1000 and 900 expect .53625579, .29343936 and .17030485 of a table's duels: the tests of multielo."""
    shape, elos = SetShape(2, 1), (1200, 1000, 900)
    shares = [sum(shape.score_of(own - other) for other in elos) / 3 - 1 / 6 for own in elos]
    assert shares == pytest.approx([0.53625579, 0.29343936, 0.17030485], abs=1e-8)


# Weights


def every_outcome(seats: int, outcome_type: OutcomeType) -> list[RatedDeal]:
    """Return equal bots: all outcomes equally often, each on a deck of its own, more than 500 decks in all."""
    orders = list(permutations(range(1, seats + 1)))
    if outcome_type == "single_loser":
        orders = [tuple(seats if i == loser else 1 for i in range(seats)) for loser in range(seats)]
    times = -(-500 // len(orders))
    return [deal((copy, places), BOTS[:seats], places) for copy in range(times) for places in orders]


@pytest.mark.parametrize("outcome_type", ["ranking", "single_loser"])
@pytest.mark.parametrize("seats", [2, 3, 4, 5, 6])
def test_information_and_variance_agree_at_equal_strength(seats: int, outcome_type: OutcomeType) -> None:
    """With 3 / (k + 1) and 2 / k the plain error bar is the true one: the duels of a deal count what they tell."""
    deals = every_outcome(seats, outcome_type)
    duels, found = fitted(deals, outcome_type)
    clustered = estimate(duels, found).covariance * (1 - 1 / len(deals))
    assert clustered == pytest.approx(naive_covariance(found), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("weight", "wider"),
    [(lambda k: 2 / k, 1.0073), (lambda k: k / k, 1.0514), (lambda k: 1 / (k - 1), 1.0734)],
    ids=["2/k", "1", "1/(k-1)"],
)
def test_other_weights_of_a_ranking_have_wider_errors(
    weight: Any, wider: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six bots, as many deals each at tables of two and of six; the widths follow from both variances."""
    pairs = list(permutations(BOTS, 2))
    deals = [deal(places, BOTS, places) for places in permutations(range(1, 7))]
    deals += [deal((copy, pair), "".join(pair), (1, 2)) for copy in range(72) for pair in pairs]
    best = error(deals)
    monkeypatch.setattr(Duels, "weights", lambda duels: weight(duels.seats.astype(np.float64)))
    assert error(deals) / best == pytest.approx(wider, abs=2e-4)


@pytest.mark.parametrize(("seats", "slope"), [(4, 0.476), (6, 0.314)])
def test_structural_ties_would_shrink_the_scale(seats: int, slope: float) -> None:
    """One loser rated as a ranking; without the ties among the others the slope is 1."""
    luck = np.random.default_rng(11)
    theta = np.linspace(-1, 1, 6)
    deals = []
    for deck in range(12_000):
        table = luck.permutation(6)[:seats]
        loser = np.argmax(luck.gumbel(size=seats) - theta[table])
        places = tuple(seats if seat == loser else 1 for seat in range(seats))
        deals.append(deal(deck, "".join(BOTS[i] for i in table), places))
    slopes = [np.polyfit(theta, fitted(deals, kind)[1].theta, 1)[0] for kind in ("ranking", "single_loser")]
    assert slopes == pytest.approx([slope, 1.0], abs=0.035)


# Errors


def lucky(seats: int, decks: int, share: float, legs: int, outcome_type: OutcomeType = "ranking") -> list[RatedDeal]:
    """Equal bots; a share of the variance of a seat's points is the deck's, the rest is new in each leg."""
    luck = np.random.default_rng(seats)
    deals = []
    for deck in range(decks):
        of_deck = math.sqrt(share) * luck.normal(size=seats)
        for leg in range(legs):
            points = of_deck + math.sqrt(1 - share) * luck.normal(size=seats)
            places = 1 + np.argsort(np.argsort(-points))
            if outcome_type == "single_loser":
                places = np.where(places == seats, seats, 1)
            seated = "".join(BOTS[(seat + leg) % seats] for seat in range(seats))
            deals.append(deal(deck, seated, tuple(places.tolist())))
    return deals


@pytest.mark.parametrize(
    ("seats", "share", "outcome_type", "saved"),
    [
        (2, 0.5, "ranking", 1.49),
        (2, 0.9, "ranking", 3.39),
        (4, 0.0, "ranking", 1.0),
        (4, 0.5, "ranking", 1.66),
        (4, 0.9, "ranking", 4.53),
        (4, 0.9, "single_loser", 2.91),
        (6, 0.9, "ranking", 5.26),
    ],
)
def test_the_design_effect_is_what_all_seatings_of_a_deck_save(
    seats: int, share: float, outcome_type: OutcomeType, saved: float
) -> None:
    """Ratios of variances with independent and with shared decks, found by 60,000 decks of the same model."""
    duels, found = fitted(lucky(seats, 3000, share, seats, outcome_type), outcome_type)
    assert design_effect(estimate(duels, found), naive_covariance(found)) == pytest.approx(saved, rel=0.08)


@pytest.mark.parametrize("decks", [499, 500])
def test_the_jackknife_ends_at_500_decks(decks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    uneven = [
        deal(one.deck, "".join(one.bots).replace("c", "abcdef"[2 + int(one.deck) % 4]), one.places)
        for one in lucky(3, decks, 0.5, 3)
    ]
    duels, found = fitted(uneven)

    def spread() -> Floats:
        return sandwich(duels, found).covariance

    used = spread()
    monkeypatch.setattr(covariance, "_CR1_DECKS", 0)
    plain = spread()
    monkeypatch.setattr(covariance, "_CR1_DECKS", 10**9)
    jackknife = spread()
    assert np.abs(plain - jackknife).max() > 1e-6 * np.abs(plain).max()
    assert used.tolist() == (jackknife if decks < 500 else plain).tolist()


def test_errors_are_those_of_a_bootstrap_of_decks() -> None:
    decks, luck = 80, np.random.default_rng(3)
    deals = lucky(4, decks, 0.6, 4)
    found: Estimate = estimate(*fitted(deals))
    by_deck = [deals[4 * deck : 4 * deck + 4] for deck in range(decks)]
    drawn = []
    for _ in range(400):
        chosen = luck.integers(decks, size=decks)
        again = [
            deal((number, deck), "".join(one.bots), one.places)
            for number, deck in enumerate(chosen)
            for one in by_deck[deck]
        ]
        theta = fitted(again)[1].theta
        drawn.append(ELO * (theta[0] - theta[1]))
    v = found.covariance
    assert np.std(drawn) == pytest.approx(math.sqrt(v[0, 0] + v[1, 1] - 2 * v[0, 1]), rel=0.12)
