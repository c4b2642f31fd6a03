"""The store: opening and its troubles, transactions, and what is kept of bots, tournaments and matches."""

from __future__ import annotations

import inspect
import os
import sqlite3
import stat
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import sqlite_utils
from sqlite_utils import Database, Migrations

from arena.errors import FAULT_DETAILS, ConfigError, FaultKind
from arena.plan import Plan
from arena.rating.certainty import Certainty
from arena.records import (
    BotHash,
    DealRecord,
    Fault,
    Log,
    Machine,
    MatchRecord,
    Placing,
    PoolKey,
    RatedDeal,
    Rating,
    Round,
    Step,
)
from arena.store import bots, corrections, database, matches, ratings, schema, tallies, tournaments
from arena.store.corrections import Correction
from arena.store.database import open_reader, open_writer, writing
from arena.store.ratings import Past
from arena.store.schema import migrations
from arena.store.tournaments import Entrant, Scheduled, Stage, Tournament
from tests.fakes_executor import MACHINE, apart, begin, refs

POOL = PoolKey("durak", "durak/1{deck=36}", 2, "none", "single_loser")
PLAN = Plan("round-robin", {"durak": {}}, 1)
KEYS = tuple(bytes([n]) * 32 for n in (1, 2))
LEGS = ((0, 1), (1, 0))
A, B, C = (bot.hash for bot in sorted(refs(3), key=lambda bot: bot.hash))
SURE = Certainty((A, B), array("d", [4.0, -4.0, 4.0]), array("d", [8.0, -8.0, 8.0]), (12, 12), ((0, 1),), 2.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "arena.db"


@pytest.fixture
def db(path: Path) -> Iterator[Database]:
    with open_writer(path) as opened:
        yield opened


# Opening


def test_every_migration_is_named_and_applied_once(path: Path) -> None:
    assert schema.known() == ["first", "stages", "tallies", "fits"]
    for _ in range(2):
        with open_writer(path) as db:
            assert schema.applied(db) == schema.known()
            assert schema.version(db) == len(schema.known())
            assert schema.entries(db) >= schema.expected(schema.known())


def test_a_failing_migration_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Migrations("arena")

    @broken()
    def first(db: sqlite_utils.Database) -> None:
        db.execute("CREATE TABLE half (n INTEGER) STRICT")
        raise RuntimeError("power")

    monkeypatch.setattr(schema, "migrations", broken)
    with pytest.raises(RuntimeError), open_writer(path):
        pass
    monkeypatch.undo()
    with open_writer(path) as db:
        assert "half" not in db.table_names()
        assert "match" in db.table_names()


def test_a_database_whose_maker_was_killed_is_empty_for_readers(path: Path) -> None:
    path.parent.mkdir()
    made = sqlite3.connect(path)
    made.execute("PRAGMA journal_mode = WAL")
    made.close()
    for outdated in (False, True):
        with pytest.raises(ConfigError, match="is empty, not a database yet"), open_reader(path, outdated=outdated):
            pass
    with open_writer(path):
        pass
    with open_reader(path):
        pass


def test_an_empty_file_is_refused_by_readers_and_filled_by_the_writer(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with pytest.raises(ConfigError, match=r"arena\.db is empty, not a database yet; `arena submit` or"):
        with open_reader(path):
            pass
    with open_writer(path):
        pass
    with open_reader(path) as db:
        assert matches.last_deal(db) is None


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "places.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE place (name TEXT)")
    connection.close()
    before = other.read_bytes()
    for opened in (open_reader, open_writer):
        with pytest.raises(ConfigError, match="a database of another program; name another with --db"), opened(other):
            pass
    assert other.read_bytes() == before


def test_a_database_whose_making_was_interrupted_is_made_anew(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    migrations.ensure_migrations_table(Database(connection))
    connection.close()
    with open_writer(path) as db:
        assert "match" in db.table_names()


def test_the_file_is_its_owners_alone(path: Path) -> None:
    umask = os.umask(0)
    try:
        with open_writer(path):
            for name in os.listdir(path.parent):
                assert stat.S_IMODE((path.parent / name).stat().st_mode) == 0o600, name
    finally:
        os.umask(umask)


def test_odd_names_are_files_like_others(tmp_path: Path) -> None:
    odd = tmp_path / "50% off?mode=memory#1.db"
    with open_writer(odd) as db:
        bots.add_bot(db, A, "", 1, 1, 1.0)
    assert odd.stat().st_size > 0
    with open_reader(odd) as db:
        assert db["bot"].count == 1


def test_tables_are_strict_and_keep_their_foreign_keys(db: Database) -> None:
    rows = db.query("SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    strict = {row["name"]: row["strict"] for row in rows if not row["name"].startswith(("sqlite_", "_sqlite_"))}
    assert len(strict) == 19
    assert set(strict.values()) == {1}
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        db.execute("INSERT INTO entrant VALUES (1, 0, 'x', 'y', '[]')")
    with pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT value"):
        db.execute("INSERT INTO bot VALUES ('x', '', 'many', 1, 1.0)")


def test_a_reader_makes_no_database(tmp_path: Path) -> None:
    for missing in (tmp_path / "none.db", tmp_path / "no" / "folder.db"):
        with pytest.raises(ConfigError, match=f"there is no database at {missing} yet"), open_reader(missing):
            pass
    with pytest.raises(ConfigError, match=f"{tmp_path} is a folder, not a database"), open_reader(tmp_path):
        pass
    assert not os.listdir(tmp_path)


def test_a_reader_cannot_write(db: Database, path: Path) -> None:
    with pytest.raises(ConfigError, match="attempt to write a readonly database"), open_reader(path) as reader:
        reader.execute("DELETE FROM bot")


def test_readers_and_the_writer_never_wait_for_each_other(
    db: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_S", 0.0)
    with open_reader(path) as reader:
        assert reader["bot"].count == 0
        with writing(db):
            bots.add_bot(db, A, "", 1, 1, 1.0)
            with open_reader(path) as second:
                assert second["bot"].count == 0
        assert reader["bot"].count == 0, "a reader sees one moment"
    with open_reader(path) as later:
        assert later["bot"].count == 1


@pytest.mark.parametrize("content", [b"this is a bot.toml, not a database\n" * 40, bytes(5000)])
def test_what_is_not_a_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bot.toml"
    file.write_bytes(content)
    for opened in (open_reader, open_writer):
        with pytest.raises(ConfigError, match=r"bot\.toml is not a database, or a damaged one"), opened(file):
            pass
    assert file.read_bytes() == content


def test_paths_that_cannot_be_written_give_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    paths = {tmp_path: "Is a directory", Path("."): "Is a directory", Path("/"): "Is a directory"}
    paths |= {file / "arena.db": "Not a directory|File exists", tmp_path / ("x" * 300): "File name too long"}
    paths |= {Path("/proc/arena.db"): "No such file"}
    for path, why in paths.items():
        with pytest.raises(ConfigError, match=rf"cannot be written: ({why}).*; name another with --db or ARENA_DB"):
            with open_writer(path):
                pass
    assert os.listdir(tmp_path) == ["file"]


def test_a_path_that_cannot_be_looked_at_gives_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: File name too long"), open_reader(tmp_path / ("x" * 300)):
        pass


# Transactions


def test_writing_commits_at_its_end_and_rolls_back_on_any_exception(db: Database) -> None:
    def fail(error: type[BaseException]) -> None:
        with writing(db):
            bots.add_bot(db, A, "", 1, 1, 1.0)
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
        assert db["bot"].count == 0
    with writing(db):
        bots.add_bot(db, A, "", 1, 1, 1.0)
    assert not db.conn.in_transaction
    assert db["bot"].count == 1


def test_where_sqlite_rolls_back_itself_its_reason_is_told(db: Database) -> None:
    keep(db, A)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"), writing(db):
        db.execute("INSERT OR ROLLBACK INTO bot SELECT * FROM bot")
    assert not db.conn.in_transaction


def test_writing_does_not_nest(db: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="within a transaction"), writing(db), writing(db):
        pass
    assert not db.conn.in_transaction


# Bots


def keep(db: Database, *hashes: BotHash) -> None:
    for bot in hashes:
        bots.add_bot(db, bot, f"manifest of {bot[:4]}", 3, 100, 1.0)


def test_a_bot_is_kept_once(db: Database) -> None:
    keep(db, A, A)
    assert db["bot"].count == 1
    assert bots.latest(db, "ace") is None


def test_versions_under_a_name(db: Database) -> None:
    keep(db, A, B)
    first = bots.submit(db, "ace", A, "ann", 2.0)
    assert first == bots.Submission("ace", 1, A, "ann", f"manifest of {A[:4]}", 2.0, None)
    assert bots.submit(db, "ace", A, "ann", 3.0) == first, "the same again is no new version"
    assert bots.submit(db, "ace", B, "ann", 4.0).version == 2
    assert bots.submit(db, "ace", A, "ann", 5.0).version == 3, "an older one again is the newest"
    assert [(s.name, s.version, s.hash) for s in bots.submissions(db)] == [("ace", 3, A)]


def test_a_name_belongs_to_its_author(db: Database) -> None:
    keep(db, A, B)
    bots.submit(db, "ace", A, "ann", 2.0)
    with pytest.raises(ConfigError, match="ace was submitted by ann, not bob; --force takes it over"):
        bots.submit(db, "ace", B, "bob", 3.0)
    with pytest.raises(ConfigError, match="ace was submitted by ann, not nobody"):
        bots.submit(db, "ace", A, "", 3.0)
    taken = bots.submit(db, "ace", A, "bob", 3.0, force=True)
    assert (taken.version, taken.author) == (2, "bob")
    with pytest.raises(ConfigError, match="submitted by bob, not ann"):
        bots.submit(db, "ace", B, "ann", 4.0)


def test_the_author_may_be_nobody(db: Database) -> None:
    keep(db, A)
    bots.submit(db, "ace", A, "", 2.0)
    with pytest.raises(ConfigError, match="submitted by nobody, not ann"):
        bots.submit(db, "ace", A, "ann", 2.0)


def test_a_bot_that_is_not_kept_cannot_be_submitted(db: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        bots.submit(db, "ace", A, "", 2.0)


def test_retired_names_are_out_of_all_until_submitted_again(db: Database) -> None:
    keep(db, A, B)
    for bot, name in ((A, "ace"), (B, "ace"), (B, "bee")):
        bots.submit(db, name, bot, "", 2.0)
    bots.retire(db, "ace", 5.0)
    bots.retire(db, "ace", 6.0)
    assert [s.name for s in bots.submissions(db)] == ["bee"]
    assert [(s.name, s.retired_at) for s in bots.submissions(db, retired=True)] == [("ace", 5.0), ("bee", None)]
    assert bots.submit(db, "ace", B, "", 7.0).retired_at is None
    assert [(s.name, s.version) for s in bots.submissions(db)] == [("ace", 2), ("bee", 1)]
    with pytest.raises(ConfigError, match="no bot is called 'cat'; `arena bots` lists them"):
        bots.retire(db, "cat", 8.0)


def test_a_retired_name_comes_back_with_a_new_version(db: Database) -> None:
    keep(db, A, B)
    bots.submit(db, "ace", A, "", 2.0)
    bots.retire(db, "ace", 3.0)
    assert bots.submit(db, "ace", B, "", 4.0).version == 2
    assert [s.hash for s in bots.submissions(db)] == [B]


def test_names_to_show(db: Database) -> None:
    assert bots.names_by_hash(db) == {}
    begin(db, PLAN, refs(3))
    assert sorted(bots.names_by_hash(db).values()) == ["bot-0", "bot-1", "bot-2"]
    bots.submit(db, "ace", A, "", 2.0)
    bots.submit(db, "ace", B, "", 3.0)
    shown = bots.names_by_hash(db)
    assert (shown[A], shown[B]) == ("ace@1", "ace"), "an older version says so"
    bots.submit(db, "zoe", A, "", 4.0)
    assert bots.names_by_hash(db)[A] == "zoe", "the name it was given last wins, whatever the versions"
    bots.submit(db, "ace", A, "", 5.0)
    bots.retire(db, "ace", 6.0)
    shown = bots.names_by_hash(db)
    assert (shown[A], shown[B]) == ("ace", "ace@2"), "a retired name is a name"


# Tournaments


def test_a_tournament_is_kept_whole(db: Database) -> None:
    keep(db, A, B)
    first, second = (Stage(number, "{}", number == 1, b"c", b"s", b"m", 1.5, 4) for number in (1, 2))
    made = Tournament(99, "spring", "tournament", "none", "0.1.0", 1, 1.5, (first,))
    entrants = [Entrant(0, "ace", A, ("durak",)), Entrant(1, "bee", B, ("avalanche", "durak"))]
    number = tournaments.create(db, made, entrants)
    kept = tournaments.get(db, number)
    first = msgspec.structs.replace(first, first_match=1, players=(0, 1))
    assert kept == tournaments.find(db, "spring") == msgspec.structs.replace(made, id=number, stages=(first,))
    assert tournaments.entrants(db, number) == entrants
    assert tournaments.entrants(db, number, "avalanche") == entrants[1:]
    with pytest.raises(ConfigError, match="there is a tournament called 'spring' already; choose another with --name"):
        tournaments.create(db, made, [])
    tournaments.finish(db, number, 9.0)
    assert tournaments.get(db, number).finished_at == 9.0
    tournaments.add_stage(db, number, msgspec.structs.replace(second, players=(1, 2)))
    tournaments.add_entrants(db, number, [Entrant(2, "cow", A, ("durak",))])
    kept = tournaments.get(db, number)
    assert [stage.finished_at for stage in kept.stages] == [9.0, None]
    assert (kept.finished_at, kept.practice) == (None, True)
    assert (kept.stages[1].first_match, kept.stages[1].players) == (5, (1, 2))
    assert tournaments.find(db, "autumn") is None


def test_tournaments_of_a_kind_newest_first(db: Database) -> None:
    begin(db, PLAN, refs(2), name="one")
    begin(db, PLAN, refs(2), name="two")
    begin(db, PLAN, refs(2), name="play 1", kind="play")
    assert [t.name for t in tournaments.tournaments(db)] == ["two", "one"]
    assert [t.name for t in tournaments.tournaments(db, "play")] == ["play 1"]


def test_pools_are_one_for_equal_keys(db: Database) -> None:
    other = msgspec.structs.replace(POOL, isolation="strict")
    assert tournaments.pool_of(db, POOL) == tournaments.pool_of(db, POOL) != tournaments.pool_of(db, other)


def schedule(db: Database, tournament: Tournament, number: int = 1, *tables: tuple[int, ...]) -> list[int]:
    """Store a round of durak and return the ids of its matches."""
    tables = tables or ((0, 1),)
    planned = [Scheduled(POOL, table, KEYS, LEGS) for table in tables]
    with writing(db):
        tournaments.add_round(
            db, tournament.id, "durak", Round(number, tables, (2,)), planned, tournament.stages[0].first_match
        )
    return matches.unplayed(db, tournament.id, "durak", number)


def test_rounds_come_back_as_scheduled(db: Database) -> None:
    spring = begin(db, PLAN, refs(3))
    assert tournaments.rounds(db, spring.id, "durak") == []
    schedule(db, spring, 1, (1, 0), (2, 0))
    schedule(db, spring, 2)
    tournaments.complete_round(db, spring.id, "durak", 1)
    assert tournaments.rounds(db, spring.id, "durak") == [
        (Round(1, ((1, 0), (2, 0)), (2,)), True),
        (Round(2, ((0, 1),), (2,)), False),
    ]
    assert tournaments.rounds(db, spring.id, "avalanche") == []
    assert [table for _, table in matches.tables(db, spring.id, "durak", 1)] == [(1, 0), (2, 0)]
    with pytest.raises(sqlite3.IntegrityError):
        schedule(db, spring, 2)


# Matches


def a_deal(deck: int, leg: int, places: tuple[int, ...] = (1, 2), *, rated: bool = True) -> DealRecord:
    steps = (Step(0, "attack:7s", 80, "well"), Step(1, "take", -1))
    digests = (bytes(32), b"\xff" * 32)
    return DealRecord(
        deck, leg, LEGS[leg], steps, places, (1, 0), "durak", rated, digests, (1, 0), (5, -1), (0, 2), 10, 20
    )


def a_fault(deck: int, leg: int, seat: int) -> Fault:
    return Fault(FaultKind.CRASH, "exit", deck, leg, seat, 4, "it ended", b"\x00\xff", b"Traceback \xfe", 70, 1000)


def a_record(number: int, *faults: Fault, started_at: float = 5.0, machine: Machine = MACHINE) -> MatchRecord:
    deals = tuple(a_deal(deck, leg) for leg in (0, 1) for deck in (0, 1))
    return MatchRecord(number, deals, faults, "none", "0.1.0", 1, machine, 0, started_at, 77)


def test_a_match_is_kept_whole(db: Database) -> None:
    spring = begin(db, PLAN, refs(3))
    (number,) = schedule(db, spring, 1, (1, 0))
    stored = matches.match(db, number)
    assert stored == matches.StoredMatch(
        number,
        spring.id,
        "durak",
        1,
        POOL.rule_set,
        "scheduled",
        (1, 0),
        tuple(tournaments.entrants(db, spring.id)[n].name for n in (1, 0)),
        (B, A),
        KEYS,
        LEGS,
        None,
        pool_seats=2,
    )
    played = a_record(number, a_fault(1, 0, 1))
    assert matches.record(db, played)
    assert matches.match(db, number) == msgspec.structs.replace(stored, state="played", isolation="none")
    for deal in played.deals:
        assert matches.deal(db, number, deal.deck, deal.leg) == deal
    assert matches.deals(db, number) == [Placing(k, g, LEGS[g], (1, 2)) for k in (0, 1) for g in (0, 1)]
    assert matches.unplayed(db, spring.id, "durak", 1) == []
    assert matches.count_played(db, spring.id) == 1
    assert matches.match(db, 99) is None
    assert matches.deal(db, number, 7, 0) is None
    kept = list(db.query("SELECT engine, protocol, core, started_at, duration_us, facts FROM match m JOIN machine"))
    facts = msgspec.json.encode(MACHINE).decode()
    assert kept == [{"engine": "0.1.0", "protocol": 1, "core": 0, "started_at": 5.0, "duration_us": 77, "facts": facts}]


def dump(db: Database) -> list[str]:
    return list(db.conn.iterdump())


def test_recording_twice_changes_nothing(db: Database) -> None:
    (number,) = schedule(db, begin(db, PLAN, refs(3)))
    assert matches.record(db, a_record(number, a_fault(0, 0, 0)))
    before = dump(db)
    again = a_record(number, started_at=9.0, machine=msgspec.structs.replace(MACHINE, cores=64))
    assert not matches.record(db, again)
    assert not matches.record(db, a_record(4711))
    assert dump(db) == before


def test_equal_machines_are_one(db: Database) -> None:
    numbers = schedule(db, begin(db, PLAN, refs(3)), 1, (0, 1), (0, 2), (1, 2))
    for number, cores in zip(numbers, (2, 2, 4), strict=True):
        matches.record(db, a_record(number, machine=msgspec.structs.replace(MACHINE, cores=cores)))
    assert [machine for (machine,) in db.execute("SELECT machine FROM match ORDER BY id")] == [1, 1, 2]


def test_dying_between_any_two_statements_leaves_nothing_of_the_match(db: Database) -> None:
    (number,) = schedule(db, begin(db, PLAN, refs(3)))
    played = a_record(number, a_fault(0, 0, 0), a_fault(1, 1, 1))
    before = dump(db)
    left = 0

    def die(sql: str, parameters: object) -> None:
        nonlocal left
        if left == 0 and sql != "ROLLBACK":
            raise SystemError("killed")
        left -= 1

    statements = 0
    while True:
        left = statements
        with db.tracer(die):
            try:
                with writing(db):
                    matches.record(db, played)
            except SystemError:
                assert dump(db) == before
                statements += 1
            else:
                break
    assert statements == 12, "begin, match, machine twice, four deals, the table, two faults, commit"
    assert len(matches.faults(db)) == 2


def test_only_faults_of_the_closed_set_are_stored(db: Database) -> None:
    details = {detail for every in FAULT_DETAILS.values() for detail in every}
    every = [(kind, detail) for kind in FaultKind for detail in sorted(details)]
    known = [(kind, detail) for kind, detail in every if detail in FAULT_DETAILS[kind]]
    (number,) = schedule(db, begin(db, PLAN, refs(3)))

    def faults(*which: tuple[FaultKind, str]) -> tuple[Fault, ...]:
        return tuple(msgspec.structs.replace(a_fault(0, 0, 0), kind=kind, detail=detail) for kind, detail in which)

    for one in set(every) - set(known):
        with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"), writing(db):
            matches.record(db, a_record(number, *faults(one)))
    assert matches.record(db, a_record(number, *faults(*known)))
    assert [(one.fault.kind, one.fault.detail) for one in matches.faults(db)] == known


def test_what_bots_wrote_is_kept_with_the_match(db: Database) -> None:
    one, two = schedule(db, begin(db, PLAN, refs(3)), 1, (0, 1), (0, 2))
    kept = (Log(1, 0, 0, 1, b"b\xff"), Log(0, 1, 1, 1, b"x" * 40_000), Log(0, 1, 0, 0, b"first"))
    matches.record(db, msgspec.structs.replace(a_record(one), logs=kept))
    matches.record(db, msgspec.structs.replace(a_record(two), logs=(Log(0, 0, 0, 1, b"other"),)))
    assert matches.logs(db, one) == [kept[2], kept[1], kept[0]]
    assert [log.text for log in matches.logs(db, two)] == [b"other"]
    assert matches.logs(db, 99) == []
    assert db.execute("SELECT max(length(text)) FROM log").fetchone()[0] < 100, "compressed"
    db.execute("UPDATE log SET text = x'00'")
    with pytest.raises(ConfigError, match="a log of match 1 is damaged"):
        matches.logs(db, one)


def test_faults_are_told_with_the_entrants_name(db: Database) -> None:
    spring = begin(db, PLAN, refs(3))
    autumn = begin(db, PLAN, refs(3), name="autumn")
    (one,) = schedule(db, spring, 1, (2, 0))
    (two,) = schedule(db, autumn, 1, (0, 1))
    names = [entrant.name for entrant in tournaments.entrants(db, spring.id)]
    first = [a_fault(0, 0, 0), a_fault(0, 1, 0), a_fault(1, 1, 1)]
    second = [a_fault(1, 0, 1)]
    matches.record(db, a_record(two, *second))
    matches.record(db, a_record(one, *first))
    told = [
        matches.StoredFault(one, names[entrant], fault, entrant)
        for entrant, fault in zip((2, 0, 2), first, strict=True)
    ]
    other = [matches.StoredFault(two, names[1], second[0], 1)]
    assert matches.faults(db, number=one) == matches.faults(db, tournament=spring.id) == told
    assert matches.faults(db) == other + told
    assert matches.faults(db, number=one, tournament=autumn.id) == []


def test_faults_of_a_bot_that_plays_itself_name_the_right_place(db: Database) -> None:
    keep(db, A)
    stage = Stage(1, "{}", True, b"c", b"s", b"m", 1.5, 4)
    made = Tournament(0, "play 1", "play", "none", "0.1.0", 1, 1.5, (stage,))
    entrants = [Entrant(number, name, A, ("durak",)) for number, name in enumerate(("left", "right"))]
    with writing(db):
        number = tournaments.create(db, made, entrants)
    (match,) = schedule(db, tournaments.get(db, number))
    stored = matches.match(db, match)
    assert stored is not None
    assert (stored.names, stored.hashes) == (("left", "right"), (A, A))
    matches.record(db, a_record(match, a_fault(0, 0, 0), a_fault(0, 1, 0), a_fault(1, 1, 1)))
    assert [fault.name for fault in matches.faults(db, number=match)] == ["left", "right", "left"]
    assert bots.names_by_hash(db)[A] in ("left", "right")


def test_the_last_deal_is_of_the_newest_tournament_whatever_the_clock_said(db: Database) -> None:
    assert matches.last_deal(db) is None
    numbers = schedule(db, begin(db, PLAN, refs(3)), 1, (0, 1), (0, 2), (1, 2))
    assert matches.last_deal(db) is None
    matches.record(db, a_record(numbers[1], started_at=9.0))
    matches.record(db, a_record(numbers[0], started_at=8.0))
    assert matches.last_deal(db) == (numbers[1], 1, 1), "the one begun last"
    matches.record(db, a_record(numbers[2], started_at=9.0))
    assert matches.last_deal(db) == (numbers[2], 1, 1)
    (later,) = schedule(db, begin(db, PLAN, refs(2), name="play 1", kind="play"))
    matches.record(db, a_record(later, started_at=2.0))
    assert matches.last_deal(db) == (later, 1, 1), "a clock that was set back does not hide the newest"


# Ratings


def test_only_complete_rounds_of_tournaments_are_rated(db: Database) -> None:
    pool = tournaments.pool_of(db, POOL)
    spring = begin(db, PLAN, refs(3))
    played = begin(db, PLAN, refs(3), name="play 1", kind="play")
    (one,) = schedule(db, spring, 1, (1, 0))
    (two,) = schedule(db, spring, 2, (0, 2))
    (three,) = schedule(db, played)
    record = a_record(one)
    forfeited = msgspec.structs.replace(record.deals[3], rated=False)
    matches.record(db, msgspec.structs.replace(record, deals=(*record.deals[:3], forfeited)))
    matches.record(db, a_record(two))
    matches.record(db, a_record(three))
    assert list(matches.rated_deals(db, pool)) == []
    tournaments.complete_round(db, spring.id, "durak", 1)
    tournaments.complete_round(db, played.id, "durak", 1)
    first, second = (key.hex() for key in KEYS)
    expected = [RatedDeal(first, (B, A), (1, 2)), RatedDeal(first, (A, B), (1, 2)), RatedDeal(second, (B, A), (1, 2))]
    assert apart(matches.rated_deals(db, pool)) == expected
    tournaments.complete_round(db, spring.id, "durak", 2)
    assert len(apart(matches.rated_deals(db, pool))) == 7
    assert apart(matches.rated_deals(db, pool, without=(spring.id, "durak", 2))) == expected
    assert list(matches.rated_deals(db, pool + 1)) == []


def test_ratings_are_replaced_and_their_history_kept(db: Database) -> None:
    spring = begin(db, PLAN, refs(3))
    pool = tournaments.pool_of(db, POOL)
    (one,) = schedule(db, spring)
    assert ratings.pools(db) == []
    first = [Rating(A, 1600.0, None, 4, 3, ">"), Rating(B, 1400.0, None, 4, 1, "<")]
    second = [
        Rating(C, 1550.5, 33.25, 8, 3, ranks=(1, 2)),
        *(msgspec.structs.replace(r, elo=r.elo - 1, bound="") for r in first),
    ]
    ratings.save(db, pool, spring.id, 1, first, 4, certainty=SURE)
    assert ratings.ratings(db, pool) == first
    ratings.save(db, pool, spring.id, 2, second, 8, certainty=SURE)
    assert ratings.changes(db, pool) == {A: -1.0, B: -1.0}, "C is new"
    ratings.save(db, pool, spring.id, 2, second, 8, certainty=SURE, before={A: 1600.0, B: 1400.0})
    assert ratings.changes(db, pool) == {A: -1.0, B: -1.0}
    assert ratings.rounds(db, pool) == [((spring.id, 1),), ((spring.id, 2),)]
    assert ratings.history_after(db, pool, spring.id, 2)[C] == (1550.5, 33.25, 8)
    assert ratings.ratings(db, pool) == sorted(second, key=lambda r: -r.elo)
    assert ratings.history(db, pool, A) == [Past(spring.id, 1, 1600.0, None, 4), Past(spring.id, 2, 1599.0, None, 4)]
    assert ratings.history(db, pool, C) == [Past(spring.id, 2, 1550.5, 33.25, 8)]
    assert ratings.pools_of_round(db, spring.id, "durak", 1) == [(pool, POOL)]
    assert ratings.pools_of_round(db, spring.id, "durak", 2) == []
    assert ratings.pools(db) == [ratings.PoolRow(pool, POOL, 8)]
    matches.record(db, a_record(one, a_fault(0, 0, 0), a_fault(0, 1, 1), a_fault(1, 0, 1)))
    tournaments.complete_round(db, spring.id, "durak", 1)
    assert ratings.fault_counts(db, pool) == {A: 2, B: 1}


def test_how_sure_a_pool_is_is_kept(db: Database) -> None:
    spring, pool = begin(db, PLAN, refs(3)), tournaments.pool_of(db, POOL)
    assert ratings.certainty(db, pool) is None
    rated = [Rating(bot, 1500.0, None, 0, 0) for bot in SURE.bots]
    ratings.save(db, pool, spring.id, 1, rated, 0, certainty=SURE)
    kept = ratings.certainty(db, pool)
    assert kept is not None
    assert msgspec.structs.astuple(kept) == msgspec.structs.astuple(SURE)


@pytest.mark.parametrize(
    "damage",
    [
        "covariance = x'00'",
        "naive = zeroblob(0)",
        f"covariance = x'{3 * '000000000000f87f'}'",  # no numbers
        "decks = '[1]'",
        "groups = '[[0, 99]]'",
        "bots = '[]', covariance = zeroblob(0), naive = zeroblob(0), decks = '[]', groups = '[]'",
    ],
)
def test_a_damaged_fit_is_told(db: Database, damage: str) -> None:
    spring, pool = begin(db, PLAN, refs(3)), tournaments.pool_of(db, POOL)
    rated = [Rating(bot, 1500.0, None, 0, 0) for bot in SURE.bots]
    ratings.save(db, pool, spring.id, 1, rated, 0, certainty=SURE)
    db.execute(f"UPDATE fit SET {damage}")
    with pytest.raises(ConfigError, match="the fit of pool 1 is damaged"):
        ratings.certainty(db, pool)


def test_equal_ratings_are_in_order_of_the_hash(db: Database) -> None:
    spring, pool = begin(db, PLAN, refs(3)), tournaments.pool_of(db, POOL)
    ratings.save(db, pool, spring.id, 1, [Rating(bot, 1500.0, None, 0, 0) for bot in (C, A, B)], 0, certainty=SURE)
    assert [rating.bot for rating in ratings.ratings(db, pool)] == [A, B, C]


def test_practice_is_known_once_it_is_rated(db: Database) -> None:
    for name, kind, seed in (("real", "tournament", None), ("play 1", "play", 1)):
        made = begin(db, PLAN, refs(3), name=name, kind=kind, seed=seed)
        schedule(db, made)
        tournaments.complete_round(db, made.id, "durak", 1)
    made = begin(db, PLAN, refs(3), name="practice", seed=1)
    schedule(db, made)
    assert not ratings.has_practice(db)
    tournaments.complete_round(db, made.id, "durak", 1)
    assert ratings.has_practice(db)


# Queries


SCANS = {
    "corrections.last_correction": "the end of it only",
    "bots.add_submission": "the test's own call of all_versions",
    "bots.authors_by_hash": "every bot's is asked for, once for each stage",
    "bots.all_versions": "every one is asked for, by an export",
    "bots.kept": "every one is asked for, by an export",
    "bots.names_by_hash": "every name is asked for",
    "bots.submissions": "every name is asked for",
    "matches.faults": "those of all matches, when no match or tournament is given",
    "matches.last_deal": "along the index of rounds from its end, to the first that was played",
    "ratings.has_practice": "few tournaments; ends with the first",
    "ratings.pools": "every pool is asked for, and there are few",
    "tournaments.add_stage": "few stages, once for each",
    "tallies.fill": "every round, once after a migration",
    "tournaments.complete_round": "few rounds, once for each, beside all the deals of one",
    "tournaments.completed": "every one is asked for, by an import",
    "tournaments.create": "few tournaments, once for each",
    "tournaments.players": "those of all tournaments, when none is given",
    "tournaments.tournaments": "every one is asked for",
}
"""Functions that read a whole table, and why that is right."""


def calls(db: Database) -> dict[str, list[Callable[[], object]]]:
    """Return calls of everything in the store that asks the database."""
    spring = begin(db, PLAN, refs(3))
    keep(db, A, B)
    bots.submit(db, "ace", A, "", 2.0)
    (one,) = schedule(db, spring)
    stage = Stage(1, "{}", True, b"c", b"s", b"m", 1.5, 4)
    bee, planned = Tournament(0, "bee", "play", "none", "0.1.0", 1, 1.5, (stage,)), POOL
    (two,) = schedule(db, spring, 3)
    played = msgspec.structs.replace(a_record(two, a_fault(0, 0, 0)), logs=(Log(0, 0, 0, 1, b"x"),))
    return {
        "bots.add_bot": [lambda: keep(db, C)],
        "bots.add_submission": [
            lambda: bots.add_submission(db, msgspec.structs.replace(next(bots.all_versions(db)), name="other"))
        ],
        "bots.authors_by_hash": [lambda: bots.authors_by_hash(db)],
        "bots.all_versions": [lambda: list(bots.all_versions(db))],
        "bots.kept": [lambda: list(bots.kept(db))],
        "bots.latest": [lambda: bots.latest(db, "ace")],
        "bots.names_by_hash": [lambda: bots.names_by_hash(db)],
        "bots.retire": [lambda: bots.retire(db, "ace", 3.0)],
        "bots.submissions": [lambda: bots.submissions(db), lambda: bots.submissions(db, retired=True)],
        "bots.submit": [lambda: bots.submit(db, "ace", A, "", 4.0), lambda: bots.submit(db, "ace", B, "", 4.0)],
        "bots.version_of": [lambda: bots.version_of(db, "ace", A)],
        "bots.version": [lambda: bots.version(db, "ace", 1)],
        "matches.columns": [lambda: matches.columns(db, one)],
        "matches.count_played": [
            lambda: matches.count_played(db, spring.id),
            lambda: matches.count_played(db, spring.id, 1),
        ],
        "matches.count_scheduled": [lambda: matches.count_scheduled(db, spring.id, 1)],
        "matches.count_unverified": [lambda: matches.count_unverified(db, spring.id, "durak")],
        "matches.each_record": [lambda: list(matches.each_record(db, one))],
        "matches.unverified": [lambda: matches.unverified(db, one)],
        "matches.deal": [lambda: matches.deal(db, one, 0, 0)],
        "matches.deals": [lambda: matches.deals(db, one)],
        "matches.faults": [
            lambda: matches.faults(db),
            lambda: matches.faults(db, number=one),
            lambda: matches.faults(db, tournament=spring.id),
        ],
        "matches.hashes": [lambda: matches.hashes(db, one)],
        "matches.last_deal": [lambda: matches.last_deal(db)],
        "matches.logs": [lambda: matches.logs(db, one)],
        "matches.match": [lambda: matches.match(db, one)],
        "matches.played": [lambda: matches.played(db, spring.id)],
        "matches.rated_deals": [
            lambda: list(matches.rated_deals(db, 1)),
            lambda: list(matches.rated_deals(db, 1, (spring.id, "durak", 1))),
            lambda: list(matches.rated_deals(db, 1, without=(spring.id, "durak", 1))),
        ],
        "matches.record": [lambda: matches.record(db, played)],
        "matches.records": [lambda: matches.records(db, one)],
        "matches.tables": [lambda: matches.tables(db, spring.id, "durak", 1)],
        "matches.unplayed": [lambda: matches.unplayed(db, spring.id, "durak", 1)],
        "ratings.certainty": [lambda: ratings.certainty(db, 1)],
        "ratings.changes": [lambda: ratings.changes(db, 1)],
        "ratings.fault_counts": [lambda: ratings.fault_counts(db, 1)],
        "ratings.has_practice": [lambda: ratings.has_practice(db)],
        "ratings.history": [lambda: ratings.history(db, 1, A)],
        "ratings.history_after": [lambda: ratings.history_after(db, 1, spring.id, 1)],
        "ratings.keep_history": [lambda: ratings.keep_history(db, 1, spring.id, 1, [])],
        "ratings.rounds": [lambda: ratings.rounds(db, 1)],
        "ratings.pools": [lambda: ratings.pools(db)],
        "ratings.pools_of_tournament": [lambda: ratings.pools_of_tournament(db, spring.id)],
        "ratings.pools_of_round": [lambda: ratings.pools_of_round(db, spring.id, "durak", 1)],
        "ratings.ratings": [lambda: ratings.ratings(db, 1)],
        "ratings.save": [lambda: ratings.save(db, 1, spring.id, 1, [Rating(A, 1500.0, None, 0, 0)], 0, certainty=SURE)],
        "tallies.add": [lambda: tallies.add(db, spring.id, "durak", 1)],
        "tallies.fill": [lambda: tallies.fill(db)],
        "tallies.fresh": [lambda: list(tallies.fresh(db, spring.id, "durak", 1))],
        "tallies.scores": [lambda: list(tallies.scores(db, spring.id, "durak"))],
        "tournaments.add_match": [
            lambda: tournaments.add_match(db, 90, spring.id, "durak", 1, Scheduled(POOL, (0, 1), (b"d",), ((0, 1),)))
        ],
        "tournaments.add_entrants": [
            lambda: tournaments.add_entrants(db, spring.id, [Entrant(9, "nine", A, ("durak",))])
        ],
        "tournaments.add_stage": [
            lambda: tournaments.add_stage(db, spring.id, msgspec.structs.replace(stage, number=2, players=(0, 1)))
        ],
        "tournaments.add_round": [lambda: schedule(db, spring, 2)],
        "tournaments.completed": [lambda: tournaments.completed(db)],
        "tournaments.completions": [lambda: tournaments.completions(db, spring.id, "durak")],
        "tournaments.complete_round": [lambda: tournaments.complete_round(db, spring.id, "durak", 1)],
        "tournaments.create": [lambda: tournaments.create(db, bee, [Entrant(0, "a", A, ("durak",))])],
        "tournaments.entrants": [lambda: tournaments.entrants(db, spring.id)],
        "tournaments.find": [lambda: tournaments.find(db, "spring")],
        "tournaments.finish": [lambda: tournaments.finish(db, spring.id, 9.0)],
        "tournaments.get": [lambda: tournaments.get(db, spring.id)],
        "tournaments.players": [
            lambda: tournaments.players(db),
            lambda: tournaments.players(db, spring.id),
        ],
        "tournaments.pool_of": [lambda: tournaments.pool_of(db, planned)],
        "tournaments.round_stages": [lambda: tournaments.round_stages(db, spring.id, "durak")],
        "tournaments.rounds": [lambda: tournaments.rounds(db, spring.id, "durak")],
        "tournaments.tournaments": [lambda: tournaments.tournaments(db)],
        # of a match that is recorded by now
        "matches.mark_unverified": [lambda: matches.mark_unverified(db, played.id, 0, 0, "because")],
        "matches.recorded": [lambda: matches.recorded(db, played.id)],
        "corrections.corrections": [lambda: corrections.corrections(db, spring.id)],
        "corrections.concerned": [
            lambda: corrections.concerned(db, Correction("disqualify", spring.id, 1, None, {}, "because", 5.0))
        ],
        "corrections.last_correction": [lambda: corrections.last_correction(db)],
        "corrections.add": [
            lambda: corrections.add(db, Correction("withdraw", spring.id, 1, None, {}, "because", 5.0))
        ],
        "corrections.exclude": [lambda: corrections.exclude(db, "withdraw", spring.id, "bot-0", "because", 5.0)],
        "corrections.void": [lambda: corrections.void(db, played.id, "because", 5.0)],
        "matches.mark_void": [lambda: matches.mark_void(db, played.id, "because")],
        "matches.never_played": [lambda: matches.never_played(db, spring.id, "durak", 1)],
    }


def asked(db: Database, call: Callable[[], object]) -> list[str]:
    """Return the statements that a call makes, with their values in them."""
    statements: list[str] = []
    db.conn.set_trace_callback(statements.append)
    call()
    db.conn.set_trace_callback(None)
    return [sql for sql in statements if sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")]


def scans(db: Database, sql: str) -> list[str]:
    """Return the steps of a statement's plan that go through a whole table or index."""
    steps = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
    return [
        step
        for step in steps
        if step.startswith("SCAN ") or (step.startswith("SEARCH ") and " USING " not in step)
        if step != "SCAN CONSTANT ROW"
    ]


def test_every_query_uses_an_index_or_says_why_not(db: Database) -> None:
    called = calls(db)
    asking = {
        f"{module.__name__.split('.')[-1]}.{name}"
        for module in (bots, corrections, matches, ratings, tallies, tournaments)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
        if "db" in inspect.signature(function).parameters
    }
    assert called.keys() == asking, "everything in the store that asks is looked at here"
    found: dict[str, list[str]] = {}
    for name, every in called.items():
        statements = [sql for call in every for sql in asked(db, call)]
        assert statements, name
        if steps := [step for sql in statements for step in scans(db, sql)]:
            found[name] = steps
    assert found.keys() == SCANS.keys(), found


def test_faults_of_one_match_or_tournament_scan_no_table(db: Database) -> None:
    every, *some = calls(db)["matches.faults"]
    assert [step for sql in asked(db, every) for step in scans(db, sql)]
    assert not [step for call in some for sql in asked(db, call) for step in scans(db, sql)]


def test_rated_deals_are_streamed_in_order_without_sorting_them(db: Database) -> None:
    query = next(sql for sql in asked(db, lambda: list(matches.rated_deals(db, 1))) if " deal " in sql)
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert not [step for step in plan if "TEMP B-TREE" in step]
