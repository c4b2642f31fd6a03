"""Bots that live in the test's own process, behind real pipes: the whole referee runs with them under a virtual clock.

A script is an async function of a `BotEnd`; what it returns is the exit code of its process.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import trio

from arena.bot import Process
from arena.games import GAMES
from arena.records import BotHash, BotRef, Clock, Fault, Machine, MatchRecord, MatchSpec
from arena.referee import Host, play_match
from arena.rules import Value, complete_options
from arena.sandbox import Excess, Usage

Message = dict[str, Any]
Script = Callable[["BotEnd"], Awaitable[int | None]]
Choose = Callable[[Message], str]
Do = Callable[["BotEnd", Message], Awaitable[int | None]]
"""What a bot does when it is asked, instead of answering."""
HELLO: Message = {"type": "hello", "protocol": 1}
MACHINE = Machine("test", "test", 1, 1, "3")


class Ended(Exception):
    """The referee closed the bot's stdin."""


def frame(message: object) -> bytes:
    body: bytes = msgpack.packb(message)
    return struct.pack(">I", len(body)) + body


def act(ask: Message, action: str, **more: object) -> Message:
    return {"type": "act", "id": ask["id"], "action": action, **more}


class BotEnd:
    """What a bot holds: the other ends of its three pipes.

    Attributes:
        bodies: every message received, as bytes.
    """

    def __init__(self, stdin: int, stdout: int, stderr: int) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.bodies: list[bytes] = []
        self._buffer = b""

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            await trio.lowlevel.wait_readable(self.stdin)
            data = os.read(self.stdin, 1 << 20)
            if not data:
                raise Ended
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    async def receive(self) -> Message:
        """Return the next message."""
        (length,) = struct.unpack(">I", await self._exactly(4))
        body = await self._exactly(length)
        self.bodies.append(body)
        message: Message = msgpack.unpackb(body)
        return message

    async def ask(self) -> Message:
        """Return the next ask."""
        while (message := await self.receive())["type"] != "ask":
            pass
        return message

    def write(self, data: bytes) -> None:
        """Write to stdout; it must fit into the pipe."""
        assert os.write(self.stdout, data) == len(data)

    def send(self, *messages: Message) -> None:
        """Write messages, all in one write."""
        self.write(b"".join(map(frame, messages)))

    async def complain(self, data: bytes) -> None:
        """Write to stderr, all of it."""
        while data:
            await trio.lowlevel.wait_writable(self.stderr)
            data = data[os.write(self.stderr, data) :]

    def close(self) -> None:
        for fd in {self.stdin, self.stdout, self.stderr} - {-1}:
            os.close(fd)
        self.stdin = self.stdout = self.stderr = -1


class FakeProcess:
    """A script as a process; satisfies `arena.bot.Process`."""

    def __init__(self) -> None:
        theirs_in, self.stdin = os.pipe()
        self.stdout, theirs_out = os.pipe()
        self.stderr, theirs_err = os.pipe()
        self.pidfd = os.eventfd(0)
        self.end = BotEnd(theirs_in, theirs_out, theirs_err)
        for fd in (self.stdin, self.stdout, self.stderr, theirs_in, theirs_out, theirs_err):
            os.set_blocking(fd, False)
        self.code: int | None = None
        self.cpu = 0
        self.used = Usage(1, 0, 0)
        self.broken: Excess | None = None
        self.pauses: list[str] = []
        self._scope = trio.CancelScope()
        self._is_done = trio.Event()

    def exit_code(self) -> int | None:
        return self.code

    def cpu_us(self) -> int:
        self.cpu = self.cpu + 10 if self.cpu >= 0 else -1
        return self.cpu

    def usage(self) -> Usage:
        return self.used

    def excess(self, used: Usage | None = None) -> Excess | None:
        return self.broken

    def pause(self) -> None:
        self.pauses.append("pause")

    def resume(self) -> None:
        self.pauses.append("resume")

    def kill(self) -> None:
        self.exit(-9)
        self._scope.cancel()

    def exit(self, code: int) -> None:
        """End as a process does: whatever else holds its pipes, its end is seen."""
        if self.code is None:
            self.code = code
            os.eventfd_write(self.pidfd, 1)

    async def run(self, script: Script) -> None:
        """Be the bot until it ends or is killed."""
        try:
            with self._scope, contextlib.suppress(Ended):
                code = await script(self.end)
                self.exit(code or 0)
            self.exit(0)
        finally:
            self.end.close()
            self._is_done.set()

    async def close(self) -> None:
        self.kill()
        await self._is_done.wait()
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd):
            trio.lowlevel.notify_closing(fd)
            os.close(fd)


