"""Avalanche a second time, written from docs/rules.md alone and as naively as it can be.

Cards are strings in plain lists that change in place, every question is answered by looking through them, and nothing
is shared with `arena`: whatever both tell alike, they have read in the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RANKS = ["2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K", "A", "*"]  # A1: the joker is the highest rank


class Table:
    """A table at which one deal is played."""

    def __init__(self, options: Mapping[str, Any], seats: int, deck: Sequence[str], seed: bytes) -> None:
        self.open_pile = options["open_pile"]
        self.seats = seats
        self.seed = seed  # nothing in avalanche draws from it
        self.stock = list(deck)
        self.hands: list[list[str]] = []
        self.piles: list[list[str]] = []
        self.dead: list[str] = []
        self.plays: list[dict[str, Any]] = []  # of the avalanche on the table
        self.laid = dict.fromkeys(RANKS, 0)
        self.turn: int | None = 0
        self.outcome: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []
        for seat in range(seats):
            hand = [self.stock.pop(0) for _ in range(10)]
            self.hands.append(hand)
            self.piles.append([])
            self.tell("deal", [seat], seat=seat, hand=sorted(hand, key=RANKS.index))
        self.opening = self.events

    # What can be asked of a table.

    def actors(self) -> list[int]:
        return [] if self.turn is None else [self.turn]

    def legal(self, seat: int) -> list[str]:
        if seat != self.turn:
            return []
        actions = []
        for rank in RANKS:  # A2: any part of a set
            held = self.hands[seat].count(rank)
            actions += [f"play:{rank}x{count}" for count in range(1, held + 1)]
        if not self.plays and self.stock:  # A3
            actions.append("snow")
        return sorted(actions)

    def observation(self, seat: int | None) -> dict[str, Any]:
        seen: dict[str, Any] = {
            "seat": seat,
            "seats": self.seats,
            "turn": self.turn,
            "counts": [len(hand) for hand in self.hands],
            "piles": [len(pile) for pile in self.piles],
            "dead": len(self.dead),
            "stock": len(self.stock),
            "leader": self.plays[0]["seat"] if self.plays else None,
            "table": [dict(play) for play in self.plays],
            "laid": {rank: count for rank, count in self.laid.items() if count},
        }
        if seat is None:
            seen["hands"] = [sorted(hand, key=RANKS.index) for hand in self.hands]
            seen["stock_cards"] = list(self.stock)
        else:
            seen["hand"] = sorted(self.hands[seat], key=RANKS.index)
        return seen

    def apply(self, seat: int, action: str) -> list[dict[str, Any]]:
        """Play an action and return what happened, each event with the key `seen_by`: a list of seats, or None."""
        if action not in self.legal(seat):
            raise ValueError(f"seat {seat} cannot {action!r}")
        self.events = []
        if action == "snow":
            self.snow(seat)
        else:
            rank, count = action.removeprefix("play:").split("x")
            self.play(seat, rank, int(count))
        return self.events

    # How a turn goes.

    def snow(self, seat: int) -> None:
        card = self.stock.pop(0)
        self.hands[seat].append(card)
        self.tell("snow", None, seat=seat)
        self.tell("draw", [seat], seat=seat, cards=[card])
        self.turn = self.next_with_cards(seat)

    def play(self, seat: int, rank: str, count: int) -> None:
        result = self.classify(rank, count)
        previous = self.plays[-1]["seat"] if self.plays else None
        for _ in range(count):
            self.hands[seat].remove(rank)
            self.laid[rank] += 1
        self.plays.append({"seat": seat, "rank": rank, "count": count})
        self.tell("play", None, seat=seat, rank=rank, count=count, result=result)
        if result == "drop":
            self.end_avalanche(seat, previous)
        elif result == "stop":
            self.end_avalanche(seat, None)
        elif self.nobody_answers(seat) or self.is_played_out():
            self.end_avalanche(seat, seat if self.open_pile == "last_player" else None)
        else:
            self.turn = self.next_with_cards(seat)

    def classify(self, rank: str, count: int) -> str:
        """A4, line by line."""
        if not self.plays:
            return "start"
        m, s = count, RANKS.index(rank)
        n, r = self.plays[-1]["count"], RANKS.index(self.plays[-1]["rank"])
        if m > n or (m == n and s >= r):
            return "grow"
        if m == n and n >= 2 and s < r:
            return "stop"
        assert m < n or (m == n == 1 and s < r)
        return "drop"

    def nobody_answers(self, seat: int) -> bool:
        """A8: there is stock left, and all hands but that of `seat` are empty."""
        others = [hand for other, hand in enumerate(self.hands) if other != seat]
        return len(self.stock) > 0 and all(len(hand) == 0 for hand in others)

    def is_played_out(self) -> bool:
        """A9: there is no stock, and at most one seat holds cards."""
        return len(self.stock) == 0 and len([hand for hand in self.hands if hand]) <= 1

    def end_avalanche(self, seat: int, owner: int | None) -> None:
        """A5, A6, A8, A9: settle, refill, look at the end; else the next seat after `seat`, which laid last, leads."""
        opener = self.plays[0]["seat"]
        cards = []
        for play in self.plays:
            cards += [play["rank"]] * play["count"]
        if owner is None:
            self.dead += cards
        else:
            self.piles[owner] += cards
        self.plays = []
        self.tell("settle", None, to=owner, cards=len(cards))
        self.refill(opener)
        if self.is_played_out():
            self.finish()
        else:
            self.turn = self.next_with_cards(seat)

    def refill(self, opener: int) -> None:
        drawn: dict[int, list[str]] = {}
        for step in range(self.seats):
            seat = (opener + step) % self.seats
            drawn[seat] = []
            while len(self.hands[seat]) < 10 and self.stock:
                card = self.stock.pop(0)
                self.hands[seat].append(card)
                drawn[seat].append(card)
        if any(drawn.values()):
            self.tell("refill", None, drawn=[len(drawn[seat]) for seat in range(self.seats)])
        for seat, cards in drawn.items():  # in the order of drawing
            if cards:
                self.tell("draw", [seat], seat=seat, cards=cards)

    def next_with_cards(self, seat: int) -> int:
        """A7: a seat without cards is skipped."""
        for step in range(1, self.seats + 1):
            if self.hands[(seat + step) % self.seats]:
                return (seat + step) % self.seats
        raise AssertionError("A8 and A9 leave no such position")

    def finish(self) -> None:
        """A10."""
        points = [len(pile) for pile in self.piles]
        places = [1 + len([other for other in points if other > own]) for own in points]
        self.turn = None
        self.outcome = {"places": places, "points": points, "reason": "played out"}

    def tell(self, event: str, seen_by: list[int] | None, **data: Any) -> None:
        self.events.append({"kind": event, **data, "seen_by": seen_by})
