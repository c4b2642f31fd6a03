"""What the rule vectors of Smokestack do not reach: windows in any order, whole deals, bounds, presets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.cards import sorted_deck
from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES, PRESETS
from arena.games.smokestack import ANSWERS, SMOKESTACK, STACK, Position, is_one_suit, is_straight
from arena.luck import Stream
from arena.rules import Event, Value, complete_options, deal, replay, rule_set_id

KEY = bytes(32)
CARDS = sorted_deck()
OPTIONS = st.fixed_dictionaries(
    {
        "double": st.sampled_from(["pair", "off"]),
        "straight": st.sampled_from(["end", "off"]),
        "sweep": st.sampled_from(["anytime", "own_turn", "off"]),
        "sweep_scope": st.sampled_from(["open", "all"]),
        "sweeps": st.one_of(st.integers(0, 3), st.just(99)),
    }
)


def dealt(seats: int, **given: Value) -> Position:
    state, _ = deal(SMOKESTACK, complete_options(SMOKESTACK, seats, given), seats, KEY)
    assert isinstance(state, Position)
    return state


def every_card(state: Position) -> list[str]:
    seen = chain.from_iterable(chain.from_iterable((*state.stacks, *state.banked)))
    return sorted([*seen, *state.centre, *state.stock])


def played_doubles(events: Iterable[Event]) -> int:
    return sum(event.kind == "double" for event in events)


# Windows (S5)


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize("answers", list(product(ANSWERS, repeat=3)))
def test_the_order_of_answers_leaves_no_trace(turn: int, answers: tuple[str, ...]) -> None:
    before, _ = replay(dealt(3, sweeps=2), [(s, a) for t in range(turn) for s, a in [*waits(3), (t, "pass")]])
    results = set()
    for order in permutations(range(3)):
        state, events = replay(before, [(seat, answers[seat]) for seat in order])
        assert events[0].message() == {"kind": "window", "answers": answers}
        results.add((repr(state), repr(events)))
    assert len(results) == 1


def waits(seats: int) -> list[tuple[int, str]]:
    return [(seat, "wait") for seat in range(seats)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_nobody_is_told_that_another_seat_has_answered(order: tuple[int, ...]) -> None:
    state = dealt(3)
    seen = [state.observation(seat) for seat in range(3)]
    for seat in order[:-1]:
        state, events = state.apply(seat, "sweep")
        assert events == ()
        assert seat not in state.actors
        assert [state.observation(other) for other in range(3)] == seen
        assert all(state.legal_actions(other) == ANSWERS for other in state.actors)


def test_equal_sets_of_answers_are_equal_positions() -> None:
    state = dealt(4)
    one, _ = replay(state, [(3, "wait"), (1, "sweep")])
    other, _ = replay(state, [(1, "sweep"), (3, "wait")])
    assert one == other
    assert one.actors == (0, 2)


@pytest.mark.parametrize(("mode", "seats"), list(product(["own_turn", "off"], SMOKESTACK.seats)))
def test_other_sweep_modes_have_no_windows(mode: str, seats: int) -> None:
    state = dealt(seats, sweep=mode)
    assert state.actors == (0,)
    assert state.observation(0)["window"] is False


# Whole deals


def check_legal(state: Position, probes: Iterable[str]) -> None:
    """The legal list is sorted, unique and exactly what is accepted."""
    for seat in range(state.rules.seats):
        legal = state.legal_actions(seat)
        assert list(legal) == sorted(set(legal))
        assert bool(legal) == (seat in state.actors)
        for action in {*probes, *legal}:
            if action in legal:
                state.apply(seat, action)
                continue
            with pytest.raises(IllegalAction):
                state.apply(seat, action)


def check_counts(state: Position, doubles: int) -> None:
    """S7's theorem, while the stock lasts too: each bank and each double took four cards of it."""
    seats = state.rules.seats
    assert sum(map(len, state.banked)) + doubles == 12 - seats - len(state.stock) // STACK
    assert all(1 <= len(hand) <= 2 for hand in state.stacks)
    assert every_card(state) == sorted(CARDS)
    assert (state.actors == ()) == (state.outcome is not None)
    if state.outcome is None:
        assert not any(is_one_suit(stack) for hand in state.stacks for stack in hand)


def check_end(state: Position) -> None:
    assert state.outcome is not None
    assert state.outcome.reason in {"stock", "stalled", "turn limit"}
    assert (state.outcome.reason == "stock") == (state.stock == ())
    for seat, points in enumerate(state.outcome.points):
        counted = sum(is_one_suit(s) or (state.rules.straight and is_straight(s)) for s in state.stacks[seat])
        assert points == len(state.banked[seat]) + counted


def choose(state: Position, seat: int, luck: Stream, *, eager: bool) -> str:
    """Play at random, or mostly collect the suit that the stack has most of."""
    legal = state.legal_actions(seat)
    swaps = [action for action in legal if action.startswith("swap")]
    if not eager or not swaps or luck.below(10) == 0:
        return legal[luck.below(len(legal))]
    suits = [card[1] for card in state.stacks[seat][0]]
    best = max("cdhs", key=suits.count)
    good = [
        action for action in swaps if action[-1] == best and action[6] != best and action[5:7] in state.stacks[seat][0]
    ]
    return good[0] if good else "pass"


