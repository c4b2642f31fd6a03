"""Opening the database: one runner at a time, writers of a moment beside it, readers that never wait for either."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sqlite_utils import Database

from arena.errors import BusyError, ConfigError, InfraError
from arena.store import schema
from arena.store.backup import backup, backup_path
from arena.store.trouble import ANOTHER, explained, of_system

_BUSY_S = 10.0
_RUNNER_BUSY_S = 60.0
"""A runner waits longer for others: a correction fits the ratings anew, and what has been played is to be stored."""
_CHECKPOINT_PAGES = 4000
"""Pages in the write-ahead log (16 MB) before they are moved into the file. While a reader looks at an older moment the
log cannot begin anew, and each commit tries again; SQLite's 1000 are so soon full that this costs a tenth."""
_MAKES_ONE = "`arena submit` or `arena run` makes one, --db names another"


class _Writer(Database):
    """A database that knows its files, so that it notices when they are taken away."""

    files: Mapping[Path, tuple[int, int]]


class Migrated(NamedTuple):
    """What a migration did.

    Attributes:
        before: the schema's version, 0 for a new database.
        after: the same as `before` if there was nothing to do.
        backup: where the database is kept as it was, if it held anything.
    """

    before: int
    after: int
    backup: Path | None


def _connect(path: Path, query: str) -> sqlite3.Connection:
    """Connect; every statement is its own transaction unless inside `writing`."""
    uri = f"{path.absolute().as_uri()}?{query}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


# Reading


@contextlib.contextmanager
def open_reader(path: Path, *, outdated: bool = False) -> Iterator[Database]:
    """Open an existing database to read; never creates one and never blocks the writer.

    Everything read is of one moment, that of the first query, whatever is written meanwhile.

    Args:
        outdated: accept an older schema, which queries need not fit.

    Raises:
        ConfigError: there is none, or it is not readable, not ours or of another version.
        InfraError: the machine failed.
    """
    _check_there(path)
    with explained(path, reading=True), _connected_reader(path) as db:
        _check_ours(db, path)
        before = schema.version(db)
        if not before:  # whoever made it was killed before anything was in it
            raise ConfigError(_empty(path))
        if not outdated and before < (known := len(schema.known())):
            raise ConfigError(
                f"database {path} is of schema version {before}, older than version {known}, which this arena reads; "
                "`arena db migrate` brings it up to date, with a backup beside it"
            )
        db.execute("BEGIN")
        yield db


def _check_there(path: Path) -> None:
    try:
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, not a database; {ANOTHER}")
        if not path.is_file():
            raise ConfigError(f"there is no database at {path} yet; {_MAKES_ONE}")
        if not path.stat().st_size and not _wal_bytes(path):
            raise ConfigError(_empty(path))
    except OSError as error:
        raise of_system(path, error, "read") from None


def _empty(path: Path) -> str:
    return f"{path} is empty, not a database yet; {_MAKES_ONE}"


@contextlib.contextmanager
def _connected_reader(path: Path) -> Iterator[Database]:
    """Connect to read, where readers and writers share memory beside the file; else as a file that nobody changes."""
    try:
        connection = _looked_at(path, "mode=ro")
        before = None
    except sqlite3.OperationalError as error:
        if _is_damaged_or_busy(error):
            raise
        before = _identity(path)
        connection = _alone(path, error)
    try:
        yield Database(connection)
    finally:
        connection.close()
    if before is not None and before != _identity(path):
        raise BusyError(f"database {path} was written to while it was read; give the same command again")


def _looked_at(path: Path, query: str) -> sqlite3.Connection:
    connection = _connect(path, query)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # the first look at the file
    except BaseException:
        connection.close()
        raise
    return connection


def _is_damaged_or_busy(error: sqlite3.Error) -> bool:
    cannot_share = sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL
    return (error.sqlite_errorcode & 0xFF) not in cannot_share


def _alone(path: Path, error: sqlite3.Error) -> sqlite3.Connection:
    """Connect without making files beside the database, as in a folder that cannot be written."""
    try:
        if not _wal_bytes(path):
            return _looked_at(path, "mode=ro&immutable=1")
    except sqlite3.Error:
        raise error from None
    if os.access(path.parent, os.W_OK, effective_ids=True):
        raise error
    raise ConfigError(
        f"database {path} cannot be read where it is: nothing can be written beside it, and its newest results are "
        f"still in {path.name}-wal; copy both files into a folder of yours and name the copy with --db"
    )


def _beside(path: Path, suffix: str) -> Path:
    """Return the name of a file that belongs to a database; of a link, to where it leads."""
    real = path.resolve()
    return real.parent / f"{real.name}{suffix}"


