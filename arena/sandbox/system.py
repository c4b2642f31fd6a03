"""What every bot may read of this machine: programs, libraries, the interpreter; nothing that tells of its users."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

_ROOTS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Without alternatives, awk or java are dangling links; a whole /etc would show users and host names.
_ETC = ("alternatives", "ld.so.cache", "localtime", "ssl/certs", "ssl/openssl.cnf")


def roots() -> Iterator[Path]:
    """Yield the folders of programs and libraries, and the links to them."""
    yield from (path for name in _ROOTS if (path := Path("/", name)).is_dir())


def settings() -> Iterator[Path]:
    """Yield what programs need of /etc."""
    yield from (path for name in _ETC if (path := Path("/etc", name)).exists())
    yield from sorted(Path("/etc").glob("java-*"))


def interpreter() -> Path | None:
    """Return the folder of our own interpreter, or None if it lies in one of the roots."""
    prefix = Path(sys.base_prefix).resolve()
    return None if prefix.is_relative_to("/usr") else prefix
