"""Processes that outlived their parent: found because they become ours, and killed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def adopt_orphans() -> None:
    """Make this process the new parent of every orphan among its descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent thread ends; end at once if the parent already has."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _children() -> list[int]:
    children: list[int] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # that thread has ended
            children += map(int, path.read_text().split())
    return children


def kill_children() -> int:
    """Kill and reap every child, and every orphan that becomes a child by it; return how many there were."""
    killed = 0
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
                killed += 1
    return killed


def supervise() -> None:
    """Fork; the child returns and goes on, the parent stays to clean up after it and never returns.

    A runner that is killed cannot clean up. The parent waits for it, kills whatever of its process tree is left, and
    ends as it ended. Signals meant for the runner are handed on to it.
    """
    adopt_orphans()
    parent = os.getpid()
    handled = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, handled)  # none may come before it is known what to do
    runner = os.fork()
    if runner == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        die_with_parent(parent)
        return

    def hand_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(runner, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the runner too
    for number in handled - {signal.SIGINT}:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    _, status = os.waitpid(runner, 0)
    kill_children()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)
