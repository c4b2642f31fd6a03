"""Bundles on disk: reading a folder without following a link, writing it whole, checking it again."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from arena.bundle.files import Bundle, BundleFile, Meter, check_mode, check_path, make_bundle
from arena.errors import ConfigError, InfraError
from arena.records import BotHash

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """A regular file met by `walk`.

    Attributes:
        folder: an open descriptor of the folder that `name` is in, valid until the walk goes on.
    """

    path: str
    folder: int
    name: str
    status: os.stat_result

    def open(self) -> IO[bytes]:
        """Open the file to read it; fails if it has become a link."""
        return os.fdopen(os.open(self.name, _FILE_FLAGS, dir_fd=self.folder), "rb")


@contextlib.contextmanager
def open_folder(path: str | Path, within: int | None = None) -> Iterator[int]:
    """Open a folder, perhaps relative to an open one, as a descriptor; fails if it is a link."""
    folder = os.open(path, _FOLDER_FLAGS, dir_fd=within)
    try:
        yield folder
    finally:
        os.close(folder)


def walk(folder: int, meter: Meter, ignored: frozenset[str] = frozenset(), prefix: str = "") -> Iterator[Entry]:
    """Yield the regular files below an open folder, through descriptors and never through a link.

    Raises:
        ConfigError: it holds something else than regular files and folders, a name that is not accepted or too much,
            or its folders change meanwhile.
    """
    before = os.fstat(folder)
    for name in sorted(set(os.listdir(folder)) - ignored):
        path = prefix + name
        check_path(path)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            check_mode(path, status.st_mode)
            meter.add_file(path, status.st_size)
            yield Entry(path, folder, name, status)
            continue
        meter.add_folder(path)
        with open_folder(name, folder) as inner:
            yield from walk(inner, meter, ignored, path + "/")
    if _stamp(os.fstat(folder)) != _stamp(before):
        raise ConfigError(f"{prefix or '.'!r} changed while it was read; try again")


def read_folder(path: Path, ignored: frozenset[str]) -> list[BundleFile]:
    """Return the files of a folder, without entries of the ignored names.

    Raises:
        ConfigError: it holds something that is not accepted, or changes meanwhile.
        OSError: it cannot be read, or is itself a link.
    """
    with open_folder(path) as folder:
        return [_read_entry(entry) for entry in walk(folder, Meter(), ignored)]


def verify(folder: Path, bot: BotHash) -> None:
    """Check that an unpacked bundle is still what it was, with nothing added that a hash leaves out.

    Raises:
        ConfigError: it is not.
    """
    try:
        found = make_bundle(read_folder(folder, frozenset())).hash
    except (ConfigError, OSError) as error:
        raise ConfigError(
            f"{folder} is no longer the bundle {bot}: {error}; remove it and submit the bot again"
        ) from error
    if found != bot:
        raise ConfigError(f"{folder} is no longer the bundle {bot} but {found}; remove it and submit the bot again")


def unpack(bundle: Bundle, into: Path) -> None:
    """Write a bundle's files, read-only, as the new folder `into`; if that exists, verify it instead.

    The folder appears whole or not at all, whoever else unpacks the same bundle at the same time.

    Raises:
        ConfigError: `into` exists and is something else.
        InfraError: it cannot be written.
    """
    if os.path.lexists(into):
        verify(into, bundle.hash)
        return
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=into.parent) as scratch:
            made = Path(scratch, "bundle")
            made.mkdir()
            for file in bundle.files:
                _write(file, made)
            move_into_place(made, into)
    except OSError as error:
        raise InfraError(f"cannot unpack a bundle into {into}: {error}") from error
    verify(into, bundle.hash)


def move_into_place(made: Path, final: Path) -> None:
    """Rename a finished folder to its name, unless another process has put one there meanwhile.

    All may list it and the folders in it: the bot may be started as another user.
    """
    for folder, _, _ in os.walk(made):
        os.chmod(folder, 0o755)
    try:
        os.rename(made, final)
    except OSError:  # a folder is only ever renamed into place whole, so whatever is there is as good as ours
        if not final.is_dir():
            raise


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _read_entry(entry: Entry) -> BundleFile:
    if entry.status.st_nlink != 1:
        raise ConfigError(f"{entry.path!r} is a hard link, one of {entry.status.st_nlink}; put a copy there")
    with entry.open() as file:
        data = file.read(entry.status.st_size + 1)
        after = os.fstat(file.fileno())
    if _stamp(after) != _stamp(entry.status) or len(data) != after.st_size:
        raise ConfigError(f"{entry.path!r} changed while it was read; try again")
    return BundleFile(entry.path, bool(after.st_mode & stat.S_IXUSR), data)


def _write(file: BundleFile, folder: Path) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as target:
        target.write(file.data)
        os.fchmod(target.fileno(), 0o555 if file.executable else 0o444)
