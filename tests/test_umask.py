"""Bots may run as another user than the arena: they read what they need whatever the arena's umask is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.build import build, prepare
from arena.bundle import BundleFile, make_bundle
from arena.config import BotManifest
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.environment import make_runtime
from tests.scripts import LEVELS


@pytest.fixture
def closed() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("level", LEVELS)
async def test_a_bot_reads_its_files_under_any_umask(tmp_path: Path, level: Level) -> None:
    runtime = make_runtime(tmp_path / "runtime")
    files = [BundleFile("deep/er/words", False, b"one"), BundleFile("bot.toml", False, b"")]
    folder = prepare(tmp_path / "bots", make_bundle(files))
    script = "umask 077; mkdir {out}/made; echo two > {out}/made/word; chmod 700 {out}/made"
    manifest = BotManifest(name="a", build=("sh", "-c", script), command=("python3", "bot.py"))
    out = await build(level, folder, runtime, manifest)
    read = "import msgpack, sys; print(open('deep/er/words').read(), open(sys.argv[1] + '/made/word').read())"
    room = Room(folder / "src", runtime, out)
    async with open_sandboxed(level, room, ("python3", "-c", read, "{out}"), Limits(cpu_s=5)) as process:
        await process.wait()
        assert (process.exit_code(), os.read(process.stdout, 100)) == (0, b"one two\n\n")