class Fakes:
    """Starts fake processes by the names of bots.

    Attributes:
        opened: by bot, the processes started for it, in order.
    """

    def __init__(self, nursery: trio.Nursery, scripts: Mapping[str, Script]) -> None:
        self.opened: dict[str, list[FakeProcess]] = {name: [] for name in scripts}
        self._nursery = nursery
        self._scripts = scripts

    @contextlib.asynccontextmanager
    async def open(self, ref: BotRef) -> AsyncIterator[Process]:
        process = FakeProcess()
        self.opened[ref.name].append(process)
        self._nursery.start_soon(process.run, self._scripts[ref.name])
        try:
            yield process
        finally:
            with trio.CancelScope(shield=True):
                await process.close()


def bot_ref(name: str, folder: Path = Path("/nowhere"), command: Sequence[str] = ("bot",)) -> BotRef:
    return BotRef(name, BotHash("0" * 64), str(folder), tuple(command))


def spec_of(
    *bots: BotRef | str,
    game: str = "avalanche",
    decks: int = 1,
    legs: Sequence[Sequence[int]] = (),
    clock: Clock = Clock(),  # noqa: B008 - frozen
    options: Mapping[str, Value] | None = None,
) -> MatchSpec:
    """Return a match of one leg, unless legs are given, with numbered decks."""
    refs = tuple(bot_ref(bot) if isinstance(bot, str) else bot for bot in bots)
    rules = GAMES[game]
    seatings = tuple(map(tuple, legs)) or (tuple(range(len(refs))),)
    complete = complete_options(rules, len(refs), options or {})
    keys = tuple(bytes([number + 1]) * 32 for number in range(decks))
    return MatchSpec(7, game, rules.version, complete, refs, keys, seatings, clock)


async def play_with(
    spec: MatchSpec, scripts: Mapping[str, Script], *, spin_s: float = 0.0
) -> tuple[MatchRecord, dict[str, list[FakeProcess]]]:
    """Play a match of fake bots; return the record and the processes of each bot."""
    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, scripts)
        host = Host(fakes.open, "none", MACHINE, "0", lambda: 0.0, spin_s=spin_s)
        record = await play_match(spec, host)
    return record, fakes.opened


async def play(spec: MatchSpec, scripts: Mapping[str, Script]) -> MatchRecord:
    """Play a match of fake bots."""
    record, _ = await play_with(spec, scripts)
    return record


def first(ask: Message) -> str:
    """Choose the first legal action."""
    action: str = ask["legal"][0]
    return action


def last(ask: Message) -> str:
    """Choose the last legal action."""
    action: str = ask["legal"][-1]
    return action


def player(choose: Choose = first, *, think_s: float = 0.0, hello_s: float = 0.0) -> Script:
    """Return an honest bot that takes the same time for each answer."""

    async def script(end: BotEnd) -> int | None:
        await trio.sleep(hello_s)
        end.send(HELLO)
        while True:
            ask = await end.ask()
            if think_s:
                await trio.sleep(think_s)
            end.send(act(ask, choose(ask)))

    return script


def at_ask(number: int, do: Do) -> Script:
    """Return a bot that plays honestly and does something else from its `number`-th ask on, 1-based."""

    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        for _ in range(number - 1):
            ask = await end.ask()
            end.send(act(ask, first(ask)))
        return await do(end, await end.ask())

    return script


def where(fault: Fault) -> tuple[str, str, int, int, int, int]:
    """Return what happened and where: kind, detail, deck, leg, seat, step."""
    return (fault.kind.value, fault.detail, fault.deck, fault.leg, fault.seat, fault.step)


async def silent(end: BotEnd, ask: Message) -> int | None:
    """Do nothing any more."""
    await trio.sleep_forever()


async def illegal(end: BotEnd, ask: Message) -> int | None:
    """Answer with an action that no game has."""
    end.send(act(ask, "castle"))
    await trio.sleep_forever()
