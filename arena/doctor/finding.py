"""What an attack reached, thing by thing, and what follows from it and its control."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

import msgspec

from arena.doctor.stage import DONE, NothingToReach, Scene
from arena.errors import ArenaError


class Part(msgspec.Struct, frozen=True):
    """One thing that an attack tried.

    Attributes:
        reached: it succeeded.
        words: what the attack, or who was attacked, says of it.
    """

    reached: bool
    words: str


Finding = dict[str, Part]


class Status(StrEnum):
    """What is known of a line."""

    ENFORCED = "enforced"
    NOT_ENFORCED = "NOT ENFORCED"
    UNKNOWN = "UNKNOWN"


class Line(msgspec.Struct, frozen=True):
    """Something that a level may promise.

    Attributes:
        question: the promise as a person reads it.
        attempt: makes the attacks that would break it, in a scene.
        control: without a sandbox they must succeed; False where the promise is that something works.
    """

    name: str
    question: str
    attempt: Callable[[Scene], Awaitable[Finding]]
    control: bool = True


def taken_at_its_word(found: Mapping[str, str]) -> Finding:
    """Return what an attack found where only itself can know."""
    return {part: Part(words.startswith(DONE), words) for part, words in found.items()}


def judge(line: Line, contained: Finding | ArenaError, control: Finding | ArenaError) -> tuple[Status, str]:
    """Return the status of a line and the evidence for it."""
    if isinstance(contained, NothingToReach):
        return Status.ENFORCED, str(contained)
    if isinstance(contained, ArenaError):
        return Status.UNKNOWN if line.control else Status.NOT_ENFORCED, f"the attack did not run: {contained}"
    if reached := {name: part for name, part in contained.items() if part.reached}:
        return Status.NOT_ENFORCED, evidence(reached)
    if not line.control:
        return Status.ENFORCED, evidence(contained)
    if isinstance(control, ArenaError):
        return Status.UNKNOWN, f"the control did not run: {control}"
    proved = {name: part for name, part in contained.items() if name in control and control[name].reached}
    if not proved:
        return Status.UNKNOWN, f"the control failed, without a sandbox too: {evidence(control)}"
    others = [name for name in contained if name not in proved]
    return Status.ENFORCED, evidence(proved) + (
        f" (denied, but without a control: {', '.join(others)})" if others else ""
    )


def evidence(finding: Finding) -> str:
    """Return all parts in one line; those with the same words stand together."""
    names: dict[str, list[str]] = {}
    for name, part in finding.items():
        words = part.words.removeprefix(DONE).removeprefix(": ")
        names.setdefault(words or "it works", []).append(name)
    return "; ".join(f"{', '.join(some)}: {words}" for words, some in names.items())
