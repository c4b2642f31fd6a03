"""A launcher for machines without namespaces: closes files and network to itself, then becomes the bot.

It runs as a program of its own (`python -I -S landlock.py FD`), so it imports nothing of the arena. What the kernel
offers is described in its Documentation/userspace-api/landlock.rst; numbers are those of linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import struct
import sys
from pathlib import Path
from typing import NoReturn

SCOPED_ABI = 6
"""From this version of the interface on a bot cannot send signals to other processes of its user."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _SECCOMP = 444, 445, 446, {"x86_64": 317, "aarch64": 277}
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_SET_MODE_FILTER = 1
_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE, _DEVICE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE
_NETWORK = 0b11  # bind and connect of TCP
_SCOPES = 0b11  # abstract sockets and signals
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""By version, how many rights on files there are; 16 from version 5 on."""
EXIT_FAILED = 96


def abi() -> int:
    """Return the version of the kernel's interface, 0 if it has none or forbids it."""
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _call(libc: ctypes.CDLL, what: str, *arguments: object) -> int:
    result = int(libc.syscall(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def restrict(readable: list[str], writable: list[str]) -> None:
    """Close everything to this process but some paths that it may read and execute, and some that it may write.

    Raises:
        OSError: the kernel refuses.
    """
    libc = _libc()
    version = abi()
    rights = (1 << _RIGHTS.get(version, 16)) - 1
    ruleset = struct.pack("QQQ", rights, _NETWORK, _SCOPES)[: 8 if version < 4 else 16 if version < SCOPED_ABI else 24]
    fd = _call(libc, "landlock_create_ruleset", _CREATE_RULESET, ruleset, len(ruleset), 0)
    for path, allowed in [(path, _READ) for path in readable] + [(path, rights) for path in writable]:
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not Path(path).is_dir():
            allowed &= _OF_FILES
        rule = struct.pack("=Qi", allowed & rights, beneath)
        _call(libc, f"landlock_add_rule {path}", _ADD_RULE, fd, _PATH_BENEATH, rule, 0)
        os.close(beneath)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    _call(libc, "landlock_restrict_self", _RESTRICT_SELF, fd, 0)
    os.close(fd)


def filter_calls(program: bytes) -> None:
    """Put a filter of system calls on this process.

    Raises:
        OSError: the kernel refuses.
    """
    code = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _call(_libc(), "seccomp", _SECCOMP[os.uname().machine], _SET_MODE_FILTER, 0, description)


def main(config_fd: int) -> NoReturn:
    """Become the program that a configuration names, closed in."""
    with open(config_fd) as file:
        config = json.load(file)
    status = config["status"]
    os.set_inheritable(status, False)
    with open(config["filter"], "rb") as file:
        program = file.read()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter, and it would be inherited
        signal.signal(ignored, signal.SIG_DFL)
    os.chdir(config["folder"])
    restrict(config["readable"], config["writable"])
    filter_calls(program)
    os.write(status, json.dumps({"child-pid": os.getpid()}).encode() + b"\n")
    try:
        os.execvp(config["command"][0], config["command"])
    except OSError as error:
        sys.stderr.write(f"{config['command'][0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except OSError as problem:
        sys.stderr.write(f"{problem.strerror}\n")
        sys.stderr.flush()
        os._exit(EXIT_FAILED)
