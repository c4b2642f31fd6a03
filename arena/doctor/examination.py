"""Attack after attack, each with its control, at one isolation level."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import trio

from arena.doctor.finding import Finding, Line, Status, evidence, judge
from arena.doctor.promises import GAPS, LINES
from arena.doctor.stage import ATTACKS, NotRun, Scene, Started, open_plain
from arena.doctor.use import LIMITS
from arena.errors import ArenaError
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.environment import make_runtime
from arena.sandbox.orphans import adopting
from arena.sandbox.warm import SHARE, TooLarge, available_bytes, warm

_LINE_S = 120.0
"""More than any line takes, with all its attacks."""

Launcher = Callable[[Level, Room, Sequence[str], Limits], AbstractAsyncContextManager[Started]]
_LOOK_EVERY_S = 0.1
"""As often as a referee looks at what all processes of a bot use together."""


class Verdict(msgspec.Struct, frozen=True):
    """What is known of a line at a level.

    Attributes:
        evidence: what the attack said, or why it did not run.
        control: what the same attack said without a sandbox.
        gap: why the level does not promise it; empty if it does.
    """

    name: str
    question: str
    status: Status
    evidence: str
    control: str
    gap: str

    @property
    def holds(self) -> bool:
        """Whether the level keeps what it promises here."""
        return self.status is Status.ENFORCED or bool(self.gap)


@asynccontextmanager
async def open_watched(level: Level, room: Room, argv: Sequence[str], limits: Limits) -> AsyncIterator[Started]:
    """Start a program as matches do, and kill it, as a referee does, when its whole tree uses too much."""
    async with open_sandboxed(level, room, argv, limits) as process, trio.open_nursery() as nursery:

        async def watch() -> None:
            while True:
                await trio.sleep(_LOOK_EVERY_S)
                if process.excess(process.usage()):
                    process.kill()

        nursery.start_soon(watch)
        yield process
        nursery.cancel_scope.cancel()


async def examine(
    level: Level,
    database: Path,
    *,
    lines: Iterable[Line] = LINES,
    launcher: Launcher = open_watched,
    tell: Callable[[Line], None] = lambda line: None,
) -> list[Verdict]:
    """Make all attacks at a level.

    Args:
        database: the arena's; attacks try to read it if it is there.
        launcher: starts what is contained, as matches do.
        tell: called with each line before its attacks.
    """
    verdicts = []
    made = tempfile.TemporaryDirectory(prefix="arena-doctor-", ignore_cleanup_errors=True)
    with made as folder, adopting():
        contained, control = _scenes(level, Path(folder), database, launcher)
        for line in lines:
            tell(line)
            verdicts.append(await _examine_line(line, level, contained, control))
    return verdicts


def _scenes(level: Level, folder: Path, database: Path, launcher: Launcher) -> tuple[Scene, Scene]:
    database = database.absolute()
    folder.chmod(0o755)  # whoever bots run as
    bot = folder / "bot"
    (bot / ATTACKS.name).mkdir(parents=True)
    for path in ATTACKS.glob("*.py"):
        shutil.copyfile(path, bot / ATTACKS.name / path.name)
        (bot / ATTACKS.name / path.name).chmod(0o644)
    (folder / "open").mkdir()
    (folder / "open").chmod(0o1777)
    runtime = make_runtime(folder / "runtime")

    def launch(argv: Sequence[str]) -> AbstractAsyncContextManager[Started]:
        return launcher(level, Room(bot, runtime), argv, LIMITS)

    def launch_plainly(argv: Sequence[str]) -> AbstractAsyncContextManager[Started]:
        env = {**os.environ, "TMPDIR": str(folder / "open")}
        return open_plain((str(runtime / "bin" / argv[0]), *argv[1:]), bot, env)

    def read(folders: Sequence[Path]) -> None:
        if level is not Level.NONE:  # whoever plays at it trusts all bots
            with contextlib.suppress(TooLarge):
                warm(folders, round(SHARE * available_bytes()))

    attacked = Scene(launch, folder, runtime, database, contained=True, warm=read)
    return attacked, Scene(launch_plainly, folder, runtime, database, contained=False)


async def _examine_line(line: Line, level: Level, contained: Scene, control: Scene) -> Verdict:
    attacked = await _attempt(line, contained)
    controlled: Finding | ArenaError = await _attempt(line, control) if line.control else {}
    status, words = judge(line, attacked, controlled)
    told = str(controlled) if isinstance(controlled, ArenaError) else evidence(controlled)
    return Verdict(line.name, line.question, status, words, told, GAPS[level.value].get(line.name, ""))


async def _attempt(line: Line, scene: Scene) -> Finding | ArenaError:
    """Make the attacks of a line; whatever goes wrong with that is the answer."""
    outcome: Finding | ArenaError = NotRun(f"no end within {_LINE_S:.0f} s")
    try:
        with trio.move_on_after(_LINE_S):
            outcome = await line.attempt(scene)
    except* (ArenaError, OSError, LookupError) as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        outcome = first if isinstance(first, ArenaError) else NotRun(f"{type(first).__name__}: {first}")
    return outcome
