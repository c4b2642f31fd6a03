"""Durak played side by side: arena's positions and the oracle's table, compared after every action.

Random deals go everywhere a little, small decks are followed along every line. A difference is raised with the whole
deal that shows it.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

import msgspec
import pytest

from arena.games import GAMES
from arena.rules import Event, Option, State, Value, complete_options
from tests.oracle.durak import RANKS, Table

GAME = GAMES["durak"]
Policy = Callable[[Random, Sequence[str]], str]


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


def compare_events(events: Sequence[Event], told: list[dict[str, object]]) -> None:
    compare("events", [{**event.message(), "seen_by": event.seen_by} for event in events], told)


def compare_positions(state: State, table: Table, watchers: Iterable[int]) -> None:
    """Compare all but what seats that are no watchers see; the spectator's view has all of it."""
    compare("actors", state.actors, table.actors())
    outcome = state.outcome
    ended = outcome and {"places": outcome.places, "points": outcome.points, "reason": outcome.reason}
    compare("outcome", ended, table.outcome)
    compare("view of the spectator", state.observation(None), table.observation(None))
    for seat in range(table.seats):
        compare(f"legal actions of {seat}", state.legal_actions(seat), table.legal(seat))
    for seat in watchers:
        compare(f"view of {seat}", state.observation(seat), table.observation(seat))
    for seat in state.actors:
        compare(f"house action of {seat}", GAME.house_action(state, seat), table.house(seat))


# Random deals


def draw_value(rng: Random, option: Option) -> Value:
    values = list(option.values)
    if option.low <= option.high:  # small limits matter most
        values += [rng.randint(option.low, option.high), *range(option.low, option.low + 7)]
    return rng.choice(values)


def draw_options(rng: Random, seats: int) -> dict[str, Value]:
    """Return a random option set: most options have any value, some their default."""
    given = {name: draw_value(rng, option) for name, option in GAME.schema.items() if rng.random() < 0.8}
    return complete_options(GAME, seats, given)


def draw_deck(rng: Random, cards: Sequence[str]) -> list[str]:
    """Return the cards shuffled, or falling or rising but for some exchanges, which leaves lopsided hands."""
    deck = rng.sample(cards, len(cards))
    shape = rng.choice(["shuffled", "shuffled", "falling", "rising"])
    if shape != "shuffled":
        deck.sort(key=lambda card: RANKS.index(card[0]), reverse=shape == "falling")
        for _ in range(rng.choice([0, 1, 2, 5, 10, 20])):
            i, j = rng.randrange(len(deck)), rng.randrange(len(deck))
            deck[i], deck[j] = deck[j], deck[i]
    return deck


def likes(word: str | tuple[str, ...]) -> Policy:
    """Return the policy that nearly always plays an action of this word, or of these, if it can."""

    def choose(rng: Random, legal: Sequence[str]) -> str:
        liked = [action for action in legal if action.startswith(word)]
        return rng.choice(liked if liked and rng.random() < 0.95 else legal)

    return choose


def lowest(word: str) -> Policy:
    """Return the policy that plays its lowest card, with this word if it can: hands that play so end together."""

    def choose(rng: Random, legal: Sequence[str]) -> str:
        liked = [action for action in legal if action.startswith(word)] or legal
        return min(liked, key=lambda action: ("23456789TJQKA".find(action[-2]), action))

    return choose


def trumps(rng: Random, legal: Sequence[str]) -> str:
    """Beat with a card of another suit, so with a trump, if that can be; else beat."""
    beats = [action for action in legal if action.startswith("beat:")]
    return rng.choice([action for action in beats if action[-1] != action[6]] or beats or legal)


POLICIES: dict[str, Policy] = {
    "uniform": likes(""),
    "taker": likes("take"),
    "transferrer": likes("transfer:"),
    "thrower": likes("throw:"),
    "beater": likes("beat:"),
    "fighter": likes(("throw:", "beat:")),
    "passer": likes("pass"),
    "saver": lowest("beat:"),
    "spender": lowest("throw:"),
    "trumps": trumps,
}


