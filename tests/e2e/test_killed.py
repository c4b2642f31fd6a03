"""A runner that is killed at random instants, again and again: in the end everything is as if it had not been."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from arena.cli.app import EXIT_USAGE
from arena.records import DealRecord
from arena.store import matches, ratings, tournaments
from arena.store.database import open_reader

C_FIRST = Path(__file__).parents[2] / "bots" / "c-first"
BOTS = 6
PATIENCE_S = 120.0
LONGEST_S = 1.5
"""A run lives for no longer before it is killed; starting takes a third of that."""


@pytest.fixture(scope="module")
def bots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Compiled bots that play alike, but are told apart by their files; one of them crashes in each deal."""
    folder = tmp_path_factory.mktemp("bots")
    source = (C_FIRST / "bot.c").read_text()
    made = []
    for number in range(BOTS):
        bot = folder / f"bot-{number}"
        bot.mkdir()
        faulty = source.replace("answer(id, legal);", "if (++asked == 7) exit(3); else answer(id, legal);")
        faulty = faulty.replace("static void answer(", "static int asked;\nstatic void answer(")
        (bot / "bot.c").write_text(f"/* {number} */\n" + (faulty if number == 0 else source))
        (bot / "bot.toml").write_text((C_FIRST / "bot.toml").read_text().replace("c-first", f"bot-{number}"))
        made.append(bot)
    return made


def line_of(bots: list[Path], db: Path) -> list[str]:
    names = ",".join(f"{bot}/" for bot in bots)
    options = "--games all --format round-robin --rounds 1 --seed 5 --trusted --isolation none --name event --quiet"
    return [sys.executable, "-m", "arena", "run", "--bots", names, *options.split(), "--db", str(db)]


def timeless(deal: DealRecord) -> object:
    """Return of a deal what does not depend on a clock."""
    steps = [(step.seat, step.action, step.elapsed_us < 0, step.note) for step in deal.steps]
    kept = (deal.deck, deal.leg, deal.seating, deal.places, deal.points, deal.reason, deal.rated)
    return kept, steps, deal.digests, deal.first_ids


def outcome(db: Path) -> list[object]:
    """Return all that an event came to but for times; no deal twice, no half set, no row without its parent."""
    with open_reader(db) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
        event = tournaments.find(opened, "event")
        assert event is not None
        assert event.finished_at is not None
        found: list[object] = []
        for number in matches.played(opened, event.id):
            match = matches.match(opened, number)
            assert match is not None
            records = matches.records(opened, number)
            assert len(records) == len(match.decks) * len(match.legs)
            faults = [(one.entrant, one.fault.kind, one.fault.detail) for one in matches.faults(opened, number=number)]
            found.append(
                (number, match.game, match.round, match.entrants, match.decks, list(map(timeless, records)), faults)
            )
        for pool in ratings.pools(opened):
            found += [pool.key, pool.deals, ratings.ratings(opened, pool.id)]
            query = "SELECT tournament, round, hash, elo, error, deals FROM history WHERE pool = ? ORDER BY 1, 2, 3"
            found.append(opened.execute(query, (pool.id,)).fetchall())
    return found


@pytest.fixture(scope="module")
def uninterrupted(bots: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    db = tmp_path_factory.mktemp("whole") / "arena.db"
    subprocess.run(line_of(bots, db), check=True, capture_output=True, timeout=PATIENCE_S)
    found = outcome(db)
    assert len(found) > 45
    return found


def killed(line: list[str], after_s: float) -> bool:
    """Start a run and kill its runner after some time; return False if it was quicker and ended by itself."""
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with suppress(subprocess.TimeoutExpired):
            assert process.wait(after_s) in (0, EXIT_USAGE)  # it had finished before the kill before: there is no more
            return False
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children or [str(process.pid)]:  # before it has forked it is the runner itself
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        code = process.wait(PATIENCE_S)
        assert code in (-signal.SIGKILL, 128 + signal.SIGKILL, 0, EXIT_USAGE)
        return code not in (0, EXIT_USAGE)  # it may have ended just before it was killed


def left_of(folder: Path) -> list[str]:
    """Return the processes that still have files of an event's folder in their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(folder) in (said := path.read_bytes()) and path.parent.name != str(os.getpid()):
                found.append(said.decode(errors="replace"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kills", [pytest.param(5, id="5"), pytest.param(50, id="50", marks=pytest.mark.nightly)])
def test_a_run_that_is_killed_again_and_again_comes_to_the_same(
    bots: list[Path], uninterrupted: list[object], tmp_path: Path, kills: int
) -> None:
    luck = random.Random(kills)
    done = events = 0
    while done < kills:
        events += 1
        folder = tmp_path / f"event-{events}"
        folder.mkdir()
        line = line_of(bots, folder / "arena.db")
        while done < kills and killed(line, luck.uniform(0.0, LONGEST_S)):
            done += 1
            assert left_of(folder) == []
        subprocess.run(line, check=False, capture_output=True, timeout=PATIENCE_S)
        assert outcome(folder / "arena.db") == uninterrupted
