"""The referee with bots in its own process, under a virtual clock: clocks, windows, answers, our own failures."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import msgspec
import pytest
import trio
from trio.testing import MockClock

from arena.bot import Process
from arena.errors import InfraError
from arena.games import GAMES
from arena.records import BotRef, Clock
from arena.referee import Host, play_match
from arena.rules import deal, replay
from tests.fakes import (
    HELLO,
    MACHINE,
    BotEnd,
    FakeProcess,
    Fakes,
    Message,
    act,
    at_ask,
    first,
    frame,
    illegal,
    last,
    play,
    player,
    silent,
    spec_of,
    where,
)


@pytest.mark.parametrize(("think_s", "faults"), [(0.999, 0), (1.001, 1)])
async def test_a_decision_has_its_limit_to_the_millisecond(
    autojump_clock: MockClock, think_s: float, faults: int
) -> None:
    spec = spec_of("slow", "quick", clock=Clock(decision_ms=1000, bank_ms=1_000_000))
    record = await play(spec, {"slow": player(think_s=think_s), "quick": player()})
    (played,) = record.deals
    if faults:
        assert [where(fault) for fault in record.faults] == [("timeout", "silent", 0, 0, 0, 0)]
        assert record.faults[0].text == "your bot sent no answer within 1000 ms"
        assert (played.places, played.reason, played.rated, played.duration_us) == ((2, 1), "fault", True, 1_000_000)
    else:
        assert not record.faults
        assert {step.elapsed_us for step in played.steps if step.seat == 0} == {999_000}
        assert {step.elapsed_us for step in played.steps if step.seat == 1} == {0}


@pytest.mark.parametrize(("increment_ms", "step"), [(0, 6), (100, 8)])
async def test_the_bank_pays_all_thinking_and_gets_the_increment(
    autojump_clock: MockClock, increment_ms: int, step: int
) -> None:
    clocks: list[dict[str, int]] = []

    def choose(ask: Message) -> str:
        clocks.append(ask["clock"])
        return first(ask)

    clock = Clock(decision_ms=500, bank_ms=1000, increment_ms=increment_ms)
    record = await play(spec_of("slow", "quick", clock=clock), {"slow": player(choose, think_s=0.3), "quick": player()})
    assert [where(fault) for fault in record.faults] == [("timeout", "silent", 0, 0, 0, step)]
    banks = [1000 - number * (300 - increment_ms) for number in range(step // 2)]
    assert clocks == [{"decision_ms": min(500, bank), "bank_ms": bank} for bank in banks]
    left_ms = 1000 - step // 2 * (300 - increment_ms)
    assert record.faults[0].text == f"your bot sent no answer within {left_ms} ms, all that was left in its bank"


async def test_an_empty_bank_leaves_no_time_at_all(autojump_clock: MockClock) -> None:
    clock = Clock(decision_ms=500, bank_ms=500, increment_ms=0)
    record = await play(spec_of("slow", "quick", clock=clock), {"slow": player(think_s=0.4995), "quick": player()})
    assert [where(fault) for fault in record.faults] == [("timeout", "silent", 0, 0, 0, 2)]
    assert record.faults[0].text.endswith("within 0 ms, all that was left in its bank")


async def test_the_bank_is_full_again_in_the_next_deal(autojump_clock: MockClock) -> None:
    seen: list[int] = []

    def choose(ask: Message) -> str:
        seen.append(ask["clock"]["bank_ms"])
        return first(ask)

    clock = Clock(bank_ms=100_000, increment_ms=0)
    record = await play(
        spec_of("slow", "quick", decks=2, clock=clock), {"slow": player(choose, think_s=0.5), "quick": player()}
    )
    assert not record.faults
    assert seen.count(100_000) == 2


@pytest.mark.parametrize(("hello_s", "kinds"), [(9.999, []), (10.001, [("startup", "silent", 0, 0, 1, 0)])])
async def test_a_hello_has_its_limit_too(autojump_clock: MockClock, hello_s: float, kinds: list[object]) -> None:
    record = await play(spec_of("a", "slow"), {"a": player(), "slow": player(hello_s=hello_s)})
    assert [where(fault) for fault in record.faults] == kinds
    assert all(step.elapsed_us == 0 for step in record.deals[0].steps), "starting costs startup time only"


@pytest.mark.usefixtures("busy")
async def test_an_answer_read_too_late_is_late_though_it_is_there(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        end.send(act(ask, first(ask)))
        autojump_clock.jump(1.5)
        await trio.sleep_forever()

    record = await play(spec_of("a", "late"), {"a": player(), "late": at_ask(2, do)})
    assert [where(fault) for fault in record.faults] == [("timeout", "late", 0, 0, 1, 3)]
    assert record.faults[0].text == "your bot answered after 1500.0 ms; its limit was 1000 ms"


@pytest.mark.usefixtures("busy")
async def test_a_hello_read_too_late_is_a_silent_start(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        autojump_clock.jump(11)
        await trio.sleep_forever()

    record = await play(spec_of("a", "late"), {"a": player(), "late": script})
    assert ("startup", "silent", 0, 0, 1, 0) in [where(fault) for fault in record.faults]


async def test_drips_do_not_move_the_deadline(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        for byte in frame(act(ask, first(ask))):
            end.write(bytes([byte]))
            await trio.sleep(0.2)
        raise AssertionError("it was to be killed")

    record = await play(spec_of("drip", "b"), {"drip": at_ask(1, do), "b": player()})
    assert [where(fault) for fault in record.faults] == [("timeout", "partial", 0, 0, 0, 0)]
    assert record.deals[0].duration_us == 1_000_000


async def test_all_actors_of_a_window_are_asked_at_once(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "b", "c", game="smokestack", clock=Clock(bank_ms=10_000_000))

    def choose(ask: Message) -> str:
        return (last if ask["observation"]["turns"] < 2 else first)(ask)

    record = await play(spec, {name: player(choose, think_s=0.9) for name in "abc"})
    assert not record.faults
    (played,) = record.deals
    assert [(step.seat, step.action) for step in played.steps[:3]] == [(0, "wait"), (1, "wait"), (2, "wait")]
    state, _ = deal(GAMES["smokestack"], spec.options, 3, spec.decks[0])
    left, asked = list(played.steps), []
    while left:
        asked.append(len(state.actors))
        state, _ = replay(state, [(step.seat, step.action) for step in left[: asked[-1]]])
        del left[: asked[-1]]
    assert {1, 2, 3} == set(asked)
    assert played.duration_us == len(asked) * 900_000


async def test_one_fault_in_a_window_leaves_the_other_answers_standing(autojump_clock: MockClock) -> None:
    scripts = {"a": player(last, think_s=0.05), "b": at_ask(1, illegal), "c": player(first)}
    record = await play(spec_of("a", "b", "c", game="smokestack"), scripts)
    assert [where(fault) for fault in record.faults] == [("illegal", "action", 0, 0, 1, 0)]
    steps = record.deals[0].steps
    assert [(step.seat, step.action, step.elapsed_us) for step in steps[:3]] == [
        (0, "wait", 50_000),
        (1, "wait", -1),
        (2, "sweep", 0),
    ]


async def test_two_faults_in_a_window_are_at_the_same_step(autojump_clock: MockClock) -> None:
    scripts = {"a": at_ask(1, silent), "b": player(last), "c": at_ask(1, illegal)}
    record = await play(spec_of("a", "b", "c", game="smokestack"), scripts)
    assert [where(fault)[0::4] for fault in record.faults] == [("timeout", 0), ("illegal", 2)]
    assert (record.deals[0].places, record.deals[0].steps) == ((2, 1, 2), ())


async def test_answers_to_older_asks_are_dropped_and_counted(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        while True:
            ask = await end.ask()
            answer = act(ask, first(ask))
            end.send(answer, answer)

    plain = await play(spec_of("a", "b", decks=2), {"a": player(), "b": player()})
    record = await play(spec_of("a", "b", decks=2), {"a": player(), "b": script})
    assert not record.faults
    for before, after in zip(plain.deals, record.deals, strict=True):
        own = sum(step.seat == 1 for step in after.steps)
        assert after.stale[0] == 0
        assert after.stale[1] in (own - 1, own), "what comes with the last answer is seen in the next deal"
        assert (after.steps, after.digests) == (before.steps, before.digests)


async def test_an_old_answer_before_the_new_one_is_dropped(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        end.send(act({"id": ask["id"] - 1}, "castle"), act(ask, first(ask)))
        return await silent(end, ask)

    record = await play(spec_of("a", "b"), {"a": player(), "b": at_ask(2, do)})
    assert [where(fault)[:2] for fault in record.faults] == [("timeout", "silent")]
    assert record.deals[0].stale == (0, 1)
    assert len(record.deals[0].steps) == 5


async def test_the_last_action_and_then_the_end_is_a_result(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "b")
    whole = await play(spec, {"a": player(), "b": player()})
    final = whole.deals[0].steps[-1].seat
    asks = sum(step.seat == final for step in whole.deals[0].steps)

    async def do(end: BotEnd, ask: Message) -> int | None:
        end.send(act(ask, first(ask)))
        return 0

    names = ("a", "b")
    record = await play(spec, {names[final]: at_ask(asks, do), names[1 - final]: player()})
    assert not record.faults
    assert record.deals[0].steps == whole.deals[0].steps
    assert record.deals[0].places == whole.deals[0].places


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ("n" * 64, "n" * 64),
        ("n" * 65, "n" * 64),
        ("é" * 40, "é" * 32),
        ("n" + "é" * 40, "n" + "é" * 31),
        ("🂡" * 17, "🂡" * 16),
        ("", ""),
    ],
)
async def test_a_note_is_cut_at_64_bytes(autojump_clock: MockClock, note: str, kept: str) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        end.send(act(ask, first(ask), note=note))
        return await silent(end, ask)

    record = await play(spec_of("a", "b"), {"a": at_ask(1, do), "b": player()})
    assert record.deals[0].steps[0].note == kept


async def test_a_long_legal_list_is_shown_in_part(autojump_clock: MockClock) -> None:
    record = await play(spec_of("bad", "b", "c", game="smokestack"), {n: at_ask(2, illegal) for n in ("bad", "b", "c")})
    text = record.faults[0].text
    assert "'castle', which is not legal here; legal: " in text
    assert ("..." in text) == (text.count(", ") > 20)


async def test_cpu_time_is_that_of_the_deal_or_unknown(autojump_clock: MockClock) -> None:
    async def play_unknown(unknown: bool) -> tuple[int, ...]:
        async with trio.open_nursery() as nursery:
            fakes = Fakes(nursery, {"a": player(), "b": player()})

            class Process(FakeProcess):
                def cpu_us(self) -> int:
                    known = super().cpu_us()
                    return -1 if unknown and known > 10 else known

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("tests.fakes.FakeProcess", Process)
                record = await play_match(spec_of("a", "b"), Host(fakes.open, "none", MACHINE, "0", float, spin_s=0))
        return record.deals[0].cpu_us

    assert await play_unknown(False) == (10, 10)
    assert await play_unknown(True) == (-1, -1), "it ended, and its clock with it"


async def test_the_record_says_where_it_was_played(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, {"a": player(), "b": player()})
        cleanings: list[int] = []
        host = Host(fakes.open, "none", MACHINE, "0.1", lambda: 17.0, 1, 99, 0.0, lambda: cleanings.append(1))
        record = await play_match(spec_of("a", "b", legs=[(0, 1), (1, 0)]), host)
    assert (record.id, record.isolation, record.engine, record.protocol) == (7, "none", "0.1", 1)
    assert (record.machine, record.core, record.started_at) == (MACHINE, 1, 17.0)
    assert len(cleanings) == 2
    bodies = fakes.opened["a"][0].end.bodies
    hello = msgspec.msgpack.decode(bodies[0])
    assert hello["limits"]["memory_mib"] == 99
    assert [msgspec.msgpack.decode(body)["type"] for body in bodies[-2:]] == ["over", "bye"]


async def test_a_bot_that_cannot_be_started_voids_the_match_and_stops_the_others(autojump_clock: MockClock) -> None:
    cleanings: list[int] = []
    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, {"a": player()})

        def open_process(ref: BotRef) -> AbstractAsyncContextManager[Process]:
            if ref.name == "b":
                raise InfraError("disk full")
            return fakes.open(ref)

        host = Host(open_process, "none", MACHINE, "0", float, clean_up=lambda: cleanings.append(1))
        with pytest.RaisesGroup(pytest.RaisesExc(InfraError, match="disk full")):
            await play_match(spec_of("a", "b"), host)
    assert fakes.opened["a"][0].code == -9
    assert cleanings == [1]


async def test_a_bot_that_cannot_be_stopped_leaves_none_behind(autojump_clock: MockClock) -> None:
    class Stubborn(FakeProcess):
        async def close(self) -> None:
            await super().close()
            raise InfraError("lives on")

    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, {name: player() for name in "abc"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.fakes.FakeProcess", Stubborn)
            with pytest.RaisesGroup(InfraError):
                await play_match(spec_of(*"abc"), Host(fakes.open, "none", MACHINE, "0", float, spin_s=0))
    assert [fakes.opened[name][0].code for name in "abc"] == [-9] * 3


async def test_a_cancelled_match_stops_its_bots(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, {"a": player(think_s=0.7), "b": player()})
        with trio.move_on_after(3) as scope:
            await play_match(spec_of("a", "b"), Host(fakes.open, "none", MACHINE, "0", float, spin_s=0))
    assert scope.cancelled_caught
    assert [process.code for (process,) in fakes.opened.values()] == [-9, -9]
