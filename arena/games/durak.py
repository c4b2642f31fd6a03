"""Durak nabornyj: collect the deck card by card, then play durak with open hands; the last holder is the durak.

Source: the Russian rules text "Дурак наборный" (one deck of 36 or 52, 2 - 6 players), which invokes ordinary
podkidnoy and perevodnoy durak for phase two.

Decisions, where the text is silent, contradicts itself or would never end:

D1  The last card of the deck makes trump; it and every open card go to the seat that drew it. Phase one is over.
D2  A drawn card that is higher than no open card of its suit is laid open; the turn passes.
D3  Else it captures exactly one of them: the seat chooses, the referee takes a single one. Then the seat lays its next
    card without capturing. Option `chain`: that card is compared like the first, until one is laid.
D4  Drawn cards are public, so hands are too; only the order of the deck is hidden.
D5  A seat without cards after phase one is out, best place. Option `redeal_if_empty`: start again, at most 20 times.
D6  The holder of the lowest trump leads, one card, any.
D7  The next seat with cards defends: beats open attack cards in any order, or takes at any time.
D8  When all is beaten the others are asked one at a time, clockwise from the leader, to throw in; each thrown card
    starts the asking anew. When all have passed, the cards leave the game.
D9  Attack cards of a bout: at most 6 and at most the defender's hand when it became the defender. Options
    `max_attack`, `first_bout_max` (until a bout has been beaten off).
D10 After `take` the others may add cards, one round, within the same limit. Option `throw_after_take`.
D11 After beating off the defender attacks, after a take the next seat with cards.
D12 Empty hands go out at the end of a bout. The last holder is the durak; if the last go out together it is a draw.
    Options `score` (places by bout of going out), `simultaneous` (the last defender is the durak).
D13 Options `transfer` and `first_transfer`: pass the attack on with a card of its rank while nothing is beaten.
D14 After 2·deck takes in a row the deal stops and the most cards lose. Option `stall` (draw).

Phase one is `durak_collecting`, phase two `durak_bouts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arena.cards import RANKS, sorted_deck
from arena.games.durak_cards import CARD
from arena.games.durak_collecting import MAX_REDEALS, begin_collecting
from arena.games.durak_rules import number_or, rules_of
from arena.rules import Action, Event, Option, Options, OutcomeType, Seat, State

SCHEMA: Mapping[str, Option] = {
    "chain": Option((False, True)),
    "deck": Option((36, 52), default=lambda seats: 36 if seats <= 3 else 52),
    "first_bout_max": Option(("none", 5)),
    "first_transfer": Option((True, False)),
    "max_attack": Option((6, "none"), low=1, high=51),
    "redeal_if_empty": Option((False, True)),
    "score": Option(("durak", "places")),
    "simultaneous": Option(("draw", "attacker_wins")),
    "stall": Option(("by_hand", "draw")),
    "throw_after_take": Option((True, False)),
    "transfer": Option((False, True)),
}


class Durak:
    """The rules; see the module's decisions."""

    name = "durak"
    version = 1
    seats = range(2, 7)
    schema = SCHEMA

    def deck(self, options: Options) -> tuple[str, ...]:
        """Return 36 cards (six to ace) or 52."""
        return sorted_deck("6" if options["deck"] == 36 else "2")

    def initial_state(
        self, options: Options, seats: int, deck: Sequence[str], seed: bytes
    ) -> tuple[State, tuple[Event, ...]]:
        """Open the top card and draw on to the first choice, or to the first bout if nobody has one."""
        rules = rules_of(options, seats, deck, seed)
        return begin_collecting(rules, tuple(CARD[card] for card in deck), 0, [])

    def outcome_type(self, options: Options) -> OutcomeType:
        """Return `ranking` when places go by the bout of going out."""
        return "ranking" if options["score"] == "places" else "single_loser"

    def max_decisions(self, options: Options, seats: int) -> int:
        """Return a bound on the number of actions of a deal of d cards among p seats.

        Phase one: each choice spends a drawn card, so fewer than d a time and at most 21 times (D5).

        Bouts: one that is beaten off takes two cards or more out of the game, so there are at most d/2 of them. Each
        ends a run of at most 2d - 1 takes, and a last run has at most 2d (D14): d/2 + (2d - 1)·d/2 + 2d = d² + 2d.

        A bout has n attack cards, n <= a = min(max_attack, d - 1), and b beats. Each time all is beaten at most p - 1
        seats pass, and that is b times at most. Beaten off (b = n): n + b + (p - 1)b <= (p + 1)a actions. Taken
        (b < n): n + b + 1, (p - 1)b passes and p - 1 more after `take`: again at most (p + 1)a.
        """
        cards = len(self.deck(options))
        attack_cards = min(number_or(options["max_attack"], cards), cards - 1)
        collecting = cards * (1 + MAX_REDEALS if options["redeal_if_empty"] else 1)
        return collecting + (cards**2 + 2 * cards) * (seats + 1) * attack_cards

    def house_action(self, state: State, seat: Seat) -> Action:
        """Pass, take, else play the lowest card that is no trump, else the lowest trump."""
        legal = state.legal_actions(seat)
        for action in ("pass", "take"):
            if action in legal:
                return action
        trump = state.observation(seat)["trump"]
        return min(legal, key=lambda action: (action[-1] == trump, RANKS.index(action[-2])))


DURAK = Durak()
