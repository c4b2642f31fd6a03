"""Looking after the database: `arena db`, backups, migrations, and what an examination finds."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from sqlite_utils import Database, Migrations
from typer.testing import CliRunner, Result

from arena.bench import readers
from arena.cli.commands import app
from arena.errors import ConfigError, InfraError
from arena.plan import plan_of
from arena.records import Round
from arena.store import matches, ratings, schema, tallies, tournaments
from arena.store.backup import backup, backup_path
from arena.store.database import migrate, open_reader, open_writer, writing
from arena.store.health import Health, examine
from arena.store.tournaments import Stage, Tournament
from arena.store.trouble import DamagedError

KNOWN = len(schema.known())
NOON = 1_795_953_600.0
"""2026-11-29T12:00:00Z"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arena.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """Give a database with 25 matches, 10 deals each."""
    with open_writer(path) as db:
        store(db, readers.prepare(db, 10), 5)
    return path


def store(db: Database, waiting: Iterator[Any], count: int) -> None:
    for record in islice(waiting, count):
        with writing(db):
            matches.record(db, record)


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def document(*args: str | Path) -> dict[str, Any]:
    ran = arena(*args, "--json")
    assert ran.exit_code in (0, 1), ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found.pop("schema") == f"arena.{'.'.join(str(arg) for arg in args[:2])}/1"
    return found


def examined(path: Path) -> Health:
    with open_reader(path, outdated=True) as db:
        return examine(db, path)


def changed(path: Path, *statements: str) -> None:
    """Change a database as another program would."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


# Where it is


def test_the_path_is_told_whether_it_exists_or_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    monkeypatch.delenv("ARENA_DB", raising=False)
    assert arena("db", "path").stdout == f"{path.parent / 'results' / 'arena.db'}\n"
    assert arena("db", "path", "--db", "arena.db").stdout == f"{path}\n"
    assert document("db", "path", "--db", path) == {"path": str(path), "exists": False}
    with open_writer(path):
        pass
    assert document("db", "path", "--db", path)["exists"] is True


# Whether it is sound


def test_a_sound_database_is_told_with_what_is_in_it(filled: Path) -> None:
    ran = arena("db", "check", "--db", filled)
    assert ran.exit_code == 0
    assert "bytes a deal" in ran.stdout
    assert "arena verify" in ran.stderr
    told = document("db", "check", "--db", filled)
    assert (told["path"], told["sound"], told["problems"]) == (str(filled), True, [])
    assert (told["version"], told["known"]) == (KNOWN, KNOWN)
    assert told["facts"]["journal_mode"] == "wal"
    assert told["counts"] == {
        "bots": 2,
        "tournaments": 2,
        "plays": 0,
        "rounds": 2,
        "matches": 25,
        "scheduled": 5,
        "deals": 250,
        "faults": 0,
        "logs": 0,
    }
    assert told["file_bytes"] == filled.stat().st_size
    assert told["deal_bytes"] == told["file_bytes"] / 250 > told["record_bytes"] > 50


def test_a_database_without_deals_has_no_size_of_one(path: Path) -> None:
    with open_writer(path):
        found = examined(path)
        assert found.file_bytes > path.stat().st_size, "the log counts"
    assert (found.deal_bytes, found.record_bytes) == (None, None)
    assert "bytes a deal" not in arena("db", "check", "--db", path).stdout


def test_rows_that_name_what_is_not_there_are_told(filled: Path) -> None:
    changed(filled, "DELETE FROM machine", "DELETE FROM round WHERE tournament = 2")
    ran = arena("db", "check", "--db", filled)
    assert ran.exit_code == 1
    assert "25 rows of match name a machine that is not there" in ran.stdout
    assert "10 rows of match name a round that is not there" in ran.stdout
    assert "put a backup in its place" in ran.stderr


