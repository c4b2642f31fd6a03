"""What holds in every game: each property over all of GAMES, seat counts and option sets.

A new game adds a line to `COUNTERS` and, if its cards are not all different, to `UNSEEN`.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.cards import deck_order
from arena.errors import IllegalAction
from arena.games import GAMES
from arena.luck import Stream, derive
from arena.rules import Action, Event, Game, Option, Seat, State, Value, complete_options, deal, replay
from arena.wire import Conversation, encode_event, encode_observation
from arena.wire import State as TalkState

Policy = Callable[[State, Seat], Action]
Step = tuple[Seat, Action]

every_game = pytest.mark.parametrize("name", sorted(GAMES))
any_data = given(data=st.data())


class Table(msgspec.Struct, frozen=True):
    """What a deal is made of, and the key of the random choices in it."""

    game: Game
    seats: int
    options: Mapping[str, Value]
    deck_key: bytes
    play_key: bytes

    def start(self) -> tuple[State, tuple[Event, ...]]:
        return deal(self.game, self.options, self.seats, self.deck_key)

    def random_policy(self) -> Policy:
        luck = Stream(self.play_key, "play")
        return lambda state, seat: state.legal_actions(seat)[luck.below(len(state.legal_actions(seat)))]


def option_values(option: Option) -> st.SearchStrategy[Value]:
    words: st.SearchStrategy[Value] = st.sampled_from(option.values) if option.values else st.nothing()
    return words | st.integers(option.low, option.high) if option.high >= option.low else words


@st.composite
def tables(draw: st.DrawFn, name: str) -> Table:
    game = GAMES[name]
    seats = draw(st.sampled_from(game.seats))
    given_options = draw(st.fixed_dictionaries({}, optional={k: option_values(o) for k, o in game.schema.items()}))
    options = complete_options(game, seats, given_options)
    keys = st.integers(0, 2**32).map(lambda number: number.to_bytes(32, "big"))
    return Table(game, seats, options, draw(keys), draw(keys))


def walk(table: Table, policy: Policy, limit: int) -> Iterator[tuple[State, Step, tuple[Event, ...]]]:
    """Yield each position that is not over, the step from it and its events, at most `limit` of them."""
    state, _ = table.start()
    order = Stream(table.play_key, "actor")
    for _ in range(limit):
        if not state.actors:
            return
        seat = state.actors[order.below(len(state.actors))]
        step = (seat, policy(state, seat))
        following, events = state.apply(*step)
        yield state, step, events
        state = following


def random_steps(table: Table, limit: int) -> list[Step]:
    return [step for _, step, _ in walk(table, table.random_policy(), limit)]


def some_position(data: st.DataObject, table: Table) -> tuple[State, list[Step]]:
    """Return a position on a random play-out and the steps to it."""
    steps = random_steps(table, data.draw(st.sampled_from((0, 1, 2, 4, 8, 16, 32, 64, 128, 256)), label="steps"))
    return replay(table.start()[0], steps)[0], steps


# Conservation


def cards_named(observation: Mapping[str, object], *keys: str) -> Counter[str]:
    return Counter(re.findall(r"[2-9TJQKA][cdhs]", str([observation[key] for key in keys])))


def avalanche_cards(observation: Mapping[str, Any]) -> Counter[str]:
    on_table = sum(play["count"] for play in observation["table"])
    laid = Counter(observation["laid"])
    assert laid.total() == sum(observation["piles"]) + observation["dead"] + on_table
    assert observation["counts"] == [len(hand) for hand in observation["hands"]]
    assert observation["stock"] == len(observation["stock_cards"])
    return sum(map(Counter, observation["hands"]), Counter(observation["stock_cards"])) + laid


COUNTERS: dict[str, Callable[[Mapping[str, Any]], Counter[str]]] = {
    "avalanche": avalanche_cards,
    "durak": lambda seen: cards_named(seen, "hands", "deck_cards", "open", "drawn", "table", "discard"),
    "smokestack": lambda seen: cards_named(seen, "stacks", "centre", "stock_cards", "banked"),
}
"""All cards that the spectator of a game sees, each as often as it is there."""


@every_game
@any_data
def test_cards_are_conserved(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    whole = Counter(table.game.deck(table.options))
    assert COUNTERS[name](table.start()[0].observation(None)) == whole
    for state, step, _ in walk(table, table.random_policy(), 400):
        assert COUNTERS[name](state.apply(*step)[0].observation(None)) == whole


# Legal actions


@every_game
@any_data
def test_actors_and_legal_actions_agree(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    state, steps = some_position(data, table)
    for state, _, _ in walk(table, table.random_policy(), len(steps) + 20):
        assert state.outcome is None
        assert list(state.actors) == sorted(set(state.actors))
        for seat in range(table.seats):
            legal = state.legal_actions(seat)
            assert list(legal) == sorted(set(legal))
            assert all(action.isascii() for action in legal)
            assert bool(legal) == (seat in state.actors)


def near_misses(action: Action) -> list[Action]:
    return [action + "x", action[:-1], action.upper(), f" {action}", action.replace(":", "::"), action + "\n"]


@every_game
@any_data
def test_exactly_the_legal_list_is_accepted_and_nothing_changes_the_position(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    state, _ = some_position(data, table)
    before = copy.deepcopy(state)
    legal = {seat: state.legal_actions(seat) for seat in range(-1, table.seats + 1)}
    now = {action for own in legal.values() for action in own[:20]}
    misses = {miss for action in now for miss in near_misses(action)}
    tried = now | misses | {action for _, action in random_steps(table, 60)} | {"", data.draw(st.text(max_size=9))}
    for seat, own in legal.items():
        for action in own:
            state.apply(seat, action)
        for action in tried - set(own):
            with pytest.raises(IllegalAction):
                state.apply(seat, action)
    assert state == before
    assert {seat: state.legal_actions(seat) for seat in legal} == legal


# The end


POLICIES: dict[str, Callable[[Table], Policy]] = {
    "random": Table.random_policy,
    "first": lambda table: lambda state, seat: state.legal_actions(seat)[0],
    "last": lambda table: lambda state, seat: state.legal_actions(seat)[-1],
    "house": lambda table: table.game.house_action,
}


@every_game
@pytest.mark.parametrize("policy", POLICIES)
@any_data
def test_every_deal_ends_within_its_bound(name: str, policy: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    bound = table.game.max_decisions(table.options, table.seats)
    steps = [step for _, step, _ in walk(table, POLICIES[policy](table), bound)]
    last, _ = replay(table.start()[0], steps)
    assert last.actors == ()
    assert last.outcome is not None
    assert all(last.legal_actions(seat) == () for seat in range(table.seats))
    check_places(last.outcome.places, table)
    assert len(last.outcome.points) == table.seats
    assert last.outcome.reason.islower()


def check_places(places: tuple[int, ...], table: Table) -> None:
    """Check that a place is 1 + the number of seats that did better."""
    assert len(places) == table.seats
    assert all(place == 1 + sum(other < place for other in places) for place in places)
    if table.game.outcome_type(table.options) == "single_loser":
        assert len(set(places)) <= 2


@every_game
@any_data
def test_the_house_plays_a_legal_action(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    state, _ = some_position(data, table)
    for seat in state.actors:
        assert table.game.house_action(state, seat) in state.legal_actions(seat)


# Traces


def told(events: Iterable[Event], seat: Seat) -> list[dict[str, object]]:
    return [event.message() for event in events if event.seen_by is None or seat in event.seen_by]


@every_game
@any_data
def test_the_same_deal_and_steps_give_the_same_trace(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    steps = random_steps(table, 400)
    first, again = (replay(table.start()[0], steps) for _ in range(2))
    assert first == again
    assert table.start() == table.start()
    assert first[1] == tuple(event for _, _, events in walk(table, table.random_policy(), 400) for event in events)


@every_game
@any_data
def test_what_is_told_goes_on_the_wire(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    state, steps = some_position(data, table)
    start, dealing = table.start()
    for event in (*dealing, *replay(start, steps)[1]):
        assert "kind" not in event.data
        assert set(event.seen_by or ()) <= set(range(table.seats))
        check_plain(event.message())
    for seat in (None, *range(table.seats)):
        check_plain(state.observation(seat))


def check_plain(value: object) -> None:
    """Check that a value is a tree of str-keyed maps, sequences, str, int, bool and None."""
    match value:
        case Mapping():
            assert all(type(key) is str for key in value)
            for inner in value.values():
                check_plain(inner)
        case list() | tuple():
            for inner in value:
                check_plain(inner)
        case _:
            assert value is None or type(value) in (str, int, bool)


# Secrets


def unmentioned(deck: Sequence[str], view: object, events: Iterable[Event], seat: Seat) -> list[int]:
    """Return the positions of cards that no message to the seat names; right where all cards are different."""
    named = set(re.findall(r"[2-9TJQKA][cdhs]", str(view)))
    return [place for place, card in enumerate(deck) if card not in named]


def avalanche_unseen(deck: Sequence[str], view: object, events: Iterable[Event], seat: Seat) -> list[int]:
    """Return the positions of cards in the stock or in other hands; of equal cards the first dealt is laid first."""
    held: dict[Seat, list[int]] = {}
    top = 0
    for event in events:
        told_all: Mapping[str, Any] = event.data
        match event.kind:
            case "deal" | "draw":
                cards = told_all["hand" if event.kind == "deal" else "cards"]
                block = range(top, top + len(cards))
                assert Counter(cards) == Counter(deck[place] for place in block)
                held.setdefault(told_all["seat"], []).extend(block)
                top += len(cards)
            case "play":
                hand = held[told_all["seat"]]
                for _ in range(told_all["count"]):
                    hand.remove(next(place for place in hand if deck[place] == told_all["rank"]))
    return [*range(top, len(deck)), *(place for other, hand in held.items() if other != seat for place in hand)]


UNSEEN: dict[str, Callable[[Sequence[str], object, Iterable[Event], Seat], list[int]]] = {
    "avalanche": avalanche_unseen,
}
"""Where cards that a seat cannot know are in the deck as dealt; `unmentioned` for the other games."""


def view_of(table: Table, deck: Sequence[str], steps: Sequence[Step], seat: Seat) -> list[object]:
    """Return all a seat is told on the way: events, observations, legal actions and what the house would play."""
    seed = derive(table.deck_key, "deal")
    state, events = table.game.initial_state(table.options, table.seats, deck, seed)
    view: list[object] = []
    for step in (*steps, None):
        house = table.game.house_action(state, seat) if seat in state.actors else None
        view.append((told(events, seat), state.observation(seat), state.legal_actions(seat), house))
        if step is not None:
            state, events = state.apply(*step)
    return view


def messages_to(table: Table, deck: Sequence[str], steps: Sequence[Step], seat: Seat) -> bytes:
    """Return every byte that is sent to a seat on the way; it is asked wherever it may act."""
    talk = Conversation(TalkState.READY)
    seed = derive(table.deck_key, "deal")
    state, events = table.game.initial_state(table.options, table.seats, deck, seed)
    sent = [talk.deal(table.game.name, table.game.version, table.options, table.seats, seat, 7)]
    for step in (*steps, None):
        sent += [talk.tell(encode_event(one)) for one in events if one.seen_by is None or seat in one.seen_by]
        if seat in state.actors:
            sent.append(talk.ask(encode_observation(state.observation(seat)), state.legal_actions(seat), 1000, 20_000))
            talk.state = TalkState.PLAYING
        if step is not None:
            state, events = state.apply(*step)
    return b"".join(sent)


@every_game
@any_data
def test_what_a_seat_is_told_does_not_depend_on_cards_it_cannot_know(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    _, steps = some_position(data, table)
    seat = data.draw(st.integers(0, table.seats - 1), label="seat")
    deck = list(deck_order(table.game.deck(table.options), table.deck_key))
    view = view_of(table, deck, steps, seat)
    start, dealing = table.start()
    events = (*dealing, *replay(start, steps)[1])
    hidden = UNSEEN.get(name, unmentioned)(deck, view, events, seat)
    shuffled = Stream(table.play_key, "hidden").shuffled(hidden)
    other = list(deck)
    for place, source in zip(hidden, shuffled, strict=True):
        other[place] = deck[source]
    assert view_of(table, other, steps, seat) == view
    assert messages_to(table, other, steps, seat) == messages_to(table, deck, steps, seat)


@every_game
@any_data
def test_an_answer_stays_hidden_while_others_are_still_asked(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    state, _ = some_position(data, table)
    if len(state.actors) < 2:
        return
    seat = data.draw(st.sampled_from(state.actors), label="seat")
    views = []
    for action in state.legal_actions(seat):
        following, events = state.apply(seat, action)
        assert following.actors == tuple(other for other in state.actors if other != seat)
        others = [other for other in range(table.seats) if other != seat]
        views.append([(told(events, o), following.observation(o), following.legal_actions(o)) for o in others])
    assert all(view == views[0] for view in views)
