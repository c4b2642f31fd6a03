"""The protocol without I/O: bytes to a bot out, bytes from a bot in, messages and faults between.

A frame is a length (u32 big-endian) and one msgpack map. `protocol.md` is the normative text. The referee's side of a
conversation moves through these states; anything else a bot sends is a fault, anything else we send is a bug:

    state     we send            then      the bot sends   then
    new       hello              greeting
    greeting                               hello           ready
    ready     deal | bye         playing | closed
    playing   events | ask | over  playing | asked | ready
    asked                                  act             playing

An act with an older id than the one asked for is dropped and counted, in whatever state it is read. After a fault the
conversation is closed: nothing that comes later is a message.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

import msgspec

from arena.errors import BotError, FaultKind
from arena.records import Clock
from arena.rules import Data, Event, Options, Seat

PROTOCOL = 1
"""The one integer both sides must agree on."""
TO_BOT_BYTES = 1 << 20
"""No body we send is longer; a game whose observation is would be our bug."""
FROM_BOT_BYTES = 1 << 16
"""A longer body from a bot is garbage; checked before any of it is buffered."""
BACKLOG_BYTES = 1 << 16
"""Events are sent ahead of the next ask once their bodies are longer than this together."""
NOTE_BYTES = 64
"""A longer note is cut."""
STALE_ANSWERS = 64
"""More answers to older asks than this before one to the present ask are a flood."""
WHY_CHARACTERS = 160
"""Of the decoder's own words in the text of a fault."""

_LENGTH = struct.Struct(">I")
_pack = msgspec.msgpack.Encoder().encode  # a third of the time of msgpack's own packer, the same bytes


class State(Enum):
    """Where the referee's side of a conversation stands; the table is in the module's docstring."""

    NEW = "new"
    GREETING = "greeting"
    READY = "ready"
    PLAYING = "playing"
    ASKED = "asked"
    CLOSED = "closed"


class Hello(msgspec.Struct, frozen=True, tag_field="type", tag="hello"):
    """A bot's first message."""

    protocol: int
    name: str = ""
    version: str = ""
    games: tuple[str, ...] = ()


class Act(msgspec.Struct, frozen=True, tag_field="type", tag="act"):
    """A bot's answer to an ask."""

    id: int
    action: str
    note: str = ""


class _Header(msgspec.Struct):
    """What any message has; the rest of it is skipped, so that it takes no memory."""

    type: str


_decode = msgspec.msgpack.Decoder(Hello | Act).decode
_decode_header = msgspec.msgpack.Decoder(_Header).decode


def frame(body: bytes) -> bytes:
    """Return a body with its length before it."""
    return _LENGTH.pack(len(body)) + body


def encode(message: Mapping[str, object]) -> bytes:
    """Return a message as a frame."""
    return frame(_pack(message))


def encode_observation(observation: Data) -> bytes:
    """Return an observation as it stands in an ask."""
    return _pack(observation)


def encode_event(event: Event) -> bytes:
    """Return an event as it stands in messages; encoded once and shared by all seats that see it."""
    return _pack(event.message())


def _list_header(count: int) -> bytes:
    return bytes((0x90 | count,)) if count < 16 else b"\xdc" + struct.pack(">H", count)


def decode(body: bytes) -> Hello | Act:
    """Decode a body from a bot.

    Raises:
        BotError: garbage/malformed for anything but one well-formed map with the keys of its type, garbage/type for
            a message of unknown type. Work and memory are bounded by the body's length.
    """
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _why_undecodable(body, error) from None


def _why_undecodable(body: bytes, error: Exception) -> BotError:
    # The decoder's own words repeat what stands for a `type`, of any length and with any characters.
    why = "".join(letter if letter.isprintable() else "?" for letter in str(error)[:WHY_CHARACTERS])
    try:
        kind = _decode_header(body).type
    except (msgspec.DecodeError, RecursionError):
        return _garbage("malformed", f"a frame is not one msgpack map with string keys and a `type` ({why})", body)
    if kind in ("hello", "act"):
        return _garbage("malformed", f"a message of type {kind!r} is not as protocol.md says ({why})", body)
    return _garbage("type", f"a message of type {kind[:40]!r} is none that a bot may send (hello, act)", body)


