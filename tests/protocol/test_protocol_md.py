"""protocol.md is normative, so all it shows is executed here; `--regen` rewrites what can be computed.

Fenced blocks by their info string:

    json frame      a message as JSON, then `hex` lines: the whole frame
    json luck       vectors of arena.luck, one a line
    deal            a worked deal: a header, then `>` to the bot, `<` from it, `-` an action of another seat
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import pytest

from arena import wire
from arena.cards import deck_order
from arena.errors import FAULT_ADVICE, FAULT_DETAILS, FaultKind
from arena.games import GAMES
from arena.luck import Stream, derive
from arena.records import Clock
from arena.rules import Event, Seat, State, bot_seed, complete_options, deal
from arena.sandbox.environment import environment

TEXT = Path(__file__).parents[2] / "protocol.md"
FENCE = re.compile(r"^```(json frame|json luck|deal)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEX_WIDTH = 100
LIMITS = Clock(), 512

Lines = list[str]


def blocks(kind: str) -> list[Lines]:
    return [body.splitlines() for found, body in FENCE.findall(TEXT.read_text()) if found == kind]


# Frames


def split_frame(lines: Lines) -> tuple[Any, bytes]:
    """Return the JSON of a block and the bytes of its hex lines."""
    text = [line for line in lines if not line.startswith("hex ")]
    digits = "".join(line[4:] for line in lines if line.startswith("hex "))
    return json.loads("".join(text)), bytes.fromhex(digits)


def reframed(lines: Lines) -> Lines:
    message, _ = split_frame(lines)
    digits = encoded(message).hex()
    parts = [digits[i : i + HEX_WIDTH] for i in range(0, len(digits), HEX_WIDTH)]
    return [line for line in lines if not line.startswith("hex ")] + [f"hex {part}" for part in parts]


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return the frame that the wire sends for a referee's message, or a plain encoding of a bot's."""
    make = SENDERS.get((message["type"], "protocol" in message and "limits" not in message))
    return make(message) if make is not None else wire.encode(message)


def playing() -> wire.Conversation:
    talk = wire.Conversation()
    talk.hello(*LIMITS)
    talk.receive(wire.encode({"type": "hello", "protocol": 1}))
    return talk


def sent_hello(message: Mapping[str, Any]) -> bytes:
    limits = message["limits"]
    clock = Clock(**{name: limits[name] for name in ("decision_ms", "bank_ms", "increment_ms", "startup_ms")})
    return wire.Conversation().hello(clock, limits["memory_mib"])


def sent_deal(message: Mapping[str, Any]) -> bytes:
    return playing().deal(**{key: value for key, value in message.items() if key != "type"})


def in_deal(message: Mapping[str, Any]) -> wire.Conversation:
    talk = playing()
    talk.deal("durak", 1, {}, 2, 0, 1)
    for event in message["events"]:
        talk.tell(wire.encode_event(Event(event["kind"], {k: v for k, v in event.items() if k != "kind"})))
    return talk


def sent_ask(message: Mapping[str, Any]) -> bytes:
    talk = in_deal(message)
    talk.asked = message["id"] - 1
    return talk.ask(wire.encode_observation(message["observation"]), message["legal"], **message["clock"])


def sent_over(message: Mapping[str, Any]) -> bytes:
    return in_deal(message).over(message["places"], message["points"], message["reason"])


SENDERS: dict[tuple[str, bool], Callable[[Mapping[str, Any]], bytes]] = {
    ("hello", False): sent_hello,
    ("deal", False): sent_deal,
    ("ask", False): sent_ask,
    ("over", False): sent_over,
    ("bye", False): lambda message: playing().bye(),
}


def test_every_frame_is_the_json_above_it() -> None:
    for lines in blocks("json frame"):
        message, data = split_frame(lines)
        assert encoded(message) == data
        assert int.from_bytes(data[:4], "big") == len(data) - 4
        assert msgpack.unpackb(data[4:]) == message
        assert reframed(lines) == lines


