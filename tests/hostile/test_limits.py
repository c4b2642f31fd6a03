"""Bots that use more than they may, or what is not theirs: memory, processes, and the time of others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.lane import LaneConfig
from arena.records import Clock, Fault, MatchRecord
from arena.sandbox import Level
from arena.sandbox.environment import make_runtime
from tests.fakes import spec_of
from tests.scripts import HONEST, LEVELS, LaneProcess, living, script, token

PATIENT = Clock(decision_ms=20_000, bank_ms=60_000, startup_ms=20_000)
MEMORY_MIB = 128


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="module", params=LEVELS)
def lane(request: pytest.FixtureRequest, runtime: Path) -> Iterator[LaneProcess]:
    lane = LaneProcess(LaneConfig(request.param, str(runtime), memory_mib=MEMORY_MIB))
    yield lane
    assert lane.close() == 0


def played(lane: LaneProcess, body: str, tmp_path: Path, good: str = HONEST) -> MatchRecord:
    """Play a deal of a bot, which moves first, and another; nothing of either may be left."""
    bots = [script(tmp_path / "bad", "import mmap\n" + body), script(tmp_path / "good", good)]
    record = lane.play(spec_of(*bots, clock=PATIENT))
    assert living(token(tmp_path / "bad")) == living(token(tmp_path / "good")) == []
    return record


def fault_of(lane: LaneProcess, body: str, tmp_path: Path) -> Fault:
    (fault,) = played(lane, "hello()\nask()\n" + body, tmp_path).faults
    assert fault.seat == 0
    return fault


SPREAD = """
for _ in range(8):
    if os.fork() == 0:
        held = b"x" * (24 << 20)
        hang()
hang()
"""
HOGS = {
    "in one process": "held = b'x' * (200 << 20)\nhang()",
    "in shared memory": "held = mmap.mmap(-1, 200 << 20)\nfor _ in range(200): held.write(b'x' * (1 << 20))\nhang()",
    "spread over children": SPREAD,
    "in a child that nobody waits for": "if os.fork() == 0:\n    held = b'x' * (200 << 20)\n    hang()\nhang()",
}


@pytest.mark.parametrize("where", HOGS)
def test_memory_is_counted_over_all_processes(lane: LaneProcess, tmp_path: Path, where: str) -> None:
    fault = fault_of(lane, HOGS[where], tmp_path)
    assert (fault.kind.value, fault.detail) == ("memory", "limit"), fault
    assert fault.text.startswith("your bot's processes used more than 128 MiB of memory together")


def test_what_seems_more_than_it_is_no_fault(lane: LaneProcess, tmp_path: Path) -> None:
    """Pages that forks share count once, files of the system do not count."""
    body = """
hello()
q = ask()
held = b"x" * (60 << 20)
for _ in range(6):
    if os.fork() == 0:
        hang()
used = os.times()
while time.process_time() < 0.25: pass
answer(q)
play_on()
"""
    assert played(lane, body, tmp_path).faults == ()


def test_address_space_is_no_memory(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nheld = mmap.mmap(-1, 4 << 30, prot=0)\nplay_on()"
    assert played(lane, body, tmp_path).faults == ()


def test_an_allocation_beyond_all_limits_fails(lane: LaneProcess, tmp_path: Path) -> None:
    if lane.level == Level.STRICT:
        fault = fault_of(lane, "held = b'x' * (3 << 30)", tmp_path)
        assert (fault.kind.value, fault.detail) == ("memory", "limit")
    else:
        fault = fault_of(lane, "held = b'x' * (3 << 30)", tmp_path)
        assert (fault.kind.value, fault.detail) == ("crash", "exit")
        assert fault.stderr.endswith(b"MemoryError\n")


def test_a_memory_file_counts_or_is_not_to_be_had(lane: LaneProcess, tmp_path: Path) -> None:
    body = "for _ in range(8):\n    fd = os.memfd_create('x')\n    os.write(fd, b'x' * (30 << 20))\nsys.exit(0)"
    fault = fault_of(lane, body, tmp_path)
    if lane.level == Level.STRICT:  # the kernel kills, or lets the write fail
        assert (fault.kind.value, fault.detail) == ("memory", "limit") or b"[Errno 12]" in fault.stderr
    elif lane.level != Level.NONE:
        assert fault.stderr.endswith(b"OSError: [Errno 38] Function not implemented\n")


FORK = """
hello()
q = ask()
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            hang()
        count += 1
