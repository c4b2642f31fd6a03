"""A bot's process as the referee uses it: send, ask with an absolute deadline, know why it failed.

A lane plays one match at a time on one core, so waiting for an answer may block its loop for a moment: a blocking poll
is an order of magnitude cheaper than a turn of the event loop. After `SPIN_S` the wait becomes an ordinary one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from arena.errors import BotError, FaultKind
from arena.records import BotRef
from arena.sandbox import Excess, Usage
from arena.wire import Act, Conversation, Hello, State

SPIN_S = 0.002
"""How long the loop may be blocked; the other tasks of a lane (stderr, the lag probe) wait at most this long."""
READ_BYTES = (1 << 16) + 4
STDERR_HEAD_BYTES = 8 << 10
STDERR_TAIL_BYTES = 32 << 10
STDERR_LIMIT_BYTES = 16 << 20
"""A process that writes more than this to stderr is killed."""
_EXIT_MISSING = 127  # what the launchers end with when there is nothing to execute
_EXIT_EXEC = 126
_EXIT_GRACE_S = 0.5
"""Between the end of stdout and the end of the process, to learn how it ended."""


class Process(Protocol):
    """What a bot's process must offer; `arena.sandbox.Sandboxed` is the real one."""

    stdin: int
    stdout: int
    stderr: int
    pidfd: int

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit code; -n if signal n killed it."""
        ...

    def cpu_us(self) -> int:
        """Return the CPU time used so far in microseconds, or -1 where unknown."""
        ...

    def usage(self) -> Usage:
        """Return what it and all that it started use."""
        ...

    def excess(self, used: Usage | None = None) -> Excess | None:
        """Return which limit on all of it together was broken, if any; `used` by a look just now."""
        ...

    def pause(self) -> None:
        """Stop all of it until `resume`."""
        ...

    def resume(self) -> None:
        """Let all of it go on; to be called again after a moment."""
        ...

    def kill(self) -> None:
        """Kill it and all that it started."""
        ...


OpenProcess = Callable[[BotRef], AbstractAsyncContextManager[Process]]
"""Starts a bot; all of it is gone when the context ends."""


class Tail:
    """The head and the tail of a stream of bytes, in bounded memory."""

    def __init__(self) -> None:
        self.total = 0
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Add what was read."""
        self.total += len(data)
        room = STDERR_HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-STDERR_TAIL_BYTES:] if len(data) > room else self._tail

    def text(self) -> bytes:
        """Return what is kept, with a note where something is missing."""
        missing = self.total - len(self._head) - len(self._tail)
        note = f"\n... {missing} bytes left out ...\n".encode() if missing else b""
        return self._head + note + self._tail


