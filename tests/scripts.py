"""Bots as real programs, a lane to play them in, and a look at what is left of them."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from arena.lane import Alive, LaneConfig, Played, Reply, Voided
from arena.records import BotRef, MatchRecord, MatchSpec
from arena.sandbox import Level
from arena.sandbox.levels import problem
from tests.fakes import bot_ref

PREAMBLE = """\
import json, os, signal, socket, struct, sys, time
import msgpack

def exactly(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data

def receive():
    return msgpack.unpackb(exactly(struct.unpack(">I", exactly(4))[0]))

def ask():
    while (message := receive())["type"] != "ask":
        pass
    return message

def frame(message):
    body = msgpack.packb(message)
    return struct.pack(">I", len(body)) + body

def write(data):
    while data:
        data = data[os.write(1, data):]

def hello():
    write(frame({"type": "hello", "protocol": 1}))

def act(message, action=None, **more):
    action = action or message["legal"][0]
    return frame({"type": "act", "id": message["id"], "action": action, **more})

def answer(message, action=None, **more):
    write(act(message, action, **more))

def play_on():
    while True:
        answer(ask())

def hang():
    while True:
        signal.pause()

"""
LEVELS = tuple(level for level in Level if level is not Level.STRICT or not problem(level))
"""The levels that are tested here: all, but `strict` only where control groups can be made."""
HONEST = "hello()\nplay_on()\n"


def script(folder: Path, body: str, *arguments: str) -> BotRef:
    """Write a Python bot of the preamble and a body into a folder of its own; the arguments follow in its argv."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bot.py").write_text(PREAMBLE + body)
    return bot_ref(folder.name, folder, ("python3", "bot.py", token(folder), *arguments))


def token(folder: Path) -> str:
    """Return a word for the command line by which all processes of a bot of this folder are found."""
    return f"of={folder}"


def living(word: str) -> list[int]:
    """Return the processes of this machine, zombies left out, that have the word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if word in words:
            found.append(int(path.parent.name))
    return found


def wait_gone(pids: Iterator[int] | Sequence[int], timeout_s: float = 10.0) -> list[int]:
    """Wait until processes have ended; return those that have not in time."""
    until = time.monotonic() + timeout_s
    left = []
    for pid in pids:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            left.append(pid)
        os.close(pidfd)
    return left


class LaneProcess:
    """A lane without a coordinator: matches are played one after the other, blocking."""

    def __init__(self, config: LaneConfig) -> None:
        self.level = config.level
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "arena.lane"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._send(msgspec.msgpack.encode(config))

    def _send(self, body: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(struct.pack(">I", len(body)) + body)
        self.popen.stdin.flush()

    def _exactly(self, size: int) -> bytes:
        assert self.popen.stdout is not None
        data = self.popen.stdout.read(size)
        assert len(data) == size, f"the lane ended with {self.popen.wait()}"
        return data

    def reply(self, spec: MatchSpec) -> Reply:
        """Return what the lane says of a match."""
        self._send(msgspec.msgpack.encode(spec))
        reply: Reply = Alive()
        while isinstance(reply, Alive):
            (length,) = struct.unpack(">I", self._exactly(4))
            reply = msgspec.msgpack.decode(self._exactly(length), type=Reply)
        return reply

    def play(self, spec: MatchSpec) -> MatchRecord:
        """Return the record of a match; what was void because this machine is loaded is played again."""
        for _ in range(5):
            reply = self.reply(spec)
            if not isinstance(reply, Voided) or not reply.overload:
                break
        assert isinstance(reply, Played), reply
        return reply.record

    def close(self) -> int:
        """End it as a coordinator does; return its exit code."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.close()
        code = self.popen.wait(20)
        self.popen.stdout.close()
        return code
