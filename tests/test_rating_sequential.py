"""The sequential test: how often it errs, and what must hold of it whatever the scores are."""

from __future__ import annotations

import itertools
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
from arena.rating.interval import Interval
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
    plain = PAIR.elo_of(sum(scores[: said.sets]) / said.sets / PAIR.top)
    low, value, high = three(said.elo)
    assert 30 < value < plain
    assert low < value < high


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
    for found in (said.elo, said.normalised):
        assert found is not None
        assert found.value is None
        bound, beyond = (found.low, found.high) if verdict == "H1" else (found.high, found.low)
        assert beyond is None
        assert bound is not None
        assert bound * (score - 2) > 0


def test_nothing_but_victories_bound_the_losses_alone() -> None:
    """The chance of n victories in n sets is .025 where the share of losses is 1 - .025 ** (1 / n)."""
    won, lost = judged([4] * 20), judged([0] * 20)
    least = PAIR.elo_of(0.025 ** (1 / 20))
    assert won.elo is not None
    assert lost.elo is not None
    assert won.elo.low == pytest.approx(least, abs=1)
    assert (won.elo.value, won.elo.high) == (None, None)
    assert lost.elo.high == pytest.approx(-least, abs=1)
    assert (lost.elo.value, lost.elo.low) == (None, None)


def test_sets_without_spread_bound_the_mean_but_not_the_effect() -> None:
    """All sets won by one game of two: how large the difference is can be told, how many deviations it is cannot."""
    said = judged([3] * 20)
    low, value, high = three(said.elo)
    assert low < value < high
    assert value == pytest.approx(PAIR.elo_of(0.75), abs=0.1)
    assert said.normalised is not None
    assert (said.normalised.value, said.normalised.high) == (None, None)
    assert (said.normalised.low or 0) > 0


def three(found: Interval | None) -> tuple[float, float, float]:
    """Return the low end, the value and the high end of an interval that has them all."""
    assert found is not None
    assert found.low is not None
    assert found.value is not None
    assert found.high is not None
    return found.low, found.value, found.high


@pytest.mark.parametrize(("hypotheses", "most"), [(LOGISTIC, 60), (NORMALISED, 500)])
def test_bots_that_never_differ_are_found_equal(hypotheses: Hypotheses, most: int) -> None:
    said = judged([2] * 5000, hypotheses)
    assert said.verdict == "H0"
    assert said.sets < most
    assert three(said.elo)[1] == pytest.approx(0, abs=0.2)


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


def test_near_even_an_interval_is_that_of_the_normal_limit() -> None:
    """1.96 standard errors about the mean, of 400 sets that are not over; a little less evenly by their skewness."""
    scores = [0, 1, 2, 2, 3, 4, 2, 2, 1, 3] * 40
    said = judged(scores, Hypotheses(-1, 1, 1e-6, 1e-6))
    assert said.verdict == ""
    error = 1.96 / math.sqrt(len(scores))
    ends = (-error, 0.0, error)
    assert three(said.normalised) == pytest.approx([PAIR.normalised_of(end) for end in ends], rel=0.01, abs=0.01)
    sigma = float(np.std(scores)) / PAIR.top
    assert three(said.elo) == pytest.approx([PAIR.elo_of(0.5 + end * sigma) for end in ends], rel=0.01, abs=0.01)


some_scores = st.lists(st.integers(0, 4), min_size=1, max_size=120)
some_hypotheses = st.sampled_from(
    [NORMALISED, LOGISTIC, Hypotheses(-5, 5, 0.02, 0.1), Hypotheses(-30, 0, logistic=True)]
)


@given(some_scores, some_hypotheses, st.lists(st.integers(0, 120), max_size=4))
def test_portions_do_not_matter(scores: list[int], hypotheses: Hypotheses, cuts: list[int]) -> None:
    test = SequentialTest(hypotheses, PAIR)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(scores)], strict=True):
        test.add(scores[start:end])
        test.judgement()
    assert test.judgement() == judged(scores, hypotheses)


