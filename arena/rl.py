"""The games as PettingZoo environments, for learning: `env("durak", seats=3)`. Needs the optional extra `arena[rl]`.

Agents are seats, `player_0` and clockwise. An action is the index of its words in `ACTIONS`. An observation is
`State.observation` as numbers, field by field, seats counted from the own one. docs/rl.md has the tables.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from arena.cards import JOKER, RANKS, SUITS, sorted_deck
from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES, PRESETS
from arena.luck import derive
from arena.rules import Action, Options, Seat, State, Value, complete_options, deal

try:
    from gymnasium import spaces
    from pettingzoo import AECEnv
except ModuleNotFoundError as error:
    raise ConfigError(f"arena.rl needs {error.name}: install the extra, pip install -e '.[rl]'") from error

Agent: TypeAlias = str
Observed: TypeAlias = dict[str, Any]
"""Two vectors: `observation`, float32 in [0, 1], and `action_mask`, int8, 1 where an action is legal."""
Seen: TypeAlias = Mapping[str, Any]
"""`State.observation(seat)`; protocol.md tells what each key holds."""

CARD = {card: place for place, card in enumerate(sorted_deck())}
RANK = {rank: place for place, rank in enumerate(RANKS + JOKER)}
PHASES = ("collect", "attack", "defend", "throw")


class Field(NamedTuple):
    """A part of the observation vector.

    Attributes:
        tell: with a divisor the numbers of the field, from its first place on, else the places in it that are 1.
        divisor: the largest value a number can have under the rules that are played; 0 for a field of ones and zeros.
    """

    name: str
    size: int
    tell: Callable[[Seen], Iterable[int]]
    divisor: int = 0


def _plays() -> Iterator[Action]:
    return (f"play:{rank}x{count}" for rank in RANK for count in range(1, 7 if rank == JOKER else 9))


def _one_card_actions() -> Iterator[Action]:
    return (f"{verb}:{card}" for verb in ("attack", "capture", "throw", "transfer") for card in CARD)


def _beats() -> Iterator[Action]:
    """Yield each pair that some trump allows: a higher card of the suit, or one of another suit."""
    for attack, own in permutations(CARD, 2):
        if attack[1] != own[1] or RANK[attack[0]] < RANK[own[0]]:
            yield f"beat:{attack}:{own}"


def _swaps() -> Iterator[Action]:
    return (f"swap:{own}:{centre}" for own, centre in permutations(CARD, 2))


ACTIONS: Mapping[str, tuple[Action, ...]] = {
    "avalanche": tuple(sorted([*_plays(), "snow"])),
    "durak": tuple(sorted([*_one_card_actions(), *_beats(), "pass", "take"])),
    "smokestack": tuple(sorted([*_swaps(), "double", "pass", "sweep", "wait"])),
}
"""Every action there is in a game, in ASCII order, whatever the options and the number of seats."""


def env(game: str, seats: int = 2, *, render_mode: str | None = None, **options: Value) -> DealEnv:
    """Return an environment of a game or preset, with its first deal dealt.

    Args:
        render_mode: `ansi` to have `render` return text.
        options: rule options, as in docs/rules.md; those left out have their defaults.

    Raises:
        ConfigError: names what is unknown or impossible and what is allowed.
    """
    return DealEnv(game, seats, options, render_mode)


class DealEnv(AECEnv[Agent, Observed, Any]):
    """An AEC environment whose episode is one deal.

    Seats that may act at the same time (a window of Smokestack) are stepped one after the other, in ascending order;
    their answers show in no observation before the last one has answered.

    Attributes:
        actions: what an action's index stands for.
        layout: where in the observation vector each field is.
        position: the position of the deal; unlike an observation it knows everything.
    """

    def __init__(self, game: str, seats: int, options: Options, render_mode: str | None) -> None:
        if game not in {**GAMES, **PRESETS}:
            raise ConfigError(f"there is no game {game!r}; known are {', '.join([*GAMES, *PRESETS])}")
        name, changed = PRESETS.get(game, (game, {}))
        self.actions = ACTIONS[name]
        self._game = GAMES[name]
        self._options = complete_options(self._game, seats, {**changed, **options})
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode cannot be {render_mode!r}; allowed: None | 'ansi'")
        self.render_mode = render_mode
        self.metadata = {
            "name": f"arena_{name}_v{self._game.version}",
            "render_modes": ["ansi"],
            "is_parallelizable": False,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(seats)]
        self._index = {action: index for index, action in enumerate(self.actions)}
        self._seat_of = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._fields = _FIELDS[name](seats, self._options)
        ends = np.cumsum([field.size for field in self._fields]).tolist()
        self.layout = {field.name: slice(end - field.size, end) for field, end in zip(self._fields, ends, strict=True)}
        observed: dict[str, spaces.Space[Any]] = {
            "observation": spaces.Box(0, 1, (ends[-1],), np.float32),
            "action_mask": spaces.Box(0, 1, (len(self.actions),), np.int8),
        }
        self.observation_spaces = {agent: spaces.Dict(observed) for agent in self.possible_agents}
        self.action_spaces = {agent: spaces.Discrete(len(self.actions)) for agent in self.possible_agents}
        self._key, self._decks = secrets.token_bytes(32), 0
        self.reset()

    def observation_space(self, agent: Agent) -> spaces.Space[Observed]:
        """Return the space of what `observe` returns, the same for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: Agent) -> spaces.Space[Any]:
        """Return the space of indices into `actions`."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Mapping[str, object] | None = None) -> None:
        """Deal the next deck; those that are over before anybody could act are skipped.

        Args:
            seed: starts a series of decks, which it determines; without, the series goes on, and one that no seed
                started is random.
            options: not used; the rules are those that the environment was made with.
        """
        if seed is not None:
            self._key, self._decks = derive(str(seed).encode(), "rl"), 0
        agents = self.possible_agents
        self.position = self._deal()
        while not self.position.actors:
            self.position = self._deal()
        self._last_step = ""
        self.agents = list(agents)
        self.agent_selection = agents[self.position.actors[0]]
        self.rewards = dict.fromkeys(agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(agents, 0.0)
        self.terminations = dict.fromkeys(agents, False)
        self.truncations = dict.fromkeys(agents, False)
        self.infos = self._tell_legal()

    def _deal(self) -> State:
        deck_key = derive(self._key, "rl", self._game.name, len(self.possible_agents), self._decks)
        self._decks += 1
        return deal(self._game, self._options, len(self.possible_agents), deck_key)[0]

    def _tell_legal(self) -> dict[Agent, dict[str, Any]]:
        return {agent: {"legal": self.position.legal_actions(seat)} for agent, seat in self._seat_of.items()}

    def observe(self, agent: Agent) -> Observed:
        """Return what the agent may know; its mask is all zeros while it is not to act."""
        seat = self._seat_of[agent]
        seen = self.position.observation(seat)
        mask = np.zeros(len(self.actions), np.int8)
        mask[[self._index[action] for action in self.position.legal_actions(seat)]] = 1
        return {"observation": encode(self._fields, seen), "action_mask": mask}

    def step(self, action: int | np.integer[Any] | None) -> None:
        """Play an action for the selected agent; an agent whose deal is over steps with None.

        Raises:
            IllegalAction: the mask has a 0 there; nothing has changed.
        """
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if action is None or not self.action_spaces[agent].contains(action):
            raise IllegalAction(f"{agent} must play an index of 0 ... {len(self.actions) - 1}, not {action!r}")
        words = self.actions[int(action)]
        self.position, _ = self.position.apply(self._seat_of[agent], words)
        self._last_step = f"{agent} {words}"
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        outcome = self.position.outcome
        if outcome is None:
            self.agent_selection = self.possible_agents[self.position.actors[0]]
        else:
            self.rewards = dict(zip(self.agents, rewards_of(outcome.places), strict=True))
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[0]
        self.infos = self._tell_legal()
        self._accumulate_rewards()

    def render(self) -> str | None:
        """Return the last step and all of the position, hidden cards too, in words; None without `render_mode`."""
        if self.render_mode is None:
            return None
        told = self.position.observation(None)
        lines = [self._last_step, *(f"{key:<12} {value}" for key, value in told.items() if key != "seat")]
        if self.position.outcome is not None:
            lines.append(f"{'places':<12} {self.position.outcome.places}")
        return "\n".join(lines).strip()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def rewards_of(places: Sequence[int]) -> list[float]:
    """Return by seat (seats placed worse - seats placed better) / (seats - 1): in [-1, 1], in sum 0."""
    others = len(places) - 1
    return [(sum(other > own for other in places) - sum(other < own for other in places)) / others for own in places]


def encode(fields: Sequence[Field], seen: Seen) -> npt.NDArray[np.float32]:
    """Return what a seat sees as a vector of the fields, one after the other."""
    values = array("f", bytes(4 * sum(field.size for field in fields)))
    start = 0
    for field in fields:
        if field.divisor:
            for place, number in enumerate(field.tell(seen), start):
                values[place] = number / field.divisor
        else:
            for place in field.tell(seen):
                values[start + place] = 1.0
        start += field.size
    return np.frombuffer(values, np.float32)


def _from_own(seen: Seen, by_seat: Sequence[Any]) -> Sequence[Any]:
    """Return what is kept by seat, the own seat's first and then clockwise."""
    own: Seat = seen["seat"]
    return [*by_seat[own:], *by_seat[:own]]


