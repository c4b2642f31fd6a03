"""Avalanche of `arena.games` against the oracle of docs/rules.md: random deals side by side, and small trees counted.

An error is noted with options, seats, deck and steps, which reproduce it.
"""

from __future__ import annotations

import pickle
import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import msgspec
import pytest

from arena.errors import IllegalAction
from arena.games import GAMES
from arena.luck import Stream
from arena.rules import Event, State, Value, complete_options
from tests.oracle.avalanche import RANKS, Table

GAME = GAMES["avalanche"]
SEED = bytes(32)
DECK = list(GAME.deck(complete_options(GAME, 2, {})))
ALL_ACTIONS = ["snow", *(f"play:{rank}x{count}" for rank in RANKS for count in range(10))]
NO_ACTIONS = ["", "pass", "play", "play:", "play:7", "play:7x", "play:7x01", "play:7x-1", "play:1x1", "Snow", "snow "]


# What both sides tell of a position.


def plain(value: Any) -> Any:
    """Return what a bot reads: tuples have become lists."""
    return msgpack.unpackb(msgpack.packb(value))


def view(
    seats: int, actors: object, legal: Callable[[int], object], seen: Callable[[int | None], Any]
) -> dict[str, Any]:
    """Return all that a position tells, by what it is; with the order of `laid`, which equality of maps ignores."""
    told: dict[str, Any] = {"actors": actors}
    for seat in range(seats):
        told[f"legal of {seat}"] = legal(seat)
        told[f"observation of {seat}"] = seen(seat)
    told["observation of all"] = seen(None)
    told["order of laid"] = list(told["observation of all"]["laid"])
    return told


def arena_view(state: State, seats: int) -> dict[str, Any]:
    told = view(seats, state.actors, state.legal_actions, state.observation)
    end = state.outcome
    told["outcome"] = end and {"places": end.places, "points": end.points, "reason": end.reason}
    return dict(plain(told))


def oracle_view(table: Table) -> dict[str, Any]:
    return {**view(table.seats, table.actors(), table.legal, table.observation), "outcome": table.outcome}


def arena_events(events: Sequence[Event]) -> Any:
    return plain([event.message() | {"seen_by": event.seen_by} for event in events])


class Pair:
    """The same deal in the arena and in the oracle; applying the steps of its story again reproduces it."""

    def __init__(self, options: Mapping[str, Value], seats: int, deck: Sequence[str]) -> None:
        self.seats = seats
        self.steps: list[str] = []
        self.story = {"options": dict(options), "seats": seats, "deck": " ".join(deck), "steps": self.steps}
        self.state, events = GAME.initial_state(options, seats, tuple(deck), SEED)
        self.table = Table(options, seats, deck, SEED)
        self.same("opening", arena_events(events), self.table.opening)
        self.compare()

    def same(self, what: str, arena: object, oracle: object) -> None:
        if arena != oracle:
            raise AssertionError(f"{what} differs\n arena {arena}\noracle {oracle}")

    def compare(self) -> None:
        arena, oracle = arena_view(self.state, self.seats), oracle_view(self.table)
        for what in oracle:
            self.same(what, arena[what], oracle[what])

    def apply(self, action: str) -> list[dict[str, Any]]:
        [seat] = self.table.actors()
        self.steps.append(f"{seat} {action}")
        self.state, events = self.state.apply(seat, action)
        expected = self.table.apply(seat, action)
        self.same("events", arena_events(events), expected)
        self.compare()
        return expected

    def refuse(self, seat: int, action: str) -> None:
        """Both refuse an action that is not legal; `compare` then sees that the arena's state has not changed."""
        with pytest.raises(IllegalAction):
            self.state.apply(seat, action)
        with pytest.raises(ValueError, match="cannot"):
            self.table.apply(seat, action)

    def last(self) -> int:
        """Return how many cards the last play of the avalanche on the table was, 0 if there is none."""
        return int(self.table.plays[-1]["count"]) if self.table.plays else 0


# Random deals.


def size(action: str) -> int:
    return 0 if action == "snow" else int(action[-1])


def plays(legal: list[str]) -> list[str]:
    return [action for action in legal if action != "snow"]


def snow_often(rng: random.Random, legal: list[str], last: int) -> str:
    return "snow" if "snow" in legal and rng.random() < 0.8 else rng.choice(legal)


