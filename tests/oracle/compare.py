"""Play random deals of a game on the arena's rules and on an oracle side by side, and stop at the first difference.

An oracle is a second implementation, written from docs/rules.md alone. After the dealing and after every action the two
must agree on who is to act, on every seat's legal actions, on what every seat and a spectator observe, on the events
and who sees them, and on the outcome.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import msgspec

from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES
from arena.rules import Event, Game, Option, State, Value, complete_options


class Table(Protocol):
    """A deal as an oracle plays it; `opening` holds the events of dealing."""

    opening: list[dict[str, object]]
    outcome: dict[str, object] | None

    def actors(self) -> list[int]: ...

    def legal(self, seat: int) -> list[str]: ...

    def observation(self, seat: int | None) -> dict[str, object]: ...

    def apply(self, seat: int, action: str) -> list[dict[str, object]]: ...


MakeTable: TypeAlias = Callable[[dict[str, object], int, list[str], bytes], Table]
Step: TypeAlias = tuple[int, str]


class Difference(AssertionError):
    """The two implementations disagree; the text says where and how to get there again."""


@dataclass
class Pair:
    """One deal on both implementations, which have agreed so far."""

    game: Game
    options: Mapping[str, Value]
    seats: int
    deck: Sequence[str]
    seed: bytes
    state: State
    table: Table
    steps: list[Step] = field(default_factory=list)

    def apply(self, seat: int, action: str) -> tuple[Event, ...]:
        """Play an action on both and compare what comes of it."""
        self.steps.append((seat, action))
        try:
            self.state, events = self.state.apply(seat, action)
            theirs = self.table.apply(seat, action)
        except Exception as error:
            raise Difference(f"{error!r}\n{self.reproduction()}") from error
        self.same("events", [wire(event) for event in events], theirs)
        self.compare_positions()
        return events

    def compare_positions(self) -> None:
        state, table = self.state, self.table
        outcome = state.outcome
        self.same("actors", state.actors, table.actors())
        self.same("outcome", None if outcome is None else msgspec.structs.asdict(outcome), table.outcome)
        for seat in range(self.seats):
            self.same(f"legal actions of seat {seat}", state.legal_actions(seat), table.legal(seat))
            self.same(f"observation of seat {seat}", state.observation(seat), table.observation(seat))
        self.same("observation of a spectator", state.observation(None), table.observation(None))

    def same(self, what: str, ours: object, theirs: object) -> None:
        """Compare as JSON, in which tuples are lists, the order of keys is nothing, and True is not 1."""
        if msgspec.json.encode(ours, order="sorted") != msgspec.json.encode(theirs, order="sorted"):
            raise Difference(f"{what} differ\narena:  {ours}\noracle: {theirs}\n{self.reproduction()}")

    def reproduction(self) -> str:
        return (
            f"game = {self.game.name!r}\noptions = {dict(self.options)}\nseats = {self.seats}\n"
            f"deck = {' '.join(self.deck)!r}\nseed = {self.seed.hex()!r}\nsteps = {self.steps}"
        )


def wire(event: Event) -> dict[str, object]:
    return {**event.message(), "seen_by": event.seen_by}


def start(
    game: Game, make_table: MakeTable, options: Mapping[str, Value], seats: int, deck: Sequence[str], seed: bytes
) -> Pair:
    """Deal on both implementations and compare."""
    state, events = game.initial_state(options, seats, deck, seed)
    pair = Pair(game, options, seats, deck, seed, state, make_table(dict(options), seats, list(deck), seed))
    pair.same("opening events", [wire(event) for event in events], pair.table.opening)
    pair.compare_positions()
    return pair


def compare(game_name: str, make_table: MakeTable, deals: int, key: str, longest: int | None = None) -> Counter[str]:
    """Play random deals on both implementations.

    Args:
        game_name: a key of `GAMES`.
        make_table: the oracle: options, seats, deck, deal seed to a table.
        deals: how many.
        key: names the luck; the same key gives the same deals.
        longest: most deals are left after a random number of actions of about this size; None plays all to the end.

    Returns:
        How often each kind of event, each kind of action and each reason of an end came up, e.g. `event bank`.

    Raises:
        Difference: with the options, seats, deck, seed and steps that lead to it.
    """
    seen: Counter[str] = Counter()
    for number in range(deals):
        rng = random.Random(f"{game_name} {key} {number}")
        pair = random_pair(rng, GAMES[game_name], make_table)
        seen.update(f"event {event['kind']}" for event in pair.table.opening)
        policy = rng.choice(POLICIES)
        patience = None if longest is None or rng.random() < 0.05 else rng.expovariate(1 / longest)
        while pair.state.actors and (patience is None or len(pair.steps) < patience):
            seat = rng.choice(pair.state.actors)
            check_refusal(rng, pair)
            action = policy(rng, pair.state, seat, seen)
            seen[f"action {kind(action)}"] += 1
            seen.update(f"event {event.kind}" for event in pair.apply(seat, action))
            bound = pair.game.max_decisions(pair.options, pair.seats)
            pair.same("whether the bound holds", len(pair.steps) <= bound, True)
        if pair.state.outcome is not None:
            seen[f"reason {pair.state.outcome.reason}"] += 1
    return seen


def random_pair(rng: random.Random, game: Game, make_table: MakeTable) -> Pair:
    seats = rng.choice(game.seats)
    options = random_options(rng, game, seats)
    deck = rng.choice(SHUFFLES)(rng, game.deck(options))
    return start(game, make_table, options, seats, deck, rng.randbytes(32))


def random_options(rng: random.Random, game: Game, seats: int) -> dict[str, Value]:
    """Return complete options, each left to its default with some chance; sets that are refused are drawn again."""
    while True:
        given = {name: random_value(rng, option) for name, option in game.schema.items() if rng.random() < 0.8}
        try:
            return complete_options(game, seats, given)
        except ConfigError:
            continue


def random_value(rng: random.Random, option: Option) -> Value:
    """Return an allowed value; of a range mostly a small one, since rules differ most near its low end."""
    values = list(option.values)
    if option.high >= option.low:
        values += [option.low, rng.randint(option.low, min(option.high, option.low + 4)), option.high]
    return rng.choice(values)


# Decks: an even shuffle hardly ever deals what is rare, so others stay near the sorted deck.


def shuffle_all(rng: random.Random, deck: Sequence[str]) -> list[str]:
    return rng.sample(deck, len(deck))


def shuffle_blocks(rng: random.Random, deck: Sequence[str]) -> list[str]:
    """Cut the sorted deck into blocks of a few cards and shuffle the blocks."""
    size = rng.randint(2, 7)
    blocks = [deck[start : start + size] for start in range(0, len(deck), size)]
    return [card for block in rng.sample(blocks, len(blocks)) for card in block]


def exchange_some(rng: random.Random, deck: Sequence[str]) -> list[str]:
    """Begin the sorted deck anywhere and exchange a few cards."""
    cut = rng.randrange(len(deck))
    cards = [*deck[cut:], *deck[:cut]]
    for _ in range(rng.randint(0, len(deck) // 3)):
        i, j = rng.randrange(len(deck)), rng.randrange(len(deck))
        cards[i], cards[j] = cards[j], cards[i]
    return cards


SHUFFLES = (shuffle_all, shuffle_all, shuffle_blocks, exchange_some)


# Policies: random play hardly ever does what is rare, so others look for it.

Policy: TypeAlias = Callable[[random.Random, State, int, Counter[str]], str]


def kind(action: str) -> str:
    return action.split(":")[0]


def play_any(rng: random.Random, state: State, seat: int, _seen: Counter[str]) -> str:
    return rng.choice(state.legal_actions(seat))


def play_any_kind(rng: random.Random, state: State, seat: int, _seen: Counter[str]) -> str:
    """Choose a kind of action first, so that `pass` is as likely as all swaps together."""
    legal = state.legal_actions(seat)
    chosen = rng.choice(sorted({kind(action) for action in legal}))
    return rng.choice([action for action in legal if kind(action) == chosen])


def play_rare_kind(rng: random.Random, state: State, seat: int, seen: Counter[str]) -> str:
    """Prefer the kind of action that came up least so far."""
    legal = state.legal_actions(seat)
    rarest = min({kind(action) for action in legal}, key=lambda k: (seen[f"action {k}"], k))
    return rng.choice([action for action in legal if kind(action) == rarest or rng.random() < 0.05])


def play_scarce_kind(rng: random.Random, state: State, seat: int, _seen: Counter[str]) -> str:
    """Nearly always take the kind with the fewest legal actions: mostly `pass`, `take`, `snow` and the like."""
    legal = state.legal_actions(seat)
    counts = Counter(kind(action) for action in legal)
    fewest = min(counts.values())
    chosen = [action for action in legal if counts[kind(action)] == fewest]
    return rng.choice(legal if rng.random() < 0.02 else chosen)


def play_for_rare_events(rng: random.Random, state: State, seat: int, seen: Counter[str]) -> str:
    """Look one action ahead, at most at twelve, and prefer the rarest event."""
    legal = state.legal_actions(seat)
    looked_at = rng.sample(legal, min(len(legal), 12))

    def rarity(action: str) -> int:
        return min((seen[f"event {event.kind}"] for event in state.apply(seat, action)[1]), default=1 << 30)

    return min(looked_at, key=rarity)


POLICIES: tuple[Policy, ...] = (play_any, play_any_kind, play_rare_kind, play_scarce_kind, play_for_rare_events)


def check_refusal(rng: random.Random, pair: Pair) -> None:
    """Give the game an action that was legal once, from any seat, and see that it is refused where it is not now."""
    if not pair.steps or rng.random() < 0.9:
        return
    seat = rng.randrange(pair.seats)
    action = rng.choice(pair.steps)[1]
    if action in pair.table.legal(seat):
        return
    try:
        pair.state.apply(seat, action)
    except IllegalAction:
        return
    pair.same(f"whether seat {seat} may {action}", True, False)


# Whole trees of small deals.


def walk(pair: Pair, depth: int | None = None, kinds: Sequence[str] = ()) -> Iterator[Pair]:
    """Play every sequence of actions on both implementations and yield the position after each, the first one included.

    Args:
        pair: where to begin; it is left as it is.
        depth: the number of actions after which a sequence is left; None for none, then every sequence is played out.
        kinds: only actions of these kinds; () for all.
    """
    yield pair
    if depth == 0:
        return
    for seat in pair.state.actors:
        for action in pair.state.legal_actions(seat):
            if not kinds or kind(action) in kinds:
                after = replace(pair, table=copy.deepcopy(pair.table), steps=[*pair.steps])
                after.apply(seat, action)
                yield from walk(after, None if depth is None else depth - 1, kinds)


def count(pairs: Iterable[Pair]) -> dict[str, int]:
    """Return the numbers of sequences, of different positions and of each reason of an end."""
    positions = set()
    counts: Counter[str] = Counter()
    for pair in pairs:
        counts["sequences"] += 1
        positions.add(msgspec.json.encode(pair.state.observation(None), order="sorted"))
        if pair.state.outcome is not None:
            counts[pair.state.outcome.reason] += 1
    return {**counts, "positions": len(positions)}
