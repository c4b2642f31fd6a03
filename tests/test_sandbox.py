"""Starting and ending a contained process: what fails, for whom, and what is released."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from arena.errors import ConfigError, InfraError
from arena.sandbox import (
    Level,
    Limits,
    Room,
    Sandboxed,
    available_level,
    landlock,
    launch,
    levels,
    open_sandboxed,
    process,
    require_level,
    tree,
)
from arena.sandbox.cgroup import find_home
from arena.sandbox.environment import make_runtime
from tests.scripts import LEVELS, living, wait_gone

LIMITS = Limits(cpu_s=60)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    for name in ("bot", "runtime", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "bot" / "told").write_text("a file of the bot\n")
    (tmp_path / "out" / "built").write_text("a file of its build\n")
    return Room(tmp_path / "bot", tmp_path / "runtime", tmp_path / "out")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    assert levels.problem(chosen) == "", "this level is needed by the tests"
    return chosen


@pytest.fixture
def no_leak() -> Iterator[None]:
    """See that no descriptor is left open."""
    before = sorted(os.listdir("/proc/self/fd"))
    yield
    assert sorted(os.listdir("/proc/self/fd")) == before


def has_no_child() -> bool:
    """Tell whether every process that we started was waited for."""
    try:
        return os.waitpid(-1, os.WNOHANG) == (-1, 0)
    except ChildProcessError:
        return True


async def output(started: Sandboxed) -> bytes:
    """Return all that it writes to stdout."""
    data = b""
    while True:
        await trio.lowlevel.wait_readable(started.stdout)
        more = os.read(started.stdout, 1 << 16)
        if not more:
            return data
        data += more


async def test_a_program_reads_its_bot_and_its_build(level: Level, room: Room) -> None:
    async with open_sandboxed(level, room, ("cat", "told", "{out}/built"), LIMITS) as started:
        assert await output(started) == b"a file of the bot\na file of its build\n"
        await started.wait()
        assert started.exit_code() == 0


async def test_a_build_folder_is_written_to_only_while_it_builds(room: Room) -> None:
    for writable, code in ((True, 0), (False, 1)):
        now = Room(room.bot, room.runtime, room.out, writable)
        async with open_sandboxed(Level.NAMESPACED, now, ("touch", "{out}/new"), LIMITS) as started:
            await started.wait()
            assert started.exit_code() == code


async def test_without_a_build_the_place_of_out_is_the_bots_folder(room: Room) -> None:
    async with open_sandboxed(Level.NONE, Room(room.bot, room.runtime), ("cat", "{out}/told"), LIMITS) as started:
        assert await output(started) == b"a file of the bot\n"


async def test_a_bot_cannot_change_its_own_files(level: Level, room: Room) -> None:
    async with open_sandboxed(level, room, ("sh", "-c", "echo planted >> told; echo planted > new"), LIMITS) as started:
        await started.wait()
    assert (room.bot / "told").read_text() == "a file of the bot\n"
    assert sorted(path.name for path in room.bot.iterdir()) == ["told"]


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 128", 128), ("exit 200", 200), ("kill -TERM $$", -15), ("kill -KILL $$", -9)],
)
async def test_exit_codes_are_told_alike(level: Level, room: Room, script: str, code: int) -> None:
    async with open_sandboxed(level, room, ("sh", "-c", script), LIMITS) as started:
        await started.wait()
        assert [started.exit_code(), started.exit_code()] == [code, code]


async def test_a_running_program_has_no_exit_code_and_uses_cpu_time(level: Level, room: Room) -> None:
    script = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo done; sleep 1000"
    async with open_sandboxed(level, room, ("sh", "-c", script), LIMITS) as started:
        await trio.lowlevel.wait_readable(started.stdout)
        assert started.exit_code() is None
        assert started.cpu_us() > 10_000
        started.kill()
        await started.wait()
        assert started.exit_code() == -9


async def test_the_cpu_time_of_what_has_ended_is_final_or_unknown(level: Level, room: Room) -> None:
    """Never that of a process it leaves behind."""
    async with open_sandboxed(level, room, ("sh", "-c", "sleep 1000 & echo; read line"), LIMITS) as started:
        await trio.lowlevel.wait_readable(started.stdout)
        before = started.cpu_us()
        assert before > 0
        os.write(started.stdin, b"\n")
        await started.wait()
        after = started.cpu_us()
        assert after >= before if level in (Level.NONE, Level.LANDLOCK) else after == -1


NEVER_WAITS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 0.3: pass
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    print(flush=True)
time.sleep(1000)
"""


