"""The isolation levels, which of them works on this machine, and what a bot sees at each."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from enum import StrEnum
from functools import cache
from pathlib import Path

from arena.errors import ConfigError
from arena.sandbox import seccomp
from arena.sandbox.bwrap import arguments
from arena.sandbox.room import Room


class Level(StrEnum):
    """How far a bot is contained; stored with every match. Only `namespaced` and `none` are built so far."""

    NAMESPACED = "namespaced"
    NONE = "none"


@cache
def _bwrap_problem() -> str:
    """Return why bwrap cannot be used here, or an empty string. It is run once: its word counts, not its presence."""
    if not seccomp.is_known(platform.machine()):
        return f"there is no filter of system calls for {platform.machine()}"
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder), Path(folder))
        filter_fd = seccomp.open_program()
        try:
            done = subprocess.run(
                [
                    "bwrap",
                    *arguments(room),
                    "--seccomp",
                    str(filter_fd),
                    "--",
                    "/usr/bin/prlimit",
                    "--nproc=64",
                    "--",
                    "/bin/true",
                ],
                capture_output=True,
                timeout=20,
                check=False,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
                pass_fds=(filter_fd,),
            )
        except FileNotFoundError:
            return "bwrap is not installed (apt install bubblewrap)"
        except subprocess.TimeoutExpired:
            return "bwrap did not return within 20 s"
        finally:
            os.close(filter_fd)
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
