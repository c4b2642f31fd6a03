"""The sequential test: how often it errs, and what must hold of it whatever the scores are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.rating.gain import set_scores, set_shape
from arena.rating.likelihood import fitted_mean, llr
from arena.rating.sequential import (
    LEAST_SETS,
    Hypotheses,
    Judgement,
    SequentialTest,
    SetShape,
    check_hypotheses,
)
from arena.records import Placing

PAIR = set_shape(2, 2, substituted=False)
NORMALISED, LOGISTIC = Hypotheses(), Hypotheses(logistic=True)
FAR = Hypotheses(0, 80, logistic=True)


def judged(scores: Sequence[int], hypotheses: Hypotheses = NORMALISED, shape: SetShape = PAIR) -> Judgement:
    test = SequentialTest(hypotheses, shape)
    test.add(scores)
    return test.judgement()


# Scores


def test_a_pair_is_scored_by_its_duels() -> None:
    deals = [Placing(0, 0, (0, 1), (1, 2)), Placing(0, 1, (1, 0), (1, 1)), Placing(1, 0, (0, 1), (2, 1))]
    assert SetShape(4, 2) == PAIR
    assert set_scores(PAIR, [[*deals, Placing(1, 1, (1, 0), (1, 2))]]) == [3, 0]


def test_a_substitution_is_scored_by_the_difference() -> None:
    shape = set_shape(3, 1, substituted=True)
    assert shape == SetShape(8, 2, True)
    new = [Placing(1, 0, (1, 0, 2), (3, 1, 2)), Placing(0, 0, (1, 0, 2), (1, 1, 3))]
    old = [Placing(0, 0, (1, 0, 2), (1, 3, 2)), Placing(1, 0, (1, 0, 2), (2, 1, 2))]
    assert set_scores(shape, [new, old]) == [7, 4]
    assert set_scores(shape, [old, new]) == [1, 4]


def test_where_only_one_loses_no_bot_gains_all_points() -> None:
    """At four seats it gets four half points for a deal, two from the loser and one from each other, or none."""
    shape = set_shape(4, 1, substituted=True, outcome_type="single_loser")
    assert shape == SetShape(12, 2, True, 2)
    won, lost = (Placing(0, 0, (0, 1, 2, 3), places) for places in ((1, 4, 1, 1), (4, 1, 1, 1)))
    assert set_scores(shape, [[won], [lost]]) == [shape.top - shape.spare]
    assert set_scores(shape, [[lost], [won]]) == [shape.spare]
    assert set_shape(2, 2, substituted=False, outcome_type="single_loser") == PAIR


def test_scores_that_cannot_be_need_no_ruling_out() -> None:
    """What is sooner known, but a score beyond, after several faults in a deal, is counted as it is."""
    narrow, wide = SetShape(12, 2, True, 2), SetShape(12, 2, True)
    assert judged([6] * 500, LOGISTIC, narrow).sets < 0.7 * judged([6] * 500, LOGISTIC, wide).sets
    beyond = [6, 0, 12] * 100
    assert judged(beyond, LOGISTIC, narrow).llr == pytest.approx(judged(beyond, LOGISTIC, wide).llr, rel=1e-4)
    assert "beyond 463" in check_hypotheses(Hypotheses(0, 500, logistic=True), narrow)


def test_both_units_are_one_for_equal_bots_without_ties() -> None:
    for substituted in (False, True):
        deals = 4
        shape = SetShape(8, deals, substituted)
        sigma = 0.5 / math.sqrt(deals)  # of the mean of so many independent deals
        assert shape.elo_of(0.5 + 0.001) == pytest.approx(shape.normalised_of(0.001 / sigma), rel=1e-4)
        assert shape.score_of(shape.elo_of(0.7)) == pytest.approx(0.7)
        assert shape.effect_of(shape.normalised_of(0.1)) == pytest.approx(0.1)


def test_a_substitution_shows_half_of_a_difference() -> None:
    assert SetShape(8, 2, True).elo_of(0.55) == pytest.approx(2 * SetShape(8, 2).elo_of(0.55))


# One test


def test_bounds_are_those_of_both_risks() -> None:
    assert NORMALISED.lower == pytest.approx(-2.9444, abs=1e-4)
    assert NORMALISED.upper == pytest.approx(2.9444, abs=1e-4)
    assert (judged([]).lower, judged([]).upper) == (NORMALISED.lower, NORMALISED.upper)


def test_each_bound_has_its_risk_where_it_belongs() -> None:
    """alpha is the risk of H1, so a small one moves the upper bound away: log((1 - beta) / alpha)."""
    careful = Hypotheses(alpha=0.01, beta=0.2)
    assert careful.upper == pytest.approx(math.log(80), abs=1e-12)
    assert careful.lower == pytest.approx(-math.log(4.95), abs=1e-12)


def test_normalised_elo_is_that_of_other_programs() -> None:
    """One standard deviation of a game is 347.43558552: fishtest, fastchess."""
    assert SetShape(2, 1).normalised_of(1.0) == pytest.approx(347.43558552, abs=1e-8)
    assert PAIR.normalised_of(1.0) == pytest.approx(347.43558552 / math.sqrt(2), abs=1e-8)


def test_scores_without_any_spread_have_the_published_llr() -> None:
    """5550 pairs won out of 5550, normalised [0, 5]: 111.80 in the tests of fastchess, where no score weighs .001."""
    endless = Hypotheses(0, 5, 1e-60, 1e-60)
    assert judged([4] * 5550, endless).llr == pytest.approx(111.80, abs=5e-3)


def test_the_ends_of_the_scale_weigh_a_thousandth_where_no_score_is() -> None:
    expected = llr(np.array([0.001, 40, 0.001]), np.array([0, 0.5, 1]), 0.5, PAIR.score_of(20), fitted_mean)
    endless = Hypotheses(alpha=1e-60, beta=1e-60, logistic=True)
    assert judged([2] * 40, endless).llr == pytest.approx(float(expected), rel=1e-9)


def test_bounds_are_nearer_by_what_a_step_passes_them() -> None:
    """Half of the mean square of a rung over its mean, from the 32nd set on: Siegmund, Sequential Analysis, 8.33."""
    scores = [0, 4, 2, 1, 3, 2, 2, 3] * 4 + [4, 3, 2, 4, 4, 0, 3, 1, 0, 1, 0, 2, 0, 0, 1, 4]
    endless = Hypotheses(0, 40, 1e-9, 1e-9)
    walk = [judged(scores[:end], endless).llr for end in range(LEAST_SETS, len(scores) + 1)]
    said = judged(scores, endless)
    for sign, bound, plain in ((1, said.upper, endless.upper), (-1, -said.lower, -endless.lower)):
        rungs: list[float] = []
        top = sign * walk[0]
        for height in walk:
            if sign * height > top:
                rungs.append(sign * height - top)
                top = sign * height
        assert rungs
        assert plain - bound == pytest.approx(sum(r * r for r in rungs) / sum(rungs) / 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_once_it_has_ended_the_estimate_is_not_exaggerated(seed: int) -> None:
    """What ended a test was in part luck, so the unbiased value is nearer to what lies between both hypotheses."""
    hypotheses = Hypotheses(0, 60, logistic=True)
    scores = [int(score) for score in np.random.default_rng(seed).choice(5, 600, p=[0.06, 0.2, 0.34, 0.25, 0.15])]
    said = judged(scores, hypotheses)
    assert said.verdict == "H1"
    assert said.elo is not None
    plain = PAIR.elo_of(sum(scores[: said.sets]) / said.sets / PAIR.top)
    assert 30 < said.elo.value < plain
    assert said.elo.low < said.elo.value < said.elo.high


def test_nothing_ends_before_the_least_number_of_sets() -> None:
    scores = [4, 4, 4, 3] * 8
    before, then = judged(scores[:-1], FAR), judged(scores, FAR)
    assert before.llr > before.upper
    assert (before.sets, before.verdict, before.more_sets) == (LEAST_SETS - 1, "", None)
    assert (then.sets, then.verdict, then.more_sets) == (LEAST_SETS, "H1", 0.0)


@pytest.mark.parametrize(("score", "verdict"), [(4, "H1"), (0, "H0")])
def test_an_obvious_case_ends_soon(score: int, verdict: str) -> None:
    said = judged([score] * 500, LOGISTIC)
    assert said.verdict == verdict
    assert said.sets < 2 * LEAST_SETS
    assert said.elo is not None
    assert abs(said.elo.value) > 400


@pytest.mark.parametrize(("hypotheses", "most"), [(LOGISTIC, 60), (NORMALISED, 500)])
def test_bots_that_never_differ_are_found_equal(hypotheses: Hypotheses, most: int) -> None:
    said = judged([2] * 5000, hypotheses)
    assert said.verdict == "H0"
    assert said.sets < most
    assert said.elo is not None
    assert said.elo.value == pytest.approx(0, abs=0.2)


def test_scores_after_the_end_change_nothing() -> None:
    test = SequentialTest(FAR, PAIR)
    test.add([4] * LEAST_SETS)
    said = test.judgement()
    assert test.is_decided
    test.add([0] * 100)
    assert test.judgement() == said


def test_there_is_no_estimate_without_a_set() -> None:
    said = judged([])
    assert (said.elo, said.normalised, said.sets, said.llr) == (None, None, 0, 0.0)


def test_the_error_is_half_of_the_interval() -> None:
    said = judged([2, 3, 1, 2] * 5)
    assert said.elo is not None
    assert said.elo.error == pytest.approx((said.elo.high - said.elo.low) / 2)
    assert said.elo.low < said.elo.value < said.elo.high


some_scores = st.lists(st.integers(0, 4), min_size=1, max_size=120)
some_hypotheses = st.sampled_from(
    [NORMALISED, LOGISTIC, Hypotheses(-5, 5, 0.02, 0.1), Hypotheses(-30, 0, logistic=True)]
)


@given(some_scores, some_hypotheses, st.lists(st.integers(0, 120), max_size=4))
def test_portions_do_not_matter(scores: list[int], hypotheses: Hypotheses, cuts: list[int]) -> None:
    test = SequentialTest(hypotheses, PAIR)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(scores)], strict=True):
        test.add(scores[start:end])
    found, whole = test.judgement(), judged(scores, hypotheses)
    assert (found.sets, found.verdict) == (whole.sets, whole.verdict)
    assert found.llr == pytest.approx(whole.llr, abs=1e-6)


def mirror(hypotheses: Hypotheses) -> Hypotheses:
    return msgspec.structs.replace(
        hypotheses, elo0=-hypotheses.elo1, elo1=-hypotheses.elo0, alpha=hypotheses.beta, beta=hypotheses.alpha
    )


@given(some_scores, some_hypotheses)
def test_new_and_old_exchanged_mirror_everything(scores: list[int], hypotheses: Hypotheses) -> None:
    said = judged(scores, hypotheses)
    mirrored = judged([4 - score for score in scores], mirror(hypotheses))
    assert said.elo is not None
    assert mirrored.elo is not None
    assert mirrored.sets == said.sets
    assert mirrored.verdict == {"H1": "H0", "H0": "H1", "": ""}[said.verdict]
    assert mirrored.llr == pytest.approx(-said.llr, abs=1e-4)
    assert mirrored.lower == pytest.approx(-said.upper, abs=1e-4)
    assert mirrored.elo.value == pytest.approx(-said.elo.value, abs=0.1)
    assert mirrored.elo.low == pytest.approx(-said.elo.high, abs=0.1)


@given(st.integers(1, 60), st.integers(1, 60), st.data(), some_hypotheses)
def test_everything_is_finite(sets: int, half: int, data: st.DataObject, hypotheses: Hypotheses) -> None:
    shape = SetShape(2 * half, 4, data.draw(st.booleans()))
    scores = data.draw(st.lists(st.integers(0, shape.top), min_size=sets, max_size=sets))
    said = judged(scores, hypotheses, shape)
    assert said.elo is not None
    assert said.normalised is not None
    numbers = [said.llr, said.lower, said.upper, said.more_sets or 0.0]
    for found in (said.elo, said.normalised):
        numbers += [found.value, found.low, found.high]
        assert found.low <= found.value <= found.high
    assert all(map(math.isfinite, numbers))


@pytest.mark.parametrize(
    ("hypotheses", "problem"),
    [
        (Hypotheses(5, 5), r"elo1 \(5\) must be more than elo0 \(5\)"),
        (Hypotheses(math.nan, 5), "must be more"),
        (Hypotheses(alpha=0), r"alpha \(0\) and beta"),
        (Hypotheses(beta=-0.1), "beta"),
        (Hypotheses(alpha=0.6, beta=0.5), "together"),
        (Hypotheses(0, 500), r"elo1 \(500\) is beyond 123"),
        (Hypotheses(-500, 0), r"elo0 \(-500\)"),
        (Hypotheses(0, 800, logistic=True), "beyond 695"),
    ],
)
def test_what_cannot_be_tested_is_told(hypotheses: Hypotheses, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        assert not (said := check_hypotheses(hypotheses, PAIR)), said
    assert not check_hypotheses(NORMALISED, PAIR)


# Many tests, simulated


class Model(NamedTuple):
    """Two bots at a game of luck: the better one has an edge in each deal, the deck's luck changes sides."""

    edge: float
    luck: float = 0.8

    def scores(self, seed: int) -> Iterator[list[int]]:
        luck = np.random.default_rng(seed)
        while True:
            deck = luck.normal(size=64) * math.sqrt(self.luck)
            deals = [self.edge + side * deck + math.sqrt(1 - self.luck) * luck.normal(size=64) for side in (1, -1)]
            yield (2 * (np.array(deals) > 0).sum(axis=0)).tolist()

    def elo(self) -> float:
        chance = statistics.NormalDist().cdf(self.edge)
        return PAIR.elo_of(chance)


