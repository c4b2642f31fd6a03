"""A bot's process as the referee uses it: what comes over its pipes, in whatever pieces, and how its end is told."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from arena.bot import STDERR_HEAD_BYTES, STDERR_TAIL_BYTES, Bot, Tail, settle
from arena.errors import BotError
from arena.records import Clock
from arena.rules import Event
from arena.wire import Act, Hello, encode_event
from tests.fakes import HELLO, BotEnd, FakeProcess, Script, act, frame

MIB = 1 << 20


@contextlib.asynccontextmanager
async def opened(*scripts: Script) -> AsyncIterator[list[Bot]]:
    """Start fake bots, with their stderr drained."""
    async with trio.open_nursery() as nursery:
        bots = []
        for script in scripts:
            process = FakeProcess()
            nursery.start_soon(process.run, script)
            bots.append(Bot(process))
            nursery.start_soon(bots[-1].drain_stderr)
        try:
            yield bots
        finally:
            for bot in bots:
                bot.close()
                assert isinstance(bot.process, FakeProcess)
                await bot.process.close()


def greet(bot: Bot, limit_s: float = 1.0) -> None:
    bot.begin(bot.talk.hello(Clock(), 1), limit_s)


def ask(bot: Bot, limit_s: float = 1.0) -> None:
    if bot.talk.is_ready():
        bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
    bot.begin(bot.talk.ask(b"\xc0", ["x"], 1000, 1000), limit_s)


def told(bot: Bot) -> tuple[str, str]:
    assert isinstance(bot.error, BotError)
    assert bot.answer is None
    return bot.error.kind.value, bot.error.detail


async def hangs(end: BotEnd) -> int | None:
    await trio.sleep_forever()


def answering(*actions: str, think_s: float = 0.0) -> Script:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        for action in actions:
            question = await end.ask()
            await trio.sleep(think_s)
            end.send(act(question, action))
        await trio.sleep_forever()

    return script


async def test_several_bots_are_settled_together_each_with_its_own_time(autojump_clock: MockClock) -> None:
    async with opened(*(answering("x", think_s=think_s) for think_s in (0.1, 0.3, 2.0))) as bots:
        for bot in bots:
            greet(bot)
        await settle(bots, 0)
        assert [bot.answer for bot in bots] == [Hello(1)] * 3
        for bot in bots:
            ask(bot)
        began = trio.current_time()
        await settle(bots, 0)
        assert trio.current_time() - began == pytest.approx(1.0)
        assert [bot.answer for bot in bots] == [Act(1, "x"), Act(1, "x"), None]
        assert [bot.elapsed_us for bot in bots] == [100_000, 300_000, 1_000_000]
        assert told(bots[2]) == ("timeout", "silent")


async def test_nobody_to_settle_is_settled() -> None:
    await settle([])


async def test_what_is_there_is_taken_without_a_turn_of_the_loop() -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        end.send(act({"id": 1}, "x"))
        await trio.sleep_forever()

    async with opened(script) as (bot,):
        await trio.testing.wait_all_tasks_blocked()
        greet(bot)
        with trio.testing.assert_no_checkpoints():
            await settle([bot], 5)
        assert bot.answer == Hello(1)


async def test_a_frame_in_single_bytes_and_two_in_one_write_are_the_same(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        for byte in frame(HELLO):
            end.write(bytes([byte]))
            await trio.sleep(0.01)
        question = await end.ask()
        end.write(frame(act({"id": 0}, "x")) + frame(act(question, "y"))[:9])
        await trio.sleep(0.01)
        end.write(frame(act(question, "y"))[9:])
        await trio.sleep_forever()

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        assert bot.answer == Hello(1)
        ask(bot)
        await settle([bot], 0)
        assert told(bot) == ("garbage", "id"), "0 is no id"


async def test_an_answer_just_before_the_end_counts(autojump_clock: MockClock) -> None:
    class Swift(FakeProcess):
        """Answers and ends between the referee's read of stdout and its look at the exit code."""

        def exit_code(self) -> int | None:
            if self.code is None:
                self.end.send(HELLO)
                self.exit(0)
            return super().exit_code()

    process = Swift()
    bot = Bot(process)
    greet(bot)
    assert bot.advance()
    assert bot.answer == Hello(1)
    bot.close()
    process.end.close()
    for fd in (process.stdin, process.stdout, process.stderr, process.pidfd):
        os.close(fd)