class Deal:
    """One random deal on both sides.

    Args:
        number: which; the same number is the same deal.
        small: a part of the deck is dealt. Decks of few cards end soon and in every way.
    """

    def __init__(self, number: int, small: bool) -> None:
        self.rng = Random(f"durak {number}")
        self.seats = self.rng.choice([2, 3, 4] if small else GAME.seats)
        self.options = draw_options(self.rng, self.seats)
        cards = GAME.deck(self.options)
        if small:
            self.options["redeal_if_empty"] = False  # a redeal shuffles the whole deck
            cards = tuple(self.rng.sample(cards, self.rng.randint(2 * self.seats + 2, 20)))
        self.deck = draw_deck(self.rng, cards)
        self.seed = self.rng.randbytes(32)
        names = [self.rng.choice([*POLICIES])] if self.rng.random() < 0.4 else [*POLICIES]
        self.policies = [self.rng.choice(names) for _ in range(self.seats)]
        self.steps: list[tuple[int, str]] = []

    def play(self, thorough: bool) -> str:
        """Play to the end and return the reason of it; with `thorough`, compare each seat's view each time."""
        everybody = range(self.seats)
        state, events = GAME.initial_state(self.options, self.seats, self.deck, self.seed)
        table = Table(self.options, self.seats, self.deck, self.seed)
        compare_events(events, table.opening)
        compare_positions(state, table, everybody)
        while state.outcome is None:
            seat = state.actors[0]
            action = POLICIES[self.policies[seat]](self.rng, state.legal_actions(seat))
            self.steps.append((seat, action))
            state, events = state.apply(seat, action)
            compare_events(events, table.apply(seat, action))
            all_look = thorough or state.outcome is not None
            compare_positions(state, table, everybody if all_look else [len(self.steps) % self.seats])
        assert len(self.steps) <= table.most_actions()
        return state.outcome.reason

    def shown(self) -> str:
        """Return all that is needed to play the deal again."""
        keys = {"options": self.options, "seats": self.seats, "deck": " ".join(self.deck), "seed": self.seed.hex()}
        return json.dumps({**keys, "steps": [f"{seat} {action}" for seat, action in self.steps]})


def play_deals(numbers: range, thorough: bool) -> Counter[str]:
    """Play deals of these numbers, every other one small, and count how they ended and what was played.

    Raises:
        AssertionError: at the first difference, with the whole deal.
    """
    tally: Counter[str] = Counter()
    for number in numbers:
        deal = Deal(number, small=number % 2 == 1)
        try:
            tally[deal.play(thorough)] += 1
        except Exception as error:
            raise AssertionError(f"deal {number}: {type(error).__name__} {error}\n{deal.shown()}") from error
        tally.update(action.split(":")[0] for _, action in deal.steps)
    return tally


COMMON = {"attack", "beat", "capture", "durak", "pass", "stalled", "take", "throw", "transfer"}
"""What random deals show often; ends without a holder are for the small decks further down."""


@pytest.mark.slow
def test_random_deals_are_the_same() -> None:
    tally = play_deals(range(1000), thorough=False)
    assert {word for word in tally if tally[word] >= 10} >= COMMON


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(1000, 21000, 2000))
def test_many_random_deals_are_the_same(start: int) -> None:
    play_deals(range(start, start + 2000), thorough=True)


def test_a_hand_is_left_empty_after_twenty_redeals() -> None:
    """The seed was found by trying: a hand is empty twenty-one times in a row when the first candidate is taken."""
    options = complete_options(GAME, 6, {"deck": 36, "redeal_if_empty": True, "chain": True})
    deck, seed = sorted(GAME.deck(options), key=lambda card: -RANKS.index(card[0])), b"20785"
    state, events = GAME.initial_state(options, 6, deck, seed)
    table = Table(options, 6, deck, seed)
    compare_events(events, table.opening)
    while table.drawn is not None:
        compare_positions(state, table, range(6))
        seat = table.actors()[0]
        action = table.legal(seat)[0]
        state, events = state.apply(seat, action)
        compare_events(events, table.apply(seat, action))
    compare_positions(state, table, range(6))
    assert (table.redeals, table.out) == (20, [None, 0, None, None, None, None])


