"""Opening the database: one runner that writes, readers that never wait for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlite_utils import Database

from arena.errors import ArenaError, BusyError, ConfigError, InfraError
from arena.store.schema import MIGRATIONS, migrations

_BUSY_S = 10.0
_ANOTHER = "name another with --db or ARENA_DB"


def _connect(path: Path, mode: str) -> Database:
    """Connect with `mode` ro or rw; every statement is its own transaction unless inside `writing`."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return Database(connection)


def _problem(path: Path, error: sqlite3.Error) -> ArenaError | None:
    """Return what an error of SQLite means to its user; None for a bug of ours."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BusyError(f"database {path} is locked by another program ({error}); try again when it is done")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return ConfigError(f"{path} is not a database, or a damaged one: {error}; {_ANOTHER}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return ConfigError(f"database {path} cannot be used: {error}; {_ANOTHER}")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return InfraError(f"database {path} cannot be written: {error}; what was stored before is safe")
        case _:
            return None


def _errors(error: BaseException) -> Iterator[sqlite3.Error]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _errors(inner)
    elif isinstance(error, sqlite3.Error):
        yield error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a file, also within a group, into what its user can do about it."""
    try:
        yield
    except (sqlite3.Error, BaseExceptionGroup) as raised:
        for error in _errors(raised):
            if (problem := _problem(path, error)) is not None:
                raise problem from raised
        raise


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[Database]:
    """Open an existing database to read; never creates one and never blocks the writer.

    Everything read is of one moment, that of the first query, whatever is written meanwhile.

    Raises:
        ConfigError: there is none, or it is not readable or not ours.
    """
    try:
        found = path.is_file()
    except OSError as error:
        raise ConfigError(f"database {path} cannot be read: {error.strerror}; {_ANOTHER}") from None
    if not found:
        raise ConfigError(
            f"there is no database at {path} yet; `arena submit` or `arena run` makes one, --db names another"
        )
    with _explained(path):
        db = _connect(path, "ro")
        try:
            _check_ours(db, path)
            if pending := migrations.pending(db):
                raise ConfigError(
                    f"database {path} is of an older version ({pending[0].name} is missing); run `arena run` on it"
                )
            db.execute("BEGIN")
            yield db
        finally:
            db.close()


def _check_ours(db: Database, path: Path) -> None:
    """Refuse a database of another program, or of an arena that knows more than this one."""
    applied = [migration.name for migration in migrations.applied(db)]
    if not applied and {*db.table_names()} - {migrations.migrations_table}:
        raise ConfigError(f"{path} is a database of another program; {_ANOTHER}")
    if newer := [name for name in applied if name not in MIGRATIONS]:
        raise ConfigError(f"database {path} is of a newer version ({newer[0]} is unknown here); use a newer arena")


@contextlib.contextmanager
def open_writer(path: Path) -> Iterator[Database]:
    """Open the database to write, making it if need be, as the only writer until the context ends.

    Raises:
        BusyError: another runner has it.
        ConfigError: it cannot be written or is not ours.
        InfraError: the disk failed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(_open_private(path))
        lock = _open_private(path.with_name(path.name + ".lock"))
    except OSError as error:
        raise ConfigError(f"database {path} cannot be written: {error.strerror}; {_ANOTHER}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another arena is writing to {path}; wait for it, or {_ANOTHER}") from None
        with _explained(path):
            yield from _opened(path)
    finally:
        os.close(lock)


def _open_private(path: Path) -> int:
    # The master seeds of running tournaments are in it, so it is its owner's alone from the first byte on.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _opened(path: Path) -> Iterator[Database]:
    db = _connect(path, "rw")
    try:
        _check_ours(db, path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        migrations.apply(db)
        yield db
    finally:
        db.close()


@contextlib.contextmanager
def writing(db: Database) -> Iterator[None]:
    """Run the body as one transaction, which takes the write lock at once: a later upgrade could fail."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.conn.in_transaction:  # SQLite itself has rolled back where, for instance, the disk is full
            db.execute("ROLLBACK")
        raise