def edge_of(elo: float) -> float:
    return statistics.NormalDist().inv_cdf(PAIR.score_of(elo))


def simulate(model: Model, hypotheses: Hypotheses, runs: int) -> list[Judgement]:
    found = []
    for seed in range(runs):
        test = SequentialTest(hypotheses, PAIR)
        for scores in model.scores(seed):
            test.add(scores)
            if test.is_decided:
                break
        found.append(test.judgement())
    return found


def share_of(verdict: str, found: Sequence[Judgement]) -> float:
    return sum(said.verdict == verdict for said in found) / len(found)


@pytest.mark.slow
def test_both_risks_in_short() -> None:
    """A hundred tests with hypotheses far apart; within three standard errors of what was promised."""
    hypotheses = Hypotheses(0, 60, 0.1, 0.1, logistic=True)
    equal, better = (simulate(Model(edge_of(elo)), hypotheses, 100) for elo in (0, 60))
    assert share_of("H1", equal) == pytest.approx(0.1, abs=0.09)
    assert share_of("H0", better) == pytest.approx(0.1, abs=0.09)
    assert sum(said.llr for said in equal) < 0 < sum(said.llr for said in better)


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", ["H1", "H0"])
@pytest.mark.parametrize("logistic", [False, True])
def test_both_risks_are_as_promised_and_stopping_does_not_exaggerate(
    logistic: bool, wrong: str, record_property: Callable[[str, object], None]
) -> None:
    sigma = np.std(np.concatenate([next(Model(0.0).scores(seed)) for seed in range(3000)])) / PAIR.top
    elo1 = 20.0 if logistic else PAIR.elo_of(0.5 + PAIR.effect_of(20.0) * float(sigma))
    model = Model(edge_of(0.0 if wrong == "H1" else elo1))
    found = simulate(model, Hypotheses(logistic=logistic), 400)
    estimates = [said.elo for said in found if said.elo is not None]
    above = sum(estimate.value > model.elo() for estimate in estimates) / len(estimates)
    covered = sum(estimate.low <= model.elo() <= estimate.high for estimate in estimates) / len(estimates)
    deals = PAIR.deals * sum(said.sets for said in found) / len(found)
    what = f"sequential test, {'logistic' if logistic else 'normalised'} [0, 20], {wrong} wrong, 400 runs"
    for told, promised, value in (
        (f"{wrong} accepted, {deals:.0f} deals on average", ".02 to .08", share_of(wrong, found)),
        ("final Elo above the truth", ".42 to .58", above),
        ("truth inside the final 95 % interval", ".92 to .985", covered),
    ):
        record_property("calibration", f"| {what}: {told} | {promised} | {value:.3f} |")
    assert share_of(wrong, found) == pytest.approx(0.05, abs=0.03)
    assert above == pytest.approx(0.5, abs=0.08)
    assert 0.92 < covered < 0.985


@pytest.mark.slow
def test_equal_bots_drift_to_h0_and_duplicates_save_deals() -> None:
    hypotheses = Hypotheses(0, 40, logistic=True)
    sets = simulate(Model(0.0), hypotheses, 40)
    deals = []
    for seed in range(40):
        test = SequentialTest(hypotheses, set_shape(2, 1, substituted=False))
        luck = np.random.default_rng(seed)
        while not test.is_decided:
            test.add((2 * (luck.normal(size=64) > 0)).tolist())
        deals.append(test.judgement().sets)
    assert sum(said.sets * PAIR.deals for said in sets) * 1.8 < sum(deals)
