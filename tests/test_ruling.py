"""The sentence for an action that is not legal: true in every position, and never merely "no"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from arena.cards import JOKER, RANKS, SUITS
from arena.games import GAMES
from arena.luck import Stream
from arena.rules import Value, complete_options, deal
from arena.ruling import FORMS, broken_rule

CARDS = [rank + suit for rank in RANKS for suit in SUITS]
NOTHING_BETTER = "the position does not allow it"


def written(form: str) -> Iterator[str]:
    """Yield every action that a form stands for."""
    values = {"RANK": RANKS + JOKER, "COUNT": "12345678"} | dict.fromkeys(("CARD", "ATTACK", "OWN", "CENTRE"), CARDS)
    parts = re.split("([A-Z]+)", form)
    yield from map("".join, product(*(values.get(part, [part]) for part in parts)))


def asks(game: str, seats: int, options: dict[str, Value], number: int) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield what each seat that is asked in a random deal sees, and its legal actions."""
    luck = Stream(bytes([number]) * 32, "play")
    state, _ = deal(GAMES[game], complete_options(GAMES[game], seats, options), seats, bytes([number]) * 32)
    while state.actors:
        seat = state.actors[0]
        legal = state.legal_actions(seat)
        yield state.observation(seat), legal
        state, _ = state.apply(seat, legal[luck.below(len(legal))])


VARIANTS: list[tuple[str, int, dict[str, Value]]] = [
    ("avalanche", 2, {}),
    ("avalanche", 5, {}),
    ("durak", 2, {}),
    ("durak", 3, {"transfer": True}),
    ("durak", 4, {"transfer": True, "max_attack": 2}),
    ("smokestack", 2, {}),
    ("smokestack", 4, {"sweep": "own_turn"}),
]


