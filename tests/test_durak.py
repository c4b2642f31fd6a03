"""Durak beyond its vectors: whole deals, bounds, house actions and what TOML cannot say (null)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from arena.cards import sorted_deck
from arena.errors import IllegalAction
from arena.games.durak import DURAK
from arena.games.durak_cards import ATTACK, BEATEN, CAPTURE, THROW, TRANSFER
from arena.luck import Stream
from arena.rules import Event, State, Value, complete_options, deal

KEY = bytes(32)
EVERY_ACTION = ("pass", "take", "", *ATTACK.card, *CAPTURE.card, *THROW.card, *TRANSFER.card, *BEATEN)
NO_CAPTURE = (
    "Ac Kc Qc Jc Tc 9c 8c 7c 6c Ad Kd Qd Jd Td 9d 8d 7d 6d Ah Kh Qh Jh Th 9h 8h 7h 6h As Ks Qs Js Ts 9s 8s 7s 6s"
)
"""With two seats: seat 0 gets everything with the last card."""
FOUR_TEN_REST_NONE = (
    "7c 9c 7s Ts 8h 6s 7d 8s 8c Tc 9s Ac Kc Qc 9d Ah Kd Qd Jd Qs Kh Jc Ks Td Jh As Qh 9h 8d 6c Th Ad 7h 6d 6h Js"
)
"""With four seats: 6s 8s 7c 9c for seat 0, ten cards for seat 1, 22 for seat 2, none for seat 3; trump s."""
SIX_AND_REST = (
    "6c 6s 7c Td 7s Tc Ah Jd Kc Kd Qc Ad Ac Ks Qd As Qs Qh Kh Jh 9s Js Jc Ts Th 9c 9h 9d 8d 7d 7h 8c 8h 6d 6h 8s"
)
"""With two seats: Tc Qc Td Jd 6s 7s for seat 0, the rest for seat 1; trump s."""


def start(seats: int, order: str, seed: bytes = KEY, **given: Value) -> State:
    """Return the first position of a deck, top first."""
    return DURAK.initial_state(complete_options(DURAK, seats, given), seats, order.split(), seed)[0]


def rest_below(top: str) -> str:
    """Return a whole deck that begins with some cards."""
    return " ".join([*top.split(), *(card for card in NO_CAPTURE.split() if card not in top.split())])


def seen(state: State, seat: int | None = None) -> Any:
    return state.observation(seat)


def random_options(rng: Random, seats: int) -> dict[str, Value]:
    given = {name: rng.choice(option.values) for name, option in DURAK.schema.items()}
    given["max_attack"] = rng.choice((6, "none", 1, 2, 3))
    return complete_options(DURAK, seats, given)


def all_cards(state: State) -> list[str]:
    view = seen(state)
    cards = [card for hand in view["hands"] for card in hand]
    cards += [card for pair in view["table"] for card in pair if card]
    cards += [*view["discard"], *view["open"], *view["deck_cards"]]
    return sorted([*cards, view["drawn"]] if view["drawn"] else cards)


def check_position(state: State, rng: Random) -> None:
    """One seat acts; its list is sorted and unique, and exactly what is accepted."""
    (seat,) = state.actors
    legal = state.legal_actions(seat)
    assert list(legal) == sorted(set(legal))
    assert legal
    for action in rng.sample(EVERY_ACTION, 20):
        if action not in legal:
            with pytest.raises(IllegalAction):
                state.apply(seat, action)
    for other in range(seen(state)["seats"]):
        if other != seat:
            assert state.legal_actions(other) == ()
            with pytest.raises(IllegalAction):
                state.apply(other, legal[0])


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("seats", DURAK.seats)
def test_random_deals_keep_the_rules_and_end(seats: int, number: int) -> None:
    rng = Random(100 * seats + number)
    options = random_options(rng, seats)
    state, events = deal(DURAK, options, seats, rng.randbytes(32))
    deck = sorted(DURAK.deck(options))
    keys = set(state.observation(0))
    told: list[Event] = list(events)
    decisions = 0
    while state.outcome is None:
        check_position(state, rng)
        assert all_cards(state) == deck
        assert set(state.observation(0)) == keys
        (seat,) = state.actors
        state, events = state.apply(seat, rng.choice(state.legal_actions(seat)))
        told += events
        decisions += 1
    assert decisions <= DURAK.max_decisions(options, seats)
    assert state.actors == ()
    assert all_cards(state) == deck
    assert all(event.seen_by is None for event in told)
    assert told[-1].kind == "end"
    assert min(state.outcome.places) == 1
    assert seen(state)["bout"] <= len(deck) ** 2 + 2 * len(deck)


@pytest.mark.parametrize("seats", DURAK.seats)
def test_every_action_on_the_list_is_accepted_and_no_other(seats: int) -> None:
    rng = Random(seats)
    state, _ = deal(DURAK, complete_options(DURAK, seats, {"transfer": True}), seats, KEY)
    for _ in range(30):
        (seat,) = state.actors
        accepted = []
        for action in EVERY_ACTION:
            try:
                state.apply(seat, action)
            except IllegalAction:
                continue
            accepted.append(action)
        assert tuple(sorted(accepted)) == state.legal_actions(seat)
        state, _ = state.apply(seat, rng.choice(accepted))


def by_house(state: State) -> State:
    while state.outcome is None:
        (seat,) = state.actors
        state, _ = state.apply(seat, DURAK.house_action(state, seat))
    return state


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({}, (1, 1, 4, 1)),
        ({"score": "places"}, (2, 3, 4, 1)),
        ({"stall": "draw"}, (1, 1, 1, 1)),
        ({"stall": "draw", "score": "places"}, (2, 2, 2, 1)),
    ],
)
def test_takes_for_ever_stop_the_deal(given: dict[str, Value], places: tuple[int, ...]) -> None:
    state = by_house(start(4, FOUR_TEN_REST_NONE, KEY, **given))
    assert state.outcome is not None
    assert state.outcome.places == places
    assert state.outcome.points == (-4, -10, -22, 0)
    assert state.outcome.reason == "stalled"
    assert seen(state)["bout"] == 72
    assert seen(state)["takes_in_row"] == 72


def test_equal_most_cards_share_the_loss() -> None:
    fifteen = "Ac Td 6d 8c 8h Ah 7s 7h Kh 9h Ad Jh Th Qc Jc"
    state = by_house(start(4, fifteen))
    assert state.outcome is not None
    assert state.outcome.places == (2, 2, 2, 1)
    assert state.outcome.points == (-5, -5, -5, 0)
    assert seen(state)["takes_in_row"] == 30


def test_the_house_captures_the_lowest_card_not_the_first_word() -> None:
    state = start(2, rest_below("Js Ts Qs"))
    assert state.legal_actions(1) == ("capture:Js", "capture:Ts")
    assert DURAK.house_action(state, 1) == "capture:Ts"


def test_the_house_leads_the_lowest_card_that_is_no_trump_clubs_first() -> None:
    state = start(2, SIX_AND_REST)
    assert seen(state)["hands"][0] == ("Tc", "Qc", "Td", "Jd", "6s", "7s")
    assert DURAK.house_action(state, 0) == "attack:Tc"
    state, _ = state.apply(0, "attack:Tc")
    assert DURAK.house_action(state, 1) == "take"
    state, _ = state.apply(1, "beat:Tc:Jc")
    assert state.legal_actions(0) == ("pass", "throw:Jd", "throw:Td")
    assert DURAK.house_action(state, 0) == "pass"


def test_the_house_leads_the_lowest_trump_when_it_has_nothing_else() -> None:
    state = start(2, SIX_AND_REST)
    for card in ("Tc", "Qc", "Td", "Jd"):
        state, _ = state.apply(0, f"attack:{card}")
        state, _ = state.apply(1, "take")
        if card == "Tc":
            state, _ = state.apply(0, "pass")
    assert state.legal_actions(0) == ("attack:6s", "attack:7s")
    assert DURAK.house_action(state, 0) == "attack:6s"


@pytest.mark.parametrize("seed", [KEY, b"\x01" * 32])
def test_a_redeal_is_the_sorted_deck_shuffled_by_the_deal_seed(seed: bytes) -> None:
    again = start(2, NO_CAPTURE, seed, redeal_if_empty=True)
    fresh = start(2, " ".join(Stream(seed, "redeal", 1).shuffled(sorted_deck("6"))), redeal_if_empty=True)
    assert seen(again)["redeals"] == 1
    assert seen(again) == {**seen(fresh), "redeals": 1}


def test_after_twenty_redeals_an_empty_hand_is_accepted() -> None:
    options = complete_options(DURAK, 2, {"redeal_if_empty": True})
    state, events = DURAK.initial_state(options, 2, ("6s", "7s"), KEY)
    assert [event.data["number"] for event in events if event.kind == "redeal"] == list(range(1, 21))
    assert state.outcome is not None
    assert state.outcome.places == (2, 1)
    assert seen(state)["redeals"] == 20


def test_what_is_unknown_or_over_is_none() -> None:
    state = start(2, rest_below("7s 6s 9s"))
    nothing = {"trump": None, "leader": None, "defender": None, "out": (None, None), "bout": 0, "limit": 0}
    assert seen(state, 0).items() >= nothing.items()
    state = start(2, SIX_AND_REST)
    assert seen(state, 1).items() >= {"drawn": None, "deck": 0, "out": (None, None), "turn": 0}.items()
    state, _ = state.apply(0, "attack:Tc")
    assert seen(state, 1)["table"] == (("Tc", None),)
    state = start(2, NO_CAPTURE)
    assert seen(state).items() >= {"turn": None, "leader": None, "defender": None, "out": (None, 0)}.items()


def test_only_a_spectator_sees_the_order_of_the_deck() -> None:
    state = start(2, rest_below("7s 6s 9s"))
    rest = rest_below("7s 6s 9s").split()[3:]
    other = start(2, " ".join(["7s 6s 9s", *reversed(rest)]))
    for seat in range(2):
        assert "deck_cards" not in seen(state, seat)
        assert seen(state, seat) == seen(other, seat)
    assert seen(state)["deck_cards"] == tuple(rest)
    assert seen(other)["deck_cards"] == tuple(reversed(rest))


def test_seats_see_the_same_in_the_bouts() -> None:
    state = start(2, SIX_AND_REST)
    assert {**seen(state, 0), "seat": 1} == seen(state, 1)
    assert {**seen(state, 0), "seat": None, "deck_cards": ()} == seen(state)


def test_nobody_acts_after_the_end() -> None:
    state = start(2, NO_CAPTURE)
    for seat in (-1, 0, 1):
        assert state.legal_actions(seat) == ()
        with pytest.raises(IllegalAction):
            state.apply(seat, "pass")


def test_states_do_not_change() -> None:
    state = start(2, SIX_AND_REST)
    before = seen(state)
    first = state.apply(0, "attack:Tc")
    assert seen(state) == before
    assert state.apply(0, "attack:Tc") == first


@pytest.mark.parametrize(
    ("seats", "given", "bound"),
    [
        (2, {}, 36 + (36**2 + 72) * 3 * 6),
        (2, {"redeal_if_empty": True, "max_attack": 1}, 36 * 21 + (36**2 + 72) * 3),
        (6, {}, 52 + (52**2 + 104) * 7 * 6),
        (6, {"max_attack": "none"}, 52 + (52**2 + 104) * 7 * 51),
        (3, {"max_attack": 51}, 36 + (36**2 + 72) * 4 * 35),
    ],
)
def test_max_decisions(seats: int, given: dict[str, Value], bound: int) -> None:
    assert DURAK.max_decisions(complete_options(DURAK, seats, given), seats) == bound


def test_outcome_type_goes_by_the_score() -> None:
    assert DURAK.outcome_type(complete_options(DURAK, 2, {})) == "single_loser"
    assert DURAK.outcome_type(complete_options(DURAK, 2, {"score": "places"})) == "ranking"


def test_decks() -> None:
    assert DURAK.deck(complete_options(DURAK, 2, {})) == sorted_deck("6")
    assert len(DURAK.deck(complete_options(DURAK, 2, {"deck": 52}))) == 52
