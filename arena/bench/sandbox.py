"""What containing a bot costs at each isolation level, against none at all.

Levels are measured in turn, so that each measurement has one without isolation beside it; what is told is the median of
the differences (of starts) or of the ratios (of decisions) to that neighbour. The runner and its bots are pinned to one
core, as those of a lane are.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import msgspec
import trio

from arena.bench.decision import Frame, bench_spec, decision_us, greet, round_trip_us, told
from arena.bot import Bot, OpenProcess, settle
from arena.errors import ConfigError, InfraError
from arena.games import GAMES
from arena.lane import LaneConfig, host_for, machine_facts
from arena.records import BotHash, BotRef, Clock, MatchRecord, MatchSpec
from arena.referee import Host, play_match
from arena.rules import complete_options
from arena.sandbox import Level

BASE = Level.NONE
"""Every difference and every ratio is to this level."""
THINK_S = 0.5
"""So long does the opponent of a bot that ponders think."""
_DECKS = 10
_STARTS = 5
_MATCHES = 3
"""In each round; a match is one leg."""

# One of two seats: it ponders without end from its start on, or thinks for long when it is first asked. The first tells
# in its second answer how much CPU time it got since its first one.
_BOT = """\
import struct, sys, threading, time
import msgpack

def send(message):
    body = msgpack.packb(message)
    sys.stdout.buffer.write(struct.pack(">I", len(body)) + body)
    sys.stdout.buffer.flush()

def ponder():
    while asks < 2:
        pass

role, asks = sys.argv[1], 0
sys.setswitchinterval(0.0001)
if role == "ponder":
    threading.Thread(target=ponder, daemon=True).start()
