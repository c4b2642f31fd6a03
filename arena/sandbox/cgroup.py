"""Control groups: one for each bot, which counts and limits what its whole tree uses, and forgets what it looked at.

Groups are made below our own one, so that whatever limits us limits them. Both versions are used as they are found:
version 2 with one folder for everything, version 1 with a folder for each controller.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
import trio

from arena.errors import InfraError
from arena.sandbox.room import Limits
from arena.sandbox.tree import Usage

_CONTROLLERS = ("memory", "pids")
_COUNTER = "cpuacct"
_OURS = "arena-main"
"""Where we move to ourselves: in version 2 a group with limited groups below it holds no processes."""
_LAUNCHERS = 2
"""Processes of bwrap that count with those of the bot."""
_SHARES = 110
"""Where a group has a share of the processor: the weight of nice 10, at which bots run; 1024 is that of nice 0."""
_FORGETS = 5
"""Tries to have the kernel forget; what was looked at twice goes at the second."""
# The file that limits memory; and what keeps it from being swapped out, or only a part of the bot from being killed.
_UNIFIED: tuple[str, Mapping[str, int | None]] = ("memory.max", {"memory.swap.max": 0, "memory.oom.group": 1})
_SPLIT: tuple[str, Mapping[str, int | None]] = (
    "memory.limit_in_bytes",
    {"memory.swappiness": 0, "memory.memsw.limit_in_bytes": None},  # None: the same limit for both together
)
_REMOVE_AFTER_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_numbers = itertools.count(1)


class Home(msgspec.Struct, frozen=True):
    """Where groups can be made.

    Attributes:
        memory: the folder of the memory controller.
        pids: the folder of the controller of processes; the same one in version 2.
        cpu: the folder of the controller that counts CPU time, the same one in version 2; None if there is none.
    """

    memory: Path
    pids: Path
    cpu: Path | None = None

    @property
    def is_unified(self) -> bool:
        """Tell whether it is of version 2."""
        return self.memory == self.pids


class Group:
    """A control group, and what happened in it."""

    def __init__(self, home: Home, limits: Limits) -> None:
        """Make it.

        Raises:
            OSError: it cannot be made.
        """
        name = f"arena-{os.getpid()}-{next(_numbers)}"
        self._is_unified = home.is_unified
        self._memory, self._pids = home.memory / name, home.pids / name
        self._cpu = None if home.cpu is None else home.cpu / name
        self.folders = tuple(folder for folder in dict.fromkeys((self._memory, self._pids, self._cpu)) if folder)
        try:
            for folder in self.folders:
                folder.mkdir()
            names = _UNIFIED if home.is_unified else _SPLIT
            _write(self._memory / names[0], limits.memory_mib << 20)
            _write(self._pids / "pids.max", limits.processes + _LAUNCHERS)
            for file, value in names[1].items():
                with contextlib.suppress(OSError):  # not every kernel has it
                    _write(self._memory / file, limits.memory_mib << 20 if value is None else value)
            if self._cpu is not None and (self._cpu / "cpu.shares").exists():
                _write(self._cpu / "cpu.shares", _SHARES)
        except OSError:
            self.remove()
            raise

    def add(self, pid: int) -> None:
        """Put a process into it, with all that it will start.

        Raises:
            OSError: it cannot be put there.
        """
        for folder in self.folders:
            _write(folder / "cgroup.procs", pid)

    def oom_kills(self) -> int:
        """Return how many processes were killed because the group had used all of its memory."""
        events = self._memory / ("memory.events" if self._is_unified else "memory.oom_control")
        return _number(r"^oom_kill (\d+)", _read(events))

    def count(self) -> int:
        """Return how many processes are in it."""
        return len((self._pids / "cgroup.procs").read_text().split())

    def usage(self) -> Usage | None:
        """Return what its processes use, those that have ended too; None where CPU time is not counted."""
        if self._cpu is None:
            return None
        if self._is_unified:
            cpu_us = _number(r"^usage_usec (\d+)", _read(self._cpu / "cpu.stat"))
        else:
            cpu_us = _number(r"(\d+)", _read(self._cpu / "cpuacct.usage")) // 1000
        memory = "memory.current" if self._is_unified else "memory.usage_in_bytes"
        return Usage(self.count(), _number(r"(\d+)", _read(self._memory / memory)), cpu_us)

    def forget(self) -> None:
        """Have the kernel drop what it holds for a group whose processes have ended.

        Names that do not exist are remembered too, for whoever looks next (dcache, "negative entries"). They count as
        memory of the group that looked first; without this a leg could tell the next one something by how fast they
        are found missing.
        """
        with contextlib.suppress(OSError):
            if not self._is_unified:
                _write(self._memory / "memory.force_empty", 1)
        for _ in range(_FORGETS if self._is_unified else 0):
            held = _number(r"(\d+)", _read(self._memory / "memory.current"))
            with contextlib.suppress(OSError):  # EAGAIN: less than that could be dropped
                _write(self._memory / "memory.reclaim", held)

    async def close(self) -> None:
        """Forget and remove it, once its processes have ended; what cannot be removed is left to the next run."""
        for wait_s in (0.0, *_REMOVE_AFTER_S):
            await trio.sleep(wait_s)
            if _read(self._pids / "cgroup.procs"):  # what was killed is still on its way out
                continue
            self.forget()
            if self.remove():
                return

    def remove(self) -> bool:
        """Remove it; return False if there is still something in it."""
        for folder in self.folders:
            with contextlib.suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except OSError:  # a process that was killed is still on its way out
                    return False
        return True


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) if found else 0


def _write(file: Path, value: object) -> None:
    fd = os.open(file, os.O_WRONLY)  # never O_CREAT: a file that is missing is an error, not a file of ours
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


@cache
def find_home() -> Home:
    """Return where groups can be made, after trying it and removing what dead runs have left there.

    Raises:
        InfraError: nowhere; says why, and the way out.
    """
    home = _locate(Path("/proc/self"))
    _sweep(home)
    try:
        if home.is_unified:
            _delegate(home.memory)
        Group(home, Limits(cpu_s=1)).remove()
    except OSError as error:
        way_out = "; start it with `systemd-run --user --scope -p Delegate=yes`" if home.is_unified else ""
        raise InfraError(f"no control group can be made in {home.memory}: {error.strerror}{way_out}") from None
    return home


def _locate(proc: Path) -> Home:
    """Find our own groups by what the kernel tells of a process and its mounts."""
    own = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
    mounts = [line.split(" - ") for line in (proc / "mountinfo").read_text().splitlines()]
    for left, right in mounts:
        if right.startswith("cgroup2 "):
            path = next((path for number, _, path in own if number == "0"), "/")
            folder = _folder(left.split(), path)
            if set(_CONTROLLERS) <= set(_read(folder / "cgroup.controllers").split()):
                return Home(folder, folder, folder)
    found = {}
    for left, right in mounts:
        kind, _, options = right.split(maxsplit=2)
        for name in (*_CONTROLLERS, _COUNTER):
            if kind == "cgroup" and name in options.split(","):
                path = next((path for _, names, path in own if name in names.split(",")), "/")
                found[name] = _folder(left.split(), path)
    missing = [name for name in _CONTROLLERS if name not in found]
    if missing:
        raise InfraError(f"there is no control group for {' and '.join(missing)} here")
    counter = found.get(_COUNTER)
    return Home(found["memory"], found["pids"], counter if counter and os.access(counter, os.W_OK) else None)


def _folder(mount: list[str], path: str) -> Path:
    """Return the folder of a group: its path is relative to the mount's root, the fourth field of the mount."""
    root, point = mount[3], Path(mount[4])
    below = os.path.relpath(path, root)
    folder = point if below.startswith("..") else point / below
    if folder.name == _OURS:
        folder = folder.parent
    return folder if folder.is_dir() else point


def _read(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text()
    return ""


def _delegate(folder: Path) -> None:
    """Let groups below a folder of version 2 be limited, moving ourselves out of it."""
    control = folder / "cgroup.subtree_control"
    if set(_CONTROLLERS) <= set(_read(control).split()):
        return
    ours = folder / _OURS
    ours.mkdir(exist_ok=True)
    inside = _read(folder / "cgroup.procs").split()
    for pid in {os.getpid(), os.getppid()}:  # the parent waits for us, to clean up
        if str(pid) in inside:
            _write(ours / "cgroup.procs", pid)
    _write(control, " ".join(f"+{name}" for name in _CONTROLLERS))


def _sweep(home: Home) -> None:
    """Remove the groups of runs that have died."""
    for parent in {home.memory, home.pids, home.cpu or home.pids}:
        for folder in parent.glob("arena-[0-9]*-[0-9]*"):
            if not Path("/proc", folder.name.split("-")[1]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
