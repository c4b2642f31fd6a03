"""Control groups: one for each bot, which counts and limits the memory and the processes of its whole tree.

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

_CONTROLLERS = ("memory", "pids")
_OURS = "arena-main"
"""Where we move to ourselves: in version 2 a group with limited groups below it holds no processes."""
_LAUNCHERS = 2
"""Processes of bwrap that count with those of the bot."""
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
    """

    memory: Path
    pids: Path

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
        self.folders = tuple(dict.fromkeys((home.memory / name, home.pids / name)))
        memory, pids = self.folders[0], self.folders[-1]
        try:
            for folder in self.folders:
                folder.mkdir()
            names = _UNIFIED if home.is_unified else _SPLIT
            _write(memory / names[0], limits.memory_mib << 20)
            _write(pids / "pids.max", limits.processes + _LAUNCHERS)
            for file, value in names[1].items():
                with contextlib.suppress(OSError):  # not every kernel has it
                    _write(memory / file, limits.memory_mib << 20 if value is None else value)
        except OSError:
            self.remove()
            raise
        self._events = memory / ("memory.events" if home.is_unified else "memory.oom_control")

    def add(self, pid: int) -> None:
        """Put a process into it, with all that it will start.

        Raises:
            OSError: it cannot be put there.
        """
        for folder in self.folders:
            _write(folder / "cgroup.procs", pid)

    def oom_kills(self) -> int:
        """Return how many processes were killed because the group had used all of its memory."""
        with contextlib.suppress(OSError):
            if found := re.search(r"^oom_kill (\d+)", self._events.read_text(), re.MULTILINE):
                return int(found[1])
        return 0

    def count(self) -> int:
        """Return how many processes are in it."""
        return len((self.folders[-1] / "cgroup.procs").read_text().split())

    async def close(self) -> None:
        """Remove it, once its processes have ended; what cannot be removed is left to the next run."""
        for wait_s in (0.0, *_REMOVE_AFTER_S):
            await trio.sleep(wait_s)
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
                return Home(folder, folder)
    found = {}
    for left, right in mounts:
        kind, _, options = right.split(maxsplit=2)
        for name in _CONTROLLERS:
            if kind == "cgroup" and name in options.split(","):
                path = next((path for _, names, path in own if name in names.split(",")), "/")
                found[name] = _folder(left.split(), path)
    missing = [name for name in _CONTROLLERS if name not in found]
    if missing:
        raise InfraError(f"there is no control group for {' and '.join(missing)} here")
    return Home(found["memory"], found["pids"])


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
    for parent in {home.memory, home.pids}:
        for folder in parent.glob("arena-[0-9]*-[0-9]*"):
            if not Path("/proc", folder.name.split("-")[1]).exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()
