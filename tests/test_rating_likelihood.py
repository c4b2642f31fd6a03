"""The LLR of scores: published values, an optimiser's opinion, and what must hold of any scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from arena.rating.duels import Floats
from arena.rating.likelihood import Fitted, fitted_effect, fitted_mean, llr, moments

NORMALISED = 800 / math.log(10)
THREE = np.linspace(0, 1, 3)
FIVE = np.linspace(0, 1, 5)


def one(counts: list[float], null: float, alternative: float, fitted: Fitted) -> float:
    values = np.linspace(0, 1, len(counts))
    return float(llr(np.array(counts), values, null, alternative, fitted))


# Published values, both from the tests of fastchess; in those of five scores a set is two games.


def test_trinomial_scores() -> None:
    assert one([36027, 68692, 36433], 0, 2 / NORMALISED, fitted_effect) == pytest.approx(0.9233, abs=5e-5)


def test_scores_without_any_spread() -> None:
    counts = [0.001, 0.001, 0.001, 0.001, 5550]
    assert one(counts, 0, 5 * math.sqrt(2) / NORMALISED, fitted_effect) == pytest.approx(111.80, abs=5e-3)


# The fit


def optimised(counts: Floats, values: Floats, effect: float) -> float:
    """Return the greatest log likelihood of a distribution with an effect, by a general optimiser."""

    def log_shares(logits: Floats) -> Floats:
        level = logits.max()
        found: Floats = logits - level - np.log(np.exp(logits - level).sum())
        return found

    def excess(logits: Floats) -> float:
        mean, sigma = moments(np.exp(log_shares(logits)), values)
        return float(mean - 0.5 - effect * sigma)

    found = minimize(
        lambda logits: -float((counts * log_shares(logits)).sum()),
        np.log(counts / counts.sum()),
        constraints=[{"type": "eq", "fun": excess}],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return -float(found.fun)


@pytest.mark.parametrize("effect", [0.0, 0.08, -0.1, 0.4])
@pytest.mark.parametrize("counts", [[5, 9, 30, 12, 4], [1, 0.001, 80, 2, 1], [40, 3, 2, 3, 40], [30, 20, 10, 5, 0.5]])
def test_the_fit_with_an_effect_is_the_likeliest(counts: list[float], effect: float) -> None:
    given_counts = np.array(counts)
    shares = given_counts / given_counts.sum()
    fitted = shares * fitted_effect(shares, FIVE, effect)
    assert float((given_counts * np.log(fitted)).sum()) == pytest.approx(
        optimised(given_counts, FIVE, effect), abs=2e-3
    )


some_counts = st.lists(st.integers(0, 2000), min_size=3, max_size=9).filter(any)


def with_ends(counts: list[int]) -> Floats:
    weights = np.array(counts, dtype=np.float64)
    weights[[0, -1]] = np.maximum(weights[[0, -1]], 0.001)
    return weights


@given(some_counts, st.floats(-0.5, 0.5))
def test_a_fit_has_the_effect(counts: list[int], effect: float) -> None:
    shares = with_ends(counts) / with_ends(counts).sum()
    values = np.linspace(0, 1, len(shares))
    fitted = shares * fitted_effect(shares, values, effect)
    mean, sigma = moments(fitted, values)
    assert fitted.sum() == pytest.approx(1, abs=1e-4)
    assert float(mean - 0.5) == pytest.approx(float(effect * sigma), abs=1e-4)


@given(some_counts, st.floats(0.01, 0.99))
def test_a_fit_has_the_mean(counts: list[int], mean: float) -> None:
    shares = with_ends(counts) / with_ends(counts).sum()
    values = np.linspace(0, 1, len(shares))
    fitted = shares * fitted_mean(shares, values, mean)
    assert fitted.sum() == pytest.approx(1, abs=1e-6)
    assert float((fitted * values).sum()) == pytest.approx(mean, abs=1e-6)


@given(some_counts, st.sampled_from([(fitted_effect, -0.02, 0.1), (fitted_mean, -0.01, 0.03)]))
def test_mirrored_scores_speak_against_mirrored_hypotheses(
    counts: list[int], test: tuple[Fitted, float, float]
) -> None:
    fitted, null, alternative = test
    weights = with_ends(counts)
    values = np.linspace(0, 1, len(weights))
    centre = 0.5 if fitted is fitted_mean else 0.0
    found = float(llr(weights, values, centre + null, centre + alternative, fitted))
    mirrored = float(llr(weights[::-1], values, centre - alternative, centre - null, fitted))
    assert math.isfinite(found)
    assert mirrored == pytest.approx(-found, abs=1e-4 * max(1, abs(found)))


def test_rows_are_computed_as_if_each_were_alone() -> None:
    rows = np.array([[1, 0, 3, 0, 2], [5, 9, 30, 12, 4], [0.001, 0, 0, 0, 77]])
    together = llr(rows, FIVE, 0, 0.08, fitted_effect)
    assert together.tolist() == pytest.approx([float(llr(row, FIVE, 0, 0.08, fitted_effect)) for row in rows], abs=1e-8)


def test_a_walk_out_of_the_bracket_is_brought_back() -> None:
    shares = np.array([1e-9, 0.5, 0.5 - 1e-9])
    fitted = shares * fitted_mean(shares, THREE, 0.02)
    assert float((fitted * THREE).sum()) == pytest.approx(0.02, abs=1e-9)


def test_a_mean_beside_the_end_is_found_as_well_as_floats_allow() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    fitted = shares * fitted_mean(shares, THREE, 1 - 1e-9)
    assert float((fitted * THREE).sum()) == pytest.approx(1, abs=1e-6)


def test_a_step_that_lands_beside_a_pole_is_not_taken_for_the_root() -> None:
    # Newton's first step from these shares is 4e-16 short of the pole, where every further one is as short.
    counts = [1.0, 0, 2, 0, 139, 0, 14, 0, 1]
    assert one(counts, 0.5, 1 / (1 + 10 ** (-20 / 800)), fitted_mean) == pytest.approx(2.499433, abs=1e-6)
    assert one(counts[::-1], 0.5, 1 / (1 + 10 ** (20 / 800)), fitted_mean) == pytest.approx(2.499433, abs=1e-6)