def climb(rng: random.Random, legal: list[str], last: int) -> str:
    """Lay the smallest whole set that keeps the avalanche growing: so hands are emptied while stock remains."""
    sets = [action for action in plays(legal) if f"{action[:-1]}{size(action) + 1}" not in legal]
    return min(sets, key=lambda action: (size(action) < last, size(action), -RANKS.index(action[5])))


Policy = Callable[[random.Random, list[str], int], str]
"""Chooses from a legal list, knowing how many cards the last play of the avalanche was."""
POLICIES: list[Policy] = [
    lambda rng, legal, last: rng.choice(legal),
    lambda rng, legal, last: rng.choice(plays(legal)),
    lambda rng, legal, last: "snow" if "snow" in legal else rng.choice(legal),
    lambda rng, legal, last: min(plays(legal), key=lambda action: (size(action), RANKS.index(action[5]))),
    lambda rng, legal, last: max(plays(legal), key=lambda action: (size(action), rng.random())),
    lambda rng, legal, last: max(plays(legal), key=lambda action: (RANKS.index(action[5]), size(action))),
    snow_often,
    climb,
]


def ladder(rng: random.Random, seats: int) -> tuple[list[str], list[str]]:
    """Return a deck whose hands are two sets that grow over those of the seat before, and first actions: for A8."""
    small = rng.randint(2, 5)
    ranks = rng.sample(RANKS[:-1], 2 * seats)
    low, high = sorted(ranks[:seats], key=RANKS.index), sorted(ranks[seats:], key=RANKS.index)
    hands = [[low[seat]] * small + [high[seat]] * (10 - small) for seat in range(seats)]
    opening = ["snow"] * rng.randrange(2)
    if opening:  # seat 0 lays last, with a card too many
        hands = hands[-1:] + hands[:-1]
    top = [card for hand in hands for card in hand]
    rest = list((Counter(DECK) - Counter(top)).elements())
    return top + rng.sample(rest, len(rest)), opening


def some_deck(rng: random.Random) -> list[str]:
    """Return a deck shuffled wholly, or with ranks in blocks, or with a few cards exchanged, or in pieces of five."""
    kind = rng.randrange(6)
    if kind == 0:
        return sorted(DECK, key=rng.sample(RANKS, len(RANKS)).index)
    if kind == 1:
        deck = DECK[:: rng.choice((1, -1))]
        for _ in range(rng.randrange(12)):
            i, j = rng.randrange(len(deck)), rng.randrange(len(deck))
            deck[i], deck[j] = deck[j], deck[i]
        return deck
    if kind == 2:
        pieces = [DECK[i : i + 5] for i in range(0, len(DECK), 5)]
        return [card for piece in rng.sample(pieces, len(pieces)) for card in piece]
    return rng.sample(DECK, len(DECK))


def play_deal(rng: random.Random, happened: Counter[str]) -> None:
    """Play one deal to its end, comparing all the way, and count how often rare things happened."""
    seats = rng.choice(GAME.seats)
    options = complete_options(GAME, seats, {name: rng.choice(option.values) for name, option in GAME.schema.items()})
    policies = rng.choices(POLICIES, k=seats) if rng.random() < 0.7 else [rng.choice(POLICIES)] * seats
    deck, opening = some_deck(rng), list[str]()
    if rng.random() < 0.1:
        deck, opening = ladder(rng, seats)
        policies = [climb] * seats if rng.random() < 0.8 else policies
    pair = Pair(options, seats, deck)
    refusal = rng.randrange(100)
    try:
        while pair.table.outcome is None:
            [seat] = pair.table.actors()
            if len(pair.steps) == refusal:
                refuse_some(rng, pair)
            action = opening.pop() if opening else policies[seat](rng, pair.table.legal(seat), pair.last())
            happened.update(rare_things(pair.table, pair.apply(action)))
        refuse_some(rng, pair)
        assert len(pair.steps) <= GAME.max_decisions(options, seats)
    except BaseException as error:
        error.add_note(f"{pair.story}")
        raise


def refuse_some(rng: random.Random, pair: Pair) -> None:
    for action in (*rng.sample(ALL_ACTIONS, 4), *rng.sample(NO_ACTIONS, 2)):
        for seat in range(pair.seats):
            if action not in pair.table.legal(seat):
                pair.refuse(seat, action)
    pair.compare()


