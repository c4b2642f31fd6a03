"""Phase one of durak: cards are drawn open and capture lower ones of their suit until the deck is used up (D1 - D5)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from arena.errors import IllegalAction
from arena.games.durak_bouts import Bouts, begin_bouts, refuse, with_hand
from arena.games.durak_cards import CAPTURE, LOWER, NAME, SUIT, Card, Cards, names
from arena.games.durak_rules import Rules
from arena.luck import Stream
from arena.rules import Action, Data, Event, Outcome, Seat

Step: TypeAlias = "tuple[Collecting | Bouts, tuple[Event, ...]]"
MAX_REDEALS = 20
"""D5: after so many an empty hand is accepted."""


class Collecting(msgspec.Struct, frozen=True):
    """A position of phase one: the seat to move chooses which open card its drawn card captures.

    Attributes:
        deck: the whole deck, top first.
        taken: the number of cards already taken from it.
        open: the cards beside the deck.
        drawn: the card that captures, in nobody's hand yet; 0 only while cards are being drawn.
        redeals: how often phase one was started again (D5).
    """

    rules: Rules
    deck: tuple[Card, ...]
    taken: int
    open: Cards
    hands: tuple[Cards, ...]
    turn: Seat
    drawn: Card
    redeals: int
    outcome: Outcome | None = None

    @property
    def actors(self) -> tuple[Seat, ...]:
        """The seat to choose."""
        return (self.turn,)

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        """Return the legal actions in ASCII order."""
        return tuple(CAPTURE.actions(self.open & LOWER[self.drawn])) if seat == self.turn else ()

    def apply(self, seat: Seat, action: Action) -> Step:
        """Return the next position in which somebody must choose and what happened."""
        if seat != self.turn:
            raise IllegalAction(f"it is not seat {seat}'s turn")
        card = CAPTURE.card.get(action, 0)
        if not card & self.open & LOWER[self.drawn]:
            raise refuse(seat, action)
        after = replace(
            self,
            open=self.open ^ card,
            hands=with_hand(self.hands, seat, self.hands[seat] | card | self.drawn),
        )
        return draw_on(after, [capture(seat, card, self.drawn)], may_capture=self.rules.chain)

    def observation(self, seat: Seat | None) -> Data:
        """Return the table; all is public but the order of the deck, which only a spectator sees."""
        seats = self.rules.seats
        seen: dict[str, object] = {
            "seat": seat,
            "seats": seats,
            "phase": "collect",
            "turn": self.turn,
            "hands": tuple(map(names, self.hands)),
            "trump": None,
            "deck": len(self.deck) - self.taken,
            "open": names(self.open),
            "drawn": NAME[self.drawn],
            "redeals": self.redeals,
            "table": (),
            "leader": None,
            "defender": None,
            "limit": 0,
            "taking": False,
            "passed": (),
            "discard": (),
            "out": (None,) * seats,
            "bout": 0,
            "takes_in_row": 0,
        }
        if seat is None:
            seen["deck_cards"] = tuple(NAME[card] for card in self.deck[self.taken :])
        return seen


def begin_collecting(rules: Rules, deck: tuple[Card, ...], redeals: int, events: list[Event]) -> Step:
    """Open the top card and draw on to the first choice."""
    events.append(Event("open", {"card": NAME[deck[0]]}))
    start = Collecting(
        rules=rules,
        deck=deck,
        taken=1,
        open=deck[0],
        hands=(0,) * rules.seats,
        turn=0,
        drawn=0,
        redeals=redeals,
    )
    return draw_on(start, events, may_capture=True)


def draw_on(state: Collecting, events: list[Event], *, may_capture: bool) -> Step:
    """Draw cards until a seat has a choice or the deck is used up (D1 - D3).

    `may_capture` is False when the seat to move has just captured and only lays its next card (D3 without `chain`).
    """
    rules, deck, taken, seat = state.rules, state.deck, state.taken, state.turn
    hands, beside = list(state.hands), state.open
    while True:
        card = deck[taken]
        taken += 1
        events.append(Event("draw", {"seat": seat, "card": NAME[card]}))
        if taken == len(deck):
            hands[seat] |= beside | card
            events.append(Event("trump", {"suit": NAME[card][1]}))
            events.append(Event("collect_end", {"seat": seat, "cards": names(beside | card)}))
            return end_collecting(state, SUIT[card], tuple(hands), events)
        lower = beside & LOWER[card] if may_capture else 0
        if lower & (lower - 1):
            after = replace(state, taken=taken, open=beside, hands=tuple(hands), turn=seat, drawn=card)
            return after, tuple(events)
        if lower:
            events.append(capture(seat, lower, card))
            hands[seat] |= lower | card
            beside ^= lower
            may_capture = rules.chain
        else:
            beside |= card
            seat = (seat + 1) % rules.seats
            may_capture = True


def end_collecting(state: Collecting, trump: Cards, hands: tuple[Cards, ...], events: list[Event]) -> Step:
    """D5: start phase one again where that is asked for, else go on to the bouts."""
    rules, number = state.rules, state.redeals + 1
    if rules.redeal_if_empty and 0 in hands and number <= MAX_REDEALS:
        events.append(Event("redeal", {"number": number}))
        deck = tuple(Stream(rules.seed, "redeal", number).shuffled(rules.deck))
        return begin_collecting(rules, deck, number, events)
    return begin_bouts(rules, trump, hands, state.redeals, events)


def capture(seat: Seat, card: Card, drawn: Card) -> Event:
    """Return the event of a drawn card that takes an open one."""
    return Event("capture", {"seat": seat, "card": NAME[card], "by": NAME[drawn]})
