from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.games import GAMES
from arena.luck import Stream
from arena.rules import Event, complete_options, deal
from arena.words import (
    action_words,
    card_words,
    cards_by_suit,
    event_words,
    position_lines,
    reason_words,
    seat_lines,
)

PROTOCOL = (Path(__file__).parents[1] / "protocol.md").read_text()
NAMES = ("ann", "bob", "cid", "dot")


@pytest.mark.parametrize(
    ("card", "words"), [("Th", "10♥"), ("Ks", "K♠"), ("2c", "2♣"), ("9d", "9♦"), ("*", "★"), ("T", "10")]
)
def test_cards(card: str, words: str) -> None:
    assert card_words(card) == words


def test_actions() -> None:
    assert action_words("beat:7s:Ts") == "beat 7♠ 10♠"
    assert action_words("wait") == "wait"
    assert action_words("play:*x1") == "play *x1"


@pytest.mark.parametrize(
    ("game", "kind", "data", "words"),
    [
        ("avalanche", "play", {"seat": 1, "rank": "T", "count": 2, "result": "drop"}, "bob drops it with 10 10"),
        ("avalanche", "settle", {"to": 2, "cards": 5}, "cid gets its 5 cards"),
        ("avalanche", "settle", {"to": None, "cards": 16}, "its 16 cards are dead"),
        ("avalanche", "refill", {"drawn": [0, 2, 0, 0]}, "hands are refilled: bob 2"),
        ("avalanche", "refill", {"drawn": [0, 0, 0, 0]}, "hands are refilled: nobody draws"),
        ("durak", "out", {"seat": 0, "bout": 0}, "ann is out after collecting"),
        ("durak", "out", {"seat": 0, "bout": 3}, "ann is out in bout 3"),
        ("durak", "trump", {"suit": "h"}, "♥ is trump"),
        ("durak", "redeal", {"number": 2}, "a hand is empty: dealt again, number 2"),
        ("durak", "transfer", {"seat": 1, "card": "7h", "defender": 2}, "bob transfers the attack with 7♥"),
        ("smokestack", "window", {"answers": ["wait", "", "sweep", ""]}, "window: ann wait, cid sweep"),
        ("smokestack", "double", {"seat": 3, "cards": ["2c", "3c"]}, "dot opens a second stack: 2♣ 3♣"),
        ("smokestack", "bank", {"seat": 3, "stack": 0, "cards": ["2c"], "refill": []}, "dot banks 2♣ and draws "),
        ("smokestack", "news", {"seat": 3}, "news seat=3"),
        ("durak", "news", {"seat": 3}, "news seat=3"),
        ("avalanche", "news", {}, "news"),
    ],
)
def test_events(game: str, kind: str, data: dict[str, object], words: str) -> None:
    assert event_words(game, Event(kind, data), NAMES) == words


@pytest.mark.parametrize("name", sorted(GAMES))
def test_everything_that_happens_has_words_of_its_own(name: str) -> None:
    game = GAMES[name]
    stream = Stream(b"words", name)
    for number in range(15):
        given = {key: option.values[stream.below(len(option.values))] for key, option in game.schema.items()}
        options = complete_options(game, 4, given)
        state, events = deal(game, options, 4, bytes([number]) * 32)
        for _ in range(400):
            for event in events:
                words = event_words(name, event, NAMES)
                assert "=" not in words, words
                assert not words.startswith(event.kind + " seat"), words
            assert all(list(position_lines(state.observation(seat), NAMES)) for seat in (None, 0))
            if not state.actors:
                break
            seat = state.actors[0]
            legal = state.legal_actions(seat)
            state, events = state.apply(seat, legal[stream.below(len(legal))])


def test_a_position_is_told_by_name_where_it_is_kept_by_seat() -> None:
    seen = {
        "hands": (("7s", "Th"), ()),
        "table": (("7s", None),),
        "taking": True,
        "laid": {"T": 2},
        "trump": None,
        "deck": 3,
        "phase": "throw",
    }
    assert list(position_lines(seen, ("ann", "bob"))) == [
        "hands        ann          7♠ 10♥",
        "hands        bob          -",
        "table        7♠ -",
        "taking       yes",
        "laid         T:2",
        "trump        -",
        "deck         3",
        "phase        throw",
    ]
    assert list(position_lines({"trump": "h"}, ("ann", "bob"))) == ["trump        ♥"]


def test_cards_by_suit() -> None:
    assert cards_by_suit(["7c", "3d", "9d", "Th"]) == "7♣  3♦ 9♦  10♥"
    assert cards_by_suit(["4", "T", "*"]) == "4 10 ★"
    assert cards_by_suit([]) == "none"


@pytest.mark.parametrize("game", sorted(GAMES))
def test_what_a_seat_holds_is_told_in_every_position(game: str) -> None:
    labels: dict[str, set[str]] = {}
    for seats in GAMES[game].seats:
        names = [f"bot {seat}" for seat in range(seats)]
        luck = Stream(bytes([seats]) * 32, "play")
        state, _ = deal(GAMES[game], complete_options(GAMES[game], seats, {}), seats, bytes([seats]) * 32)
        while state.actors:
            for seat in state.actors:
                for label, text in seat_lines(game, state.observation(seat), names):
                    labels.setdefault(label, set()).add(text)
            legal = state.legal_actions(state.actors[0])
            state, _ = state.apply(state.actors[0], legal[luck.below(len(legal))])
        assert state.outcome is not None
        assert reason_words(game, state.outcome.reason) != state.outcome.reason
    told = {text for texts in labels.values() for text in texts}
    assert not {text for text in told if not text or "None" in text or "[" in text}
    assert (
        labels.keys()
        == {
            "avalanche": {"your hand", "on table", "stock", "piles"},
            "durak": {"your hand", "drawn", "beside the deck", "on table", "trump", "bout", "cards"},
            "smokestack": {"your stacks", "centre", "stock", "banked", "asked"},
        }[game]
    )


def test_every_reason_that_the_protocol_names_is_told_as_a_clause() -> None:
    for game in GAMES:
        section = PROTOCOL.split(f"\n## {game.title()}\n")[1]
        (line,) = re.findall(r"^Reasons? of an end: (.*)$", section.split("\n## ")[0], re.MULTILINE)
        for reason in re.findall("`([^`]+)`", line):
            assert reason_words(game, reason) != reason
        assert reason_words(game, "fault") == "a fault decided the deal"
        assert reason_words(game, "magic") == "magic"
