"""A bot's own folder at the levels that see the machine's: gone when its scope ends, or swept by a later process.

Each is locked by the process that made it. The lock goes with that process however it ends, so a folder whose lock can
be had belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from arena.errors import InfraError

_PREFIX = "arena-bot-"
_TRIES = 5
_MOST_SWEPT = 1000
"""At a time, so that no lane waits long for it."""


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder among the temporary ones and remove it, with all that is in it, at the end.

    Raises:
        InfraError: others remove it as soon as it is made.
    """
    for _ in range(_TRIES):
        made = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        with made as name, _opened(name) as handle:
            if handle is None:
                continue  # it was swept before it was locked
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not Path(name).exists():
                continue
            yield Path(name)
            return
    raise InfraError(f"folders in {tempfile.gettempdir()} vanish as soon as they are made; set TMPDIR to another one")


def sweep() -> None:
    """Remove the folders of processes that ended without doing so: they were killed."""
    with os.scandir(tempfile.gettempdir()) as found:
        names = [one.path for one in found if one.name.startswith(_PREFIX) and one.is_dir(follow_symlinks=False)]
    for name in names[:_MOST_SWEPT]:
        with contextlib.suppress(OSError), _opened(name) as handle:  # it is in use, or shut
            if handle is not None and os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(name, ignore_errors=True)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int | None]:
    """Open a folder, closed again at the end; None if it is gone."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)