class Bot:
    """One process and the conversation with it.

    Attributes:
        answer: what the last ask (or greeting) brought, once it has.
        error: why it brought nothing.
        has_ended: its process has, or its stdout.
        elapsed_us: from the start of writing the last ask to the end of decoding its answer.
        began: when the last ask was begun, by trio's clock.
        stderr: what it wrote there.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.talk = Conversation()
        self.stderr = Tail()
        self.answer: Act | Hello | None = None
        self.error: BotError | None = None
        self.elapsed_us = 0
        self.began = 0.0
        self._limit_s = 0.0
        self._limit_is = ""
        self._unsent = b""
        self._is_writing = False
        self.has_ended = False
        self._is_closed = False
        self._killed_for: BotError | None = None
        # One descriptor that is readable when anything of this bot wants attention: polled here, waited for by trio.
        self._ready = select.epoll()
        self._ready.register(process.stdout, select.EPOLLIN)
        self._ready.register(process.pidfd, select.EPOLLIN)

    def close(self) -> None:
        """Release what is not the process's own, before the process's pipes are closed."""
        self._is_closed = True
        trio.lowlevel.notify_closing(self._ready.fileno())
        self._ready.close()

    async def drain_stderr(self) -> None:
        """Keep reading stderr, so that a talkative bot never blocks on it, until it ends or the bot is closed."""
        with contextlib.suppress(trio.ClosedResourceError):
            while self.read_stderr():
                await trio.lowlevel.wait_readable(self.process.stderr)

    def read_stderr(self) -> bool:
        """Read what is there of stderr; return False once there will be no more."""
        if self._is_closed:  # its descriptor may by now be another bot's
            return False
        try:
            data = os.read(self.process.stderr, READ_BYTES)
        except BlockingIOError:
            return True
        self.stderr.add(data)
        if self.stderr.total > STDERR_LIMIT_BYTES:
            text = f"your bot wrote more than {STDERR_LIMIT_BYTES >> 20} MiB to stderr"
            self._kill_for(BotError(FaultKind.FLOOD, "stderr", text))
            return False
        return bool(data)

    def look(self) -> int:
        """Kill the process if it uses more than it may; return the CPU time of all of it in microseconds."""
        used = self.process.usage()
        if excess := self.process.excess(used):
            self._kill_for(BotError(FaultKind.MEMORY, *excess))
        return used.cpu_us

    def _kill_for(self, error: BotError) -> None:
        self._killed_for = self._killed_for or error
        self.process.kill()

    def send(self, data: bytes) -> None:
        """Write as much as the pipe takes now; the rest goes out during the next ask."""
        if data:
            self._unsent = self._unsent + data if self._unsent else data
            self._write()

    def check_waiting(self) -> None:
        """Look at what the bot wrote before it is asked.

        Raises:
            BotError: it wrote anything but answers to older asks.
        """
        data = self._read() if self.poll(0) else None  # a poll costs less than the exception of an empty pipe
        self.talk.waiting(data or b"")  # what came along with its last message waits inside

    def begin(self, ask: bytes, limit_s: float, limit_is: str = "") -> None:
        """Write a message that is to be answered within `limit_s` seconds from now.

        Args:
            limit_is: what else is to be said of the limit if it is not kept.
        """
        self.answer = None
        self.error = None
        self._limit_s = limit_s
        self._limit_is = limit_is
        self.process.resume()
        self.began = trio.current_time()
        self.send(ask)

    def advance(self) -> bool:
        """Do what can be done without waiting; return whether the ask is settled."""
        if self._unsent:
            self._write()
        data = self._read()
        if data is None and self.process.exit_code() is not None:
            data = self._read() or b""  # it may have answered between that read and its end
        if not data:
            self.has_ended = data is not None
            return self.has_ended
        try:
            self.answer = self.talk.receive(data)
        except BotError as error:
            self.error = error
        if self.answer is None and self.error is None:
            return False
        self._judge_time()
        return True

    def poll(self, timeout_s: float) -> bool:
        """Block for so long at most; return whether `advance` can do something."""
        return bool(self._ready.poll(timeout_s))

    def ready_fd(self) -> int:
        """Return the descriptor that is readable when `advance` can do something."""
        return self._ready.fileno()

    def deadline(self) -> float:
        """Return when the ask must be settled, by trio's clock."""
        return self.began + self._limit_s

    async def wait_settled(self) -> None:
        """Wait until the ask is settled, by its deadline at the latest."""
        with trio.move_on_at(self.deadline()):
            while True:
                await trio.lowlevel.wait_readable(self._ready.fileno())
                if self.advance():
                    return
        if not self.advance():
            self._judge_time()

    async def explain_end(self) -> None:
        """Say why the process ended, once an ask has shown that it did."""
        if not self.has_ended or self.answer is not None or self.error is not None:
            return
        with trio.move_on_after(_EXIT_GRACE_S):
            await trio.lowlevel.wait_readable(self.process.pidfd)
        self._judge_time()
        self.read_stderr()
        self.error = self._killed_for or self._why_ended(self.process.exit_code())

    def _why_ended(self, code: int | None) -> BotError:
        if excess := self.process.excess():  # the kernel may have killed a part of it only
            return BotError(FaultKind.MEMORY, *excess)
        starting = self.talk.state is State.GREETING
        if code is None:
            return BotError(FaultKind.CRASH, "closed", "your bot closed its stdout but did not end")
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return BotError(FaultKind.CRASH, "signal", f"your bot was killed by {name}")
        if not starting:
            return BotError(FaultKind.CRASH, "exit", f"your bot ended with exit code {code} before it answered")
        if code == _EXIT_MISSING:
            return BotError(FaultKind.STARTUP, "missing", "the program of your bot's command does not exist")
        if code == _EXIT_EXEC:
            return BotError(FaultKind.STARTUP, "exec", "the program of your bot's command cannot be executed")
        return BotError(FaultKind.STARTUP, "exit", f"your bot ended with exit code {code} before its hello")

    def _judge_time(self) -> None:
        # Whole microseconds judge, as they are stored: a difference of two floats is a little more or less than it was.
        self.elapsed_us = round((trio.current_time() - self.began) * 1e6)
        is_in_time = self.elapsed_us <= round(self._limit_s * 1e6)
        if self.error is not None or self.has_ended or (self.answer is not None and is_in_time):
            return
        limit = f"{round(self._limit_s * 1000)} ms{self._limit_is}"
        if self.talk.state is State.GREETING or isinstance(self.answer, Hello):
            self.error = BotError(FaultKind.STARTUP, "silent", f"your bot sent no hello within {limit}")
        elif self.answer is not None:
            text = f"your bot answered after {self.elapsed_us / 1000} ms; its limit was {limit}"
            self.error = BotError(FaultKind.TIMEOUT, "late", text)
        elif self.talk.is_partial():
            text = f"your bot sent only part of an answer within {limit}"
            self.error = BotError(FaultKind.TIMEOUT, "partial", text)
        else:
            self.error = BotError(FaultKind.TIMEOUT, "silent", f"your bot sent no answer within {limit}")
        self.answer = None

    def _read(self) -> bytes | None:
        """Return what waits on stdout, empty at its end, or None if nothing waits."""
        try:
            return os.read(self.process.stdout, READ_BYTES)
        except BlockingIOError:
            return None

    def _write(self) -> None:
        try:
            written = os.write(self.process.stdin, self._unsent)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            written = len(self._unsent)  # nobody reads it any more; reading will tell why
        self._unsent = self._unsent[written:]
        if bool(self._unsent) is not self._is_writing:
            self._is_writing = not self._is_writing
            change = self._ready.register if self._is_writing else self._ready.unregister
            change(self.process.stdin, *([select.EPOLLOUT] if self._is_writing else []))


