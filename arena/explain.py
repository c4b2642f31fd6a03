"""What happened in a deal, in words and messages, for the author of a bot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgpack
import msgspec

from arena.records import Clock, DealRecord, Fault, Step
from arena.retelling import Retelling, Said
from arena.rules import Seat
from arena.store.matches import StoredMatch

_LENGTH_BYTES = 4


class Line(msgspec.Struct, frozen=True):
    """A message of a dialogue.

    Attributes:
        sender: `referee`, `bot`, or `fault` for the failure that ended it.
        step: actions applied before it.
        elapsed_us: of an answer.
    """

    sender: Literal["referee", "bot", "fault"]
    step: int
    message: dict[str, object]
    elapsed_us: int | None = None


def dialogue(
    stored: StoredMatch, played: DealRecord, seat: Seat, faults: Sequence[Fault], clock: Clock
) -> tuple[list[Line], bool]:
    """Return what was said between the referee and a seat in a deal.

    Args:
        faults: those of the deal.
        clock: the limits it was played with.

    Returns:
        The lines in order, and whether the messages digest to what was stored when they were sent.
    """
    told = Retelling(stored, played, faults, clock, [seat])
    asked = played.first_ids[seat] - 1
    lines = []
    for said in told.follow():
        line = _line(said, asked)
        asked += line.message.get("type") == "ask"
        lines.append(line)
    return lines, told.digests().get(seat, b"") == played.digests[seat]


def _line(said: Said, asked: int) -> Line:
    """Return what was said as a line; `asked` is the id of the last ask before it."""
    match said.what:
        case bytes(frame):
            return Line("referee", said.step, msgpack.unpackb(frame[_LENGTH_BYTES:]))
        case Step() as step:
            message: dict[str, object] = {"type": "act", "id": asked, "action": step.action}
            if step.note:
                message["note"] = step.note
            return Line("bot", said.step, message, step.elapsed_us)
        case Fault() as fault:
            told: dict[str, object] = {"kind": fault.kind.value, "detail": fault.detail, "text": fault.text}
            if fault.evidence:
                told["evidence"] = fault.evidence.decode("latin-1")
            if fault.stderr:
                told["stderr"] = fault.stderr.decode(errors="replace")
            return Line("fault", said.step, told)
