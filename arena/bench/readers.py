"""What readers cost the writer: how fast matches are stored with and without somebody who reads all the time.

The reader is a process of its own. It opens the database anew for each read, as commands do, and asks in turn what the
leaderboard, the standings and a replay ask. The cases are measured in turn in one run, on cores of their own where
there are two, and only their ratios are told. A reader of another database is the control: its cost is the machine's.
"""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import cycle, islice
from pathlib import Path

import msgspec
from sqlite_utils import Database

from arena.errors import InfraError
from arena.luck import derive
from arena.plan import Plan, final_standings, new_tournament
from arena.records import BotHash, DealRecord, Machine, MatchRecord, PoolKey, Rating, Round, Step
from arena.store import bots, matches, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.tournaments import Entrant, Scheduled

COMMITS = 1000
"""Matches stored in each case of a round: so many that the log is moved into the file two or three times in each."""
DECKS = 5
_STEPS = 60
"""Steps of a deal; durak takes about so many."""
_LEGS = ((0, 1), (1, 0))
_TABLE = (0, 1)
_POOLS = tuple(PoolKey("durak", "durak/1{deck=36}", 2, level, "single_loser") for level in ("strict", "none"))
"""Of what is read and of what is written, so that a read is as much work at the end as at the beginning."""


class ReadersCost(msgspec.Struct, frozen=True):
    """The result of the bench.

    Attributes:
        ratio: the median over the rounds of the rate of commits with a reader over that without.
        low: the smallest of the rounds.
        high: the largest of the rounds.
        elsewhere: the same median with the reader in another database.
        commits_per_s: the median with a reader.
        reads: made meanwhile; each saw what it should, without an error.
    """

    ratio: float
    low: float
    high: float
    elsewhere: float
    commits_per_s: float
    reads: int
    rounds: int


def measure(folder: Path, rounds: int) -> ReadersCost:
    """Measure in turn, `rounds` times, in a database made below `folder`; pins this process meanwhile.

    Raises:
        InfraError: a read failed.
    """
    before, commits = os.sched_getaffinity(0), COMMITS
    os.sched_setaffinity(0, {max(before)})
    path, other = folder / "arena.db", folder / "other.db"
    try:
        with open_writer(other) as db:
            prepare(db, commits)
        with open_writer(path) as db, open_looper(path, min(before)) as here, open_looper(other, min(before)) as there:
            waiting = prepare(db, (3 * rounds + 1) * commits)
            _store(db, waiting, commits)  # until files have grown and caches are warm
            seconds = [[_store(db, waiting, commits, looper) for looper in (None, here, there)] for _ in range(rounds)]
    finally:
        os.sched_setaffinity(0, before)
    ratios = [alone / beside for alone, beside, _ in seconds]
    elsewhere = statistics.median(alone / control for alone, _, control in seconds)
    rate = commits / statistics.median(beside for _, beside, _ in seconds)
    return ReadersCost(statistics.median(ratios), min(ratios), max(ratios), elsewhere, rate, here.reads, rounds)


def prepare(db: Database, count: int) -> Iterator[MatchRecord]:
    """Store a finished tournament to read from and one with `count` scheduled matches; return the records of these."""
    names = [f"bot-{number}" for number in _TABLE]
    entrants = [Entrant(n, name, BotHash(derive(b"bench", name).hex()), ("durak",)) for n, name in enumerate(names)]
    plan = Plan("round-robin", {"durak": {}}, 1, decks=DECKS)
    with writing(db):
        for entrant in entrants:
            bots.add_bot(db, entrant.hash, "", 1, 1, 1.0)
        for name, size, pool in (("read", 20, _POOLS[0]), ("written", count, _POOLS[1])):
            made = new_tournament(name, plan, pool.isolation, 1.0, size, seed=1)
            kept = tournaments.get(db, tournaments.create(db, made, entrants))
            keys = tuple(derive(kept.stages[0].master, "deck", "durak", deck) for deck in range(DECKS))
            planned = [Scheduled(pool, _TABLE, keys, _LEGS)] * size
            first = kept.stages[0].first_match
            tournaments.add_round(db, kept.id, "durak", Round(1, (_TABLE,) * size, ()), planned, first)
        read, written = (matches.unplayed(db, number, "durak", 1) for number in (1, 2))
        for number in read:
            matches.record(db, _record(number))
        tournaments.complete_round(db, 1, "durak", 1)
        ratings.save(
            db,
            tournaments.pool_of(db, _POOLS[0]),
            1,
            1,
            [Rating(bot.hash, 1500.0, 30.0, 200, 100) for bot in entrants],
            200,
        )
    return map(_record, written)