def test_what_the_schema_lacks_is_told(filled: Path) -> None:
    changed(filled, "DROP INDEX match_pool", "DROP TABLE log")
    lacking = ("index log_match", "index match_pool", "table log")
    assert examined(filled).problems == tuple(f"the {thing} is missing" for thing in lacking)
    assert examined(filled).counts == {}


def test_a_damaged_page_is_told_with_the_way_out(filled: Path) -> None:
    whole = filled.read_bytes()
    damaged = bytearray(whole)
    with open_reader(filled) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'match_started'").fetchone()
    damaged[(root - 1) * 4096 + 8 : root * 4096] = bytes(4088)
    filled.write_bytes(damaged)
    ran = arena("db", "check", "--db", filled)
    assert ran.exit_code == 1
    assert "the file is damaged: " in ran.stdout
    assert "put a backup in its place" in ran.stderr
    with open_reader(filled) as db, pytest.raises(DamagedError, match="so no backup was made"):
        backup(db, filled.with_name("copy.db"))
    assert not [name for name in os.listdir(filled.parent) if "copy" in name]


def test_what_cannot_be_opened_at_all_is_told_too(path: Path) -> None:
    path.write_text("no database\n" * 100)
    told = document("db", "check", "--db", path)
    assert told["sound"] is False
    assert "is not a database, or a damaged one" in told["problems"][0]
    ran = arena("db", "check", "--db", path)
    assert (ran.exit_code, ran.stdout.count("\n")) == (1, 1)
    assert isinstance(arena("db", "check", "--db", path.with_name("none.db")).exception, ConfigError)


# Backups


def test_a_backup_is_one_private_file_that_holds_everything(filled: Path, tmp_path: Path) -> None:
    to = tmp_path / "backups" / "spring.db"
    to.parent.mkdir()
    umask = os.umask(0)
    try:
        ran = arena("db", "backup", to, "--db", filled)
    finally:
        os.umask(umask)
    assert ran.exit_code == 0
    assert "examined and sound" in ran.stdout
    assert str(filled.parent / "bots") in ran.stderr
    assert os.listdir(to.parent) == ["spring.db"]
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    assert examined(to).counts == examined(filled).counts
    assert examined(to).problems == ()


def test_a_backup_is_of_one_moment_while_a_run_writes(path: Path) -> None:
    to = path.with_name("copy.db")
    with open_writer(path) as db:
        waiting = readers.prepare(db, 20)
        store(db, waiting, 3)
        with open_reader(path) as reader:
            assert matches.count_played(reader, 2) == 3
            store(db, waiting, 4)
            backup(reader, to)
            with writing(db):
                backup(reader, to, force=True)
        assert document("db", "backup", to, "--force", "--db", path)["bytes"] == to.stat().st_size
        with open_reader(to) as copy:
            assert matches.count_played(copy, 2) == 7
        store(db, waiting, 1)
    assert examined(path).problems == ()


def test_a_backup_overwrites_only_what_it_may(filled: Path) -> None:
    to = filled.with_name("copy.db")
    to.write_text("precious")
    with open_reader(filled) as db:
        with pytest.raises(ConfigError, match=r"there is a file .*copy\.db already; name another, or --force"):
            backup(db, to)
        assert to.read_text() == "precious"
        backup(db, to, force=True)
        for used in (filled, to):
            to.with_name("copy.db-wal").write_bytes(b"frames")
            with pytest.raises(ConfigError, match="is a database in use"):
                backup(db, used, force=True)
        with pytest.raises(ConfigError, match="is a folder; name a file in it"):
            backup(db, filled.parent, force=True)
        for nowhere, why in ((filled / "x.db", "Not a directory"), (Path("/no/where.db"), "No such file")):
            with pytest.raises(ConfigError, match=f"cannot be written: {why}"):
                backup(db, nowhere)
        with pytest.raises(ConfigError, match="cannot be written: File name too long"):
            backup(db, filled.with_name("x" * 300))
    assert examined(filled).problems == ()


