"""Who is to blame: one tree of exceptions, chosen by whose action mends it.

A handler picks a class by blame, never by message text:

* `ConfigError` and `BusyError` - the user's: nothing was done, the text names the way out.
* `BotError` - the bot's: the referee turns it into a fault, it never leaves the referee.
* `InfraError` - ours: the match is void and played again, nobody is scored.
"""

from __future__ import annotations

import errno
from enum import StrEnum


class FaultKind(StrEnum):
    """What a bot did wrong; the closed set used in the database, in JSON and in protocol.md."""

    STARTUP = "startup"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ILLEGAL = "illegal"
    GARBAGE = "garbage"
    FLOOD = "flood"
    MEMORY = "memory"


FAULT_DETAILS: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.STARTUP: ("missing", "exec", "exit", "silent"),
    FaultKind.TIMEOUT: ("late", "silent", "partial"),
    FaultKind.CRASH: ("exit", "signal", "closed"),
    FaultKind.ILLEGAL: ("action",),
    FaultKind.GARBAGE: ("text", "oversize", "malformed", "type", "id"),
    FaultKind.FLOOD: ("stderr", "stdout"),
    FaultKind.MEMORY: ("limit", "processes"),
}
"""The closed set of details of each fault kind."""

FAULT_ADVICE: dict[tuple[FaultKind, str], str] = {
    (FaultKind.STARTUP, "missing"): "check `command`; build first if it is a compiled bot",
    (FaultKind.STARTUP, "exec"): "make it executable, check its `#!` line",
    (FaultKind.STARTUP, "exit"): "read the end of its stderr",
    (FaultKind.STARTUP, "silent"): "send hello before loading what takes long; flush",
    (FaultKind.TIMEOUT, "late"): "think less, leave a few milliseconds",
    (FaultKind.TIMEOUT, "silent"): "think less, flush, look for an endless loop or a blocked read",
    (FaultKind.TIMEOUT, "partial"): "write the whole frame, with its right length",
    (FaultKind.CRASH, "exit"): "read the end of its stderr; exit only at `bye` or the end of stdin",
    (FaultKind.CRASH, "signal"): "look for a segmentation fault, an abort, a limit of the sandbox",
    (FaultKind.CRASH, "closed"): "never close stdout",
    (FaultKind.ILLEGAL, "action"): "send one of `legal` unchanged",
    (FaultKind.GARBAGE, "text"): "print to stderr; the SDK sees to it",
    (FaultKind.GARBAGE, "oversize"): "write the length as 4 bytes, big-endian, of the body alone",
    (FaultKind.GARBAGE, "malformed"): "compare with the examples of protocol.md byte by byte",
    (FaultKind.GARBAGE, "type"): "send only `hello` and `act`, each when its turn has come",
    (FaultKind.GARBAGE, "id"): "echo the id of the ask; answer once",
    (FaultKind.FLOOD, "stderr"): "print less",
    (FaultKind.FLOOD, "stdout"): "answer each ask once",
    (FaultKind.MEMORY, "limit"): "use less memory, all of its processes together",
    (FaultKind.MEMORY, "processes"): "start fewer processes",
}
"""What to do about each fault, for its author; protocol.md says the same."""


class ArenaError(Exception):
    """Root of everything this project raises on purpose."""


class ConfigError(ArenaError):
    """The user gave something that cannot be used; exit code 2."""


class BusyError(ArenaError):
    """The database is locked or another runner is active on it; exit code 4."""


class IllegalAction(ArenaError):
    """An action that is not in the legal list of the seat that gave it."""


class BotError(ArenaError):
    """A bot broke the protocol, its clock or its process.

    Attributes:
        kind: the fault kind.
        detail: one of `FAULT_DETAILS[kind]`.
        evidence: the raw bytes that prove it (at most 4 KiB), or empty.
    """

    def __init__(self, kind: FaultKind, detail: str, text: str, evidence: bytes = b"") -> None:
        if detail not in FAULT_DETAILS[kind]:
            raise ValueError(f"{detail!r} is no detail of fault kind {kind}")
        super().__init__(text)
        self.kind = kind
        self.detail = detail
        self.evidence = evidence[:4096]


class InfraError(ArenaError):
    """The arena's own failure: a lane died, a disk is full. The match is void, never a bot's loss."""


class LaneError(InfraError):
    """A lane died, or gave no sign of life."""


class OverloadError(InfraError):
    """Others than the match's own processes kept its core so busy that a bot's time cannot be judged."""


def way_out(error: BaseException | None) -> str:
    """Return what mends a machine that lacks something, to be added to a message; empty if nothing is known."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "; this machine has too little memory left: play with fewer --jobs, or with nothing else running"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "; too many files are open: allow more (`ulimit -n`), or play with fewer --jobs"
    return ""
