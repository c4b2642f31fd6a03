"""What goes wrong with a database file, told to its user: whose it is to mend, and how."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from arena.errors import ArenaError, BusyError, ConfigError, InfraError

ANOTHER = "name another with --db or ARENA_DB"
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EFBIG}
"""What the machine cannot do at the moment, whatever file it is asked for."""
_DAMAGES = ("unsupported file format", "Could not decode to UTF-8")
"""What is said of a damaged file without a code of its own."""


class DamagedError(ConfigError):
    """The file is no database, or one that was damaged."""


@contextlib.contextmanager
def explained(path: Path, *, reading: bool = False) -> Iterator[None]:
    """Turn what SQLite says of a file, also within a group, into what its user can do about it.

    Args:
        reading: whatever is decoded comes from the file, so that what cannot be decoded is damaged.
    """
    try:
        yield
    except (msgspec.MsgspecError, zlib.error) as raised:
        if reading:
            raise _damaged(path, str(raised)) from raised
        raise
    except (sqlite3.Error, UnicodeDecodeError, BaseExceptionGroup) as raised:
        for error in _errors(raised):
            if (problem := _problem(path, error)) is not None:
                raise problem from raised
        raise


def of_system(path: Path, error: OSError, doing: str) -> ArenaError:
    """Return what an error of the system means to the user of a database that was being read, written or opened."""
    text = f"database {path} cannot be {doing}: {error.strerror}"
    if error.errno in _MACHINE:
        return InfraError(f"{text}; nothing that was stored is lost: mend that, then give the same command again")
    return ConfigError(f"{text}; {ANOTHER}")


def _errors(error: BaseException) -> Iterator[sqlite3.Error | UnicodeDecodeError]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _errors(inner)
    elif isinstance(error, sqlite3.Error | UnicodeDecodeError):
        yield error


def _problem(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> ArenaError | None:
    """Return what an error of SQLite means to its user; None for a bug of ours."""
    if isinstance(error, UnicodeDecodeError):  # of a message that quotes a damaged schema
        return _damaged(path, "malformed schema") if error.object.startswith(b"malformed database schema") else None
    if str(error).startswith(_DAMAGES):
        return _damaged(path, str(error))
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return BusyError(f"database {path} is locked by another program ({error}); try again when it is done")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return _damaged(path, str(error))
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return _refused(path, error)
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return InfraError(
                f"database {path} cannot be written: {error}; what was stored before is safe: "
                "mend that (a full disk?), then give the same command again"
            )
        case _:
            return None


def _damaged(path: Path, what: str) -> DamagedError:
    return DamagedError(f"{path} is not a database, or a damaged one: {what}; put a backup in its place, or {ANOTHER}")


def _refused(path: Path, error: sqlite3.Error) -> ArenaError:
    """Find the reason for which SQLite could not open a file; it does not tell."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as lacking:
        return of_system(path, lacking, "opened")
    for place, needed in ((path, os.R_OK), (path.parent, os.W_OK)):
        if place.exists() and not os.access(place, needed, effective_ids=True):
            return ConfigError(f"database {path} cannot be used: no permission for {place}; {ANOTHER}")
    if error.sqlite_errorcode == sqlite3.SQLITE_CANTOPEN:  # all is there and allowed, so the machine lacks something
        return InfraError(f"database {path} cannot be opened: {error}; are too many files open (`ulimit -n`)?")
    return ConfigError(f"database {path} cannot be used: {error}; {ANOTHER}")