def _record(number: int) -> MatchRecord:
    machine = Machine("Linux", "bench", 2, 4096, "3.11")
    deals = tuple(_deal(number, deck, leg) for leg in range(len(_LEGS)) for deck in range(DECKS))
    return MatchRecord(number, deals, (), "none", "0", 1, machine, 0, float(number), 1)


def _deal(number: int, deck: int, leg: int) -> DealRecord:
    seen = derive(b"bench", "deal", number, deck, leg)
    steps = tuple(Step(n % 2, f"attack:{seen[n % 32] % 13}s", seen[n % 32]) for n in range(_STEPS))
    digests = (seen, bytes(32))
    return DealRecord(
        deck, leg, _LEGS[leg], steps, (1, 2), (1, 0), "durak", True, digests, (1, 1), (0, 0), (0, 0), 1, 2
    )


def _store(db: Database, waiting: Iterator[MatchRecord], commits: int, looper: Looper | None = None) -> float:
    """Store the next matches, each in its transaction; return the seconds it took, less those for others' work."""
    records = list(islice(waiting, commits))
    with looper.reading() if looper else nullcontext():
        began, queued_s = time.perf_counter(), _queued_s()
        for record in records:
            with writing(db):
                matches.record(db, record)
        queued_s = _queued_s() - queued_s  # before the clock, so that it lies within the time it is taken off
        return time.perf_counter() - began - queued_s


def _queued_s() -> float:
    """Return how long this process has waited for its core while other programs had it; locks and disks do not count.

    A kernel that does not keep it says 0; the bench then needs an idle machine.
    """
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


# The reader


class Looper:
    """A process that reads when it is told to.

    Attributes:
        reads: made so far.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.reads = 0
        self._process = process

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Let it read, again and again, until the context ends.

        Raises:
            InfraError: a read failed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.write(self._process.stdin.fileno(), b".")
        yield
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), b".")
        told = self._process.stdout.readline()
        if not told:
            raise InfraError("a reader failed beside the writer; its error is above")
        self.reads += int(told)


@contextmanager
def open_looper(path: Path, core: int) -> Iterator[Looper]:
    """Start a process that reads a database, on a core; it ends with the context."""
    command = [sys.executable, "-P", "-m", "arena.bench.readers", str(path), str(core)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Looper(process)


def loop(path: Path) -> None:
    """Read from the first byte on stdin to the next, then print how often, until stdin ends."""
    while os.read(0, 1):
        reads = 0
        for ask in cycle((_leaderboard, _standings, _replay)):
            with open_reader(path) as db:
                ask(db)
            reads += 1
            if select.select([0], [], [], 0)[0]:
                break
        os.read(0, 1)
        print(reads, flush=True)


def _leaderboard(db: Database) -> None:
    for pool in ratings.pools(db):
        assert len(ratings.ratings(db, pool.id)) == len(_TABLE)
        ratings.fault_counts(db, pool.id)
    assert len(bots.names_by_hash(db)) == len(_TABLE)


def _standings(db: Database) -> None:
    assert len(final_standings(db, tournaments.get(db, 1), "durak")) == len(_TABLE)


def _replay(db: Database) -> None:
    last = matches.last_deal(db)
    assert last is not None
    assert matches.match(db, last[0]) is not None
    assert matches.deal(db, *last) is not None


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    loop(Path(sys.argv[1]))
