"""A bot's own folder among the temporary ones: it never outlives those who know of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from arena.errors import InfraError
from arena.sandbox import sweep
from arena.sandbox.private import private_folder

_KILLED = """
import os, signal
from arena.sandbox.private import private_folder
with private_folder() as folder:
    (folder / "kept").write_text("by nobody")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_its_scope_and_is_left_alone_before(folders: Path) -> None:
    with private_folder() as folder:
        (folder / "note").write_text("mine")
        sweep()
        assert (folder / "note").read_text() == "mine"
    assert list(folders.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_nothing_else(folders: Path) -> None:
    environment = os.environ | {"TMPDIR": str(folders)}
    subprocess.run([sys.executable, "-c", _KILLED], env=environment, check=False, timeout=60)
    (left,) = folders.iterdir()
    assert (left / "kept").exists()
    other, target = folders / "arena-other", folders / "target"
    for folder in (other, target):
        folder.mkdir()
    (folders / "arena-bot-link").symlink_to(target)
    (folders / "arena-bot-file").touch()
    sweep()
    assert sorted(path.name for path in folders.iterdir()) == [
        "arena-bot-file",
        "arena-bot-link",
        "arena-other",
        "target",
    ]


def test_a_folder_of_another_user_is_left_alone(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folders / "arena-bot-theirs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    sweep()
    assert (folders / "arena-bot-theirs").exists()


@pytest.mark.parametrize("when", ["before it is opened", "before it is locked"])
def test_a_folder_that_was_swept_too_early_is_made_again(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    swept: list[str] = []

    def remove(name: str) -> None:
        if not swept:
            swept.append(name)
            shutil.rmtree(name)

    def opened(name: str, flags: int, **others: int) -> int:
        if flags & os.O_DIRECTORY and when == "before it is opened":
            remove(name)
        return really_open(name, flags, **others)

    def locked(handle: int, operation: int) -> None:
        remove(os.readlink(f"/proc/self/fd/{handle}"))
        really_lock(handle, operation)

    really_open, really_lock = os.open, fcntl.flock
    with monkeypatch.context() as patched:
        patched.setattr("arena.sandbox.private.os.open", opened)
        patched.setattr(fcntl, "flock", locked)
        folder = private_folder()
        path = folder.__enter__()
    assert len(swept) == 1
    assert path.is_dir()
    folder.__exit__(None, None, None)
    assert not path.exists()


def test_a_lane_sweeps_when_it_begins(folders: Path) -> None:
    (folders / "arena-bot-left").mkdir()
    environment = os.environ | {"TMPDIR": str(folders)}
    line = [sys.executable, "-m", "arena.lane"]
    subprocess.run(line, env=environment, input=b"", check=True, timeout=60)
    assert list(folders.iterdir()) == []


def test_folders_that_vanish_at_once_are_our_failure(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda handle, _: shutil.rmtree(os.readlink(f"/proc/self/fd/{handle}")))
    with pytest.raises(InfraError, match="vanish as soon as they are made; set TMPDIR"), private_folder():
        pass
    assert list(folders.iterdir()) == []
