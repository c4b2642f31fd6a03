"""A process and the referee that writes to it what is too long for a pipe, at each isolation level."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from arena.bot import Bot, settle
from arena.errors import BotError
from arena.records import Clock
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.environment import make_runtime
from arena.sandbox.orphans import adopting
from arena.wire import TO_BOT_BYTES, Act
from tests.scripts import LEVELS, living, script, token

STARTUP_S = 20.0
LONG = b"\xc6" + (TO_BOT_BYTES - 4096).to_bytes(4, "big") + b"x" * (TO_BOT_BYTES - 4096)
"""An observation, packed: a mebibyte, sixteen times what a pipe holds."""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    return chosen


@contextlib.asynccontextmanager
async def greeted(level: Level, runtime: Path, folder: Path, body: str) -> AsyncIterator[Bot]:
    """Start a bot that greets, and deal it in; nothing of it may be left at the end."""
    ref = script(folder, "hello()\n" + body)
    with adopting():
        async with open_sandboxed(level, Room(folder, runtime), ref.command, Limits(cpu_s=60)) as process:
            async with trio.open_nursery() as nursery:
                bot = Bot(process)
                nursery.start_soon(bot.drain_stderr)
                bot.begin(bot.talk.hello(Clock(), 512), STARTUP_S)
                await settle([bot])
                assert bot.talk.is_ready(), bot.error
                bot.send(bot.talk.deal("durak", 1, {}, 2, 0, 1))
                yield bot
                bot.close()
                nursery.cancel_scope.cancel()
    assert living(token(folder)) == []


async def ask(bot: Bot, limit_s: float) -> tuple[str, str] | Act:
    """Ask something long; return the answer, or what is wrong with the bot."""
    bot.begin(bot.talk.ask(LONG, ["x"], 1000, 1000), limit_s)
    await settle([bot])
    if bot.error is None:
        assert isinstance(bot.answer, Act)
        return bot.answer
    assert isinstance(bot.error, BotError)
    return bot.error.kind.value, bot.error.detail


async def test_a_long_ask_that_is_never_read_is_a_timeout(level: Level, runtime: Path, tmp_path: Path) -> None:
    async with greeted(level, runtime, tmp_path / "bad", "hang()") as bot:
        assert await ask(bot, 0.2) == ("timeout", "silent")
        assert 200_000 <= bot.elapsed_us < 5_000_000


async def test_an_exit_before_a_long_ask_is_a_crash(level: Level, runtime: Path, tmp_path: Path) -> None:
    async with greeted(level, runtime, tmp_path / "bad", "receive()\nsys.exit(3)") as bot:
        await trio.lowlevel.wait_readable(bot.process.pidfd)
        assert await ask(bot, STARTUP_S) == ("crash", "exit")


async def test_an_exit_in_a_long_ask_is_a_crash(level: Level, runtime: Path, tmp_path: Path) -> None:
    async with greeted(level, runtime, tmp_path / "bad", "receive()\nexactly(100_000)\nsys.exit(3)") as bot:
        assert await ask(bot, STARTUP_S) == ("crash", "exit")


async def test_both_pipes_full_is_no_deadlock(level: Level, runtime: Path, tmp_path: Path) -> None:
    """It reads its ask only when all of its ten megabytes of stderr are read."""
    body = "for _ in range(160): os.write(2, b'!' * 65536)\nq = ask()\nos.write(2, b'the end')\nanswer(q)\nhang()"
    async with greeted(level, runtime, tmp_path / "bad", body) as bot:
        assert await ask(bot, STARTUP_S) == Act(1, "x")
        bot.read_stderr()
        assert bot.stderr.total == (10 << 20) + 7
        assert b" bytes left out ...\n" in bot.stderr.text()
        assert bot.stderr.text().endswith(b"!the end")
