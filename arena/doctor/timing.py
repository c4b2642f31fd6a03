"""What on this machine makes times uneven: remarks, which decide nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec


class Remark(msgspec.Struct, frozen=True):
    """Something about the machine's timing.

    Attributes:
        good: False if it makes bots' times uneven.
    """

    name: str
    good: bool
    words: str


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


def remarks(cores: Collection[int], root: Path = Path("/")) -> list[Remark]:
    """Return what there is to say.

    Args:
        cores: those that this process may use.
        root: where proc and sys are; another one for tests.
    """
    return [
        Remark(
            "cores", True, f"{len(cores)} here, so --jobs is {len(cores)} by default: a match has a core of its own"
        ),
        *_siblings(cores, root),
        *_governors(cores, root),
        *_swap(root),
        *_core_pattern(root),
        *_throttling(root),
        *_load(cores, root),
    ]


def _cores_of(text: str) -> set[int]:
    """Return the cores of a list like `0,4-6`."""
    found: set[int] = set()
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _siblings(cores: Collection[int], root: Path) -> Iterator[Remark]:
    files = (root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list" for core in cores)
    groups = {frozenset(_cores_of(_read(path)) & set(cores)) for path in files}
    shared = [group for group in groups if len(group) > 1]
    if shared:
        whole = len(cores) - sum(len(group) - 1 for group in shared)
        words = f"{len(cores)} cores are threads of {whole}: matches slow each other; --jobs {whole} avoids it"
        yield Remark("siblings", False, words)
    else:
        yield Remark("siblings", True, "no two of our cores share a physical one")


def _governors(cores: Collection[int], root: Path) -> Iterator[Remark]:
    files = (root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor" for core in cores)
    found = sorted({_read(path) for path in files} - {""})
    if found == ["performance"]:
        yield Remark("governor", True, "performance")
    elif found:
        words = f"{', '.join(found)}: the clock rate follows the load; `cpupower frequency-set -g performance` fixes it"
        yield Remark("governor", False, words)


def _swap(root: Path) -> Iterator[Remark]:
    if len(_read(root / "proc/swaps").splitlines()) > 1:
        yield Remark("swap", False, "on: a bot may wait for the disk; `swapoff -a` while tournaments run")
    else:
        yield Remark("swap", True, "off")


def _core_pattern(root: Path) -> Iterator[Remark]:
    pattern = _read(root / "proc/sys/kernel/core_pattern")
    if pattern.startswith("|"):
        # The kernel starts the program even where a process may write no core file.
        yield Remark("crashes", False, f"each starts a program ({pattern[1:].split()[0]}), which takes time from bots")
    elif pattern:
        yield Remark("crashes", True, "write no core, start no program")


def _throttling(root: Path) -> Iterator[Remark]:
    """Look at the groups of processes that this one is in, of both versions of the kernel's interface."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = root / "sys/fs/cgroup" / controllers / path.lstrip("/")
        counts = dict(entry.split() for entry in _read(folder / "cpu.stat").splitlines())
        if int(counts.get("nr_throttled", 0)):
            yield Remark(
                "throttling", False, f"our cgroup was stopped {counts['nr_throttled']} times for its share of CPU"
            )


def _load(cores: Collection[int], root: Path) -> Iterator[Remark]:
    words = _read(root / "proc/loadavg").split()
    if words:
        busy = float(words[0]) > len(cores)
        yield Remark("load", not busy, f"{words[0]} of {len(cores)} cores" + (": more than there are" if busy else ""))