async def test_cpu_time_that_nobody_waits_for_counts_where_there_is_a_group(
    level: Level, room: Room, tmp_path: Path
) -> None:
    room = Room(room.bot, make_runtime(tmp_path / "interpreter"))
    async with open_sandboxed(level, room, ("python3", "-c", NEVER_WAITS), LIMITS) as started:
        await trio.lowlevel.wait_readable(started.stdout)
        assert (started.usage().cpu_us > 300_000) is (level is Level.STRICT)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    while not tree.is_stopped(pid):
        pass


@pytest.mark.parametrize("level", [level for level in LEVELS if level is not Level.NONE])
async def test_what_was_born_stopped_goes_on_too(level: Level, room: Room) -> None:
    """A process that was being forked when all were stopped may miss that all go on: here it is stopped by hand."""
    async with open_sandboxed(level, room, ("sh", "-c", "sleep 1000 & echo; wait"), LIMITS) as started:
        await trio.lowlevel.wait_readable(started.stdout)
        first = started._first()
        (child,) = tree.children(first)
        started.pause()
        started.resume()
        for go_on in (started.resume, started.usage):
            stop(child)
            go_on()
            assert not tree.is_stopped(child)
        stop(first)
        started.resume()
        assert tree.is_stopped(first), "it stopped itself"


@pytest.mark.parametrize("level", [level for level in LEVELS if level is not Level.NONE])
async def test_a_look_at_what_is_stopped_lets_nothing_go_on(level: Level, room: Room) -> None:
    async with open_sandboxed(level, room, ("sh", "-c", "echo; exec sleep 1000"), LIMITS) as started:
        await trio.lowlevel.wait_readable(started.stdout)
        first = started._first()
        started.pause()
        while not tree.is_stopped(first):
            pass
        started.usage()
        assert tree.is_stopped(first)


@pytest.mark.usefixtures("no_leak")
async def test_nothing_is_left_after_fifty_programs(level: Level, room: Room) -> None:
    word = str(room.bot)
    for _ in range(25):
        async with open_sandboxed(level, room, ("sh", "-c", "sleep 1000 & sleep 1000", word), LIMITS):
            pass
        async with open_sandboxed(level, room, ("false", word), LIMITS) as started:
            await started.wait()
    assert living(word) == []
    assert has_no_child()


@pytest.mark.usefixtures("no_leak")
async def test_a_cancelled_scope_leaves_nothing(level: Level, room: Room) -> None:
    with trio.CancelScope() as scope:
        async with open_sandboxed(level, room, ("sleep", "1000"), LIMITS) as started:
            scope.cancel()
            await started.wait()
    assert scope.cancelled_caught
    assert has_no_child()


# --- our own failures


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("missing", ["bot", "runtime", "out"])
async def test_a_missing_folder_is_our_failure(level: Level, room: Room, missing: str, tmp_path: Path) -> None:
    os.rename(tmp_path / missing, tmp_path / "moved")
    with pytest.raises(InfraError, match=f"the folder {tmp_path}/{missing} is gone"):
        async with open_sandboxed(level, room, ("true",), LIMITS):
            raise AssertionError