def _own(seats: int) -> Field:
    return Field("seat", seats, lambda seen: (seen["seat"],))


def _seats(name: str, seats: int, listed: Callable[[Seen], Iterable[Seat | None]]) -> Field:
    def tell(seen: Seen) -> list[int]:
        return [(seat - seen["seat"]) % seats for seat in listed(seen) if seat is not None]

    return Field(name, seats, tell)


def _seat(name: str, seats: int) -> Field:
    return _seats(name, seats, lambda seen: (seen[name],))


def _flag(name: str) -> Field:
    return Field(name, 1, lambda seen: (0,) if seen[name] else ())


def _cards(name: str, listed: Callable[[Seen], Iterable[str]]) -> Field:
    return Field(name, len(CARD), lambda seen: [CARD[card] for card in listed(seen)])


def _card_sets(name: str, count: int, sets: Callable[[Seen], Iterable[Iterable[str]]]) -> Field:
    def tell(seen: Seen) -> list[int]:
        return [len(CARD) * i + CARD[card] for i, cards in enumerate(sets(seen)) for card in cards]

    return Field(name, count * len(CARD), tell)


def _ranks(name: str, listed: Callable[[Seen], Iterable[tuple[str, int]]]) -> Field:
    def tell(seen: Seen) -> list[int]:
        counts = [0] * len(RANK)
        for rank, count in listed(seen):
            counts[RANK[rank]] += count
        return counts

    return Field(name, len(RANK), tell, 8)


