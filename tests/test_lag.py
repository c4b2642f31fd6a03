"""How late the loop is, and whose doing that is; under a virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from arena.errors import OverloadError
from arena.lag import EVERY_S, FOREIGN_S, Lag
from tests.fakes import BotEnd, Message, act, at_ask, first, play, player, spec_of


class Own:
    """The CPU time that the match's own processes have used."""

    def __init__(self) -> None:
        self.us = 0
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        return self.us


@asynccontextmanager
async def measured(own: Own) -> AsyncIterator[Lag]:
    lag = Lag(own)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lag.measure)
        yield lag
        nursery.cancel_scope.cancel()


async def test_it_is_the_worst_oversleep_since_the_last_reset(autojump_clock: MockClock) -> None:
    async with measured(Own()) as lag:
        await trio.sleep(0.11)
        assert lag.reset() == 0
        autojump_clock.jump(0.31)
        await trio.testing.wait_all_tasks_blocked()
        assert lag.reset() == 300_000
        assert lag.reset() == 0


async def test_a_lag_while_our_own_processes_slept_is_others_doing(autojump_clock: MockClock) -> None:
    async with measured(Own()) as lag:
        began = trio.current_time()
        assert not lag.was_foreign_since(began)
        await trio.sleep(EVERY_S / 2)
        autojump_clock.jump(FOREIGN_S + EVERY_S)
        assert lag.was_foreign_since(began), "told before the measuring task itself could see it"
        assert lag.was_foreign_since(trio.current_time())
        await trio.sleep(EVERY_S)
        assert not lag.was_foreign_since(trio.current_time())


@pytest.mark.parametrize(("own_s", "is_foreign"), [(0.0, True), (0.449, True), (0.451, False), (0.6, False)])
async def test_what_our_own_processes_used_is_taken_off(
    autojump_clock: MockClock, own_s: float, is_foreign: bool
) -> None:
    own = Own()
    own.us = 5_000_000
    async with measured(own) as lag:
        await trio.sleep(5.5 * EVERY_S)  # by now it has looked once
        assert own.looks == 1
        own.us += round(own_s * 1e6)
        autojump_clock.jump(0.5 + EVERY_S / 2)
        assert lag.was_foreign_since(0) is is_foreign


async def test_a_small_lag_is_nobodys_doing(autojump_clock: MockClock) -> None:
    async with measured(Own()) as lag:
        await trio.sleep(EVERY_S / 2)
        autojump_clock.jump(FOREIGN_S)
        assert not lag.was_foreign_since(0)
        assert lag.reset() > 0


# --- in a match


async def late(end: BotEnd, ask: Message, clock: MockClock) -> int | None:
    end.send(act(ask, first(ask)))
    clock.jump(1.5)
    await trio.sleep_forever()


async def test_a_late_answer_under_foreign_load_voids_the_match(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        return await late(end, ask, autojump_clock)

    with pytest.RaisesGroup(pytest.RaisesExc(OverloadError, match="too loaded"), flatten_subgroups=True):
        await play(spec_of("a", "late"), {"a": player(), "late": at_ask(2, do)})


async def test_only_time_is_excused_by_load(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        autojump_clock.jump(0.9)
        end.send(act(ask, "castle"))
        await trio.sleep_forever()

    record = await play(spec_of("a", "bad"), {"a": player(), "bad": at_ask(2, do)})
    assert [fault.kind.value for fault in record.faults] == ["illegal"]