@settings(max_examples=30, deadline=None)
@given(
    seats=st.sampled_from(SMOKESTACK.seats),
    options=OPTIONS,
    key=st.binary(min_size=32, max_size=32),
    eager=st.booleans(),
)
def test_deals_played_out(seats: int, options: dict[str, Value], key: bytes, eager: bool) -> None:
    complete = complete_options(SMOKESTACK, seats, options)
    first, told = deal(SMOKESTACK, complete, seats, key)
    assert isinstance(first, Position)
    luck, probes = Stream(key, "test"), ["double", "pass", "sweep", "wait", "", "swap:2c:3c"]
    state, steps, events, doubles = first, [], list(told), 0
    check_counts(state, 0)
    while state.actors:
        if luck.below(200) == 0:
            check_legal(state, [*probes, *(f"swap:{a}:{b}" for a in CARDS for b in CARDS[luck.below(9) :: 9])])
        seat = state.actors[luck.below(len(state.actors))]
        steps.append((seat, choose(state, seat, luck, eager=eager)))
        state, more = state.apply(*steps[-1])
        doubles += played_doubles(more)
        events += more
        if more:
            check_counts(state, doubles)
    check_end(state)
    check_legal(state, probes)
    assert len(steps) <= SMOKESTACK.max_decisions(complete, seats)
    assert replay(first, steps) == (state, tuple(events[len(told) :]))


def test_eager_seats_empty_the_stock() -> None:
    state, luck = dealt(3), Stream(KEY, "eager")
    doubles = 0
    while state.actors:
        seat = state.actors[0]
        state, events = state.apply(seat, choose(state, seat, luck, eager=True))
        doubles += played_doubles(events)
    assert state.outcome is not None
    assert state.outcome.reason == "stock"
    assert sum(map(len, state.banked)) + doubles == 12 - 3


# Bounds


@pytest.mark.parametrize("seats", [2, 3])
def test_the_bound_is_met_by_windows_before_every_turn(seats: int) -> None:
    state, count = dealt(seats, double="off"), 0
    while state.actors:
        seat, turn = state.actors[0], state.turns
        legal = state.legal_actions(seat)
        breaks_the_row = turn % seats == 0 and "wait" not in legal
        state, _ = state.apply(seat, harmless_swap(state) if breaks_the_row else SMOKESTACK.house_action(state, seat))
        count += 1
    assert count == SMOKESTACK.max_decisions(complete_options(SMOKESTACK, seats, {"double": "off"}), seats)


def harmless_swap(state: Position) -> str:
    """A swap after which nothing is banked."""
    swaps = [action for action in state.legal_actions(state.turn) if action.startswith("swap")]
    return next(a for a in swaps if len(state.apply(state.turn, a)[1]) == 1)


@pytest.mark.parametrize("sweeps", [0, 1, 99])
def test_the_bound_is_met_by_sweeps_as_free_actions(sweeps: int) -> None:
    given: dict[str, Value] = {"double": "off", "sweep": "own_turn", "sweeps": sweeps}
    state, count = dealt(2, **given), 0
    while state.actors:
        legal = state.legal_actions(state.turn)
        action = "sweep" if "sweep" in legal else harmless_swap(state)
        state, _ = state.apply(state.turn, action)
        count += 1
    assert count == SMOKESTACK.max_decisions(complete_options(SMOKESTACK, 2, given), 2) == 200 + 2 * sweeps


def test_doubles_are_bounded_by_places_and_by_stock() -> None:
    bound = {
        seats: SMOKESTACK.max_decisions(complete_options(SMOKESTACK, seats, {"sweep": "off"}), seats) - 100 * seats
        for seats in SMOKESTACK.seats
    }
    assert bound == {2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 5, 8: 4, 9: 3, 10: 2, 11: 1}


# The game object


def test_registered_with_its_presets() -> None:
    assert GAMES["smokestack"] is SMOKESTACK
    name, given = PRESETS["smokestack-junior"]
    options = complete_options(GAMES[name], 4, given)
    assert (
        rule_set_id(GAMES[name], options)
        == "smokestack/1{double=off,straight=off,sweep=anytime,sweep_scope=open,sweeps=1}"
    )


def test_every_place_counts() -> None:
    assert SMOKESTACK.outcome_type(complete_options(SMOKESTACK, 2, {})) == "ranking"


@pytest.mark.parametrize("seats", [-1, 0, 1, 12, 13])
def test_seats_that_cannot_be_dealt_are_refused(seats: int) -> None:
    with pytest.raises(ConfigError, match="smokestack is played by 2 to 11 seats, not"):
        complete_options(SMOKESTACK, seats, {})


def test_the_house_waits_and_passes() -> None:
    state = dealt(2)
    assert SMOKESTACK.house_action(state, 1) == "wait"
    begun, _ = replay(state, waits(2))
    assert SMOKESTACK.house_action(begun, 0) == "pass"


@pytest.mark.parametrize("action", ["x" * 70_000, "swap:" + "2c:" * 9])
def test_a_refusal_names_the_action_in_short(action: str) -> None:
    for state in (dealt(2), dealt(2, sweep="off")):
        with pytest.raises(IllegalAction, match="seat 0 cannot play") as refusal:
            state.apply(0, action)
        assert len(str(refusal.value)) < 120


def test_the_spectator_alone_sees_the_order_of_the_stock() -> None:
    state = dealt(2)
    assert state.observation(None)["stock_cards"] == state.stock
    assert set(state.observation(None)) - set(state.observation(0)) == {"stock_cards", "answers"}
