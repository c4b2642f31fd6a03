"""Where an attack is made: a program started one way or another, what it says, and who else is about."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import trio

from arena.errors import ArenaError

ATTACKS = Path(__file__).with_name("attacks")
DONE = "done"
ANSWER_S = 15.0
"""More than any attack takes; one that takes longer did not run."""


class NotRun(ArenaError):
    """An attack did not run to its end, so nothing is known."""


class NothingToReach(ArenaError):
    """What an attack is after does not exist on this machine, with or without a sandbox."""


class Started(Protocol):
    """A started program, as `arena.sandbox.open_sandboxed` gives it."""

    stdin: int
    stdout: int
    stderr: int
    pidfd: int

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit code; -n or 128 + n if signal n killed it."""
        ...


Launch = Callable[[Sequence[str]], AbstractAsyncContextManager[Started]]
"""Starts a command; the program and what belongs to it are gone when the scope ends."""


class Plain:
    """A started program that nothing contains."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        self.popen = popen
        self.stdin, self.stdout, self.stderr = popen.stdin.fileno(), popen.stdout.fileno(), popen.stderr.fileno()
        self.pidfd = os.pidfd_open(popen.pid)

    def exit_code(self) -> int | None:
        """Return None while it runs, else its exit code."""
        return self.popen.poll()


@asynccontextmanager
async def open_plain(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> AsyncIterator[Plain]:
    """Start a program like any other; its group is killed when the scope ends, but not who left the group."""
    # The loop is not blocked: a fork takes as long as one of the sandbox does.
    popen = subprocess.Popen(  # noqa: ASYNC220
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=dict(env),
        start_new_session=True,
        bufsize=0,
    )
    with popen:
        plain = Plain(popen)
        try:
            os.set_blocking(plain.stdout, False)
            os.set_blocking(plain.stderr, False)
            yield plain
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            for fd in (plain.stdin, plain.stdout, plain.stderr, plain.pidfd):
                trio.lowlevel.notify_closing(fd)
            os.close(plain.pidfd)


class Report(msgspec.Struct, frozen=True):
    """What an attack said.

    Attributes:
        found: what came of each thing it tried, or None if it was killed before it could say.
        taken: how much of what it takes it had when it last said so.
    """

    found: dict[str, str] | None
    taken: int = 0


class Attack:
    """A started attack and what it has said so far."""

    def __init__(self, name: str, started: Started) -> None:
        self.name = name
        self.said: dict[str, Any] = {}
        self._started = started
        self._rest = b""

    async def until(self, key: str) -> dict[str, Any]:
        """Wait until it has said something under a key, and return all it said.

        Raises:
            NotRun: it ended before, or says nothing.
        """
        with trio.move_on_after(ANSWER_S):
            if key not in self.said:
                await self._listen(key)
            if key in self.said:
                return self.said
            raise NotRun(f"{self.name} ended with {self._started.exit_code()}: {self._last_words()}")
        raise NotRun(f"{self.name} said nothing for {ANSWER_S:.0f} s")

    async def report(self) -> Report:
        """Wait for its end, or for its death by a signal once it had begun.

        Raises:
            NotRun: it did not begin, or ended in another way.
        """
        try:
            said = await self.until("found")
            return Report(said["found"], said.get("taken", 0))
        except NotRun:
            code = self._started.exit_code()
            if "begun" in self.said and code in (-signal.SIGKILL, 128 + signal.SIGKILL):
                return Report(None, self.said.get("taken", 0))
            raise

    async def found(self) -> dict[str, str]:
        """Return what it found; being killed means not to have run."""
        report = await self.report()
        if report.found is None:
            raise NotRun(f"{self.name} was killed")
        return report.found

    def go_on(self) -> None:
        """Tell one that waits that it is its turn."""
        os.write(self._started.stdin, b"\n")

    async def _listen(self, key: str) -> None:
        """Read until the key was said or the program has ended."""
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                while data := await self._read():
                    self._hear(data)
                    if key in self.said:
                        nursery.cancel_scope.cancel()

            nursery.start_soon(read)
            await trio.lowlevel.wait_readable(self._started.pidfd)
            with contextlib.suppress(BlockingIOError):
                while data := os.read(self._started.stdout, 1 << 16):
                    self._hear(data)
            nursery.cancel_scope.cancel()

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._started.stdout, 1 << 16)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._started.stdout)

    def _hear(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):
                self.said.update(json.loads(line))

    def _last_words(self) -> str:
        with contextlib.suppress(BlockingIOError):
            lines = os.read(self._started.stderr, 1 << 16).decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else "no word on stderr"
        return "no word on stderr"


class Scene:
    """One way of starting attacks, and the machine around them.

    Attributes:
        contained: False in a control, which must not harm the machine.
        warm: reads folders that all bots may read into memory, as a tournament does before its first match.
        folder: of all scenes, readable by everybody; `open` in it may be written by everybody.
        bot: the folder with the attacks.
        runtime: the interpreter that attacks use.
        database: the arena's, whether it exists or not.
        token: what nobody can know who was not told.
    """

    def __init__(
        self,
        launch: Launch,
        folder: Path,
        runtime: Path,
        database: Path,
        *,
        contained: bool,
        warm: Callable[[Sequence[Path]], object] = lambda folders: None,
    ) -> None:
        self._launch = launch
        self.contained = contained
        self.warm = warm
        self.folder = folder
        self.bot = folder / "bot"
        self.runtime = runtime
        self.database = database
        self.token = secrets.token_hex(16)

    @asynccontextmanager
    async def start(self, *words: object) -> AsyncIterator[Attack]:
        """Start an attack: its name, its arguments."""
        async with self._launch(("python3", "-m", ATTACKS.name, *map(str, words))) as started:
            yield Attack(str(words[0]), started)

    async def attack(self, name: str, *arguments: object) -> dict[str, str]:
        """Make an attack and return what it found."""
        async with self.start(name, *arguments) as attack:
            return await attack.found()

    @asynccontextmanager
    async def other(self, name: str, argument: object, **env: str) -> AsyncIterator[tuple[Plain, dict[str, Any]]]:
        """Start somebody else on this machine, whom attacks are aimed at; gives what it told."""
        argv = (str(self.runtime / "bin" / "python3"), "-m", ATTACKS.name, name, str(argument))
        async with open_plain(argv, self.bot, env) as plain:
            yield plain, await Attack(name, plain).until("ready")
