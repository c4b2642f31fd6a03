"""Checks stored results: every deal is executed again, and its luck derived again from the master seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from arena.cards import deck_order
from arena.errors import ConfigError, IllegalAction
from arena.luck import commitment, derive
from arena.plan import plan_of
from arena.records import Clock, DealRecord, Fault
from arena.retelling import Retelling, moments, rules_of
from arena.rules import State, bot_seed
from arena.schedule.seatings import seatings
from arena.store.matches import StoredMatch
from arena.store.tournaments import Tournament
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


def check_luck(tournament: Tournament, others: Sequence[Tournament]) -> Iterator[Difference]:
    """Compare a tournament's master seed with its commitment and with the masters of others.

    Args:
        others: the other tournaments of the database.
    """
    found = commitment(tournament.master, tournament.salt)
    if found != tournament.commitment:
        yield Difference(tournament.name, "commitment", tournament.commitment.hex(), found.hex())
    for other in others:
        # A practice seed is short and may be used again; it promises nothing.
        if other.id != tournament.id and other.master == tournament.master and not tournament.practice:
            yield Difference(tournament.name, "master seed", "its own", f"that of {other.name}")


def check_match(tournament: Tournament, match: StoredMatch) -> Iterator[Difference]:
    """Compare the decks and the legs of a match with what the master seed and the plan give."""
    plan = plan_of(tournament)
    seats = len(match.hashes)
    keys = tuple(derive(tournament.master, "deck", match.game, seats, match.round, deck) for deck in range(plan.decks))
    if keys != match.decks:
        yield Difference(str(match.id), "decks", _keys(match.decks), _keys(keys))
    if (legs := seatings(seats, plan.seatings)) != match.legs:
        yield Difference(str(match.id), "legs", str(match.legs), str(legs))


def _keys(keys: Sequence[bytes]) -> str:
    return " ".join(key.hex()[:12] for key in keys)


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
    strikes = [0] * len(match.hashes)
    for deal in deals:
        own = [fault for fault in faults if (fault.deck, fault.leg) == (deal.deck, deal.leg)]
        out = [seat for seat, place in enumerate(deal.seating) if strikes[place] >= FORFEIT_FAULTS]
        yield from _check_deal(match, deal, own, out, clock if messages else None)
        for fault in own:
            strikes[deal.seating[fault.seat]] += 1


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
    deque(told.follow(), maxlen=0)
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
    return msgspec.structs.asdict(verdict(state.outcome, faulted, seats, outcome_type))


def revealed(tournament: Tournament, played: Sequence[StoredMatch]) -> dict[str, object]:
    """Return everything that follows from the master seed of a finished tournament, for anybody to derive again."""
    return {
        "tournament": tournament.name,
        "practice": tournament.practice,
        "commitment": tournament.commitment.hex(),
        "salt": tournament.salt.hex(),
        "master": tournament.master.hex(),
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
        "sorted": game.deck(options),
        "order": deck_order(game.deck(options), key),
        "deal_seed": derive(key, "deal").hex(),
        "bot_seeds": [bot_seed(key, seat) for seat in seats],
    }
