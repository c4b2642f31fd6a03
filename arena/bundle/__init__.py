"""A bot folder or archive: what is accepted, its hash, unpacking.

A bundle is a set of regular files, each a path, an executable bit and its bytes; nothing else of a folder is part of a
bot. Its identity, which never changes, is the SHA-256 of the parts

    `arena-bundle-1`, then for each file in ascending order of its path's UTF-8 bytes: path, `x` or `-`, contents

where a part is its length as u32 big-endian followed by its bytes, the path is relative with `/` between names, in
UTF-8, and `x` stands for a file that its owner may execute. Each part tells its own end, so bundles whose hashed bytes
are equal are equal. Empty folders, times, owners and other mode bits do not count; `.git` and `__pycache__` are left
out wherever they stand.

A folder is read through directory descriptors and never through a link; what was read is what is hashed, stored and
run. An archive gives the hash of the folder that was packed: if all it holds lies in one folder with a `bot.toml`, that
folder is the bundle. Reading an archive writes nothing, and expands no more than a bundle may hold.
"""

from __future__ import annotations

from pathlib import Path

from arena.bundle.archive import SUFFIXES, read_archive
from arena.bundle.files import IGNORED, MAX_DEPTH, Bundle, BundleFile, Meter, make_bundle
from arena.bundle.folder import Entry, move_into_place, open_folder, read_folder, unpack, verify, walk
from arena.errors import ConfigError

__all__ = [
    "MAX_DEPTH",
    "Bundle",
    "BundleFile",
    "Entry",
    "Meter",
    "make_bundle",
    "move_into_place",
    "open_folder",
    "read_bundle",
    "unpack",
    "verify",
    "walk",
]


def read_bundle(path: Path) -> Bundle:
    """Read a bot's folder or archive (`.zip`, `.tar`, `.tar.gz`, `.tgz`).

    Raises:
        ConfigError: it cannot be read, changed meanwhile, or holds something that is not accepted; names the path.
    """
    try:
        if path.is_dir():
            return make_bundle(read_folder(path.resolve(), IGNORED))
        if not path.exists():
            raise ConfigError("does not exist")
        if not path.is_file() or not path.name.endswith(SUFFIXES):
            raise ConfigError(f"is neither a folder nor an archive ({', '.join(SUFFIXES)})")
        return make_bundle(read_archive(path))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
