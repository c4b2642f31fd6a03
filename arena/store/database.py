"""Opening the database: one runner that writes, readers that never wait for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlite_utils import Database

from arena.errors import BusyError, ConfigError
from arena.store.schema import migrations

_BUSY_S = 10.0


def _connect(path: Path, mode: str) -> Database:
    """Connect with `mode` ro or rwc; every statement is its own transaction unless inside `writing`."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    return Database(connection)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a file into what its user can do about it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise BusyError(
                f"database {path} is locked by another program ({error}); try again when it is done"
            ) from None
        raise ConfigError(f"database {path} cannot be used: {error}; name another with --db or ARENA_DB") from None
    except sqlite3.DatabaseError as error:
        raise ConfigError(
            f"{path} is not a database of the arena: {error}; name another with --db or ARENA_DB"
        ) from None


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[Database]:
    """Open an existing database to read; never creates one and never blocks the writer.

    Raises:
        ConfigError: there is none, or it is not readable or not ours.
    """
    if not path.is_file():
        raise ConfigError(
            f"there is no database at {path} yet; `arena submit` or `arena run` makes one, --db names another"
        )
    with _explained(path):
        db = _connect(path, "ro")
        try:
            if pending := migrations.pending(db):
                raise ConfigError(
                    f"database {path} is of an older version ({pending[0].name} is missing); run `arena run` on it"
                )
            yield db
        finally:
            db.close()


@contextlib.contextmanager
def open_writer(path: Path) -> Iterator[Database]:
    """Open the database to write, making it if need be, as the only writer until the context ends.

    Raises:
        BusyError: another runner has it.
        ConfigError: it cannot be written or is not ours.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"database {path} cannot be written: {error.strerror}; name another with --db or ARENA_DB"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"another arena is writing to {path}; wait for it, or name another with --db or ARENA_DB"
            ) from None
        with _explained(path):
            yield from _opened(path)
    finally:
        os.close(lock)


def _opened(path: Path) -> Iterator[Database]:
    # The master seeds of running tournaments are in it, so it is its owner's alone from the first byte on.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    db = _connect(path, "rw")
    try:
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
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
