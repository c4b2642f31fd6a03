"""The worker process: match specs in on stdin, match records out on stdout, one match at a time, pinned to one core.

The frames are those of the bot protocol (u32 big-endian length, then msgpack), without its caps: both ends are ours.
The first frame is a `LaneConfig`. When stdin ends, as it does when the coordinator dies, the lane kills its bots and
ends. The kernel does not end it with its parent: a lane that is killed cannot clean up.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import trio

from arena import __version__
from arena.bot import Process
from arena.errors import InfraError, OverloadError, way_out
from arena.games import GAMES
from arena.records import BotRef, Machine, MatchRecord, MatchSpec
from arena.referee import Host, play_match
from arena.sandbox import Level, Limits, Room, open_sandboxed, sweep
from arena.sandbox.orphans import adopt_orphans, kill_children
from arena.wire import frame

_LENGTH = struct.Struct(">I")
_CPU_MARGIN_S = 60


class LaneConfig(msgspec.Struct, frozen=True):
    """What a lane is told before its first match.

    Attributes:
        core: the core to pin itself to, or -1 for none.
        runtime: folder made by `arena.sandbox.environment.make_runtime`.
        number: tells lanes apart that share a core.
    """

    level: str
    runtime: str
    core: int = -1
    memory_mib: int = 512
    number: int = 0


class Played(msgspec.Struct, frozen=True, tag="played"):
    """A match was played."""

    record: MatchRecord


class Voided(msgspec.Struct, frozen=True, tag="voided"):
    """A match could not be played for reasons of ours.

    Attributes:
        overload: the machine was too loaded.
    """

    id: int
    reason: str
    overload: bool = False


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """The lane still plays."""


Reply = Played | Voided | Alive
ALIVE_EVERY_S = 1.0


def machine_facts() -> Machine:
    """Return the facts of this machine."""
    processor = platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    system = f"{platform.system()} {platform.release()}"
    return Machine(system, processor, os.cpu_count() or 1, memory_mib, platform.python_version())


def _cpu_limit_s(spec: MatchSpec) -> int:
    """Return the CPU seconds a process may use in a leg: twice what its clocks can give it, and a margin.

    Twice, since it may also work between its decisions.
    """
    clock = spec.clock
    decisions = GAMES[spec.game].max_decisions(spec.options, len(spec.bots))
    a_deal_ms = 2 * (clock.bank_ms + decisions * clock.increment_ms)
    return _CPU_MARGIN_S + (clock.startup_ms + len(spec.decks) * a_deal_ms) // 1000


def host_for(config: LaneConfig, spec: MatchSpec, machine: Machine) -> Host:
    """Return where a match is played: real processes at the lane's isolation level."""
    level = Level(config.level)
    limits = Limits(cpu_s=_cpu_limit_s(spec), memory_mib=config.memory_mib)

    def open_process(ref: BotRef) -> AbstractAsyncContextManager[Process]:
        room = Room(Path(ref.folder), Path(config.runtime), Path(ref.out) if ref.out else None)
        return open_sandboxed(level, room, ref.command, limits)

    return Host(
        open_process=open_process,
        isolation=config.level,
        machine=machine,
        engine=__version__,
        now=time.time,
        core=config.core,
        memory_mib=config.memory_mib,
        clean_up=kill_children,
    )


async def _frames(stdin: int) -> AsyncIterator[bytes]:
    """Yield bodies until the end of input."""
    buffer = bytearray()
    while data := await _read(stdin):
        buffer += data
        while len(buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            yield bytes(buffer[_LENGTH.size : end])
            del buffer[:end]


async def _read(fd: int) -> bytes:
    await trio.lowlevel.wait_readable(fd)
    return os.read(fd, 1 << 20)


async def _play(spec: MatchSpec, config: LaneConfig, machine: Machine) -> Played | Voided:
    reply: Played | Voided = Voided(spec.id, "nothing was played")
    try:
        reply = Played(await play_match(spec, host_for(config, spec, machine)))
    except* (InfraError, OSError, MemoryError) as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        reply = Voided(spec.id, _reason(first), isinstance(first, OverloadError))
    return reply


def _reason(error: BaseException) -> str:
    said = str(error) or type(error).__name__
    text = said if isinstance(error, InfraError) else f"a lane could not go on: {said}"
    return text + way_out(error.__cause__ or error)


async def serve(stdin: int, stdout: int) -> None:
    """Play the matches that come in until the input ends; the match then in play is abandoned."""
    machine = machine_facts()
    to_play, specs = trio.open_memory_channel[MatchSpec](1)
    bodies = _frames(stdin)
    if (first := await anext(bodies, None)) is None:
        return
    config = msgspec.msgpack.decode(first, type=LaneConfig)
    if config.core >= 0:
        os.sched_setaffinity(0, {config.core})

    async def send(reply: Reply) -> None:
        with trio.CancelScope(shield=True):  # never half a frame
            await replies.send_all(frame(msgspec.msgpack.encode(reply)))

    async def show_life() -> None:
        while True:
            await trio.sleep(ALIVE_EVERY_S)
            await send(Alive())

    async def play_all() -> None:
        async for spec in specs:
            async with trio.open_nursery() as playing:
                playing.start_soon(show_life)
                reply = await _play(spec, config, machine)
                playing.cancel_scope.cancel()
            await send(reply)

    async with trio.lowlevel.FdStream(stdout) as replies, trio.open_nursery() as nursery:
        nursery.start_soon(play_all)
        async for body in bodies:
            await to_play.send(msgspec.msgpack.decode(body, type=MatchSpec))
        nursery.cancel_scope.cancel()


def main() -> None:
    """Serve on this process's stdin and stdout."""
    adopt_orphans()
    sweep()
    stdout = os.dup(1)
    os.dup2(2, 1)  # nothing printed by accident may look like a frame
    trio.run(serve, 0, stdout)


if __name__ == "__main__":
    main()
