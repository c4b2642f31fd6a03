"""The arguments of bubblewrap: a read-only system, an empty home, no network, no other process in sight."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from arena.sandbox import system
from arena.sandbox.environment import environment
from arena.sandbox.room import Room

BOT_FOLDER = "/bot"
OUT_FOLDER = "/out"
RUNTIME_FOLDER = "/runtime"
HOME_FOLDER = "/tmp"

_NAMESPACES = shlex.split(
    "--unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try "
    "--die-with-parent --new-session --hostname bot --clearenv --cap-drop ALL"
)
_USER_NAMESPACE = shlex.split("--unshare-user --uid 1000 --gid 1000")
_TO_DROP = shlex.split("--cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP")
# bwrap's own /, /dev, /dev/shm and /tmp are tmpfs of half the memory each unless capped or read-only.
_DEVICES = shlex.split(
    "--proc /proc --dev /dev --size 4194304 --perms 1777 --tmpfs /dev/shm --size 33554432 --perms 1777 --tmpfs /tmp"
)
_EMPTY = Path(__file__).with_name("empty")
_STATIC = frozenset(
    shlex.split(
        "self thread-self cmdline config.gz consoles cpuinfo crypto devices dma execdomains filesystems iomem ioports "
        "kallsyms keys kmsg misc mounts mtrr net partitions sysvipc version"
    )
)
"""What may be seen of /proc: the bot's own, and what does not change by what others do on this machine."""


def _system() -> Iterator[str]:
    for path in system.roots():
        yield from ("--symlink", str(path.readlink())) if path.is_symlink() else ("--ro-bind", str(path))
        yield str(path)
    prefix = system.interpreter()
    paths = [*system.settings(), *([prefix] if prefix is not None else [])]
    for parent in sorted({parent for path in paths for parent in path.parents[:-1]}):
        yield from ("--perms", "0755", "--dir", str(parent))  # else they would be as closed as those outside
    for path in paths:
        yield from ("--ro-bind", str(path), str(path))


@cache
def _covers(*, drops: bool) -> tuple[str, ...]:
    """Return what hides the rest of /proc, in which others could be watched at work.

    For each bind and each remount bwrap reads its list of mounts, which is half of its time. So folders come last, and
    are made read-only only where they belong to the bot's user; otherwise they are root's.
    """
    hidden = [path for path in Path("/proc").iterdir() if not path.name.isdecimal() and path.name not in _STATIC]
    is_root = os.geteuid() == 0 and not drops
    files = sorted(path for path in hidden if not path.is_dir() and (is_root or _is_open(path)))
    folders = sorted(path for path in hidden if path.is_dir())
    args = [word for path in files for word in ("--ro-bind", str(_EMPTY), str(path))]
    for path in folders:
        args += ["--tmpfs", str(path), *(() if drops else ("--remount-ro", str(path)))]
    return tuple(args)


def _is_open(path: Path) -> bool:
    """Tell whether others than root may read a file."""
    return bool(path.stat().st_mode & 0o004)


def arguments(room: Room, *, drops: bool) -> list[str]:
    """Return everything between `bwrap` and `--` for a room.

    Args:
        drops: it is started by root, and the bot changes to a user of its own before it begins; otherwise the bot has
            a namespace of users.
    """
    args = [*_NAMESPACES, *(_TO_DROP if drops else _USER_NAMESPACE), *_system(), *_DEVICES, *_covers(drops=drops)]
    for name, value in environment(RUNTIME_FOLDER, HOME_FOLDER).items():
        args += ["--setenv", name, value]
    args += ["--ro-bind", str(room.runtime), RUNTIME_FOLDER, "--ro-bind", str(room.bot), BOT_FOLDER]
    if room.out is not None:
        args += ["--bind" if room.out_writable else "--ro-bind", str(room.out), OUT_FOLDER]
    return [*args, "--chdir", BOT_FOLDER, "--remount-ro", "/dev", "--remount-ro", "/"]
