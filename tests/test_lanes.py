"""The pool of lanes: one match at a time each, replaced when they die, and nothing left when anything is killed."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import trio
from msgspec.structs import replace

from arena import lane
from arena.errors import InfraError, LaneError
from arena.executor import open_lanes
from arena.lane import LaneConfig, Voided
from arena.records import Clock, MatchRecord, MatchSpec
from arena.sandbox.environment import make_runtime
from tests.fakes import bot_ref, spec_of
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token, wait_gone

PATIENT = Clock(decision_ms=60_000, bank_ms=60_000, startup_ms=60_000)
# Tells that it has been asked through a pipe with a name, and thinks for ever.
THINKER = """
hello()
ask()
os.open(sys.argv[2] + "/asked", os.O_RDONLY)
hang()
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> LaneConfig:
    return LaneConfig("none", str(make_runtime(tmp_path_factory.mktemp("runtime"))))


@pytest.fixture(params=LEVELS)
def isolated(request: pytest.FixtureRequest, config: LaneConfig) -> LaneConfig:
    return LaneConfig(request.param, config.runtime)


def match(tmp_path: Path, body: str = HONEST, number: int = 1) -> MatchSpec:
    """Return a match of a bot, which moves first, against an honest one."""
    bots = [script(tmp_path / "first", body), script(tmp_path / "second", HONEST)]
    return replace(spec_of(*bots, game="durak", clock=PATIENT), id=number)


def thinking(tmp_path: Path) -> MatchSpec:
    """Return a match of a bot that tells when it is asked, by opening the pipe `tmp_path/out/asked` to read."""
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "asked")
    (tmp_path / "out" / "asked").chmod(0o444)
    spec = match(tmp_path, THINKER)
    thinker, other = spec.bots
    told = replace(thinker, command=(*thinker.command, "{out}"), out=str(tmp_path / "out"))
    return replace(spec, bots=(told, other))


async def wait_asked(tmp_path: Path) -> None:
    """Wait until the thinker thinks."""
    pipe = str(tmp_path / "out" / "asked")
    try:
        with trio.fail_after(60):  # only for a coordinator or lane that died before it could ask
            opened = await trio.to_thread.run_sync(os.open, pipe, os.O_WRONLY, abandon_on_cancel=True)
            os.close(opened)
    except trio.TooSlowError:
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))  # lets the thread end
        raise


def bots_of(tmp_path: Path) -> list[int]:
    return living(token(tmp_path / "first")) + living(token(tmp_path / "second"))


async def play_all(config: LaneConfig, jobs: int, specs: list[MatchSpec]) -> list[MatchRecord]:
    records: list[MatchRecord] = []
    async with open_lanes(jobs, config) as lanes, trio.open_nursery() as nursery:

        async def play(spec: MatchSpec) -> None:
            records.append(await lanes.play(spec))

        assert lanes.lanes == jobs
        for spec in specs:
            nursery.start_soon(play, spec)
    return records


async def test_a_lane_plays_one_match_at_a_time(config: LaneConfig, tmp_path: Path) -> None:
    records = await play_all(config, 1, [match(tmp_path, number=number) for number in range(3)])
    assert sorted(record.id for record in records) == [0, 1, 2]
    assert all(record.faults == () for record in records)
    for before, after in pairwise(records):
        assert before.started_at + before.duration_us / 1e6 <= after.started_at + 0.001
    assert len({record.deals[0].digests for record in records}) == 1
    assert bots_of(tmp_path) == []


TELL_CORES = """
hello()
while True:
    q = ask()
    answer(q, note=",".join(map(str, sorted(os.sched_getaffinity(0)))))
"""


