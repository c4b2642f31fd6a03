"""The protocol without I/O: any bytes in any pieces give messages or a BotError, each with its exact detail."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arena import wire
from arena.errors import BotError, FaultKind
from arena.records import Clock
from arena.rules import Event, Value
from arena.wire import Act, Conversation, Frames, Hello, State

READ_BYTES = (1 << 16) + 4
"""No more is read, and fed, at once."""


def framed(message: object) -> bytes:
    return wire.frame(msgpack.packb(message))


def act(number: int, action: str = "pass", **more: object) -> bytes:
    return framed({"type": "act", "id": number, "action": action, **more})


HELLO = framed({"type": "hello", "protocol": 1, "name": "dice", "version": "1", "games": ["durak"]})


def greeted() -> Conversation:
    talk = Conversation()
    talk.hello(Clock(), 512)
    talk.receive(HELLO)
    return talk


def playing() -> Conversation:
    talk = greeted()
    talk.deal("durak", 1, {"deck": 36}, 2, 0, 7)
    return talk


def asked(times: int = 1) -> Conversation:
    """Return a conversation in which all but the last of some asks are answered."""
    talk = playing()
    for number in range(1, times):
        ask(talk)
        talk.receive(act(number))
    ask(talk)
    return talk


def ask(talk: Conversation, decision_ms: int = 1000, observation: object = None) -> bytes:
    return talk.ask(wire.encode_observation({"hand": observation}), ("pass", "take"), decision_ms, 20000)


def body(data: bytes) -> dict[str, Any]:
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    message: dict[str, Any] = msgpack.unpackb(data[4:])
    return message


def fault(error: pytest.ExceptionInfo[BotError]) -> tuple[str, str]:
    return error.value.kind.value, error.value.detail


# What is sent


def test_a_whole_conversation() -> None:
    talk = Conversation()
    hello = body(talk.hello(Clock(decision_ms=5), 256))
    assert (hello["type"], hello["protocol"], hello["limits"]["decision_ms"], hello["limits"]["memory_mib"]) == (
        "hello",
        1,
        5,
        256,
    )
    assert not talk.is_ready()
    assert talk.receive(HELLO) == Hello(1, "dice", "1", ("durak",))
    assert talk.is_ready()
    options: dict[str, Value] = {"chain": False, "deck": 36, "max_attack": "none"}
    deal = {"game": "durak", "version": 1, "options": options, "seats": 2, "seat": 1, "seed": (1 << 53) - 1}
    assert body(talk.deal("durak", 1, options, 2, 1, (1 << 53) - 1)) == {"type": "deal", **deal}
    assert talk.tell(wire.encode_event(Event("take", {"seat": 0}))) == b""
    assert body(ask(talk)) == {
        "type": "ask",
        "id": 1,
        "events": [{"kind": "take", "seat": 0}],
        "observation": {"hand": None},
        "legal": ["pass", "take"],
        "clock": {"decision_ms": 1000, "bank_ms": 20000},
    }
    assert talk.receive(act(1, "take", note="why not")) == Act(1, "take", "why not")
    assert body(talk.over((1, 2), (0, -3), "durak")) == {
        "type": "over",
        "events": [],
        "places": [1, 2],
        "points": [0, -3],
        "reason": "durak",
    }
    assert body(talk.bye()) == {"type": "bye"}
    assert talk.state is State.CLOSED


def test_ids_count_over_deals_and_stale_answers_do_not() -> None:
    talk = asked(3)
    talk.receive(act(1))
    talk.receive(act(3))
    assert (talk.asked, talk.stale) == (3, 1)
    talk.over((1, 1), (0, 0), "draw")
    talk.deal("durak", 1, {}, 2, 0, 8)
    assert (body(ask(talk))["id"], talk.stale) == (4, 0)


def test_a_conversation_can_be_followed_from_a_record() -> None:
    talk = Conversation(State.READY, 41)
    talk.deal("durak", 1, {}, 2, 0, 8)
    assert body(ask(talk))["id"] == 42


@pytest.mark.parametrize("count", [0, 15, 16, 300])
def test_events_come_in_order_whatever_their_number(count: int) -> None:
    talk = playing()
    for number in range(count):
        assert talk.tell(wire.encode_event(Event("pass", {"seat": number}))) == b""
    assert [event["seat"] for event in body(ask(talk))["events"]] == list(range(count))
    talk.receive(act(1))
    assert body(ask(talk))["events"] == []


def event_of(size: int) -> bytes:
    made = wire.encode_event(Event("say", {"text": "x" * size}))
    return wire.encode_event(Event("say", {"text": "x" * (2 * size - len(made))}))


def test_a_backlog_is_sent_ahead_as_soon_as_it_is_too_long() -> None:
    talk = playing()
    half = event_of(wire.BACKLOG_BYTES // 2)
    assert talk.tell(half) == b""
    assert talk.tell(half) == b""
    sent = body(talk.tell(wire.encode_event(Event("pass", {"seat": 0}))))
    assert (sent["type"], [event["kind"] for event in sent["events"]]) == ("events", ["say", "say", "pass"])
    assert body(ask(talk))["events"] == []


SENDERS: dict[str, Callable[[Conversation], bytes]] = {
    "hello": lambda talk: talk.hello(Clock(), 512),
    "deal": lambda talk: talk.deal("durak", 1, {}, 2, 0, 7),
    "ask": ask,
    "over": lambda talk: talk.over((1, 2), (0, 0), "durak"),
    "bye": lambda talk: talk.bye(),
}
MAY_SEND: dict[State, set[str]] = {
    State.NEW: {"hello"},
    State.GREETING: set(),
    State.READY: {"deal", "bye"},
    State.PLAYING: {"ask", "over"},
    State.ASKED: set(),
    State.CLOSED: set(),
}


@pytest.mark.parametrize("state", State)
def test_only_what_the_table_says_is_sent(state: State) -> None:
    for name, send in SENDERS.items():
        talk = Conversation(state)
        if name in MAY_SEND[state]:
            assert send(talk)
        else:
            with pytest.raises(AssertionError, match=state.value):
                send(talk)
            assert talk.state is state


# Digests


def test_the_digest_covers_every_body_of_the_deal_but_no_clock() -> None:
    talk = playing()
    whole = greeted().deal("durak", 1, {"deck": 36}, 2, 0, 7)[4:]
    assert talk.digest() == hashlib.sha256(whole).digest()
    event = event_of(wire.BACKLOG_BYTES)
    whole += talk.tell(event)[4:]
    sent = ask(talk)[5:]
    whole += sent[: sent.index(b"\xa5clock")]
    talk.receive(act(1))
    whole += talk.over((1, 2), (0, 0), "durak")[4:]
    assert talk.digest() == hashlib.sha256(whole).digest()


def test_the_digest_tells_observations_but_not_clocks_apart() -> None:
    def digest(decision_ms: int, observation: str) -> bytes:
        talk = playing()
        ask(talk, decision_ms, observation)
        return talk.digest()

    assert digest(1000, "7s") == digest(1, "7s") != digest(1000, "8s")


def test_each_deal_has_its_own_digest() -> None:
    talk = greeted()
    digests = []
    for seed in (7, 8, 7):
        talk.deal("durak", 1, {}, 2, 0, seed)
        talk.over((1, 2), (0, 0), "durak")
        digests.append(talk.digest())
    assert digests[0] == digests[2] != digests[1]


# Any pieces


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    start = 0
    for end in ends:
        yield data[start:end]
        start = end


def bodies(fed: Iterator[bytes]) -> list[bytes]:
    frames, found = Frames(), []
    for piece in fed:
        frames.feed(piece)
        while (taken := frames.take()) is not None:
            found.append(taken)
    assert not frames
    return found


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 400), max_size=12))
@example([b"", b"x" * wire.FROM_BOT_BYTES], [1, 2, 3])
def test_any_pieces_give_the_same_bodies(sent: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(wire.frame, sent))
    assert bodies(pieces(data, cuts)) == sent


@given(st.lists(st.integers(0, 200), max_size=8))
def test_any_pieces_give_the_same_answer(cuts: list[int]) -> None:
    data = act(1) + act(2) + act(3, "take")
    talk = asked(3)
    *early, last = list(pieces(data, cuts))
    assert [talk.receive(piece) for piece in early if piece] == [None] * len([piece for piece in early if piece])
    assert (talk.receive(last), talk.stale) == (Act(3, "take"), 2)


# Any bytes

LENGTHS = st.integers(0, 80) | st.sampled_from([wire.FROM_BOT_BYTES, wire.FROM_BOT_BYTES + 1, (1 << 32) - 1])
NOISE = st.binary(max_size=80)
MAPS = st.dictionaries(
    st.sampled_from(["type", "id", "action", "note", "protocol", "games", "x"]) | st.integers(0, 3),
    st.sampled_from(["act", "hello", "ask", "pass", b"act", None, True, 1, 2, -1, 1.0, ["durak"], {"a": 1}, 1 << 63])
    | st.text(max_size=5),
    max_size=6,
).map(msgpack.packb)
BROKEN = st.tuples(MAPS, st.integers(0, 60), NOISE).map(lambda t: t[0][: t[1]] + t[2])
STREAMS = (
    NOISE | (MAPS | BROKEN).map(wire.frame) | st.tuples(LENGTHS, NOISE).map(lambda t: t[0].to_bytes(4, "big") + t[1])
)


def outcome(take: Callable[[bytes], object], data: bytes) -> object:
    """Return what it returns or the BotError it raises; nothing else may be raised."""
    try:
        return take(data)
    except BotError as error:
        return error


@given(st.lists(STREAMS, max_size=4).map(b"".join), st.lists(st.integers(0, 400), max_size=4), st.sampled_from(State))
@example(wire.frame(msgpack.packb({"type": "act"}) + b"\xff"), [], State.ASKED)
@example(wire.frame(b"\x81\xa4type\xa3\xff\xfe\xfd"), [], State.ASKED)
@example(wire.frame(b"\x83\xa4type\xa3act\xa2id\x01\xa6action\xa1\xff"), [], State.ASKED)
@example(wire.frame(b"\x91" * 60000 + b"\xc0"), [], State.ASKED)
@example(wire.frame(b"\x82\xa4type\xa3act\xa1x" + b"\x91" * 60000 + b"\xc0"), [], State.ASKED)
def test_any_bytes_give_a_message_or_a_bot_error(data: bytes, cuts: list[int], state: State) -> None:
    talk = Conversation(state, 3)
    for piece in pieces(data, cuts):
        came = outcome(talk.receive, piece)
        assert came is None or isinstance(came, (Act, Hello, BotError))
        if isinstance(came, BotError):
            assert came.kind in (FaultKind.GARBAGE, FaultKind.FLOOD)
            assert len(came.evidence) <= 4096
            return


@given(st.lists(STREAMS, max_size=4).map(b"".join))
def test_any_bytes_may_wait(data: bytes) -> None:
    talk = Conversation(State.ASKED, 3)
    came = outcome(talk.waiting, data)
    if isinstance(came, BotError):
        assert came.kind in (FaultKind.GARBAGE, FaultKind.FLOOD)
    else:
        assert not talk.is_partial()


@pytest.mark.parametrize(
    "data",
    [
        (1 << 31).to_bytes(4, "big") + b"x" * (READ_BYTES - 4),
        wire.frame(b"\xdd\xff\xff\xff\xff" + b"\x80" * (wire.FROM_BOT_BYTES - 5)),
        wire.frame(b"\xdf\x00\x00\x40\x00" + b"\xa0\x80" * ((wire.FROM_BOT_BYTES - 5) // 2)),
        wire.frame(b"\xc6\xff\xff\xff\xff" + b"x" * (wire.FROM_BOT_BYTES - 5)),
        wire.frame(b"\x81\xa4type\xdd\x00\x00\xff\x00" + b"\x80" * 0xFF00),
    ],
    ids=["length", "array", "map", "binary", "maps"],
)
def test_memory_is_bounded(data: bytes) -> None:
    talk = asked()
    tracemalloc.start()
    try:
        with pytest.raises(BotError):
            talk.receive(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * wire.FROM_BOT_BYTES


def test_a_frame_is_refused_before_it_is_buffered() -> None:
    frames = Frames()
    frames.feed((wire.FROM_BOT_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(BotError) as error:
        frames.take()
    assert fault(error) == ("garbage", "oversize")


# Each fault


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"hello there\n", "text"),
        (b"\tok\r\n", "text"),
        (b"\n\n\n\n", "text"),
        (b"\x00\x01\x00\x01", "oversize"),
        (b"ok\xd0\xbe", "oversize"),
        (wire.frame(b""), "malformed"),
        (wire.frame(b"\xc1"), "malformed"),
        (framed([1]), "malformed"),
        (wire.frame(b"\xc0" * 25), "malformed"),
        (framed({1: 2}), "malformed"),
        (framed({}), "malformed"),
        (framed({"type": 5}), "malformed"),
        (framed({"type": None, "id": 1, "action": "pass"}), "malformed"),
        (framed({"type": b"act", "id": 1, "action": "pass"}), "malformed"),
        (framed({"type": "act", "id": 1}), "malformed"),
        (framed({"type": "act", "action": "pass"}), "malformed"),
        (framed({"type": "act", "id": "1", "action": "pass"}), "malformed"),
        (framed({"type": "act", "id": True, "action": "pass"}), "malformed"),
        (framed({"type": "act", "id": 1, "action": b"pass"}), "malformed"),
        (framed({"type": "act", "id": 1, "action": None}), "malformed"),
        (framed({"type": "act", "id": 1, "action": "pass", "note": 1}), "malformed"),
        (framed({"type": "act", "id": 1, "action": "pass", 5: 1}), "malformed"),
        (wire.frame(msgpack.packb({"type": "act", "id": 1, "action": "pass"}) + b"\xc0"), "malformed"),
        (wire.frame(b"\x83\xa4type\xa3act\xa2id\x01\xa6action\xa2\xff\xff"), "malformed"),
        (wire.frame(b"\x83\xa4type\xa3act\xa2id\x01\xa6action\xa3\xed\xa0\x80"), "malformed"),
        (wire.frame(b"\x81\xa4type\xa2\xff\xff"), "malformed"),
        (framed({"type": "ask", "id": 1}), "type"),
        (framed({"type": "", "id": 1}), "type"),
        (framed({"type": "x" * 60000}), "type"),
        (HELLO, "type"),
        (act(2), "id"),
        (act(0), "id"),
        (act(-1), "id"),
        (act(1 << 63), "id"),
    ],
)
def test_garbage_while_asked(data: bytes, detail: str) -> None:
    with pytest.raises(BotError) as error:
        asked().receive(data)
    assert fault(error) == ("garbage", detail)
    assert len(str(error.value)) < 400


def test_text_is_told_from_an_oversized_frame_by_what_it_says() -> None:
    with pytest.raises(BotError, match="'thinking about it' to stdout") as error:
        asked().receive(b"thinking about it\nmore")
    assert error.value.evidence == b"thinking about it\nmore"


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (framed({"type": "hello", "protocol": 2}), "malformed"),
        (framed({"type": "hello"}), "malformed"),
        (framed({"type": "hello", "protocol": 1, "games": "durak"}), "malformed"),
        (act(1), "type"),
    ],
)
def test_garbage_instead_of_a_hello(data: bytes, detail: str) -> None:
    talk = Conversation()
    talk.hello(Clock(), 512)
    with pytest.raises(BotError) as error:
        talk.receive(data)
    assert fault(error) == ("garbage", detail)


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (act(3), "id"),
        (act(4), "id"),
        (act(0), "id"),
        (HELLO, "id"),
        (act(1)[:-1], "id"),
        (b"ok", "id"),
        (b"okay", "text"),
        (framed({"type": "x"}), "type"),
        (framed(5), "malformed"),
        (b"\xff\xff\xff\xff", "oversize"),
    ],
)
def test_garbage_that_waits_before_an_ask(data: bytes, detail: str) -> None:
    with pytest.raises(BotError) as error:
        asked(3).waiting(data)
    assert fault(error) == ("garbage", detail)


def test_what_came_with_an_answer_waits_for_the_next_ask() -> None:
    talk = asked()
    assert talk.receive(act(1) + act(2)) == Act(1, "pass")
    assert talk.is_partial()
    ask(talk)
    with pytest.raises(BotError) as error:
        talk.waiting(b"")
    assert fault(error) == ("garbage", "id")


def test_unknown_keys_are_ignored_whatever_they_hold() -> None:
    more = msgpack.packb(
        {"type": "act", "x": {"y": [b"\xff", 1.5, msgpack.ExtType(7, b"z")]}, "id": 1, "action": "pass"}
    )
    assert asked().receive(wire.frame(more)) == Act(1, "pass")


def test_any_encoding_of_an_answer_is_understood() -> None:
    long = b"\xdf\x00\x00\x00\x03\xdb\x00\x00\x00\x04type\xd9\x03act\xda\x00\x02id\xd3" + (1).to_bytes(8, "big")
    assert asked().receive(wire.frame(long + b"\xa6action\xd9\x04pass")) == Act(1, "pass")


def test_answers_to_older_asks_are_dropped_and_counted() -> None:
    talk = asked(3)
    assert talk.receive(act(1) + act(2)) is None
    talk.waiting(act(2))
    assert talk.receive(act(1) + act(3)) == Act(3, "pass")
    assert talk.stale == 4


def test_too_many_of_them_are_a_flood() -> None:
    talk = asked(2)
    assert talk.receive(act(1) * wire.STALE_ANSWERS) is None
    with pytest.raises(BotError) as error:
        talk.receive(act(1))
    assert fault(error) == ("flood", "stdout")