def _wal_bytes(path: Path) -> int:
    try:
        return _beside(path, "-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _identity(path: Path) -> tuple[int, ...]:
    """Return what changes when a database is written to or taken away."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, _wal_bytes(path)


def _check_ours(db: Database, path: Path) -> None:
    """Refuse a database of another program, or of an arena that knows more than this one."""
    applied, known = schema.applied(db), schema.known()
    if not applied and {*db.table_names()} - {schema.migrations.migrations_table}:
        raise ConfigError(f"{path} is a database of another program; {ANOTHER}")
    if newer := [name for name in applied if name not in known]:
        raise ConfigError(
            f"database {path} is of schema version {len(applied)} ({newer[0]!r} is unknown here), newer than version "
            f"{len(known)}, which this arena knows; use a newer arena, or {ANOTHER}"
        )


# Writing


@contextlib.contextmanager
def open_writer(path: Path, now: Callable[[], float] = time.time) -> Iterator[Database]:
    """Open the database for short writes, making it if need be; a runner may be active on it meanwhile.

    An older schema is brought up to date first, with a backup beside it.

    Raises:
        BusyError: it is new or of an older schema, and another process is about to change that.
        ConfigError: it cannot be written, is not ours or of a newer version.
        InfraError: the machine failed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_open_private(path))
    except OSError as error:
        raise of_system(path, error, "written") from None
    with explained(path), _opened(path, {}) as db:
        if schema.version(db) < len(schema.known()):
            with _only_runner(path) as alone:
                _migrate(alone, path, now())
        yield db


@contextlib.contextmanager
def open_runner(path: Path, now: Callable[[], float] = time.time) -> Iterator[Database]:
    """Open the database to play and store matches, as `open_writer` does, as the only runner until the context ends.

    Raises:
        BusyError: another runner has it.
        ConfigError: it cannot be written, is not ours or of a newer version.
        InfraError: the machine failed.
    """
    with _only_runner(path) as db:
        _migrate(db, path, now())
        db.execute(f"PRAGMA busy_timeout = {_RUNNER_BUSY_S * 1000:.0f}")
        yield db


def migrate(path: Path, now: float) -> Migrated:
    """Bring an existing database up to date, with a backup beside it.

    Raises:
        BusyError: a runner has it.
        ConfigError: there is none, it cannot be written, is not ours or of a newer version.
        InfraError: the machine failed.
    """
    _check_there(path)
    with _only_runner(path) as db:
        return _migrate(db, path, now)


@contextlib.contextmanager
def _only_runner(path: Path) -> Iterator[Database]:
    try:
        locked = _beside(path, ".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_open_private(path))
        lock = _open_private(locked)
    except OSError as error:
        raise of_system(path, error, "written") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another arena is playing on {path}; wait for it, or {ANOTHER}") from None
        with explained(path), _opened(path, {locked: _inode(os.fstat(lock))}) as db:
            yield db
    finally:
        os.close(lock)


def _open_private(path: Path) -> int:
    # The master seeds of running tournaments are in it, so it is its owner's alone from the first byte on.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def _opened(path: Path, files: Mapping[Path, tuple[int, int]]) -> Iterator[Database]:
    db = _Writer(_connect(path, "mode=rw"))
    try:
        db.files = {path.absolute(): _inode(path.stat()), **{file.absolute(): inode for file, inode in files.items()}}
        _check_ours(db, path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")  # else a power cut takes the last matches back
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        yield db
    finally:
        db.close()


def _migrate(db: Database, path: Path, now: float) -> Migrated:
    """Apply what is missing, all of it or nothing."""
    before, after = schema.version(db), len(schema.known())
    kept = backup_path(path, before, now) if 0 < before < after else None
    if kept is not None:
        backup(db, kept)
    if before < after:
        db.execute("PRAGMA foreign_keys = OFF")  # else a migration could not replace a table that others refer to
        with writing(db):
            schema.migrations.apply(db)
            if before:
                _fill(db)
            if broken := db.execute("PRAGMA foreign_key_check").fetchone():
                raise InfraError(f"database {path} cannot be brought up to date: its rows of {broken[0]} do not fit")
        db.execute("PRAGMA foreign_keys = ON")
    return Migrated(before, after, kept)


def _fill(db: Database) -> None:
    from arena.store import tallies  # numpy takes a tenth of a second, which is seldom needed here

    tallies.fill(db)


@contextlib.contextmanager
def writing(db: Database) -> Iterator[None]:
    """Run the body as one transaction, which takes the write lock at once: a later upgrade could fail.

    Raises:
        InfraError: the database's files are no longer where they were.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        if isinstance(db, _Writer):
            _check_kept(db.files)
        db.execute("COMMIT")
    except BaseException:
        if db.conn.in_transaction:  # SQLite itself has rolled back where, for instance, the disk is full
            db.execute("ROLLBACK")
        raise


def _check_kept(files: Mapping[Path, tuple[int, int]]) -> None:
    """Notice that files were deleted or replaced: the system would let us write to what nobody can find again."""
    for path, inode in files.items():
        try:
            kept = _inode(path.stat()) == inode
        except OSError:
            kept = False
        if not kept:
            raise InfraError(
                f"{path} was deleted or replaced while the arena was writing, so nothing more is stored; "
                "put it back if you can, then give the same command again"
            )


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
