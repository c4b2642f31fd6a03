"""Positions that trip bots, found by playing a game out in ways that lead to its edges; always the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from arena.luck import Stream, derive
from arena.rules import Action, Data, Event, Game, Seat, State, complete_options, deal
from arena.wire import encode_event

Choose: TypeAlias = Callable[[Sequence[Action]], Action]

_KEY = b"arena check"
_DECKS = 4
_STEPS = 2000
"""A play-out is left after so many; some ways to play never get on."""


class Position(msgspec.Struct, frozen=True):
    """A decision that a seat could meet.

    Attributes:
        what: why it is asked.
        key: of the deck it came from.
        events: all that the seat has seen before it.
    """

    what: str
    key: bytes
    state: State
    events: tuple[Event, ...]
    legal: int


def positions(game: Game, seats: int, seat: Seat) -> list[Position]:
    """Return the decisions of a seat at the edges of a game with its default rules."""
    found = [spot for number in range(_DECKS) for spot in _walks(game, seats, seat, derive(_KEY, "deck", number))]
    picked = {
        "the first decision": min(found, key=lambda spot: len(spot.events)),
        "the longest list of legal actions": max(found, key=lambda spot: spot.legal),
        "the shortest list of legal actions": min(found, key=lambda spot: spot.legal),
        "the last decision": max(found, key=lambda spot: len(spot.events)),
    }
    bare = [spot for spot in found if _has_run_out(spot.state.observation(seat))]
    if bare:
        picked["a hand or the stock is empty"] = max(bare, key=lambda spot: len(spot.events))
    return [msgspec.structs.replace(spot, what=what) for what, spot in picked.items()]


def history_bytes(position: Position) -> int:
    """Return the size of all events of a position as they go on the wire."""
    return sum(len(encode_event(event)) for event in position.events)


def _walks(game: Game, seats: int, seat: Seat, key: bytes) -> Iterator[Position]:
    """Yield the decisions of a seat in one deck, played in several ways by it and by the others."""
    luck = Stream(key, "choose")
    # In every game the first and the last of the legal actions lead to its edges: hoarding, taking, waiting.
    ways: tuple[tuple[Choose, Choose], ...] = (
        (lambda legal: legal[luck.below(len(legal))], lambda legal: legal[luck.below(len(legal))]),
        (lambda legal: legal[-1], lambda legal: legal[0]),
        (lambda legal: legal[0], lambda legal: legal[-1]),
        (lambda legal: legal[-1], lambda legal: legal[-1]),
    )
    for own, others in ways:
        yield from _walk(game, seats, seat, key, (own, others))


def _walk(game: Game, seats: int, seat: Seat, key: bytes, way: tuple[Choose, Choose]) -> Iterator[Position]:
    state, events = deal(game, complete_options(game, seats, {}), seats, key)
    seen = _seen(events, seat)
    for _ in range(_STEPS):
        if not state.actors:
            return
        for actor in state.actors:
            legal = state.legal_actions(actor)
            if actor == seat:
                yield Position("", key, state, tuple(seen), len(legal))
            state, events = state.apply(actor, way[actor != seat](legal))
            seen += _seen(events, seat)


def _seen(events: Sequence[Event], seat: Seat) -> list[Event]:
    return [event for event in events if event.seen_by is None or seat in event.seen_by]


def _has_run_out(observation: Data) -> bool:
    hands, counts = observation.get("hands", ()), observation.get("counts", ())
    empty = isinstance(hands, (list, tuple)) and any(not hand for hand in hands)
    return empty or (isinstance(counts, (list, tuple)) and 0 in counts) or observation.get("stock") == 0
