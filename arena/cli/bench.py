"""`arena bench`: how fast it is, as ratios inside one run."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import msgspec
import trio
import typer

from arena.cli.app import EXIT_NO, IsolationLevel, Json, app
from arena.cli.output import emit_json, emit_table, say

bench = typer.Typer(help="Measure speed as ratios inside one run.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench, name="bench")

DECISION_LIMIT = 6.0
"""A decision may cost this many blocking round trips."""


ENGINE_WANTED = 2.5
"""Durak and avalanche play out so many times as fast as RLCard's uno."""
_COMPARED = ("avalanche 2", "avalanche 4", "durak 2", "durak 4")


@bench.command(epilog="Example: arena bench engine")
def engine(
    rounds: Annotated[int, typer.Option("--rounds", help="How often all are measured in turn.", min=1)] = 7,
    as_json: Json = False,
) -> None:
    """Compare random play-outs with RLCard, OpenSpiel and PokerKit (pip install --group bench)."""
    from arena.bench.engine import BASE, measure

    found = measure(rounds)
    if as_json:
        emit_json("bench.engine/1", {"base": BASE, "engines": [msgspec.structs.asdict(one) for one in found]})
    else:
        rows = [(one.name, f"{one.steps_per_s:.0f}", f"{one.ratio:.2f}") for one in found]
        emit_table(("<random play-outs", "steps/s", f"times {BASE}"), rows)
    slow = [one.name for one in found if one.name in _COMPARED and one.ratio < ENGINE_WANTED]
    if slow:
        say(f"less than {ENGINE_WANTED} times {BASE}: {', '.join(slow)}")
        raise typer.Exit(EXIT_NO)


@bench.command(epilog="Example: arena bench decision")
def decision(
    bot: Annotated[Path, typer.Option("--bot", help="An instant bot that plays durak.")] = Path("bots/c-first"),
    rounds: Annotated[int, typer.Option("--rounds", help="How often both are measured in turn.", min=1)] = 15,
    isolation: IsolationLevel = None,
    as_json: Json = False,
) -> None:
    """Divide what a decision costs in a real durak match by the blocking round trip of the same bytes."""
    from arena.bench.decision import measure
    from arena.cli.site import admit, open_site
    from arena.lane import LaneConfig
    from arena.sandbox import require_level
    from arena.store.database import open_writer

    with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        db = Path(folder, "arena.db")
        site = open_site(db, require_level(isolation, trusted=True))
        with open_writer(db) as opened:
            player = trio.run(admit, opened, str(bot), site, time.time())
        core = max(os.sched_getaffinity(0))
        cost = measure(player.ref, LaneConfig(site.level.value, str(site.runtime), core), rounds)
    if as_json:
        emit_json("bench.decision/1", msgspec.structs.asdict(cost))
    else:
        typer.echo(
            f"a decision costs {cost.ratio:.2f} blocking round trips ({cost.low:.2f} ... {cost.high:.2f} in "
            f"{cost.rounds} rounds): {cost.arena_us:.1f} us against {cost.limit_us:.1f} us, "
            f"{cost.decisions} decisions, isolation {site.level.value}; at most {DECISION_LIMIT:.0f} is wanted"
        )
    if cost.ratio > DECISION_LIMIT:
        raise typer.Exit(EXIT_NO)


READERS_WANTED = 0.95
"""Of the matches that are stored in a second, so many still are while somebody reads all the time."""


@bench.command(epilog="Example: arena bench readers")
def readers(
    rounds: Annotated[int, typer.Option("--rounds", help="How often both are measured in turn.", min=1)] = 9,
    as_json: Json = False,
) -> None:
    """Divide how fast matches are stored while somebody reads by how fast they are stored alone."""
    from arena.bench.readers import measure

    with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        cost = measure(Path(folder), rounds)
    if as_json:
        emit_json("bench.readers/1", msgspec.structs.asdict(cost))
    else:
        typer.echo(
            f"beside a reader the writer stores {cost.ratio:.3f} of what it does alone ({cost.low:.3f} ... "
            f"{cost.high:.3f} in {cost.rounds} rounds), beside one of another database {cost.elsewhere:.3f}: "
            f"{cost.commits_per_s:.0f} matches a second, {cost.reads} reads without an error; "
            f"at least {READERS_WANTED} is wanted"
        )
    if cost.ratio < READERS_WANTED:
        raise typer.Exit(EXIT_NO)
