"""`arena bench`: how fast it is, as ratios inside one run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import trio
import typer

from arena.cli.app import EXIT_NO, IsolationLevel, Json, app
from arena.cli.output import emit_json, emit_table, harmless, say
from arena.errors import ConfigError
from arena.sandbox import Level

if TYPE_CHECKING:
    from arena.bench.sandbox import LevelCost
    from arena.bench.size import SizeCost

bench = typer.Typer(help="Measure speed as ratios inside one run.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench, name="bench")

DECISION_LIMIT = 6.0
"""A decision may cost this many blocking round trips."""

START_LIMIT_MS = 15.0
"""A start at `namespaced` may take so much longer than without isolation."""
LEVEL_LIMIT = 1.1
"""A decision at `namespaced` may take so many times as long as without isolation: nothing, and what is noise."""

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


@bench.command(epilog="Example: arena bench sandbox")
def sandbox(
    program: Annotated[Path, typer.Option("--bot", help="An instant bot that plays durak.")] = Path("bots/c-first"),
    script: Annotated[Path, typer.Option("--python", help="A bot in Python.")] = Path("bots/greedy"),
    rounds: Annotated[int, typer.Option("--rounds", help="How often all are measured in turn.", min=1)] = 5,
    as_json: Json = False,
) -> None:
    """Compare starts, decisions and ends of bots at each isolation level with those without isolation."""
    from arena.bench.sandbox import Cast, measure
    from arena.cli.site import admit, open_site
    from arena.lane import LaneConfig
    from arena.sandbox import require_level
    from arena.sandbox.levels import problem
    from arena.store.database import open_writer

    problems = {level: problem(level) for level in Level}
    levels = [level for level, reason in problems.items() if not reason]
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        db = Path(folder, "arena.db")
        site = open_site(db, require_level(None, trusted=True))
        with open_writer(db) as opened:
            cast = Cast(*(trio.run(admit, opened, str(bot), site, time.time()).ref for bot in (program, script)))
        scratch = Path(folder, "scratch")
        scratch.mkdir()
        config = LaneConfig(site.level.value, str(site.runtime), max(os.sched_getaffinity(0)))
        costs = measure(cast, config, levels, rounds, scratch)
    missing = {level: reason for level, reason in problems.items() if reason}
    if as_json:
        emit_json("bench.sandbox/1", {"levels": [msgspec.structs.asdict(cost) for cost in costs], "missing": missing})
    else:
        _show_levels(costs)
        for level, reason in missing.items():
            typer.echo(f"{level} does not work here: {harmless(reason)}")
    if dear := _too_dear(costs):
        say(f"more than wanted at {Level.NAMESPACED}: {'; '.join(dear)}")
        if (load := os.getloadavg()[0]) > (cores := os.cpu_count() or 1):
            say(f"but this machine is busy, which makes starts slow: {load:.1f} programs want its {cores} cores")
        raise typer.Exit(EXIT_NO)


def _show_levels(costs: Sequence[LevelCost]) -> None:
    """Print a table with a column for each level."""
    from arena.bench.sandbox import THINK_S

    rows: list[tuple[str, Callable[[LevelCost], str]]] = [
        ("start to hello, compiled, ms", lambda cost: f"{cost.program_ms:.1f}"),
        (f"  more than {Level.NONE}", lambda cost: f"{cost.program_added_ms:+.1f}"),
        ("start to hello, Python, ms", lambda cost: f"{cost.python_ms:.1f}"),
        (f"  more than {Level.NONE}", lambda cost: f"{cost.python_added_ms:+.1f}"),
        ("end, ms", lambda cost: f"{cost.end_ms:.1f}"),
        ("blocking round trip, us", lambda cost: f"{cost.round_trip_us:.1f}"),
        (f"  times {Level.NONE}", lambda cost: f"{cost.round_trip_ratio:.2f}"),
        ("decision, us", lambda cost: f"{cost.decision_us:.1f}"),
        (f"  times {Level.NONE}", lambda cost: f"{cost.decision_ratio:.2f}"),
        (f"CPU off turn, ms of {THINK_S * 1000:.0f}", lambda cost: f"{cost.off_turn_ms:.1f}"),
    ]
    columns = ("<median", *(cost.level.value for cost in costs))
    emit_table(columns, [(name, *map(tell, costs)) for name, tell in rows])


def _too_dear(costs: Sequence[LevelCost]) -> list[str]:
    """Return what costs more at `namespaced` than is wanted."""
    found = []
    for cost in (cost for cost in costs if cost.level is Level.NAMESPACED):
        for name, added_ms in (("compiled", cost.program_added_ms), ("Python", cost.python_added_ms)):
            if added_ms > START_LIMIT_MS:
                found.append(f"{added_ms:.1f} ms added to a start ({name}) instead of {START_LIMIT_MS:.0f}")
        for name, ratio in (("round trip", cost.round_trip_ratio), ("decision", cost.decision_ratio)):
            if ratio > LEVEL_LIMIT:
                found.append(f"{ratio:.2f} times the {name} instead of {LEVEL_LIMIT}")
    return found


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


PEAK_LIMIT_MB = 300.0
"""A command may take so much memory, however many deals there are."""
GROWTH_LIMIT_MB = 1.0
"""A run's coordinator may grow by so much for each 100,000 matches."""
RATE_LIMIT_S = 4.0
"""To rate all bots anew by a million deals."""
LEADERBOARD_LIMIT_S = 0.5
"""To show a leaderboard, however many deals there are."""
_ENOUGH_MATCHES = 20_000
"""With fewer the growth is that of Python's own heap, and says nothing."""


