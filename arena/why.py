"""Why a bot lost a deal: what it saw, what it did, what was wrong with it and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.errors import FaultKind
from arena.records import DealRecord, Fault, Step
from arena.retelling import moments
from arena.rules import Action, Data, Seat, State
from arena.ruling import broken_rule
from arena.store.matches import StoredMatch
from arena.verdict import FORFEIT_FAULTS
from arena.words import action_words, reason_words

_LAST_DECISIONS = 5
_EVIDENCE_BYTES = 120


class Decision(msgspec.Struct, frozen=True):
    """A step that a bot has made.

    Attributes:
        step: the number of actions applied before it.
    """

    step: int
    action: Action
    elapsed_us: int
    note: str


class Why(msgspec.Struct, frozen=True):
    """What a bot's author wants to know about a deal.

    Attributes:
        names: what to call each seat.
        seat: the bot's.
        result: `won`, `drew`, `lost` or, between first and last, `came 2 of 3 in`.
        seen: what it saw when it failed; None where nothing was asked of it.
        legal: what it might have answered.
        sent: what it did send, in printable words.
        rule: which rule that breaks, or empty.
        came: what came of it.
        decisions: the last ones it made before that.
    """

    names: tuple[str, ...]
    seat: Seat
    result: str
    place: int
    points: int
    reason: str
    fault: Fault | None
    seen: Data | None
    legal: tuple[Action, ...]
    sent: str
    rule: str
    came: str
    decisions: tuple[Decision, ...]


def explain_deal(match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], seat: Seat) -> Why:
    """Return why a seat's bot came where it did in a deal.

    Args:
        faults: all of the match, in the order in which they happened.

    Raises:
        IllegalAction: the record holds a step that these rules do not allow.
    """
    fault = next((one for one in faults if (one.deck, one.leg, one.seat) == (deal.deck, deal.leg, seat)), None)
    state = _asked(match, deal, fault) if fault is not None and deal.first_ids[seat] else None
    seen = state.observation(seat) if state is not None else None
    legal = state.legal_actions(seat) if state is not None else ()
    sent = _sent(fault) if fault is not None else ""
    rule = ""
    if fault is not None and fault.kind is FaultKind.ILLEGAL and seen is not None:
        rule = broken_rule(match.game, fault.evidence.decode(errors="replace"), legal, seen)
    return Why(
        tuple(match.names[place] for place in deal.seating),
        seat,
        _result(deal.places, seat),
        deal.places[seat],
        deal.points[seat],
        deal.reason,
        fault,
        seen,
        legal,
        sent,
        rule,
        _came(match, deal, faults, seat, fault),
        _decisions(deal, seat),
    )


def chosen_seat(deal: DealRecord, faults: Sequence[Fault], seats: Sequence[Seat]) -> Seat:
    """Return whose story to tell of some seats: the first that failed, else the one that came last.

    Args:
        faults: of the deal, in the order in which they happened.
    """
    failed = [fault.seat for fault in faults if fault.seat in seats]
    return failed[0] if failed else max(seats, key=lambda seat: deal.places[seat])


def escaped(data: bytes) -> str:
    """Return bytes as printable ASCII, all others by their number, a long end left out."""
    shown = "".join(
        chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in data[:_EVIDENCE_BYTES]
    )
    return shown + (f"... ({len(data)} bytes)" if len(data) > _EVIDENCE_BYTES else "")


def _result(places: Sequence[int], seat: Seat) -> str:
    if min(places) == max(places):
        return "drew"
    if places[seat] in (1, max(places)):
        return "won" if places[seat] == 1 else "lost"
    return f"came {places[seat]} of {len(places)} in"


def _asked(match: StoredMatch, deal: DealRecord, fault: Fault) -> State | None:
    """Return the position in which a fault happened."""
    found = (moment.state for moment in moments(match, deal) if moment.number == fault.step)
    return next(found, None)


def _sent(fault: Fault) -> str:
    """Return what a bot sent, as far as it was kept."""
    if fault.evidence:
        return escaped(fault.evidence)
    return "an answer, but late" if (fault.kind, fault.detail) == (FaultKind.TIMEOUT, "late") else "nothing"


def _came(match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], seat: Seat, fault: Fault | None) -> str:
    """Return what came of a fault, or how the deal ended for a bot without one."""
    place = deal.seating[seat]
    told = _of_place(match, faults, place)
    result = f"place {deal.places[seat]} of {len(deal.places)}"
    if fault is None:
        before = sum((one.leg, one.deck) < (deal.leg, deal.deck) for one in told)
        if before >= FORFEIT_FAULTS:
            return f"it had failed {before} times in this match, so it forfeited this deal: {result}"
        return f"{reason_words(match.game, deal.reason)}: {result} with {deal.points[seat]} points"
    strikes = told.index(fault) + 1
    rest = "; the rest of the match is forfeited" if strikes >= FORFEIT_FAULTS else ""
    house = [step for step in deal.steps[fault.step :] if step.seat == seat and step.elapsed_us < 0]
    return f"{_ended(house)}: {result}; fault {strikes} of this bot in the match{rest}"


def _of_place(match: StoredMatch, faults: Sequence[Fault], place: int) -> list[Fault]:
    """Return the faults of the bot at a place of the table."""
    return [fault for fault in faults if match.legs[fault.leg][fault.seat] == place]


def _ended(house: Sequence[Step]) -> str:
    if not house:
        return "the fault ended the deal"
    more = f" and {len(house) - 1} more" if len(house) > 1 else ""
    return f"the house played {action_words(house[0].action)}{more} for it"


def _decisions(deal: DealRecord, seat: Seat) -> tuple[Decision, ...]:
    own = [
        Decision(number, step.action, step.elapsed_us, step.note)
        for number, step in enumerate(deal.steps)
        if step.seat == seat and step.elapsed_us >= 0
    ]
    return tuple(own[-_LAST_DECISIONS:])