@pytest.mark.parametrize(("game", "seats", "options"), VARIANTS)
def test_every_action_that_is_not_legal_breaks_a_rule_that_can_be_named(
    game: str, seats: int, options: dict[str, Value]
) -> None:
    every = [action for form in FORMS[game] for action in written(form)]
    for seen, legal in [*asks(game, seats, options, 1), *asks(game, seats, options, 2)][::7]:
        assert set(legal) <= set(every)
        for action in set(every[:: len(every) // 200 + 1]) - set(legal):
            told = broken_rule(game, action, legal, seen)
            verb = action.split(":")[0]
            assert "written" not in told
            assert told != NOTHING_BETTER or verb in ("transfer", "sweep", "double"), (action, seen)
            if "in your hand" in told and game == "durak":
                assert action[-2:] not in seen["hands"][seen["seat"]]
            if "does not beat" in told:
                assert action[-2:] in seen["hands"][seen["seat"]]
            if "is not for now" in told or "is for turns" in told:
                assert not any(one.startswith(verb) for one in legal)


DEFENDS = {
    "seat": 1,
    "phase": "defend",
    "trump": "s",
    "hands": [["6c"], ["6h", "9h", "7s", "Td"]],
    "table": [["7h", "Th"], ["8h", None], ["9s", None]],
    "open": [],
}
ATTACKS = {**DEFENDS, "phase": "attack", "table": []}
COLLECTS = {**DEFENDS, "phase": "collect", "open": ["6d", "7d", "8c"], "drawn": "9d", "trump": None, "table": []}
THROWS = {**DEFENDS, "phase": "throw", "table": [["8h", "9c"]]}
TURN = {"seat": 0, "window": False, "turn": 0, "stacks": [[["2c", "3d", "4h", "6s"]], [["7c"]]], "centre": ["9c", "Th"]}
WINDOW = {**TURN, "window": True, "turn": 1}
DOUBLED = {**TURN, "stacks": [[["2c", "2d", "4h", "6s"], ["7d"]], [["7c"]]]}
PAIRED = {**TURN, "stacks": [[["2c", "2d", "4h", "6s"]], [["7c"]]]}
HAND = {"hand": ["3", "7", "7", "*"], "table": [], "stock": 0}
ANSWERS = {**HAND, "table": [{"seat": 0, "rank": "9", "count": 1}]}


@pytest.mark.parametrize(
    ("game", "action", "seen", "told"),
    [
        (
            "durak",
            "castle",
            DEFENDS,
            "durak has no such action; it has capture:CARD, attack:CARD, beat:ATTACK:OWN, take,",
        ),
        ("durak", "", DEFENDS, "durak has no such action"),
        ("durak", " Take\n", DEFENDS, "it is not spelled like the legal action 'take': spaces and capitals count"),
        ("durak", "beat:7h", DEFENDS, "it is not written as beat:ATTACK:OWN, a card as its rank and its suit, e.g. Th"),
        ("durak", "beat:10h:Jh", DEFENDS, "it is not written as beat:ATTACK:OWN"),
        ("durak", "beat:8h:8h:8h", DEFENDS, "it is not written as"),
        ("durak", "attack:6h", DEFENDS, "attack is not for now: attack cards are to be beaten"),
        ("durak", "take", ATTACKS, "take is not for now: a bout is to be led"),
        ("durak", "beat:8h:Kh", DEFENDS, "K♥ is not in your hand"),
        ("durak", "beat:7h:9h", DEFENDS, "7♥ is no attack card that is still to be beaten"),
        ("durak", "beat:8h:6h", DEFENDS, "6♥ does not beat 8♥: that takes a higher ♥ or any ♠, the trump"),
        ("durak", "beat:9s:7s", DEFENDS, "7♠ does not beat 9♠: that takes a higher ♠"),
        ("durak", "attack:6s", ATTACKS, "6♠ is not in your hand"),
        ("durak", "transfer:6h", DEFENDS, "no card of the rank of 6♥ lies on the table"),
        ("durak", "transfer:9h", DEFENDS, "an attack can be transferred only before anything is beaten"),
        ("durak", "transfer:9h", {**DEFENDS, "table": [["9c", None]]}, NOTHING_BETTER),
        ("durak", "throw:6h", THROWS, "no card of the rank of 6♥ lies on the table"),
        ("durak", "capture:9c", COLLECTS, "9♣ does not lie beside the deck"),
        ("durak", "capture:8c", COLLECTS, "9♦ captures a lower card of its suit only"),
        ("avalanche", "snow", HAND, "the stock is empty"),
        ("avalanche", "snow", ANSWERS, "an avalanche lies on the table, so a play is due"),
        ("avalanche", "play:7x3", HAND, "it takes 3 of rank 7, you hold 2"),
        ("avalanche", "play:*x2", HAND, "it takes 2 of rank ★, you hold 1"),
        ("avalanche", "play:7", HAND, "it is not written as play:RANKxCOUNT"),
        ("avalanche", "pass", HAND, "avalanche has no such action; it has play:RANKxCOUNT, snow"),
        ("smokestack", "swap:2c:9c", WINDOW, "swap is for turns: a window is open, before the turn of seat 1"),
        ("smokestack", "wait", TURN, "wait is for windows: none is open, it is your turn"),
        ("smokestack", "swap:7c:9c", TURN, "7♣ is not in an open stack of yours"),
        ("smokestack", "swap:2c:9d", TURN, "9♦ is not in the centre"),
        ("smokestack", "double", TURN, "there is no pair in your stack"),
        ("smokestack", "double", DOUBLED, "there are two open stacks already"),
        ("smokestack", "double", PAIRED, NOTHING_BETTER),
        ("smokestack", "sweep", TURN, NOTHING_BETTER),
    ],
)
def test_the_rule_that_is_broken_is_named(game: str, action: str, seen: dict[str, Any], told: str) -> None:
    legal = ("beat:8h:9h", "take") if seen is DEFENDS else ()
    assert broken_rule(game, action, legal, seen).startswith(told)
