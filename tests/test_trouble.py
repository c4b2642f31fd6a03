"""Faults of the machine and of other programs at the database: one message, nothing lost, nothing scored wrongly."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.bench import readers
from arena.cli.app import EXIT_BUSY, EXIT_NO, EXIT_USAGE, exit_code
from arena.errors import BusyError, ConfigError, InfraError
from arena.export import rows
from arena.plan import Plan, final_standings
from arena.records import BotHash, MatchRecord, MatchSpec
from arena.store import bots, database, matches, ratings, schema, tallies, tournaments
from arena.store.database import open_reader, open_runner, open_writer, writing
from arena.store.health import examine
from arena.store.trouble import DamagedError, explained
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, result, use_fake_bots

A, B = BotHash("a" * 64), BotHash("b" * 64)
PLAN = Plan("round-robin", {"durak": {}}, 2)
HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


def keep(db: Database, bot: BotHash, size: int = 0) -> None:
    with writing(db):
        bots.add_bot(db, bot, random.Random(bot).randbytes(size // 2).hex(), 1, 1, 1.0)


def kept(path: Path) -> list[str]:
    """Return the bots that a reader finds."""
    with open_reader(path) as db:
        return [row["hash"] for row in db["bot"].rows]


def problems(path: Path) -> tuple[str, ...]:
    with open_reader(path) as db:
        return examine(db, path).problems


def within(opened: contextlib.AbstractContextManager[Database], *steps: Callable[[Database], object]) -> None:
    """Do things one after the other with an open database."""
    with opened as db:
        for step in steps:
            step(db)


# Disks


class Disk(NamedTuple):
    """A full disk to be: a folder, and what makes room there."""

    folder: Path
    release: Callable[[], None]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """Give a disk of 1 MiB: a real one where this user may mount it, else files may not be longer than that."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "arena-test", str(folder)]
    with contextlib.ExitStack() as stack:
        if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
            stack.callback(lambda: subprocess.run(["umount", "-l", folder], check=True))
            (folder / "filler").write_bytes(bytes(300_000))
            yield Disk(folder, (folder / "filler").unlink)
        else:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            release = stack.callback(partial(resource.setrlimit, resource.RLIMIT_FSIZE, limits))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
            yield Disk(folder, release)


def fill(db: Database, known: list[str]) -> None:
    for number in range(1000):
        bot = BotHash(f"{number:064}")
        keep(db, bot, 20_000)
        known.append(bot)


def test_a_full_disk_is_told_and_leaves_what_was_there(small_disk: Disk) -> None:
    path = small_disk.folder / "arena.db"
    known: list[str] = []
    with pytest.raises(InfraError, match="what was stored before is safe") as told, open_writer(path) as db:
        fill(db, known)
    assert exit_code(told.value) == EXIT_NO
    assert len(known) > 5
    assert kept(path) == known, "it can be read while the disk is full"
    assert problems(path) == ()
    small_disk.release()
    with open_writer(path) as db:
        keep(db, A)
    assert kept(path) == [*known, A]
    assert problems(path) == ()


def test_a_disk_that_is_full_from_the_start_is_told(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(InfraError, match="cannot be written"), open_writer(path):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with open_writer(path) as db:
        keep(db, A)
    assert problems(path) == ()


def test_pages_that_run_out_are_told(path: Path) -> None:
    def allow_no_more(db: Database) -> None:
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")

    with pytest.raises(InfraError, match="disk is full; what was stored before is safe"):
        within(open_writer(path), lambda db: keep(db, A), allow_no_more, lambda db: keep(db, B, 100_000))
    assert kept(path) == [A]


# Permissions


@pytest.fixture
def plain_folder() -> Iterator[Path]:
    """Give a folder to a user for whom permissions count, who is taken for root while the test runs."""
    with tempfile.TemporaryDirectory(prefix="arena-test-") as name:
        folder = Path(name)
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o700)


