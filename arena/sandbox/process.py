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
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trio

from arena.errors import InfraError
from arena.sandbox import bwrap, seccomp
from arena.sandbox.environment import environment
from arena.sandbox.levels import Level
from arena.sandbox.room import Limits, Room

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
        self._init_pid = 0
        self._bot_pid = popen.pid if status is None else 0
        self._init: int | None = None
        self.stdin, self.stdout, self.stderr = pipes
        self.pidfd = os.pidfd_open(popen.pid)

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit code; -n if signal n killed it.

        Raises:
            InfraError: what ended is the launcher, before there was a bot.
        """
        # Not reaped before `close`: until then nobody else can have the process id and be killed for it.
        end = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is None:
            return None
        code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        if self._status is None:
            return code
        self._learn_init()
        if not self._init_pid:
            said = b""
            with contextlib.suppress(BlockingIOError):
                said = os.read(self.stderr, 4096)
            raise InfraError(f"the sandbox ended with {code} before the bot began: {said.decode(errors='replace')}")
        return 128 - code if code - 128 in signal.valid_signals() else code  # as bwrap tells of signals

    async def wait(self) -> None:
        """Wait until the started program has ended."""
        await trio.lowlevel.wait_readable(self.pidfd)

    def cpu_us(self) -> int:
        """Return the CPU time of the bot's first process so far in microseconds, or -1 where it cannot be read."""
        with contextlib.suppress(OSError, IndexError):
            if not self._bot_pid:
                self._learn_init()
                init = self._init_pid
                self._bot_pid = int(Path(f"/proc/{init}/task/{init}/children").read_text().split()[0])
            # The kernel's clock of another process: clock_getcpuclockid(3)
            return time.clock_gettime_ns((~self._bot_pid << 3) | 2) // 1000
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
            self.kill()  # of an init that was not yet known the first time
            if self._init is not None:
                await trio.lowlevel.wait_readable(self._init)
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd, self._status, self._init):
            if fd is not None:
                trio.lowlevel.notify_closing(fd)
                os.close(fd)
        if self._popen.poll() is None or scope.cancelled_caught:
            raise InfraError(f"process {self._popen.pid} lives on {_DEATH_S:.0f} s after it was killed")

    def _learn_init(self) -> None:
        """Find the first process of the bot's own process namespace, whose end is the end of all in it."""
        if self._status is None or self._init_pid:
            return
        with contextlib.suppress(BlockingIOError, ProcessLookupError):
            if told := os.read(self._status, 4096):  # the first of its lines is written before the bot starts
                self._init_pid = json.loads(told.splitlines()[0])["child-pid"]
                self._init = os.pidfd_open(self._init_pid)


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
    fds: list[int] = []
    popen = None
    try:
        for _ in range(3):
            fds += os.pipe()
        stdin, our_stdin, our_stdout, stdout, our_stderr, stderr = fds
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
        for fd in (our_stdin, our_stdout, our_stderr):
            os.set_blocking(fd, False)
        started = Sandboxed(popen, (our_stdin, our_stdout, our_stderr), status)
    except (OSError, ValueError) as error:
        if popen is not None:
            os.killpg(popen.pid, signal.SIGKILL)  # bwrap's child too, which nobody else would end yet
            popen.wait()
        for fd in fds:
            os.close(fd)
        raise InfraError(f"cannot start {argv[0]}: {error}") from error
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    return started


def _start_namespaced(room: Room, argv: Sequence[str], limits: Limits) -> Sandboxed:
    status_read, status_write = os.pipe()
    os.set_blocking(status_read, False)
    files: list[int] = []
    try:
        files.append(seccomp.open_program())
        options = ["--seccomp", str(files[0]), "--json-status-fd", str(status_write)]
        files.append(_memory_file([*bwrap.arguments(room), *options]))
        line = [
            *_BEFORE,
            "bwrap",
            "--args",
            str(files[1]),
            "--",
            *("env", "-u", "PWD", "--"),  # which bwrap sets
            *_limit_arguments(limits, Level.NAMESPACED),
            *_expand(argv, bwrap.OUT_FOLDER),
        ]
        return _start(line, _HOST_ENVIRONMENT, "/", (*files, status_write), status_read)
    except BaseException:
        os.close(status_read)
        raise
    finally:
        os.close(status_write)
        for fd in files:
            os.close(fd)


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

    Raises:
        InfraError: it cannot be started for a reason of ours, or something of it lives on.
    """
    for folder in (room.bot, room.runtime, room.out):
        if folder is not None and not folder.is_dir():
            raise InfraError(f"the folder {folder} is gone")
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