async def settle(bots: Sequence[Bot], spin_s: float = SPIN_S, others: Iterable[Bot] = ()) -> None:
    """Wait until the asks begun with each bot are settled; each then has an `answer` or an `error`.

    Args:
        spin_s: how long the loop may be blocked before it is yielded to.
        others: bots on the same core that are not asked; they, and those that have answered, are stopped when the
            wait is longer than that, until they are asked again.
    """
    left = _spin_one(bots[0], spin_s) if len(bots) == 1 else _spin(bots, spin_s)
    if left:
        for bot in (*others, *(bot for bot in bots if bot not in left)):
            bot.process.pause()
        async with trio.open_nursery() as nursery:
            for bot in left:
                bot.process.resume()  # again: see there
                nursery.start_soon(_wait_alone, bot, len(left) > 1)
    for bot in bots:
        if bot.has_ended:
            await bot.explain_end()


async def _wait_alone(bot: Bot, others_wait: bool) -> None:
    await bot.wait_settled()
    if others_wait:
        bot.process.pause()


def _spin_one(bot: Bot, spin_s: float) -> list[Bot]:
    """Block until a bot is settled or time is up, as most asks are for; return it if it is not settled."""
    left_s = spin_s
    until = trio.current_time() + spin_s
    while left_s > 0:
        if bot.poll(left_s) and bot.advance():
            return []
        left_s = until - trio.current_time()
    return [bot]


def _spin(bots: Sequence[Bot], spin_s: float) -> list[Bot]:
    """Block until all bots are settled or time is up; return those that are not settled."""
    open_bots = {bot.ready_fd(): bot for bot in bots}
    until = trio.current_time() + spin_s
    poll = select.poll()
    for fd in open_bots:
        poll.register(fd, select.POLLIN)
    while open_bots and (left_s := until - trio.current_time()) > 0:
        for fd, _ in poll.poll(left_s * 1000):
            if open_bots[fd].advance():
                del open_bots[fd]
                poll.unregister(fd)
    return list(open_bots.values())