def refused_writing(path: Path) -> str:
    with pytest.raises(ConfigError) as told, open_writer(path):
        pass
    assert exit_code(told.value) == EXIT_USAGE
    return str(told.value)


def test_a_read_only_file_can_be_read(plain_folder: Path) -> None:
    path = plain_folder / "arena.db"
    with open_writer(path) as db:
        keep(db, A)
    path.chmod(0o400)
    assert kept(path) == [A]
    assert "cannot be written: Permission denied; name another with --db" in refused_writing(path)
    path.chmod(0)
    with pytest.raises(ConfigError, match=f"no permission for {path}"):
        kept(path)


def test_a_read_only_folder_can_be_read(plain_folder: Path) -> None:
    path = plain_folder / "arena.db"
    with open_runner(path) as db:
        keep(db, A)
    plain_folder.chmod(0o500)
    assert kept(path) == [A]
    assert problems(path) == ()
    assert f"no permission for {plain_folder}" in refused_writing(path), "its lock is there already"
    plain_folder.chmod(0o700)
    (plain_folder / "arena.db.lock").unlink()
    plain_folder.chmod(0o500)
    assert f"no permission for {plain_folder}" in refused_writing(path)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"), open_runner(path):
        pass
    plain_folder.chmod(0)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        kept(path)


def left_by_a_killed_writer(path: Path) -> None:
    """Make a database whose writer was killed: its newest results are in the log only."""
    with open_writer(path.with_name("whole.db")) as db:
        keep(db, A)
        for suffix in ("", "-wal"):
            shutil.copy(path.with_name(f"whole.db{suffix}"), path.with_name(f"{path.name}{suffix}"))


def test_what_a_killed_writer_left_is_read(path: Path) -> None:
    left_by_a_killed_writer(path)
    assert kept(path) == [A]
    assert problems(path) == ()


def test_what_cannot_be_read_in_a_read_only_folder_is_told(plain_folder: Path) -> None:
    path = plain_folder / "arena.db"
    left_by_a_killed_writer(path)
    plain_folder.chmod(0o500)
    with pytest.raises(ConfigError, match=r"its newest results are still in arena\.db-wal; copy both files"):
        kept(path)
    plain_folder.chmod(0o700)
    assert kept(path) == [A]


def test_a_database_that_changes_while_it_is_read_without_a_log_is_told(plain_folder: Path) -> None:
    path = plain_folder / "arena.db"
    with open_writer(path) as db:
        keep(db, A)
    plain_folder.chmod(0o500)

    def write(_: Database) -> None:
        plain_folder.chmod(0o700)
        within(open_writer(path), lambda db: keep(db, B))
        plain_folder.chmod(0o500)

    def delete(_: Database) -> None:
        plain_folder.chmod(0o700)
        path.unlink()

    for change in (write, delete):
        with pytest.raises(BusyError, match="was written to while it was read"):
            within(open_reader(path), change)


# Other programs


@contextlib.contextmanager
def locked_by_another(path: Path) -> Iterator[None]:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


def test_a_database_locked_by_another_process_is_told_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    with open_writer(path) as db:
        keep(db, A)
        with locked_by_another(path):
            assert kept(path) == [A], "readers do not wait for it"
            with pytest.raises(BusyError, match="locked by another program") as told, explained(path):
                keep(db, B)
            assert exit_code(told.value) == EXIT_BUSY
        keep(db, B)
    assert kept(path) == [A, B]
    assert problems(path) == ()