def rare_things(table: Table, events: list[dict[str, Any]]) -> list[str]:
    things = []
    kinds = [event["kind"] for event in events]
    result = events[0].get("result", "snow")
    if "settle" in kinds and result in ("start", "grow"):
        drawn = next((event["drawn"] for event in events if event["kind"] == "refill"), None)
        things.append(f"{'A9' if drawn is None else 'A8'} after a {result}, {table.open_pile}")
        if drawn is not None:
            things.append(f"A8 with {table.seats} seats")
            own = events[0]["seat"]
            things += ["A8 with cards left"] if len(table.hands[own]) != drawn[own] else []
    if "settle" in kinds and "refill" not in kinds and table.stock:
        things.append("nobody draws although there is stock")
    if table.stock and not all(table.hands):
        things.append("an empty hand although there is stock")
    return [*things, result]


RARE = {
    *("snow", "start", "grow", "stop", "drop"),
    *(f"A8 after a grow, {value}" for value in GAME.schema["open_pile"].values),
    *(f"A9 after a {result}, {value}" for result in ("start", "grow") for value in GAME.schema["open_pile"].values),
    *(f"A8 with {seats} seats" for seats in GAME.seats),
    *("A8 with cards left", "nobody draws although there is stock", "an empty hand although there is stock"),
}
"""What the deals must have reached to be worth something. With stock left all hands hold 10 or more cards when a seat
leads, so A8 never follows a start."""


def play_deals(seeds: range) -> None:
    happened: Counter[str] = Counter()
    for seed in seeds:
        play_deal(random.Random(seed), happened)
    assert happened.keys() == RARE


@pytest.mark.slow
def test_random_deals_are_played_alike() -> None:
    play_deals(range(1000))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 21000, 2000))
def test_many_random_deals_are_played_alike(first: int) -> None:
    play_deals(range(first, first + 2000))


# Trees, counted whole or to a depth by either side alone.

Node = TypeVar("Node", State, Table)


def arena_children(state: State) -> list[State]:
    return [state.apply(seat, action)[0] for seat in state.actors for action in state.legal_actions(seat)]


def oracle_children(table: Table) -> list[Table]:
    saved = pickle.dumps(table)
    actions = [(seat, action) for seat in table.actors() for action in table.legal(seat)]
    children: list[Table] = [pickle.loads(saved) for _ in actions]
    for child, (seat, action) in zip(children, actions, strict=True):
        child.apply(seat, action)
    return children


def census(
    root: Node, children: Callable[[Node], list[Node]], tell: Callable[[Node], dict[str, Any]], depth: int
) -> list[Counter[bytes]]:
    """Return by level, down to `depth`, the distinct positions and how many action sequences lead to each."""
    nodes = {msgspec.json.encode(tell(root), order="sorted"): root}
    paths = Counter(dict.fromkeys(nodes, 1))
    levels: list[Counter[bytes]] = []
    while nodes and len(levels) <= depth:
        levels.append(paths)
        below: dict[bytes, Node] = {}
        paths = Counter()
        for position, node in nodes.items():
            for child in children(node):
                told = msgspec.json.encode(tell(child), order="sorted")
                below[told] = child
                paths[told] += levels[-1][position]
        nodes = below
    return levels


def count_tree(pair: Pair, depth: int) -> tuple[int, int]:
    """Return how many distinct positions and action sequences, to the end or the depth, there are: on both sides."""
    levels = census(pair.state, arena_children, lambda state: arena_view(state, pair.seats), depth)
    same = levels == census(pair.table, oracle_children, oracle_view, depth)
    assert same, f"the trees differ below {pair.story}"
    *above, last = levels
    ended = sum(paths for level in above for told, paths in level.items() if msgspec.json.decode(told)["outcome"])
    return sum(map(len, levels)), ended + last.total()


WHOLE = 1000
OPEN_PILE = pytest.mark.parametrize("open_pile", ["nobody", "last_player"])
PAIRS = (2, "2 2 4 4 6 6 8 8 T T  3 3 5 5 7 7 9 9 J J  ", "2x2 3x2 4x2 5x2 6x2 7x2 8x2 9x2")
FOURS = (2, "2 2 2 4 4 4 6 6 6 6  3 3 3 5 5 5 7 7 7 7  ", "2x3 3x3 4x3 5x3")
THREE = (3, "2 2 4 4 4 4 7 7 7 7  2 2 4 4 4 4 7 7 7 7  3 3 5 5 5 5 8 8 8 8  ", "2x2 2x2 3x2 4x4 4x4 5x4 7x4")


