"""How attacks speak, and what several of them do."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import signal
import sys
from collections.abc import Callable

DONE = "done"
LIFE_S = 30
"""Whatever is left of an attack ends by itself after this time."""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p

_NUMBERS = {  # asm/unistd.h of x86_64 and aarch64
    "unshare": (272, 97),
    "clone": (56, 220),
    "setns": (308, 268),
    "mount": (165, 40),
    "fsopen": (430, 430),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "clock_settime": (227, 112),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
}


def tell(**what: object) -> None:
    """Print something under its keys."""
    os.write(1, json.dumps(what).encode() + b"\n")


def attempt(do: Callable[[], object]) -> str:
    """Return `done`, or a text that `do` gives or its error in the kernel's words."""
    try:
        said = do()
    except OSError as error:
        return error.strerror or str(error)
    except (MemoryError, ValueError) as error:
        return type(error).__name__
    return said if isinstance(said, str) else DONE


def system_call(name: str, *arguments: object) -> int:
    """Make a system call by its number; raises OSError."""
    number = _NUMBERS[name][platform.machine() == "aarch64"]
    # A plain int would be passed with 32 bits, the rest of its place being whatever was there.
    wide = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    result: int = libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise failure()
    return result


def in_a_child(do: Callable[[], object]) -> str:
    """Attempt something in a process of its own, which may die of it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, attempt(do).encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 4096).decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(read)
    return said if code == 0 else f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def shared_by_bots(path: str) -> str:
    """Return where a path below the interpreter's folder is; others are taken as they are."""
    return os.path.join(sys.prefix, path)


def digest(path: str, size: int = 4096) -> str:
    """Return what only somebody who can read a file knows; a size of -1 for all of it."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(size)).hexdigest()


def failure() -> OSError:
    """Return the error of the last call of the C library."""
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
