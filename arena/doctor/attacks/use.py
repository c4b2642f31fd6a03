"""Attacks on the limits of memory, processes and space."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

from .telling import DONE, LIFE_S, attempt, failure, libc, tell


def fill(sizes: str) -> dict[str, str]:
    """Write so many MiB below each of some folders, in files of 4 MiB."""
    return {folder: _fill(os.environ.get(folder, folder), mib) for folder, mib in json.loads(sizes).items()}


def _fill(folder: str, mib: int) -> str:
    written, made, said = 0, [], DONE
    try:
        for number in range(mib // 4):
            made.append(Path(folder, f"arena-doctor-{os.getpid()}-{number}"))
            with open(made[-1], "wb", buffering=0) as file:
                for _ in range(4):
                    written += file.write(bytes(1 << 20))
    except OSError as error:
        said = error.strerror or str(error)
    for path in made:
        path.unlink(missing_ok=True)
    return f"{said}: {written >> 20} MiB"


def _take(memory: mmap.mmap | memoryview, mib: int, told: Callable[[int], object]) -> None:
    """Touch every page of a piece of memory, and tell every 4 MiB."""
    block = b"x" * (4 << 20)
    for start in range(0, mib, 4):
        memory[start << 20 : (start + 4) << 20] = block
        told(start + 4)


def hog(kind: str, mib: str, hold_s: str) -> dict[str, str]:
    """Take memory in one of several ways and hold it for some seconds."""
    taken = 0

    def told(now: int) -> None:
        nonlocal taken
        taken = now
        tell(taken=now)

    def take() -> object:
        held = _WAYS[kind](int(mib), told)
        time.sleep(float(hold_s))
        return held() if callable(held) else None

    return {kind: f"{attempt(take)}: {taken} MiB"}


def _private(mib: int, told: Callable[[int], None]) -> object:
    pieces = []
    for start in range(0, mib, 4):
        pieces.append(mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        pieces[-1].write(b"x" * (4 << 20))
        told(start + 4)
    return pieces


def _shared(mib: int, told: Callable[[int], None]) -> object:
    memory = mmap.mmap(-1, mib << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    _take(memory, mib, told)
    return memory


def _memory_file(mib: int, told: Callable[[int], None]) -> object:
    files = []
    for start in range(0, mib, 4):
        if start % 16 == 0:  # several, below the limit on the size of a file; never mapped, so no process shows them
            files.append(os.memfd_create("hog"))
        os.write(files[-1], bytes(4 << 20))
        told(start + 4)
    return files


def _system_v(mib: int, told: Callable[[int], None]) -> object:
    key = libc.shmget(0, ctypes.c_size_t(mib << 20), 0o1600)
    if key < 0:
        raise failure()
    address = libc.shmat(key, None, 0)
    libc.shmctl(key, 0, None)  # IPC_RMID: it ends with its last user
    _take(memoryview((ctypes.c_char * (mib << 20)).from_address(address)).cast("B"), mib, told)
    return address


def _children(mib: int, told: Callable[[int], None]) -> object:
    read, write = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            signal.alarm(LIFE_S)
            with contextlib.suppress(MemoryError, OSError):
                memory = mmap.mmap(-1, mib // 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                _take(memory, mib // 8, lambda now: os.write(write, b"."))
                signal.pause()
            os._exit(1)
        children.append(child)
    os.close(write)
    taken = 0
    while taken < mib and select.select([read], [], [], 1)[0] and os.read(read, 1):  # or they were killed
        taken += 4
        told(taken)

    def held() -> str:
        ended = sum(os.waitpid(child, os.WNOHANG)[0] != 0 for child in children)
        return DONE if taken >= mib and not ended else f"{ended} of 8 children ended"

    return held


def _orphans(mib: int, told: Callable[[int], None]) -> object:
    """Take it in a process whose parent has ended."""
    read, write = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            signal.alarm(LIFE_S)
            with contextlib.suppress(MemoryError, OSError):
                memory = mmap.mmap(-1, mib << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
                _take(memory, mib, lambda now: os.write(write, b"."))
                signal.pause()
        os._exit(0)
    os.wait()
    os.close(write)
    taken = 0
    while taken < mib and os.read(read, 1):
        taken += 4
        told(taken)
    return lambda: "it ended" if select.select([read], [], [], 0)[0] else None


_WAYS = {
    "one": _private,
    "children": _children,
    "orphans": _orphans,
    "shared": _shared,
    "memfd": _memory_file,
    "SysV": _system_v,
}


def fork(count: str, hold_s: str) -> dict[str, str]:
    """Start many processes that sleep, and keep them for some seconds."""
    made = 0

    def go() -> None:
        nonlocal made
        while made < int(count):
            if os.fork() == 0:
                signal.alarm(LIFE_S)
                signal.pause()
                os._exit(0)
            made += 1
            tell(taken=made)
        time.sleep(float(hold_s))

    return {"fork": f"{attempt(go)}: {made}"}


def survive(token: str) -> dict[str, str]:  # the token is in the command line, by which it is found
    """Leave a process behind that has left session and parent."""
    read, write = os.pipe()
    if os.fork() == 0:
        with contextlib.suppress(OSError):
            os.setsid()
        if os.fork() == 0:
            signal.alarm(LIFE_S)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.write(write, token.encode())
            signal.pause()
        os._exit(0)
    os.wait()
    return {"daemon": f"{DONE}: it runs" if os.read(read, 1) else "it did not start"}
