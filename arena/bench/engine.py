"""Random play-outs of the games beside those of other libraries, in turn in one run.

Each library is driven from Python through its own documented loop: ask for the legal actions, choose one at random,
apply it. They do not do the same work: RLCard builds the next player's state with every step, OpenSpiel's rules are C++
behind a binding, PokerKit checks and logs every operation. So the ratios tell of orders of size, not of quality.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from random import Random
from typing import Any

import msgspec

from arena.errors import ConfigError
from arena.games import GAMES
from arena.rules import complete_options, deal

BASE = "rlcard uno"
"""Every ratio is to this."""
_SECONDS = 0.4
_STEPS_BETWEEN_LOOKS = 200

Playout = Iterator[None]
"""Plays deals for ever, yielding after each step."""


class EngineSpeed(msgspec.Struct, frozen=True):
    """Random steps a second.

    Attributes:
        steps_per_s: the median over the rounds.
        ratio: the median over the rounds of the ratio to `BASE` in the same round.
    """

    name: str
    steps_per_s: float
    ratio: float


def own(name: str, seats: int) -> Playout:
    """Play a game of ours."""
    game = GAMES[name]
    options = complete_options(game, seats, {})
    choose = Random(1).choice
    number = 0
    while True:
        state, _ = deal(game, options, seats, number.to_bytes(32, "big"))
        number += 1
        while actors := state.actors:
            seat = actors[0]
            state, _ = state.apply(seat, choose(state.legal_actions(seat)))
            yield


def _library(name: str) -> Any:
    """Import a library that only the bench needs.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what others do at import is not ours to mend
            return import_module(name)
    except ImportError as error:
        raise ConfigError(f"{name} is missing, which this bench compares with: pip install --group bench") from error


def rlcard_uno() -> Playout:
    """Play uno with RLCard, as its environments are used: two players are all it offers there."""
    environment = _library("rlcard").make("uno", config={"seed": 1})
    choose = Random(1).choice
    while True:
        state, _ = environment.reset()
        while not environment.is_over():
            state, _ = environment.step(choose(list(state["legal_actions"])))
            yield


def open_spiel(name: str) -> Playout:
    """Play a game of OpenSpiel; chance nodes are dealt, but not counted as steps."""
    game = _library("pyspiel").load_game(name)
    random = Random(1)
    while True:
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                actions, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(random.choices(actions, chances)[0])
            else:
                state.apply_action(random.choice(state.legal_actions()))
                yield


def pokerkit() -> Playout:
    """Play heads-up no-limit hold'em with PokerKit, everything automatic but the players' actions."""
    library = _library("pokerkit")
    random = Random(1)
    while True:
        state = library.NoLimitTexasHoldem.create_state(tuple(library.Automation), True, 0, (1, 2), 2, 200, 2)
        while state.status:
            luck = random.random()
            if luck < 0.2 and state.can_fold():
                state.fold()
            elif luck < 0.4 and state.can_complete_bet_or_raise_to():
                state.complete_bet_or_raise_to()
            else:
                state.check_or_call()
            yield


def playouts() -> dict[str, Callable[[], Playout]]:
    """Return everything that is measured, by name."""
    ours = {
        f"{name} {seats}": lambda name=name, seats=seats: own(name, seats) for name in sorted(GAMES) for seats in (2, 4)
    }
    others: dict[str, Callable[[], Playout]] = {
        BASE: rlcard_uno,
        "open_spiel hearts": lambda: open_spiel("hearts"),
        "open_spiel crazy_eights": lambda: open_spiel("crazy_eights"),
        "pokerkit hold'em": pokerkit,
    }
    return {**ours, **others}


def measure(rounds: int) -> list[EngineSpeed]:
    """Measure everything in turn, `rounds` times.

    Raises:
        ConfigError: a library is not installed.
    """
    running = {name: make() for name, make in playouts().items()}
    speeds: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, playout in running.items():
            speeds[name].append(_speed(playout))
    return [
        EngineSpeed(
            name,
            statistics.median(found),
            statistics.median(one / base for one, base in zip(found, speeds[BASE], strict=True)),
        )
        for name, found in speeds.items()
    ]


def _speed(playout: Playout) -> float:
    began = time.perf_counter()
    steps = 0
    while (spent := time.perf_counter() - began) < _SECONDS:
        for _ in range(_STEPS_BETWEEN_LOOKS):
            next(playout)
        steps += _STEPS_BETWEEN_LOOKS
    return steps / spent
