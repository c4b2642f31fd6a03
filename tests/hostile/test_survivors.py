"""What could outlive its match: bots that multiply, and bots whose lane or coordinator is killed at any instant."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from msgspec.structs import replace

from arena.lane import LaneConfig
from arena.records import Clock, MatchSpec
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.cgroup import find_home
from arena.sandbox.environment import make_runtime
from arena.sandbox.orphans import adopting
from tests.fakes import spec_of
from tests.hostile.coordinator import Attempt, Ending, Order, bots_left
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token, wait_gone

PATIENT = Clock(decision_ms=20_000, bank_ms=60_000, startup_ms=20_000)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    return chosen


SPAMMER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)

def fork():
    while True:
        try:
            return os.fork()
        except BlockingIOError:  # too many at once
            pass

for number in range(6):
    if fork() == 0:
        try:
            os.setsid()
        except PermissionError:
            pass
        while True:
            if fork():
                if number % 3 == 0:
                    time.sleep(0.005)  # so that each has forked before it becomes an orphan
                os._exit(0)
os.write(1, b"!")
signal.pause()
"""


async def test_of_twenty_spammers_nothing_is_left(level: Level, runtime: Path, tmp_path: Path) -> None:
    """Each of its processes forks and ends, so that whoever looks for them comes too late."""
    folder = tmp_path / "spammer"
    folder.mkdir()
    (folder / "bot.py").write_text(SPAMMER)
    command = ("python3", "-S", "bot.py", token(folder))
    for _ in range(20):
        with adopting():  # as a lane does
            async with open_sandboxed(level, Room(folder, runtime), command, Limits(cpu_s=60)) as spammer:
                await trio.lowlevel.wait_readable(spammer.stdout)
                assert os.read(spammer.stdout, 10) == b"!"
        assert living(token(folder)) == []


# --- killed at any instant

KILLED = "a lane ended with -9 (killed; the kernel does so when memory runs out)"
VICTIMS = ("coordinator", "supervisor", "lane")
FAMILY = """
import ctypes
ctypes.CDLL(None).prctl(1, 0)  # it would rather not die with its parent
for _ in range(2):
    if os.fork() == 0:
        try:
            os.setsid()
        except PermissionError:
            pass
        hang()
"""


def long_match(folder: Path) -> MatchSpec:
    """Return a match of many short legs of bots that have children."""
    bots = [script(folder / name, FAMILY + HONEST) for name in ("first", "second")]
    return replace(spec_of(*bots, game="durak", clock=PATIENT), legs=((0, 1),) * 200)


def attempts(folder: Path, count: int) -> list[Attempt]:
    """Return attempts by turns on each victim and over the life of a match.

    One third is in the starts of bots, one in play, and one while the lane starts.
    """
    rng = random.Random(count)
    made = []
    for number in range(count):
        stage = number // len(VICTIMS) % 3
        spec = long_match(folder / str(number))
        words = tuple(token(Path(bot.folder)) for bot in spec.bots)
        delay_s = rng.uniform(0, (0.03, 0.3, 0.6)[stage])
        made.append(Attempt(VICTIMS[number % len(VICTIMS)], delay_s, stage != 2, spec, words))
    return made


def endings(level: Level, runtime: Path, folder: Path, tried: Sequence[Attempt]) -> list[Ending]:
    (folder / "order").write_bytes(msgspec.msgpack.encode(Order(LaneConfig(level, str(runtime)), tuple(tried))))
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.coordinator", str(folder / "order")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    assert bots_left(tuple(word for attempt in tried for word in attempt.words)) == ()
    return [msgspec.json.decode(line, type=Ending) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, pytest.param(180, marks=pytest.mark.nightly)])
def test_nothing_outlives_a_lane_or_a_coordinator_that_is_killed(
    level: Level, runtime: Path, tmp_path: Path, count: int
) -> None:
    ended = endings(level, runtime, tmp_path, attempts(tmp_path, count))
    assert len(ended) == count
    of_lanes = [(ending.told, ending.left) for ending in ended if ending.told]
    assert of_lanes == [(KILLED, ())] * (count // len(VICTIMS)), "the match is void, the run goes on"
    assert wait_gone([ending.lane for ending in ended]) == []
    if level is Level.STRICT:
        find_home.cache_clear()
        home = find_home()  # it sweeps
        folders = [folder for parent in (home.memory, home.pids) for folder in parent.glob("arena-[0-9]*")]
        assert {folder.name.split("-")[1] for folder in folders}.isdisjoint(str(ending.lane) for ending in ended)


# --- left in peace


@pytest.mark.nightly
def test_a_healthy_bot_that_is_idle_for_long_lives_on(level: Level, runtime: Path, tmp_path: Path) -> None:
    """No signal of a parent's thread that has ended reaches it, nor one of ours."""
    thinks = "hello()\nq = ask()\ntime.sleep(16)\nanswer(q)\nplay_on()"
    bots = [script(tmp_path / "thinks", thinks), script(tmp_path / "waits", HONEST)]
    clock = Clock(decision_ms=60_000, bank_ms=300_000, startup_ms=20_000)
    lane = LaneProcess(LaneConfig(level, str(runtime)))
    assert lane.play(spec_of(*bots, clock=clock)).faults == ()
    assert lane.close() == 0
