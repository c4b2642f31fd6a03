"""Coordinators as a program of their own, each killed, or its lane, at an instant of a match: `... ORDER.msgpack`.

Several run at a time, forked from one process that has imported all they need. For each an `Ending` is written, a line
of JSON.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import msgspec
import trio.testing
from msgspec.structs import replace

from arena.errors import InfraError
from arena.executor import open_lanes
from arena.lane import LaneConfig
from arena.records import MatchSpec
from arena.sandbox import tree
from arena.sandbox.orphans import supervise
from tests.scripts import living, wait_gone

AT_A_TIME = 5


class Attempt(msgspec.Struct, frozen=True):
    """Whom to kill in a match of many legs, so long after it began.

    Attributes:
        victim: `lane`, `coordinator`, or its `supervisor`.
        warm: the lane has played before, so that bots start at once.
        words: in the command lines of all processes of the bots.
    """

    victim: str
    delay_s: float
    warm: bool
    spec: MatchSpec
    words: tuple[str, ...]


class Order(msgspec.Struct, frozen=True):
    """What is tried."""

    config: LaneConfig
    attempts: tuple[Attempt, ...]


class Ending(msgspec.Struct, frozen=True):
    """How an attempt ended.

    Attributes:
        lane: the process id of the lane.
        told: of the match, by a coordinator that lives.
        left: processes of the bots that outlived the lane, while the coordinator goes on.
    """

    lane: int
    told: str = ""
    left: tuple[int, ...] = ()


def tell(ending: Ending) -> None:
    os.write(1, msgspec.json.encode(ending) + b"\n")


def bots_left(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the processes of the bots that do not end; new ones may come while others are waited for."""
    until = time.monotonic() + 10
    while (pids := [pid for word in words for pid in living(word)]) and time.monotonic() < until:
        wait_gone(pids)
    return tuple(pids)


async def coordinate(config: LaneConfig, attempt: Attempt) -> None:
    lane = 0

    async def play() -> None:
        told = "it was played"
        try:
            await lanes.play(attempt.spec)
        except InfraError as error:
            told = str(error)
        tell(Ending(lane, told, bots_left(attempt.words)))

    async with open_lanes(1, config) as lanes, trio.open_nursery() as nursery:
        if attempt.warm:
            await lanes.play(replace(attempt.spec, legs=attempt.spec.legs[:1]))
        nursery.start_soon(play)
        await trio.testing.wait_all_tasks_blocked()
        (lane,) = tree.children(os.getpid())
        await trio.sleep(attempt.delay_s)
        victims = {"lane": lane, "coordinator": os.getpid(), "supervisor": os.getppid()}
        if attempt.victim != "lane":
            tell(Ending(lane))
        os.kill(victims[attempt.victim], signal.SIGKILL)


def make(order: Order, number: int) -> NoReturn:
    """Be one supervised coordinator, on a core of its own if there are enough."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
    supervise()
    trio.run(coordinate, order.config, order.attempts[number])
    os._exit(0)


def main() -> None:
    order = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Order)
    codes: list[int] = []
    for number in range(len(order.attempts)):
        if number >= AT_A_TIME:
            codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
        if os.fork() == 0:
            make(order, number)
    while len(codes) < len(order.attempts):
        codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
    expected = {"lane": 0, "coordinator": 128 + signal.SIGKILL, "supervisor": -signal.SIGKILL}
    assert sorted(codes) == sorted(expected[attempt.victim] for attempt in order.attempts), codes


if __name__ == "__main__":
    main()
