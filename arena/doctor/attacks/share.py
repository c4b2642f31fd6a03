"""Messages between bots by what they share, and looks at the work of others."""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .telling import DONE, attempt, failure, libc, shared_by_bots, tell


def hold(path: str) -> dict[str, str]:
    """Open a file that other bots see too, and lock it in two ways."""
    fd = os.open(shared_by_bots(path), os.O_RDONLY)
    return {
        "flock": attempt(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)),
        "fcntl": attempt(lambda: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)),
        "inotify": DONE,
    }


def notice(path: str) -> dict[str, str]:
    """Tell whether somebody else opens or locks a file."""
    path = shared_by_bots(path)
    watch = libc.inotify_init1(0)
    denied = "" if watch >= 0 else os.strerror(ctypes.get_errno())
    if not denied and libc.inotify_add_watch(watch, path.encode(), 0x20) < 0:  # IN_OPEN
        denied = os.strerror(ctypes.get_errno())
    tell(ready=True)
    sys.stdin.readline()
    opened = denied or (DONE if select.select([watch], [], [], 0)[0] else "nothing seen")
    fd = os.open(path, os.O_RDONLY)

    def locked() -> str:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return DONE
        return "nothing seen"

    def locked_range() -> str:
        asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, asked))
        return "nothing seen" if answer[0] == fcntl.F_UNLCK else DONE

    return {"flock": attempt(locked), "fcntl": attempt(locked_range), "inotify": opened}


def write_pages(paths: str, bits: str, how: str) -> dict[str, str]:
    """Write a bit a file: `drop` pages of it for 0, or `read` it for 1."""

    def write(path: str) -> None:
        with open(path, "rb", buffering=0) as file:
            if how == "drop":
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                file.read()

    chosen = [path for path, bit in zip(json.loads(paths), bits, strict=True) if (bit == "1") == (how == "read")]
    words = {attempt(lambda path=path: write(path)) for path in chosen}  # type: ignore[misc]
    return {how: ", ".join(sorted(words))}


def read_pages(paths: str, method: str) -> dict[str, str]:
    """Read a bit a file; `timing` tells nanoseconds instead."""
    measured: list[int] = []

    def measure() -> None:
        measured.extend(_METHODS[method](path) for path in json.loads(paths))

    said = attempt(measure)
    return {method: f"{DONE}:{','.join(map(str, measured))}" if said == DONE else said}


def _in_core(path: str) -> int:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as memory:
        pages = (len(memory) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        answer = ctypes.create_string_buffer(pages)
        first = ctypes.c_char.from_buffer(memory)
        result = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(memory)), answer)
        del first
        if result != 0:
            raise failure()
        return answer.raw[pages // 2] & 1


def _without_waiting(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.preadv(fd, [bytearray(1)], os.fstat(fd).st_size // 2, os.RWF_NOWAIT)
    except BlockingIOError:
        return 0
    finally:
        os.close(fd)
    return 1


def _time_to_read(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    began = time.perf_counter_ns()
    os.pread(fd, 4096, size // 2)
    took = time.perf_counter_ns() - began
    os.close(fd)
    return took


_METHODS = {"mincore": _in_core, "preadv2": _without_waiting, "timing": _time_to_read}


def write_names(folder: str, token: str, bits: str) -> dict[str, str]:
    """Write a bit by names that do not exist: look for those of a 1, so that the kernel remembers that they do not."""

    def write() -> None:
        for number, bit in enumerate(bits):
            for path in _names(folder, token, number) if bit == "1" else ():
                for _ in range(3):
                    os.path.exists(path)

    return {"names": attempt(write)}


def read_names(folder: str, token: str, count: str) -> dict[str, str]:
    """Read bits by how long, in nanoseconds, it takes to find names missing."""
    measured: list[int] = []

    def read() -> None:
        for number in range(int(count)):
            times = []
            for path in _names(folder, token, number):
                began = time.perf_counter_ns()
                os.path.exists(path)
                times.append(time.perf_counter_ns() - began)
            measured.append(sorted(times)[len(times) // 2])

    said = attempt(read)
    return {"names": f"{DONE}:{','.join(map(str, measured))}" if said == DONE else said}


def _names(folder: str, token: str, number: int) -> list[str]:
    return [f"{folder}/{token}-{number}-{again}" for again in range(15)]


def read_one(path: str) -> dict[str, str]:
    """Read a file, which may leave a mark on it."""
    return {"atime": attempt(lambda: Path(shared_by_bots(path)).read_bytes() and None)}


def last_read(path: str) -> dict[str, str]:
    """Tell when a file was last read."""
    return {"atime": attempt(lambda: str(os.stat(shared_by_bots(path)).st_atime_ns))}


def _changes(look: Callable[[], object]) -> str:
    """Look several times within a quarter of a second."""
    seen = set()
    for _ in range(8):
        seen.add(look())
        time.sleep(0.03)
    return f"{DONE}: it changes" if len(seen) > 1 else "always the same"


def watch_files(paths: str) -> dict[str, str]:
    """Tell which files of the kernel change while others work."""
    found: dict[str, str] = {}

    def watch(path: str) -> None:
        found[path] = attempt(lambda: _changes(Path(path).read_bytes))

    threads = [threading.Thread(target=watch, args=(path,)) for path in json.loads(paths)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def watch_totals() -> dict[str, str]:
    """Tell whether system calls tell of others' work: memory, load and processes, free space below the own folder."""

    def totals() -> bytes:
        told = ctypes.create_string_buffer(112)
        if libc.sysinfo(told) != 0:
            raise failure()
        return told.raw[8:]  # what comes after the uptime

    return {
        "sysinfo": attempt(lambda: _changes(totals)),
        "statvfs": attempt(lambda: _changes(lambda: os.statvfs(".").f_bfree)),
    }