except BlockingIOError:
    pass
while time.process_time() < 0.25: pass
answer(q, note=str(count))
play_on()
"""


def test_processes_are_limited(lane: LaneProcess, tmp_path: Path) -> None:
    record = played(lane, FORK, tmp_path)
    if lane.level in (Level.STRICT, Level.NAMESPACED):
        assert record.faults == ()
        assert int(record.deals[0].steps[0].note) in (62, 63)
    elif not record.faults:  # where all processes of its user count, it may be either
        assert (lane.level, os.geteuid() == 0) == (Level.LANDLOCK, False)
        assert int(record.deals[0].steps[0].note) <= 64
    else:
        (fault,) = record.faults
        assert (fault.kind.value, fault.detail) == ("memory", "processes")
        assert fault.text.endswith("processes at once; 64 may be")


SLOW = """
hello()
for _ in range(2):
    q = ask()
    time.sleep(0.3)
    answer(q)
play_on()
"""
PONDER = """
clock = mmap.mmap(-1, 16)

def ponder(at):
    while True:
        struct.pack_into("d", clock, at, time.process_time())

import threading
{start}
hello()
worst = 0.0
off = None
for _ in range(3):
    q = ask()
    now = [time.process_time(), *struct.unpack_from("d", clock)]
    if off is not None:
        worst = max(worst, *(after - before for before, after in zip(off, now)))
    off = [time.process_time(), *struct.unpack_from("d", clock)]
    answer(q, note=str(round(worst * 1000)))
while True:
    answer(ask(), note="")
"""
PONDERERS = {
    "in a thread": "threading.Thread(target=ponder, args=(8,), daemon=True).start()",
    "in a child": "if os.fork() == 0: ponder(0)",
    "in a child of a child": "if os.fork() == 0:\n    if os.fork() == 0: ponder(0)\n    os._exit(0)\nos.wait()",
}


@pytest.mark.parametrize("where", PONDERERS)
def test_a_bot_off_turn_is_stopped(lane: LaneProcess, tmp_path: Path, where: str) -> None:
    """Of the time in which its opponent thinks it has next to nothing."""
    record = played(lane, PONDER.format(start=PONDERERS[where]), tmp_path, SLOW)
    assert record.faults == ()
    notes = [step.note for step in record.deals[0].steps if step.seat == 0 and step.note]
    assert len(notes) == 3
    is_stopped = int(notes[-1]) < 50  # milliseconds of CPU time while the other had 300
    assert is_stopped is (lane.level != Level.NONE)


FORKS_AT_ONCE = """
hello()
for _ in range(40):
    if os.fork() == 0: os._exit(0)
    os.wait()
play_on()
"""


@pytest.mark.slow
@pytest.mark.parametrize("legs", [5, pytest.param(60, marks=pytest.mark.nightly)])
def test_a_bot_that_is_stopped_while_it_forks_plays_on(lane: LaneProcess, tmp_path: Path, legs: int) -> None:
    bots = [script(tmp_path / name, FORKS_AT_ONCE) for name in ("bad", "good")]
    assert lane.play(spec_of(*bots, clock=PATIENT, legs=[(0, 1)] * legs)).faults == ()


def test_bots_that_are_stopped_by_turns_play_on(lane: LaneProcess, tmp_path: Path) -> None:
    assert played(lane, SLOW, tmp_path, SLOW.replace("0.3", "0.03")).faults == ()