def _number(name: str, divisor: int) -> Field:
    return Field(name, 1, lambda seen: (seen[name],), divisor)


def _numbers(name: str, seats: int, divisor: int) -> Field:
    return Field(name, seats, lambda seen: _from_own(seen, seen[name]), divisor)


def _avalanche(seats: int, options: Options) -> tuple[Field, ...]:
    cards = len(GAMES["avalanche"].deck(options))
    return (
        _own(seats),
        _seat("turn", seats),
        _seat("leader", seats),
        _seats("last", seats, lambda seen: [play["seat"] for play in seen["table"][-1:]]),
        _ranks("last_play", lambda seen: [(play["rank"], play["count"]) for play in seen["table"][-1:]]),
        _ranks("table", lambda seen: [(play["rank"], play["count"]) for play in seen["table"]]),
        _ranks("laid", lambda seen: seen["laid"].items()),
        _ranks("hand", lambda seen: [(rank, 1) for rank in seen["hand"]]),
        _numbers("counts", seats, cards),
        _numbers("piles", seats, cards),
        _number("dead", cards),
        _number("stock", cards),
    )


def _durak(seats: int, options: Options) -> tuple[Field, ...]:
    cards = len(GAMES["durak"].deck(options))
    return (
        _own(seats),
        Field("phase", 4, lambda seen: [place for place, phase in enumerate(PHASES) if phase == seen["phase"]]),
        _seat("turn", seats),
        _seat("leader", seats),
        _seat("defender", seats),
        _seats("passed", seats, lambda seen: seen["passed"]),
        _seats("out", seats, lambda seen: [seat for seat, bout in enumerate(seen["out"]) if bout is not None]),
        _flag("taking"),
        Field("trump", 4, lambda seen: () if seen["trump"] is None else (SUITS.index(seen["trump"]),)),
        _card_sets("hands", seats, lambda seen: _from_own(seen, seen["hands"])),
        _cards("open", lambda seen: seen["open"]),
        _cards("drawn", lambda seen: () if seen["drawn"] is None else (seen["drawn"],)),
        _cards("attacks", lambda seen: [attack for attack, beat in seen["table"] if beat is None]),
        _cards("beaten", lambda seen: [attack for attack, beat in seen["table"] if beat is not None]),
        _cards("beats", lambda seen: [beat for _, beat in seen["table"] if beat is not None]),
        _cards("discard", lambda seen: seen["discard"]),
        _number("deck", cards),
        _number("limit", cards),
        _number("bout", cards**2 + 2 * cards),  # D14
        _number("takes_in_row", 2 * cards),  # D14
        _number("redeals", 20),  # D5
    )


def _smokestack(seats: int, options: Options) -> tuple[Field, ...]:
    def stacks(seen: Seen) -> list[Sequence[str]]:
        return [hand[i] if i < len(hand) else () for hand in _from_own(seen, seen["stacks"]) for i in (0, 1)]

    return (
        _own(seats),
        _seat("turn", seats),
        _flag("window"),
        _flag("swept"),
        _card_sets("stacks", 2 * seats, stacks),
        _cards("centre", lambda seen: seen["centre"]),
        _cards("banked_cards", lambda seen: [card for own in seen["banked"] for stack in own for card in stack]),
        Field("banked_stacks", seats, lambda seen: map(len, _from_own(seen, seen["banked"])), 12 - seats),  # S7
        _numbers("sweeps", seats, max(1, int(options["sweeps"]))),
        _number("stock", 48 - 4 * seats),
        _number("passes", seats),
        _number("stalled", 10),  # S8
        _number("refreshes", 100),  # S8: a refresh takes a pass of each seat
        _number("turns", 100 * seats),  # S8
    )


_FIELDS: Mapping[str, Callable[[int, Options], tuple[Field, ...]]] = {
    "avalanche": _avalanche,
    "durak": _durak,
    "smokestack": _smokestack,
}