def _garbage(
    detail: Literal["text", "oversize", "malformed", "type", "id"], text: str, evidence: bytes = b""
) -> BotError:
    return BotError(FaultKind.GARBAGE, detail, text, evidence)


class Frames:
    """Cuts a bot's bytes into bodies, holding at most one frame and what came with it.

    Work is linear in the bytes that come, in whatever pieces: a bytearray grows and loses its front without a copy.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def __len__(self) -> int:
        """Return how many bytes wait that are not yet taken."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        self._buffer += data

    def take(self) -> bytes | None:
        """Return the next whole body, or None while it is incomplete.

        Raises:
            BotError: garbage/text or garbage/oversize, as soon as the length is known to be above the cap.
        """
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        (length,) = _LENGTH.unpack_from(buffer)
        if length > FROM_BOT_BYTES:
            raise _too_long(length, bytes(buffer))
        end = 4 + length
        if len(buffer) < end:
            return None
        body = bytes(buffer[4:end])
        del buffer[:end]
        return body


def _too_long(length: int, buffer: bytes) -> BotError:
    start = buffer[:64]
    if all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start[:4]):
        text = start.decode("ascii", "replace").splitlines()[0]
        return _garbage(
            "text",
            f"your bot wrote the text {text!r} to stdout, which is for the protocol alone",
            buffer,
        )
    return _garbage("oversize", f"a frame of {length} bytes is longer than {FROM_BOT_BYTES}", buffer)


