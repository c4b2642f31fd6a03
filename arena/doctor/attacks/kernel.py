"""Attacks on parts of the kernel, and on what the scheduler was told."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import signal
import socket
import struct
from collections.abc import Callable

from .telling import DONE, attempt, in_a_child, system_call

_DENIALS = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT}


def _reaches(do: Callable[[], object]) -> str:
    """Attempt a call; any answer but a denial means that the kernel looked at it."""
    try:
        do()
    except OSError as error:
        said = error.strerror or str(error)
        return said if error.errno in _DENIALS else f"{DONE}: {said}"
    return DONE


def _other_architecture() -> str:
    """Ask for the process id by a system call of 32 bits, which has other numbers than the filter knows."""
    code = bytes.fromhex("b814000000cd80c3")  # mov eax, 20; int 0x80; ret
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return DONE if result > 0 else os.strerror(-result)


def _new_namespace_by_clone() -> None:
    if system_call("clone", 0x10000000 | signal.SIGCHLD, None, None, None, None) == 0:
        os._exit(0)


def kernel() -> dict[str, str]:
    """Reach parts of the kernel that no bot needs. Arguments that would change the machine are wrong on purpose."""
    calls: dict[str, Callable[[], object]] = {
        "unshare": lambda: system_call("unshare", 0x10000000),
        "clone": _new_namespace_by_clone,
        "setns": lambda: system_call("setns", -1, 0),
        "mount": lambda: system_call("mount", None, None, None, 0, None),
        "fsopen": lambda: system_call("fsopen", None, 0),
        "keyctl": lambda: system_call("keyctl", 0, -3, 0),
        "bpf": lambda: system_call("bpf", -1, None, 0),
        "perf_event_open": lambda: system_call("perf_event_open", None, 0, -1, -1, 0),
        "userfaultfd": lambda: os.close(system_call("userfaultfd", 1)),  # UFFD_USER_MODE_ONLY
        "io_uring": lambda: system_call("io_uring_setup", 1, None),
        "clock_settime": lambda: system_call("clock_settime", 0, struct.pack("ll", 0, -1)),
        "open_by_handle_at": lambda: system_call("open_by_handle_at", -1, None, 0),
        "fanotify": lambda: os.close(system_call("fanotify_init", 0x200, 0)),  # FAN_REPORT_FID
        "pidfd_getfd": lambda: system_call("pidfd_getfd", -1, 0, 0),
        "kcmp": lambda: system_call("kcmp", os.getpid(), os.getpid(), 2, 0, 0),
    }
    found = {name: in_a_child(lambda do=do: _reaches(do)) for name, do in calls.items()}  # type: ignore[misc]
    if platform.machine() == "x86_64":
        found["32-bit calls"] = in_a_child(_other_architecture)
    return found


def sockets() -> dict[str, str]:
    """Make sockets of families that are no bot's business."""
    families = {"netlink": 16, "packet": 17, "bluetooth": 31, "alg": 38, "vsock": 40}
    kinds = {"netlink": socket.SOCK_RAW, "packet": socket.SOCK_RAW, "alg": socket.SOCK_SEQPACKET, "bluetooth": 3}
    return {
        name: attempt(lambda n=name, f=family: socket.socket(f, kinds.get(n, socket.SOCK_STREAM)).close())  # type: ignore[misc]
        for name, family in families.items()
    }


def session() -> dict[str, str]:
    """Leave the session and the process group, by which a tree is signalled and gets its share of the processor."""
    return {"setsid": in_a_child(os.setsid), "setpgid": in_a_child(lambda: os.setpgid(0, 0))}


def priority() -> dict[str, str]:
    """Take more of the processor than was given."""
    return {
        "sched_setaffinity": attempt(lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1))),
        "sched_setscheduler": attempt(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))),
        "nice": attempt(lambda: os.nice(-1) and None),
    }