send({"type": "hello", "protocol": 1})
while head := sys.stdin.buffer.read(4):
    message = msgpack.unpackb(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
    if message["type"] == "ask":
        asks += 1
        note = ""
        if role == "ponder" and asks == 2:
            note = str((time.process_time() - off) * 1000)
        if role == "think" and asks == 1:
            time.sleep(float(sys.argv[2]))
        off = time.process_time()
        send({"type": "act", "id": message["id"], "action": message["legal"][0], "note": note})
"""


class LevelCost(msgspec.Struct, frozen=True):
    """What a level costs.

    Attributes:
        program_ms: from the start of a compiled bot to its hello.
        program_added_ms: so much longer than at `BASE`.
        python_ms: from the start of a Python bot to its hello.
        python_added_ms: so much longer than at `BASE`.
        end_ms: from the decision to end the compiled bot until nothing of it is left.
        round_trip_us: the blocking round trip of a decision, without a referee.
        round_trip_ratio: to that at `BASE`.
        decision_us: a decision as the referee plays it.
        decision_ratio: to that at `BASE`.
        off_turn_ms: the CPU time that a bot which never rests got while its opponent thought for `THINK_S`; once.
    """

    level: Level
    program_ms: float
    program_added_ms: float
    python_ms: float
    python_added_ms: float
    end_ms: float
    round_trip_us: float
    round_trip_ratio: float
    decision_us: float
    decision_ratio: float
    off_turn_ms: float


class _Measured(msgspec.Struct):
    """What was measured at a level; what has the same place at two levels was measured one after the other."""

    program_ms: list[float] = []
    python_ms: list[float] = []
    end_ms: list[float] = []
    round_trip_us: list[float] = []
    decision_us: list[float] = []


class Cast(msgspec.Struct, frozen=True):
    """The bots that are measured.

    Attributes:
        program: a compiled bot that plays durak and answers at once.
        python: a Python bot.
    """

    program: BotRef
    python: BotRef


def measure(cast: Cast, config: LaneConfig, levels: Sequence[Level], rounds: int, scratch: Path) -> list[LevelCost]:
    """Measure levels in turn, `rounds` times; pins this process to `config.core` meanwhile.

    Args:
        config: of the lane that is imitated, at one level after the other.
        levels: all of them work here, and `BASE` is among them.
        scratch: an empty folder.

    Raises:
        ConfigError: a bot does not start, or the compiled one does not play.
    """
    (scratch / "bot.py").write_text(_BOT)
    measured = {level: _Measured() for level in levels}
    with _pinned(config.core):
        spec = msgspec.structs.replace(bench_spec(cast.program, _DECKS), legs=((0, 1),))
        machine = machine_facts()
        hosts = {level: host_for(msgspec.structs.replace(config, level=level.value), spec, machine) for level in levels}
        played = trio.run(play_match, spec, hosts[BASE])
        if played.faults:
            raise ConfigError(_refusal(cast.program, played.faults[0].text))
        deals = told(spec, played)
        for _ in range(rounds):
            _measure_starts(cast, hosts, measured)
            trio.run(_measure_round_trips, spec, deals, hosts, measured)
            _measure_decisions(spec, hosts, measured)
        off_turn_ms = {
            level: _off_turn_ms(trio.run(play_match, _pondering(scratch), host)) for level, host in hosts.items()
        }
    return [_cost(level, found, measured[BASE], off_turn_ms[level]) for level, found in measured.items()]


def _refusal(bot: BotRef, why: str) -> str:
    return f"nothing can be measured with {bot.name}: {why}; name another one with --bot or --python"


@contextmanager
def _pinned(core: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _measure_starts(cast: Cast, hosts: Mapping[Level, Host], measured: Mapping[Level, _Measured]) -> None:
    for _ in range(_STARTS):
        for level, host in hosts.items():
            start_ms, end_ms = trio.run(_start, host.open_process, cast.program)
            measured[level].program_ms.append(start_ms)
            measured[level].end_ms.append(end_ms)
        for level, host in hosts.items():
            measured[level].python_ms.append(trio.run(_start, host.open_process, cast.python)[0])


async def _measure_round_trips(
    spec: MatchSpec,
    deals: Sequence[Sequence[Frame]],
    hosts: Mapping[Level, Host],
    measured: Mapping[Level, _Measured],
) -> None:
    """Say the same to a process of each level, deal by deal in turn."""
    async with AsyncExitStack() as stack:
        processes = {level: await stack.enter_async_context(hosts[level].open_process(spec.bots[0])) for level in hosts}
        for process in processes.values():
            greet(process, spec)
        for frames in deals:
            for level, process in processes.items():
                measured[level].round_trip_us.append(round_trip_us(process, frames))


def _measure_decisions(spec: MatchSpec, hosts: Mapping[Level, Host], measured: Mapping[Level, _Measured]) -> None:
    for _ in range(_MATCHES):
        for level, host in hosts.items():
            measured[level].decision_us.append(decision_us(trio.run(play_match, spec, host)))


async def _start(open_process: OpenProcess, ref: BotRef) -> tuple[float, float]:
    """Return the milliseconds from the start of a bot to its hello, and from then on until nothing of it is left."""
    clock = Clock()
    began = time.perf_counter()
    async with open_process(ref) as process:
        bot = Bot(process)
        try:
            bot.begin(bot.talk.hello(clock, 0), clock.startup_ms / 1000)
            await settle([bot])
        finally:
            bot.close()
        if bot.error is not None:
            raise ConfigError(_refusal(ref, str(bot.error)))
        ready = time.perf_counter()
    return (ready - began) * 1000, (time.perf_counter() - ready) * 1000


def _pondering(folder: Path) -> MatchSpec:
    """Return a match in which the first seat ponders while the second one thinks."""
    game = GAMES["avalanche"]  # its seats take turns
    ponders, thinks = (
        BotRef(role, BotHash("0" * 64), str(folder), ("python3", "bot.py", role, str(THINK_S)))
        for role in ("ponder", "think")
    )
    options = complete_options(game, 2, {})
    clock = Clock(decision_ms=20_000, bank_ms=60_000, startup_ms=20_000)
    return MatchSpec(1, game.name, game.version, options, (ponders, thinks), (bytes(32),), ((0, 1),), clock)


def _off_turn_ms(record: MatchRecord) -> float:
    notes = [step.note for deal in record.deals for step in deal.steps if step.note]
    if len(notes) != 1:
        raise InfraError(f"the bot that ponders did not play on: {[fault.text for fault in record.faults]}")
    return float(notes[0])


def _cost(level: Level, found: _Measured, base: _Measured, off_turn_ms: float) -> LevelCost:
    return LevelCost(
        level,
        statistics.median(found.program_ms),
        _median_difference(found.program_ms, base.program_ms),
        statistics.median(found.python_ms),
        _median_difference(found.python_ms, base.python_ms),
        statistics.median(found.end_ms),
        statistics.median(found.round_trip_us),
        _median_ratio(found.round_trip_us, base.round_trip_us),
        statistics.median(found.decision_us),
        _median_ratio(found.decision_us, base.decision_us),
        off_turn_ms,
    )


def _median_difference(found: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(one - other for one, other in zip(found, base, strict=True))


def _median_ratio(found: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(found, base, strict=True))
