"""An ordinary user contains bots as root does, by a namespace of users or by landlock.

Where these tests run as root, a child process becomes an ordinary user before it starts anything. The interpreter may
lie where that user cannot go, so what it contains are programs of the system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.sandbox import Level

USER = 12_345
PROGRAM = """
import ctypes, json, os, sys
from pathlib import Path
import trio
from arena.sandbox import Level, Limits, Room, levels, open_sandboxed, system

folder = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(int(sys.argv[2]), int(sys.argv[2]), int(sys.argv[2]))
    os.setresuid(int(sys.argv[2]), int(sys.argv[2]), int(sys.argv[2]))
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: as the processes of somebody who was that user from the start
    sys.executable = "/usr/bin/python3"
    system.interpreter = lambda: None

async def said(level, script, runner):
    room = Room(folder / "bot", folder / "runtime")
    async with open_sandboxed(level, room, ("sh", "-c", script, "sh", runner), Limits(60)) as process:
        await process.wait()
        assert process.exit_code() == 0, (process.exit_code(), os.read(process.stderr, 4096))
        return os.read(process.stdout, 1 << 16).decode().splitlines()

async def main():
    found = {}
    for level in (Level.NAMESPACED, Level.LANDLOCK):
        found[level] = levels.problem(level) or await said(level, sys.argv[3], str(os.getppid()))
    print(json.dumps(found))

trio.run(main)
"""
ATTACK = """
cat told
(cat /etc/passwd || echo closed) 2> /dev/null
(cat /proc/$1/environ > /dev/null && echo open || echo closed) 2> /dev/null
(echo planted > new && echo written || echo closed) 2> /dev/null
(kill -0 $1 && echo reached || echo closed) 2> /dev/null
while read key value; do [ "$key" != CapEff: ] || echo "$value"; done < /proc/self/status
ulimit -u > /dev/null; (for i in 1 2 3 4 5 6 7 8; do sleep 0 & done; wait) && echo forked
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users reach, with a bot and an empty place for the interpreter."""
    with tempfile.TemporaryDirectory(prefix="arena-test-", dir="/tmp") as name:
        folder = Path(name)
        for part in (folder, folder / "bot", folder / "runtime"):
            part.mkdir(exist_ok=True)
            part.chmod(0o755)
        (folder / "bot" / "told").write_text("a file of the bot\n")
        (folder / "bot" / "told").chmod(0o644)
        yield folder


def test_an_ordinary_user_contains_bots(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder, str(USER), ATTACK],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": "/tmp"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = ["a file of the bot", "closed", "closed", "closed", "closed", "0" * 16, "forked"]
    assert json.loads(done.stdout) == {Level.NAMESPACED.value: expected, Level.LANDLOCK.value: expected}
    assert sorted(path.name for path in (folder / "bot").iterdir()) == ["told"]
