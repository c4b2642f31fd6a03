"""Asks a bot's process about single positions, in the conversation that the referee has with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgpack
import msgspec
import trio

from arena.bot import Bot
from arena.check.deals import Usage
from arena.check.positions import Position, history_bytes
from arena.games import GAMES
from arena.records import Fault, MatchSpec
from arena.referee import Deal, Host, open_leg
from arena.rules import Options, Seat
from arena.wire import Conversation, encode

GRACE_S = 1.0
"""Between `bye` and the end of the process; a bot that takes longer is killed, which is no fault."""

Telling = Literal["told", "ahead", "untold", "extended"]
"""How the events before a position reach the bot: with the ask, in a message of their own, or not at all; `extended`
is with the ask, and every message has keys, and the ask an event, that no bot can know."""


class Case(msgspec.Struct, frozen=True):
    """A position and how it is asked."""

    what: str
    position: Position
    telling: Telling = "told"


class Ending(msgspec.Struct, frozen=True):
    """How a process took `bye`.

    Attributes:
        code: its exit code, or None if it was still there after the grace.
        elapsed_ms: from `bye` to its end.
    """

    code: int | None
    elapsed_ms: float


class Greeting(msgspec.Struct, frozen=True):
    """What came of a process that is greeted and dismissed.

    Attributes:
        hello_us: from the start of the process to its hello.
    """

    hello_us: int
    fault: Fault | None
    ending: Ending | None


class Asked(msgspec.Struct, frozen=True):
    """What came of asking; faults stand beside the case they happened in."""

    faults: tuple[tuple[Case, Fault], ...]
    ending: Ending | None
    peak_kib: int
    stderr_bytes: int


def cases(found: Sequence[Position]) -> list[Case]:
    """Return how positions are asked; the extended conversation comes last, since it goes on to the end."""
    told = [Case(position.what, position) for position in found]
    longest = max(found, key=lambda position: position.legal)
    history = max(found, key=history_bytes)
    size = f"{history_bytes(history) / 1024:.0f} KiB"
    return [
        *told,
        Case(f"{size} of events in messages before the ask", history, "ahead"),
        Case("a position without the events that led to it", longest, "untold"),
        Case("keys and a kind of event that are unknown", longest, "extended"),
    ]


async def greet(spec: MatchSpec, host: Host) -> Greeting:
    """Start a bot's process, say hello and then bye.

    Raises:
        InfraError: it could not be started for a reason of ours.
    """
    async with open_leg(spec, host, 0) as leg:
        errors = await leg.start([0], 0)
        bot = leg.bots[0]
        if not errors:
            return Greeting(bot.elapsed_us, None, await _end(bot))
        current = Deal(spec, GAMES[spec.game], leg, 0, ())
        await current.fault(0, bot, errors[0], None)
        return Greeting(bot.elapsed_us, current.faults[0], None)


async def ask_cases(spec: MatchSpec, seat: Seat, asked: Sequence[Case], host: Host) -> Asked:
    """Ask a bot in one process, or in a new one after each fault; deal number n of the match is case number n.

    Raises:
        InfraError: it could not be asked for a reason of ours.
    """
    faults: list[tuple[Case, Fault]] = []
    used, ending = Usage(), None
    async with open_leg(spec, host, 0) as leg:
        for number, case in enumerate(asked):
            current = Deal(spec, GAMES[spec.game], leg, number, ())
            if errors := await leg.start([seat], number):
                await current.fault(seat, leg.bots[seat], errors[seat], None)
            else:
                await _ask(current, seat, case, host)
            faults += [(case, fault) for fault in current.faults]
            used.look(leg, spec.legs[0])
        if (bot := leg.bots.get(seat)) is not None:
            ending = await _end(bot)
    return Asked(tuple(faults), ending, used.peak_kib, used.stderr_bytes())


async def _ask(current: Deal, seat: Seat, case: Case, host: Host) -> None:
    """Deal a bot in, ask it once and tell it that all others failed, which ends the deal."""
    bot, position = current.leg.bots[seat], case.position
    if case.telling == "extended":
        bot.talk = _Extended(bot.talk)
    current.faulted = {other: 0 for other in range(current.seats) if other != seat}
    await current.seat_bots()
    if case.telling == "ahead":
        bot.send(encode({"type": "events", "events": [event.message() for event in position.events]}))
    elif case.telling != "untold":
        current.tell(position.events)
    await current.ask(position.state, host.spin_s)
    current.record(position.state, trio.current_time())


async def _end(bot: Bot) -> Ending:
    began = trio.current_time()
    bot.send(bot.talk.bye())
    with trio.move_on_after(GRACE_S):
        await trio.lowlevel.wait_readable(bot.process.pidfd)
    return Ending(bot.process.exit_code(), (trio.current_time() - began) * 1000)


class _Extended(Conversation):
    """Goes on with a conversation, with keys that no bot knows in each message and an event of a kind that none knows.

    They come first, since a bot may not count on the order either.
    """

    def __init__(self, talk: Conversation) -> None:
        self.__dict__.update(talk.__dict__)

    def deal(self, game: str, version: int, options: Options, seats: int, seat: Seat, seed: int) -> bytes:
        return _extend(super().deal(game, version, options, seats, seat, seed))

    def ask(self, observation: bytes, legal: Sequence[str], decision_ms: int, bank_ms: int) -> bytes:
        return _extend(super().ask(observation, legal, decision_ms, bank_ms))


_UNKNOWN: Mapping[str, object] = {"later": 1, "added": {"in": ["a", "later", "version", None]}}


def _extend(frame: bytes) -> bytes:
    message = msgpack.unpackb(frame[4:])
    if "events" in message:
        message["events"].append({"kind": "later", **_UNKNOWN})
    return encode({**_UNKNOWN, **message})
