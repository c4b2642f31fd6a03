"""Keeps in memory what all bots may read: how long a file takes then says nothing of who has read it before.

A leg of a match could tell the next one something by which of the system's files it reads, since a file that nobody
has read since the machine started comes slowly from the disk. Bots cannot make a page cold again (see
`arena.sandbox.seccomp`), so it is enough to read everything once before the first match, and now and then again.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import trio

from arena.errors import InfraError
from arena.sandbox import system
from arena.sandbox.orphans import die_with_parent

EVERY_S = 300.0
SHARE = 0.5
"""Of the memory that is available, at most so much is used."""


_buffer = bytearray(1 << 20)


class TooLarge(InfraError):
    """There is more to read than fits into memory."""


def shared_folders() -> list[Path]:
    """Return what every bot may read."""
    prefix = system.interpreter()
    roots = [path for path in system.roots() if not path.is_symlink()]
    return [*roots, *system.settings(), *([prefix] if prefix is not None else [])]


def available_bytes() -> int:
    """Return the memory that could be used now without taking any from a program."""
    found = re.search(r"^MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def warm(folders: Iterable[Path], limit_bytes: int) -> int:
    """Read all files below some folders into memory; return their size in bytes.

    Raises:
        TooLarge: there are more than `limit_bytes`; the rest is not read.
    """
    total = 0
    for path in _files(folders):
        with contextlib.suppress(OSError):  # gone meanwhile, a link, or closed to us and so to bots
            total += _read(path)
        if total > limit_bytes:
            raise TooLarge(f"there are more than {limit_bytes >> 20} MiB of files that bots may read")
    return total


def _files(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        if folder.is_file():
            yield str(folder)
        for parent, _, names in os.walk(folder):
            yield from (os.path.join(parent, name) for name in names)


def _read(path: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # The bytes must pass through a processor: a page that only the disk has written is slower the first time too.
        # The date of the last reading is then that of now, and stays so for a day.
        total = 0
        while size := os.readv(fd, [_buffer]):
            total += size
        return total
    finally:
        os.close(fd)


@contextlib.asynccontextmanager
async def kept_warm(folders: Iterable[Path]) -> AsyncIterator[str]:
    """Read all that is below some folders, and again from time to time, in a process of its own.

    Yields:
        Why it cannot be kept in memory, or an empty string; once all of it has been read.

    Raises:
        InfraError: that process was killed before.
    """
    line = [sys.executable, "-P", "-m", "arena.sandbox.warm", str(os.getpid()), *map(str, folders)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folder or os.getcwd() for folder in sys.path)}
    # Forked by this thread, which lives as long as the runner: the signal of a parent's death follows it. A session of
    # its own, since Ctrl-C on the terminal is for the runner.
    process = subprocess.Popen(  # noqa: ASYNC220
        line, env=env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout is not None
    try:
        await trio.lowlevel.wait_readable(process.stdout.fileno())
        told = process.stdout.readline()
        if not told:
            raise InfraError("what reads the files that bots may read has died; give the same command again")
        yield told.decode().strip()
    finally:
        trio.lowlevel.notify_closing(process.stdout.fileno())
        process.kill()
        process.wait()
        process.stdout.close()


def main(parent: int, folders: list[Path]) -> None:
    """Read everything again and again; tell on stdout how the first time went."""
    die_with_parent(parent)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # bots do not notice
    limit_bytes = round(SHARE * available_bytes())
    try:
        warm(folders, limit_bytes)
    except TooLarge as error:
        print(error, flush=True)
        return
    print(flush=True)
    while True:
        time.sleep(EVERY_S)
        with contextlib.suppress(TooLarge):
            warm(folders, limit_bytes)


if __name__ == "__main__":
    main(int(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]])
