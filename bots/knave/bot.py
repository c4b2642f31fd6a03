"""Durak by playing out: try each action, let everybody go on by a rule of thumb, keep what comes out best.

Hands are public, so a play-out needs no guessing but for the order of the deck in phase one. In some the rule slips now
and then: otherwise every action would be tried against one line of play only.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeAlias

from arena_bot import Ask, run

RANKS = "23456789TJQKA"
SUITS = "cdhs"
SLIPS = (0.0, 0.0, 0.05, 0.05, 0.05, 0.05)
"""How often the rule slips in each play-out of an action: passes, takes, or spares its lowest card for once."""
DECKS = 10
"""How many orders of the unseen deck are tried in phase one."""

LONGEST_ROW = 20
"""A play-out stops after more takes in a row."""

Cards: TypeAlias = int
"""A set of cards, one bit each, by rank and then by suit: the lowest bit is the lowest card."""

CARD = {rank + suit: 1 << 4 * r + s for r, rank in enumerate(RANKS) for s, suit in enumerate(SUITS)}
SUIT = {suit: sum(card for name, card in CARD.items() if name[1] == suit) for suit in SUITS}
ALL = sum(CARD.values())
SUIT_OF = {card: SUIT[name[1]] for name, card in CARD.items()}
HIGHER = {card: suit & ~(2 * card - 1) for card, suit in SUIT_OF.items()}
LOWER = {card: suit & (card - 1) for card, suit in SUIT_OF.items()}
RANK = {
    card: sum(other for other_name, other in CARD.items() if other_name[0] == name[0]) for name, card in CARD.items()
}


class Bout:
    """A position of phase two, changed in place."""

    def __init__(self, hands: list[Cards], trump: Cards, options: dict[str, Any]) -> None:
        self.hands = hands
        self.trump = trump
        self.options = options
        self.max_attack = 52 if options["max_attack"] == "none" else options["max_attack"]
        self.attacks: list[Cards] = []
        self.beats: list[Cards] = []
        self.ranks = 0
        self.leader = self.defender = self.turn = 0
        self.limit = 0
        self.phase = "attack"
        self.passed = 0
        self.is_taking = False
        self.was_beaten_off = False
        self.takes = 0
        self.bout = 0
        self.out = [0] * len(hands)

    def copy(self) -> Bout:
        twin = Bout.__new__(Bout)
        twin.__dict__.update(self.__dict__)
        twin.hands = self.hands[:]
        twin.out = self.out[:]
        twin.attacks = self.attacks[:]
        twin.beats = self.beats[:]
        return twin

    def act(self, verb: str, card: Cards, target: Cards) -> None:
        """Apply an action of the seat to move; `target` is the attack card that is beaten."""
        match verb:
            case "attack":
                self.lay(card)
            case "throw":
                self.passed = self.passed if self.is_taking else 0
                self.lay(card)
            case "beat":
                self.beat(card, target)
            case "take":
                self.is_taking = True
                self.passed = 0
                self.go_on()
            case "pass":
                self.passed |= 1 << self.turn
                self.go_on()
            case "transfer":
                self.leader = self.turn
                self.defender = self.next_holder(self.turn)
                self.limit = self.attack_limit()
                self.lay(card)

    def lay(self, card: Cards) -> None:
        self.hands[self.turn] ^= card
        self.attacks.append(card)
        self.beats.append(0)
        self.ranks |= RANK[card]
        if self.is_taking:
            self.go_on()
        else:
            self.phase, self.turn = "defend", self.defender

    def beat(self, card: Cards, target: Cards) -> None:
        self.hands[self.turn] ^= card
        self.beats[self.attacks.index(target)] = card
        self.ranks |= RANK[card]
        if 0 not in self.beats:
            self.passed = 0
            self.go_on()

    def go_on(self) -> None:
        """Ask the next seat that may throw in, or end the bout."""
        may_throw = len(self.attacks) < self.limit and (not self.is_taking or self.options["throw_after_take"])
        seats = len(self.hands)
        for step in range(seats if may_throw else 0):
            seat = (self.leader + step) % seats
            if seat != self.defender and not self.passed >> seat & 1 and self.hands[seat] & self.ranks:
                self.phase, self.turn = "throw", seat
                return
        self.end_bout()

    def end_bout(self) -> None:
        defender = self.defender
        if self.is_taking:
            self.hands[defender] |= sum(self.attacks) + sum(self.beats)
            self.takes += 1
        else:
            self.was_beaten_off = True
            self.takes = 0
        may_lead = not self.is_taking and self.hands[defender]
        self.open_bout(defender if may_lead else self.next_holder(defender))

    def open_bout(self, leader: int) -> None:
        self.attacks, self.beats = [], []
        self.ranks = self.passed = 0
        self.is_taking = False
        self.bout += 1
        for seat, hand in enumerate(self.hands):
            if not hand and not self.out[seat]:
                self.out[seat] = self.bout
        if self.holders() < 2 or self.takes > LONGEST_ROW:
            self.phase = "over"
            return
        self.phase = "attack"
        self.leader = self.turn = leader
        self.defender = self.next_holder(leader)
        self.limit = self.attack_limit()

    def attack_limit(self) -> int:
        first = self.options["first_bout_max"]
        most = min(self.max_attack, self.hands[self.defender].bit_count())
        return most if first == "none" or self.was_beaten_off else min(most, first)

    def holders(self) -> int:
        return sum(1 for hand in self.hands if hand)

    def next_holder(self, seat: int) -> int:
        seats = len(self.hands)
        for step in range(1, seats):
            if self.hands[(seat + step) % seats]:
                return (seat + step) % seats
        return seat

    def thumb(self, random: Random, slip: float) -> tuple[str, Cards, Cards]:
        """Attack and throw low cards but no trumps, beat as cheaply as possible, take only what cannot be beaten."""
        hand = self.hands[self.turn]
        slips = slip > 0 and random.random() < slip
        if self.phase == "attack":
            return "attack", self.cheapest(hand, slips), 0
        if self.phase == "throw":
            plain = hand & self.ranks & ~self.trump
            return ("throw", plain & -plain, 0) if plain and not slips else ("pass", 0, 0)
        for attack, beat in zip(self.attacks, self.beats, strict=True):
            if not beat:
                able = hand & (HIGHER[attack] if attack & self.trump else HIGHER[attack] | self.trump)
                if slips or not able:
                    break
                return "beat", self.cheapest(able, False), attack
        return "take", 0, 0

    def cheapest(self, cards: Cards, slips: bool) -> Cards:
        plain = cards & ~self.trump or cards
        rest = plain & (plain - 1)
        return rest & -rest if slips and rest else plain & -plain

    def result(self, seat: int) -> float:
        """Return 0 for the durak and up to 1 for the others, more for going out sooner."""
        if self.hands[seat]:
            most = max(hand.bit_count() for hand in self.hands)
            return 0.0 if self.hands[seat].bit_count() == most else 0.5
        if self.holders() == 0 and len(self.hands) == 2:
            return 0.5
        return 1.0 - 0.01 * min(self.out[seat], 40)


def play_on(bout: Bout, random: Random, slip: float) -> Bout:
    while bout.phase != "over":
        bout.act(*bout.thumb(random, slip))
    return bout


def set_of(names: list[str]) -> Cards:
    return sum(CARD[name] for name in names)


def position(ask: Ask) -> Bout:
    """Return the position of phase two that is seen."""
    seen = ask.observation
    bout = Bout([set_of(hand) for hand in seen["hands"]], SUIT[seen["trump"]], ask.options)
    bout.attacks = [CARD[attack] for attack, _ in seen["table"]]
    bout.beats = [CARD[beat] if beat else 0 for _, beat in seen["table"]]
    for card in (*bout.attacks, *bout.beats):
        bout.ranks |= RANK[card] if card else 0
    bout.leader, bout.defender, bout.turn = seen["leader"], seen["defender"], seen["turn"]
    bout.limit, bout.phase, bout.is_taking = seen["limit"], seen["phase"], seen["taking"]
    bout.passed = sum(1 << seat for seat in seen["passed"])
    bout.was_beaten_off = bool(seen["discard"])
    return bout


def collected(ask: Ask, capture: Cards, deck: list[Cards]) -> Bout:
    """Capture a card, draw the deck in this order, capturing high, and return the start of phase two."""
    seen = ask.observation
    hands = [set_of(hand) for hand in seen["hands"]]
    seat, beside = ask.seat, set_of(seen["open"]) ^ capture
    hands[seat] |= capture | CARD[seen["drawn"]]
    may_capture = ask.options["chain"]
    for card in deck[:-1]:
        lower = beside & LOWER[card] if may_capture else 0
        if lower:
            taken = 1 << lower.bit_length() - 1
            hands[seat] |= taken | card
            beside ^= taken
            may_capture = ask.options["chain"]
        else:
            beside |= card
            seat = (seat + 1) % ask.seats
            may_capture = True
    hands[seat] |= beside | deck[-1]
    trump = SUIT_OF[deck[-1]]
    lowest = next(card for card in sorted(HIGHER) if card & trump and any(card & hand for hand in hands))
    bout = Bout(hands, trump, ask.options)
    bout.open_bout(next(seat for seat, hand in enumerate(hands) if hand & lowest))
    return bout


def choose_capture(ask: Ask) -> str:
    seen = ask.observation
    known = set_of([card for hand in seen["hands"] for card in hand] + seen["open"] + [seen["drawn"]])
    cards = ALL if ask.options["deck"] == 52 else ALL & ~(CARD["6c"] - 1)
    unseen = [card for card in HIGHER if card & cards & ~known]
    totals = dict.fromkeys(ask.legal, 0.0)
    for _ in range(DECKS):
        ask.rng.shuffle(unseen)
        for action in ask.legal:
            totals[action] += play_on(collected(ask, CARD[action[-2:]], unseen), ask.rng, 0.0).result(ask.seat)
    return max(ask.legal, key=totals.__getitem__)


def choose(ask: Ask) -> str:
    if len(ask.legal) == 1:
        return ask.legal[0]
    if ask.observation["phase"] == "collect":
        return choose_capture(ask)
    now = position(ask)
    best, best_total = "", -1.0
    for action in ask.legal:
        verb, *cards = action.split(":")
        own, target = (CARD[cards[-1]], CARD[cards[0]]) if cards else (0, 0)
        total = 0.0
        for slip in SLIPS:
            after = now.copy()
            after.act(verb, own, target)
            total += play_on(after, ask.rng, slip).result(ask.seat)
        if total > best_total:
            best, best_total = action, total
    return best


if __name__ == "__main__":
    run(choose, name="knave", version="1", games=["durak"])
