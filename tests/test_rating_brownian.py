"""A walk between two barriers, against what simulated walks do and what must hold at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.rating.brownian import Walk, expected_steps, lower_chance, unbiased_drift

LOW, HIGH = -30.0, 25.0
WALKS, PARTS = 6_000, 300


def simulated(steps: float, drift: float) -> tuple[float, float, float]:
    """Return how many walks have ended low, are still alive below 3, and are alive above it."""
    luck = np.random.default_rng(5)
    part = steps / PARTS
    place, alive, ended_low = np.zeros(WALKS), np.ones(WALKS, bool), 0
    for _ in range(PARTS):
        following = place + drift * part + math.sqrt(part) * luck.normal(size=WALKS)
        # Between two looks a walk that stays inside may have touched a barrier (Brownian bridge).
        missed_low = np.exp(-2 * np.maximum((place - LOW) * (following - LOW), 0) / part)
        missed_high = np.exp(-2 * np.maximum((HIGH - place) * (HIGH - following), 0) / part)
        chance = luck.random(WALKS)
        low, high = chance < missed_low, chance > 1 - missed_high
        ended_low += int((alive & low).sum())
        alive &= ~low & ~high
        place = following
    return ended_low / WALKS, float((alive & (place <= 3)).mean()), float((alive & (place > 3)).mean())


@pytest.mark.parametrize(("steps", "drift"), [(600, 0.0), (400, 0.05), (400, -0.08), (100, -0.3), (28, 0.9)])
def test_chances_are_those_of_simulated_walks(steps: float, drift: float) -> None:
    low, below, above = simulated(steps, drift)
    assert lower_chance(Walk(steps, LOW, LOW, HIGH), drift) == pytest.approx(low, abs=0.02)
    assert lower_chance(Walk(steps, 3, LOW, HIGH), drift) == pytest.approx(low + below, abs=0.02)
    assert lower_chance(Walk(steps, HIGH, LOW, HIGH), drift) == pytest.approx(low + below + above, abs=0.02)


@pytest.mark.parametrize("place", [LOW, 2.0, HIGH])
@pytest.mark.parametrize("drift", [-1.0, -0.5, 0.0, 0.5, 0.8, 1.0])
def test_short_and_long_walks_follow_one_curve(place: float, drift: float) -> None:
    border = 0.01 * (HIGH - LOW) ** 2
    before, after = (lower_chance(Walk(border * part, place, LOW, HIGH), drift) for part in (0.999999, 1.000001))
    assert before == pytest.approx(after, abs=1e-5)


def test_a_walk_of_few_large_steps_has_a_sharp_answer() -> None:
    assert unbiased_drift(Walk(0.01, HIGH, LOW, HIGH)) == pytest.approx(HIGH / 0.01, rel=1e-2)


walks = st.builds(
    lambda steps, part: Walk(steps, LOW + part * (HIGH - LOW), LOW, HIGH),
    st.floats(0.5, 5000),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
)


@given(walks)
def test_estimates_are_finite_and_in_order(walk: Walk) -> None:
    low, middle, high = (unbiased_drift(walk, probability) for probability in (0.975, 0.5, 0.025))
    assert low < middle < high
    assert lower_chance(walk, middle) == pytest.approx(0.5, abs=1e-3)


@given(walks)
def test_a_mirrored_walk_has_the_mirrored_estimate(walk: Walk) -> None:
    mirrored = Walk(walk.steps, -walk.place, -walk.high, -walk.low)
    assert unbiased_drift(mirrored) == pytest.approx(-unbiased_drift(walk), abs=1e-6)


def test_stopping_exaggerates_and_the_estimate_does_not() -> None:
    early = Walk(150, HIGH, LOW, HIGH)
    assert 0 < unbiased_drift(early) < HIGH / 150


@pytest.mark.parametrize(
    ("drift", "expected"),
    [(0.0, 40 * 15), (1e-9, 40 * 15), (10.0, 1.5), (-10.0, 4.0), (0.5, 30.0)],
)
def test_what_is_still_to_come(drift: float, expected: float) -> None:
    walk = Walk(50, 10, LOW, HIGH)
    assert expected_steps(walk, drift) == pytest.approx(expected, rel=1e-3)


def test_what_is_still_to_come_has_no_jump_at_zero() -> None:
    walk = Walk(50, 10, LOW, HIGH)
    for drift in (1e-7, -1e-7):
        assert expected_steps(walk, drift) == pytest.approx(600, rel=1e-4)
