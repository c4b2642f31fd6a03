"""Durak played side by side: arena's position and the oracle's table, compared after every action of random deals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random

import msgspec
import pytest

from arena.games import GAMES
from arena.rules import Event, Option, State, Value, complete_options
from tests.oracle.durak import Table

GAME = GAMES["durak"]
Step = tuple[int, str]
Policy = Callable[[Random, list[str]], str]


def text(value: object) -> bytes:
    """Return a value as JSON, so that a tuple equals a list but true is not 1."""
    return msgspec.json.encode(value, order="deterministic")


def compare(what: str, arena: object, oracle: object) -> None:
    """Raise if the two differ; of maps show only what differs."""
    if text(arena) == text(oracle):
        return
    if isinstance(arena, dict) and isinstance(oracle, dict):
        keys = [key for key in {**arena, **oracle} if text(arena.get(key)) != text(oracle.get(key))]
        arena, oracle = ({key: side.get(key, "missing") for key in keys} for side in (arena, oracle))
    raise AssertionError(f"{what}\n  arena:  {arena}\n  oracle: {oracle}")


def shown(events: Sequence[Event]) -> list[object]:
    return [{**event.message(), "seen_by": event.seen_by} for event in events]


def compare_positions(state: State, table: Table, seats: int) -> None:
    compare("actors", list(state.actors), table.actors())
    outcome = state.outcome
    ended = outcome and {"places": [*outcome.places], "points": [*outcome.points], "reason": outcome.reason}
    compare("outcome", ended, table.outcome)
    for seat in range(seats):
        compare(f"legal of {seat}", list(state.legal_actions(seat)), table.legal(seat))
    for seen_by in (*range(seats), None):
        compare(f"observation of {seen_by}", state.observation(seen_by), table.observation(seen_by))
    for seat in state.actors:
        compare(f"house of {seat}", GAME.house_action(state, seat), table.house(seat))


def draw_options(rng: Random, seats: int) -> dict[str, Value]:
    """Return a random option set: each option has its default or, half of the time, any value."""
    given = {name: draw_value(rng, option) for name, option in GAME.schema.items() if rng.random() < 0.5}
    return complete_options(GAME, seats, given)


def draw_value(rng: Random, option: Option) -> Value:
    values = list(option.values)
    if option.low <= option.high:
        values += [rng.randint(option.low, option.high), *(min(option.low + i, option.high) for i in range(7))]
    return rng.choice(values)


def draw_deck(rng: Random, deck: Sequence[str]) -> list[str]:
    """Return a shuffled deck, or one that rises or falls but for some exchanges: few captures leave lopsided hands."""
    cards = rng.sample(deck, len(deck))
    shape = rng.choice(["shuffled", "shuffled", "falling", "rising"])
    if shape != "shuffled":
        cards.sort(key=lambda card: "23456789TJQKA".index(card[0]), reverse=shape == "falling")
        for _ in range(rng.choice([0, 1, 2, 5, 10, 20])):
            i, j = rng.randrange(len(cards)), rng.randrange(len(cards))
            cards[i], cards[j] = cards[j], cards[i]
    return cards


def likes(word: str) -> Policy:
    """Return the policy that nearly always plays an action of this word if it can."""

    def choose(rng: Random, legal: list[str]) -> str:
        liked = [action for action in legal if action.startswith(word)]
        return rng.choice(liked if liked and rng.random() < 0.95 else legal)

    return choose


def trumps(rng: Random, legal: list[str]) -> str:
    """Beat with a card of another suit, so with a trump, if that can be; else beat."""
    beats = [action for action in legal if action.startswith("beat:")]
    return rng.choice([action for action in beats if action[-1] != action[6]] or beats or legal)


POLICIES: dict[str, Policy] = {
    "uniform": likes(""),
    "taker": likes("take"),
    "transferrer": likes("transfer:"),
    "thrower": likes("throw:"),
    "beater": likes("beat:"),
    "passer": likes("pass"),
    "trumps": trumps,
}


def play(number: int, tally: Counter[str]) -> None:
    """Play the random deal of this number on both sides.

    Raises:
        AssertionError: at the first difference, with all that is needed to see it again.
    """
    rng = Random(f"durak {number}")
    seats = rng.choice(GAME.seats)
    options = draw_options(rng, seats)
    deck = draw_deck(rng, GAME.deck(options))
    seed = rng.randbytes(32)
    choosers = [POLICIES[rng.choice([*POLICIES])] for _ in range(seats)]
    steps: list[Step] = []
    try:
        play_on_both(options, deck, seed, choosers, rng, steps, tally)
    except Exception as error:
        deal = {"options": options, "seats": seats, "deck": " ".join(deck), "seed": seed.hex(), "steps": steps}
        raise AssertionError(f"deal {number}: {error!r}\n{error}\n{json.dumps(deal)}") from error
    tally["deals"] += 1
    tally["steps"] += len(steps)
    tally["longest"] = max(tally["longest"], len(steps))


def play_on_both(options, deck, seed, choosers, rng, steps, tally) -> None:
    seats = len(choosers)
    state, events = GAME.initial_state(options, seats, deck, seed)
    table = Table(options, seats, list(deck), seed)
    compare("opening", shown(events), table.opening)
    compare_positions(state, table, seats)
    while state.actors:
        seat = state.actors[0]
        action = choosers[seat](rng, list(state.legal_actions(seat)))
        steps.append((seat, action))
        state, events = state.apply(seat, action)
        compare("events", shown(events), table.apply(seat, action))
        compare_positions(state, table, seats)
        tally[action.split(":")[0]] += 1
    tally["reason " + state.outcome.reason] += 1
