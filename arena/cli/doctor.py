"""`arena doctor`: attacks what contains bots, and tells what holds on this machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from typing import Any

import msgspec
import trio
import typer
from rich.table import Table
from rich.text import Text

from arena.cli.app import DEFAULT_DB, EXIT_NO, Db, IsolationLevel, Json, app
from arena.cli.output import console, count_of, emit_json, harmless
from arena.doctor import Status, Verdict, examine
from arena.doctor.advice import ways_out
from arena.doctor.timing import Remark, remarks
from arena.errors import ConfigError
from arena.sandbox import Level, available_level, require_level

_STYLES = {Status.ENFORCED: "green", Status.NOT_ENFORCED: "bold red", Status.UNKNOWN: "bold yellow"}


@app.command(epilog="Example: arena doctor --isolation namespaced")
def doctor(isolation: IsolationLevel = None, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Attack what contains bots, as bots would; exit code 1 if the level does not hold what it promises."""
    best, problem = available_level()
    try:
        level = require_level(isolation, trusted=True)
    except ConfigError as error:
        raise ConfigError("\n".join((str(error), *ways_out(str(error))))) from None
    with console(stderr=True).status("") as status:
        verdicts = trio.run(lambda: examine(level, db, tell=lambda line: status.update(f"attacking: {line.question}")))
    timing = remarks(os.sched_getaffinity(0))
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if as_json:
        emit_json("doctor/1", _document(level, best, problem, verdicts, timing))
    else:
        _show(level, best, problem, verdicts, timing)
    if broken:
        raise typer.Exit(EXIT_NO)


def _bwrap_version() -> str:
    if shutil.which("bwrap") is None:
        return ""
    return subprocess.run(
        ["bwrap", "--version"], capture_output=True, text=True, check=False, timeout=10
    ).stdout.strip()


def _document(level: Level, best: Level, problem: str, verdicts: list[Verdict], timing: list[Remark]) -> dict[str, Any]:
    return {
        "level": level.value,
        "best": best.value,
        "problem": problem,
        "ways_out": ways_out(problem),
        "holds": all(verdict.holds for verdict in verdicts),
        "enforced": sum(verdict.status is Status.ENFORCED for verdict in verdicts),
        "lines": [{**msgspec.structs.asdict(verdict), "holds": verdict.holds} for verdict in verdicts],
        "timing": [msgspec.structs.asdict(remark) for remark in timing],
        "kernel": platform.release(),
        "bwrap": _bwrap_version(),
        "python": platform.python_version(),
    }


def _show(level: Level, best: Level, problem: str, verdicts: list[Verdict], timing: list[Remark]) -> None:
    out = console()
    enforced = sum(verdict.status is Status.ENFORCED for verdict in verdicts)
    out.print(Text(f"isolation level: {level.value}, {enforced} of {len(verdicts)} lines enforced", style="bold"))
    if level is not best:
        out.print(Text(f"the best that works here is {best.value}"))
    if problem:
        out.print(Text(harmless(f"what does not work here: {problem}")))
        for way in ways_out(problem):
            out.print(Text(f"way out: {way}"))
    grid = _grid()
    for verdict in verdicts:
        evidence = Text(harmless(verdict.evidence), style="dim" if verdict.status is Status.ENFORCED else "")
        if verdict.status is not Status.ENFORCED and verdict.gap:
            evidence.append(harmless(f" (not promised: {verdict.gap})"), style="dim")
        grid.add_row(Text(verdict.status.value, style=_STYLES[verdict.status]), Text(verdict.question), evidence)
    out.print(grid)
    out.print(Text("timing", style="bold"))
    notes = _grid()
    for remark in timing:
        notes.add_row(
            Text("good" if remark.good else "uneven", style="" if remark.good else "yellow"), remark.name, remark.words
        )
    out.print(notes)
    broken = sum(not verdict.holds for verdict in verdicts)
    if broken:
        count = count_of(broken, "line")
        out.print(Text(f"{level.value} does not hold {count} of what it promises here", style="bold red"))
    else:
        out.print(Text(f"{level.value} holds what it promises", style="bold green"))


def _grid() -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=12)
    grid.add_column(ratio=2)
    grid.add_column(ratio=3)
    return grid
