"""Attacks on the network, files and other processes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import socket
import struct
import sys
from pathlib import Path

from .telling import DONE, attempt, digest, system_call

# What a bot must be able to do


def play() -> dict[str, str]:
    """Be what a Python bot is."""
    import msgpack

    msgpack.unpackb(msgpack.packb({"type": "hello"}))
    return {"python3": f"Python {platform.python_version()}, msgpack {'.'.join(map(str, msgpack.version))}"}


# Network


def _connect(family: socket.AddressFamily, address: object) -> None:
    with socket.socket(family) as sock:
        sock.settimeout(2)
        sock.connect(address)  # type: ignore[arg-type]  # a tuple or a name, as the family wants it


def tcp(port: str) -> dict[str, str]:
    """Connect to a listener of the machine."""
    return {"TCP": attempt(lambda: _connect(socket.AF_INET, ("127.0.0.1", int(port))))}


def udp(port: str, token: str) -> dict[str, str]:
    """Send a packet to a socket of the machine."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(token.encode(), ("127.0.0.1", int(port)))

    return {"UDP": attempt(send)}


def unix(abstract: str, path: str) -> dict[str, str]:
    """Connect to unix sockets of the machine."""
    return {
        "abstract": attempt(lambda: _connect(socket.AF_UNIX, "\0" + abstract)),
        "file": attempt(lambda: _connect(socket.AF_UNIX, path)),
    }


# Files and other processes


def read_files(paths: str) -> dict[str, str]:
    """Read files of others: their digests prove it."""
    return {path: attempt(lambda path=path: digest(path)) for path in json.loads(paths)}  # type: ignore[misc]


def write_files(folders: str, name: str) -> dict[str, str]:
    """Make a file in each of some folders."""

    def plant(folder: str) -> None:
        Path(folder.replace("{runtime}", sys.prefix), name).touch(exist_ok=False)

    return {folder: attempt(lambda folder=folder: plant(folder)) for folder in json.loads(folders)}  # type: ignore[misc]


def _mentions(name: str, word: str) -> list[str]:
    """Return the processes in sight, without this one, whose file of that name in /proc contains the word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (folder / name).read_bytes() and int(folder.name) != os.getpid():
                found.append(folder.name)
    return found


def look_around(backwards: str) -> dict[str, str]:
    """Look for a process by a word of its command line."""
    try:
        count = sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError as error:
        return {"processes": error.strerror or str(error)}
    found = _mentions("cmdline", backwards[::-1])
    return {"processes": DONE if found else f"{count} in sight, its own"}


def read_environments(victim: str, runner: str, backwards: str) -> dict[str, str]:
    """Read the environments of others."""
    found = _mentions("environ", backwards[::-1])
    return {
        "victim": attempt(lambda: digest(f"/proc/{victim}/environ", -1)),
        "runner": attempt(lambda: digest(f"/proc/{runner}/environ", -1)),
        "all of /proc": DONE if found else "nothing found",
    }


def own_environment() -> dict[str, str]:
    """Tell the names of all own variables."""
    return dict.fromkeys(os.environ, DONE)


def kill(victim: str, runner: str) -> dict[str, str]:
    """Kill a process, and see whether the runner could be."""
    return {
        "victim": attempt(lambda: os.kill(int(victim), signal.SIGKILL)),
        "runner": attempt(lambda: os.kill(int(runner), 0)),
    }


def attach(victim: str, address: str, size: str) -> dict[str, str]:
    """Trace a process, and read its memory in two ways."""
    pid, at, length = int(victim), int(address), int(size)

    def read() -> str:
        buffer = ctypes.create_string_buffer(length)
        local = struct.pack("PN", ctypes.addressof(buffer), length)
        system_call("process_vm_readv", pid, local, 1, struct.pack("PN", at, length), 1, 0)
        return buffer.raw.decode()

    def read_file() -> str:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            file.seek(at)
            return file.read(length).decode()

    found = {"process_vm_readv": attempt(read), "/proc/PID/mem": attempt(read_file)}
    return {**found, "ptrace": attempt(lambda: system_call("ptrace", 0x4206, pid, None, None))}  # PTRACE_SEIZE