def test_every_message_has_an_example() -> None:
    shown = [(message["type"], "limits" in message) for message, _ in map(split_frame, blocks("json frame"))]
    assert sorted(set(shown)) == sorted(
        [(kind, False) for kind in ("hello", "act", "deal", "events", "ask", "over", "bye")] + [("hello", True)]
    )


def test_messages_of_a_bot_are_understood() -> None:
    for lines in blocks("json frame"):
        message, data = split_frame(lines)
        if message["type"] == "act" or (message["type"] == "hello" and "limits" not in message):
            understood = wire.decode(data[4:])
            known = {key: value for key, value in message.items() if key in {"id", "action", "note", "protocol"}}
            assert {key: getattr(understood, key) for key in known} == known


# Luck


def luck_vector(asked: Mapping[str, Any]) -> object:
    """Return what a vector must say."""
    key = bytes.fromhex(asked["key"])
    match asked["what"]:
        case "words":
            stream = Stream(key, asked["purpose"], *asked["ids"])
            return [f"{stream.word():016x}" for _ in range(len(asked["gives"]))]
        case "below":
            stream = Stream(key, asked["purpose"], *asked["ids"])
            return [stream.below(n) for n in asked["n"]]
        case "shuffle":
            return Stream(key, asked["purpose"], *asked["ids"]).shuffled(asked["items"])
        case "derive":
            return derive(key, asked["purpose"], *asked["ids"]).hex()
        case "deck":
            game = GAMES[asked["game"]]
            return " ".join(deck_order(game.deck(complete_options(game, asked["seats"], {})), key))
        case "seeds":
            return [bot_seed(key, seat) for seat in range(len(asked["gives"]))]
    raise AssertionError(asked["what"])


def with_luck(line: str) -> str:
    asked = json.loads(line)
    return json.dumps({**asked, "gives": luck_vector(asked)})


def test_luck_vectors() -> None:
    (lines,) = blocks("json luck")
    assert [with_luck(line) for line in lines] == lines
    assert {json.loads(line)["what"] for line in lines} == {"words", "below", "shuffle", "derive", "deck", "seeds"}


# Worked deals


def worked(lines: Lines) -> Lines:
    """Return a worked deal as it must look, given its header and the actions in it."""
    header = json.loads(lines[0])
    game, seat, key = GAMES[header["game"]], header["seat"], bytes.fromhex(header["deck_key"])
    options = complete_options(game, header["seats"], {})
    state, events = deal(game, options, header["seats"], key)
    talk = playing()
    seed = bot_seed(key, seat)
    result = [json.dumps(header), sent(talk.deal(game.name, game.version, options, header["seats"], seat, seed))]
    tell(talk, seat, events)
    for action in actions(lines, seat):
        if action[0] == seat:
            view = wire.encode_observation(state.observation(seat))
            result.append(sent(talk.ask(view, state.legal_actions(seat), 1000, 20000)))
            act = {"type": "act", "id": talk.asked, "action": action[1]}
            talk.receive(wire.encode(act))
            result.append(f"< {json.dumps(act)}")
        else:
            result.append(f"- {action[0]} {action[1]}")
        assert action[1] in state.legal_actions(action[0])
        state, events = state.apply(*action)
        tell(talk, seat, events)
    return [*result, finish(talk, state)]


def finish(talk: wire.Conversation, state: State) -> str:
    assert state.outcome is not None
    return sent(talk.over(state.outcome.places, state.outcome.points, state.outcome.reason))


def actions(lines: Lines, seat: Seat) -> Iterator[tuple[Seat, str]]:
    for line in lines:
        if line.startswith("< "):
            yield seat, json.loads(line[2:])["action"]
        elif line.startswith("- "):
            other, action = line[2:].split()
            yield int(other), action


def sent(data: bytes) -> str:
    return f"> {json.dumps(msgpack.unpackb(data[4:]))}"


def tell(talk: wire.Conversation, seat: Seat, events: Sequence[Event]) -> None:
    for event in events:
        if event.seen_by is None or seat in event.seen_by:
            assert talk.tell(wire.encode_event(event)) == b""


@pytest.mark.parametrize("name", sorted(GAMES))
def test_worked_deal(name: str) -> None:
    (lines,) = [lines for lines in blocks("deal") if json.loads(lines[0])["game"] == name]
    assert worked(lines) == lines