@pytest.mark.parametrize("seats", GAME.seats)
def test_bounds_are_the_same(seats: int) -> None:
    rng = Random(f"durak bounds {seats}")
    for _ in range(50):
        options = draw_options(rng, seats)
        table = Table(options, seats, list(GAME.deck(options)), b"")
        compare("bound", GAME.max_decisions(options, seats), table.most_actions())
        compare("outcome type", GAME.outcome_type(options), table.outcome_type())


# Every line of small deals


class Counts(msgspec.Struct, frozen=True):
    """What following every line gives, by number of actions.

    Attributes:
        lines: how many different sequences of so many actions there are.
        positions: how many different positions they lead to.
        ends: the reason of each end, with how many different final positions have it.
    """

    lines: list[int]
    positions: list[int]
    ends: dict[str, int]


def follow(
    given: dict[str, Value], seats: int, deck: Sequence[str], *, depth: int = 1000, enough: int = 1_000_000
) -> Counts:
    """Compare both sides along every line of up to `depth` actions, or until `enough` positions were found."""
    options = complete_options(GAME, seats, given)
    state, events = GAME.initial_state(options, seats, deck, b"")
    table = Table(options, seats, list(deck), b"")
    compare_events(events, table.opening)
    compare_positions(state, table, range(seats))
    layer = {b"": (state, table, 1)}
    lines, positions = [1], [1]
    ends: Counter[str] = Counter()
    while len(lines) <= depth and sum(positions) < enough:
        layer = followed(layer.values())
        if not layer:
            break
        ends.update(state.outcome.reason for state, _, _ in layer.values() if state.outcome)
        lines.append(sum(ways for _, _, ways in layer.values()))
        positions.append(len(layer))
    return Counts(lines, positions, dict(ends))


def followed(layer: Iterable[tuple[State, Table, int]]) -> dict[bytes, tuple[State, Table, int]]:
    """Return all positions that are one action further on, each with the number of ways to it."""
    found: dict[bytes, tuple[State, Table, int]] = {}
    for state, table, ways in layer:
        frozen = pickle.dumps(table)
        for seat, action in [(actor, action) for actor in table.actors() for action in table.legal(actor)]:
            after, events = state.apply(seat, action)
            copy: Table = pickle.loads(frozen)
            compare_events(events, copy.apply(seat, action))
            compare_positions(after, copy, range(table.seats))
            key = text(copy.observation(None))
            found[key] = (after, copy, ways + (found[key][2] if key in found else 0))
    return found


Small = tuple[int, str, dict[str, Value], int, int, int, dict[str, int]]
SMALL: list[Small] = [  # seats, deck, options; the longest line, lines, positions, ends
    (3, "7c 8c Qh Ah As 9d", {"chain": True, "max_attack": 1, "score": "places"},
     28, 213446, 3764, {"durak": 200, "draw": 9, "stalled": 90}),
    (4, "4c Kc 3c Jc 7d 6d", {"chain": True, "max_attack": 3, "simultaneous": "attacker_wins"},
     28, 545887, 6211, {"durak": 456, "attacker wins": 11, "stalled": 90}),
    (2, "7c 8c 8d 7h 7s 7d", {"transfer": True, "throw_after_take": False},
     16, 14566, 2243, {"durak": 317, "draw": 11}),
    (3, "6h 6d 7d 7s 6s 7h", {"transfer": True, "simultaneous": "attacker_wins", "score": "places"},
     17, 17114, 3385, {"durak": 578, "attacker wins": 14}),
]  # fmt: skip