async def test_lanes_are_pinned_and_share_cores_when_there_are_more_of_them(config: LaneConfig, tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    jobs = len(cores) + 1
    records = await play_all(config, jobs, [match(tmp_path, TELL_CORES, number) for number in range(2 * jobs)])
    assert {record.core for record in records} == set(cores)
    for record in records:
        notes = {step.note for step in record.deals[0].steps if step.seat == 0}
        assert notes == {str(record.core)}, "a bot runs on the core of its lane"


async def test_a_record_says_what_machine_and_code_played(isolated: LaneConfig, tmp_path: Path) -> None:
    (record,) = await play_all(isolated, 1, [match(tmp_path)])
    assert (record.isolation, record.protocol) == (isolated.level, 1)
    assert record.machine.cores == os.cpu_count()
    assert record.machine.memory_mib > 100
    assert record.machine.system.startswith("Linux ")
    assert all(us >= 0 for us in record.deals[0].cpu_us)


KILL_LANE = """
hello()
ask()
with open(f"/proc/{os.getppid()}/fd/2", "w") as stderr:
    stderr.write("the last words of a lane")
os.kill(os.getppid(), signal.SIGKILL)
hang()
"""


async def test_a_lane_that_is_killed_is_replaced_and_its_last_words_are_told(
    config: LaneConfig, tmp_path: Path
) -> None:
    async with open_lanes(1, config) as lanes:
        with pytest.raises(InfraError, match=r"^a lane ended with -9 \(killed; .*\): the last words of a lane$"):
            await lanes.play(match(tmp_path, KILL_LANE))
        assert wait_gone(bots_of(tmp_path)) == []
        assert (await lanes.play(match(tmp_path))).faults == ()


@contextlib.contextmanager
def limited(kind: int, amount: int) -> Iterator[None]:
    """Lower a limit of this process and of all that it starts."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (amount, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.slow
async def test_file_descriptors_that_run_out_are_never_a_bots_fault(isolated: LaneConfig, tmp_path: Path) -> None:
    spec, told = match(tmp_path), set()
    for files in range(6, 42, 3):
        try:
            with limited(resource.RLIMIT_NOFILE, files):
                (record,) = await play_all(isolated, 1, [spec])
        except* InfraError as group:
            told.add(str(group.exceptions[0]))
        else:
            assert record.faults == ()
            told.add("played")
    assert "played" in told
    assert any("cannot start a lane" in text and "ulimit -n" in text for text in told), told
    assert len(told) > 2, told
    assert wait_gone(bots_of(tmp_path)) == []


async def test_a_lane_without_memory_says_so_and_plays_the_next_match(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play_match(spec: MatchSpec, host: object) -> MatchRecord:
        async with trio.open_nursery():
            raise MemoryError

    monkeypatch.setattr("arena.lane.play_match", play_match)
    reply = await lane._play(match(tmp_path), config, lane.machine_facts())
    assert isinstance(reply, Voided)
    assert reply.reason.startswith("a lane could not go on: MemoryError; this machine has too little memory left")


def own_lane() -> int:
    """Return the process id of our one lane; the machine may have lanes of others."""
    (pid,) = set(living("arena.lane")) & set(children(os.getpid()))
    return pid


async def test_a_lane_that_dies_between_matches_is_replaced(config: LaneConfig, tmp_path: Path) -> None:
    async with open_lanes(1, config) as lanes:
        await lanes.play(match(tmp_path))
        pid = own_lane()
        os.kill(pid, signal.SIGKILL)
        assert wait_gone([pid]) == []
        with pytest.raises(
            InfraError, match=r"^a lane ended with -9 \(killed; the kernel does so when memory runs out\)$"
        ):
            await lanes.play(match(tmp_path))
        assert (await lanes.play(match(tmp_path))).faults == ()


async def test_a_lane_that_does_not_end_is_killed(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.executor._GOODBYE_S", 0.2)
    async with open_lanes(1, config) as lanes:
        await lanes.play(match(tmp_path))
        pid = own_lane()
        os.kill(pid, signal.SIGSTOP)
    assert pid not in living("arena.lane")


async def test_a_lane_that_is_frozen_is_killed_and_replaced(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.executor._SILENCE_S", 3.0)
    async with open_lanes(1, config) as lanes:
        await lanes.play(match(tmp_path))
        pid = own_lane()
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(LaneError, match=r"^a lane gave no sign of life for 3 s$"):
            await lanes.play(match(tmp_path))
        assert pid not in living("arena.lane")
        assert (await lanes.play(match(tmp_path))).faults == ()


async def test_a_long_match_shows_signs_of_life(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.executor._SILENCE_S", 2.0)
    body = "hello()\nq = ask()\ntime.sleep(3.0)\nanswer(q)\nplay_on()"
    async with open_lanes(1, config) as lanes:
        assert (await lanes.play(match(tmp_path, body))).faults == ()


async def test_other_lanes_play_on_when_one_is_killed(config: LaneConfig, tmp_path: Path) -> None:
    async with open_lanes(2, config) as lanes, trio.open_nursery() as nursery:
        killed = trio.Event()

        async def play_killer() -> None:
            with pytest.raises(InfraError):
                await lanes.play(match(tmp_path / "a", KILL_LANE))
            killed.set()

        nursery.start_soon(play_killer)
        records = [await lanes.play(match(tmp_path / "b", number=number)) for number in range(2)]
        await killed.wait()
    assert [record.faults for record in records] == [(), ()]


async def test_a_void_match_tells_why_and_the_lane_plays_on(config: LaneConfig, tmp_path: Path) -> None:
    async with open_lanes(1, config) as lanes:
        spec = match(tmp_path)
        os.rename(tmp_path / "second", tmp_path / "moved")
        with pytest.raises(InfraError, match=r"^the folder .*/second is gone$"):
            await lanes.play(spec)
        os.rename(tmp_path / "moved", tmp_path / "second")
        assert (await lanes.play(spec)).faults == ()
    assert bots_of(tmp_path) == []


async def test_a_lane_that_cannot_be_started_is_our_failure(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with open_lanes(1, config) as lanes:
        with pytest.raises(InfraError, match="cannot start a lane"):
            await lanes.play(match(tmp_path))
        monkeypatch.undo()
        assert (await lanes.play(match(tmp_path))).faults == ()


async def test_a_lane_runs_our_code_whatever_lies_in_the_working_directory(
    config: LaneConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in ("struct", "trio", "msgspec", "arena"):
        (work / f"{name}.py").write_text("raise SystemExit('planted')")
    monkeypatch.setattr(sys, "path", [folder or os.getcwd() for folder in sys.path])
    monkeypatch.chdir(work)
    assert (await play_all(config, 1, [match(tmp_path)]))[0].faults == ()


async def test_a_cancelled_match_leaves_no_bot(isolated: LaneConfig, tmp_path: Path) -> None:
    spec = thinking(tmp_path)
    async with open_lanes(1, isolated) as lanes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lanes.play, spec)
            await wait_asked(tmp_path)
            assert len(bots_of(tmp_path)) >= 2
            nursery.cancel_scope.cancel()
        assert bots_of(tmp_path) == []
        assert (await lanes.play(match(tmp_path))).faults == (), "the lane was replaced"


async def test_closing_the_pool_in_a_match_leaves_no_bot(isolated: LaneConfig, tmp_path: Path) -> None:
    spec = thinking(tmp_path)
    async with trio.open_nursery() as nursery:
        async with open_lanes(1, isolated) as lanes:

            async def play() -> None:
                with pytest.raises(InfraError, match=r"^a lane ended with 0$|^the pool of lanes was closed$"):
                    await lanes.play(spec)

            nursery.start_soon(play)
            await wait_asked(tmp_path)
    assert bots_of(tmp_path) == []


# --- the coordinator dies

COORDINATOR = """
import sys, trio, msgspec
from arena.executor import open_lanes
from arena.lane import LaneConfig, Voided
from arena.records import MatchSpec
from arena.sandbox.orphans import supervise

supervise()

async def main():
    spec = msgspec.msgpack.decode(open(sys.argv[1], "rb").read(), type=MatchSpec)
    async with open_lanes(1, LaneConfig(sys.argv[2], sys.argv[3])) as lanes:
        await lanes.play(spec)

trio.run(main)
"""


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid: int) -> list[int]:
    return [other for child in children(pid) for other in (child, *descendants(child))]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_a_killed_coordinator(isolated: LaneConfig, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "spec").write_bytes(msgspec.msgpack.encode(thinking(tmp_path)))
    supervisor = subprocess.Popen(
        [sys.executable, "-c", COORDINATOR, str(tmp_path / "spec"), isolated.level, isolated.runtime],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    trio.run(wait_asked, tmp_path)
    family = descendants(supervisor.pid)
    assert len(bots_of(tmp_path)) >= 2
    assert set(bots_of(tmp_path)) <= set(family)
    pidfds = [os.pidfd_open(pid) for pid in family]
    (runner,) = children(supervisor.pid)
    os.kill(runner if number == signal.SIGKILL else supervisor.pid, number)
    assert supervisor.wait(20) == 128 + number
    assert select.select(pidfds, [], [], 0)[0] == pidfds, "all were gone before the supervisor was"
    for pidfd in pidfds:
        os.close(pidfd)
    assert supervisor.stderr is not None
    supervisor.stderr.close()


SUPERVISED = "import os, signal, subprocess, sys\nfrom arena.sandbox.orphans import *\n"


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SUPERVISED + code, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("sys.exit(7)", 7),
        ("pass", 0),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139),
        ("os.kill(os.getppid(), signal.SIGTERM)\nsignal.pause()", 143),
        ("os.kill(os.getppid(), signal.SIGHUP)\nsignal.pause()", 129),
        (
            "signal.signal(15, lambda *_: os._exit(5))\nos.kill(os.getppid(), 15)\nsignal.pause()",
            5,
        ),
    ],
)
def test_a_supervisor_ends_as_its_runner_did(code: str, expected: int) -> None:
    done = run_python("supervise()\nprint('once', flush=True)\n" + code)
    assert (done.returncode, done.stdout) == (expected, "once\n"), done.stderr


ORPHANS = """
read, write = os.pipe()
for own_session in (False, True):
    if os.fork() == 0:
        if own_session:
            os.setsid()
        if os.fork() == 0:
            os.write(write, b"x")
            signal.pause()
        os._exit(0)
    os.wait()
assert len(os.read(read, 1) + os.read(read, 1)) == 2
"""


def test_a_supervisor_kills_what_its_runner_leaves_behind(tmp_path: Path) -> None:
    done = run_python("supervise()\n" + ORPHANS + "sys.exit(3)", str(tmp_path))
    assert done.returncode == 3, done.stderr
    assert living(str(tmp_path)) == []


def test_adopted_orphans_are_children_and_can_be_killed(tmp_path: Path) -> None:
    code = "adopt_orphans()\n" + ORPHANS + "print(kill_children(), kill_children())"
    done = run_python(code, str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "2 0\n"), done.stderr
    assert living(str(tmp_path)) == []


def test_who_wants_to_die_with_a_parent_that_is_gone_ends_at_once() -> None:
    assert run_python("die_with_parent(1 << 22)\nprint('alive')").stdout == ""
    assert run_python("die_with_parent(os.getppid())\nprint('alive')").stdout == "alive\n"


# --- a lane without a coordinator


def test_a_lane_ends_quietly_without_a_word_said_to_it() -> None:
    done = subprocess.run([sys.executable, "-m", "arena.lane"], input=b"", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_nothing_leaks_in_fifty_matches(isolated: LaneConfig, tmp_path: Path) -> None:
    lane = LaneProcess(isolated)
    try:
        spec = match(tmp_path, "hello()\nq = ask()\nif os.fork() == 0: hang()\nanswer(q, 'castle')\nhang()")

        def held() -> tuple[set[str], list[int]]:
            fds = {os.readlink(path) for path in Path(f"/proc/{lane.popen.pid}/fd").iterdir()}
            return {re.sub(r"\d+", "N", fd) for fd in fds}, children(lane.popen.pid)

        nothing = spec_of(*(bot_ref(name, tmp_path, ("false",)) for name in ("first", "second")))
        lane.play(spec)
        before = len(list(Path(f"/proc/{lane.popen.pid}/fd").iterdir())), held()
        for _ in range(10):
            assert len(lane.play(spec).faults) == 1
            assert [len(lane.play(nothing).faults) for _ in range(4)] == [2] * 4
        assert (len(list(Path(f"/proc/{lane.popen.pid}/fd").iterdir())), held()) == before
        assert children(lane.popen.pid) == []
    finally:
        assert lane.close() == 0
