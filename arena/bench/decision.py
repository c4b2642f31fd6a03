"""What a decision costs the arena, against the least that any runner could do.

The physical limit is a blocking ping-pong: the same bytes written to the same bot and its answer read, with the runner
and the bot pinned to one core and nothing else done. The arena's cost is a real durak match, its time without process
starts divided by its decisions. Both are measured in turn in one run, and only their ratio is told.
"""

from __future__ import annotations

import os
import statistics
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgpack
import msgspec
import trio

from arena.bot import OpenProcess, Process
from arena.games import GAMES
from arena.lane import LaneConfig, host_for, machine_facts
from arena.luck import derive
from arena.records import BotRef, MatchRecord, MatchSpec
from arena.referee import play_match
from arena.retelling import Retelling
from arena.rules import complete_options, rule_set_id
from arena.schedule.seatings import seatings
from arena.store.matches import StoredMatch
from arena.wire import Conversation

_LENGTH = struct.Struct(">I")
DECKS = 40


class DecisionCost(msgspec.Struct, frozen=True):
    """The result of the bench.

    Attributes:
        ratio: the median over the rounds of the arena's time over the limit's in the same round.
        low: the smallest of the rounds.
        high: the largest of the rounds.
        limit_us: the median time of a blocking round trip.
        arena_us: the median time of a decision.
    """

    ratio: float
    low: float
    high: float
    limit_us: float
    arena_us: float
    rounds: int
    decisions: int


def bench_spec(bot: BotRef, decks: int = DECKS) -> MatchSpec:
    """Return the match that is measured: durak at two seats, the bot against itself."""
    game = GAMES["durak"]
    keys = tuple(derive(b"arena bench", "deck", number) for number in range(decks))
    return MatchSpec(1, "durak", game.version, complete_options(game, 2, {}), (bot, bot), keys, seatings(2))


def measure(bot: BotRef, config: LaneConfig, rounds: int) -> DecisionCost:
    """Measure in turn, `rounds` times; pins this process to `config.core` meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {config.core})
    try:
        spec = bench_spec(bot)
        host = host_for(config, spec, machine_facts())
        limits, costs = [], []
        decisions = 0
        for _ in range(rounds):
            record = trio.run(play_match, spec, host)
            costs.append(decision_us(record))
            decisions += sum(len(deal.steps) for deal in record.deals)
            limits.append(trio.run(_limit, spec, host.open_process, record))
    finally:
        os.sched_setaffinity(0, before)
    ratios = [cost / limit for cost, limit in zip(costs, limits, strict=True)]
    return DecisionCost(
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        statistics.median(limits),
        statistics.median(costs),
        rounds,
        decisions,
    )


def decision_us(record: MatchRecord) -> float:
    """Return the median over the deals of the microseconds a decision took."""
    return statistics.median(deal.duration_us / len(deal.steps) for deal in record.deals)


async def _limit(spec: MatchSpec, open_process: OpenProcess, record: MatchRecord) -> float:
    """Return the median over the deals of the microseconds of a blocking round trip, with one process."""
    async with open_process(spec.bots[0]) as process:
        greet(process, spec)
        return statistics.median(round_trip_us(process, frames) for frames in told(spec, record))


class Frame(NamedTuple):
    """A message to a bot as it goes over the wire."""

    data: bytes
    is_ask: bool


def told(spec: MatchSpec, record: MatchRecord) -> list[list[Frame]]:
    """Return, deal by deal, message for message, what the first seat was sent in the first leg of a match."""
    deals = []
    for deal in (deal for deal in record.deals if deal.leg == 0):
        retelling = Retelling(_as_stored(spec), deal, (), spec.clock, [0])
        sent = [said.what for said in retelling.follow() if isinstance(said.what, bytes)]
        deals.append([Frame(data, msgpack.unpackb(data[_LENGTH.size :])["type"] == "ask") for data in sent])
    return deals


def greet(process: Process, spec: MatchSpec) -> None:
    """Exchange hellos with a process, whose pipes block from now on."""
    for fd in (process.stdin, process.stdout):
        os.set_blocking(fd, True)
    os.write(process.stdin, Conversation().hello(spec.clock, 0))
    _read_frame(process.stdout)


def round_trip_us(process: Process, frames: Sequence[Frame]) -> float:
    """Return the microseconds that an ask of a deal and its answer take, on average."""
    spent_ns = 0
    for frame in frames:
        began = time.perf_counter_ns()
        os.write(process.stdin, frame.data)
        if frame.is_ask:
            _read_frame(process.stdout)
            spent_ns += time.perf_counter_ns() - began
    return spent_ns / sum(frame.is_ask for frame in frames) / 1000


def _as_stored(spec: MatchSpec) -> StoredMatch:
    rule_set = rule_set_id(GAMES[spec.game], spec.options)
    hashes = tuple(bot.hash for bot in spec.bots)
    names = tuple(bot.name for bot in spec.bots)
    places = tuple(range(len(names)))
    return StoredMatch(spec.id, 0, spec.game, 1, rule_set, "played", places, names, hashes, spec.decks, spec.legs, None)


def _read_frame(fd: int) -> None:
    data = os.read(fd, 1 << 16)
    (length,) = _LENGTH.unpack_from(data)
    while len(data) < _LENGTH.size + length:
        data += os.read(fd, 1 << 16)
