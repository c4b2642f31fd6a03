"""The arguments of bubblewrap: a read-only system, an empty home, no network, no other process in sight."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from arena.sandbox.environment import environment
from arena.sandbox.room import Room

BOT_FOLDER = "/bot"
OUT_FOLDER = "/out"
RUNTIME_FOLDER = "/runtime"
HOME_FOLDER = "/tmp"

_NAMESPACES = shlex.split(
    "--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try "
    "--die-with-parent --new-session --cap-drop ALL --uid 1000 --gid 1000 --hostname bot --clearenv"
)
# bwrap's own /, /dev, /dev/shm and /tmp are tmpfs of half the memory each unless capped or read-only.
_DEVICES = shlex.split(
    "--proc /proc --dev /dev --size 4194304 --perms 1777 --tmpfs /dev/shm --size 33554432 --perms 1777 --tmpfs /tmp"
)
# Without alternatives, awk or java are dangling links; a whole /etc would show users and host names.
_ETC = ("alternatives", "ld.so.cache", "localtime", "ssl/certs")


def _system() -> list[str]:
    args = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            args += ["--ro-bind", str(path), str(path)]
    for path in (Path("/etc", name) for name in _ETC):
        args += ["--ro-bind-try", str(path), str(path)]
    for path in sorted(Path("/etc").glob("java-*")):
        args += ["--ro-bind-try", str(path), str(path)]
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to("/usr"):
        args += ["--ro-bind", str(prefix), str(prefix)]
    return args


def arguments(room: Room) -> list[str]:
    """Return everything between `bwrap` and `--` for a room."""
    args = [*_NAMESPACES, *_system(), *_DEVICES]
    for name, value in environment(RUNTIME_FOLDER, HOME_FOLDER).items():
        args += ["--setenv", name, value]
    args += ["--ro-bind", str(room.runtime), RUNTIME_FOLDER, "--ro-bind", str(room.bot), BOT_FOLDER]
    if room.out is not None:
        args += ["--bind" if room.out_writable else "--ro-bind", str(room.out), OUT_FOLDER]
    return [*args, "--chdir", BOT_FOLDER, "--remount-ro", "/dev", "--remount-ro", "/"]
