"""Checks stored results: every deal is executed again, and its luck derived again from the master seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from arena.cards import deck_order
from arena.errors import FAULT_DETAILS, ConfigError, FaultKind, IllegalAction
from arena.luck import commitment, derive
from arena.records import Clock, DealRecord, Fault
from arena.retelling import Retelling, moments, rules_of
from arena.rules import State, bot_seed
from arena.store.matches import KEY_BYTES, StoredMatch
from arena.store.tournaments import Stage, Tournament
from arena.verdict import FORFEIT_FAULTS, is_decided, verdict


class Difference(msgspec.Struct, frozen=True):
    """Something stored that is not what it must be.

    Attributes:
        where: a deal's name, a match's number or a tournament's name.
        what: which value, in words.
    """

    where: str
    what: str
    stored: str
    found: str


def check_luck(tournament: Tournament, stage: Stage, others: Sequence[Tournament]) -> Iterator[Difference]:
    """Compare a stage's master seed with its commitment and with the masters of others.

    Args:
        others: the tournaments of the database.
    """
    where = stage_name(tournament, stage)
    for name, value in (("master", stage.master), ("salt", stage.salt)):
        if len(value) != KEY_BYTES:  # else one commitment would fit several ways to part the two
            yield Difference(where, name, f"{len(value)} bytes", f"{KEY_BYTES} bytes")
    found = commitment(stage.master, stage.salt)
    if found != stage.commitment:
        yield Difference(where, "commitment", stage.commitment.hex(), found.hex())
    if stage.practice:  # a short seed may be used again; it promises nothing
        return
    for other in others:
        for one in other.stages:
            if one.master == stage.master and (other.id, one.number) != (tournament.id, stage.number):
                yield Difference(where, "master seed", "its own", f"that of {stage_name(other, one)}")


def is_sealed(stage: Stage) -> bool:
    """Tell whether a stage was imported before its end, without its master seed, which is not revealed earlier."""
    return stage.finished_at is None and not stage.master


def stage_name(tournament: Tournament, stage: Stage) -> str:
    """Return how a stage is told of: by its tournament, and by its number if that has several."""
    return f"{tournament.name}, stage {stage.number}" if len(tournament.stages) > 1 else tournament.name


def check_deals(
    match: StoredMatch, deals: Sequence[DealRecord], faults: Sequence[Fault], clock: Clock, *, messages: bool = True
) -> Iterator[Difference]:
    """Execute every deal of a match again and compare what comes of it with what is stored.

    Args:
        deals: all of the match, in the order of play.
        faults: all of the match.
        messages: compare the digests of the messages too, which takes three times as long.
    """
    try:
        rules_of(match)
    except ConfigError as error:
        yield Difference(str(match.id), "rules", match.rule_set, str(error))
        return
    played = [(deal.deck, deal.leg) for deal in deals]
    if (due := [(deck, leg) for leg in range(len(match.legs)) for deck in range(len(match.decks))]) != played:
        yield Difference(str(match.id), "deals", str(played), str(due))
        return
    yield from _check_faults(match, deals, faults)
    strikes = [0] * len(match.hashes)
    for deal in deals:
        own = [fault for fault in faults if (fault.deck, fault.leg) == (deal.deck, deal.leg)]
        out = [seat for seat, place in enumerate(deal.seating) if strikes[place] >= FORFEIT_FAULTS]
        yield from _check_deal(match, deal, own, out, clock if messages else None)
        for fault in own:
            strikes[deal.seating[fault.seat]] += 1


def _check_faults(match: StoredMatch, deals: Sequence[DealRecord], faults: Sequence[Fault]) -> Iterator[Difference]:
    """Check what can be said of faults without executing the deals."""
    by_deal = {(deal.deck, deal.leg): deal for deal in deals}
    seen = set()
    for fault in faults:
        where = f"{match.id}-{fault.deck}-{fault.leg}"
        deal = by_deal.get((fault.deck, fault.leg))
        name = f"{fault.kind}/{fault.detail} of seat {fault.seat} at step {fault.step}"
        if deal is None or not 0 <= fault.seat < len(deal.seating) or not 0 <= fault.step <= len(deal.steps):
            yield Difference(where, "fault", name, "there is no such deal, seat or step")
            continue
        if fault.detail not in FAULT_DETAILS[fault.kind]:
            yield Difference(where, "fault", name, "there is no such detail")
        if (fault.deck, fault.leg, fault.seat) in seen:
            yield Difference(where, "fault", name, "the seat has faulted before")
        dealt_in = bool(deal.first_ids[fault.seat])
        if (dealt_in and fault.kind is FaultKind.STARTUP) or (not dealt_in and fault.step):
            yield Difference(where, "fault", name, "the bot had started" if dealt_in else "the bot had not started")
        seen.add((fault.deck, fault.leg, fault.seat))


def _check_deal(
    match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], out: Sequence[int], clock: Clock | None
) -> Iterator[Difference]:
    where = f"{match.id}-{deal.deck}-{deal.leg}"
    try:
        state, digests = _execute(match, deal, faults, clock)
    except IllegalAction as error:
        yield Difference(where, "steps", "a legal deal", str(error))
        return
    found = _result(match, deal, faults, out, state)
    kept = {name: getattr(deal, name) for name in found}
    kept["seating"], found["seating"] = deal.seating, match.legs[deal.leg]
    if clock is not None:
        kept["messages"] = {seat: digest.hex() for seat, digest in enumerate(deal.digests) if digest}
        found["messages"] = digests
    for name, value in found.items():
        if kept[name] != value:
            yield Difference(where, name, str(kept[name]), str(value))


def _execute(
    match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], clock: Clock | None
) -> tuple[State, dict[int, str]]:
    """Return the last position and, given a clock, the digests of the messages in hex."""
    if clock is None:
        return deque(moments(match, deal), maxlen=1)[0].state, {}
    told = Retelling(match, deal, faults, clock)
    missed = set(faults).difference(said.what for said in told.follow() if isinstance(said.what, Fault))
    if told.done != len(deal.steps) or missed:
        raise IllegalAction(f"it ends after step {told.done} of {len(deal.steps)}; faults missed: {len(missed)}")
    return told.state, {seat: digest.hex() for seat, digest in told.digests().items()}


def _result(
    match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], out: Sequence[int], state: State
) -> dict[str, object]:
    """Return what the referee must have recorded of a deal that ended in a position."""
    game, options = rules_of(match)
    seats = len(match.hashes)
    outcome_type = game.outcome_type(options)
    faulted = {**dict.fromkeys(out, -1), **{fault.seat: fault.step for fault in faults}}
    if state.outcome is None and not is_decided(faulted, seats, outcome_type):
        return {"reason": "a deal that goes on"}
    if state.outcome is None and faults and max(fault.step for fault in faults) != len(deal.steps):
        return {"reason": "a deal that goes on after its last fault"}
    return msgspec.structs.asdict(verdict(state.outcome, faulted, seats, outcome_type))


def revealed(tournament: Tournament, played: Sequence[StoredMatch]) -> dict[str, object]:
    """Return everything that follows from the master seeds of the finished stages, for anybody to derive again."""
    return {
        "tournament": tournament.name,
        "stages": [
            _revealed(stage, [one for one in played if one.stage == stage.number]) for stage in tournament.stages
        ],
    }


def _revealed(stage: Stage, played: Sequence[StoredMatch]) -> dict[str, object]:
    told = {"stage": stage.number, "practice": stage.practice, "commitment": stage.commitment.hex()}
    if stage.finished_at is None:
        return {**told, "salt": None, "master": None, "matches": []}
    return {
        **told,
        "salt": stage.salt.hex(),
        "master": stage.master.hex(),
        "matches": [
            {
                "match": match.id,
                "game": match.game,
                "round": match.round,
                "seats": len(match.hashes),
                "rule_set": match.rule_set,
                "decks": [_deck(match, key) for key in match.decks],
            }
            for match in played
        ],
    }


def _deck(match: StoredMatch, key: bytes) -> dict[str, object]:
    game, options = rules_of(match)
    seats = range(len(match.hashes))
    return {
        "key": key.hex(),
        "order": deck_order(game.deck(options), key),
        "deal_seed": derive(key, "deal").hex(),
        "bot_seeds": [bot_seed(key, seat) for seat in seats],
    }