def test_a_second_runner_is_told_so_and_may_follow(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with open_runner(path):
        for other in (path, link):
            with pytest.raises(BusyError, match="another arena is playing on") as told, open_runner(other):
                pass
            assert exit_code(told.value) == EXIT_BUSY
    with open_runner(link) as db:
        keep(db, A)
    assert kept(path) == [A]


def test_others_write_while_a_runner_is_active(path: Path) -> None:
    with open_runner(path) as runner:
        with open_writer(path) as db:
            keep(db, A)
        keep(runner, B)
    assert kept(path) == [A, B]


def test_only_an_idle_database_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_runner(path):
        known = [*schema.known(), "newest"]
        monkeypatch.setattr("arena.store.schema.known", lambda: known)
        with pytest.raises(BusyError, match="another arena is playing on"), open_writer(path):
            pass


@pytest.mark.parametrize("name", ["arena.db", "arena.db.lock"])
def test_a_file_that_is_taken_away_is_noticed(path: Path, name: str) -> None:
    with pytest.raises(InfraError, match=f"{name} was deleted or replaced") as told:
        within(
            open_runner(path),
            lambda db: keep(db, A),
            lambda _: path.with_name(name).unlink(),
            lambda db: keep(db, B),
        )
    assert exit_code(told.value) == EXIT_NO
    with open_writer(path) as db:
        keep(db, B)
    assert kept(path) == ([B] if name == "arena.db" else [A, B])


def test_a_database_that_is_replaced_is_noticed(path: Path) -> None:
    with open_writer(path.with_name("other.db")) as db:
        keep(db, B)
    with pytest.raises(InfraError, match="was deleted or replaced"):
        within(open_writer(path), lambda _: path.with_name("other.db").replace(path), lambda db: keep(db, A))


# The machine


def test_file_descriptors_that_run_out_are_told(path: Path) -> None:
    with open_writer(path) as db:
        keep(db, A)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    told: dict[str, list[str]] = {"open_reader": [], "open_writer": []}
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(8):
            for opened in (open_reader, open_writer):
                with contextlib.suppress(InfraError), opened(path) as db:
                    told[opened.__name__].append(str(db["bot"].count))
            os.close(taken.pop())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)
    assert all(0 < len(counts) < 8 and set(counts) == {"1"} for counts in told.values()), told
    assert problems(path) == ()


def test_a_clock_that_was_set_back_breaks_nothing(path: Path) -> None:
    with open_writer(path, lambda: 100.0) as db:
        first = begin(db, PLAN, refs(2), name="first")
        bots.submit(db, "ace", refs(1)[0].hash, "", 100.0)
        tournaments.finish(db, first.id, 0.5)
    with open_writer(path, lambda: 50.0) as db:
        second = begin(db, PLAN, refs(3), name="second")
        assert bots.submit(db, "ace", refs(2)[1].hash, "", 50.0).version == 2
        bots.retire(db, "ace", 40.0)
    with open_reader(path) as db:
        assert [t.id for t in tournaments.tournaments(db)] == [second.id, first.id]
        assert bots.submissions(db) == []
    assert problems(path) == ()


# Damage