# Tables


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without backticks."""
    section = TEXT.read_text().split(f"\n{heading}\n", 1)[1]
    found = re.search(r"^\|.*?\n\|[-| ]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert found is not None
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in found[1].splitlines()]


def test_conversation_table_is_the_one_of_the_wire() -> None:
    rows = table("## The conversation")
    assert wire.__doc__ is not None
    text = wire.__doc__.split("    state ")[1].split("\n\n")[0].splitlines()[1:]
    assert ["".join(row).replace("/", "|").replace(" ", "") for row in rows] == [line.replace(" ", "") for line in text]
    assert [row[0] for row in rows] + ["closed"] == [state.value for state in wire.State]


def test_every_fault_is_explained_and_no_other() -> None:
    rows = table("## Faults")
    assert [(row[0], row[1]) for row in rows] == [
        (kind.value, detail) for kind in FaultKind for detail in FAULT_DETAILS[kind]
    ]
    assert all(row[2] for row in rows)


def test_what_to_do_about_a_fault_is_said_in_one_way() -> None:
    told = {(row[0], row[1]): row[3] for row in table("## Faults")}
    assert told == {(kind.value, detail): text.replace("`", "") for (kind, detail), text in FAULT_ADVICE.items()}


def test_limits_are_those_of_the_wire() -> None:
    values = {row[0]: row[1] for row in table("## Limits")}
    assert values["body to a bot"] == f"{wire.TO_BOT_BYTES} bytes"
    assert values["body from a bot"] == f"{wire.FROM_BOT_BYTES} bytes"
    assert values["events before they are sent ahead"] == f"{wire.BACKLOG_BYTES} bytes"
    assert values["note"] == f"{wire.NOTE_BYTES} bytes"
    assert values["answers to older asks in a deal"] == str(wire.STALE_ANSWERS)


def test_environment_is_complete() -> None:
    assert [row[0] for row in table("## A bot's process")] == list(environment("/r", "/h"))


@pytest.mark.parametrize("name", sorted(GAMES))
def test_every_key_and_event_is_described(name: str) -> None:
    """All that random play of every seat count brings is in the tables, and the tables name nothing else."""
    seen_keys: set[str] = set()
    seen_events: dict[str, set[str]] = {}
    for state, events in random_play(name):
        for seat in state.actors:
            seen_keys |= set(state.observation(seat))
        for event in events:
            seen_events.setdefault(event.kind, set()).update(event.data)
    assert sorted(row[0] for row in table(f"### Observation of {name}")) == sorted(seen_keys)
    described = {row[0]: {key for key in row[1].split(", ") if key} for row in table(f"### Events of {name}")}
    rare = {"durak": {"redeal": {"number"}, "transfer": {"seat", "card", "defender"}}}
    assert described == {**rare.get(name, {}), **seen_events}


def random_play(name: str) -> Iterator[tuple[State, Sequence[Event]]]:
    game = GAMES[name]
    for number, seats in enumerate([*game.seats] * 2):
        luck = Stream(bytes([number]) * 32, "play")
        state, events = deal(game, complete_options(game, seats, {}), seats, bytes([number]) * 32)
        yield state, events
        while state.actors:
            seat = state.actors[0]
            legal = state.legal_actions(seat)
            state, events = state.apply(seat, legal[luck.below(len(legal))])
            yield state, events


def regenerated(text: str) -> str:
    def renew(found: re.Match[str]) -> str:
        kind, lines = found[1], found[2].splitlines()
        if kind == "json frame":
            lines = reframed(lines)
        elif kind == "json luck":
            lines = [with_luck(line) for line in lines]
        else:
            lines = worked(lines)
        return f"```{kind}\n" + "".join(f"{line}\n" for line in lines) + "```"

    return FENCE.sub(renew, text)


def test_nothing_needs_regenerating(request: pytest.FixtureRequest) -> None:
    text = TEXT.read_text()
    renewed = regenerated(text)
    if request.config.getoption("--regen"):
        TEXT.write_text(renewed)
    else:
        assert renewed == text
