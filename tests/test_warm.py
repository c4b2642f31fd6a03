"""What all bots may read is kept in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from arena.errors import InfraError
from arena.sandbox.tree import children
from arena.sandbox.warm import TooLarge, available_bytes, kept_warm, shared_folders, warm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of 3,000 bytes in two files, with what is not to be read."""
    folder = tmp_path / "usr"
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "lib" / "one").write_bytes(b"x" * 1000)
    (folder / "lib" / "deep" / "two").write_bytes(b"x" * 2000)
    (tmp_path / "secret").write_bytes(b"x" * 5000)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder)
    (folder / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    return folder


def test_all_regular_files_are_read_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    assert warm([folder], 10_000) == 3000
    assert warm([folder, tmp_path / "secret"], 10_000) == 8000
    assert warm([tmp_path / "nowhere"], 10_000) == 0


def test_it_dates_the_last_reading(folder: Path) -> None:
    path = folder / "lib" / "one"
    os.utime(path, ns=(1 << 60, (1 << 60) + 1))
    warm([folder], 10_000)
    assert path.stat().st_atime_ns > 1 << 60


def test_what_does_not_fit_is_told(folder: Path) -> None:
    with pytest.raises(TooLarge, match="more than 0 MiB of files that bots may read"):
        warm([folder], 2999)


def test_what_bots_may_read_is_there() -> None:
    folders = shared_folders()
    assert Path("/usr") in folders
    assert not any(path.is_symlink() for path in folders if path.is_dir())
    assert available_bytes() > 100 << 20


async def test_it_is_read_before_the_scope_begins_and_the_reader_ends_with_it(
    folder: Path,
) -> None:
    path = folder / "lib" / "one"
    os.utime(path, ns=(1 << 60, (1 << 60) + 1))
    before = children(os.getpid())
    async with kept_warm([folder]) as problem:
        assert problem == ""
        assert os.stat(path).st_atime_ns > 1 << 60
        (reader,) = set(children(os.getpid())) - set(before)
        assert os.getsid(reader) != os.getsid(0), "Ctrl-C on the terminal does not reach it"
    assert reader not in children(os.getpid())


async def test_a_reader_that_died_is_not_taken_for_one_that_has_read_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 1)  # so that it finds another parent, and ends
    with pytest.raises(InfraError, match="has died"):
        async with kept_warm([folder]):
            raise AssertionError("it was taken for read")
