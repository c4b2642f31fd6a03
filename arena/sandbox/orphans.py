"""Processes that outlived their parent: found because they become ours, and killed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Container, Iterable, Iterator

from arena.sandbox import tree

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WATCHED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
_LOOK_S = 0.5
"""An orphan that lives on gives no signal when it becomes ours, so we look now and then."""


_spared: set[int] = set()
"""Children that are no orphans: our runner, or those that were there before others were adopted for a while."""


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def adopt_orphans() -> None:
    """Make this process the new parent of every orphan among its descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Adopt orphans for a while, in a process that has other children, which are spared; all adopted are killed."""
    before = _spared.copy()
    _spared.update(tree.children(os.getpid()))
    adopt_orphans()
    try:
        yield
    finally:
        kill_children()
        _prctl(_PR_SET_CHILD_SUBREAPER, 0)
        _spared.clear()
        _spared.update(before)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent thread ends; end at once if the parent already has."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def kill_children() -> int:
    """Kill and reap every child, and every orphan that becomes a child by it; return how many there were."""
    killed = 0
    while children := set(tree.children(os.getpid())) - _spared:
        spared_groups = _groups({os.getpid(), *_spared})
        for child in children:
            for pid in tree.family(child):
                _kill(pid, spared_groups)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
                killed += 1
    return killed


def _kill(pid: int, spared_groups: Container[int]) -> None:
    """Kill a process with its group: of those that fork and end, each is gone before a signal comes for it alone."""
    with contextlib.suppress(ProcessLookupError):
        if (group := os.getpgid(pid)) not in spared_groups:
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _groups(pids: Iterable[int]) -> set[int]:
    """Return the process groups of processes, and 0, which is how one from outside of a namespace shows."""
    found = {0}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.add(os.getpgid(pid))
    return found


def supervise() -> None:
    """Fork; the child returns and goes on, the parent stays to clean up after it and never returns.

    A runner or a lane that is killed cannot clean up. The parent waits for the runner, kills whatever of its process
    tree loses its own parent meanwhile or is left at the end, and ends as the runner did. Signals meant for the runner
    are handed on to it.
    """
    adopt_orphans()
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    runner = os.fork()
    if runner == 0:
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    _spared.add(runner)
    code = os.waitstatus_to_exitcode(_watch(runner))
    _spared.clear()
    kill_children()
    os._exit(code if code >= 0 else 128 - code)


def _watch(runner: int) -> int:
    """Hand signals on to the runner until it ends, and return its wait status; orphans are killed on the way."""
    while True:
        told = signal.sigtimedwait(_WATCHED, _LOOK_S)
        if told is not None and told.si_signo != signal.SIGCHLD:
            if told.si_code <= 0:  # somebody sent it; what a terminal sends, the runner gets too
                with contextlib.suppress(ProcessLookupError):
                    os.kill(runner, told.si_signo)
            continue
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if ended[0] == runner:
                    return ended[1]
        kill_children()
