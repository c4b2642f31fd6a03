"""Smokestack once more, written from docs/rules.md alone to be compared with the one in `arena.games`.

It is meant to be obvious, not fast: one mutable table, cards are strings, stacks are lists, everything is searched for
from front to back. It shares no code with the arena, its luck included.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

Item = TypeVar("Item")


class Words:
    """A stream of protocol.md, "Luck": SHAKE-256 over the parts of its name, read as 64-bit words."""

    def __init__(self, key: bytes, purpose: str, number: int) -> None:
        self.name = b""
        for part in (b"arena-luck-1", key, purpose.encode("utf-8"), str(number).encode("utf-8")):
            self.name += len(part).to_bytes(4, "big") + part
        self.position = 0

    def next_word(self) -> int:
        start = 8 * self.position
        self.position += 1
        return int.from_bytes(hashlib.shake_256(self.name).digest(start + 8)[start:], "big")

    def below(self, n: int) -> int:
        word = self.next_word()
        while word >= 2**64 - (2**64 % n):
            word = self.next_word()
        return word % n

    def shuffle(self, items: list[Item]) -> None:
        i = len(items) - 1
        while i >= 1:
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
            i -= 1


def is_of_one_suit(stack: list[str]) -> bool:
    first = stack[0]
    return all(card[1] == first[1] for card in stack)


def has_a_pair(stack: list[str]) -> bool:
    ranks = [card[0] for card in stack]
    return any(ranks.count(rank) >= 2 for rank in ranks)


def is_a_straight(stack: list[str]) -> bool:
    """Tell whether the ranks stand somewhere in a row of ranks that has the ace at both ends (S4)."""
    if is_of_one_suit(stack):
        return False
    row = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K", "A"]
    ranks = sorted(card[0] for card in stack)
    return any(sorted(row[start : start + 4]) == ranks for start in range(len(row) - 3))


class Table:
    """A deal of Smokestack; `apply` changes it."""

    def __init__(self, options: dict[str, object], seats: int, deck: list[str], seed: bytes) -> None:
        self.options = options
        self.seats = seats
        self.seed = seed
        self.stock = list(deck)
        self.stacks = [[self.draw_four()] for _ in range(seats)]
        self.centre = self.draw_four()
        self.banked: list[list[list[str]]] = [[] for _ in range(seats)]
        self.sweeps = [self.sweeps_at_the_start() for _ in range(seats)]
        self.turn = 0
        self.window = False
        self.answers = ["" for _ in range(seats)]
        self.swept = False
        self.passes = 0
        self.stalled = 0
        self.refreshes = 0
        self.turns = 0
        self.outcome: dict[str, object] | None = None
        self.events: list[dict[str, object]] = []
        self.tell(
            "deal", seats=seats, stacks=self.copy_of(self.stacks), centre=list(self.centre), stock=len(self.stock)
        )
        self.bank()
        if not self.stock:
            self.finish("stock")
        else:
            self.begin_turn()
        self.opening = self.events

    def sweeps_at_the_start(self) -> int:
        if self.options["sweep"] == "off":
            return 0
        sweeps = self.options["sweeps"]
        assert isinstance(sweeps, int)
        return sweeps

    def draw_four(self) -> list[str]:
        return [self.stock.pop(0), self.stock.pop(0), self.stock.pop(0), self.stock.pop(0)]

    def copy_of(self, stacks_by_seat: list[list[list[str]]]) -> list[list[list[str]]]:
        return [[list(stack) for stack in stacks] for stacks in stacks_by_seat]

    def tell(self, kind: str, **data: object) -> None:
        """Note an event; in this game every seat sees all of them."""
        self.events.append({"kind": kind, **data, "seen_by": None})

    # What is asked of the table.

    def actors(self) -> list[int]:
        if self.outcome is not None:
            return []
        if self.window:
            return [seat for seat in range(self.seats) if self.sweeps[seat] > 0 and self.answers[seat] == ""]
        return [self.turn]

    def legal(self, seat: int) -> list[str]:
        if seat not in self.actors():
            return []
        if self.window:
            return ["sweep", "wait"]
        actions = ["pass"]
        if self.may_double(seat):
            actions.append("double")
        if self.options["sweep"] == "own_turn" and self.sweeps[seat] > 0 and not self.swept:
            actions.append("sweep")
        for stack in self.stacks[seat]:
            for own in stack:
                actions += ["swap:" + own + ":" + centre for centre in self.centre]
        return sorted(actions)

    def may_double(self, seat: int) -> bool:
        if self.options["double"] == "off":
            return False
        return len(self.stacks[seat]) < 2 and has_a_pair(self.stacks[seat][0]) and len(self.stock) >= 4

    def observation(self, seat: int | None) -> dict[str, object]:
        seen: dict[str, object] = {
            "seat": seat,
            "seats": self.seats,
            "turn": self.turn,
            "window": self.window,
            "stacks": self.copy_of(self.stacks),
            "centre": list(self.centre),
            "stock": len(self.stock),
            "banked": self.copy_of(self.banked),
            "sweeps": list(self.sweeps),
            "swept": self.swept,
            "passes": self.passes,
            "stalled": self.stalled,
            "refreshes": self.refreshes,
            "turns": self.turns,
        }
        if seat is None:
            seen["stock_cards"] = list(self.stock)
            seen["answers"] = list(self.answers) if self.window else []
        return seen

    # What happens at the table.

    def apply(self, seat: int, action: str) -> list[dict[str, object]]:
        if action not in self.legal(seat):
            raise ValueError(f"seat {seat} may not {action}")
        self.events = []
        if self.window:
            self.answers[seat] = action
            if self.actors() == []:
                self.close_window()
        elif action == "double":
            self.double()
        elif action == "sweep":
            self.swept = True
            self.sweep(seat)
        elif action == "pass":
            self.pass_()
        else:
            _, own, centre = action.split(":")
            self.swap(own, centre)
        return self.events

    def begin_turn(self) -> None:
        self.swept = False
        self.answers = ["" for _ in range(self.seats)]
        self.window = self.options["sweep"] == "anytime" and any(left > 0 for left in self.sweeps)

    def close_window(self) -> None:
        self.window = False
        self.tell("window", answers=list(self.answers))
        for steps in range(self.seats):
            seat = (self.turn + steps) % self.seats
            if self.answers[seat] == "sweep":
                self.sweep(seat)
                break
        self.answers = ["" for _ in range(self.seats)]

    def sweep(self, caller: int) -> None:
        self.sweeps[caller] -= 1
        self.passes = 0
        self.stacks.append(self.stacks.pop(0))
        if self.options["sweep_scope"] == "all":
            self.banked.append(self.banked.pop(0))
        self.tell("sweep", seat=caller)

    def double(self) -> None:
        cards = self.draw_four()
        self.stacks[self.turn].append(cards)
        self.tell("double", seat=self.turn, cards=list(cards))
        self.bank()
        if not self.stock:
            self.finish("stock")

    def swap(self, own: str, centre: str) -> None:
        for stack in self.stacks[self.turn]:
            if own in stack:
                stack[stack.index(own)] = centre
        self.centre[self.centre.index(centre)] = own
        self.passes = 0
        self.stalled = 0
        self.tell("swap", seat=self.turn, own=own, centre=centre)
        self.bank()
        self.end_turn()

    def pass_(self) -> None:
        self.passes += 1
        self.tell("pass", seat=self.turn)
        if self.passes == self.seats:
            self.refresh()
        self.end_turn()

    def end_turn(self) -> None:
        self.turns += 1
        if not self.stock:
            self.finish("stock")
        elif self.stalled == 10:
            self.finish("stalled")
        elif self.turns == 100 * self.seats:
            self.finish("turn limit")
        else:
            self.turn = (self.turn + 1) % self.seats
            self.begin_turn()

    def refresh(self) -> None:
        self.passes = 0
        self.stalled += 1
        self.refreshes += 1
        words = Words(self.seed, "refresh", self.refreshes)
        positions = [0, 1, 2, 3]
        words.shuffle(positions)
        first, second = positions[0], positions[1]
        old = [self.centre[first], self.centre[second]]
        self.centre[first] = self.stock.pop(0)
        self.centre[second] = self.stock.pop(0)
        self.stock.extend(old)
        words.shuffle(self.stock)
        new = [self.centre[first], self.centre[second]]
        self.tell("refresh", positions=[first, second], old=old, new=new)

    def bank(self) -> None:
        while self.bank_one_lap():
            pass

    def bank_one_lap(self) -> bool:
        something = False
        for steps in range(self.seats):
            seat = (self.turn + steps) % self.seats
            for number in range(len(self.stacks[seat])):
                if self.stock and is_of_one_suit(self.stacks[seat][number]):
                    self.bank_stack(seat, number)
                    something = True
        return something

    def bank_stack(self, seat: int, number: int) -> None:
        cards = self.stacks[seat][number]
        refill = self.draw_four()
        self.banked[seat].append(cards)
        self.stacks[seat][number] = refill
        self.tell("bank", seat=seat, stack=number, cards=list(cards), refill=list(refill))

    # The end.

    def finish(self, reason: str) -> None:
        points = [self.score(seat) for seat in range(self.seats)]
        places = []
        for own in points:
            better = [other for other in points if other > own]
            places.append(1 + len(better))
        self.outcome = {"places": places, "points": points, "reason": reason}

    def score(self, seat: int) -> int:
        score = len(self.banked[seat])
        for stack in self.stacks[seat]:
            if is_of_one_suit(stack) or (self.options["straight"] == "end" and is_a_straight(stack)):
                score += 1
        return score
