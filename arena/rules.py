"""The contract of a game: positions that know nothing of bots, clocks or files.

A game is rules; a state is a position. States are immutable: `apply` returns a new one. What a seat may know is told in
two ways that agree: `observation` (what it sees now) and the events it has seen (its information state).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from arena.cards import deck_order
from arena.errors import ConfigError
from arena.luck import Stream, derive

Seat: TypeAlias = int
"""A place at the table, 0-based, clockwise."""
Action: TypeAlias = str
Value: TypeAlias = bool | int | str
"""The value of a rule option."""
Options: TypeAlias = Mapping[str, Value]
"""Every option of a game with the value used, in alphabetical order."""
Data: TypeAlias = Mapping[str, object]
"""A tree of str-keyed maps, sequences, str, int, bool and None, as it goes on the wire."""
OutcomeType: TypeAlias = Literal["ranking", "single_loser"]


class Event(msgspec.Struct, frozen=True):
    """Something that happened, told to the seats that may know it.

    Attributes:
        kind: what happened, a lower-case word.
        data: details; on the wire they stand beside `kind` in one map, so no key may be `kind`.
        seen_by: the seats that see it; None means every seat.
    """

    kind: str
    data: Mapping[str, object]
    seen_by: tuple[Seat, ...] | None = None

    def message(self) -> dict[str, object]:
        """Return the event as it goes on the wire."""
        return {"kind": self.kind, **self.data}


class Outcome(msgspec.Struct, frozen=True):
    """How a deal ended.

    Attributes:
        places: for each seat 1 + the number of seats that did better; 1 is best, ties are equal.
        points: for each seat the game's own count (cards, smokestacks); higher is better where the game counts.
        reason: why it ended, a lower-case word or two.
    """

    places: tuple[int, ...]
    points: tuple[int, ...]
    reason: str


class State(Protocol):
    """An immutable position."""

    @property
    def actors(self) -> tuple[Seat, ...]:
        """The seats that may act now, ascending; () exactly when `outcome` is set."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """How the deal ended, or None while it goes on."""
        ...

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        """Return the legal actions in ASCII order, unique; () for a seat that is not to act."""
        ...

    def observation(self, seat: Seat | None) -> Data:
        """Return all that `seat` may know now, enough to play without memory; None sees everything."""
        ...

    def apply(self, seat: Seat, action: Action) -> tuple[State, tuple[Event, ...]]:
        """Return the next position and what happened.

        Raises:
            IllegalAction: the action is not in `legal_actions(seat)`; this state is unchanged.
        """
        ...


class Option(msgspec.Struct, frozen=True):
    """A rule option: a closed list of values, or a range of integers, or both.

    Attributes:
        values: the allowed words, booleans or single integers; the first is the default.
        low: with `high`, the range of integers that are allowed too (both ends included).
        default: the default for a number of seats, where it is not `values[0]`.
    """

    values: tuple[Value, ...] = ()
    low: int = 0
    high: int = -1
    default: Callable[[int], Value] | None = None

    def default_for(self, seats: int) -> Value:
        """Return the value used when none is given."""
        if self.default is not None:
            return self.default(seats)
        return self.values[0]

    def allows(self, value: object) -> bool:
        """Tell whether the value may be used; True and 1 are different values."""
        if any(type(value) is type(v) and value == v for v in self.values):
            return True
        return type(value) is int and self.low <= value <= self.high

    def parse(self, text: str) -> Value:
        """Return the allowed value that is written so; the text itself if none is, which `allows` then refuses."""
        for value in self.values:
            if show_value(value) == text:
                return value
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text

    def describe(self) -> str:
        """Return the allowed values in words, for messages and help."""
        words = [show_value(v) for v in self.values]
        if self.high >= self.low:
            words.append(f"{self.low} ... {self.high}")
        return " | ".join(words)


class Game(Protocol):
    """Immutable rules."""

    @property
    def name(self) -> str:
        """The key in `GAMES`."""
        ...

    @property
    def version(self) -> int:
        """Raised by every change of a rule."""
        ...

    @property
    def seats(self) -> range:
        """The numbers of seats it can be played with."""
        ...

    @property
    def schema(self) -> Mapping[str, Option]:
        """The rule options by name."""
        ...

    def deck(self, options: Options) -> tuple[str, ...]:
        """Return the sorted deck that is shuffled for a deal."""
        ...

    def initial_state(
        self, options: Options, seats: int, deck: Sequence[str], seed: bytes
    ) -> tuple[State, tuple[Event, ...]]:
        """Deal a deck from the top and return the first position and the events of dealing.

        Args:
            options: complete options, from `complete_options`.
            seats: a number in `self.seats`.
            deck: the cards of `self.deck(options)` in the order to deal, top first.
            seed: 32 bytes; the key of the streams that a rule draws from during the deal.
        """
        ...

    def outcome_type(self, options: Options) -> OutcomeType:
        """Tell how places carry information: a full ranking, or one loser and no order among the others."""
        ...

    def max_decisions(self, options: Options, seats: int) -> int:
        """Return a bound on the number of actions of a deal."""
        ...

    def house_action(self, state: State, seat: Seat) -> Action:
        """Return the action played for a seat that forfeited; it depends on that seat's own view only."""
        ...


