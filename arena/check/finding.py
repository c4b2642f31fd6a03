"""What a check found: one line each, with the evidence and, where something is wrong, how to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from arena.errors import BotError, FaultKind
from arena.records import Fault

Verdict = Literal["ok", "FAIL", "warn", "skip"]
"""`warn` is no failure; `skip` is what could not be looked at because of a failure before it."""

Figures: TypeAlias = dict[str, bool | int | float | str]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check.

    Attributes:
        name: which check, with the game where it is of one.
        evidence: what was seen, with numbers.
        fix: one sentence, empty where nothing is wrong.
        fault: `kind/detail` of the fault that failed it, or empty.
        stderr: the end of what the bot wrote there before that fault.
        figures: the numbers of the evidence, for programs.
    """

    name: str
    verdict: Verdict
    evidence: str
    fix: str = ""
    fault: str = ""
    stderr: bytes = b""
    figures: Figures = {}


_FIXES: Mapping[tuple[FaultKind, str], str] = {
    (FaultKind.STARTUP, "missing"): "Name a program that exists in `command`, and add a `build` if it is compiled.",
    (FaultKind.STARTUP, "exec"): "Make the program executable and check its `#!` line.",
    (FaultKind.STARTUP, "exit"): "Read its stderr: it ended before it had answered `hello`.",
    (FaultKind.STARTUP, "silent"): "Send `hello` before loading what takes long, and flush stdout.",
    (FaultKind.TIMEOUT, "late"): "Think less for each decision and leave a few milliseconds for the way.",
    (FaultKind.TIMEOUT, "silent"): "Flush each answer, and look for an endless loop or a read of more than was sent.",
    (FaultKind.TIMEOUT, "partial"): "Write the whole frame, with the length of its body before it.",
    (FaultKind.CRASH, "exit"): "Read its stderr, and exit only at `bye` or the end of stdin.",
    (FaultKind.CRASH, "signal"): "Look for a segmentation fault, an abort, or a limit that it met.",
    (FaultKind.CRASH, "closed"): "Leave stdout open until the end.",
    (FaultKind.ILLEGAL, "action"): "Send back one string of `legal`, unchanged.",
    (FaultKind.GARBAGE, "text"): "Print to stderr: stdout is the protocol.",
    (FaultKind.GARBAGE, "oversize"): "Write the length of the body alone as four bytes, big-endian.",
    (FaultKind.GARBAGE, "malformed"): "Compare the frame byte by byte with the examples of protocol.md.",
    (FaultKind.GARBAGE, "type"): "Send only `hello` and `act`, each when its turn has come.",
    (FaultKind.GARBAGE, "id"): "Echo the id of the ask, and answer each ask once.",
    (FaultKind.FLOOD, "stderr"): "Print less to stderr.",
    (FaultKind.FLOOD, "stdout"): "Answer each ask once.",
    (FaultKind.MEMORY, "limit"): "Use less memory than `limits.memory_mib` of `hello`.",
    (FaultKind.MEMORY, "processes"): "Start fewer processes.",
}


def fix_of(fault: Fault | BotError) -> str:
    """Return how to mend what led to a fault, in one sentence."""
    return _FIXES[fault.kind, fault.detail]


def failed(name: str, where: str, fault: Fault, figures: Figures) -> Finding:
    """Return the finding of a check that a fault has failed.

    Args:
        where: when it happened, in words.
    """
    told = f"{fault.kind}/{fault.detail}"
    return Finding(name, "FAIL", f"{where}: {told}: {fault.text}", fix_of(fault), told, fault.stderr, figures)


def skipped(name: str, why: str) -> Finding:
    """Return the finding of a check that could not be made."""
    return Finding(name, "skip", why)