@bench.command(epilog="Example: arena bench size --deals 1000000")
def size(
    deals: Annotated[int, typer.Option("--deals", help="How many to make, at least.", min=1)] = 100_000,
    keep: Annotated[Path | None, typer.Option("--keep", help="Make the database here, and leave it.")] = None,
    as_json: Json = False,
) -> None:
    """Make a database of generated deals; tell bytes a deal, memory and time of the run and of what reads."""
    from arena.bench.size import measure

    if keep is not None and keep.exists():
        raise ConfigError(f"--keep {keep}: there is a file already; name another")
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as folder:
        cost = measure(keep or Path(folder, "arena.db"), deals)
    if as_json:
        emit_json("bench.size/1", msgspec.structs.asdict(cost))
    else:
        typer.echo(
            f"{cost.matches:,} matches, {cost.deals:,} deals: {cost.file_mb:,.0f} MB, {cost.deal_bytes:,.0f} bytes a "
            f"deal, its record alone {cost.record_bytes:,.0f}\n"
            f"the run grew by {cost.growth_mb:.2f} MB for each 100,000 matches; at most {GROWTH_LIMIT_MB:.0f} is "
            f"wanted; a match took {cost.slowdown:.2f} times as long at the end as at the beginning"
        )
        typer.echo(
            f"all deals are read and rated in {cost.rate_s:.1f} s; at most {RATE_LIMIT_S:.0f} is wanted for a million"
        )
        emit_table(("<command", "peak MB", "s"), [(p.command, f"{p.mb:.0f}", f"{p.seconds:.1f}") for p in cost.peaks])
    if wrong := _too_large(cost):
        say(f"more than wanted: {'; '.join(wrong)}")
        raise typer.Exit(EXIT_NO)


def _too_large(cost: SizeCost) -> list[str]:
    """Return what takes more memory or time than is wanted."""
    found = [f"{peak.mb:.0f} MB of {peak.command}" for peak in cost.peaks if peak.mb > PEAK_LIMIT_MB]
    slow = (peak for peak in cost.peaks if peak.command == "leaderboard" and peak.seconds > LEADERBOARD_LIMIT_S)
    found += [f"{peak.seconds:.2f} s of {peak.command}" for peak in slow]
    if cost.growth_mb > GROWTH_LIMIT_MB and cost.matches >= _ENOUGH_MATCHES:
        found.append(f"{cost.growth_mb:.2f} MB for each 100,000 matches of a run")
    if cost.rate_s > RATE_LIMIT_S * max(1.0, cost.deals / 1e6):
        found.append(f"{cost.rate_s:.1f} s to rate all")
    return found


FIT_LIMIT_MS = 50.0
"""For the fit of 200 bots, however many deals there are."""
SWISS_LIMIT_S = 10.0
"""For all pairings of a Swiss of 500 bots."""


@bench.command(epilog="Example: arena bench rating")
def rating(
    deals: Annotated[int, typer.Option("--deals", help="Of the pool.", min=1000)] = 1_000_000,
    bots: Annotated[int, typer.Option("--bots", help="Of the Swiss.", min=4)] = 500,
    rounds: Annotated[int, typer.Option("--rounds", help="How often each is measured.", min=1)] = 5,
    as_json: Json = False,
) -> None:
    """Measure what it takes to rate 200 bots, and to pair a Swiss of eleven rounds."""
    from arena.bench.rating import rating_cost, swiss_cost

    rated, paired = rating_cost(deals, rounds), swiss_cost(bots, 11)
    if as_json:
        emit_json("bench.rating/1", {"rating": msgspec.structs.asdict(rated), "swiss": msgspec.structs.asdict(paired)})
    else:
        typer.echo(
            f"200 bots, {rated.deals:,} deals: fit {rated.fit_ms:.0f} ms (at most {FIT_LIMIT_MS:.0f} is wanted), "
            f"errors {rated.errors_ms:.0f} ms, places {rated.ranks_ms:.0f} ms; {rated.collect_s:.1f} s to take them\n"
            f"{paired.bots} bots, {paired.rounds} rounds: {paired.seconds:.1f} s (at most {SWISS_LIMIT_S:.0f} is "
            f"wanted), {paired.repeats} repeats"
        )
    if rated.fit_ms > FIT_LIMIT_MS or paired.seconds > SWISS_LIMIT_S:
        raise typer.Exit(EXIT_NO)
