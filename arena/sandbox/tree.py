"""What the processes of a bot use together, as /proc tells of them.

A look takes some tens of microseconds for each process, so it is taken now and then, never for a decision.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_READ_BYTES = 1 << 16


class Usage(NamedTuple):
    """What a tree of processes uses.

    Attributes:
        processes: those alive; threads are not counted.
        memory_bytes: what is in use; an upper bound, with the files in it, as long as it is below the limit.
        cpu_us: of all that live, and of what they have waited for; in steps of a clock tick.
    """

    processes: int
    memory_bytes: int
    cpu_us: int


def children(pid: int) -> list[int]:
    """Return the children of a process, of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):  # that thread has ended
                found += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return found


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped by a signal.

    Raises:
        OSError: it has ended.
    """
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] == b"T"


def family(root: int) -> Iterator[int]:
    """Yield a process and all below it, and the orphans of its process group that became our own children."""
    left = [root]
    for pid in children(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            if pid != root and os.getpgid(pid) == root:
                left.append(pid)
    while left:
        pid = left.pop()
        yield pid
        left += children(pid)


def usage(root: int, limit_bytes: int) -> Usage:
    """Return what the family of a process uses.

    Args:
        limit_bytes: files in memory, and pages that forks share, are told apart only for a family that seems to use
            more than this.
    """
    processes = memory = cpu_us = 0
    pids = list(family(root))
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):  # it has ended
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()  # from the third of proc(5) on
            cpu_us += sum(map(int, fields[11:15])) * _TICK_US
            memory += int(fields[21]) * _PAGE_BYTES
            processes += 1
    if memory > limit_bytes:
        memory = sum(map(_private_bytes, pids))
    return Usage(processes, memory, cpu_us)


def _private_bytes(pid: int) -> int:
    """Return the memory of a process that is no file, shared pages by their share."""
    with contextlib.suppress(OSError):
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))) << 10
    return 0


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, _READ_BYTES)
    finally:
        os.close(fd)