@pytest.mark.parametrize(("seats", "deck", "given", "longest", "lines", "positions", "ends"), SMALL)
def test_every_line_of_a_small_deck_to_its_end(
    seats: int, deck: str, given: dict[str, Value], longest: int, lines: int, positions: int, ends: dict[str, int]
) -> None:
    counts = follow(given, seats, deck.split())
    assert (len(counts.lines) - 1, sum(counts.lines), sum(counts.positions)) == (longest, lines, positions)
    assert counts.ends == ends


WHOLE: list[tuple[int, str, dict[str, Value], list[int], list[int]]] = [  # seats, deck, options; lines, positions
    (2, """Tc Jd 8c 9d 6s Js Ac 9c 7h 8h 8d 6c Jc 7d Kc Ad Td Jh 9s 8s Qc 7s Kd Th 6d Kh Qh 6h Ks 9h Ts 7c Ah As Qs Qd
     """, {}, [1, 2, 6, 18, 36, 108, 216, 864, 20736], [1, 2, 6, 18, 36, 108, 216, 168, 4032]),
    (3, """Ac Js Qh Kd Th 6s Qc 8h Kc Qs 8c Td 7h As 7d Kh Tc 9s 7s Jh Ad 7c Jc Ks 6d Jd Ah 9c 6h 9d 8d Qd 9h 6c Ts 8s
     """, {"transfer": True, "max_attack": "none"},
     [1, 3, 12, 27, 81, 243, 486, 1836, 16304], [1, 3, 12, 24, 72, 144, 232, 344, 1863]),
    (4, """8s 9s Ac Ah Kd Kc Kh Ks Qs Th 8d Js Qc 6s Jh Jd Qh Ts Qd 7s 9c 9d Ad As Td 8h Tc 8c 7c 7d 9h 7h 6h 6c Jc 6d
     """, {"deck": 36, "transfer": True, "first_bout_max": 5},
     [1, 4, 12, 312, 372, 1416, 7020, 24804], [1, 4, 1, 26, 31, 84, 371, 1309]),
    (6, """5d 5s As Qs 9c 6c 7h Ah Qc 2h Ac 8h 9d 5h 4s 2c Js 3d Kh Ks Jh Qh 6d 7s 9h 4d 8c Kd Qd Jc 2d 3h 7d 4h 3c Ts
     8s Tc Th Jd 7c Ad 4c 6h 5c 8d 2s Td Kc 9s 3s 6s""", {},
     [1, 3, 9, 18, 36, 78, 156, 744], [1, 3, 9, 18, 36, 78, 120, 576]),
]  # fmt: skip


@pytest.mark.parametrize(("seats", "deck", "given", "lines", "positions"), WHOLE)
def test_first_lines_of_a_whole_deck(
    seats: int, deck: str, given: dict[str, Value], lines: list[int], positions: list[int]
) -> None:
    counts = follow(given, seats, deck.split(), depth=len(lines) - 1)
    assert (counts.lines, counts.positions) == (lines, positions)


def follow_random(number: int, enough: int) -> Counter[str]:
    """Follow the lines of a random deck of 4 to 7 cards under random options and count the ends."""
    rng = Random(f"durak lines {number}")
    seats = rng.choice([2, 3, 3, 4])
    options = {**draw_options(rng, seats), "redeal_if_empty": False}
    deck = rng.sample(GAME.deck(options), rng.randint(4, 7))
    try:
        return Counter(follow(options, seats, deck, enough=enough).ends)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{options} {seats} {' '.join(deck)}") from error


def test_lines_of_random_small_decks_are_the_same() -> None:
    ends = sum((follow_random(number, enough=300) for number in range(100)), Counter())
    assert ends["durak"] > 100


@pytest.mark.nightly
def test_lines_of_many_random_small_decks_are_the_same() -> None:
    ends = sum((follow_random(number, enough=3000) for number in range(100, 500)), Counter())
    assert all(ends[reason] > 20 for reason in ("durak", "draw", "attacker wins"))