@pytest.mark.parametrize("hypotheses", [NORMALISED, LOGISTIC])
@pytest.mark.parametrize("shape", [PAIR, SetShape(40, 2, True, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_llr_is_a_function_of_the_sequence_alone(hypotheses: Hypotheses, shape: SetShape, seed: int) -> None:
    """To the last digit, though scores that come at once are judged at once."""
    luck = np.random.default_rng(seed)
    endless = msgspec.structs.replace(hypotheses, alpha=1e-60, beta=1e-60)
    drawn = [0, shape.top] * 150 if seed == 0 else luck.binomial(shape.top, 0.5, 300).tolist()
    whole = judged(drawn, endless, shape)
    test = SequentialTest(endless, shape)
    cuts = [0, *sorted(luck.integers(0, 300, 40).tolist()), 300]
    for start, end in itertools.pairwise(cuts):
        test.add(drawn[start:end])
    assert test.judgement() == whole


def mirror(hypotheses: Hypotheses) -> Hypotheses:
    return msgspec.structs.replace(
        hypotheses, elo0=-hypotheses.elo1, elo1=-hypotheses.elo0, alpha=hypotheses.beta, beta=hypotheses.alpha
    )


@given(some_scores, some_hypotheses)
def test_new_and_old_exchanged_mirror_everything(scores: list[int], hypotheses: Hypotheses) -> None:
    said = judged(scores, hypotheses)
    mirrored = judged([4 - score for score in scores], mirror(hypotheses))
    assert mirrored.sets == said.sets
    assert mirrored.verdict == {"H1": "H0", "H0": "H1", "": ""}[said.verdict]
    assert mirrored.llr == pytest.approx(-said.llr, abs=1e-4)
    assert mirrored.lower == pytest.approx(-said.upper, abs=1e-4)
    for found, other in ((said.elo, mirrored.elo), (said.normalised, mirrored.normalised)):
        assert found is not None
        assert other is not None
        for end, opposite in ((found.value, other.value), (found.low, other.high), (found.high, other.low)):
            assert (end is None) == (opposite is None)
            assert (end or 0) == pytest.approx(-(opposite or 0), abs=0.1, rel=1e-3)


@given(st.integers(1, 60), st.integers(1, 60), st.data(), some_hypotheses)
def test_everything_is_finite(sets: int, half: int, data: st.DataObject, hypotheses: Hypotheses) -> None:
    shape = SetShape(2 * half, 4, data.draw(st.booleans()))
    scores = data.draw(st.lists(st.integers(0, shape.top), min_size=sets, max_size=sets))
    said = judged(scores, hypotheses, shape)
    numbers = [said.llr, said.lower, said.upper, said.more_sets or 0.0]
    assert said.lower <= hypotheses.lower / 2, "however long a step is, half of the way to a bound remains"
    assert said.upper >= hypotheses.upper / 2
    for found in (said.elo, said.normalised):
        assert found is not None
        known = [end for end in (found.low, found.value, found.high) if end is not None]
        assert len(known) == 3 or (len(known) == 1 and found.value is None)
        assert known == sorted(known)
        numbers += known
    assert all(map(math.isfinite, numbers))


@pytest.mark.parametrize(
    ("hypotheses", "problem"),
    [
        (Hypotheses(5, 5), "--elo1 5 must be more than --elo0 5, by 0.1 or more: name"),
        (Hypotheses(0, 5e-324), "--elo1 4.94066e-324 must be more"),
        (Hypotheses(0, 0.09), "--elo1 0.09 must be more"),
        (Hypotheses(math.nan, 5), "--elo0 nan"),
        (Hypotheses(0, math.nan), "--elo1 nan"),
        (Hypotheses(0, math.inf), "--elo1 inf is beyond"),
        (Hypotheses(-math.inf, 0), "--elo0 -inf is beyond"),
        (Hypotheses(alpha=0), "--alpha 0 is no risk of a test: name one from 1e-06 to below 0.5"),
        (Hypotheses(alpha=math.nan), "--alpha nan"),
        (Hypotheses(alpha=5e-324), "--alpha 4.94066e-324"),
        (Hypotheses(alpha=0.999, beta=0.0005), "--alpha 0.999"),
        (Hypotheses(beta=-0.1), "--beta -0.1"),
        (Hypotheses(beta=math.nan), "--beta nan"),
        (Hypotheses(beta=0.5), "--beta 0.5"),
        (Hypotheses(0, 500), "--elo1 500 is beyond 123"),
        (Hypotheses(-500, 0), "--elo0 -500"),
        (Hypotheses(0, 800, logistic=True), "beyond 695"),
    ],
)
def test_what_cannot_be_tested_is_told(hypotheses: Hypotheses, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        assert not (said := check_hypotheses(hypotheses, PAIR)), said
    assert not check_hypotheses(NORMALISED, PAIR)
    assert not check_hypotheses(Hypotheses(0, 0.1, 1e-6, 0.4999), PAIR)


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


def holds(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return (found.low is None or found.low <= truth) and (found.high is None or truth <= found.high)


def coverage(chance: float, deals: int, hypotheses: Hypotheses, runs: int) -> tuple[float, float]:
    """Return how often the intervals of both units hold the truth, where NEW wins each of a set's deals by a chance."""
    luck, held = np.random.default_rng(1), np.zeros(2)
    truth = PAIR.elo_of(chance), PAIR.normalised_of((chance - 0.5) / math.sqrt(chance * (1 - chance) / deals))
    for _ in range(runs):
        test = SequentialTest(hypotheses, PAIR)
        while not test.is_decided:
            test.add((luck.binomial(deals, chance, 32) * (PAIR.top // deals)).tolist())
        said = test.judgement()
        held += [holds(said.elo, truth[0]), holds(said.normalised, truth[1])]
    elo, normalised = held / runs
    return float(elo), float(normalised)


@pytest.mark.slow
@pytest.mark.parametrize(("chance", "deals"), [(0.75, 2), (0.9, 2), (0.95, 1), (0.98, 1)])
def test_intervals_of_unlike_bots_in_short(chance: float, deals: int) -> None:
    """Within three standard errors of .95."""
    assert min(coverage(chance, deals, LOGISTIC, 60)) > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 60)


@pytest.mark.nightly
@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize(
    ("chance", "deals"),
    [(0.5, 2), (0.6, 2), (0.75, 2), (0.9, 2), (0.75, 1), (0.9, 1), (0.95, 1), (0.98, 1)],
)
def test_intervals_hold_the_truth_for_unlike_bots(
    chance: float, deals: int, logistic: bool, record_property: Callable[[str, object], None]
) -> None:
    unit = "logistic" if logistic else "normalised"
    runs = 400 if logistic else 200
    held = coverage(chance, deals, Hypotheses(logistic=logistic), runs)
    made = "deals of a pair" if deals == 2 else "pairs as a whole"
    for told, value in zip(("Elo", "normalised Elo"), held, strict=True):
        what = (
            f"sequential test, {unit} [0, 20], {made} won by {chance:.0%}, {runs} runs: truth inside the 95 % interval"
        )
        record_property("calibration", f"| {what}, {told} | .92 or more | {value:.3f} |")
    assert min(held) >= 0.92


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
    above = sum(three(said.elo)[1] > model.elo() for said in found) / len(found)
    covered = sum(holds(said.elo, model.elo()) for said in found) / len(found)
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


def test_however_long_a_step_is_half_of_the_way_to_a_bound_remains() -> None:
    hypotheses = Hypotheses(alpha=0.2, beta=0.2, logistic=True)
    said = judged([4] * 32 + [8], hypotheses, SetShape(8, 2, True))
    assert said.upper == hypotheses.upper / 2
    assert said.verdict == ""
