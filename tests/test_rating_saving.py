"""What luck that is shared saves: a sequential test of nearly equal real bots, on deal sets and on independent deals.

And how often the test errs on the scores of single deals among others, most of which are even.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np
import pytest

from arena.games import GAMES
from arena.luck import Stream, derive
from arena.rating.gain import set_scores, set_shape
from arena.rating.sequential import Hypotheses, SequentialTest, SetShape
from arena.records import Placing
from arena.rules import OutcomeType, bot_seed, complete_options, deal
from arena.schedule.seatings import seatings

GREEDY = Path(__file__).parents[1] / "bots" / "greedy" / "bot.py"
SLIPS = 0.01
"""How often NEW plays at random; else it is OLD."""
DUE = 2.5

Choose: TypeAlias = Callable[[Any], str]
Scores: TypeAlias = tuple[SetShape, list[int]]
Draw: TypeAlias = Callable[[np.random.Generator, int], Sequence[int]]


@pytest.fixture(scope="module")
def old() -> Iterator[Choose]:
    """Return how the bot greedy plays, without a process."""
    sdk = ModuleType("arena_bot")
    vars(sdk).update(Ask=object, run=lambda *_, **__: None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "arena_bot", sdk)
        spec = importlib.util.spec_from_file_location("greedy_bot", GREEDY)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module.choose


def at_random(ask: Any) -> str:
    chosen: str = ask.rng.choice(ask.legal)
    return chosen


def slipping(choose: Choose) -> Choose:
    return lambda ask: at_random(ask) if ask.rng.random() < SLIPS else choose(ask)


def played(name: str, bots: Sequence[Choose], seating: Sequence[int], deck: int, leg: int) -> Placing:
    """Play a deal; what a bot draws depends on deck and seat alone."""
    game, seats = GAMES[name], len(bots)
    key = derive(b"saving", "deck", name, seats, deck)
    state, _ = deal(game, complete_options(game, seats, {}), seats, key)
    luck = [random.Random(bot_seed(key, seat)) for seat in range(seats)]

    def ask(seat: int) -> SimpleNamespace:
        legal, seen = list(state.legal_actions(seat)), state.observation(seat)
        return SimpleNamespace(game=name, seats=seats, seat=seat, rng=luck[seat], observation=seen, legal=legal)

    while state.actors:
        chosen = [(seat, bots[seating[seat]](ask(seat))) for seat in state.actors]
        for seat, action in chosen:
            state, _ = state.apply(seat, action)
    assert state.outcome is not None
    return Placing(deck, leg, tuple(seating), state.outcome.places)


def met(name: str, new: Choose, old: Choose, decks: int) -> tuple[Scores, Scores]:
    """Return the scores of deal sets at a table of two, and of their single deals."""
    legs = seatings(2)
    deals = [played(name, (new, old), legs[leg], deck, leg) for deck in range(decks) for leg in (0, 1)]
    pair, single = (set_shape(2, legs, substituted=False) for legs in (2, 1))
    singles = [score for one in deals for score in set_scores(single, [[one]])]
    return (pair, set_scores(pair, [deals])), (single, singles)


def substituted(name: str, new: Choose, old: Choose, seats: int, decks: int) -> tuple[SetShape, list[int], list[int]]:
    """Return what NEW and OLD each gain in the same seat among the same others, counted from one half."""
    legs = seatings(seats)
    options = complete_options(GAMES[name], seats, {})
    shape = set_shape(seats, 1, substituted=True, outcome_type=GAMES[name].outcome_type(options))
    gains: tuple[list[int], list[int]] = ([], [])
    for deck in range(decks):
        leg = deck % len(legs)
        others = Stream(b"saving", "field", name, seats, deck).shuffled([old, at_random, slipping(old)])[: seats - 1]
        for bot, gained in zip((new, old), gains, strict=True):
            one = played(name, (bot, *others), legs[leg], deck, 0)
            nothing = Placing(deck, 0, one.seating, (1,) * seats)
            gained += (score - shape.top // 2 for score in set_scores(shape, [[one], [nothing]]))
    return shape, *gains


def deals_until_decided(shape: SetShape, draw: Draw, runs: int) -> float:
    """Return how many deals a test of 20 Elo takes on average."""
    found = []
    for seed in range(runs):
        luck, test = np.random.default_rng(seed), SequentialTest(Hypotheses(logistic=True), shape)
        while not test.is_decided:
            test.add(draw(luck, 64))
        found.append(test.judgement().sets * shape.deals)
    return fmean(found)


def again(scores: Sequence[int]) -> Draw:
    return lambda luck, count: luck.choice(scores, count).tolist()


def saving(name: str, seats: int, old: Choose, decks: int, runs: int) -> tuple[float, float]:
    """Return the deals that a test takes on deal sets, and on independent deals."""
    new = slipping(old)
    if seats == 2:
        sets, singles = met(name, new, old, decks)
        return deals_until_decided(sets[0], again(sets[1]), runs), deals_until_decided(
            singles[0], again(singles[1]), runs
        )
    shape, won, lost = substituted(name, new, old, seats, decks)
    middle = shape.top // 2
    coupled = [middle + of_new - of_old for of_new, of_old in zip(won, lost, strict=True)]

    def apart(luck: np.random.Generator, count: int) -> list[int]:
        scores: list[int] = (middle + luck.choice(won, count) - luck.choice(lost, count)).tolist()
        return scores

    return deals_until_decided(shape, again(coupled), runs), deals_until_decided(shape, apart, runs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seats", "decks"), [("durak", 2, 150), ("avalanche", 3, 250), ("avalanche", 4, 250)])
def test_nearly_equal_bots_are_told_apart_in_far_fewer_deals(name: str, seats: int, decks: int, old: Choose) -> None:
    sets, singles = saving(name, seats, old, decks, 8)
    assert singles >= DUE * sets


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "seats"), [(name, seats) for name, game in GAMES.items() for seats in game.seats if seats < 5]
)
def test_what_is_saved_in_every_game(
    name: str, seats: int, old: Choose, record_property: Callable[[str, object], None]
) -> None:
    sets, singles = saving(name, seats, old, 1500, 60)
    what = f"deals of a test of 20 Elo, {100 * SLIPS:g} % random moves, {name}, {seats} seats"
    record_property(
        "calibration",
        f"| {what}: {sets:.0f} instead of {singles:.0f} | at least {DUE} times fewer | {singles / sets:.1f} |",
    )
    assert singles >= DUE * sets


@pytest.mark.parametrize("name", GAMES)
def test_equal_bots_part_in_no_deal(name: str, old: Choose) -> None:
    for seats in (seats for seats in GAMES[name].seats if 2 < seats < 5):
        _, won, lost = substituted(name, old, old, seats, len(seatings(seats)))
        assert won == lost


# How often it errs

APART: MappingProxyType[tuple[int, OutcomeType], dict[int, float]] = MappingProxyType(
    {
        (3, "ranking"): {1: 0.007, 2: 0.027, 3: 0.001, 4: 0.004},
        (4, "ranking"): {1: 0.0085, 2: 0.0245, 3: 0.0025, 4: 0.0065, 5: 0.0002, 6: 0.0005},
        (3, "single_loser"): {1: 0.0018, 2: 0.0007, 3: 0.008},
        (4, "single_loser"): {1: 0.0009, 3: 0.0002, 4: 0.0047},
    }
)
"""By seats and game: how often NEW gains so many half points more than OLD, and as often less; avalanche and durak."""

every_table = pytest.mark.parametrize(("seats", "outcome_type"), APART)


def chances(shape: SetShape, apart: dict[int, float], elo: float) -> list[float]:
    """Return how likely each score is where NEW is stronger by this: the measured shares, leaning to one side."""
    half = shape.top // 2
    steps = np.arange(-half, half + 1)
    shares = np.array([apart.get(abs(int(step)), 0.0) if step else 1 - 2 * sum(apart.values()) for step in steps])
    low, high = 1.0, 1e6
    for _ in range(200):
        lean = (low * high) ** 0.5
        leaning = shares * lean ** (steps / half)
        leaning /= leaning.sum()
        low, high = (lean, high) if leaning @ steps / shape.top + 0.5 < shape.score_of(elo) else (low, lean)
    found: list[float] = leaning.tolist()
    return found


def share_wrong(
    seats: int, outcome_type: OutcomeType, hypotheses: Hypotheses, wrong: Literal["H0", "H1"], runs: int
) -> float:
    """Return how often a test accepts a hypothesis where the other one holds."""
    shape = set_shape(seats, 1, substituted=True, outcome_type=outcome_type)
    elo = hypotheses.elo0 if wrong == "H1" else hypotheses.elo1
    likely, count = chances(shape, APART[seats, outcome_type], elo), 0
    for seed in range(runs):
        luck, test = np.random.default_rng(seed), SequentialTest(hypotheses, shape)
        while not test.is_decided:
            test.add(luck.choice(shape.top + 1, 64, p=likely).tolist())
        count += test.judgement().verdict == wrong
    return count / runs


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["H0", "H1"])
@every_table
def test_a_test_among_others_seldom_errs(seats: int, outcome_type: OutcomeType, wrong: Literal["H0", "H1"]) -> None:
    """Risks of .1, 60 tests each, three standard errors: where most scores are even it may err less often."""
    assert share_wrong(seats, outcome_type, Hypotheses(0, 40, 0.1, 0.1, logistic=True), wrong, 60) <= 0.1 + 0.116


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", ["H0", "H1"])
@every_table
def test_a_test_among_others_errs_no_more_often_than_promised(
    seats: int, outcome_type: OutcomeType, wrong: Literal["H0", "H1"], record_property: Callable[[str, object], None]
) -> None:
    found = share_wrong(seats, outcome_type, Hypotheses(logistic=True), wrong, 1000)
    what = f"sequential test among others, logistic [0, 20], {seats} seats, {outcome_type}, {wrong} wrong, 1000 runs"
    record_property("calibration", f"| {what} | at most .08 | {found:.3f} |")
    assert found <= 0.05 + 0.03
