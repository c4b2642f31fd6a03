"""Phase two of durak: attack, defend, throw in, bout after bout, until somebody is the durak (D5 - D14).

Every card is public here. One seat acts at a time, so a position is a struct of bit masks and a seat to move;
each phase has a pair of functions: its legal actions and what an action does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from arena.errors import IllegalAction
from arena.games.durak_cards import ATTACK, BEAT, BEATEN, HIGHER, NAME, RANK, THROW, TRANSFER, Card, Cards, names
from arena.games.durak_rules import Rules
from arena.rules import Action, Data, Event, Outcome, Seat, places_by_points

Phase: TypeAlias = Literal["attack", "defend", "throw", "over"]
Step: TypeAlias = "tuple[Bouts, tuple[Event, ...]]"
NOBODY: Seat = -1
SEATS_OF = tuple(tuple(seat for seat in range(6) if bits >> seat & 1) for bits in range(1 << 6))
"""The seats whose bits are set."""


class Bouts(msgspec.Struct, frozen=True):
    """A position of phase two.

    Attributes:
        trump: all cards of the trump suit.
        turn: the seat to act; like `leader` and `defender` it is `NOBODY` when the deal is over.
        limit: the most attack cards this bout may have (D9).
        attacks: attack cards in the order they were played.
        beats: for each attack card the card that beats it, or 0.
        ranks: all cards of the ranks on the table.
        taking: the defender has said `take` (D10).
        passed: bit i is set when seat i has passed since asking began (D8, D10).
        discard: cards that left the game.
        out: by seat, the bout of going out (0 is phase one), or None.
        bout: 1-based; 0 when phase one decided the deal.
    """

    rules: Rules
    trump: Cards
    hands: tuple[Cards, ...]
    phase: Phase
    turn: Seat
    leader: Seat
    defender: Seat
    limit: int
    bout: int
    out: tuple[int | None, ...]
    attacks: tuple[Card, ...] = ()
    beats: tuple[Card, ...] = ()
    ranks: Cards = 0
    taking: bool = False
    passed: int = 0
    discard: Cards = 0
    takes_in_row: int = 0
    redeals: int = 0
    outcome: Outcome | None = None

    @property
    def actors(self) -> tuple[Seat, ...]:
        """The seat to act, or ()."""
        return () if self.phase == "over" else (self.turn,)

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        """Return the legal actions in ASCII order."""
        if seat != self.turn:
            return ()
        match self.phase:
            case "attack":
                return tuple(ATTACK.actions(self.hands[seat]))
            case "defend":
                return defend_legal(self)
            case "throw":
                return ("pass", *THROW.actions(self.hands[seat] & self.ranks))
            case "over":
                return ()
            case _:
                assert_never(self.phase)

    def apply(self, seat: Seat, action: Action) -> Step:
        """Return the next position and what happened."""
        if seat != self.turn:
            raise IllegalAction(f"it is not seat {seat}'s turn")
        match self.phase:
            case "attack":
                return attack_apply(self, action)
            case "defend":
                return defend_apply(self, action)
            case "throw":
                return throw_apply(self, action)
            case "over":
                raise IllegalAction("the deal is over")
            case _:
                assert_never(self.phase)

    def observation(self, seat: Seat | None) -> Data:
        """Return the table; hands are public, the deck is used up, so a seat sees what a spectator sees."""
        pairs = zip(self.attacks, self.beats, strict=True)
        seen: dict[str, object] = {
            "seat": seat,
            "seats": self.rules.seats,
            "phase": self.phase,
            "turn": seat_or_none(self.turn),
            "hands": tuple(map(names, self.hands)),
            "trump": names(self.trump)[0][1],
            "deck": 0,
            "open": (),
            "drawn": None,
            "redeals": self.redeals,
            "table": tuple((NAME[attack], NAME.get(beat)) for attack, beat in pairs),
            "leader": seat_or_none(self.leader),
            "defender": seat_or_none(self.defender),
            "limit": self.limit,
            "taking": self.taking,
            "passed": SEATS_OF[self.passed],
            "discard": names(self.discard),
            "out": self.out,
            "bout": self.bout,
            "takes_in_row": self.takes_in_row,
        }
        if seat is None:
            seen["deck_cards"] = ()
        return seen


def seat_or_none(seat: Seat) -> Seat | None:
    """Return the seat as it is shown: None for `NOBODY`."""
    return None if seat == NOBODY else seat


def begin_bouts(rules: Rules, trump: Cards, hands: tuple[Cards, ...], redeals: int, events: list[Event]) -> Step:
    """Return the first position of phase two (D5, D6); seats without cards are out in bout 0.

    The events of phase one are passed in; those of this step follow them.
    """
    start = Bouts(
        rules=rules,
        trump=trump,
        hands=hands,
        phase="over",
        turn=NOBODY,
        leader=NOBODY,
        defender=NOBODY,
        limit=0,
        bout=0,
        out=(None,) * rules.seats,
        redeals=redeals,
    )
    lowest = min(card for card in rules.deck if card & trump)
    leader = next(seat for seat, hand in enumerate(hands) if hand & lowest)
    return close_bout(start, leader, events)


def attack_apply(state: Bouts, action: Action) -> Step:
    """D6: one card, any of the leader's."""
    seat = state.turn
    card = ATTACK.card.get(action, 0)
    if not card & state.hands[seat]:
        raise refuse(seat, action)
    after = replace(
        state,
        hands=with_hand(state.hands, seat, state.hands[seat] ^ card),
        phase="defend",
        turn=state.defender,
        attacks=(card,),
        beats=(0,),
        ranks=RANK[card],
    )
    return after, (Event("attack", {"seat": seat, "card": NAME[card], "defender": state.defender}),)


