"""Avalanche by sampling: deal the unseen cards at random, play each action out by a rule of thumb, keep the best.

A play-out goes on until a few avalanches have been settled; what counts is the own pile against the mean of the others.
Every action is tried on the same samples, so that they differ by the action and not by luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from arena_bot import Ask, run

RANKS = "23456789TJQKA*"
STRENGTH = {rank: strength for strength, rank in enumerate(RANKS)}
COPIES = (8,) * 13 + (6,)
HAND = 10
SAMPLES = 24
AVALANCHES = 3
"""A play-out ends when so many have been settled."""

Hand: TypeAlias = list[int]
"""The number of cards of each strength."""
Play: TypeAlias = tuple[int, int]
"""Count and strength; a count of 0 is `snow`."""


class Table:
    """A position with all cards known, changed in place."""

    def __init__(self, hands: list[Hand], stock: list[int], turn: int) -> None:
        self.hands = hands
        self.counts = [sum(hand) for hand in hands]
        self.stock = stock
        self.turn = turn
        self.gains = [0] * len(hands)
        self.plays: list[tuple[int, Play]] = []
        self.lying = 0
        self.settled = 0

    def copy(self) -> Table:
        twin = Table.__new__(Table)
        twin.hands = [hand[:] for hand in self.hands]
        twin.counts = self.counts[:]
        twin.stock = self.stock[:]
        twin.turn = self.turn
        twin.gains = self.gains[:]
        twin.plays = self.plays[:]
        twin.lying = self.lying
        twin.settled = self.settled
        return twin

    def play(self, play: Play) -> bool:
        """Play for the seat to move; return whether the deal goes on."""
        seat, (count, strength) = self.turn, play
        if not count:
            self.hands[seat][self.stock.pop()] += 1
            self.counts[seat] += 1
            self.turn = self.next_holder(seat)
            return True
        self.hands[seat][strength] -= count
        self.counts[seat] -= count
        self.lying += count
        if self.plays:
            before, (n, r) = self.plays[-1]
            if count < n or (count == n and strength < r):
                is_stop = count == n > 1
                self.plays.append((seat, play))
                return self.settle(None if is_stop else before)
        self.plays.append((seat, play))
        if sum(self.counts) == self.counts[seat] or (not self.stock and self.counts.count(0) >= len(self.counts) - 1):
            return self.settle(None)
        self.turn = self.next_holder(seat)
        return True

    def settle(self, owner: int | None) -> bool:
        if owner is not None:
            self.gains[owner] += self.lying
        opener, last = self.plays[0][0], self.plays[-1][0]
        self.plays = []
        self.lying = 0
        self.settled += 1
        seats = len(self.hands)
        for step in range(seats):
            seat = (opener + step) % seats
            while self.stock and self.counts[seat] < HAND:
                self.hands[seat][self.stock.pop()] += 1
                self.counts[seat] += 1
        self.turn = self.next_holder(last)
        return bool(self.stock) or self.counts.count(0) < seats - 1

    def next_holder(self, seat: int) -> int:
        seats = len(self.counts)
        other = (seat + 1) % seats
        while not self.counts[other] and other != seat:
            other = (other + 1) % seats
        return other


def thumb(hand: Hand, before: Play | None) -> Play:
    """Lead as much as possible; else grow as cheaply as possible, else stop, else drop the least."""
    if before is None:
        count = max(hand)
        return count, 13 - hand[::-1].index(count)
    n, r = before
    for s in range(r, 14):
        if hand[s] >= n:
            return n, s
    for s in range(r):
        if hand[s] > n:
            return n + 1, s
    if n > 1 and n in hand:
        return n, hand.index(n)
    for s in range(14):
        if hand[s]:
            return 1, s
    raise ValueError("no cards")


def value(table: Table, play: Play, seat: int) -> float:
    """Return what the seat gains against the mean of the others when it plays this and all go on by the rule."""
    goes_on = table.play(play)
    while goes_on and table.settled < AVALANCHES:
        before = table.plays[-1][1] if table.plays else None
        goes_on = table.play(thumb(table.hands[table.turn], before))
    own = table.gains[seat]
    return own - (sum(table.gains) - own) / (len(table.gains) - 1)


def counted(cards: Sequence[str]) -> Hand:
    hand = [0] * 14
    for card in cards:
        hand[STRENGTH[card]] += 1
    return hand


def sampled(ask: Ask) -> Table:
    """Return the position with the unseen cards dealt at random."""
    seen = ask.observation
    own = counted(seen["hand"])
    unseen = [s for s in range(14) for _ in range(COPIES[s] - own[s] - seen["laid"].get(RANKS[s], 0))]
    ask.rng.shuffle(unseen)
    hands = []
    for seat, count in enumerate(seen["counts"]):
        if seat == ask.seat:
            hands.append(own[:])
            continue
        hand = [0] * 14
        for _ in range(count):
            hand[unseen.pop()] += 1
        hands.append(hand)
    table = Table(hands, unseen, ask.seat)
    table.plays = [(play["seat"], (play["count"], STRENGTH[play["rank"]])) for play in seen["table"]]
    table.lying = sum(play["count"] for play in seen["table"])
    return table


def choose(ask: Ask) -> str:
    if len(ask.legal) == 1:
        return ask.legal[0]
    plays = [(0, 0) if action == "snow" else (int(action[-1]), STRENGTH[action[5]]) for action in ask.legal]
    totals = [0.0] * len(plays)
    for _ in range(SAMPLES):
        table = sampled(ask)
        for i, play in enumerate(plays):
            totals[i] += value(table.copy(), play, ask.seat)
    best = max(range(len(plays)), key=lambda i: totals[i])
    return ask.legal[best]


if __name__ == "__main__":
    run(choose, name="avalanchist", version="1", games=["avalanche"])
