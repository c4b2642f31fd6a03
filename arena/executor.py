"""Where matches are played: the contract, and the pool of lanes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from typing import IO, Protocol

import msgspec
import trio

from arena.errors import InfraError, LaneError, OverloadError, way_out
from arena.lane import Alive, LaneConfig, Played, Reply, Voided
from arena.records import MatchRecord, MatchSpec
from arena.wire import frame

_LENGTH = struct.Struct(">I")
_GOODBYE_S = 5.0
_SILENCE_S = 30.0
"""A lane that says nothing for so long is frozen, and is killed."""
_STDERR_BYTES = 2000


class Executor(Protocol):
    """Plays matches somewhere; plays at least once, so that recording must be idempotent by match id."""

    @property
    def lanes(self) -> int:
        """How many matches it plays at the same time."""
        ...

    async def play(self, spec: MatchSpec) -> MatchRecord:
        """Play a match; waits while all lanes are busy.

        Raises:
            InfraError: the match is void.
        """
        ...


def _import_path() -> str:
    """Return where we import from, so that a lane runs this code and nothing that lies in the working directory."""
    return os.pathsep.join(folder or os.getcwd() for folder in sys.path)


class _Lane:
    """One worker process, seen from the coordinator."""

    def __init__(self, config: LaneConfig) -> None:
        with contextlib.ExitStack() as undo:
            try:
                self._start(undo)
            except OSError as error:
                raise InfraError(f"cannot start a lane: {error}{way_out(error)}") from error
            undo.pop_all()  # all of it is closed with the lane
        self._buffer = bytearray()
        self._config: bytes | None = frame(msgspec.msgpack.encode(config))

    def _start(self, undo: contextlib.ExitStack) -> None:
        self._stderr: IO[bytes] = undo.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it is entered
        # A session of its own keeps the terminal's Ctrl-C from it, so that the coordinator decides what to finish.
        self._popen = undo.enter_context(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "arena.lane"],
                env=os.environ | {"PYTHONPATH": _import_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        )
        undo.callback(self._popen.kill)
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._to = trio.lowlevel.FdStream(os.dup(self._popen.stdin.fileno()))
        self._from = trio.lowlevel.FdStream(os.dup(self._popen.stdout.fileno()))
        self._popen.stdin.close()
        self._popen.stdout.close()

    async def play(self, spec: MatchSpec) -> Played | Voided:
        data = frame(msgspec.msgpack.encode(spec))
        try:
            await self._to.send_all((self._config or b"") + data)
            self._config = None
            reply: Reply = Alive()
            while isinstance(reply, Alive):
                reply = msgspec.msgpack.decode(await self._receive(), type=Reply)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise LaneError(await self._epitaph()) from None
        return reply

    async def _receive(self) -> bytes:
        while True:
            if len(self._buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
                if len(self._buffer) >= end:
                    body = bytes(self._buffer[_LENGTH.size : end])
                    del self._buffer[:end]
                    return body
            data = b""
            with trio.move_on_after(_SILENCE_S) as scope:
                data = await self._from.receive_some(1 << 20)
            if scope.cancelled_caught:
                self._popen.kill()
                raise LaneError(f"a lane gave no sign of life for {_SILENCE_S:g} s")
            if not data:
                raise LaneError(await self._epitaph())
            self._buffer += data

    async def _epitaph(self) -> str:
        """Return how the lane ended, with the last it said."""
        await self._wait()
        if self._stderr.closed:
            return "the pool of lanes was closed"
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _STDERR_BYTES))
        said = self._stderr.read().decode(errors="replace").strip()
        code = self._popen.returncode
        killed = " (killed; the kernel does so when memory runs out)" if code == -signal.SIGKILL else ""
        return f"a lane ended with {code}{killed}" + (f": {said}" if said else "")

    async def _wait(self) -> None:
        if self._popen.returncode is not None:
            return
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:  # with no descriptor left nobody waits
            pidfd = os.pidfd_open(self._popen.pid)
            stack.callback(os.close, pidfd)
            with trio.move_on_after(_GOODBYE_S):
                await trio.lowlevel.wait_readable(pidfd)
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()

    async def close(self) -> None:
        """End the lane: at once if it plays, since it then has something to kill first."""
        with trio.CancelScope(shield=True):
            await self._to.aclose()
            await self._wait()
            await self._from.aclose()
            self._stderr.close()


class LocalLanes:
    """The pool of lanes of this machine; a lane that dies or is cancelled in a match is replaced."""

    def __init__(self, configs: Sequence[LaneConfig]) -> None:
        self.lanes = len(configs)
        self._put, self._idle = trio.open_memory_channel[LaneConfig](len(configs))
        self._running: dict[LaneConfig, _Lane] = {}
        for config in configs:
            self._put.send_nowait(config)

    async def play(self, spec: MatchSpec) -> MatchRecord:
        """Play a match on the next idle lane; see `Executor.play`."""
        config = await self._idle.receive()
        try:
            lane = self._running.get(config) or _Lane(config)
            self._running[config] = lane
            try:
                reply = await lane.play(spec)
            except BaseException:
                self._running.pop(config, None)  # unless the pool is closing and has done so
                await lane.close()
                raise
        finally:
            self._put.send_nowait(config)
        match reply:
            case Played(record):
                return record
            case Voided(_, reason, overload):
                raise OverloadError(reason) if overload else InfraError(reason)

    async def close(self) -> None:
        """End all lanes."""
        while self._running:
            _, lane = self._running.popitem()
            await lane.close()


@contextlib.asynccontextmanager
async def open_lanes(jobs: int, config: LaneConfig) -> AsyncIterator[LocalLanes]:
    """Open a pool of `jobs` lanes, each pinned to a core of its own while there are enough."""
    cores = sorted(os.sched_getaffinity(0))
    configs = [
        msgspec.structs.replace(config, core=cores[number % len(cores)], number=number) for number in range(jobs)
    ]
    pool = LocalLanes(configs)
    try:
        yield pool
    finally:
        await pool.close()