def defend_legal(state: Bouts) -> tuple[Action, ...]:
    """D7, D13: beat any open attack card, take, or pass the attack on."""
    hand = state.hands[state.turn]
    found: list[Action] = []
    for attack, beat in zip(state.attacks, state.beats, strict=True):
        if not beat:
            found += BEAT[attack].actions(hand & beaters(attack, state.trump))
    found.sort()
    found.append("take")
    if may_transfer(state):
        found += TRANSFER.actions(hand & state.ranks)
    return tuple(found)


def defend_apply(state: Bouts, action: Action) -> Step:
    """Beat, take or transfer."""
    if action == "take":
        return take(state)
    if action in BEATEN:
        return beat(state, action)
    return transfer(state, action)


def beaters(attack: Card, trump: Cards) -> Cards:
    """Return the cards that beat an attack card: the higher of its suit, and any trump if it is none."""
    return HIGHER[attack] if attack & trump else HIGHER[attack] | trump


def beat(state: Bouts, action: Action) -> Step:
    """D7: put an own card on an open attack card; D8: when all are beaten the others are asked."""
    seat = state.turn
    attack, own = BEATEN[action]
    place = state.attacks.index(attack) if attack in state.attacks else -1
    if place < 0 or state.beats[place] or not own & state.hands[seat] & beaters(attack, state.trump):
        raise refuse(seat, action)
    beats = (*state.beats[:place], own, *state.beats[place + 1 :])
    after = replace(
        state, hands=with_hand(state.hands, seat, state.hands[seat] ^ own), beats=beats, ranks=state.ranks | RANK[own]
    )
    event = Event("beat", {"seat": seat, "attack": NAME[attack], "card": NAME[own]})
    return (after, (event,)) if 0 in beats else ask(after, [event])


def take(state: Bouts) -> Step:
    """D10: the defender gives up; the others may add cards before it takes them all."""
    after = replace(state, taking=True)
    event = Event("take", {"seat": state.turn})
    return ask(after, [event]) if state.rules.throw_after_take else end_bout(after, [event])


def may_transfer(state: Bouts) -> bool:
    """D13: nothing is beaten yet, and the next seat with cards may be attacked with one card more."""
    rules = state.rules
    if not rules.transfer or any(state.beats) or (state.bout == 1 and not rules.first_transfer):
        return False
    receiver = next_holder(state.hands, state.turn)
    return receiver != NOBODY and len(state.attacks) < attack_limit(state, receiver)


def transfer(state: Bouts, action: Action) -> Step:
    """D13: add a card of the attack's rank; the next seat with cards must defend."""
    seat = state.turn
    card = TRANSFER.card.get(action, 0)
    if not card & state.hands[seat] & state.ranks or not may_transfer(state):
        raise refuse(seat, action)
    receiver = next_holder(state.hands, seat)
    after = replace(
        state,
        hands=with_hand(state.hands, seat, state.hands[seat] ^ card),
        turn=receiver,
        leader=seat,
        defender=receiver,
        limit=attack_limit(state, receiver),
        attacks=(*state.attacks, card),
        beats=(*state.beats, 0),
    )
    return after, (Event("transfer", {"seat": seat, "card": NAME[card], "defender": receiver}),)


def throw_apply(state: Bouts, action: Action) -> Step:
    """D8, D10: add a card of a rank on the table, or pass."""
    seat = state.turn
    if action == "pass":
        after = replace(state, passed=state.passed | 1 << seat)
        return ask(after, [Event("pass", {"seat": seat})])
    card = THROW.card.get(action, 0)
    if not card & state.hands[seat] & state.ranks:
        raise refuse(seat, action)
    after = replace(
        state,
        hands=with_hand(state.hands, seat, state.hands[seat] ^ card),
        phase="defend",
        turn=state.defender,
        attacks=(*state.attacks, card),
        beats=(*state.beats, 0),
        passed=state.passed if state.taking else 0,
    )
    event = Event("throw", {"seat": seat, "card": NAME[card]})
    return ask(after, [event]) if state.taking else (after, (event,))


