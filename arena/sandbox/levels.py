"""Which of the isolation levels work on this machine, and why the others do not."""

from __future__ import annotations

import platform
import shutil
from functools import cache

from arena.errors import ConfigError, InfraError
from arena.records import Level
from arena.sandbox import landlock, seccomp
from arena.sandbox.cgroup import find_home
from arena.sandbox.launch import try_level


@cache
def problem(level: Level) -> str:
    """Return why a level cannot be used here, or an empty string. It is tried: its work counts, not its presence."""
    if level is Level.NONE:
        return ""
    if not seccomp.is_known(platform.machine()):
        return f"there is no filter of system calls for {platform.machine()}"
    if level is Level.LANDLOCK:
        return try_level(level) if landlock.abi() else "this kernel has no landlock, or forbids it"
    if shutil.which("bwrap") is None:
        return "bwrap is not installed (apt install bubblewrap)"
    if level is Level.STRICT:
        if below := problem(Level.NAMESPACED):
            return below
        try:
            find_home()
        except InfraError as error:
            return str(error)
    return try_level(level)


def weakness(level: Level) -> str:
    """Return why a level that works is not taken unless it is asked for, or an empty string."""
    if level is Level.LANDLOCK and landlock.abi() < landlock.SCOPED_ABI:
        return (
            f"with version {landlock.abi()} of this kernel's landlock bots can send signals to your other processes "
            f"({landlock.SCOPED_ABI} is needed); --isolation landlock takes it all the same"
        )
    return ""


def available_level() -> tuple[Level, str]:
    """Return the best level that works here, and why it is not a better one (empty if it is the best of all)."""
    reasons: dict[str, Level] = {}
    for level in Level:
        reason = problem(level) or weakness(level)
        if not reason:
            break
        reasons.setdefault(reason, level)
    return level, "; ".join(f"{better}: {reason}" for reason, better in reasons.items())


def require_level(wanted: Level | None, *, trusted: bool) -> Level:
    """Return the level to use.

    Args:
        wanted: the level demanded, or None for the best that works.
        trusted: the user trusts the bots, so that `none` may be used.

    Raises:
        ConfigError: the level does not work here, or would be `none` for bots that are not trusted.
    """
    if wanted is not None and (reason := problem(wanted)):
        raise ConfigError(
            f"isolation level {wanted} does not work here: {reason}; `arena doctor` says what does, "
            "and --isolation takes another"
        )
    level, reason = (wanted, "") if wanted is not None else available_level()
    if level is Level.NONE and not trusted:
        reason = reason or "level none was asked for"
        raise ConfigError(f"bots would run without isolation ({reason}); pass --trusted if you trust all of them")
    return level
