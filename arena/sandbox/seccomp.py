"""The system calls that bots are denied, as a BPF program for the kernel.

A list of what is denied, not of what is allowed: bots come in any language. Three kinds are on it. Kernel surface that
no bot needs; what would undo other limits (leaving one's core, a new session with a share of the processor of its own);
and what carries messages between bots that share read-only files: whether a page of such a file is in memory can be set
by one process and read by another, and so can a lock on it.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Iterator, Mapping
from errno import EAFNOSUPPORT, ENOSYS, EPERM

import msgspec

# linux/audit.h, linux/seccomp.h, linux/bpf_common.h
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_NOWAIT = 0x8  # RWF_NOWAIT tells whether a page is in memory

_DENIED: dict[str, tuple[int | None, int | None]] = {
    # kernel surface
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    # what would undo other limits
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    # a bot stays in one process group, by which all of it is stopped while it is not asked
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # messages through files that bots share
    "readahead": (187, 213),
    "mincore": (27, 232),
    "cachestat": (451, 451),
    "flock": (73, 32),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
}
"""System calls that fail with EPERM: their numbers on x86_64 and aarch64 (asm/unistd.h), None where there is none."""
_ABSENT = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone3": (435, 435),  # its flags are behind a pointer, which a filter cannot follow
    "memfd_secret": (447, 447),
    # these outlive their process, and whoever has the key finds them
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
"""System calls that fail as if the kernel had none, so that programs do without."""
_UNCOUNTED = {"memfd_create": (319, 279)}
"""Memory that only a control group counts: denied like `_ABSENT` where there is none."""
_OF_OTHERS = {"setpriority": (141, 140), "ioprio_set": (251, 30)}
"""What a process may do to others of its user: denied like `_DENIED` where they are in reach."""
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""What changes a file of its user without writing to it, which Landlock does not restrict: it could lock others out of
their files, or leave a message in a time. Denied like `_DENIED` where such files are in reach, but to a build."""


class _Check(msgspec.Struct, frozen=True):
    """A system call that is denied for some values of an argument.

    Attributes:
        values: the low half of the argument that is denied; with `bits` any of these bits, with `others` all but these.
    """

    numbers: tuple[int, int]
    argument: int
    values: tuple[int, ...]
    error: int = EPERM
    bits: bool = False
    others: bool = False


_SOCKET = (41, 198)
_OWN_NETWORK = _Check(_SOCKET, 0, (1, 2, 10), EAFNOSUPPORT, others=True)  # unix, inet, inet6
_NO_SOCKETS = _Check(_SOCKET, 0, (), EAFNOSUPPORT, others=True)
_OWN_LIMITS = _Check((302, 261), 0, (0,), others=True)  # prlimit64, of the calling process
_NO_FLAGS = _Check((16, 29), 1, (0x40086602, 0x40046602, 0x401C5820))  # ioctl: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
_CHECKED = (
    _Check((56, 220), 0, (_NEW_NAMESPACES,), bits=True),  # clone
    _Check((221, 223), 3, (3, 4)),  # fadvise64: POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED
    _Check((28, 233), 2, (20, 21)),  # madvise: MADV_COLD, MADV_PAGEOUT
    _Check((327, 286), 5, (_NOWAIT,), bits=True),  # preadv2
    # fcntl: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_GETLK, F_OFD_GETLK, F_SETLEASE, F_GETLEASE, F_NOTIFY
    _Check((72, 25), 1, (6, 7, 37, 38, 5, 36, 1024, 1025, 1026)),
)


def _instruction(code: int, k: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def _deny(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)


def _check(check: _Check, column: int) -> Iterator[bytes]:
    """Yield a block that is skipped for other system calls; for its own it always returns."""
    allow = _instruction(_RETURN, _ALLOW)
    code = _ANY_BIT if check.bits else _EQUAL
    count = len(check.values)
    yield _instruction(_EQUAL, check.numbers[column], no=count + 3)
    yield _instruction(_LOAD, _ARGUMENTS_AT + 8 * check.argument)
    for left, value in zip(range(count, 0, -1), check.values, strict=True):
        yield _instruction(code, value, yes=left)
    yield from (_deny(check.error), allow) if check.others else (allow, _deny(check.error))


def is_known(machine: str) -> bool:
    """Tell whether there is a filter for a kind of machine."""
    return machine in _ARCHITECTURES


def program(machine: str, *, counted: bool = True, alone: bool = True, builds: bool = False) -> bytes:
    """Return the filter for a known kind of machine, as the kernel takes it.

    Args:
        counted: a control group counts all memory.
        alone: the network, the processes and the files in reach are the bot's own.
        builds: it makes files, and sets their modes and times.
    """
    column = list(_ARCHITECTURES).index(machine)
    parts = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, _ARCHITECTURES[machine], yes=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        parts += [_instruction(_AT_LEAST, _X32, no=1), _deny(ENOSYS)]
    denied: list[tuple[Mapping[str, tuple[int | None, int | None]], int]]
    denied = [(_DENIED, EPERM), (_ABSENT, ENOSYS), ({} if counted else _UNCOUNTED, ENOSYS)]
    checks = [*_CHECKED, _OWN_NETWORK if alone else _NO_SOCKETS]
    if not alone:
        denied.append((_OF_OTHERS, EPERM))
        checks.append(_OWN_LIMITS)
    if not alone and not builds:
        denied.append((_ATTRIBUTES, EPERM))
        checks.append(_NO_FLAGS)
    for calls, error in denied:
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                parts += [_instruction(_EQUAL, number, no=1), _deny(error)]
    for check in checks:
        parts += _check(check, column)
    return b"".join([*parts, _instruction(_RETURN, _ALLOW)])


def open_program(*, counted: bool, alone: bool = True, builds: bool = False) -> int:
    """Return a descriptor of a file in memory that holds the filter for this machine, at its start."""
    fd = os.memfd_create("seccomp", 0)
    os.write(fd, program(platform.machine(), counted=counted, alone=alone, builds=builds))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
