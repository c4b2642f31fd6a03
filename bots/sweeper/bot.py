"""Smokestack by looking a lap ahead: try each action, let everybody go on sensibly, compare what has come of it.

Only suits matter here, so a stack and the centre are four counts (c d h s); a stack that will come from the stock,
whose cards nobody knows, is `UNKNOWN`. In the lap ahead each seat makes the swap that gathers most while it leaves the
next seat nothing to finish. A second working place is always worth having.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

from arena_bot import Ask, run

SUITS = "cdhs"
LAPS = 1
PATIENCE = 0.7
"""What a lead counts one turn later."""
SWEEP_GAIN = 0.7
"""A sweep is only to be had once, so it must bring as much."""
WORTH = (0.0, 0.0, 0.05, 0.2, 1.0)
"""What a stack is worth by the number of cards of its commonest suit."""
UNKNOWN_WORTH = 0.08

Counts: TypeAlias = tuple[int, int, int, int]
UNKNOWN: Counts = (0, 0, 0, 0)
Swap: TypeAlias = tuple[int, int, int]
"""The number of the own stack, the suit given, the suit taken."""


class Table:
    """What matters of a position; changed in place."""

    def __init__(self, stacks: list[list[Counts]], centre: Counts, stock: int, turn: int) -> None:
        self.stacks = stacks
        self.centre = centre
        self.stock = stock
        self.turn = turn
        self.banked = [0] * len(stacks)

    def copy(self) -> Table:
        twin = Table([hand[:] for hand in self.stacks], self.centre, self.stock, self.turn)
        twin.banked = self.banked[:]
        return twin

    def sweep(self) -> None:
        self.stacks = self.stacks[1:] + self.stacks[:1]

    def swap(self, swap: Swap | None) -> None:
        """End the turn with a swap, or with a pass."""
        if swap is not None:
            index, given, taken = swap
            hand = self.stacks[self.turn]
            stack = moved(hand[index], given, taken)
            self.centre = moved(self.centre, taken, given)
            if stack[taken] == 4:
                self.banked[self.turn] += 1
                self.stock -= 4
                stack = UNKNOWN
            hand[index] = stack
        self.turn = (self.turn + 1) % len(self.stacks)

    def best_swap(self) -> Swap | None:
        """Return the swap that gathers most, or None to pass."""
        threats = {suit for stack in self.stacks[(self.turn + 1) % len(self.stacks)] for suit in needed(stack)}
        best, best_gain = None, -0.5 * any(self.centre[suit] for suit in threats)
        for index, stack in enumerate(self.stacks[self.turn]):
            for given, taken, gain in exchanges(stack, self.centre):
                if gain < best_gain:
                    break
                left = moved(self.centre, taken, given)
                if any(left[suit] for suit in threats):
                    gain -= 0.5
                if gain > best_gain:
                    best, best_gain = (index, given, taken), gain
        return best

    def lead(self, seat: int) -> float:
        """Return how far a seat is ahead of the mean of the others."""
        worths = [
            banked + (sum(map(worth, hand)) if self.stock > 0 else 0)
            for banked, hand in zip(self.banked, self.stacks, strict=True)
        ]
        return worths[seat] - (sum(worths) - worths[seat]) / (len(worths) - 1)


@cache
def moved(counts: Counts, minus: int, plus: int) -> Counts:
    changed = list(counts)
    changed[minus] -= 1
    changed[plus] += 1
    return changed[0], changed[1], changed[2], changed[3]


@cache
def worth(stack: Counts) -> float:
    return UNKNOWN_WORTH if stack == UNKNOWN else WORTH[max(stack)]


@cache
def needed(stack: Counts) -> tuple[int, ...]:
    """Return the suit that one card is missing of, if there is one."""
    return tuple(suit for suit in range(4) if stack[suit] == 3)


@cache
def exchanges(stack: Counts, centre: Counts) -> tuple[tuple[int, int, float], ...]:
    """Return each suit given and taken with what is gained by it, best first."""
    found = [
        (given, taken, worth(moved(stack, given, taken)) - worth(stack))
        for given in range(4)
        for taken in range(4)
        if given != taken and stack[given] and centre[taken]
    ]
    return tuple(sorted(found, key=lambda exchange: -exchange[2]))


def counted(cards: Sequence[str]) -> Counts:
    suits = [card[1] for card in cards]
    return suits.count("c"), suits.count("d"), suits.count("h"), suits.count("s")


def play_on(table: Table, seat: int) -> float:
    """Return how far ahead the seat is over the next laps; a lead counts more the sooner it is there."""
    value, weight = 0.0, 1.0 - PATIENCE
    for _ in range(LAPS * len(table.stacks)):
        if table.stock <= 0:
            break
        value += weight * table.lead(seat)
        weight *= PATIENCE
        table.swap(table.best_swap())
    return value + weight / (1.0 - PATIENCE) * table.lead(seat)


def outcomes(ask: Ask, table: Table) -> Iterator[tuple[float, str]]:
    """Yield what each action of a turn comes to; of swaps of the same suits only one is tried."""
    cards = ask.observation["stacks"][ask.seat]
    seen = set()
    for action in ask.legal:
        after = table.copy()
        if action == "sweep":
            after.sweep()
        else:
            swap = parsed(action, cards)
            if swap in seen:
                continue
            seen.add(swap)
            after.swap(swap)
        yield play_on(after, ask.seat), action


def parsed(action: str, stacks: Sequence[Sequence[str]]) -> Swap | None:
    if action == "pass":
        return None
    own, other = action[5:7], action[8:]
    index = next(index for index, stack in enumerate(stacks) if own in stack)
    return index, SUITS.index(own[1]), SUITS.index(other[1])


def choose(ask: Ask) -> str:
    seen = ask.observation
    stacks = [[counted(stack) for stack in hand] for hand in seen["stacks"]]
    table = Table(stacks, counted(seen["centre"]), seen["stock"], seen["turn"])
    table.banked = [len(banked) for banked in seen["banked"]]
    if "double" in ask.legal:
        return "double"
    if not seen["window"]:
        return max(outcomes(ask, table), key=lambda outcome: (outcome[0], outcome[1] == "pass"))[1]
    swept = table.copy()
    swept.sweep()
    return "sweep" if play_on(swept, ask.seat) - play_on(table, ask.seat) > SWEEP_GAIN else "wait"


if __name__ == "__main__":
    run(choose, name="sweeper", version="1", games=["smokestack"])
