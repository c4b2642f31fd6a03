"""What a check found: one line each, with the evidence and, where something is wrong, how to mend it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from arena.errors import FAULT_ADVICE, BotError
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


def fix_of(fault: Fault | BotError) -> str:
    """Return how to mend what led to a fault, in one sentence."""
    advice = FAULT_ADVICE[fault.kind, fault.detail]
    return f"{advice[0].upper()}{advice[1:]}."


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
