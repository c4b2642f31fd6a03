"""A contained process tree: started, watched for its end, and killed whole.

Processes are forked by the thread that calls, which must live as long as they do: the kernel's parent-death signal
follows the forking thread, and trio's worker threads end after ten idle seconds. So nothing here uses a thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trio

from arena.errors import InfraError
from arena.sandbox import bwrap
from arena.sandbox.environment import environment
from arena.sandbox.levels import Level, Limits, Room

_DEATH_S = 10.0
"""SIGKILL is certain, but a process in disk wait takes its time."""
_HOST_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
# A bot that hogs memory is the first to go; at nice 10 it cannot keep the referee from its core.
_BEFORE = ("setpriv", "--pdeathsig", "KILL", "--", "choom", "-n", "1000", "--", "nice", "-n", "10", "--")


class Sandboxed:
    """A started process tree and the three pipes to it; the ends here are non-blocking.

    Attributes:
        stdin: file descriptor to write to.
        stdout: file descriptor to read from.
        stderr: file descriptor to read from.
        pidfd: readable once the started program has ended.
    """

    def __init__(self, popen: subprocess.Popen[bytes], pipes: tuple[int, int, int], status: int | None) -> None:
        self._popen = popen
        self._status = status
        self._init: int | None = None
        self.stdin, self.stdout, self.stderr = pipes
        self.pidfd = os.pidfd_open(popen.pid)

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit code; -n if signal n killed it."""
        code = self._popen.poll()
        return 128 - code if self._status is not None and code is not None and code > 128 else code

    async def wait(self) -> None:
        """Wait until the started program has ended."""
        await trio.lowlevel.wait_readable(self.pidfd)

    def cpu_us(self) -> int:
        """Return the CPU time of the bot's first process so far in microseconds, or -1 where it cannot be read."""
        return -1

    def kill(self) -> None:
        """Kill the whole tree; nothing of it runs any more when `close` has returned."""
        self._learn_init()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        if self._init is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)

    async def close(self) -> None:
        """Kill the tree, wait for its end and close the pipes.

        Raises:
            InfraError: something of it lives on after 10 s.
        """
        self.kill()
        with trio.move_on_after(_DEATH_S) as scope:
            await trio.lowlevel.wait_readable(self.pidfd)
            self._learn_init()
            if self._init is not None:
                await trio.lowlevel.wait_readable(self._init)
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd, self._status, self._init):
            if fd is not None:
                trio.lowlevel.notify_closing(fd)
                os.close(fd)
        if scope.cancelled_caught:
            raise InfraError(f"process {self._popen.pid} lives on {_DEATH_S:.0f} s after it was killed")
        self._popen.wait()

    def _learn_init(self) -> None:
        """Find the first process of the bot's own process namespace, whose end is the end of all in it."""
        if self._status is None or self._init is not None:
            return
        with contextlib.suppress(BlockingIOError, ValueError, KeyError, ProcessLookupError):
            line = os.read(self._status, 4096).decode().splitlines()[0]
            self._init = os.pidfd_open(json.loads(line)["child-pid"])


def _limit_arguments(limits: Limits, level: Level) -> list[str]:
    args = [
        "prlimit",
        "--core=0",
        f"--nofile={limits.open_files}",
        f"--fsize={limits.file_bytes}",
        f"--cpu={limits.cpu_s}",
        "--memlock=65536",
        "--msgqueue=0",
        "--sigpending=256",
        "--rtprio=0",
        # Reserved address space is no memory: node and java reserve gigabytes. Thread stacks count, hence twice.
        f"--data={2 * limits.memory_mib << 20}",
        f"--as={16 << 30}",
    ]
    if level is Level.NAMESPACED:  # outside a user namespace it would count all of the user's processes
        args.append(f"--nproc={limits.processes}")
    return [*args, "--"]


def _memory_file(arguments: Sequence[str]) -> int:
    """Return a file of NUL-separated arguments: bwrap's own command line then shows no path to the bot."""
    fd = os.memfd_create("bwrap-arguments", 0)
    os.write(fd, b"".join(argument.encode() + b"\0" for argument in arguments))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _expand(argv: Sequence[str], out: str) -> list[str]:
    return [argument.replace("{out}", out) for argument in argv]


def _start(
    argv: Sequence[str], env: dict[str, str], cwd: str, pass_fds: tuple[int, ...] = (), status: int | None = None
) -> Sandboxed:
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = os.pipe(), os.pipe(), os.pipe()
    ours, theirs = (our_stdin, our_stdout, our_stderr), (stdin, stdout, stderr)
    try:
        popen = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except OSError as error:
        for fd in ours:
            os.close(fd)
        raise InfraError(f"cannot start {argv[0]}: {error}") from error
    finally:
        for fd in theirs:
            os.close(fd)
    for fd in ours:
        os.set_blocking(fd, False)
    return Sandboxed(popen, ours, status)


def _start_namespaced(room: Room, argv: Sequence[str], limits: Limits) -> Sandboxed:
    status_read, status_write = os.pipe()
    os.set_blocking(status_read, False)
    args = _memory_file([*bwrap.arguments(room), "--json-status-fd", str(status_write)])
    try:
        line = [
            *_BEFORE,
            "bwrap",
            "--args",
            str(args),
            "--",
            *_limit_arguments(limits, Level.NAMESPACED),
            *_expand(argv, bwrap.OUT_FOLDER),
        ]
        return _start(line, _HOST_ENVIRONMENT, "/", (args, status_write), status_read)
    except InfraError:
        os.close(status_read)
        raise
    finally:
        os.close(args)
        os.close(status_write)


def _start_plain(room: Room, argv: Sequence[str], limits: Limits, private: Path) -> Sandboxed:
    home = private / "home"
    home.mkdir()
    folder = private / "bot"
    shutil.copytree(room.bot, folder)
    env = environment(str(room.runtime), str(home))
    line = [*_BEFORE, *_limit_arguments(limits, Level.NONE), *_expand(argv, str(room.out or folder))]
    return _start(line, env, str(folder))


@contextlib.asynccontextmanager
async def open_sandboxed(level: Level, room: Room, argv: Sequence[str], limits: Limits) -> AsyncIterator[Sandboxed]:
    """Start a program in a room; whatever happens, all of it is gone when the scope ends.

    Args:
        argv: the command; `{out}` in it becomes the build folder as the program sees it.
    """
    with contextlib.ExitStack() as stack:
        if level is Level.NAMESPACED:
            process = _start_namespaced(room, argv, limits)
        else:
            private = stack.enter_context(tempfile.TemporaryDirectory(prefix="arena-bot-", ignore_cleanup_errors=True))
            process = _start_plain(room, argv, limits, Path(private))
        try:
            yield process
        finally:
            with trio.CancelScope(shield=True):
                await process.close()
