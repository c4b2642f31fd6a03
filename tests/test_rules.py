"""Rule vectors: tests/rules/<game>.toml, each named by the decision of docs/rules.md that it shows.

The examples of docs/rules.md are vectors too: fenced blocks `toml vector`, one vector each, with its `game`.

A vector deals the cards it names (the rest of the deck follows in sorted order), applies its steps and compares what
it states with what the game says:

    [[vector]]
    id = "D3 two candidates: the seat chooses"
    seats = 2
    options = { deck = 36 }                     # default {}
    deck = "7s 9s Ts"                           # top first
    seed = "00"                                 # hex, default empty; the deal seed
    steps = ["0 capture:7s", "1 pass"]          # seat, action
    actors = [1]
    legal = { 1 = ["capture:7s"] }              # whole list, by seat
    sees = { 1 = { trump = "s" }, all = {} }    # keys of an observation, compared one by one
    events = [{ kind = "capture", seat = 0 }]   # of the last step, or of dealing; keys as given
    outcome = { places = [1, 2], points = [3, 1], reason = "stock" }
    illegal = ["0 pass"]                        # refused after the steps, leaving the state equal
    refused = "36 cards"                        # instead of all that: the options are refused with a text holding this
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES
from arena.rules import Event, Game, Outcome, State, complete_options

FOLDER = Path(__file__).parent / "rules"
TEXT = Path(__file__).parents[1] / "docs" / "rules.md"
VECTORS = [
    pytest.param(path.stem, vector, id=f"{path.stem} {vector['id']}")
    for path in sorted(FOLDER.glob("*.toml"))
    for vector in tomllib.loads(path.read_text())["vector"]
]
EXAMPLES = [
    pytest.param(vector["game"], vector, id=f"rules.md {vector['id']}")
    for block in re.findall(r"^```toml vector\n(.*?)^```$", TEXT.read_text(), re.MULTILINE | re.DOTALL)
    for vector in [tomllib.loads(block)]
]


def whole_deck(game: Game, options: Mapping[str, Any], named: str) -> tuple[str, ...]:
    """Return the named cards followed by the rest of the deck; the named ones must be in it."""
    rest = list(game.deck(options))
    top = named.split()
    for card in top:
        rest.remove(card)
    return (*top, *rest)


def play(vector: Mapping[str, Any], game: Game) -> tuple[State, tuple[Event, ...]]:
    options = complete_options(game, vector["seats"], vector.get("options", {}))
    deck = whole_deck(game, options, vector.get("deck", ""))
    state, events = game.initial_state(options, vector["seats"], deck, bytes.fromhex(vector.get("seed", "")))
    for step in vector.get("steps", ()):
        seat, action = step.split()
        state, events = state.apply(int(seat), action)
    return state, events


def plain(value: object) -> object:
    """Return tuples as lists, as TOML writes them."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def check_seen(state: State, sees: Mapping[str, Mapping[str, Any]]) -> None:
    for seat, wanted in sees.items():
        seen = state.observation(None if seat == "all" else int(seat))
        assert {key: plain(seen[key]) for key in wanted} == wanted


def check_events(events: tuple[Event, ...], wanted: list[Mapping[str, Any]]) -> None:
    told = [event.message() for event in events]
    assert [event["kind"] for event in told] == [event["kind"] for event in wanted]
    for event, keys in zip(told, wanted, strict=True):
        assert {key: plain(event[key]) for key in keys} == keys


@pytest.mark.parametrize(("name", "vector"), VECTORS + EXAMPLES)
def test_vector(name: str, vector: Mapping[str, Any]) -> None:
    game = GAMES[name]
    if "refused" in vector:
        with pytest.raises(ConfigError, match=vector["refused"]):
            complete_options(game, vector["seats"], vector.get("options", {}))
        return
    state, events = play(vector, game)
    if "actors" in vector:
        assert list(state.actors) == vector["actors"]
    for seat, actions in vector.get("legal", {}).items():
        assert list(state.legal_actions(int(seat))) == actions
    check_seen(state, vector.get("sees", {}))
    if "events" in vector:
        check_events(events, vector["events"])
    if "outcome" in vector:
        wanted = vector["outcome"]
        assert state.outcome == Outcome(tuple(wanted["places"]), tuple(wanted["points"]), wanted["reason"])
    for step in vector.get("illegal", ()):
        seat, action = step.split()
        before = state.observation(None)
        with pytest.raises(IllegalAction):
            state.apply(int(seat), action)
        assert state.observation(None) == before


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_game_has_forty_vectors_named_by_decision(name: str) -> None:
    ids = [vector["id"] for vector in tomllib.loads((FOLDER / f"{name}.toml").read_text())["vector"]]
    assert len(ids) >= 40
    assert len(set(ids)) == len(ids)
    letter = {"smokestack": "S", "avalanche": "A", "durak": "D"}[name]
    assert all(i[0] == letter and i[1].isdigit() for i in ids)
