"""Archives of bot folders: read in one go, with a cap on what they expand to, and never written out."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Self, cast

from arena.bundle.files import IGNORED, MAX_BYTES, BundleFile, Meter, check_mode, check_path
from arena.errors import ConfigError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
"""The archives that are accepted."""

_CHUNK_BYTES = 1 << 16
_TAR_OVERHEAD_BYTES = 16 << 20  # headers, long names and padding of as many files and folders as are accepted
_ZIP_READ_BYTES = 4 << 20  # the list of contents is read at once; that of 2,000 files is shorter
_ZIP_ENCRYPTED = 0x1
_ZIP_UTF8 = 0x800
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
)
"""What the standard library raises for archives that are damaged or use what it does not know."""


def read_archive(path: Path) -> list[BundleFile]:
    """Return the files of an archive, relative to the bot's folder in it.

    Raises:
        ConfigError: it is damaged, or holds something that is not accepted.
    """
    read = _read_zip if path.name.endswith(".zip") else _read_tar
    try:
        return _without_top(read(path))
    except _BROKEN as error:
        raise ConfigError(f"is damaged or no archive of its kind: {error}") from error


class _TarInfo(tarfile.TarInfo):
    """A member of an archive that is taken whole or not at all: tarfile takes a bad header for the end."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed does not know it
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"cut off or bad header: {error}") from error


class _ZipFile(io.FileIO):
    """A file that does not give a long list of contents to whoever asks for it at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = os.fstat(self.fileno()).st_size - self.tell() if size is None or size < 0 else size
        if wanted > _ZIP_READ_BYTES:
            raise ConfigError(f"its list of contents is longer than {_ZIP_READ_BYTES >> 20} MiB")
        return super().read(wanted) or b""


class _TarStream:
    """A stream that ends in an error when it gives more than a bundle needs, whoever asks for how much at once."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._left = MAX_BYTES + _TAR_OVERHEAD_BYTES

    def read(self, size: int) -> bytes:
        data = self._raw.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ConfigError(f"expands to more than {MAX_BYTES >> 20} MiB")
        return data


def _read_tar(path: Path) -> list[BundleFile]:
    meter = Meter()
    with open(path, "rb") as raw:
        stream = _TarStream(raw if path.name.endswith(".tar") else cast(IO[bytes], gzip.GzipFile(fileobj=raw)))
        with tarfile.open(
            fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_TarInfo, encoding="utf-8", errors="surrogateescape"
        ) as archive:
            taken = [_take_tar_member(archive, member, meter) for member in archive]
        while stream.read(_CHUNK_BYTES):  # to its end, where gzip has its checksum
            pass
    return [file for file in taken if file is not None]


def _take_tar_member(archive: tarfile.TarFile, member: tarfile.TarInfo, meter: Meter) -> BundleFile | None:
    name = _member_path(member.name)
    if not name:
        return None
    if member.isdir():
        meter.add_folder(name)
        return None
    if member.islnk():
        raise ConfigError(f"{name!r} is a hard link; put a copy there")
    kind = stat.S_IFLNK if member.issym() else stat.S_IFREG if member.isreg() and not member.issparse() else 0
    check_mode(name, kind | stat.S_IMODE(member.mode))
    meter.add_file(name, member.size)
    data = cast(IO[bytes], archive.extractfile(member)).read()
    return BundleFile(name, bool(member.mode & stat.S_IXUSR), data)


def _read_zip(path: Path) -> list[BundleFile]:
    meter = Meter()
    with _ZipFile(path) as raw, zipfile.ZipFile(cast(IO[bytes], raw)) as archive:
        members = [(_check_zip_member(info, meter), info) for info in archive.infolist()]
        return [
            BundleFile(name, bool(info.external_attr >> 16 & stat.S_IXUSR), _read_zip_member(archive, info))
            for name, info in members
            if name
        ]


def _check_zip_member(info: zipfile.ZipInfo, meter: Meter) -> str:
    """Return the path of an accepted file, or an empty string for what is left out."""
    spelled = info.orig_filename
    if not info.flag_bits & _ZIP_UTF8:  # then zipfile has decoded it as cp437, byte by byte
        spelled = spelled.encode("cp437").decode(errors="surrogateescape")
    name = _member_path(spelled)
    if not name:
        return ""
    if spelled.endswith("/"):
        meter.add_folder(name)
        return ""
    mode = info.external_attr >> 16  # 0 if it was not made on Unix
    check_mode(name, mode if stat.S_IFMT(mode) else mode | stat.S_IFREG)
    if info.flag_bits & _ZIP_ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ConfigError(f"{name!r} is neither stored nor deflated, or is encrypted; pack it in the ordinary way")
    meter.add_file(name, info.file_size)
    return name


def _read_zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a member's bytes, which zipfile cuts off at the size that was checked."""
    chunks = []
    with archive.open(info) as member:
        while chunk := member.read(_CHUNK_BYTES):
            chunks.append(chunk)
    return b"".join(chunks)


def _member_path(name: str) -> str:
    """Return the path of an archive's member, checked, or an empty string for what is left out."""
    path = name.removeprefix("./").removesuffix("/")
    if name in (".", "./") or IGNORED.intersection(path.split("/")):
        return ""
    check_path(path)
    return path


def _without_top(files: list[BundleFile]) -> list[BundleFile]:
    """Make paths relative to the one folder that all files are in, if it has a bot.toml."""
    tops = {file.path.partition("/")[0] for file in files}
    top = next(iter(tops), "") + "/"
    if len(tops) != 1 or all(file.path != top + "bot.toml" for file in files):
        return files
    return [BundleFile(file.path.removeprefix(top), file.executable, file.data) for file in files]
