"""Copies of a database, made while others write to it."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from sqlite_utils import Database

from arena.errors import ConfigError
from arena.store.trouble import DamagedError, explained


def backup(db: Database, to: Path, *, force: bool = False) -> None:
    """Copy a database as it is now into one file, its owner's alone; it is there whole and examined, or not at all.

    Whoever writes to the database is not waited for, and does not wait.

    Raises:
        ConfigError: there is such a file and `force` is not given, it is a database in use, or it cannot be written.
        DamagedError: the database is damaged, and so would be the copy.
        InfraError: the disk failed.
    """
    _check_free(db, to, force=force)
    part = to.with_name(f".{to.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            with explained(to):
                _copy(db, part, to)
            os.replace(part, to)
        finally:
            part.unlink(missing_ok=True)
        folder = os.open(to.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise _elsewhere(to, error) from None


def backup_path(path: Path, version: int, now: float) -> Path:
    """Return where a database is kept as it was before a migration, e.g. `arena.db.v1-20261129T180000Z.bak`."""
    return path.with_name(f"{path.name}.v{version}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}.bak")


def _check_free(db: Database, to: Path, *, force: bool) -> None:
    source = db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()[0]
    try:
        if to.is_dir():
            raise ConfigError(f"{to} is a folder; name a file in it")
        if os.path.lexists(to) and not force:
            raise ConfigError(f"there is a file {to} already; name another, or --force to overwrite it")
        log = Path(f"{to}-wal")  # SQLite would take it for the newest part of the copy
        in_use = (log.exists() and log.stat().st_size > 0) or (to.exists() and to.samefile(source))
    except OSError as error:
        raise _elsewhere(to, error) from None
    if in_use:
        raise ConfigError(f"{to} is a database in use, not a place for a backup; name another file")


def _copy(db: Database, part: Path, to: Path) -> None:
    copy = sqlite3.connect(part, isolation_level=None)
    try:
        db.conn.backup(copy)  # all pages in one step: a writer cannot make it begin anew
        copy.execute("PRAGMA journal_mode = DELETE")  # so that it is one file, which can be read from any medium
        found = [line for (line,) in copy.execute("PRAGMA integrity_check(1)")]
    finally:
        copy.close()
    if found != ["ok"]:
        raise DamagedError(
            f"the database is damaged, so no backup was made to {to}: {found[0].splitlines()[-1]}; "
            "`arena db check` says more"
        )


def _elsewhere(to: Path, error: OSError) -> ConfigError:
    return ConfigError(f"backup {to} cannot be written: {error.strerror}; name another file")
