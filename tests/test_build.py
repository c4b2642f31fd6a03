from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
import trio

from arena.build import bot_ref, build, prepare, verified
from arena.bundle import Bundle, BundleFile, make_bundle
from arena.config import BotManifest
from arena.errors import ConfigError, InfraError
from arena.records import BotHash, BotRef
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.environment import make_runtime
from tests.scripts import LEVELS

PROGRAM = b'#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n'

both = pytest.mark.parametrize("level", LEVELS)


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runtime(tmp_path_factory.mktemp("runtime"))


def bundle(**files: bytes) -> Bundle:
    return make_bundle(BundleFile(name.replace("_", "."), False, data) for name, data in files.items())


def shell(script: str) -> BotManifest:
    return BotManifest(name="a", build=["sh", "-c", script], command=["{out}/a"])  # type: ignore[arg-type]  # as in a file


class Workshop:
    """A folder of bots with one bot that is to be built by a shell script."""

    def __init__(self, bots: Path, runtime: Path) -> None:
        self.bots = bots
        self.runtime = runtime
        self.bundle = bundle(bot_c=PROGRAM)
        self.folder = prepare(bots, self.bundle)

    async def build(self, level: Level, script: str, timeout_s: float = 30) -> Path | None:
        return await build(level, self.folder, self.runtime, shell(script), timeout_s=timeout_s)

    async def fail(self, level: Level, script: str, timeout_s: float = 30) -> str:
        with pytest.raises(ConfigError) as info:
            await self.build(level, script, timeout_s)
        assert os.listdir(self.folder) == ["src"]
        return str(info.value)


@pytest.fixture
def workshop(tmp_path: Path, runtime: Path) -> Workshop:
    return Workshop(tmp_path / "bots", runtime)


# A bot's folder


def test_prepare_unpacks_once(tmp_path: Path) -> None:
    bot = bundle(bot_toml=b"")
    folder = prepare(tmp_path, bot)
    assert folder == tmp_path / bot.hash
    assert os.listdir(folder) == ["src"]
    assert prepare(tmp_path, bot) == folder
    (folder / "src" / "more").touch()
    with pytest.raises(ConfigError, match="no longer the bundle"):
        prepare(tmp_path, bot)


def test_a_bot_without_a_build(tmp_path: Path) -> None:
    bot = bundle(a=b"")
    folder = prepare(tmp_path, bot)
    manifest = BotManifest(name="a", command=("./a",))
    assert verified(tmp_path, bot.hash) == folder
    assert bot_ref(tmp_path, bot.hash, manifest) == BotRef("a", bot.hash, str(folder / "src"), ("./a",))


async def test_no_build_builds_nothing(workshop: Workshop) -> None:
    manifest = BotManifest(name="a", command=("./a",))
    assert await build(Level.NONE, workshop.folder, workshop.runtime, manifest) is None
    assert os.listdir(workshop.folder) == ["src"]


async def test_a_built_bot_has_its_output(workshop: Workshop) -> None:
    manifest = shell("touch {out}/a")
    with pytest.raises(ConfigError, match="a is not built here"):
        bot_ref(workshop.bots, workshop.bundle.hash, manifest)
    out = await workshop.build(Level.NONE, "touch {out}/a")
    assert bot_ref(workshop.bots, workshop.bundle.hash, manifest).out == str(out)
    (workshop.folder / "src" / "more").touch()
    with pytest.raises(ConfigError, match="no longer the bundle"):
        bot_ref(workshop.bots, workshop.bundle.hash, manifest)


# Builds that work


@both
async def test_output_is_kept_read_only(workshop: Workshop, level: Level) -> None:
    out = await workshop.build(
        level, "mkdir {out}/d && cp bot.c {out}/d/x && printf '#!/bin/sh' > {out}/a && chmod 770 {out}/a"
    )
    assert out == workshop.folder / "out"
    assert (out / "d" / "x").read_bytes() == PROGRAM
    assert [stat.S_IMODE((out / name).stat().st_mode) for name in ("d/x", "a")] == [0o444, 0o555]
    assert sorted(os.listdir(workshop.folder)) == ["out", "src"]
    inode = out.stat().st_ino
    assert await workshop.build(level, "false") == out
    assert out.stat().st_ino == inode


@both
async def test_a_compiled_bot_runs(workshop: Workshop, level: Level) -> None:
    manifest = BotManifest(name="a", build=("cc", "-O1", "-o", "{out}/bot", "bot.c"), command=("{out}/bot",))
    out = await build(level, workshop.folder, workshop.runtime, manifest)
    room = Room(workshop.folder / "src", workshop.runtime, out)
    async with open_sandboxed(level, room, manifest.command, Limits(cpu_s=5)) as process:
        await process.wait()
        assert process.exit_code() == 0
        assert os.read(process.stdout, 100) == b"built\n"


@both
async def test_a_build_reads_nothing_and_may_print_much(workshop: Workshop, level: Level) -> None:
    assert await workshop.build(level, "cat; head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2")


@both
@pytest.mark.slow
async def test_what_a_build_leaves_running_is_gone(workshop: Workshop, level: Level) -> None:
    began = time.monotonic()
    out = await workshop.build(level, "(sleep 2; echo late > {out}/late) & echo $! > {out}/pid")
    assert out is not None
    assert time.monotonic() - began < 1.9
    await trio.sleep(max(0.0, began + 2.5 - time.monotonic()))
    assert os.listdir(out) == ["pid"]