@pytest.mark.parametrize(
    ("code", "greeted", "expected"),
    [
        (0, True, ("crash", "exit")),
        (127, True, ("crash", "exit")),
        (-6, True, ("crash", "signal")),
        (-6, False, ("crash", "signal")),
        (-250, False, ("crash", "signal")),
        (127, False, ("startup", "missing")),
        (126, False, ("startup", "exec")),
        (1, False, ("startup", "exit")),
    ],
)
async def test_how_an_end_is_told(
    autojump_clock: MockClock, code: int, greeted: bool, expected: tuple[str, str]
) -> None:
    async def script(end: BotEnd) -> int | None:
        if greeted:
            end.send(HELLO)
            await end.ask()
        return code

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        if greeted:
            ask(bot)
            await settle([bot], 0)
        assert told(bot) == expected


async def test_a_bot_that_has_ended_is_told_so_again(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        return 5

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        assert bot.answer == Hello(1)
        bot.check_waiting()
        ask(bot)
        await settle([bot], 0)
        assert told(bot) == ("crash", "exit")


async def test_a_closed_stdout_is_waited_for_a_moment_only(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        os.close(end.stdout)
        end.stdout = -1
        await trio.sleep_forever()

    async with opened(script) as (bot,):
        greet(bot, 30)
        began = trio.current_time()
        await settle([bot], 0)
        assert told(bot) == ("crash", "closed")
        assert trio.current_time() - began == pytest.approx(0.5)


async def test_a_grandchild_that_holds_the_pipes_does_not_hide_the_end(autojump_clock: MockClock) -> None:
    async with opened(hangs) as (bot,):
        greet(bot, 30)
        assert isinstance(bot.process, FakeProcess)
        bot.process.exit(0)  # its script, as a grandchild, keeps all pipes open
        began = trio.current_time()
        await settle([bot], 0)
        assert told(bot) == ("startup", "exit")
        assert trio.current_time() == began


async def test_a_bot_that_never_reads_is_late_and_disturbs_nobody(autojump_clock: MockClock) -> None:
    async def never_reads(end: BotEnd) -> int | None:
        end.send(HELLO)
        await trio.sleep_forever()

    async with opened(never_reads, answering("x", think_s=0.2)) as bots:
        for bot in bots:
            greet(bot)
        await settle(bots, 0)
        event = encode_event(Event("noise", {"of": "x" * 50_000}))
        for bot in bots:
            bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
            for _ in range(20):
                bot.send(bot.talk.tell(event))
        began = trio.current_time()
        for bot in bots:
            ask(bot)
        await settle(bots, 0)
        assert trio.current_time() - began == pytest.approx(1.0)
        assert told(bots[0]) == ("timeout", "silent")
        assert bots[1].answer == Act(1, "x")
        assert bots[1].elapsed_us == 200_000, "a megabyte was sent and read meanwhile"


@pytest.mark.parametrize(("pause_s", "is_in_time"), [(0.05, True), (0.07, False)])
async def test_writing_reading_and_answering_have_one_deadline(
    autojump_clock: MockClock, pause_s: float, is_in_time: bool
) -> None:
    async def reads_slowly(end: BotEnd) -> int | None:
        end.send(HELLO)
        read = 0
        while read < MIB - 4096:
            await trio.sleep(pause_s)
            await trio.lowlevel.wait_readable(end.stdin)
            read += len(os.read(end.stdin, 1 << 16))
        end.send(act({"id": 1}, "x"))
        await trio.sleep_forever()

    async with opened(reads_slowly) as (bot,):
        greet(bot)
        await settle([bot], 0)
        bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
        bot.begin(bot.talk.ask(b"\xc0", ["x" * (MIB - 4096)], 1, 1), 1)
        await settle([bot], 0)
        if is_in_time:
            assert bot.answer == Act(1, "x")
            assert 800_000 <= bot.elapsed_us <= 900_000
        else:
            assert told(bot) == ("timeout", "silent")
            assert bot.elapsed_us == 1_000_000


async def test_a_long_message_goes_on_while_it_is_asked(autojump_clock: MockClock) -> None:
    async with opened(answering("x")) as (bot,):
        greet(bot)
        await settle([bot], 0)
        bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
        ask_body = bot.talk.ask(b"\xda\xff\xff" + b"o" * 65535, ["x" * 60_000] * 4, 1, 1)
        bot.begin(ask_body, 1)
        await settle([bot], 0)
        assert bot.answer == Act(1, "x")


async def test_a_death_while_we_write_is_a_crash(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        await end.receive()
        os.close(end.stdin)
        end.stdin = -1
        await trio.sleep(0.1)
        return 3

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        await trio.testing.wait_all_tasks_blocked()
        bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
        bot.begin(bot.talk.ask(b"\xc0", ["x" * (MIB - 4096)], 1, 1), 1)
        await settle([bot], 0)
        assert told(bot) == ("crash", "exit")


async def test_both_pipes_full(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO)
        await end.complain(b"e" * (10 * MIB))
        question = await end.ask()
        await end.complain(b"the end")
        end.send(act(question, "x"))
        await trio.sleep_forever()

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
        bot.begin(bot.talk.ask(b"\xc0", ["x" * (MIB - 4096)], 1, 1), 1)
        await settle([bot], 0)
        assert bot.answer == Act(1, "x")
        bot.read_stderr()
        assert bot.stderr.total == 10 * MIB + 7
        text = bot.stderr.text()
        missing = 10 * MIB + 7 - STDERR_HEAD_BYTES - STDERR_TAIL_BYTES
        assert text.startswith(b"e" * STDERR_HEAD_BYTES + f"\n... {missing} bytes left out ...\n".encode())
        assert text.endswith(b"ethe end")
        assert len(text) < STDERR_HEAD_BYTES + STDERR_TAIL_BYTES + 60


@pytest.mark.parametrize("greeted", [False, True])
async def test_a_flood_of_stderr_is_the_fault_though_it_looks_like_a_signal(
    autojump_clock: MockClock, greeted: bool
) -> None:
    async def script(end: BotEnd) -> int | None:
        if greeted:
            end.send(HELLO)
        await end.complain(b"e" * (20 * MIB))
        raise AssertionError("it was to be killed")

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        if greeted:
            ask(bot)
            await settle([bot], 0)
        assert told(bot) == ("flood", "stderr")
        assert bot.stderr.total < 17 * MIB
        assert not bot.read_stderr()


async def test_what_is_read_after_the_end_is_kept(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        await end.complain(b"Traceback")
        return 1

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        assert bot.stderr.text() == b"Traceback"
    assert not bot.read_stderr(), "its descriptor may be another bot's by now"


async def test_a_cancelled_settle_can_be_closed(autojump_clock: MockClock) -> None:
    async with opened(hangs) as (bot,):
        greet(bot, 100)
        with trio.move_on_after(1) as scope:
            await settle([bot], 0)
        assert scope.cancelled_caught


async def test_messages_before_the_ask_are_seen_however_they_came(autojump_clock: MockClock) -> None:
    async def script(end: BotEnd) -> int | None:
        end.send(HELLO, act({"id": 1}, "x"))
        await trio.sleep_forever()

    async with opened(script) as (bot,):
        greet(bot)
        await settle([bot], 0)
        bot.talk.deal("durak", 1, {}, 2, 0, 1)
        bot.talk.ask(b"\xc0", ["x"], 1, 1)
        with pytest.raises(BotError, match="before it was asked"):
            bot.check_waiting()


@pytest.mark.parametrize("size", [0, 1, STDERR_HEAD_BYTES, STDERR_HEAD_BYTES + STDERR_TAIL_BYTES])
@pytest.mark.parametrize("step", [1000, 7777, 100_000])
def test_a_tail_keeps_all_that_fits(size: int, step: int) -> None:
    data = bytes(number % 251 for number in range(size))
    tail = Tail()
    for start in range(0, size, step):
        tail.add(data[start : start + step])
    assert (tail.text(), tail.total) == (data, size)


@pytest.mark.parametrize("step", [1000, 7777, 100_000])
def test_a_tail_notes_what_it_left_out(step: int) -> None:
    size = STDERR_HEAD_BYTES + STDERR_TAIL_BYTES + 12_345
    data = bytes(number % 251 for number in range(size))
    tail = Tail()
    for start in range(0, size, step):
        tail.add(data[start : start + step])
    note = b"\n... 12345 bytes left out ...\n"
    assert tail.text() == data[:STDERR_HEAD_BYTES] + note + data[-STDERR_TAIL_BYTES:]
