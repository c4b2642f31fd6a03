"""Files that are accepted, and the hash that is a bot's identity; `arena.bundle` says how it is made."""

from __future__ import annotations

import hashlib
import itertools
import stat
import struct
import unicodedata
from collections.abc import Iterable

import msgspec

from arena.errors import ConfigError
from arena.records import BotHash

MAX_BYTES = 64 << 20
MAX_FILES = 2_000
MAX_FOLDERS = 2_000
MAX_DEPTH = 32
MAX_NAME_BYTES = 255  # what Linux file systems hold
IGNORED = frozenset({".git", "__pycache__"})

_DOMAIN = b"arena-bundle-1"


class BundleFile(msgspec.Struct, frozen=True):
    """A regular file of a bundle; `path` is relative to the bundle, with `/` between names."""

    path: str
    executable: bool
    data: bytes


class Bundle(msgspec.Struct, frozen=True):
    """A bot's files; made by `make_bundle`, which has accepted them.

    Attributes:
        files: in ascending order of the UTF-8 bytes of their paths.
    """

    hash: BotHash
    files: tuple[BundleFile, ...]

    @property
    def size(self) -> int:
        """The length of all files together, in bytes."""
        return sum(len(file.data) for file in self.files)

    def find(self, path: str) -> bytes | None:
        """Return the contents of a file, or None if there is none of that path."""
        return next((file.data for file in self.files if file.path == path), None)


class Meter:
    """Counts files, folders and bytes before they are read, and refuses what is too much."""

    def __init__(self, max_files: int = MAX_FILES, max_folders: int = MAX_FOLDERS, max_bytes: int = MAX_BYTES) -> None:
        self._files_left, self._folders_left, self._bytes_left = max_files, max_folders, max_bytes
        self._limits = f"{max_files} files, {max_folders} folders and {max_bytes >> 20} MiB"

    def add_folder(self, path: str) -> None:
        """Count a folder."""
        self._folders_left -= 1
        self._check(path, self._folders_left)

    def add_file(self, path: str, size: int) -> None:
        """Count a file of `size` bytes."""
        if size < 0:
            raise ConfigError(f"{path!r} has the size {size}")
        self._files_left -= 1
        self._bytes_left -= size
        self._check(path, min(self._files_left, self._bytes_left))

    def _check(self, path: str, left: int) -> None:
        if left < 0:
            raise ConfigError(f"too large at {path!r}; at most {self._limits} are accepted")


def make_bundle(files: Iterable[BundleFile]) -> Bundle:
    """Return the bundle of files from anywhere, in any order.

    Raises:
        ConfigError: a path that is not accepted, two paths that some file systems take for one, or too much.
    """
    meter = Meter()
    spellings: dict[str, str] = {}
    ordered = sorted(files, key=lambda file: file.path.encode(errors="surrogateescape"))
    for file in ordered:
        check_path(file.path)
        meter.add_file(file.path, len(file.data))
        _claim(file.path, spellings)
    digest = hashlib.sha256(_part(_DOMAIN))
    for file in ordered:
        for part in (file.path.encode(), b"x" if file.executable else b"-", file.data):
            digest.update(_part(part))
    return Bundle(BotHash(digest.hexdigest()), tuple(ordered))


def check_path(path: str) -> None:
    """Raise ConfigError for a path that is not plain, relative and the same on every machine."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the name {path!r} is not UTF-8") from None
    names = path.split("/")
    if "" in names or "." in names or ".." in names:
        raise ConfigError(f"the path {path!r} is not a plain relative one")
    if "\\" in path or any(unicodedata.category(character) == "Cc" for character in path):
        raise ConfigError(f"the name {path!r} has a backslash or a control character")
    if max(len(name.encode()) for name in names) > MAX_NAME_BYTES or len(names) > MAX_DEPTH:
        raise ConfigError(f"the path {path!r} is longer than {MAX_DEPTH} names of {MAX_NAME_BYTES} bytes")


def check_mode(path: str, mode: int) -> None:
    """Raise ConfigError for the mode (`st_mode`) of anything but an ordinary file."""
    if stat.S_ISLNK(mode):
        raise ConfigError(f"{path!r} is a symbolic link; put the file itself there")
    if not stat.S_ISREG(mode):
        raise ConfigError(f"{path!r} is neither a file nor a folder")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise ConfigError(f"{path!r} is setuid or setgid; chmod a-s it")


def _part(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _folded(path: str) -> str:
    """Return what is equal for two paths that a file system may take for one (the Unicode Standard 3.13, D145)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def _claim(path: str, spellings: dict[str, str]) -> None:
    """Note how a path and the folders it lies in are spelled; refuse a second spelling or a second file."""
    *folders, _ = itertools.accumulate(path.split("/"), lambda folder, name: f"{folder}/{name}")
    for folder in folders:
        known = spellings.setdefault(_folded(folder), folder + "/")
        if known != folder + "/":
            raise ConfigError(f"{path!r} and {known!r} cannot both exist on every file system; rename one")
    known = spellings.setdefault(_folded(path), "")
    if known:
        raise ConfigError(f"{path!r} and {known!r} cannot both exist on every file system; rename one")
    spellings[_folded(path)] = path
