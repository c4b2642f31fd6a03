"""Any bytes as what a bot writes, and what must then hold: the target of the fuzzer, whose corpus is kept as tests.

An input is a small program, so that a mutation of it is still a conversation:

    byte 0   where the conversation stands (low bits), and whether some reads come before their ask (high bit)
    byte 1   the size of the first reads, 0 for as much as a read takes
    then     parts of the stream: how, size, and that many bytes; `how` says what becomes of them (see `_part`)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import msgpack

from arena import wire
from arena.errors import FAULT_DETAILS, BotError, FaultKind
from arena.wire import Act, Conversation, Hello, State

READ_BYTES = (1 << 16) + 4
"""As arena.bot reads."""
STREAM_BYTES = 1 << 17
SMALL_READS = 64
ASKS_A_DEAL = 3
STARTS = (
    (State.GREETING, 0),
    (State.READY, 3),
    (State.PLAYING, 3),
    (State.ASKED, 1),
    (State.ASKED, 3),
    (State.ASKED, 300),
    (State.CLOSED, 3),
)
"""Where the conversation may stand, and the id of its last ask."""


class Pairs(list[tuple[object, object]]):
    """A map as another decoder reads it, in order, with whatever keys."""


def examine(data: bytes) -> list[str]:
    """Let a bot write what an input says; see `converse`."""
    if len(data) < 2:
        return []
    stream = b"".join(_parts(data))[:STREAM_BYTES]
    sizes = repeat(data[1] or READ_BYTES, SMALL_READS)
    return converse(stream, sizes, STARTS[(data[0] & 127) % len(STARTS)], is_early=bool(data[0] & 128))


def converse(stream: bytes, sizes: Iterable[int], start: tuple[State, int], *, is_early: bool = False) -> list[str]:
    """Let a bot write a stream, check all that was promised, and return what it came to, in words.

    Args:
        sizes: of the first reads; what is left is read as arena.bot would.
        start: one of `STARTS`.
        is_early: some reads come before their ask.
    """
    dialogue = Dialogue(stream, *start, is_early)
    at = 0
    for size in chain(sizes, repeat(READ_BYTES)):
        if at >= len(stream) or not dialogue.take(stream[at : at + size]):
            return dialogue.told
        at += size
    raise AssertionError("never reached")


def _parts(data: bytes) -> Iterator[bytes]:
    at = 2
    while at + 2 <= len(data):
        how, size = data[at], data[at + 1]
        yield _part(how, data[at + 2 : at + 2 + size])
        at += 2 + size


def _part(how: int, data: bytes) -> bytes:
    number = how >> 2
    match how & 3:
        case 0:
            return data
        case 1:
            return wire.frame(data)
        case 2:  # a long body: its last byte again and again, then its first ones
            long = data[number:] + data[-1:] * (1 << (number & 15)) + data[:number]
            return wire.frame(long)
        case _:
            rest = data or b"\xa6action\xa1x"
            return wire.frame(b"\x83\xa4type\xa3act\xa2id" + msgpack.packb(number) + rest)


class Dialogue:
    """A referee without a game: it asks as long as it is answered, and checks what it is told.

    Attributes:
        told: what happened, in words.
    """

    def __init__(self, stream: bytes, state: State, asked: int, is_early: bool) -> None:
        self.talk = Conversation(state, asked)
        self.told: list[str] = []
        self._is_early = is_early
        self._is_over = False
        self._answers = 0
        self._bodies = _bodies(stream)

    def take(self, data: bytes) -> bool:
        """Take a read; return whether the conversation goes on."""
        talk, state = self.talk, self.talk.state
        is_early = self._is_early and state is State.ASKED and talk.asked % 2 == 0 and not talk.held_bytes()
        message = self._hear(data, is_early)
        assert talk.held_bytes() <= 4 + wire.FROM_BOT_BYTES + READ_BYTES
        if message is not None:
            self._check_message(message, state)
            self._ask()
        elif not self._is_over:
            assert talk.state is state
            assert talk.held_bytes() < 4 + wire.FROM_BOT_BYTES
        return not self._is_over

    def _hear(self, data: bytes, is_early: bool) -> Hello | Act | None:
        """Receive bytes, or look at those that came before an ask; keep count of what was dropped."""
        talk, dropped = self.talk, self.talk.stale
        message, fault = None, None
        try:
            if is_early:
                talk.waiting(data)
                assert not talk.held_bytes()
            else:
                message = talk.receive(data)
        except BotError as error:
            fault = error
        assert dropped <= talk.stale <= wire.STALE_ANSWERS + 1
        for _ in range(talk.stale - dropped):
            next(self._bodies)
        if fault is not None:
            self._is_over = True
            self._check_error(fault)
        return message

    def _check_message(self, message: Hello | Act, state: State) -> None:
        body = next(self._bodies)
        if isinstance(message, Hello):
            assert (state, self.talk.state) == (State.GREETING, State.READY)
            assert type(message.protocol) is int
            assert message.protocol == wire.PROTOCOL
            texts = [message.name, message.version, *message.games]
        else:
            assert (state, self.talk.state) == (State.ASKED, State.PLAYING)
            assert type(message.id) is int
            assert message.id == self.talk.asked
            texts = [message.action, message.note]
        assert all(type(text) is str and len(text.encode()) <= len(body) for text in texts)
        self._check_against_another_decoder(message, body)
        self.told.append(type(message).__name__.lower())

    def _check_against_another_decoder(self, message: Hello | Act, body: bytes) -> None:
        if (pairs := _pairs(body)) is None:
            return
        read = dict(pairs)
        keys = ("protocol", "name", "version") if isinstance(message, Hello) else ("id", "action", "note")
        for key in keys:
            assert key not in read or read[key] == getattr(message, key), (key, read)

    def _check_error(self, error: BotError) -> None:
        assert error.kind in (FaultKind.GARBAGE, FaultKind.FLOOD)
        assert error.detail in FAULT_DETAILS[error.kind]
        assert error.detail != "stderr"
        text = str(error)
        assert text.isprintable(), text
        assert 10 < len(text) < 600, text
        assert type(error.evidence) is bytes
        assert len(error.evidence) <= 4096
        if error.detail == "malformed":
            assert not _is_right(next(self._bodies)), "it is well-formed"
        self.told.append(error.detail)
        assert self.talk.state is State.CLOSED
        assert not self.talk.is_ready()
        try:
            later = self.talk.receive(_ANSWER)
        except BotError:
            later = None
        assert later is None, "something was accepted after a fault"

    def _ask(self) -> None:
        """Do what a referee does after a message: the next ask, sometimes in the next deal."""
        talk = self.talk
        if talk.state is State.PLAYING:
            self._answers += 1
            if self._answers % ASKS_A_DEAL == 0:
                talk.over((1, 2), (0, 0), "end")
        if talk.state is State.READY:
            talk.deal("durak", 1, {}, 2, 0, 1)
        talk.ask(b"\xc0", ("x",), 1, 1)
        self._hear(b"", is_early=True)


_ANSWER = wire.encode({"type": "act", "id": 3, "action": "x"})


def _bodies(stream: bytes) -> Iterator[bytes]:
    """Cut a stream into bodies, as simply as protocol.md says it."""
    at = 0
    while at + 4 <= len(stream):
        (length,) = struct.unpack_from(">I", stream, at)
        yield stream[at + 4 : at + 4 + length]
        at += 4 + length


def _pairs(body: bytes) -> Pairs | None:
    """Return a body as another decoder reads it; None if that refuses it, which for keys to be ignored it may."""
    try:
        read = msgpack.unpackb(
            body, strict_map_key=False, object_pairs_hook=Pairs, unicode_errors="surrogateescape", use_list=False
        )
    except (ValueError, msgpack.UnpackException):
        return None
    return read if isinstance(read, Pairs) else None


def _is_right(body: bytes) -> bool:
    """Tell whether a body is an act or a hello of this protocol beyond doubt, as another decoder reads it."""
    if (pairs := _pairs(body)) is None or not all(isinstance(key, str) for key, _ in pairs):
        return False
    read = dict(pairs)
    if len(read) < len(pairs):
        return False  # of keys that come twice nothing is promised
    text = {"note": "", "name": "", "version": ""} | {key: value for key, value in read.items() if key != "type"}
    games = text.get("games", ())
    if not all(map(_is_text, (text["note"], text["name"], text["version"]))):
        return False
    if read.get("type") == "act":
        return type(read.get("id")) is int and _is_text(read.get("action"))
    is_hello = read.get("type") == "hello" and read.get("protocol") == wire.PROTOCOL
    return is_hello and type(read["protocol"]) is int and isinstance(games, tuple) and all(map(_is_text, games))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)
