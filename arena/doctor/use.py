"""What a bot may use of the machine, and what it may tell or learn by what bots share."""

from __future__ import annotations

import hashlib
import json
import os
import random
import statistics
import sysconfig
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from arena.doctor.finding import Finding, Part, taken_at_its_word
from arena.doctor.stage import DONE, NothingToReach, Scene
from arena.sandbox import Limits
from arena.sandbox.warm import shared_folders

LIMITS = Limits(cpu_s=60, memory_mib=100)
"""Less memory than in matches, so that the attacks are quick; all else is the same."""
HOG_MIB = 224
"""A process may have twice the memory, since its stacks count; so much is no limit any more."""
_CONTROL_MIB = 64
"""A control shows that an attack takes memory; it need not take all that there is."""
_HELD_S = 1.5
"""Something counts as taken when it was held so long: who watches it looks far more often, but may wait for a core."""
FORKS = LIMITS.processes + 16
_SCRATCH_MIB = {"TMPDIR": 72, "/dev/shm": 24}
"""About twice of what a bot is given."""


async def _take(scene: Scene, part: str, unit: str, *attack: object) -> Finding:
    """Make an attack that takes something and holds it; being killed for it is a way to be stopped."""
    async with scene.start(*attack, _HELD_S if scene.contained else 0) as started:
        report = await started.report()
    if report.found is None:
        return {part: Part(False, f"killed at {report.taken}{unit}")}
    return taken_at_its_word(report.found)


async def _hog(scene: Scene, kind: str) -> Finding:
    return await _take(scene, kind, " MiB", "hog", kind, HOG_MIB if scene.contained else _CONTROL_MIB)


async def memory(scene: Scene) -> Finding:
    """Attempt to take memory in one process."""
    return await _hog(scene, "one")


async def tree(scene: Scene) -> Finding:
    """Attempt to take memory in ways that no limit of a process counts."""
    finding: Finding = {}
    for kind in ("children", "orphans", "shared", "memfd", "SysV"):
        finding |= await _hog(scene, kind)
    return finding


async def forks(scene: Scene) -> Finding:
    """Attempt to start more processes than are allowed."""
    return await _take(scene, "fork", "", "fork", FORKS)


async def scratch(scene: Scene) -> Finding:
    """Attempt to fill what a bot may write."""
    return taken_at_its_word(await scene.attack("fill", json.dumps(_SCRATCH_MIB)))


async def kernel(scene: Scene) -> Finding:
    """Attempt to reach parts of the kernel that no bot needs."""
    return taken_at_its_word(await scene.attack("kernel"))


async def sockets(scene: Scene) -> Finding:
    """Attempt to make sockets of other families."""
    return taken_at_its_word(await scene.attack("sockets"))


async def session(scene: Scene) -> Finding:
    """Attempt to leave session and process group."""
    return taken_at_its_word(await scene.attack("session"))


async def priority(scene: Scene) -> Finding:
    """Attempt to get more of the processor."""
    return taken_at_its_word(await scene.attack("priority"))


# Messages between bots


def _shared(scene: Scene, name: str) -> str:
    """Return a file of the interpreter, which all bots share, as attacks name it: from their interpreter's folder."""
    path = scene.runtime / name
    path.write_text(scene.token)
    path.chmod(0o644)
    return name


async def locks(scene: Scene) -> Finding:
    """Attempt to tell another bot, which runs at the same time, something by a file that both may only read."""
    name = _shared(scene, "shared")
    async with scene.start("notice", name) as second:
        await second.until("ready")
        async with scene.start("hold", name) as first:
            tells = await first.found()
            second.go_on()
            hears = await second.found()
    return {part: Part(hears[part] == DONE, hears[part] if tells[part] == DONE else tells[part]) for part in hears}


async def atime(scene: Scene) -> Finding:
    """Attempt to tell the next leg something by when a file was read."""
    name = _shared(scene, "read")
    path = scene.runtime / name
    if os.statvfs(path).f_flag & os.ST_NOATIME:
        raise NothingToReach("the file system keeps no times of access")
    os.utime(path, ns=(1 << 60, (1 << 60) + 1))  # older than the file's last change, so that reading it counts
    await trio.sleep(_TICKS_S)  # the file is not to seem changed after it was read
    scene.warm([scene.runtime])
    before = os.stat(path).st_atime_ns
    await scene.attack("read_one", name)
    (words,) = (await scene.attack("last_read", name)).values()
    same = words == str(before)
    return {
        "atime": Part(words.isdigit() and not same, "not changed" if same else "changed" if words.isdigit() else words)
    }


_TICKS_S = 0.05
"""Several ticks of the clock that dates files."""
_BITS = 32
_ENOUGH = 28
"""Of 32 bits, half of them set: so many are right by chance once in 40,000 times."""
_METHODS = ("mincore", "preadv2", "timing")


