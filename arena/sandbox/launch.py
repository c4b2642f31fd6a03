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
from typing import IO, NamedTuple

import trio

from arena.errors import InfraError
from arena.records import Level
from arena.sandbox import bwrap, landlock, seccomp, system
from arena.sandbox.cgroup import Group, find_home
from arena.sandbox.environment import environment
from arena.sandbox.private import private_folder
from arena.sandbox.process import Sandboxed
from arena.sandbox.room import Limits, Room

_HOST_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_BEFORE = ("setpriv", "--pdeathsig", "KILL", "--")
_NICE = 10
"""At which a bot cannot keep the referee from its core."""
_OOM = 1000
"""The score by which a bot that hogs memory is the first to go: proc(5), oom_score_adj."""
_NO_CAPABILITIES = ("--inh-caps", "-all", "--ambient-caps", "-all", "--bounding-set", "-all")
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


def _expand(argv: Sequence[str], out: str) -> list[str]:
    return [argument.replace("{out}", out) for argument in argv]


class _Line(NamedTuple):
    """What is executed.

    Attributes:
        fds: descriptors that it gets.
        told: what it waits for on the other end of `gate`, and for that to be closed, before it does anything.
    """

    argv: list[str]
    env: Mapping[str, str]
    cwd: str = "/"
    fds: tuple[int, ...] = ()
    told: bytes = b""
    gate: IO[bytes] | None = None


def _tame(pid: int, line: _Line, group: Group | None) -> None:
    """Put a process that was just started into its place, with all that it will start, and let it go on.

    Doing it from outside saves an execution of three programs for each start.
    """
    with contextlib.suppress(ProcessLookupError, FileNotFoundError, BrokenPipeError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(_OOM))
        if group is not None:
            group.add(pid)
        if line.gate is not None:
            line.gate.write(line.told)  # less than a pipe holds
            line.gate.close()


def _spawn(line: _Line, limits: Limits, status: int | None = None, group: Group | None = None) -> Sandboxed:
    fds: list[int] = []
    popen = None
    try:
        for _ in range(3):
            fds += os.pipe()
        stdin, our_stdin, our_stdout, stdout, our_stderr, stderr = fds
        popen = subprocess.Popen(
            line.argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=line.env,
            cwd=line.cwd,
            pass_fds=line.fds,
            start_new_session=True,
            umask=0o022,  # what a build makes, another user will read
        )
        _tame(popen.pid, line, group)
        for fd in (our_stdin, our_stdout, our_stderr):
            os.set_blocking(fd, False)
        started = Sandboxed(popen, (our_stdin, our_stdout, our_stderr), limits, status, group)
    except (OSError, ValueError) as error:
        if popen is not None:
            os.killpg(popen.pid, signal.SIGKILL)  # bwrap's child too, which nobody else would end yet
            popen.wait()
        for fd in fds:
            os.close(fd)
        raise InfraError(f"cannot start {line.argv[0]}: {error}") from error
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    return started


@contextlib.contextmanager
def _bwrap_line(
    room: Room, argv: Sequence[str], limits: Limits, status: int, group: Group | None, *, drops: bool
) -> Iterator[_Line]:
    with contextlib.ExitStack() as files:
        filtered = _kept(files, seccomp.open_program(counted=group is not None))
        told_to, gate = _gate(files)
        options = ["--json-status-fd", str(status), "--seccomp", str(filtered)]
        told = b"".join(argument.encode() + b"\0" for argument in [*bwrap.arguments(room, drops=drops), *options])
        before: list[str] = []
        if drops:
            user = _own_user()
            before = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *_NO_CAPABILITIES, "--"]
            if room.out is not None and room.out_writable:
                os.chown(room.out, user, user)
        line = [
            *_BEFORE,
            *("bwrap", "--args", str(told_to), "--"),  # read by it, they do not show in its command line
            *("env", "-u", "PWD", "--"),  # which bwrap sets
            *before,
            *_limit_arguments(limits, data=group is None, processes=limits.processes),
            *_expand(argv, bwrap.OUT_FOLDER),
        ]
        yield _Line(line, _HOST_ENVIRONMENT, fds=(filtered, told_to, status), told=told, gate=gate)


@contextlib.contextmanager
def _landlock_line(room: Room, argv: Sequence[str], limits: Limits, status: int, home: Path) -> Iterator[_Line]:
    writes = room.out is not None and room.out_writable
    home = room.out if writes and room.out is not None else home  # a build needs a place for what it throws away
    paths = [*system.roots(), *system.settings(), system.interpreter(), room.bot, room.runtime, room.out, home]
    with contextlib.ExitStack() as files:
        filtered = _kept(files, seccomp.open_program(counted=False, alone=False, builds=writes))
        told_to, gate = _gate(files)
        limited = _limit_arguments(limits, data=True, processes=_processes_of_user(limits))
        config = {
            "command": [*limited, *_expand(argv, str(room.out or room.bot))],
            "folder": str(room.bot),
            "readable": [*(str(path) for path in paths if path is not None), *_READABLE, *_DEVICES, *_RANDOM],
            "writable": [*_DEVICES, *([str(room.out)] if writes else [])],
            "filter": filtered,
            "status": status,
        }
        before = ("setpriv", *_NO_CAPABILITIES, "--") if os.geteuid() == 0 else ()
        line = [*_BEFORE, *before, sys.executable, "-I", "-S", landlock.__file__, str(told_to)]
        env = environment(str(room.runtime), str(home))
        yield _Line(line, env, fds=(filtered, told_to, status), told=json.dumps(config).encode(), gate=gate)


def _kept(files: contextlib.ExitStack, fd: int) -> int:
    files.callback(os.close, fd)
    return fd


def _gate(files: contextlib.ExitStack) -> tuple[int, IO[bytes]]:
    """Return the end of a pipe that a launcher reads from, and the end by which it is told."""
    theirs, ours = os.pipe()
    return _kept(files, theirs), files.enter_context(open(ours, "wb", buffering=0))


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
            return _spawn(line, limits, status, group)
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
    nice = ("choom", "-n", str(_OOM), "--", "nice", "-n", str(_NICE), "--")  # nothing waits to be told
    limited = _limit_arguments(limits, data=True, processes=None)
    line = [*_BEFORE, *nice, *limited, *_expand(argv, str(room.out or folder))]
    return _spawn(_Line(line, env, str(folder)), limits)


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
            private = stack.enter_context(private_folder())
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
                return _run(line, group)
        except (InfraError, OSError) as error:
            return str(error)
        finally:
            os.close(status)
            os.close(theirs)
            if group is not None:
                group.remove()


def _run(line: _Line, group: Group | None) -> str:
    try:
        popen = subprocess.Popen(
            line.argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=line.env, cwd=line.cwd, pass_fds=line.fds
        )
    except FileNotFoundError as error:
        return f"{error.filename} is not installed (apt install util-linux)"
    with popen:
        try:
            _tame(popen.pid, line, group)
            _, said = popen.communicate(timeout=_PROBE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            popen.kill()
            late = isinstance(error, subprocess.TimeoutExpired)
            return f"it did not start within {_PROBE_S:.0f} s" if late else str(error)
    if popen.returncode == 0:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it ended with {popen.returncode}"


@cache
def _drops_user() -> bool:
    """Tell whether bots can be given users of their own: root can do so, unless it is none in truth."""
    return os.geteuid() == 0 and not try_level(Level.NAMESPACED, drops=True)
