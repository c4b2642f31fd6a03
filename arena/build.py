"""A bot's place on this machine: its bundle unpacked and, if it has a build, built in the sandbox.

    <bots>/<hash>/src/   the unpacked bundle, read-only
    <bots>/<hash>/out/   what its build wrote; absent if there is none

A build is as little trusted as a bot: it runs contained like one, without network, and writes to a folder of its own.
Nothing of that folder is used before the build and all that it started are gone, and it holds regular files only.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trio

from arena.bundle import MAX_DEPTH, Bundle, Meter, move_into_place, open_folder, unpack, verify, walk
from arena.config import BotManifest
from arena.errors import ConfigError, InfraError
from arena.records import BotHash, BotRef
from arena.sandbox import Level, Limits, Room, Sandboxed, open_sandboxed

TIMEOUT_S = 120.0
MAX_OUT_BYTES = 256 << 20
MAX_OUT_FILES = 10_000
MAX_OUT_FOLDERS = 2_000

_TAIL_BYTES = 4 << 10
_READ_BYTES = 1 << 16
_WATCH_S = 0.25
"""How often the output is measured while it is written, since a disk can be filled long before a build ends."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXIT_HINTS = {126: ", its program cannot be executed", 127: ", its program was not found"}


def prepare(bots: Path, bundle: Bundle) -> Path:
    """Unpack a bundle and return its folder `<bots>/<hash>`.

    Raises:
        ConfigError: it is there but no longer what it was.
    """
    folder = bots / bundle.hash
    unpack(bundle, folder / "src")
    return folder


def verified(bots: Path, bot: BotHash) -> Path:
    """Return the folder of a bot that was prepared before, after checking that its bundle is still what it was.

    Raises:
        ConfigError: it is not, or is not there.
    """
    folder = bots / bot
    verify(folder / "src", bot)
    return folder


def bot_ref(bots: Path, bot: BotHash, manifest: BotManifest) -> BotRef:
    """Return a prepared and built bot as a lane needs it.

    Raises:
        ConfigError: its bundle is no longer what it was, or its build is missing.
    """
    folder = verified(bots, bot)
    out = None
    if manifest.build is not None:
        out = str(folder / "out")
        if not os.path.isdir(out):
            raise ConfigError(f"{manifest.name} is not built here: {out} is missing; submit it again")
    return BotRef(manifest.name, bot, str(folder / "src"), manifest.command, out)


async def build(
    level: Level, folder: Path, runtime: Path, manifest: BotManifest, *, timeout_s: float = TIMEOUT_S
) -> Path | None:
    """Build a bot unless that is done already.

    Args:
        folder: from `prepare`.
        runtime: the interpreter's folder, as for a room.

    Returns:
        `<bots>/<hash>/out`, which appears whole or not at all, or None for a bot without a build.

    Raises:
        ConfigError: the build failed, took too long, or wrote too much or anything but regular files; tells the
            command, its exit code and the end of what it printed.
        InfraError: the folder cannot be written or the sandbox not be started.
    """
    if manifest.build is None:
        return None
    final = folder / "out"
    if final.is_dir():
        return final
    verify(folder / "src", BotHash(folder.name))
    try:
        with _scratch(folder) as scratch:
            made = scratch / "out"
            made.mkdir()
            room = Room(folder / "src", runtime, made, out_writable=True)
            problem, printed = await _run(level, room, made, manifest.build, timeout_s)
            problem = problem or _output_problem(made)
            if problem:
                command = shlex.join(manifest.build)
                raise ConfigError(f"the build of {manifest.name} {problem}: {command}\n{printed}".rstrip())
            move_into_place(made, final)
    except OSError as error:
        raise InfraError(f"cannot build {manifest.name} in {folder}: {error}") from error
    return final


@contextlib.contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    """Make a folder that is gone at the end, whatever was done to it: Python's own way fails at deep folders."""
    path = tempfile.mkdtemp(prefix=".build-", dir=parent)
    try:
        yield Path(path)
    finally:
        for command in (["chmod", "-Rf", "u+rwx", path], ["rm", "-rf", path]):  # neither follows links
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)


async def _run(level: Level, room: Room, out: Path, argv: tuple[str, ...], timeout_s: float) -> tuple[str, str]:
    """Run a build to its end; return what went wrong, if anything, and the end of what it printed."""
    limits = Limits(
        cpu_s=math.ceil(timeout_s) * (os.cpu_count() or 1),
        memory_mib=2048,  # rustc and javac need more than bots may
        processes=256,
        file_bytes=MAX_OUT_BYTES,
        open_files=1024,
    )
    printed = bytearray()
    async with open_sandboxed(level, room, argv, limits) as process:
        _end_input(process)
        async with trio.open_nursery() as nursery:
            for pipe in (process.stdout, process.stderr):
                nursery.start_soon(_drain, pipe, printed)
            problem = await _wait(process, out, timeout_s)
            nursery.cancel_scope.cancel()
        for pipe in (process.stdout, process.stderr):
            _read_waiting(pipe, printed)
    return problem, _CONTROL.sub("", printed.decode(errors="replace"))


async def _wait(process: Sandboxed, out: Path, timeout_s: float) -> str:
    """Wait for the end of a build, watching what it writes; return what went wrong, if anything."""
    with trio.move_on_after(timeout_s):
        while not (problem := _usage_problem(out)):
            with trio.move_on_after(_WATCH_S):
                await process.wait()
                return _exit_problem(process.exit_code())
        return problem
    return f"did not end within {timeout_s:g} s"


def _end_input(process: Sandboxed) -> None:
    """Close what a program reads from, but keep the descriptor, which is the process's to close."""
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), process.stdin, inheritable=False)


def _exit_problem(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by signal {-code}"
    return f"failed with exit code {code}{_EXIT_HINTS.get(code, '')}" if code else ""


async def _drain(pipe: int, printed: bytearray) -> None:
    while True:
        await trio.lowlevel.wait_readable(pipe)
        if not _read_waiting(pipe, printed):
            return


def _read_waiting(pipe: int, printed: bytearray) -> bool:
    """Keep the end of what a build printed; return whether there may be more."""
    try:
        data = os.read(pipe, _READ_BYTES)
    except BlockingIOError:
        return True
    printed += data
    del printed[:-_TAIL_BYTES]
    return bool(data)


def _meter() -> Meter:
    return Meter(MAX_OUT_FILES, MAX_OUT_FOLDERS, MAX_OUT_BYTES)


def _usage_problem(out: Path) -> str:
    """Return why a folder that is being written is too large already, or an empty text."""
    try:
        with open_folder(out) as folder:
            _measure(folder, _meter())
    except (ConfigError, OSError) as error:
        return f"wrote too much: {error}"
    return ""


def _measure(folder: int, meter: Meter, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ConfigError(f"folders are nested deeper than {MAX_DEPTH}")
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # it is being written: what was there may be gone
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                meter.add_file(name, 512 * status.st_blocks)
                continue
            meter.add_folder(name)
            with open_folder(name, folder) as inner:
                _measure(inner, meter, depth + 1)


def _output_problem(out: Path) -> str:
    """Make finished output read-only; return why it is not accepted, or an empty text."""
    try:
        with open_folder(out) as folder:
            for entry in walk(folder, _meter()):
                with entry.open() as file:
                    os.fchmod(file.fileno(), 0o555 if entry.status.st_mode & stat.S_IXUSR else 0o444)
    except (ConfigError, OSError) as error:
        return f"left an output that is not accepted: {error}"
    return ""
