"""Notices that somebody has written to a database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

Mark = tuple[int, ...]
"""Something that differs after a commit of somebody else; () where no database can be read at the moment."""


@contextlib.contextmanager
def watching(path: Path) -> Iterator[Callable[[], Mark]]:
    """Open a watch over a database: a function that costs some microseconds and returns a mark.

    It survives that the file is replaced, taken away or damaged.
    """
    watch = _Watch(path)
    try:
        yield watch.mark
    finally:
        watch.close()


class _Watch:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: Mark = ()
        self._opened = 0

    def mark(self) -> Mark:
        try:
            found = self._path.stat()
            file = found.st_dev, found.st_ino
            if self._connection is None or file != self._file:
                self._open(file)
            assert self._connection is not None
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except (OSError, sqlite3.Error):
            self.close()
            return ()
        return self._opened, version

    def _open(self, file: Mark) -> None:
        self.close()
        uri = f"{self._path.absolute().as_uri()}?mode=ro"
        self._connection = sqlite3.connect(uri, timeout=0, uri=True, isolation_level=None, check_same_thread=False)
        self._file = file
        self._opened += 1

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