def show_value(value: Value) -> str:
    """Return an option's value as it is written in rule-set ids and on command lines."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def complete_options(game: Game, seats: int, given: Options) -> dict[str, Value]:
    """Check given options and fill in the defaults.

    Returns:
        Every option of the game, in alphabetical order.

    Raises:
        ConfigError: names each unknown option or impossible value and what is allowed.
    """
    problems = []
    if seats not in game.seats:
        problems.append(f"{game.name} is played by {game.seats[0]} to {game.seats[-1]} seats, not {seats}")
    known = ", ".join(sorted(game.schema))
    problems += [
        f"{game.name} has no option {name!r}; its options are {known}"
        for name in sorted(given.keys() - game.schema.keys())
    ]
    options = {name: given.get(name, game.schema[name].default_for(seats)) for name in sorted(game.schema)}
    for name, value in options.items():
        if not game.schema[name].allows(value):
            allowed = game.schema[name].describe()
            problems.append(f"{game.name} option {name} cannot be {value!r}; allowed: {allowed}")
    if problems:
        raise ConfigError("; ".join(problems))
    return options


def rule_set_id(game: Game, options: Options) -> str:
    """Return e.g. `durak/1{chain=false,deck=36}`: the game, its version and every option, in alphabetical order."""
    inside = ",".join(f"{name}={show_value(options[name])}" for name in sorted(options))
    return f"{game.name}/{game.version}{{{inside}}}"


def parse_rule_set_id(text: str) -> tuple[str, int, dict[str, str]]:
    """Return the game's name, its version and the options as written, of a text made by `rule_set_id`.

    Raises:
        ConfigError: it is none.
    """
    parts = re.fullmatch(r"([^/]*)/([0-9]{1,9})\{((?:[^=,{}]+=[^=,{}]+,?)*)\}", text)
    if parts is None:
        raise ConfigError(f"{text!r} is no rule set")
    return parts[1], int(parts[2]), dict(pair.split("=", 1) for pair in parts[3].split(",") if pair)


def deal(game: Game, options: Options, seats: int, deck_key: bytes) -> tuple[State, tuple[Event, ...]]:
    """Shuffle and deal the deck that a 32-byte deck key stands for."""
    order = deck_order(game.deck(options), deck_key)
    return game.initial_state(options, seats, order, derive(deck_key, "deal"))


def bot_seed(deck_key: bytes, seat: Seat) -> int:
    """Return the seed, below 2**53, for the own randomness of whichever bot sits in `seat` on this deck."""
    return Stream(deck_key, "bot", seat).below(1 << 53)


def replay(state: State, steps: Iterable[tuple[Seat, Action]]) -> tuple[State, tuple[Event, ...]]:
    """Apply a flat list of steps and return the last position and all events on the way.

    Raises:
        IllegalAction: a step is not legal where it stands.
    """
    events: list[Event] = []
    for seat, action in steps:
        state, more = state.apply(seat, action)
        events.extend(more)
    return state, tuple(events)


def places_by_points(points: Sequence[int]) -> tuple[int, ...]:
    """Return places for a game in which more points are better: 1 + the number of seats with more."""
    return tuple(1 + sum(other > own for other in points) for own in points)
