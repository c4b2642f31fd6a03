"""What holds for the ratings of any deals at all."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.rating.pool import Pool, history, rate, rate_pool
from arena.records import BotHash, RatedDeal, RatedMatch
from arena.rules import OutcomeType
from tests.fakes_executor import apart

TYPES = st.sampled_from(["ranking", "single_loser"])


@st.composite
def deals(draw: st.DrawFn) -> RatedDeal:
    bots = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True))
    places = draw(st.lists(st.integers(1, 4), min_size=len(bots), max_size=len(bots)))
    return RatedDeal(str(draw(st.integers(0, 20))), tuple(map(BotHash, bots)), tuple(places))


@st.composite
def matches(draw: st.DrawFn) -> RatedMatch:
    bots = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5))
    decks = draw(st.lists(st.integers(0, 20).map(str), min_size=1, max_size=3, unique=True))
    dealt = draw(st.lists(st.integers(0, len(decks) - 1), min_size=1, max_size=6))
    seatings = [draw(st.permutations(range(len(bots)))) for _ in dealt]
    places = draw(st.binary(min_size=len(bots) * len(dealt), max_size=len(bots) * len(dealt)))
    return RatedMatch(tuple(map(BotHash, bots)), tuple(decks), tuple(dealt), bytes(chain(*seatings)), places)


LISTS = st.lists(deals(), max_size=40)


def elo(pool: Pool) -> dict[str, float]:
    return dict(zip(pool.estimate.bots, pool.estimate.elo.tolist(), strict=True))


@given(LISTS, TYPES)
def test_every_number_is_finite_and_the_mean_is_held(played: list[RatedDeal], outcome_type: OutcomeType) -> None:
    ratings = rate(played, outcome_type)
    assert {r.bot for r in ratings} == {b for d in played for b in d.bots}
    assert all(math.isfinite(r.elo) and (r.error is None or math.isfinite(r.error)) for r in ratings)
    assert all(0 <= r.wins <= r.deals for r in ratings)
    assert sum(r.elo - 1500 for r in ratings) == pytest.approx(0, abs=1e-5)


@given(LISTS, TYPES, st.data())
def test_order_and_portions_do_not_show(played: list[RatedDeal], outcome_type: OutcomeType, data: Any) -> None:
    shuffled = data.draw(st.permutations(played))
    cut = data.draw(st.integers(0, len(played)))
    expected = rate(played, outcome_type)
    assert rate(iter(shuffled), outcome_type) == expected
    assert list(history([shuffled[:cut], shuffled[cut:]], outcome_type))[-1] == expected


@given(LISTS, TYPES, st.data())
def test_the_listing_of_seats_does_not_show(played: list[RatedDeal], outcome_type: OutcomeType, data: Any) -> None:
    turned = []
    for d in played:
        order = data.draw(st.permutations(range(len(d.bots))))
        turned.append(RatedDeal(d.deck, tuple(d.bots[i] for i in order), tuple(d.places[i] for i in order)))
    assert rate(turned, outcome_type) == rate(played, outcome_type)


@given(LISTS, TYPES, st.permutations("abcdefg"))
def test_names_do_not_matter(played: list[RatedDeal], outcome_type: OutcomeType, names: list[str]) -> None:
    new = dict(zip("abcdefg", names, strict=True))
    renamed = [RatedDeal(d.deck, tuple(BotHash(new[b]) for b in d.bots), d.places) for d in played]
    expected = {new[bot]: value for bot, value in elo(rate_pool(played, outcome_type)).items()}
    assert elo(rate_pool(renamed, outcome_type)) == pytest.approx(expected, abs=1e-9)


@given(st.lists(matches(), max_size=8), TYPES)
def test_a_match_counts_as_its_deals(played: list[RatedMatch], outcome_type: OutcomeType) -> None:
    assert rate(played, outcome_type) == rate(apart(played), outcome_type)