async def test_a_contained_build_writes_only_to_its_output(workshop: Workshop) -> None:
    out = await workshop.build(
        Level.NAMESPACED,
        "for f in bot.c new ../x /usr/x /etc/x; do touch $f && echo $f >> {out}/written; done 2> /dev/null; "
        "ls /sys/class/net > {out}/net 2> /dev/null || cat /proc/net/dev > {out}/net; cp bot.c {out}",
    )
    assert out is not None
    assert (out / "bot.c").read_bytes() == PROGRAM
    assert not (out / "written").exists()
    names = {line.split(":")[0].strip() for line in (out / "net").read_text().splitlines() if ":" in line}
    assert names <= {"lo"}


# Builds that fail


@both
async def test_a_failed_build_tells_why(workshop: Workshop, level: Level) -> None:
    told = await workshop.fail(level, "echo out; echo 'bot.c:1: no' >&2; printf '\\033[2Jx\\377\\n'; exit 3")
    assert told.startswith("the build of a failed with exit code 3: sh -c ")
    assert sorted(told.split("\n")[1:]) == ["[2Jx�", "bot.c:1: no", "out"]


@both
async def test_only_the_end_of_what_was_printed_is_told(workshop: Workshop, level: Level) -> None:
    told = await workshop.fail(level, "yes | head -n 100000; echo end; exit 1")
    assert told.endswith("\ny\nend")
    assert len(told) < 5000


@both
async def test_a_missing_program_is_told(workshop: Workshop, level: Level) -> None:
    manifest = BotManifest(name="a", build=("no-such-compiler",), command=("./a",))
    with pytest.raises(ConfigError) as info:
        await build(level, workshop.folder, workshop.runtime, manifest)
    told = "the build of a failed with exit code 127, its program was not found: no-such-compiler\n"
    assert str(info.value).startswith(told)


@both
async def test_a_killed_build_is_told(workshop: Workshop, level: Level) -> None:
    assert "the build of a was killed by signal 9: sh" in await workshop.fail(level, "kill -9 $$")


@both
async def test_a_slow_build_is_ended(workshop: Workshop, level: Level) -> None:
    began = time.monotonic()
    told = await workshop.fail(level, "echo begun; sleep 60", timeout_s=0.7)
    assert told.startswith("the build of a did not end within 0.7 s: sh -c ")
    assert told.endswith("begun")
    assert time.monotonic() - began < 10


@both
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("ln -s /etc/passwd {out}/link", "'link' is a symbolic link"),
        ("mkdir {out}/d; ln -s / {out}/d/link", "'d/link' is a symbolic link"),
        ("mkfifo {out}/pipe", "'pipe' is neither a file nor a folder"),
        ("touch {out}/a; chmod u+s {out}/a", "'a' is setuid or setgid"),
        ("mkdir -p {out}/$(printf 'd/%.0s' $(seq 40))", "is longer than 32 names"),
        ("touch {out}/$(printf '\\377')", "is not UTF-8"),
    ],
)
async def test_unusual_output_is_refused(workshop: Workshop, level: Level, script: str, told: str) -> None:
    said = await workshop.fail(level, script)
    assert said.startswith("the build of a left an output that is not accepted: ")
    assert told in said


@both
@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            "for i in 1 2; do head -c 700000 /dev/zero > {out}/$i; done; sleep 60",
            "at most 40 files, 60 folders and 1 MiB",
        ),
        ("cd {out}; seq 41 | xargs touch; sleep 60", "too large at "),
        ("cd {out}; seq 61 | xargs mkdir; sleep 60", "too large at "),
        ("mkdir -p {out}/$(printf 'd/%.0s' $(seq 40)); sleep 60", "nested deeper than 32"),
    ],
)
async def test_a_build_that_writes_too_much_is_ended(
    workshop: Workshop, level: Level, script: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.build.MAX_OUT_BYTES", 1 << 20)
    monkeypatch.setattr("arena.build.MAX_OUT_FILES", 40)
    monkeypatch.setattr("arena.build.MAX_OUT_FOLDERS", 60)
    began = time.monotonic()
    said = await workshop.fail(level, script, timeout_s=50)
    assert said.startswith("the build of a wrote too much: ")
    assert told in said
    assert time.monotonic() - began < 30


@both
async def test_too_large_output_of_a_fast_build_is_refused(workshop: Workshop, level: Level) -> None:
    said = await workshop.fail(level, "truncate -s 200M {out}/a; truncate -s 200M {out}/b")
    assert "too large at 'b'; at most 10000 files, 2000 folders and 256 MiB are accepted" in said


@both
async def test_what_is_hard_to_remove_is_removed(workshop: Workshop, level: Level) -> None:
    deep = "cd {out}; for i in $(seq 1500); do mkdir d; cd d; done; cd {out}; "
    await workshop.fail(level, deep + "sleep 60")
    await workshop.fail(level, "cd {out}; mkdir x x/y; touch x/y/z; chmod 0 x/y/z x/y x; chmod 0 {out}; exit 1")


@both
async def test_links_are_not_followed_when_a_failed_build_is_removed(
    workshop: Workshop, level: Level, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o500)
    await workshop.fail(level, f"ln -s {precious} {{out}}/link; exit 1")
    assert stat.S_IMODE(precious.stat().st_mode) == 0o500


async def test_a_changed_bundle_is_not_built(workshop: Workshop) -> None:
    (workshop.folder / "src" / "more").touch()
    assert "no longer the bundle" in await workshop.fail(Level.NONE, "true")


async def test_a_place_that_is_taken_by_a_file_is_our_failure(workshop: Workshop) -> None:
    (workshop.folder / "out").touch()
    with pytest.raises(InfraError, match="cannot build a in "):
        await workshop.build(Level.NONE, "true")


def test_a_bot_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no longer the bundle"):
        bot_ref(tmp_path, BotHash("0" * 64), BotManifest(name="a", command=("./a",)))
