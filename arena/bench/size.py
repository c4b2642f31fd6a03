"""How much memory and disk a long tournament takes: a generated database, and what each command needs to read it.

Nobody plays: the tournament runs as ever, with records that are made instead of played. Commands are processes of their
own, whose peak of resident memory the system tells.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from math import ceil, comb
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import trio
from sqlite_utils import Database

import arena
from arena.bench.generated import GeneratedLanes
from arena.errors import InfraError
from arena.luck import derive
from arena.plan import Plan, match_counts, new_tournament
from arena.rating.pool import rate_pool
from arena.records import BotHash, BotRef
from arena.store import bots, matches, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.health import examine
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import MatchPlayed, MatchVoid, RoundBegan, RoundComplete, run

BOTS = 50
DECKS = 10
PLANNED = 1_000_000
"""Matches of the schedule that is gone through without playing."""
_LEGS = 2
_LEVEL = "none"
_MANIFEST = 'name = "{}"\ncommand = ["true"]\ngames = ["durak"]\n'
_WARM = 0.2
"""The part of a run after which memory should not grow any more: all code is loaded and all caches are full."""


class Peak(msgspec.Struct, frozen=True):
    """The most resident memory of a command, in MB, and how long it took."""

    command: str
    mb: float
    seconds: float


class SizeCost(msgspec.Struct, frozen=True):
    """The result of the bench.

    Attributes:
        growth_mb: of the coordinator's resident memory for each 100,000 matches, from the second fifth to the last, by
            the medians of both.
        slowdown: the time of a match in the last fifth over that in the second.
        deal_bytes: of the file for each deal, with all that belongs to it.
        record_bytes: of that, the deal's own record.
        rate_s: to read all deals and rate the bots by them.
    """

    matches: int
    deals: int
    file_mb: float
    deal_bytes: float
    record_bytes: float
    growth_mb: float
    slowdown: float
    rate_s: float
    peaks: tuple[Peak, ...]


def measure(path: Path, deals: int) -> SizeCost:
    """Make a database of at least so many deals, and read it by all commands that read much.

    Raises:
        InfraError: a command failed.
    """
    cycles = ceil(deals / (comb(BOTS, 2) * DECKS * _LEGS))
    marks = generate(path, Plan("round-robin", {"durak": {}}, cycles, decks=DECKS))
    with open_reader(path) as db:
        found = examine(db, path)
        rate_s = _rated_in(db)
    assert found.deal_bytes is not None
    assert found.record_bytes is not None
    warm = int(len(marks) * _WARM)
    early, late = marks[warm : 2 * warm + 1], marks[-warm - 1 :]
    grown_mb = median(mark.resident_mb for mark in late) - median(mark.resident_mb for mark in early)
    apart = max(1, late[0].matches - early[0].matches)
    return SizeCost(
        matches=marks[-1].matches,
        deals=found.counts["deals"],
        file_mb=found.file_bytes / 1e6,
        deal_bytes=found.deal_bytes,
        record_bytes=found.record_bytes,
        growth_mb=grown_mb / apart * 100_000,
        slowdown=_pace(late) / _pace(early),
        rate_s=rate_s,
        peaks=tuple(_peak(command, path) for command in _commands()),
    )


def _commands() -> list[Sequence[str]]:
    cycles = str(ceil(PLANNED / comb(BOTS, 2)))
    planned = ("--bots", "all", "--games", "durak", "--format", "round-robin", "--rounds", cycles)
    return [
        ("leaderboard",),
        ("standings", "last"),
        ("replay", "last"),
        ("export", "standings"),
        ("export", "games"),
        ("export", "replays"),
        ("export", "all"),
        ("verify", "--outcomes"),
        ("db", "check"),
        ("run", "--dry-run", *planned),
    ]


# The tournament


class Mark(NamedTuple):
    """The coordinator at the end of a round."""

    matches: int
    seconds: float
    resident_mb: float


def generate(path: Path, plan: Plan) -> list[Mark]:
    """Make a database with a finished tournament; return how the coordinator was at the end of each round."""
    names = [f"bot-{number}" for number in range(BOTS)]
    refs = sorted((BotRef(n, BotHash(derive(b"bench", n).hex()), "", ()) for n in names), key=lambda bot: bot.hash)
    marks: list[Mark] = []
    played = 0

    def watch(event: RoundBegan | MatchPlayed | MatchVoid | RoundComplete) -> None:
        nonlocal played
        if isinstance(event, MatchPlayed):
            played += 1
        elif isinstance(event, RoundComplete):
            marks.append(Mark(played, time.perf_counter(), _resident_mb()))

    with open_writer(path) as db:
        with writing(db):
            for bot in refs:
                bots.add_bot(db, bot.hash, _MANIFEST.format(bot.name), 1, 1, 1.0)
                bots.submit(db, bot.name, bot.hash, "", 1.0)
            stored = tournaments.get(db, tournaments.create(db, *_begun(plan, refs)))
        given = {bot.hash: bot for bot in refs}
        trio.run(run, db, stored, given, GeneratedLanes(_LEVEL), watch, time.time, trio.Event())
    return marks


def _begun(plan: Plan, refs: Sequence[BotRef]) -> tuple[Tournament, list[Entrant]]:
    entrants = [Entrant(number, bot.name, bot.hash, tuple(plan.games)) for number, bot in enumerate(refs)]
    total = sum(match_counts(plan, entrants).values())
    return new_tournament("generated", plan, _LEVEL, 1.0, total, seed=1), entrants


def _rated_in(db: Database) -> float:
    """Return how long it takes to rate all pools anew, in seconds."""
    began = time.perf_counter()
    for pool in ratings.pools(db):
        rate_pool(matches.rated_deals(db, pool.id), pool.key.outcome_type)
    return time.perf_counter() - began


def _pace(marks: Sequence[Mark]) -> float:
    return (marks[-1].seconds - marks[0].seconds) / max(1, marks[-1].matches - marks[0].matches)


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak(command: Sequence[str], path: Path) -> Peak:
    """Run a command to its end; return the most memory it had, and its time."""
    # A process that takes its first program's place: a child of ours would begin with the memory of its parent.
    line = [sys.executable, "-P", "-c", _MEASURED, sys.executable, "-P", "-m", "arena", *command, "--db", str(path)]
    env = os.environ | {"PYTHONPATH": str(Path(arena.__file__).parents[1])}  # this code, wherever it lies
    ran = subprocess.run(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    told = ran.stderr.splitlines()
    if ran.returncode != 0:
        raise InfraError(f"`arena {' '.join(command)}` failed beside the bench: {' '.join(told[-4:])}")
    kilobytes, seconds = told[-1].split()
    return Peak(" ".join(command[:2]), int(kilobytes) / 1e3, float(seconds))


_MEASURED = """
import resource, subprocess, sys, time
began = time.perf_counter()
code = subprocess.call(sys.argv[1:])
seconds = time.perf_counter() - began
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, seconds, file=sys.stderr)
sys.exit(code)
"""
