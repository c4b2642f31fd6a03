"""The clocks of a deal: exact to the microsecond under a virtual clock, and kept by real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from arena.lane import LaneConfig
from arena.records import Clock, DealRecord, MatchRecord
from arena.sandbox import available_level
from arena.sandbox.environment import make_runtime
from tests.fakes import (
    HELLO,
    BotEnd,
    Do,
    Message,
    Script,
    act,
    at_ask,
    first,
    frame,
    last,
    play,
    play_with,
    player,
    silent,
    spec_of,
    where,
)
from tests.scripts import HONEST, LaneProcess, script

pytestmark = pytest.mark.usefixtures("busy")
Spend = Callable[[Message], int]
"""How many microseconds to take for an ask."""


def spending(clock: MockClock, spend_us: Spend) -> Script:
    """Return an honest bot whose answers are read exactly so long after their asks: nothing runs while time jumps."""

    async def bot(end: BotEnd) -> int | None:
        end.send(HELLO)
        while True:
            ask = await end.ask()
            end.send(act(ask, first(ask)))
            clock.jump(spend_us(ask) / 1e6)

    return bot


def in_turn(*times_us: int) -> Spend:
    """Return times that are spent one after the other, and nothing after them."""
    left = iter(times_us)
    return lambda ask: next(left, 0)


def elapsed(played: DealRecord, seat: int = 0) -> list[int]:
    return [step.elapsed_us for step in played.steps if step.seat == seat]


# The limit of a decision


@pytest.mark.parametrize("before", [(), (333_333,), (100_000, 200_000, 300_000), (999_999, 1)])
async def test_an_answer_at_its_limit_is_in_time_and_a_microsecond_later_is_late(
    autojump_clock: MockClock, before: Sequence[int]
) -> None:
    async def played(spent_us: int) -> MatchRecord:
        spender = spending(autojump_clock, in_turn(*before, spent_us))
        return await play(spec_of("a", "b"), {"a": spender, "b": player()})

    for in_time in (999_999, 1_000_000):
        record = await played(in_time)
        assert not record.faults
        assert elapsed(record.deals[0])[: len(before) + 1] == [*before, in_time]
    record = await played(1_000_001)
    assert [where(fault) for fault in record.faults] == [("timeout", "late", 0, 0, 0, 2 * len(before))]
    assert record.faults[0].text == "your bot answered after 1000.001 ms; its limit was 1000 ms"


async def test_every_answer_at_its_limit_is_in_time_whatever_the_clock_shows(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "b", clock=Clock(decision_ms=100, bank_ms=1_000_000))
    scripts = {name: spending(autojump_clock, lambda ask: 100_000) for name in "ab"}
    record = await play(spec, scripts)
    assert not record.faults
    assert {step.elapsed_us for step in record.deals[0].steps} == {100_000}
    assert len(record.deals[0].steps) > 20


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(10, 900), st.integers(100, 3000), st.integers(0, 60))
def test_what_an_ask_tells_is_what_is_enforced(
    permille: list[int], decision_ms: int, bank_ms: int, increment_ms: int
) -> None:
    """The bot takes any share of what it was told, then a microsecond more than that."""
    clock, mock = Clock(decision_ms, bank_ms, increment_ms), MockClock(autojump_threshold=0)
    told: list[Message] = []
    spent: list[int] = []

    def spend_us(ask: Message) -> int:
        limit_us = ask["clock"]["decision_ms"] * 1000
        told.append(ask["clock"])
        last_one = len(spent) == len(permille)
        spent.append(limit_us + 1 if last_one else limit_us * permille[len(spent)] // 1000)
        return spent[-1]

    record = trio.run(play, spec_of("a", "b", clock=clock), {"a": spending(mock, spend_us), "b": player()}, clock=mock)
    bank_us = bank_ms * 1000
    for limits, spent_us in zip(told, spent, strict=True):
        assert limits == {"decision_ms": min(decision_ms, bank_us // 1000), "bank_ms": bank_us // 1000}
        bank_us += increment_ms * 1000 - spent_us
    (played,) = record.deals
    if len(spent) > len(permille):
        assert [where(fault) for fault in record.faults] == [("timeout", "late", 0, 0, 0, 2 * len(permille))]
        assert elapsed(played) == spent[:-1]
    else:
        assert not record.faults
        assert elapsed(played) == spent


# The bank


@pytest.mark.parametrize("left_us", [0, 1, 999])
async def test_a_bank_below_a_millisecond_leaves_no_time(autojump_clock: MockClock, left_us: int) -> None:
    told: list[int] = []

    def spend_us(ask: Message) -> int:
        told.append(ask["clock"]["decision_ms"])
        return 500_000 - left_us if len(told) == 1 else 1

    spec = spec_of("a", "b", clock=Clock(decision_ms=500, bank_ms=500, increment_ms=0))
    record = await play(spec, {"a": spending(autojump_clock, spend_us), "b": player()})
    assert elapsed(record.deals[0]) == [500_000 - left_us], "the whole bank may be spent"
    assert told == [500, 0]
    assert [where(fault) for fault in record.faults] == [("timeout", "late", 0, 0, 0, 2)]
    assert (
        record.faults[0].text == "your bot answered after 0.001 ms; its limit was 0 ms, all that was left in its bank"
    )


async def test_a_fraction_of_a_millisecond_stays_in_the_bank(autojump_clock: MockClock) -> None:
    told: list[int] = []

    def spend_us(ask: Message) -> int:
        told.append(ask["clock"]["bank_ms"])
        return 500

    spec = spec_of("a", "b", clock=Clock(decision_ms=500, bank_ms=500, increment_ms=0))
    await play(spec, {"a": spending(autojump_clock, spend_us), "b": player()})
    assert told == [500 - (number + 1) // 2 for number in range(len(told))]


async def test_an_increment_follows_each_answer_and_the_bank_may_outgrow_its_start(autojump_clock: MockClock) -> None:
    told: list[int] = []

    def choose(ask: Message) -> str:
        told.append(ask["clock"]["bank_ms"])
        return first(ask)

    await play(spec_of("a", "b", clock=Clock(bank_ms=500, increment_ms=70)), {"a": player(choose), "b": player()})
    assert told == [500 + 70 * number for number in range(len(told))]
    assert len(told) > 10


async def test_each_seat_of_a_window_pays_for_itself(autojump_clock: MockClock) -> None:
    banks: dict[str, list[int]] = {name: [] for name in "abc"}

    def thinking(name: str, think_s: float) -> Script:
        def choose(ask: Message) -> str:
            banks[name].append(ask["clock"]["bank_ms"])
            return last(ask) if ask["observation"]["window"] else first(ask)

        return player(choose, think_s=think_s)

    spec = spec_of("a", "b", "c", game="smokestack", clock=Clock(bank_ms=3000, increment_ms=0))
    record = await play(spec, {"a": thinking("a", 0.2), "b": thinking("b", 0.5), "c": thinking("c", 1.2)})
    assert where(record.faults[0]) == ("timeout", "silent", 0, 0, 2, 0)
    for seat, (name, think_us) in enumerate((("a", 200_000), ("b", 500_000))):
        assert set(elapsed(record.deals[0], seat)) <= {think_us, -1}
        assert banks[name][:4] == [3000 - number * think_us // 1000 for number in range(4)]
    assert set(elapsed(record.deals[0], 2)) == {-1}, "the house plays on without a clock"


# The start


@pytest.mark.parametrize(("late_us", "faults"), [(-1, 0), (0, 0), (1, 1)])
async def test_a_hello_at_its_limit_is_in_time_and_costs_no_bank(
    autojump_clock: MockClock, late_us: int, faults: int
) -> None:
    banks: list[int] = []

    async def bot(end: BotEnd) -> int | None:
        await trio.sleep(0.001)  # the other bot has greeted by then
        end.send(HELLO)
        autojump_clock.jump(0.999 + late_us / 1e6)
        while True:
            ask = await end.ask()
            banks.append(ask["clock"]["bank_ms"])
            end.send(act(ask, first(ask)))

    record = await play(spec_of("a", "b", clock=Clock(startup_ms=1000, bank_ms=500)), {"a": bot, "b": player()})
    assert [where(fault) for fault in record.faults] == [("startup", "silent", 0, 0, 0, 0)] * faults
    assert banks[:1] == ([] if faults else [500])


# One deadline an ask


async def complains(end: BotEnd, ask: Message) -> int | None:
    while True:
        await end.complain(b"thinking\n")
        await trio.sleep(0.2)


async def repeats_itself(end: BotEnd, ask: Message) -> int | None:
    while True:
        end.send(act({"id": ask["id"] - 1}, "pass"))
        await trio.sleep(0.2)


async def drips(end: BotEnd, ask: Message) -> int | None:
    for byte in frame(act(ask, first(ask))):
        end.write(bytes([byte]))
        await trio.sleep(0.2)
    raise AssertionError("it was to be killed")


async def sends_half(end: BotEnd, ask: Message) -> int | None:
    await trio.sleep(0.999)
    end.write(frame(act(ask, first(ask)))[:-1])
    return await silent(end, ask)


@pytest.mark.parametrize(
    ("do", "detail"), [(complains, "silent"), (repeats_itself, "silent"), (drips, "partial"), (sends_half, "partial")]
)
async def test_nothing_but_an_answer_stops_the_clock(autojump_clock: MockClock, do: Do, detail: str) -> None:
    record = await play(spec_of("a", "b"), {"a": at_ask(2, do), "b": player()})
    assert [where(fault) for fault in record.faults] == [("timeout", detail, 0, 0, 0, 2)]
    assert record.deals[0].duration_us == 1_000_000


async def test_an_old_answer_during_an_ask_is_dropped_and_costs_only_its_time(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        await trio.sleep(0.4)
        end.send(act({"id": ask["id"] - 1}, "castle"))
        await trio.sleep(0.5)
        end.send(act(ask, first(ask)))
        return await player_from_here(end)

    async def player_from_here(end: BotEnd) -> int | None:
        while True:
            ask = await end.ask()
            end.send(act(ask, first(ask)))

    record = await play(spec_of("a", "b"), {"a": at_ask(2, do), "b": player()})
    assert not record.faults
    assert record.deals[0].stale == (1, 0)
    assert elapsed(record.deals[0])[:3] == [0, 900_000, 0]


async def test_a_death_is_told_at_once_however_long_the_limit_is(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        await trio.sleep(0.25)
        return 3

    clock = Clock(decision_ms=3_600_000, bank_ms=86_400_000)
    record = await play(spec_of("a", "b", clock=clock), {"a": at_ask(1, do), "b": player()})
    assert [where(fault) for fault in record.faults] == [("crash", "exit", 0, 0, 0, 0)]
    assert record.deals[0].duration_us == 250_000


# What is stored


async def test_a_deal_keeps_its_own_cpu_time_and_lag(autojump_clock: MockClock) -> None:
    spender = spending(autojump_clock, in_turn(0, 500_000))
    record, opened = await play_with(spec_of("a", "b", decks=2), {"a": spender, "b": player()})
    lags = [played.lag_us for played in record.deals]
    assert 470_000 < lags[0] <= 500_000, "the lane did nothing for half a second"
    assert lags[1] < 1000
    assert [played.cpu_us for played in record.deals] == [(10, 10), (10, 10)]
    assert [opened[name][0].cpu for name in "ab"] == [40, 40], "read before and after each deal"


# Real processes


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaneProcess]:
    level, _ = available_level()
    lane = LaneProcess(LaneConfig(level, str(make_runtime(tmp_path_factory.mktemp("runtime")))))
    yield lane
    assert lane.close() == 0


def played_by(lane: LaneProcess, tmp_path: Path, body: str, clock: Clock) -> MatchRecord:
    """Play a deal of a bot, which moves first, and an honest one."""
    bots = [script(tmp_path / "slow", body), script(tmp_path / "good", HONEST)]
    return lane.play(spec_of(*bots, clock=clock))


LIMIT = Clock(decision_ms=600, bank_ms=60_000, increment_ms=0, startup_ms=20_000)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "faults"), [(0.5, []), (1.5, [("timeout", "silent", 0, 0, 0, 2)])])
def test_a_process_at_half_and_at_one_and_a_half_of_a_decision(
    lane: LaneProcess, tmp_path: Path, share: float, faults: list[object]
) -> None:
    body = f"hello()\nanswer(ask())\nq = ask()\ntime.sleep({0.6 * share})\nanswer(q)\nplay_on()"
    record = played_by(lane, tmp_path, body, LIMIT)
    assert [where(fault) for fault in record.faults] == faults
    if not faults:
        assert 300_000 <= elapsed(record.deals[0])[1] <= 600_000


@pytest.mark.slow
@pytest.mark.parametrize(("share", "faults"), [(0.5, []), (1.5, [("startup", "silent", 0, 0, 0, 0)])])
def test_a_process_at_half_and_at_one_and_a_half_of_its_start(
    lane: LaneProcess, tmp_path: Path, share: float, faults: list[object]
) -> None:
    clock = Clock(decision_ms=10_000, bank_ms=60_000, startup_ms=2000)
    record = played_by(lane, tmp_path, f"time.sleep({2 * share})\n{HONEST}", clock)
    assert [where(fault) for fault in record.faults] == faults


@pytest.mark.slow
@pytest.mark.parametrize(("increment_ms", "faults"), [(0, [("timeout", "silent", 0, 0, 0, 6)]), (300, [])])
def test_a_process_spends_its_bank_in_several_decisions(
    lane: LaneProcess, tmp_path: Path, increment_ms: int, faults: list[object]
) -> None:
    body = "hello()\nfor _ in range(6):\n    q = ask()\n    time.sleep(0.25)\n    answer(q)\nplay_on()"
    clock = Clock(decision_ms=600, bank_ms=900, increment_ms=increment_ms, startup_ms=20_000)
    record = played_by(lane, tmp_path, body, clock)
    assert [where(fault) for fault in record.faults] == faults
    spent_us = elapsed(record.deals[0])
    assert all(each_us >= 125_000 for each_us in spent_us[: 3 if faults else 6]), "looks at the bot are given back"
    if faults:
        assert sum(spent_us) <= 900_000
        assert record.faults[0].text.endswith(" ms, all that was left in its bank")


@pytest.mark.slow
def test_a_process_that_drips_is_timed_out_at_its_limit(lane: LaneProcess, tmp_path: Path) -> None:
    body = "hello()\nfor byte in act(ask()):\n    write(bytes([byte]))\n    time.sleep(0.12)"
    record = played_by(lane, tmp_path, body, LIMIT)
    assert [where(fault) for fault in record.faults] == [("timeout", "partial", 0, 0, 0, 0)]
    assert record.deals[0].duration_us >= 600_000


@pytest.mark.slow
def test_a_process_that_dies_is_not_waited_for(lane: LaneProcess, tmp_path: Path) -> None:
    clock = Clock(decision_ms=3_600_000, bank_ms=86_400_000, startup_ms=20_000)
    record = played_by(lane, tmp_path, "hello()\nask()\nos.kill(os.getpid(), signal.SIGKILL)", clock)
    assert [where(fault)[:2] for fault in record.faults] == [("crash", "signal")]
    assert record.deals[0].duration_us < 60_000_000
