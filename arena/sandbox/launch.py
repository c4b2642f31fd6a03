"""Starts programs at an isolation level.

Processes are forked by the thread that calls, which must live as long as they do: the kernel's parent-death signal
follows the forking thread, and trio's worker threads end after ten idle seconds. So nothing here uses a thread.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import trio

from arena.errors import InfraError
from arena.sandbox import bwrap, landlock, seccomp, system
from arena.sandbox.cgroup import Group, find_home
from arena.sandbox.environment import environment
from arena.sandbox.process import Sandboxed
from arena.sandbox.room import Level, Limits, Room

_HOST_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
# A bot that hogs memory is the first to go; at nice 10 it cannot keep the referee from its core.
_BEFORE = ("setpriv", "--pdeathsig", "KILL", "--", "choom", "-n", "1000", "--", "nice", "-n", "10", "--")
_NO_CAPABILITIES = ("--inh-caps", "-all", "--ambient-caps", "-all", "--bounding-set", "-all")
# `"$1"` groups follow, each a folder; whoever writes 0 to its cgroup.procs is in it, with all that it starts.
_JOIN = (
    'n=$1; while [ "$n" -gt 0 ]; do shift; echo 0 > "$1/cgroup.procs" || exit 96; n=$((n - 1)); done; shift; exec "$@"'
)
_READABLE = ("/proc/self", "/proc/cpuinfo", "/proc/filesystems", "/proc/version")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_RANDOM = ("/dev/random", "/dev/urandom")
_FIRST_USER = 1_900_000_000
_USERS_OF_A_LANE = 32
_MIB = 1 << 20
_PROBE_S = 20.0
_numbers = itertools.count()


def _own_user() -> int:
    """Return a user that nobody on this machine has, so that limits by user count for one bot alone.

    Two processes that live at the same time have different ids, and no lane has so many bots at once.
    """
    return _FIRST_USER + os.getpid() * _USERS_OF_A_LANE + next(_numbers) % _USERS_OF_A_LANE


def _limit_arguments(limits: Limits, *, data: bool, processes: int | None) -> list[str]:
    args = [
        "prlimit",
        "--core=0",
        f"--nofile={limits.open_files}",
        f"--fsize={limits.file_bytes}",
        f"--cpu={limits.cpu_s}",
        "--memlock=65536",
        "--msgqueue=0",
        "--sigpending=256",
        "--rtprio=0",
    ]
    if data:
        # Reserved address space is no memory: node and java reserve gigabytes. Thread stacks count, hence twice.
        args += [f"--data={2 * limits.memory_mib * _MIB}", f"--as={16 << 30}"]
    if processes is not None:
        args.append(f"--nproc={processes}")
    return [*args, "--"]


def _memory_file(data: bytes) -> int:
    """Return a file at its start; arguments handed over in it do not show in a command line."""
    fd = os.memfd_create("launch", 0)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _expand(argv: Sequence[str], out: str) -> list[str]:
    return [argument.replace("{out}", out) for argument in argv]


def _spawn(
    argv: Sequence[str],
    limits: Limits,
    env: Mapping[str, str],
    cwd: str = "/",
    pass_fds: tuple[int, ...] = (),
    status: int | None = None,
    group: Group | None = None,
) -> Sandboxed:
    fds: list[int] = []
    popen = None
    try:
        for _ in range(3):
            fds += os.pipe()
        stdin, our_stdin, our_stdout, stdout, our_stderr, stderr = fds
        popen = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
            umask=0o022,  # what a build makes, another user will read
        )
        for fd in (our_stdin, our_stdout, our_stderr):
            os.set_blocking(fd, False)
        started = Sandboxed(popen, (our_stdin, our_stdout, our_stderr), limits, status, group)
    except (OSError, ValueError) as error:
        if popen is not None:
            os.killpg(popen.pid, signal.SIGKILL)  # bwrap's child too, which nobody else would end yet
            popen.wait()
        for fd in fds:
            os.close(fd)
        raise InfraError(f"cannot start {argv[0]}: {error}") from error
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    return started


class _Line(NamedTuple):
    """What is executed, and the descriptors that it gets."""

    argv: list[str]
    env: Mapping[str, str]
    fds: tuple[int, ...]


@contextlib.contextmanager
def _bwrap_line(
    room: Room, argv: Sequence[str], limits: Limits, status: int, group: Group | None, *, drops: bool
) -> Iterator[_Line]:
    options = ["--json-status-fd", str(status)]
    with _open_files() as files:
        files.append(seccomp.open_program(counted=group is not None))
        options += ["--seccomp", str(files[0])]
        told = [*bwrap.arguments(room, drops=drops), *options]
        files.append(_memory_file(b"".join(argument.encode() + b"\0" for argument in told)))
        before: list[str] = []
        if drops:
            user = _own_user()
            before = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *_NO_CAPABILITIES, "--"]
            if room.out is not None and room.out_writable:
                os.chown(room.out, user, user)
        folders = group.folders if group is not None else ()
        line = [
            *_BEFORE,
            *(("sh", "-c", _JOIN, "join", str(len(folders)), *map(str, folders)) if folders else ()),
            *("bwrap", "--args", str(files[1]), "--"),
            *("env", "-u", "PWD", "--"),  # which bwrap sets
            *before,
            *_limit_arguments(limits, data=group is None, processes=limits.processes),
            *_expand(argv, bwrap.OUT_FOLDER),
        ]
        yield _Line(line, _HOST_ENVIRONMENT, (*files, status))


@contextlib.contextmanager
def _landlock_line(room: Room, argv: Sequence[str], limits: Limits, status: int, home: Path) -> Iterator[_Line]:
    writes = room.out is not None and room.out_writable
    home = room.out if writes and room.out is not None else home  # a build needs a place for what it throws away
    paths = [*system.roots(), *system.settings(), system.interpreter(), room.bot, room.runtime, room.out, home]
    with _open_files() as files:
        files.append(seccomp.open_program(counted=False, alone=False, builds=writes))
        limited = _limit_arguments(limits, data=True, processes=_processes_of_user(limits))
        config = {
            "command": [*limited, *_expand(argv, str(room.out or room.bot))],
            "folder": str(room.bot),
            "readable": [*(str(path) for path in paths if path is not None), *_READABLE, *_DEVICES, *_RANDOM],
            "writable": [*_DEVICES, *([str(room.out)] if writes else [])],
            "filter": files[0],
            "status": status,
        }
        files.append(_memory_file(json.dumps(config).encode()))
        before = ("setpriv", *_NO_CAPABILITIES, "--") if os.geteuid() == 0 else ()
        line = [*_BEFORE, *before, sys.executable, "-I", "-S", landlock.__file__, str(files[1])]
        yield _Line(line, environment(str(room.runtime), str(home)), (*files, status))


@contextlib.contextmanager
def _open_files() -> Iterator[list[int]]:
    files: list[int] = []
    try:
        yield files
    finally:
        for fd in files:
            os.close(fd)


def _processes_of_user(limits: Limits) -> int | None:
    """Return the limit on the processes of our user that leaves a bot its own; root has none."""
    if os.geteuid() == 0:
        return None
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.geteuid():
                count += len(os.listdir(path / "task"))
    return count + limits.processes


def _line(
    level: Level, room: Room, argv: Sequence[str], limits: Limits, status: int, group: Group | None, home: Path
) -> AbstractContextManager[_Line]:
    if level is Level.LANDLOCK:
        return _landlock_line(room, argv, limits, status, home)
    return _bwrap_line(room, argv, limits, status, group, drops=_drops_user())


def _start_contained(level: Level, room: Room, argv: Sequence[str], limits: Limits, home: Path) -> Sandboxed:
    status, theirs = os.pipe()
    os.set_blocking(status, False)
    group = None
    try:
        group = Group(find_home(), limits) if level is Level.STRICT else None
        with _line(level, room, argv, limits, theirs, group, home) as line:
            return _spawn(line.argv, limits, line.env, "/", line.fds, status, group)
    except BaseException:
        os.close(status)
        if group is not None:
            group.remove()
        raise
    finally:
        os.close(theirs)


def _start_plain(room: Room, argv: Sequence[str], limits: Limits, private: Path) -> Sandboxed:
    folder = private / "bot"
    shutil.copytree(room.bot, folder)
    env = environment(str(room.runtime), str(private / "home"))
    line = [*_BEFORE, *_limit_arguments(limits, data=True, processes=None), *_expand(argv, str(room.out or folder))]
    return _spawn(line, limits, env, str(folder))


@contextlib.asynccontextmanager
async def open_sandboxed(level: Level, room: Room, argv: Sequence[str], limits: Limits) -> AsyncIterator[Sandboxed]:
    """Start a program in a room; whatever happens, all of it is gone when the scope ends.

    Args:
        argv: the command; `{out}` in it becomes the build folder as the program sees it.

    Raises:
        InfraError: it cannot be started for a reason of ours, or something of it lives on.
    """
    if any("\0" in argument for argument in argv):
        raise InfraError("a command cannot hold a null byte")
    for folder in (room.bot, room.runtime, room.out):
        if folder is not None and not folder.is_dir():
            raise InfraError(f"the folder {folder} is gone")
    with contextlib.ExitStack() as stack:
        private = Path()
        if level in (Level.LANDLOCK, Level.NONE):
            made = tempfile.TemporaryDirectory(prefix="arena-bot-", ignore_cleanup_errors=True)
            private = Path(stack.enter_context(made))
            (private / "home").mkdir()
        if level is Level.NONE:
            process = _start_plain(room, argv, limits, private)
        else:
            process = _start_contained(level, room, argv, limits, private / "home")
        try:
            yield process
        finally:
            with trio.CancelScope(shield=True):
                await process.close()


def try_level(level: Level, *, drops: bool | None = None) -> str:
    """Start a program that does nothing as a bot of a level is started; return what went wrong, or an empty text.

    Args:
        drops: as for bwrap's arguments; None for what works.
    """
    status, theirs = os.pipe()
    group = None
    with tempfile.TemporaryDirectory() as folder:
        limits, path = Limits(cpu_s=60), Path(folder)
        room, argv = Room(path, path), ("/bin/true",)
        try:
            group = Group(find_home(), limits) if level is Level.STRICT else None
            if drops is None:
                made = _line(level, room, argv, limits, theirs, group, path)
            else:
                made = _bwrap_line(room, argv, limits, theirs, group, drops=drops)
            with made as line:
                return _run(line)
        except (InfraError, OSError) as error:
            return str(error)
        finally:
            os.close(status)
            os.close(theirs)
            if group is not None:
                group.remove()


def _run(line: _Line) -> str:
    try:
        done = subprocess.run(
            line.argv, capture_output=True, timeout=_PROBE_S, check=False, env=line.env, pass_fds=line.fds
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed (apt install util-linux)"
    except subprocess.TimeoutExpired:
        return f"it did not start within {_PROBE_S:.0f} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {done.returncode}"


@cache
def _drops_user() -> bool:
    """Tell whether bots can be given users of their own: root can do so, unless it is none in truth."""
    return os.geteuid() == 0 and not try_level(Level.NAMESPACED, drops=True)
