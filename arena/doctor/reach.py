"""What a bot may reach: the network, files, processes. Who was attacked is asked, where he can know."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio

from arena.doctor.finding import Finding, Part, taken_at_its_word
from arena.doctor.stage import DONE, NotRun, Plain, Scene
from arena.sandbox.environment import environment
from arena.sandbox.orphans import kill_children

PLANTED = "ARENA_DOCTOR_PLANTED"
_DEATH_S = 2.0


async def plays(scene: Scene) -> Finding:
    """Attempt to be a bot."""
    found = await scene.attack("play")
    return {part: Part(False, words) for part, words in found.items()}


# Network


def _told(listener: socket.socket, words: str, *, connected: bool) -> Part:
    """Return whether anything arrived."""
    try:
        listener.accept()[0].close() if connected else listener.recv(64)
    except BlockingIOError:
        return Part(False, words.replace(DONE, "sent, but nothing arrived"))
    return Part(True, "it arrived")


async def tcp(scene: Scene) -> Finding:
    """Attempt a connection to a listener of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        found = await scene.attack("tcp", listener.getsockname()[1])
        return {part: _told(listener, words, connected=True) for part, words in found.items()}


async def udp(scene: Scene) -> Finding:
    """Attempt to send a packet to a socket of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        found = await scene.attack("udp", listener.getsockname()[1], scene.token)
        return {part: _told(listener, words, connected=False) for part, words in found.items()}


@contextmanager
def _unix_listener(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        listener.setblocking(False)
        if address.startswith("\0"):
            yield listener
            return
        os.chmod(address, 0o777)
        try:
            yield listener
        finally:
            os.unlink(address)


async def unix(scene: Scene) -> Finding:
    """Attempt connections to unix sockets of this machine."""
    abstract, path = f"arena-doctor-{scene.token}", str(scene.folder / "socket")
    with _unix_listener("\0" + abstract) as nameless, _unix_listener(path) as named:
        found = await scene.attack("unix", abstract, path)
        told = {"abstract": nameless, "file": named}
        return {part: _told(told[part], words, connected=True) for part, words in found.items()}


# Files


def _digest(path: Path, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(size)).hexdigest()


def _knows(words: str, path: Path, size: int = 4096) -> Part:
    """Return whether an attack tells the digest of a file, which only its reader can know."""
    reached = words == _digest(path, size)
    return Part(reached, "read" if reached else "other contents" if len(words) == 64 else words)


async def files(scene: Scene) -> Finding:
    """Attempt to read a file of somebody else, the users of the machine, and the database."""
    secret = scene.folder / "secret"
    secret.write_text(scene.token)
    secret.chmod(0o644)
    paths = {"a file that all may read": secret, "/etc/passwd": Path("/etc/passwd"), "the database": scene.database}
    paths = {name: path for name, path in paths.items() if path.is_file()}
    found = await scene.attack("read_files", json.dumps([str(path) for path in paths.values()]))
    return {name: _knows(found[str(path)], path) for name, path in paths.items()}


_SYSTEM = ("/", "/usr", "/etc", "/dev", "/home", "/var/tmp", "/tmp", "/dev/shm")
_PRIVATE = {"/tmp", "/dev/shm"}


async def writes(scene: Scene) -> Finding:
    """Attempt to write everywhere; what a bot has for itself alone does not count."""
    name = f"arena-doctor-{scene.token}"
    bot, runtime = scene.bot, scene.runtime
    as_seen: dict[str, str | Path] = {
        "its own folder": ".",
        "its interpreter": "{runtime}",
        "a folder that all may write": scene.folder / "open",
    }
    if scene.contained:
        as_seen |= {path: path for path in (*_SYSTEM, str(Path.home()))}
    here = {"its own folder": bot, "its interpreter": runtime}
    found = await scene.attack("write_files", json.dumps([str(path) for path in as_seen.values()]), name)
    finding = {}
    for label, path in as_seen.items():
        words, place = found[str(path)], here.get(label, Path(path)) / name
        reached = words == DONE and label not in _PRIVATE
        with contextlib.suppress(OSError):
            place.unlink()  # which fails where it is not there, or is for the bot alone
            reached = True
        finding[label] = Part(reached, "only for itself" if words == DONE and not reached else words)
    return finding


# Processes


@asynccontextmanager
async def _victim(scene: Scene) -> AsyncIterator[tuple[Plain, int]]:
    """Start a process with the token in its command line, environment and, backwards, at an address that it tells."""
    async with scene.other("victim", scene.token, SECRET=scene.token) as (plain, told):
        yield plain, told["address"]


async def processes(scene: Scene) -> Finding:
    """Attempt to see a process of somebody else."""
    async with _victim(scene):
        return taken_at_its_word(await scene.attack("look_around", scene.token[::-1]))


async def environments(scene: Scene) -> Finding:
    """Attempt to read the environments of a victim and of this process, and to find the victim's anywhere."""
    async with _victim(scene) as (victim, _):
        pid = victim.popen.pid
        found = await scene.attack("read_environments", pid, os.getpid(), scene.token[::-1])
        finding = taken_at_its_word(found)
        for part, process in (("victim", pid), ("runner", os.getpid())):
            finding[part] = _knows(found[part], Path(f"/proc/{process}/environ"), -1)
        return finding


async def own_environment(scene: Scene) -> Finding:
    """Plant a variable, and see whether a bot has any that was not promised."""
    os.environ[PLANTED] = scene.token
    try:
        found = await scene.attack("own_environment")
    finally:
        del os.environ[PLANTED]
    more = {name: Part(True, "it is there") for name in found if name not in environment("", "")}
    finding = {
        "a planted variable": Part(
            PLANTED in found, "it is there" if PLANTED in found else f"not among its {len(found)}"
        )
    }
    return finding | more if scene.contained else finding


async def kill(scene: Scene) -> Finding:
    """Attempt to kill a victim, and whether this process could be."""
    async with _victim(scene) as (victim, _):
        found = await scene.attack("kill", victim.popen.pid, os.getpid())
        with trio.move_on_after(_DEATH_S if found["victim"] == DONE else 0):
            await trio.lowlevel.wait_readable(victim.pidfd)
        dead = victim.popen.poll() is not None
        return taken_at_its_word(found) | {"victim": Part(dead, "killed" if dead else found["victim"])}


def _is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


async def attach(scene: Scene) -> Finding:
    """Attempt to trace a victim and to read its memory."""
    secret = scene.token[::-1]
    async with _victim(scene) as (victim, address):
        pid = victim.popen.pid
        async with scene.start("attach", pid, address, len(secret)) as attack:
            found = await attack.found()
            traced = _is_traced(pid)
        finding = {part: Part(words == secret, words.replace(secret, "read")) for part, words in found.items()}
        return finding | {"ptrace": Part(traced, "traced" if traced else found["ptrace"])}


def living(word: str) -> list[int]:
    """Return the processes of this machine, zombies left out, that have a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


async def survivors(scene: Scene) -> Finding:
    """Attempt to leave a process behind."""
    found = await scene.attack("survive", scene.token)
    if not found["daemon"].startswith(DONE):
        raise NotRun(found["daemon"])
    if scene.contained:
        kill_children()  # as a lane does after each leg; nobody else is about now
    left = living(scene.token)
    for pid in left:
        os.kill(pid, 9)
    return {"daemon": Part(bool(left), "it lives on" if left else "it ended with its bot")}
