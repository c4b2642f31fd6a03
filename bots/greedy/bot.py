"""Plays all three games by a rule of thumb each, without looking ahead.

Avalanche: lay as much as it can, keep an avalanche growing as cheaply as it can, drop the least.
Durak: attack low, beat cheaply, keep the trumps.
Smokestack: make the swap that brings most cards of one suit together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arena_bot import Ask, run

RANKS = "23456789TJQKA*"
STRENGTH = {rank: strength for strength, rank in enumerate(RANKS)}
GATHERED = (0, 0, 2, 6, 30)
"""What a stack is worth by the number of cards of its commonest suit."""


def choose(ask: Ask) -> str:
    return PLAYERS[ask.game](ask)


def avalanche(ask: Ask) -> str:
    plays = [(int(action[-1]), STRENGTH[action[5]], action) for action in ask.legal if action != "snow"]
    table = ask.observation["table"]
    if not table:
        return max(plays)[2]
    last = (table[-1]["count"], STRENGTH[table[-1]["rank"]])
    growing = [play for play in plays if play[:2] >= last]
    if growing:
        return min(growing)[2]
    stopping = [play for play in plays if play[0] == last[0] > 1]
    return min(stopping or plays)[2]


def durak(ask: Ask) -> str:
    trump = ask.observation["trump"]

    def price(action: str) -> tuple[bool, int]:
        return action[-1] == trump, STRENGTH[action[-2]]

    cards = [action for action in ask.legal if ":" in action]
    match ask.observation["phase"]:
        case "collect":
            return max(cards, key=price)
        case "throw":
            return min((card for card in cards if card[-1] != trump), key=price, default="pass")
        case "defend":
            return min(cards, key=price, default="take")
    return min(cards, key=price)


def smokestack(ask: Ask) -> str:
    seen = ask.observation
    stacks, centre = seen["stacks"], seen["centre"]
    mine = stacks[ask.seat]
    if seen["window"]:
        swept = stacks[(ask.seat + 1) % ask.seats]
        gain = prospects(swept, centre) - prospects(mine, centre)
        return "sweep" if seen["turn"] == ask.seat and gain > 4 else "wait"
    if "double" in ask.legal:
        return "double"
    now = sum(map(gathered, mine))
    gain, swap = max((value_after(mine, swap), swap) for swap in ask.legal if swap.startswith("swap"))
    return swap if gain > now else "pass"


def gathered(stack: Sequence[str]) -> int:
    suits = [card[1] for card in stack]
    return GATHERED[max(map(suits.count, suits))]


def prospects(stacks: list[list[str]], centre: Sequence[str]) -> int:
    """Return what the stacks of the seat to move are worth after its best swap."""
    swaps = [f"swap:{own}:{other}" for stack in stacks for own in stack for other in centre]
    return max(value_after(stacks, swap) for swap in swaps)


def value_after(stacks: list[list[str]], swap: str) -> int:
    own, other = swap[5:7], swap[8:]
    return sum(gathered([other if card == own else card for card in stack]) for stack in stacks)


PLAYERS: dict[str, Callable[[Ask], str]] = {"avalanche": avalanche, "durak": durak, "smokestack": smokestack}

if __name__ == "__main__":
    run(choose, name="greedy", version="1", games=list(PLAYERS))
