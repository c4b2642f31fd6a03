"""Durak a second time: mutable, naive and written from docs/rules.md and protocol.md alone.

It shares no code with arena: cards are strings, hands are lists, everything is found by searching, and who is asked
next is never stored but worked out anew from what lies on the table. Decision numbers are those of docs/rules.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

RANKS = ["2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K", "A"]
SUITS = ["c", "d", "h", "s"]
ALL_CARDS = [r + s for s in SUITS for r in RANKS]
REDEALS = 20

Event = dict[str, object]


def rank(card: str) -> int:
    return RANKS.index(card[0])


def in_order(cards: list[str]) -> list[str]:
    """Return a list of cards as protocol.md shows lists: by suit, then by rank."""
    return sorted(cards, key=ALL_CARDS.index)


def shuffled(cards: list[str], key: bytes, purpose: str, number: int) -> list[str]:
    """Shuffle by the stream (key, purpose, number) of protocol.md, Luck."""
    named = b""
    for part in [b"arena-luck-1", key, purpose.encode(), str(number).encode()]:
        named += len(part).to_bytes(4, "big") + part
    output = hashlib.shake_256(named).digest(8 * 1000)
    words = [int.from_bytes(output[i : i + 8], "big") for i in range(0, len(output), 8)]
    result = list(cards)
    for i in reversed(range(1, len(result))):
        word = words.pop(0)
        while word >= 2**64 - 2**64 % (i + 1):
            word = words.pop(0)
        j = word % (i + 1)
        result[i], result[j] = result[j], result[i]
    return result


class Table:
    """One deal, from the first card to the end.

    Args:
        options: every rule option with its value.
        seats: how many play.
        deck: the cards, top first.
        seed: the deal seed.
    """

    def __init__(self, options: Mapping[str, object], seats: int, deck: list[str], seed: bytes) -> None:
        self.options = options
        self.seats = seats
        self.size = len(deck)
        self.seed = seed
        self.happened: list[Event] = []
        self.redeals = 0
        self.trump: str | None = None
        self.discard: list[str] = []
        self.out: list[int | None] = [None] * seats
        self.bout = 0
        self.takes_in_row = 0
        self.beaten_off_before = False
        self.leader: int | None = None
        self.defender: int | None = None
        self.limit = 0
        self.table: list[list[str | None]] = []
        self.taking = False
        self.passed: list[int] = []
        self.outcome: dict[str, object] | None = None
        self.collect(list(deck))
        self.opening = self.told()

    # What happened

    def tell(self, kind: str, **data: object) -> None:
        self.happened.append({"kind": kind, **data, "seen_by": None})

    def told(self) -> list[Event]:
        happened, self.happened = self.happened, []
        return happened

    # Phase one

    def collect(self, deck: list[str]) -> None:
        self.deck = deck
        self.hands: list[list[str]] = [[] for _ in range(self.seats)]
        self.open = [self.deck.pop(0)]
        self.drawn: str | None = None
        self.collector = 0
        self.tell("open", card=self.open[0])
        self.draw()

    def lower(self, card: str) -> list[str]:
        return [other for other in self.open if other[1] == card[1] and rank(other) < rank(card)]

    def draw(self, may_capture: bool = True) -> None:
        """Let the collector draw, and the seats after it, until one must choose or the deck is used up."""
        while True:
            card = self.deck.pop(0)
            self.tell("draw", seat=self.collector, card=card)
            if not self.deck:  # D1
                self.finish_collecting(card)
                return
            candidates = self.lower(card) if may_capture else []
            if len(candidates) > 1:  # D3, until it has chosen the drawn card is in nobody's hand
                self.drawn = card
                return
            if candidates:  # D3
                self.capture(candidates[0], card)
                may_capture = self.options["chain"] is True
            else:  # D2
                self.open.append(card)
                self.collector = (self.collector + 1) % self.seats
                may_capture = True

    def capture(self, card: str, by: str) -> None:
        self.open.remove(card)
        self.hands[self.collector] += [card, by]
        self.tell("capture", seat=self.collector, card=card, by=by)

    def finish_collecting(self, card: str) -> None:
        self.trump = card[1]
        self.tell("trump", suit=self.trump)
        cards = in_order([*self.open, card])
        self.hands[self.collector] += cards
        self.open = []
        self.tell("collect_end", seat=self.collector, cards=cards)
        if [] in self.hands and self.options["redeal_if_empty"] is True and self.redeals < REDEALS:  # D5
            self.redeals += 1
            self.trump = None
            self.tell("redeal", number=self.redeals)
            all_cards = in_order([c for hand in self.hands for c in hand])
            self.collect(shuffled(all_cards, self.seed, "redeal", self.redeals))
            return
        self.go_out()
        if len(self.holders()) == 1:
            self.end_durak(self.holders()[0], "durak")
            return
        lowest = min((c for hand in self.hands for c in hand if c[1] == self.trump), key=rank)
        self.start_bout(next(s for s in range(self.seats) if lowest in self.hands[s]))  # D6

    # Seats

    def clockwise(self, first: int) -> list[int]:
        return [(first + i) % self.seats for i in range(self.seats)]

    def holders(self) -> list[int]:
        return [s for s in range(self.seats) if self.hands[s]]

    def next_holder(self, seat: int) -> int:
        """Return the next seat with cards, clockwise after `seat`; `seat` itself only if no other has any."""
        return next(s for s in self.clockwise(seat + 1) if self.hands[s])

    # Phase two

    def limit_for(self, defender: int) -> int:  # D9
        limits = [len(self.hands[defender])]
        for name in ["max_attack", "first_bout_max"]:
            value = self.options[name]
            if isinstance(value, int) and not (name == "first_bout_max" and self.beaten_off_before):
                limits.append(value)
        return min(limits)

    def start_bout(self, leader: int) -> None:
        self.bout += 1
        self.table = []
        self.taking = False
        self.passed = []
        self.leader = leader
        self.defender = self.next_holder(leader)
        self.limit = self.limit_for(self.defender)

    def table_ranks(self) -> list[str]:
        return [card[0] for pair in self.table for card in pair if card is not None]

    def throwable(self, seat: int) -> list[str]:
        ranks = self.table_ranks()
        return [card for card in self.hands[seat] if card[0] in ranks]

    def asked(self) -> tuple[str, int] | None:
        """Return what is asked and of whom; None when nobody is: the bout, or the deal, is over."""
        if self.outcome is not None:
            return None
        if self.drawn is not None:
            return "collect", self.collector
        assert self.leader is not None
        assert self.defender is not None
        if not self.table:
            return "attack", self.leader
        if not self.taking and any(own is None for _, own in self.table):
            return "defend", self.defender
        if len(self.table) >= self.limit or (self.taking and self.options["throw_after_take"] is False):
            return None
        for seat in self.clockwise(self.leader):  # D8, D10
            if seat != self.defender and seat not in self.passed and self.throwable(seat):
                return "throw", seat
        return None

    def can_beat(self, own: str, attack: str) -> bool:  # D7
        if own[1] == attack[1]:
            return rank(own) > rank(attack)
        return own[1] == self.trump

    def transferable(self, seat: int) -> list[str]:  # D13
        if self.options["transfer"] is False or (self.options["first_transfer"] is False and self.bout == 1):
            return []
        receiver = self.next_holder(seat)
        if receiver == seat or len(self.table) + 1 > self.limit_for(receiver):
            return []
        if any(own is not None for _, own in self.table):
            return []
        attack = self.table[0][0]
        assert attack is not None
        return [card for card in self.hands[seat] if card[0] == attack[0]]

    def actors(self) -> list[int]:
        asked = self.asked()
        return [] if asked is None else [asked[1]]

    def legal(self, seat: int) -> list[str]:
        """Return the legal actions of a seat, in ASCII order."""
        asked = self.asked()
        if asked is None or asked[1] != seat:
            return []
        hand = self.hands[seat]
        if asked[0] == "collect":
            assert self.drawn is not None
            return sorted(f"capture:{card}" for card in self.lower(self.drawn))
        if asked[0] == "attack":
            return sorted(f"attack:{card}" for card in hand)
        if asked[0] == "throw":
            return sorted(["pass", *(f"throw:{card}" for card in self.throwable(seat))])
        unbeaten = [attack for attack, own in self.table if own is None and attack is not None]
        beats = [f"beat:{attack}:{own}" for attack in unbeaten for own in hand if self.can_beat(own, attack)]
        return sorted(["take", *beats, *(f"transfer:{card}" for card in self.transferable(seat))])

    def house(self, seat: int) -> str:
        """Return what the house plays for a seat that has faulted."""
        legal = self.legal(seat)
        if "pass" in legal or "take" in legal:
            return "pass" if "pass" in legal else "take"
        by_rank = sorted(legal, key=lambda action: (rank(action[-2:]), SUITS.index(action[-1])))
        plain = [action for action in by_rank if action[-1] != self.trump]
        return [*plain, *by_rank][0]

    def most_actions(self) -> int:
        """Return the bound of D14."""
        limit = self.options["max_attack"]
        attacks = min(limit, self.size - 1) if isinstance(limit, int) else self.size - 1
        choices = 21 * self.size if self.options["redeal_if_empty"] else self.size
        return choices + (self.size**2 + 2 * self.size) * (self.seats + 1) * attacks

    def outcome_type(self) -> str:
        return "ranking" if self.options["score"] == "places" else "single_loser"

    def apply(self, seat: int, action: str) -> list[Event]:
        """Play a legal action and return what happened."""
        if action not in self.legal(seat):
            raise ValueError(f"seat {seat} cannot {action}")
        word, *cards = action.split(":")
        if word == "capture":
            by, self.drawn = self.drawn, None
            assert by is not None
            self.capture(cards[0], by)
            self.draw(may_capture=self.options["chain"] is True)
            return self.told()
        if word == "pass":
            self.passed.append(seat)
            self.tell("pass", seat=seat)
        elif word == "take":
            self.taking = True
            self.passed = []
            self.tell("take", seat=seat)
        elif word == "beat":
            next(pair for pair in self.table if pair[0] == cards[0])[1] = cards[1]
            self.hands[seat].remove(cards[1])
            self.tell("beat", seat=seat, attack=cards[0], card=cards[1])
        else:
            self.add_attack(seat, word, cards[0])
        if self.asked() is None:
            self.end_bout()
        return self.told()

    def add_attack(self, seat: int, word: str, card: str) -> None:
        self.hands[seat].remove(card)
        self.table.append([card, None])
        if word == "throw":
            if not self.taking:  # after a take there is one round only, D10
                self.passed = []
            self.tell("throw", seat=seat, card=card)
            return
        if word == "transfer":
            self.leader = seat
            self.defender = self.next_holder(seat)
            self.limit = self.limit_for(self.defender)
        self.tell(word, seat=seat, card=card, defender=self.defender)

    # Ends

    def end_bout(self) -> None:
        assert self.defender is not None
        cards = in_order([card for pair in self.table for card in pair if card is not None])
        self.table = []
        if self.taking:
            self.hands[self.defender] += cards
            self.takes_in_row += 1
            self.tell("taken", seat=self.defender, cards=cards)
        else:
            self.discard += cards
            self.takes_in_row = 0
            self.beaten_off_before = True
            self.tell("beaten_off", seat=self.defender, cards=cards)
        self.go_out()
        holders = self.holders()
        if len(holders) == 1:
            self.end_durak(holders[0], "durak")
        elif not holders and self.options["simultaneous"] == "attacker_wins":
            self.end_durak(self.defender, "attacker wins")
        elif not holders:
            self.end([self.out_rank(s) for s in range(self.seats)], "draw")
        elif self.takes_in_row == 2 * self.size:
            self.end_stalled()
        elif self.taking or not self.hands[self.defender]:  # D11
            self.start_bout(self.next_holder(self.defender))
        else:
            self.start_bout(self.defender)

    def go_out(self) -> None:
        for seat in range(self.seats):
            if not self.hands[seat] and self.out[seat] is None:
                self.out[seat] = self.bout
                self.tell("out", seat=seat, bout=self.bout)

    def out_rank(self, seat: int) -> int:
        """Return when a seat went out, as far as places count it: lower is better."""
        bout = self.out[seat]
        return bout if bout is not None and self.options["score"] == "places" else 0

    def end_durak(self, durak: int, reason: str) -> None:
        self.end([self.out_rank(s) if s != durak else 1_000_000 for s in range(self.seats)], reason)

    def end_stalled(self) -> None:  # D14
        behind = 1_000_000
        counts = [len(hand) for hand in self.hands]
        if self.options["stall"] == "draw":
            in_game = behind if self.options["score"] == "places" else 0
            worth = [in_game if self.hands[s] else self.out_rank(s) for s in range(self.seats)]
        elif self.options["score"] == "places":
            worth = [behind + counts[s] if self.hands[s] else self.out_rank(s) for s in range(self.seats)]
        else:
            worth = [behind if counts[s] == max(counts) else 0 for s in range(self.seats)]
        self.end(worth, "stalled")

    def end(self, worth: list[int], reason: str) -> None:
        """End the deal; `worth` says by seat how badly it did, equal numbers share a place."""
        places = [1 + len([other for other in worth if other < own]) for own in worth]
        points = [0 - len(hand) for hand in self.hands]
        self.outcome = {"places": places, "points": points, "reason": reason}
        self.leader, self.defender, self.limit, self.taking, self.passed = None, None, 0, False, []
        self.tell("end", places=places, reason=reason)

    # What is seen

    def observation(self, seat: int | None) -> dict[str, object]:
        """Return what a seat, or a spectator, sees now."""
        phase, turn = self.asked() or ("over", None)
        seen: dict[str, object] = {
            "seat": seat,
            "seats": self.seats,
            "phase": phase,
            "turn": turn,
            "hands": [in_order(hand) for hand in self.hands],
            "trump": self.trump,
            "deck": len(self.deck),
            "open": in_order(self.open),
            "drawn": self.drawn,
            "redeals": self.redeals,
            "table": [list(pair) for pair in self.table],
            "leader": self.leader,
            "defender": self.defender,
            "limit": self.limit,
            "taking": self.taking,
            "passed": sorted(self.passed),
            "discard": in_order(self.discard),
            "out": list(self.out),
            "bout": self.bout,
            "takes_in_row": self.takes_in_row,
        }
        if seat is None:
            seen["deck_cards"] = list(self.deck)
        return seen