def test_a_backup_that_does_not_fit_leaves_nothing(filled: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with open_reader(filled) as db, pytest.raises(InfraError, match=r"copy\.db cannot be written"):
            backup(db, filled.with_name("copy.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [name for name in os.listdir(filled.parent) if "copy" in name]


# Versions of the schema


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Migrations:
    """Give an arena with one more migration, which replaces a table that others refer to."""
    made = Migrations("arena")
    for name in schema.known():
        made()(getattr(schema, name))

    @made()
    def newest(db: Database) -> None:
        db.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE, seen REAL) STRICT")
        db.execute("INSERT INTO fresh SELECT id, facts, 1.0 FROM machine")
        db.execute("DROP TABLE machine")
        db.execute("ALTER TABLE fresh RENAME TO machine")

    monkeypatch.setattr(schema, "migrations", made)
    return made


def test_readers_refuse_an_older_schema_and_tell_the_way_out(filled: Path, newer: Migrations) -> None:
    told = f"is of schema version {KNOWN}, older than version {KNOWN + 1}, which this arena reads; `arena db migrate`"
    with pytest.raises(ConfigError, match=told), open_reader(filled):
        pass
    ran = arena("db", "check", "--db", filled)
    assert ran.exit_code == 1
    assert f"its schema is of version {KNOWN}, older than {KNOWN + 1}: `arena db migrate`" in ran.stdout
    assert "backup" not in ran.stderr
    assert document("db", "check", "--db", filled)["counts"]["deals"] == 250
    assert document("db", "backup", filled.with_name("copy.db"), "--db", filled)["bytes"] > 0


_OLDER = (
    "INSERT INTO bot VALUES ('aa', '', 1, 1, 1.0), ('bb', '', 1, 1, 1.0)",
    'INSERT INTO tournament VALUES (1, \'spring\', \'tournament\', \'{"format":"swiss","games":{"durak":{}},'
    "\"rounds\":2}', 1, 'none', '0.1.0', 1, x'01', x'02', x'03', 1, 2, 5.0, NULL)",
    "INSERT INTO entrant VALUES (1, 0, 'ace', 'aa', '[\"durak\"]'), (1, 1, 'bee', 'bb', '[\"durak\"]')",
    "INSERT INTO round VALUES (1, 'durak', 1, '[]', 1), (1, 'durak', 2, '[]', 0)",
    "INSERT INTO pool VALUES (1, 'durak', 'durak/1{}', 2, 'none', 'ranking')",
    "INSERT INTO match (id, tournament, game, round, pool, decks, legs) VALUES (1, 1, 'durak', 1, 1, x'', '[]'), "
    "(2, 1, 'durak', 2, 1, x'', '[]')",
    "INSERT INTO place VALUES (1, 0, 1, 0), (1, 1, 1, 1), (2, 0, 1, 1), (2, 1, 1, 0)",
)


def test_what_an_older_tournament_was_is_its_first_stage(path: Path) -> None:
    older = Database(path)
    schema.migrations.apply(older, stop_before="stages")
    for statement in _OLDER:
        older.execute(statement)
    older.conn.commit()
    older.close()
    assert migrate(path, NOON).after == KNOWN
    with open_reader(path) as db:
        spring = tournaments.find(db, "spring")
        stage = Stage(1, spring.stages[0].spec if spring else "", True, b"\1", b"\2", b"\3", 5.0, 2, (0, 1), 1)
        assert spring == Tournament(1, "spring", "tournament", "none", "0.1.0", 1, 5.0, (stage,))
        assert plan_of(stage).rounds == 2
        due = [(Round(1, ((0, 1),)), True), (Round(2, ((1, 0),)), False)]
        assert tournaments.rounds(db, 1, "durak") == due
        assert tournaments.round_stages(db, 1, "durak") == [1, 1]
        assert matches.unplayed(db, 1, "durak", 2) == [2]
    assert examined(path).problems == ()


def test_a_migration_keeps_a_backup_beside_the_database(
    filled: Path, newer: Migrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOON)
    kept = filled.with_name(f"arena.db.v{KNOWN}-20261129T120000Z.bak")
    assert document("db", "migrate", "--db", filled) == {"before": KNOWN, "after": KNOWN + 1, "backup": str(kept)}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert examined(kept).version == KNOWN
    found = examined(filled)
    assert (found.version, found.problems, found.counts["deals"]) == (KNOWN + 1, (), 250)
    with open_reader(filled) as db:
        assert db.execute("SELECT DISTINCT seen FROM machine").fetchall() == [(1.0,)]
        assert matches.last_deal(db) is not None
    assert "nothing to do" in arena("db", "migrate", "--db", filled).stdout
    assert document("db", "migrate", "--db", filled)["backup"] is None


def test_a_migration_is_told(filled: Path, newer: Migrations) -> None:
    assert (
        f"is now of version {KNOWN + 1} (1 migration); as it was before: "
        in arena("db", "migrate", "--db", filled).stdout
    )


def test_opening_to_write_migrates_too(filled: Path, newer: Migrations) -> None:
    with open_writer(filled, lambda: NOON) as db:
        assert schema.version(db) == KNOWN + 1
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            db.execute("UPDATE match SET machine = 99")
    assert backup_path(filled, KNOWN, NOON).is_file()
    with open_writer(filled, lambda: NOON):
        pass


def test_a_new_database_is_made_without_a_backup(path: Path, newer: Migrations) -> None:
    with open_writer(path) as db:
        assert schema.version(db) == KNOWN + 1
    assert sorted(os.listdir(path.parent)) == ["arena.db", "arena.db.lock"]


def test_a_migration_that_fails_leaves_all_as_it_was(filled: Path, newer: Migrations) -> None:
    before = examined(filled).counts

    @newer()
    def broken(db: Database) -> None:
        db.execute("DELETE FROM machine")

    with pytest.raises(InfraError, match="cannot be brought up to date: its rows of match do not fit"):
        migrate(filled, NOON)
    found = examined(filled)
    assert (found.version, found.counts) == (KNOWN, before)
    with pytest.raises(ConfigError, match=r"there is a file .* already"):
        migrate(filled, NOON)


def test_a_newer_schema_is_refused_with_the_versions(
    filled: Path, newer: Migrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(filled, NOON)
    monkeypatch.undo()
    told = rf"version {KNOWN + 1} \('newest' is unknown here\), newer than version {KNOWN}"
    for refused in (open_reader, open_writer):
        with pytest.raises(ConfigError, match=told):
            with refused(filled):
                pass
    assert isinstance(arena("db", "check", "--db", filled).exception, ConfigError)


def test_what_is_derived_is_made_anew_from_an_older_database(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def derived(path: Path) -> tuple[object, ...]:
        with open_reader(path) as db:
            return [*tallies.scores(db, 1, "durak")], matches.count_unverified(db, 1, "durak"), ratings.pools(db)

    expected = derived(filled)
    older = Migrations("arena")
    older()(schema.first)
    older()(schema.stages)
    old = filled.with_name("old.db")
    with monkeypatch.context() as patched:
        patched.setattr(schema, "migrations", older)
        with open_writer(old) as db:
            db.execute("PRAGMA foreign_keys = OFF")
            db.execute("ATTACH ? AS newer", (str(filled),))
            for table in {*db.table_names()} - {older.migrations_table}:
                columns = ", ".join(db[table].columns_dict)
                db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table}")
    assert migrate(old, NOON).before == 2
    assert derived(old) == expected
    assert expected[1] == (0, 200)


def test_only_what_is_there_is_migrated(path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no database at"):
        migrate(path, NOON)
    path.touch()
    with pytest.raises(ConfigError, match="is empty, not a database yet"):
        migrate(path, NOON)
