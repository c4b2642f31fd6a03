"""Streams that are nearly right, cut anywhere: a message or a fault, in bounded memory and bounded steps."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from types import FrameType

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arena import wire
from arena.errors import BotError, FaultKind
from arena.wire import Act, Conversation, State
from tests.fuzz.dialogue import READ_BYTES, STARTS, converse

# Bodies: a message with something wrong in one place

CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("\0\x1b\x7f\u202e\u2028\ufeff\U000e0001")
INTEGERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(-2, 6)
SCALARS = (
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats()
    | st.text(CHARACTERS, max_size=80)
    | st.binary(max_size=8)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=6))
)
VALUES = st.recursive(SCALARS, lambda some: st.lists(some, max_size=3) | st.dictionaries(SCALARS, some, max_size=3))
BYTES = VALUES.map(lambda value: bytes(msgpack.packb(value, unicode_errors="surrogatepass")))
ODD = st.sampled_from(
    [
        b"\xc1",  # no type of msgpack
        b"\xa3\xed\xa0\x80",  # a surrogate in UTF-8
        b"\xa2\xff\xfe",
        b"\xd9\x04type",  # a longer form than is needed
        b"\xc4\x03act",  # bytes instead of text
        b"\xd6\xff\x00\x00\x00\x01",  # a timestamp
        b"\xc7\x00\xff",  # one that is none
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\x91" * 3000 + b"\xc0",
        b"\x81\xa1k" * 1500 + b"\xc0",
    ]
)
ITEMS = BYTES | ODD
KEYS = st.sampled_from(["type", "id", "action", "note", "protocol", "name", "version", "games", "Type", ""]).map(
    msgpack.packb
)
PAIRS = st.tuples(KEYS | ITEMS, ITEMS)


def whole(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a map of encoded keys and values, in their order, however often a key comes."""
    listed = list(pairs)
    return b"\xde" + struct.pack(">H", len(listed)) + b"".join(key + value for key, value in listed)


def right(message: dict[str, object]) -> list[tuple[bytes, bytes]]:
    return [(msgpack.packb(key), msgpack.packb(value)) for key, value in message.items()]


