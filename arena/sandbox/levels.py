"""The isolation levels, which of them works on this machine, and what a bot sees at each."""

from __future__ import annotations

import subprocess
import tempfile
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

from arena.errors import ConfigError


class Level(StrEnum):
    """How far a bot is contained; stored with every match. Only `namespaced` and `none` are built so far."""

    NAMESPACED = "namespaced"
    NONE = "none"


class Limits(msgspec.Struct, frozen=True):
    """What a bot's process tree may use.

    Attributes:
        cpu_s: CPU seconds of each process; derived from the clocks so that honest search never meets it.
        processes: at `namespaced` only, where they count for each bot alone.
    """

    cpu_s: int
    memory_mib: int = 512
    processes: int = 64
    file_bytes: int = 32 << 20
    open_files: int = 256


class Room(msgspec.Struct, frozen=True):
    """The folders a bot's process sees, as paths of this machine.

    Attributes:
        bot: its unpacked bundle, read-only.
        runtime: the interpreter's folder made by `arena.sandbox.runtime`, read-only.
        out: the folder of its build, or None.
        out_writable: True while it builds.
    """

    bot: Path
    runtime: Path
    out: Path | None = None
    out_writable: bool = False


@cache
def _bwrap_problem() -> str:
    """Return why bwrap cannot be used here, or an empty string. It is run once: its word counts, not its presence."""
    from arena.sandbox.bwrap import arguments  # the launcher's own arguments, so that what is tried is what is used

    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder), Path(folder))
        try:
            done = subprocess.run(
                ["bwrap", *arguments(room), "--", "/usr/bin/prlimit", "--nproc=64", "--", "/bin/true"],
                capture_output=True,
                timeout=20,
                check=False,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            )
        except FileNotFoundError:
            return "bwrap is not installed (apt install bubblewrap)"
        except subprocess.TimeoutExpired:
            return "bwrap did not return within 20 s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"bwrap ended with {done.returncode}"


def available_level() -> tuple[Level, str]:
    """Return the best level that works here, and why it is not a better one (empty if it is the best built)."""
    problem = _bwrap_problem()
    return (Level.NONE, problem) if problem else (Level.NAMESPACED, "")


def require_level(wanted: Level | None, *, trusted: bool) -> Level:
    """Return the level to use.

    Args:
        wanted: the level demanded, or None for the best that works.
        trusted: the user trusts the bots, so that `none` may be used.

    Raises:
        ConfigError: the level does not work here, or would be `none` for bots that are not trusted.
    """
    best, problem = available_level()
    if wanted is Level.NAMESPACED and best is not Level.NAMESPACED:
        raise ConfigError(f"isolation level namespaced does not work here: {problem}")
    level = wanted or best
    if level is Level.NONE and not trusted:
        reason = problem or "level none was asked for"
        raise ConfigError(f"bots would run without isolation ({reason}); pass --trusted if you trust all of them")
    return level