def played_down(seats: int, open_pile: str, *, stock: int, cards: int) -> Pair:
    """Play a deal by a stream until at most so many cards are in the stock and in hands."""
    luck = Stream(SEED, "played down", seats)
    pair = Pair({"open_pile": open_pile}, seats, luck.shuffled(DECK))
    while len(pair.table.stock) > stock or sum(map(len, pair.table.hands)) > cards:
        legal = pair.table.legal(pair.table.actors()[0])
        pair.apply(legal[luck.below(len(legal))])
    return pair


@OPEN_PILE
@pytest.mark.parametrize(
    ("start", "stock", "positions", "sequences"),
    [
        (PAIRS, "Q", {"nobody": 12, "last_player": 12}, 5),
        (PAIRS, "K A 2 2 *", {"nobody": 29, "last_player": 29}, 13),
        (FOURS, "", {"nobody": 61, "last_player": 56}, 35),
        (FOURS, "8 2 *", {"nobody": 690, "last_player": 605}, 416),
        (FOURS, "8 2 8 *", {"nobody": 1099, "last_player": 980}, 673),
        (THREE, "", {"nobody": 65, "last_player": 60}, 35),
        (THREE, "K 3 J", {"nobody": 706, "last_player": 659}, 334),
        (THREE, "K 3 J 7", {"nobody": 1498, "last_player": 1402}, 817),
    ],
)
def test_a_small_deck_has_so_many_positions(
    start: tuple[int, str, str], stock: str, positions: dict[str, int], sequences: int, open_pile: str
) -> None:
    seats, hands, before = start
    pair = Pair({"open_pile": open_pile}, seats, (hands + stock).split())
    for play in before.split():
        pair.apply(f"play:{play}")
    assert count_tree(pair, WHOLE) == (positions[open_pile], sequences)


@OPEN_PILE
@pytest.mark.parametrize(
    ("seats", "cards", "positions", "sequences"),
    [
        (2, 10, {"nobody": 2202, "last_player": 2144}, 6840),
        (3, 10, {"nobody": 332, "last_player": 325}, 180),
        (4, 11, {"nobody": 690, "last_player": 687}, 288),
        (5, 12, {"nobody": 427, "last_player": 426}, 288),
        (6, 13, {"nobody": 1343, "last_player": 1335}, 1728),
    ],
)
def test_an_endgame_has_so_many_positions(
    seats: int, cards: int, positions: dict[str, int], sequences: int, open_pile: str
) -> None:
    pair = played_down(seats, open_pile, stock=0, cards=cards)
    assert count_tree(pair, WHOLE) == (positions[open_pile], sequences)


@pytest.mark.parametrize(
    ("seats", "stock", "depth", "counts"),
    [
        (2, 90, 3, (1159, 1124)),
        *((seats, 110 - 10 * seats, 2, (123, 111)) for seats in (3, 4, 5, 6)),  # 10 plays and snow for any 10 cards
        (2, 2, 3, (840, 880)),
        *((seats, 2, 2, counts) for seats, counts in enumerate([(111, 100), (134, 122), (123, 111), (111, 100)], 3)),
    ],
)
def test_a_position_has_so_many_continuations(seats: int, stock: int, depth: int, counts: tuple[int, int]) -> None:
    assert count_tree(played_down(seats, "nobody", stock=stock, cards=len(DECK)), depth) == counts


# The oracle against the text.

RULES = Path(__file__).parents[2] / "docs" / "rules.md"
BLOCKS = re.findall(r"^```toml vector\n(.*?)^```$", RULES.read_text(), re.MULTILINE | re.DOTALL)
EXAMPLES = [example for example in map(tomllib.loads, BLOCKS) if example["game"] == "avalanche"]


@pytest.mark.parametrize("example", [pytest.param(example, id=example["id"]) for example in EXAMPLES])
def test_the_oracle_plays_the_examples_of_the_rules(example: Mapping[str, Any]) -> None:
    top = example["deck"].split()
    rest = sorted((Counter(DECK) - Counter(top)).elements(), key=RANKS.index)
    table = Table({"open_pile": "nobody"}, example["seats"], [*top, *rest], SEED)
    events = table.opening
    for step in example.get("steps", []):
        seat, action = step.split()
        events = table.apply(int(seat), action)
    assert table.actors() == example.get("actors", [0])
    for seat, actions in example.get("legal", {}).items():
        assert table.legal(int(seat)) == actions
    for key, value in example.get("sees", {}).get("all", {}).items():
        assert table.observation(None)[key] == value
    for event, wanted in zip(events, example.get("events", events), strict=True):
        assert event | wanted == event