class Conversation:
    """The referee's side of the dialogue with one bot process.

    Methods that send return the bytes to write. `receive` takes the bytes that were read.

    Attributes:
        state: where it stands.
        asked: the id of the last ask; 0 before the first. Ids count 1, 2, ... per process.
        stale: answers with an older id, dropped in this deal.
    """

    def __init__(self, state: State = State.NEW, asked: int = 0) -> None:
        """Start a conversation; one that is followed again from a record starts READY after a known id."""
        self.state = state
        self.asked = asked
        self.stale = 0
        self._frames = Frames()
        self._digest = hashlib.sha256()
        self._events: list[bytes] = []
        self._backlog = 0

    def hello(self, clock: Clock, memory_mib: int) -> bytes:
        """Return the first message: what we speak and what the limits are."""
        self._move(State.NEW, State.GREETING)
        limits = {
            "decision_ms": clock.decision_ms,
            "bank_ms": clock.bank_ms,
            "increment_ms": clock.increment_ms,
            "startup_ms": clock.startup_ms,
            "frame_bytes": FROM_BOT_BYTES,
            "memory_mib": memory_mib,
        }
        return encode({"type": "hello", "protocol": PROTOCOL, "limits": limits})

    def deal(self, game: str, version: int, options: Options, seats: int, seat: Seat, seed: int) -> bytes:
        """Return the message that starts a deal, and start its digest."""
        self._move(State.READY, State.PLAYING)
        self._digest = hashlib.sha256()
        self.stale = 0
        self._events = []
        self._backlog = 0
        message = {
            "type": "deal",
            "game": game,
            "version": version,
            "options": options,
            "seats": seats,
            "seat": seat,
            "seed": seed,
        }
        return self._send(_pack(message))

    def tell(self, event: bytes) -> bytes:
        """Queue an encoded event for the next ask; return an `events` message if the backlog grew too long."""
        self._events.append(event)
        self._backlog += len(event)
        if self._backlog <= BACKLOG_BYTES:
            return b""
        return self._send(b"\x82\xa4type\xa6events\xa6events" + self._take_events())

    def ask(self, observation: bytes, legal: Sequence[str], decision_ms: int, bank_ms: int) -> bytes:
        """Return an ask.

        Args:
            observation: already encoded.
            legal: the legal actions, in ASCII order.
            decision_ms: the time for this decision, what is left in the bank considered.
            bank_ms: what is left in the bank.
        """
        self._move(State.PLAYING, State.ASKED)
        self.asked += 1
        body = b"".join(
            (
                b"\xa4type\xa3ask\xa2id",
                _pack(self.asked),
                b"\xa6events",
                self._take_events(),
                b"\xabobservation",
                observation,
                b"\xa5legal",
                _pack(legal),
            )
        )
        self._digest.update(body)
        assert len(body) < TO_BOT_BYTES - 1024
        clock = _pack({"decision_ms": decision_ms, "bank_ms": bank_ms})
        return frame(b"".join((b"\x86", body, b"\xa5clock", clock)))

    def over(self, places: Sequence[int], points: Sequence[int], reason: str) -> bytes:
        """Return the message that ends a deal."""
        self._move(State.PLAYING, State.READY)
        rest = _pack({"places": places, "points": points, "reason": reason})
        return self._send(b"\x85\xa4type\xa4over\xa6events" + self._take_events() + rest[1:])

    def bye(self) -> bytes:
        """Return the last message."""
        self._move(State.READY, State.CLOSED)
        return encode({"type": "bye"})

    def digest(self) -> bytes:
        """Return SHA-256 over every body sent since the deal began, an ask's without map header and `clock`."""
        return self._digest.digest()

    def waiting(self, data: bytes) -> None:
        """Take bytes that were there before the present ask was sent: they may only be answers to older asks.

        Raises:
            BotError: garbage/id for anything else, since nobody can answer what was not asked.
        """
        self._frames.feed(data)
        try:
            while (body := self._frames.take()) is not None:
                self._drop(decode(body), body)
            if self._frames:
                raise _garbage("id", "your bot sent part of a message before it was asked", data)
        except BotError:
            self.state = State.CLOSED
            raise

    def receive(self, data: bytes) -> Hello | Act | None:
        """Take bytes that were read and return the message due, or None while it is incomplete.

        Raises:
            BotError: what came is garbage, or more than one message came.
        """
        self._frames.feed(data)
        try:
            while (body := self._frames.take()) is not None:
                if (message := self._due(decode(body), body)) is not None:
                    return message
        except BotError:
            self.state = State.CLOSED
            raise
        return None

    def is_ready(self) -> bool:
        """Tell whether the bot has greeted and is between deals."""
        return self.state is State.READY

    def is_partial(self) -> bool:
        """Tell whether part of a frame was received: the difference between a silent and a slow bot."""
        return bool(self._frames)

    def held_bytes(self) -> int:
        """Return how much of what was read is not yet a message: at most a frame and one read."""
        return len(self._frames)

    def _due(self, message: Hello | Act, body: bytes) -> Hello | Act | None:
        """Return a message if it is due now, or None for one that is dropped."""
        if isinstance(message, Hello):
            return self._greeted(message, body)
        if self.state is not State.ASKED:
            raise _garbage("type", f"your bot sent `act` while the conversation was {self.state.value}", body)
        if message.id == self.asked:
            self.state = State.PLAYING
            return message
        if not 0 < message.id < self.asked:
            raise _garbage("id", f"your bot answered ask {message.id}; the last one was {self.asked}", body)
        self._count_stale()
        return None

    def _drop(self, message: Hello | Act, body: bytes) -> None:
        if not isinstance(message, Act) or not 0 < message.id < self.asked:
            raise _garbage("id", "your bot sent a message before it was asked; answer each ask once", body)
        self._count_stale()

    def _greeted(self, hello: Hello, body: bytes) -> Hello:
        if self.state is not State.GREETING:
            raise _garbage("type", f"your bot sent `hello` while the conversation was {self.state.value}", body)
        if hello.protocol != PROTOCOL:
            raise _garbage("malformed", f"your bot speaks protocol {hello.protocol}, this arena {PROTOCOL}", body)
        self.state = State.READY
        return hello

    def _count_stale(self) -> None:
        self.stale += 1
        if self.stale > STALE_ANSWERS:
            raise BotError(FaultKind.FLOOD, "stdout", f"more than {STALE_ANSWERS} answers to older asks in one deal")

    def _take_events(self) -> bytes:
        events = b"".join((_list_header(len(self._events)), *self._events))
        self._events = []
        self._backlog = 0
        return events

    def _send(self, body: bytes) -> bytes:
        self._digest.update(body)
        return frame(body)

    def _move(self, before: State, after: State) -> None:
        if self.state is not before:
            raise AssertionError(f"the referee moved a {self.state.value} conversation to {after.value}")
        self.state = after
