"""What a bot's processes have used, as the kernel tells it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from arena.sandbox.tree import children

_LAUNCHER = "bwrap"


class Known(Protocol):
    """A process as its descriptor tells it."""

    pidfd: int


def peak_kib(process: Known) -> int:
    """Return the sum of the largest resident sizes that a bot's living processes ever had, in KiB; 0 where unknown.

    It is read while they live: the kernel forgets it with the process.
    """
    with contextlib.suppress(OSError, ValueError):
        told = Path(f"/proc/self/fdinfo/{process.pidfd}").read_text()
        started = next((int(line[4:]) for line in told.splitlines() if line.startswith("Pid:")), 0)
        return sum(_high_water_kib(pid) for pid in _tree(started)) if started > 0 else 0
    return 0


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from _tree(child)


def _high_water_kib(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if fields["Name"].strip() != _LAUNCHER and "VmHWM" in fields:  # a zombie has none
            return int(fields["VmHWM"].split()[0])
    return 0