def ask(state: Bouts, events: list[Event]) -> Step:
    """Ask the next seat that may throw in (D8, D10), or end the bout when there is none or no room (D9)."""
    if len(state.attacks) < state.limit:
        seats = state.rules.seats
        closed = state.passed | 1 << state.defender
        for step in range(seats):
            seat = (state.leader + step) % seats
            if state.hands[seat] & state.ranks and not closed >> seat & 1:
                return replace(state, phase="throw", turn=seat), tuple(events)
    return end_bout(state, events)


def end_bout(state: Bouts, events: list[Event]) -> Step:
    """D10, D11: clear the table and settle who is to attack."""
    defender = state.defender
    cards = sum(state.attacks) + sum(state.beats)
    told = {"seat": defender, "cards": names(cards)}
    if state.taking:
        events.append(Event("taken", told))
        hands = with_hand(state.hands, defender, state.hands[defender] | cards)
        after = replace(state, hands=hands, takes_in_row=state.takes_in_row + 1)
        return close_bout(after, next_holder(hands, defender), events)
    events.append(Event("beaten_off", told))
    after = replace(state, discard=state.discard | cards, takes_in_row=0)
    leader = defender if state.hands[defender] else next_holder(state.hands, defender)
    return close_bout(after, leader, events)


def close_bout(state: Bouts, leader: Seat, events: list[Event]) -> Step:
    """D12, D14: let seats without cards go out, then open the next bout or end the deal."""
    out = list(state.out)
    for seat, hand in enumerate(state.hands):
        if not hand and out[seat] is None:
            out[seat] = state.bout
            events.append(Event("out", {"seat": seat, "bout": state.bout}))
    cleared = replace(state, out=tuple(out), attacks=(), beats=(), ranks=0, taking=False, passed=0)
    if out.count(None) > 1 and state.takes_in_row < 2 * len(state.rules.deck):
        return open_bout(cleared, leader), tuple(events)
    outcome = settle(cleared)
    events.append(Event("end", {"places": outcome.places, "reason": outcome.reason}))
    over = replace(cleared, phase="over", turn=NOBODY, leader=NOBODY, defender=NOBODY, limit=0, outcome=outcome)
    return over, tuple(events)


def open_bout(state: Bouts, leader: Seat) -> Bouts:
    """D6, D7: the leader is to attack the next seat with cards."""
    defender = next_holder(state.hands, leader)
    return replace(
        state,
        phase="attack",
        turn=leader,
        leader=leader,
        defender=defender,
        limit=attack_limit(state, defender),
        bout=state.bout + 1,
    )


def settle(state: Bouts) -> Outcome:
    """D12, D14: who lost, from a closed bout.

    Returns:
        Points are the cards still held, negative.
    """
    rules, bout = state.rules, state.bout
    held = [hand.bit_count() for hand in state.hands]
    late = [bout + (1 if rules.stall_draw else held[seat]) if o is None else o for seat, o in enumerate(state.out)]
    holders = state.out.count(None)
    reason = ("draw", "durak", "stalled")[min(holders, 2)]
    if holders == 0 and rules.attacker_wins:
        late[state.defender] = bout + 1
        reason = "attacker wins"
    if not rules.by_places:
        last = max(late)
        shared = last == bout or (holders > 1 and rules.stall_draw)
        late = [int(when == last and not shared) for when in late]
    return Outcome(places_by_points([-when for when in late]), tuple(-count for count in held), reason)


def attack_limit(state: Bouts, defender: Seat) -> int:
    """D9: the most attack cards of a bout, when `defender` becomes the defender."""
    rules = state.rules
    cards = state.hands[defender].bit_count()
    return min(cards, rules.max_attack, cards if state.discard else rules.first_bout_max)


def next_holder(hands: Sequence[Cards], seat: Seat) -> Seat:
    """Return the next seat with cards clockwise from `seat`, never itself, or `NOBODY`."""
    for step in range(1, len(hands)):
        other = (seat + step) % len(hands)
        if hands[other]:
            return other
    return NOBODY


def with_hand(hands: tuple[Cards, ...], seat: Seat, hand: Cards) -> tuple[Cards, ...]:
    """Return the hands with one of them replaced."""
    return (*hands[:seat], hand, *hands[seat + 1 :])


def refuse(seat: Seat, action: Action) -> IllegalAction:
    """Return the error for an action that is not legal now."""
    return IllegalAction(f"seat {seat} may not {action!r} now")