def everything(db: Database) -> None:
    """Read all that commands would."""
    for tournament in tournaments.tournaments(db):
        final_standings(db, tournament, "durak")
        for number in matches.played(db, tournament.id):
            matches.match(db, number)
            matches.records(db, number)
            matches.logs(db, number)
            matches.faults(db, number=number)
    for pool in ratings.pools(db):
        ratings.ratings(db, pool.id)
    bots.names_by_hash(db)
    bots.submissions(db)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Give a database with some of everything."""
    path = tmp_path / "sample.db"
    with open_writer(path) as db:
        list(zip(range(5), readers.prepare(db, 5), strict=False))
    return path


@pytest.mark.parametrize("how", ["header", "page", "cut", "byte"])
def test_damage_gives_one_clear_message(sample: Path, path: Path, how: str) -> None:
    whole, luck = sample.read_bytes(), random.Random(how)
    pages = range(len(whole) // 4096)
    assert len(pages) > 20
    found = 0
    for number in pages:
        damaged = bytearray(whole)
        if how == "cut":
            del damaged[number * 4096 + 100 :]
        else:
            start, size = {"header": (number, 16), "page": (number * 4096, 4096), "byte": (number * 4096, 1)}[how]
            damaged[start : start + size] = luck.choice([bytes(size), b"\xff" * size, luck.randbytes(size)])
        path.write_bytes(damaged)
        try:
            with open_reader(path) as db:
                everything(db)
            found += bool(problems(path))
        except ConfigError:
            found += 1
    assert found > len(pages) / 2


def test_names_that_are_no_text_any_more_are_damage(sample: Path, path: Path) -> None:
    whole = sample.read_bytes()
    for text, told in ((b"bot-0", "Could not decode"), (b"TEXT NOT NULL", "malformed schema")):
        path.write_bytes(whole.replace(text, b"\xff" * len(text)))
        with pytest.raises(DamagedError, match=told), open_reader(path) as db:
            everything(db)
    with pytest.raises(UnicodeDecodeError), explained(path):
        b"\xff".decode()


def test_an_unknown_format_of_file_is_damage(sample: Path) -> None:
    content = bytearray(sample.read_bytes())
    content[47] = 9
    sample.write_bytes(content)
    with pytest.raises(DamagedError, match="unsupported file format"), open_reader(sample):
        pass


@pytest.mark.parametrize(
    ("garbage", "told"),
    [
        ("UPDATE machine SET facts = '{}'", "missing required field"),
        ("UPDATE match SET legs = '[[0, \"x\"]]'", "Expected `int`, got `str`"),
        ("UPDATE tally SET scores = x'00'", "what is kept of round 1 of durak is damaged"),
        ("UPDATE tally SET scores = x'789cab060000ca00ca'", "what is kept of round 1 of durak is damaged"),
        ("UPDATE deal SET record = x'00'", "the record of a deal is damaged"),
        ("UPDATE round SET byes = 'none'", "JSON is malformed"),
    ],
)
def test_garbage_in_rows_gives_one_clear_message(sample: Path, garbage: str, told: str) -> None:
    with open_writer(sample) as db:
        db.execute(garbage)
    with pytest.raises(ConfigError, match=told) as raised:
        within(open_reader(sample), everything, lambda db: list(rows.games(db, tournaments.tournaments(db))))
    assert "backup" in str(raised.value)


@pytest.mark.parametrize("garbage", ["seating = x'0905'", "deck = deck + leg"])
def test_deals_that_do_not_fit_together_give_one_clear_message(sample: Path, garbage: str) -> None:
    with open_writer(sample) as db:
        db.execute(f"UPDATE deal SET {garbage} WHERE match = 1 AND deck = 4")
        with pytest.raises(ConfigError, match="the deals of match 1 are damaged"):
            tallies.add(db, 1, "durak", 1)


@pytest.mark.parametrize("garbage", ["seating = x'0905'", "places = x'010203'", "deck = deck + 7"])
def test_deals_that_cannot_be_rated_give_one_clear_message(sample: Path, garbage: str) -> None:
    with open_writer(sample) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(f"UPDATE deal SET {garbage} WHERE match = 1 AND deck = 4")
        with pytest.raises(ConfigError, match=r"the deals of match 1 are damaged .*; take the database from a backup"):
            list(matches.rated_deals(db, 1))


def test_what_a_lane_says_is_not_told_as_damage_of_the_file(path: Path) -> None:
    with pytest.raises(msgspec.DecodeError), open_writer(path):
        msgspec.json.decode(b"{")


# Errors within groups


def test_troubles_within_a_group_are_explained_too(path: Path) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    with pytest.raises(InfraError, match="disk is full; what was stored before is safe"), open_writer(path):
        raise ExceptionGroup("nursery", [ValueError("other"), ExceptionGroup("inner", [error])])
    with pytest.raises(ExceptionGroup), open_writer(path):
        raise ExceptionGroup("nursery", [ValueError("ours")])


def test_mistakes_of_ours_are_not_told_as_troubles_of_the_file(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), open_writer(path) as db:
        db.execute("SELECT * FROM nowhere")
    with pytest.raises(sqlite3.ProgrammingError, match="binding"), open_writer(path) as db:
        db.execute("SELECT ?")


# A tournament in trouble


class TroubledLanes(FakeLanes):
    """Lanes beside which something happens while the fourth match is being played."""

    def __init__(self, trouble: Callable[[], object]) -> None:
        super().__init__()
        self._trouble = trouble

    async def play(self, spec: MatchSpec) -> MatchRecord:
        record = await super().play(spec)
        if len(self.played) == 4:
            self._trouble()
        return record


def play(path: Path, lanes: FakeLanes) -> bool:
    entrants = refs(4, {1: ("illegal", 30)})
    with open_writer(path) as db:
        tournament = tournaments.find(db, "spring") or begin(db, PLAN, entrants)

        async def main() -> bool:
            given = by_hash(entrants), lanes, lambda _: None, lambda: 2.0, lanes.stopping
            return await run(db, tournament, *given)

        return trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("what", ["full", "locked", "moved"])
def test_a_tournament_in_trouble_stops_and_goes_on_as_if_nothing_had_been(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    use_fake_bots(monkeypatch)
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    away = path.with_name("away.db")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with contextlib.ExitStack() as stack:
        begins, errors = {
            "full": (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1])), InfraError),
            "locked": (lambda: stack.enter_context(locked_by_another(path)), BusyError),
            "moved": (lambda: path.rename(away), InfraError),
        }[what]
        stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
        with pytest.raises(errors):
            play(path, TroubledLanes(begins))
    if what == "moved":
        away.rename(path)
    assert problems(path) == ()
    with open_reader(path) as db:
        assert 0 < matches.count_played(db, 1) < 12
    assert play(path, FakeLanes())
    assert play(path.with_name("other.db"), FakeLanes())
    with open_reader(path) as db, open_reader(path.with_name("other.db")) as other:
        one, two = (result(opened, tournaments.get(opened, 1), PLAN.games) for opened in (db, other))
        assert one == two
    assert problems(path) == ()


class ClockSetBack(FakeLanes):
    """Lanes on a machine whose clock goes backwards by an hour with each match."""

    async def play(self, spec: MatchSpec) -> MatchRecord:
        record = await super().play(spec)
        return msgspec.structs.replace(record, started_at=1e9 - 3600 * len(self.played))


def test_a_clock_that_is_set_back_during_a_tournament_changes_no_result(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fake_bots(monkeypatch)
    lanes = ClockSetBack()
    lanes.stop_after = 5
    assert not play(path, lanes)
    assert play(path, ClockSetBack()), "it goes on"
    assert play(path.with_name("other.db"), FakeLanes())
    with open_reader(path) as db, open_reader(path.with_name("other.db")) as other:
        one, two = (result(opened, tournaments.get(opened, 1), PLAN.games) for opened in (db, other))
        assert one == two
        assert matches.last_deal(db) is not None
        assert [difference for _, found in audit(db, tournaments.tournaments(db)) for difference in found] == []
    assert problems(path) == ()


# Readers


@pytest.mark.slow
def test_a_thousand_reads_beside_a_busy_writer_have_no_error(path: Path) -> None:
    with open_writer(path) as db, readers.open_looper(path, min(os.sched_getaffinity(0))) as looper:
        waiting = readers.prepare(db, 20_000)
        while looper.reads < 1000:
            with looper.reading():
                for record in islice(waiting, 100):
                    with writing(db):
                        assert matches.record(db, record)
    assert problems(path) == ()


def test_a_reader_that_fails_is_told(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InfraError, match="a reader failed"):
        with readers.open_looper(path, min(os.sched_getaffinity(0))) as looper, looper.reading():
            pass
    assert "there is no database" in capfd.readouterr().err