def tools(tmp_path: Path, *names: str) -> dict[str, str]:
    """Return an environment in which only these programs are found."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return {"PATH": str(folder)}


@pytest.mark.usefixtures("no_leak")
async def test_a_launcher_that_is_missing_is_our_failure(
    level: Level, room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_BEFORE", ("no-such-launcher",))
    with pytest.raises(InfraError, match="cannot start no-such-launcher"):
        async with open_sandboxed(level, room, ("true",), LIMITS):
            raise AssertionError


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("present", [("setpriv", "choom", "nice"), ("setpriv",)])
async def test_a_bwrap_that_is_missing_is_our_failure(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...]
) -> None:
    monkeypatch.setattr(launch, "_HOST_ENVIRONMENT", tools(tmp_path, *present))
    async with open_sandboxed(Level.NAMESPACED, room, ("true",), LIMITS) as started:
        await started.wait()
        with pytest.raises(InfraError, match=r"the sandbox ended with 127 before the bot began: .*No such file"):
            started.exit_code()
        assert started.cpu_us() == -1


async def test_it_is_our_failure_too_when_its_reason_was_read_already(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_HOST_ENVIRONMENT", tools(tmp_path))
    monkeypatch.setattr(launch, "_BEFORE", ("/bin/sh", "-c", "exec /bin/sleep 1000 & exit 4", "--"))
    async with open_sandboxed(Level.NAMESPACED, room, ("true",), LIMITS) as started:
        await started.wait()
        with pytest.raises(InfraError, match=r"ended with 4 before the bot began: $"):
            started.exit_code()


@pytest.mark.usefixtures("no_leak")
@pytest.mark.parametrize("free", range(12))
async def test_too_few_descriptors_are_our_failure(level: Level, room: Room, free: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = []
    while (fd := os.dup(0)) < highest:
        taken.append(fd)
    os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + free, hard))
    try:
        async with open_sandboxed(level, room, ("true",), LIMITS) as started:
            await started.wait()
    except (InfraError, OSError) as error:
        cause = error.__cause__ if isinstance(error, InfraError) else error
        assert isinstance(cause, OSError)
        assert os.strerror(errno.EMFILE) in str(cause)
    else:
        assert free > 6
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
    assert has_no_child()


@pytest.mark.usefixtures("no_leak")
async def test_what_was_started_is_killed_when_it_cannot_be_watched(
    level: Level, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", fails(OSError(errno.EMFILE, "too many")))
    with pytest.raises(InfraError, match="too many"):
        async with open_sandboxed(level, room, ("sleep", "1000", str(room.bot)), LIMITS):
            raise AssertionError
    assert has_no_child()
    assert wait_gone(living(str(room.bot))) == [], "bwrap's own children follow it"


@pytest.mark.usefixtures("no_leak")
async def test_a_command_that_cannot_be_one_is_refused(level: Level, room: Room) -> None:
    with pytest.raises(InfraError, match="null byte"):
        async with open_sandboxed(level, room, ("echo", "a\0b"), LIMITS):
            raise AssertionError


@pytest.mark.usefixtures("no_leak")
async def test_a_process_that_does_not_die_is_our_failure(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_DEATH_S", 0.05)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sandboxed, "kill", lambda self: None)
        with pytest.raises(InfraError, match="lives on 0 s after it was killed"):
            async with open_sandboxed(Level.NONE, room, ("sleep", "1000"), LIMITS) as started:
                pid = started._popen.pid
    os.kill(pid, 9)
    started._popen.wait()


# --- levels


@pytest.fixture
def no_cache() -> Iterator[None]:
    for cached in (levels.problem, launch._drops_user, find_home):
        cached.cache_clear()
    yield
    for cached in (levels.problem, launch._drops_user, find_home):
        cached.cache_clear()


def fails(error: Exception | subprocess.CompletedProcess[bytes]) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    def run(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        if isinstance(error, Exception):
            raise error
        return error

    return run


def only(monkeypatch: pytest.MonkeyPatch, *works: Level, why: str = "out of order") -> None:
    """Let only some levels work."""
    monkeypatch.setattr(levels, "problem", lambda level: "" if level in works else why)


SAYING = ("sh", "-c", "echo note >&2; echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")


@pytest.mark.usefixtures("no_cache", "no_leak")
@pytest.mark.parametrize(
    ("launcher", "problem"),
    [
        (("no-such-launcher",), "no-such-launcher is not installed (apt install util-linux)"),
        (("sh", "-c", "exec sleep 1000"), "it did not start within 0 s"),
        (SAYING, "bwrap: setting up uid map: Permission denied"),
        (("sh", "-c", "exit 3"), "it ended with 3"),
    ],
)
def test_a_launcher_that_does_not_work_is_told_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, launcher: tuple[str, ...], problem: str
) -> None:
    monkeypatch.setattr(launch, "_BEFORE", (*launcher, "--"))
    monkeypatch.setattr(launch, "_PROBE_S", 0.3)
    for level in (Level.NAMESPACED, Level.LANDLOCK):
        assert levels.problem(level) == problem
    assert available_level() == (Level.NONE, f"strict: {problem}")
    with pytest.raises(ConfigError, match=r"isolation level namespaced does not work here: .*arena doctor"):
        require_level(Level.NAMESPACED, trusted=True)
    with pytest.raises(ConfigError, match="pass --trusted"):
        require_level(None, trusted=False)
    assert require_level(None, trusted=True) is Level.NONE


@pytest.mark.usefixtures("no_cache", "no_leak")
def test_a_group_that_cannot_be_joined_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.sandbox.cgroup.Group.add", fails(OSError(errno.EPERM, "not yours")))
    assert levels.problem(Level.STRICT) == "[Errno 1] not yours" or levels.problem(Level.NAMESPACED) == ""


@pytest.mark.usefixtures("no_cache")
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert available_level() == (
        Level.NONE,
        "strict: bwrap is not installed (apt install bubblewrap); landlock: this kernel has no landlock, or forbids it",
    )


@pytest.mark.usefixtures("no_cache")
def test_a_machine_without_a_filter_contains_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert available_level() == (Level.NONE, "strict: there is no filter of system calls for riscv64")


@pytest.mark.usefixtures("no_cache")
def test_without_control_groups_namespaces_are_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "find_home", fails(InfraError("no control group can be made")))
    assert available_level() == (Level.NAMESPACED, "strict: no control group can be made")


def test_the_best_level_is_taken_and_none_needs_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    for level in (Level.NAMESPACED, Level.LANDLOCK):
        only(monkeypatch, level, Level.NONE)
        assert require_level(None, trusted=False) is level
    only(monkeypatch, Level.NONE)
    assert require_level(Level.NONE, trusted=True) is Level.NONE
    with pytest.raises(ConfigError, match=r"level none was asked for.*--trusted"):
        require_level(Level.NONE, trusted=False)


def test_an_old_landlock_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, Level.LANDLOCK, Level.NONE)
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    level, reason = available_level()
    assert level is Level.NONE
    assert "with version 5 of this kernel's landlock bots can send signals" in reason
    assert require_level(Level.LANDLOCK, trusted=False) is Level.LANDLOCK


def test_levels_that_are_needed_here_work() -> None:
    assert [levels.problem(level) for level in (Level.NAMESPACED, Level.LANDLOCK)] == ["", ""]


@pytest.mark.usefixtures("no_cache")
def test_root_that_is_none_in_truth_does_not_change_users(monkeypatch: pytest.MonkeyPatch, room: Room) -> None:
    monkeypatch.setattr(launch, "try_level", lambda *_, **__: "setpriv: setresgid failed: Invalid argument")
    assert not launch._drops_user()

    async def user() -> bytes:
        async with open_sandboxed(Level.NAMESPACED, room, ("id", "-u"), LIMITS) as started:
            return await output(started)

    assert trio.run(user) == b"1000\n"


# --- the interpreter


def test_the_runtime_is_made_once(tmp_path: Path) -> None:
    made = make_runtime(tmp_path / "a" / "b")
    assert make_runtime(tmp_path / "a" / "b") == made
    assert list((tmp_path / "a" / "b").iterdir()) == [made]
    code = "import msgpack, sys; print(msgpack.packb(1), [path for path in sys.path if 'site-packages' in path])"
    done = subprocess.run([made / "bin" / "python3", "-c", code], capture_output=True, text=True, check=True, env={})
    packages = made / "lib"
    assert done.stdout.startswith(f"b'\\x01' ['{packages}")
    assert done.stdout.count("site-packages") == 1, "nothing of the arena's own environment"


def test_two_that_make_the_runtime_at_once_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def rename_second(source: Path, target: Path) -> None:
        rename(source, target)
        Path(source).mkdir()
        Path(source, "x").touch()
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_second)
    made = make_runtime(tmp_path)
    assert (made / "bin" / "python3").exists()
    monkeypatch.setattr(os, "rename", fails(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        make_runtime(tmp_path / "other")
