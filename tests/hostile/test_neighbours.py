"""What a hostile bot must not cost others: memory of its lane, the matches beside it, and a void instead of a loss."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from arena.errors import OverloadError
from arena.executor import LocalLanes, open_lanes
from arena.lane import LaneConfig
from arena.records import Clock, Fault, MatchRecord, MatchSpec
from arena.sandbox.environment import make_runtime
from tests.fakes import spec_of
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token

PATIENT = Clock(decision_ms=20_000, bank_ms=60_000, startup_ms=20_000)
QUICK = Clock(decision_ms=250, startup_ms=20_000)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module", params=LEVELS)
def config(request: pytest.FixtureRequest, runtime: Path) -> LaneConfig:
    return LaneConfig(request.param, str(runtime))


@pytest.fixture(scope="module")
def lane(config: LaneConfig) -> Iterator[LaneProcess]:
    lane = LaneProcess(config)
    yield lane
    assert lane.close() == 0


def match(folder: Path, body: str, clock: Clock = PATIENT, decks: int = 1) -> MatchSpec:
    """Return a match of a bot, which moves first, against an honest one."""
    bots = [script(folder / "bad", body), script(folder / "good", HONEST)]
    return spec_of(*bots, clock=clock, decks=decks)


def told(faults: tuple[Fault, ...]) -> list[tuple[int, str, str]]:
    return [(fault.seat, fault.kind.value, fault.detail) for fault in faults]


# --- the memory of a lane

FLOODS = {
    "endless stdout": ("garbage", "oversize", "while True: write(b'\\xc0' * 65536)"),
    "100 MB of stderr": ("flood", "stderr", "for _ in range(1600): os.write(2, b'!' * 65536)"),
    "giant frames": ("garbage", "oversize", "while True: write(b'\\xff' * 65536)"),
    "deep nesting": ("garbage", "malformed", "write(struct.pack('>I', 65536) + b'\\x91' * 65536)\nhang()"),
}
FLAT_KIB = 4096
"""That much may come and go: the arenas of an allocator, not the streams of bots, of which each is longer."""


def peak_kib(lane: LaneProcess) -> int:
    """Return the most memory that a lane ever had in use."""
    found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{lane.popen.pid}/status").read_text())
    assert found
    return int(found[1])


def flood(lane: LaneProcess, folder: Path, rounds: int) -> None:
    """Play so many deals of each flood, three at a time: after its third fault a bot is not asked any more."""
    for what, (kind, detail, body) in FLOODS.items():
        for _ in range(0, rounds, 3):
            record = lane.play(match(folder / what, "hello()\nask()\n" + body, decks=3))
            assert told(record.faults) == [(0, kind, detail)] * 3, what


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [pytest.param(6), pytest.param(60, marks=pytest.mark.nightly)])
def test_the_memory_of_a_lane_stays_flat(lane: LaneProcess, tmp_path: Path, rounds: int) -> None:
    flood(lane, tmp_path, 3)
    before = peak_kib(lane)
    flood(lane, tmp_path, rounds)
    assert peak_kib(lane) - before < FLAT_KIB


# --- the match beside it

FORKER = """
for _ in range(16):
    if os.fork() == 0:
        while True:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
"""
SPINNER = """
import threading
def spin():
    while True: pass
for _ in range(10):
    if os.fork() == 0: spin()
    if os.fork() == 0:
        if os.fork() == 0: spin()
        os._exit(0)
for _ in range(20):
    threading.Thread(target=spin, daemon=True).start()
"""
LATE = {"forks": FORKER, "spins in children, in orphans and in threads": SPINNER}


@pytest.mark.parametrize("how", LATE)
def test_who_keeps_its_core_busy_and_is_late_loses(lane: LaneProcess, tmp_path: Path, how: str) -> None:
    """It is no void, which would be played again."""
    record = lane.play(match(tmp_path, f"hello()\nask()\n{LATE[how]}hang()", QUICK))
    assert told(record.faults) == [(0, "timeout", "silent")]
    assert living(token(tmp_path / "bad")) == living(token(tmp_path / "good")) == []


async def play(lanes: LocalLanes, spec: MatchSpec) -> MatchRecord:
    """Return the record of a match; what was void because this machine is loaded is played again."""
    for _ in range(4):
        with contextlib.suppress(OverloadError):
            return await lanes.play(spec)
    return await lanes.play(spec)


@pytest.mark.slow
async def test_the_match_on_another_lane_is_not_disturbed(config: LaneConfig, tmp_path: Path) -> None:
    bad = [match(tmp_path / what, f"hello()\nask()\n{body}") for what, (_, _, body) in FLOODS.items()]
    bad += [match(tmp_path / how, f"hello()\nask()\n{body}hang()", QUICK) for how, body in LATE.items()]
    honest = match(tmp_path / "honest", HONEST, decks=2)
    beside: list[MatchRecord] = []
    async with open_lanes(2, config) as lanes:
        alone = await play(lanes, honest)
        async with trio.open_nursery() as nursery:
            is_over = False

            async def play_on() -> None:
                while not is_over:
                    beside.append(await play(lanes, honest))

            nursery.start_soon(play_on)
            kinds = [told((await play(lanes, spec)).faults) for spec in bad]
            is_over = True
    expected = [(kind, detail) for kind, detail, _ in FLOODS.values()] + [("timeout", "silent")] * len(LATE)
    assert kinds == [[(0, *fault)] for fault in expected]
    assert len(beside) > 1
    for record in (alone, *beside):
        assert record.faults == ()
        assert [deal.digests for deal in record.deals] == [deal.digests for deal in alone.deals]
