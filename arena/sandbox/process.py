"""A contained process tree: watched for its end and for what it uses, stopped and continued, and killed whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from typing import NamedTuple

import trio

from arena.errors import InfraError
from arena.sandbox import tree
from arena.sandbox.cgroup import Group
from arena.sandbox.room import Limits

_DEATH_S = 10.0
"""SIGKILL is certain, but a process in disk wait takes its time."""
_DEAR_S = 0.005
_REST = 20
"""After a look at memory that took longer than `_DEAR_S` there is none for so many times as long."""
_RESUMES = 3
"""How often a tree is told again to go on.

What is just being forked when all is stopped is born stopped, and the kernel does not tell it of a SIGCONT that comes
during the same fork: one that nobody handles counts for those alone who are there (prepare_signal in kernel/signal.c).
"""


class Excess(NamedTuple):
    """A limit that a tree broke: `limit` for memory or `processes`, and how, for the bot's author."""

    detail: str
    text: str


class Sandboxed:
    """A started process tree and the three pipes to it; the ends here are non-blocking.

    Attributes:
        stdin: file descriptor to write to.
        stdout: file descriptor to read from.
        stderr: file descriptor to read from.
        pidfd: readable once the started program has ended.
    """

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        pipes: tuple[int, int, int],
        limits: Limits,
        status: int | None = None,
        group: Group | None = None,
    ) -> None:
        """Take over what was started.

        Args:
            status: where the launcher says which process is the first one of the bot, once it is contained; without
                a launcher it is `popen`.
            group: the control group it runs in.
        """
        self._popen = popen
        self._limits = limits
        self._status = status
        self._group = group
        self._root = popen.pid if status is None else 0
        self._bot_pid = self._root
        self._root_fd: int | None = None
        self._is_paused = False
        self._resumes_left = 0
        self._is_outside = False
        self._exact_from = 0.0
        self._exact_bytes = 0
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
        self._learn_root()
        if not self._root:
            said = b""
            with contextlib.suppress(BlockingIOError):
                said = os.read(self.stderr, 4096)
            raise InfraError(f"the sandbox ended with {code} before the bot began: {said.decode(errors='replace')}")
        if self._root == self._popen.pid:
            return code
        return 128 - code if code - 128 in signal.valid_signals() else code  # as bwrap tells of signals

    async def wait(self) -> None:
        """Wait until the started program has ended."""
        await trio.lowlevel.wait_readable(self.pidfd)

    def cpu_us(self) -> int:
        """Return the CPU time of the bot's first process so far in microseconds, or -1 where it cannot be read.

        Raises:
            InfraError: it runs outside of the control group that should count what it uses.
        """
        with contextlib.suppress(OSError, IndexError):
            bot_pid = self._first()
            if self._is_outside:
                raise InfraError("a bot was started outside of its control group")
            # The kernel's clock of another process: clock_getcpuclockid(3)
            return time.clock_gettime_ns((~bot_pid << 3) | 2) // 1000
        return -1

    def _first(self) -> int:
        """Return the bot's first process; raises IndexError while there is none."""
        if not self._bot_pid:
            self._learn_root()
            self._bot_pid = self._root if self._root == self._popen.pid else tree.children(self._root)[0]
        return self._bot_pid

    def usage(self) -> tree.Usage:
        """Return what the whole tree uses; nothing before it is contained."""
        self._learn_root()
        if not self._root:
            return tree.Usage(0, 0, 0)
        if not self._is_paused:
            self.resume()
        if self._group is not None and (counted := self._group.usage()):
            return counted
        now = time.monotonic()
        is_due = self._group is None and now >= self._exact_from  # a group counts by itself
        used = tree.usage(self._root, self._limits.memory_mib << 20 if is_due else None, self._exact_bytes)
        took_s = time.monotonic() - now
        if took_s > _DEAR_S:
            self._exact_from = now + took_s * _REST
        self._exact_bytes = used.memory_bytes if is_due else self._exact_bytes
        return used

    def excess(self, used: tree.Usage | None = None) -> Excess | None:
        """Return which limit on the whole tree was broken, or None.

        Args:
            used: by a look at the tree just now; without one only what the kernel has counted is asked.
        """
        limits = self._limits
        text = f"your bot's processes used more than {limits.memory_mib} MiB of memory together"
        if self._group is not None:
            return Excess("limit", text) if self._group.oom_kills() else None
        if used is not None and used.memory_bytes > limits.memory_mib << 20:
            return Excess("limit", f"{text}: {used.memory_bytes >> 20} MiB")
        if used is not None:
            processes = used.processes - (self._root != self._popen.pid)  # the first of a namespace is not the bot's
            if processes > limits.processes:
                return Excess("processes", f"your bot ran {processes} processes at once; {limits.processes} may be")
        return None

    def pause(self) -> None:
        """Stop all of its processes, until `resume`.

        What nothing contains is left alone: a process that leaves the group just then would never be told to go on.
        """
        self._learn_root()
        if self._root and self._status is not None and not self._is_paused:
            self._is_paused = True
            self._resumes_left = _RESUMES
            self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let all go on, if they were stopped; to be called again after a moment, for what was being forked."""
        if self._is_paused:
            self._is_paused = False
            self._signal_all(signal.SIGCONT)
        elif self._resumes_left:
            self._resumes_left -= 1
            with contextlib.suppress(OSError, IndexError):
                if not tree.is_stopped(self._first()):  # by itself, then: that is its own fault
                    self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        # The system call filter keeps all that a bot starts in one group; its first process leads it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._root_fd is not None:
                signal.pidfd_send_signal(self._root_fd, 0)  # fails once it has ended and its id may be another's
            os.killpg(self._root, number)

    def kill(self) -> None:
        """Kill the whole tree; nothing of it runs any more when `close` has returned."""
        self._learn_root()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        for pidfd in (self.pidfd, self._root_fd):
            if pidfd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    async def close(self) -> None:
        """Kill the tree, wait for its end and close the pipes.

        Raises:
            InfraError: something of it lives on after 10 s.
        """
        self.kill()
        with trio.move_on_after(_DEATH_S) as scope:
            await trio.lowlevel.wait_readable(self.pidfd)
            self.kill()  # of a first process that was not yet known the first time
            if self._root_fd is not None:
                await trio.lowlevel.wait_readable(self._root_fd)
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd, self._status, self._root_fd):
            if fd is not None:
                trio.lowlevel.notify_closing(fd)
                os.close(fd)
        is_alive = self._popen.poll() is None or scope.cancelled_caught
        if self._group is not None:
            await self._group.close()
        if is_alive:
            raise InfraError(f"process {self._popen.pid} lives on {_DEATH_S:.0f} s after it was killed")

    def _learn_root(self) -> None:
        """Find the bot's first process, whose end is the end of all where it is that of a namespace."""
        if self._root or self._status is None:
            return
        with contextlib.suppress(BlockingIOError, ProcessLookupError):
            if told := os.read(self._status, 4096):  # the first of its lines is written before the bot starts
                self._root = json.loads(told.splitlines()[0])["child-pid"]
                self._root_fd = os.pidfd_open(self._root)
                self._is_outside = self._group is not None and not self._group.count()