def _random_bits() -> str:
    return "".join(random.sample("01" * (_BITS // 2), _BITS))


def _library_files(count: int, seed: str) -> list[Path]:
    """Return files of the standard library's sources: every bot may read them, hardly one does."""
    folder = Path(sysconfig.get_path("stdlib"))
    large = [path for path in (*folder.glob("*.py"), *folder.glob("*/*.py")) if path.stat().st_size > 8192]
    large.sort(key=lambda path: hashlib.sha256(f"{seed}{path}".encode()).digest())
    if len(large) < count:
        raise NothingToReach(f"there are not {count} files in {folder} to tell anything by")
    return large[:count]


def _decode(words: str) -> str:
    """Return the bits that a reader of pages got, or its words."""
    if not words.startswith(f"{DONE}:"):
        return words
    values = [int(value) for value in words.removeprefix(f"{DONE}:").split(",")]
    if max(values) <= 1:
        return "".join(map(str, values))
    middle = statistics.median(values)  # half of the bits are set
    return "".join("1" if value < middle else "0" for value in values)


def _warm(paths: Iterable[Path]) -> None:
    for path in paths:
        path.read_bytes()


def _chill(paths: Sequence[Path]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


async def _pages(scene: Scene, how: str) -> Finding:
    """Attempt to tell the next leg something by which pages of shared files are in memory."""
    bits = _random_bits()
    files = _library_files(_BITS * len(_METHODS), scene.token)
    groups = [files[start : start + _BITS] for start in range(0, len(files), _BITS)]
    (_warm if how == "drop" else _chill)(files)
    if how == "read":
        scene.warm(shared_folders())
    told = await scene.attack("write_pages", json.dumps([str(path) for path in files]), bits * len(_METHODS), how)
    finding = {}
    for method, group in zip(_METHODS, groups, strict=True):  # asking for a page may bring it in: each has its own
        found = await scene.attack("read_pages", json.dumps([str(path) for path in group]), method)
        denied = "" if told[how] == DONE else f"{how}: {told[how]}, then "
        finding[method] = _arrived(found[method], bits, denied)
    return finding


def _arrived(words: str, bits: str, before: str = "") -> Part:
    """Return what came of a message of half set bits, from a reader's words."""
    read = _decode(words)
    if read.strip("01"):
        return Part(False, before + read)
    right = sum(a == b for a, b in zip(read, bits, strict=False))
    return Part(right >= _ENOUGH, f"{before}{right} of {_BITS} bits arrived")


async def dropped(scene: Scene) -> Finding:
    """Attempt it by making pages cold."""
    return await _pages(scene, "drop")


async def warmed(scene: Scene) -> Finding:
    """Attempt it by making pages warm that were cold."""
    return await _pages(scene, "read")


async def names(scene: Scene) -> Finding:
    """Attempt it by names that do not exist, which the kernel finds missing faster the second time."""
    bits = _random_bits()
    folder = sysconfig.get_path("stdlib")
    await scene.attack("write_names", folder, scene.token, bits)
    found = await scene.attack("read_names", folder, scene.token, _BITS)
    return {"names": _arrived(found["names"], bits)}


# The work of others

_ACTIVITY = (
    *("stat", "loadavg", "uptime", "meminfo", "vmstat", "zoneinfo", "buddyinfo", "slabinfo", "interrupts", "softirqs"),
    *("schedstat", "diskstats", "locks", "timer_list", "pressure/cpu", "pressure/memory", "pressure/io"),
)
_COUNTERS = ("file-nr", "inode-nr", "inode-state", "dentry-state")


@asynccontextmanager
async def _neighbour(scene: Scene) -> AsyncIterator[None]:
    async with scene.other("work", scene.folder):
        yield


async def _watch(scene: Scene, folder: str, names: Sequence[str]) -> Finding:
    paths = {name: f"{folder}/{name}" for name in names}
    async with _neighbour(scene):
        found = taken_at_its_word(await scene.attack("watch_files", json.dumps(list(paths.values()))))
    return {name: found[path] for name, path in paths.items()}


async def activity(scene: Scene) -> Finding:
    """Attempt to see from files in /proc that somebody works."""
    return await _watch(scene, "/proc", _ACTIVITY)


async def counters(scene: Scene) -> Finding:
    """Attempt to see from counters in /proc/sys that somebody opens and makes files."""
    return await _watch(scene, "/proc/sys/fs", _COUNTERS)


async def totals(scene: Scene) -> Finding:
    """Attempt to see from system calls that somebody works."""
    async with _neighbour(scene):
        return taken_at_its_word(await scene.attack("watch_totals"))