ACTS = st.builds(
    lambda number, action, note: right({"type": "act", "id": number, "action": action, "note": note}),
    st.integers(0, 6) | st.sampled_from([299, 300, 301]),
    st.text(CHARACTERS, max_size=20),
    st.text(CHARACTERS, max_size=80),
)
HELLOS = st.builds(
    lambda protocol, games: right({"type": "hello", "protocol": protocol, "name": "b", "games": games}),
    st.sampled_from([1, 1, 1, 2]),
    st.lists(st.text(max_size=8), max_size=3),
)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Return a body of a message in which a pair was replaced, added, repeated or left out, in any order."""
    pairs = draw(ACTS | HELLOS)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(pairs)))
        more = draw(st.lists(PAIRS | st.sampled_from([*pairs, (b"\xa0", b"\xc0")]), max_size=1))
        pairs[at : at + draw(st.integers(0, 1))] = more
    return whole(draw(st.permutations(pairs)) if draw(st.booleans()) else pairs)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """Return a frame of which bytes were cut off, exchanged or doubled, or that holds another frame."""
    framed = wire.frame(draw(changed()))
    at = draw(st.integers(0, len(framed)))
    return draw(
        st.sampled_from(
            [
                framed[:at],
                framed[:at] + draw(st.binary(max_size=3)) + framed[at + 1 :],
                framed[:at] + framed[max(0, at - 4) :],
                wire.frame(framed),
                framed * 3,
            ]
        )
    )


FRAMES = (ACTS | HELLOS).map(whole).map(wire.frame)
STREAMS = st.lists(FRAMES | changed().map(wire.frame) | broken() | st.binary(max_size=30), max_size=6).map(b"".join)
SIZES = st.lists(st.integers(1, 40), max_size=30)


@given(STREAMS, SIZES, st.sampled_from(STARTS), st.booleans())
@example(wire.frame(whole(right({"type": "act", "id": 1, "action": "x"}))) * 70, [], (State.ASKED, 300), False)
@example(wire.frame(whole([*right({"type": "\x1b[2J" * 9000})])), [7], (State.ASKED, 3), True)
def test_any_stream_in_any_reads_keeps_every_promise(
    stream: bytes, sizes: list[int], start: tuple[State, int], is_early: bool
) -> None:
    converse(stream, sizes, start, is_early=is_early)


@st.composite
def answered(draw: st.DrawFn) -> tuple[bytes, list[int], tuple[State, int]]:
    """Return a stream that answers some asks, with old answers between, and then goes on in any way; and its reads."""
    state, asked = start = draw(st.sampled_from([(State.GREETING, 0), (State.ASKED, 3), (State.ASKED, 300)]))
    frames = [wire.frame(whole(right({"type": "hello", "protocol": 1})))] if state is State.GREETING else []
    first = max(1, asked)
    for number in range(first, first + draw(st.integers(0, 8))):
        old = wire.frame(whole(right({"type": "act", "id": max(1, number - 1), "action": "old"})))
        frames += [old] * draw(st.integers(0, 2)) if number > 1 else []
        frames.append(wire.frame(whole(right({"type": "act", "id": number, "action": draw(st.text(CHARACTERS))}))))
    sizes = [size for frame in frames for size in ((7, len(frame) - 7) if draw(st.booleans()) else (len(frame),))]
    return b"".join(frames) + draw(STREAMS), sizes, start


@given(answered(), st.booleans())
def test_any_stream_after_right_answers_keeps_every_promise(
    given_stream: tuple[bytes, list[int], tuple[State, int]], is_early: bool
) -> None:
    stream, sizes, start = given_stream
    converse(stream, sizes, start, is_early=is_early)


@given(changed(), st.lists(st.integers(1, 40), max_size=30), st.sampled_from(STARTS))
def test_the_reads_do_not_change_what_a_frame_comes_to(body: bytes, sizes: list[int], start: tuple[State, int]) -> None:
    assert converse(wire.frame(body), sizes, start) == converse(wire.frame(body), [], start)


# After a fault


@pytest.mark.parametrize("receive", [Conversation.receive, Conversation.waiting])
def test_after_a_fault_nothing_is_a_message(receive: Callable[[Conversation, bytes], object]) -> None:
    answer = wire.encode({"type": "act", "id": 1, "action": "pass"})
    talk = Conversation(State.ASKED, 1)
    with pytest.raises(BotError, match="ask"):
        receive(talk, wire.encode({"type": "act", "id": 2, "action": "pass"}))
    assert talk.state is State.CLOSED
    assert not talk.is_ready()
    with pytest.raises(BotError):
        talk.receive(answer)


# What stands in a fault


@pytest.mark.parametrize(
    "body",
    [
        whole([*right({"type": "\x1b[2J" * 9000}), (b"\xa1x", b"\xc1")]),
        whole([*right({"type": "\x1b[2J\u202e"}), *right({"type": "act"})]),
        whole([*right({"type": "act"}), *right({"type": "\n" * 60_000})]),
        whole(right({"type": "\U000e0001" * 400})),
        whole([*right({"type": "act", "id": "\x1b[2J"})]),
    ],
)
def test_a_fault_repeats_no_escape_and_no_long_text_of_a_bot(body: bytes) -> None:
    with pytest.raises(BotError) as error:
        Conversation(State.ASKED, 1).receive(wire.frame(body))
    assert error.value.kind is FaultKind.GARBAGE
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500
    assert error.value.evidence == body[:4096]


# Bounds

CAP = wire.FROM_BOT_BYTES


@pytest.mark.parametrize(
    "body",
    [
        b"\xde" + struct.pack(">H", 9000) + b"".join(b"\xa5%05d\xc0" % number for number in range(9000)),
        b"\x83\xa4type\xa5hello\xa8protocol\x01\xa5games\xdd" + struct.pack(">I", 65_000) + b"\xa0" * 65_000,
        b"\x83\xa4type\xa5hello\xa8protocol\x01\xa5games\xdd\xff\xff\xff\xff" + b"\xa0" * 65_000,
        b"\x83\xa4type\xa3act\xa2id\x01\xa6action\xda\xfe\x00" + b"x" * 0xFE00,
        b"\x84\xa4type\xa3act\xa2id\x01\xa6action\xa1x\xa1x" + b"\x91" * 60_000 + b"\xc0",
    ],
    ids=["keys", "games", "claimed games", "action", "nesting"],
)
@pytest.mark.parametrize("start", STARTS)
def test_the_memory_of_any_body_is_a_small_multiple_of_the_longest(body: bytes, start: tuple[State, int]) -> None:
    talk = Conversation(*start)
    tracemalloc.start()
    try:
        talk.receive(wire.frame(body))
    except BotError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20 * CAP


def steps(reads: Iterable[bytes]) -> int:
    """Return how many calls it takes to receive these, those into C too."""
    talk = Conversation(State.ASKED, 300)
    count = 0

    def counting(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        for data in reads:
            talk.receive(data)
    finally:
        sys.setprofile(None)
    assert talk.held_bytes() <= 4 + CAP + READ_BYTES
    return count


def singly(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def test_steps_are_linear_in_the_reads() -> None:
    frames = [wire.encode({"type": "act", "id": 300, "action": "x" * size}) for size in (8000, 16_000, 32_000)]
    one, two, four = (steps(singly(framed)) for framed in frames)
    assert two - one <= 8 * 8000
    assert four - two == 2 * (two - one)


def test_steps_are_linear_in_the_frames() -> None:
    old = wire.encode({"type": "act", "id": 1, "action": "x"})
    one, two, three = (steps([old * count]) for count in (20, 40, 60))
    assert three - two == two - one


def test_a_frame_in_single_bytes_is_still_an_answer() -> None:
    talk = Conversation(State.ASKED, 1)
    *some, final = singly(wire.encode({"type": "act", "id": 1, "action": "x" * (CAP - 40)}))
    assert {talk.receive(byte) for byte in some} == {None}
    assert talk.receive(final) == Act(1, "x" * (CAP - 40))
    assert talk.held_bytes() == 0
