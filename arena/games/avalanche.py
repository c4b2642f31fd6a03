"""Avalanche: let the avalanche grow past you and be dropped by your neighbour.

Source: the Russian rules text "Лавина", a translation that names Gábor Legrády and György Kapolnás (there
"Легрэйди Габор и Каполнас Дьердь") as the authors: 2 to 6 players, two decks of 52 with three jokers each.

Decisions:
    A1  The joker is the highest rank, above the ace, and not wild.
    A2  All cards of a play are of equal rank, the count always written: `play:7x2`, `play:*x1`.
    A3  Table empty: `snow` (draw the top stock card) while there is stock, or any play. Else a play, nothing more.
    A4  After n cards of rank r, m cards of rank s grow (m > n, or m = n and s >= r), stop (m = n >= 2 and s < r)
        or drop (m < n, or m = n = 1 and s < r) the avalanche.
    A5  Dropped cards go to the pile of the seat that laid last before; stopped cards are dead. Then hands refill and
        the next seat with cards after the one that ended it leads.
    A6  Refill to 10: the seat that opened the avalanche first, then clockwise, each in one go, while stock remains.
    A7  A seat without cards is skipped.
    A8  A start or a grow that leaves stock and all other hands empty settles the avalanche as in A9 and refills.
    A9  The deal ends when the stock is empty and at most one seat holds cards. The open avalanche belongs to nobody,
        or with `open_pile=last_player` to the last seat that laid.
    A10 Most cards in the own pile win; equal counts share the place. A deal takes at most 220 - 10p turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, TypeAlias

import msgspec

from arena.cards import JOKER, RANKS
from arena.errors import IllegalAction
from arena.rules import Action, Data, Event, Option, Options, Outcome, OutcomeType, Seat, State, places_by_points

Cards: TypeAlias = int
"""A multiset of ranks: four bits for the count of each rank, the ranks in ASCII order from the low end."""
Result: TypeAlias = Literal["start", "grow", "stop", "drop"]

HAND = 10
SNOW = "snow"
_STRENGTH = RANKS + JOKER
_COPIES = {rank: 6 if rank == JOKER else 8 for rank in _STRENGTH}
_ONE: dict[str, Cards] = {rank: 1 << 4 * i for i, rank in enumerate(sorted(_STRENGTH))}
_RANK = {one: rank for rank, one in _ONE.items()}


class Play(msgspec.Struct, frozen=True):
    """Some cards of one rank.

    Attributes:
        cards: the same as a multiset.
        shift: where the four bits of its rank begin.
    """

    rank: str
    count: int
    strength: int
    cards: Cards
    shift: int


PLAYS: dict[Action, Play] = {
    f"play:{rank}x{count}": Play(rank, count, _STRENGTH.index(rank), count * one, one.bit_length() - 1)
    for rank, one in sorted(_ONE.items())
    for count in range(1, _COPIES[rank] + 1)
}
"""Every play there is, in ASCII order."""


@cache
def _quarter_plays(quarter: int, counts: int) -> tuple[Action, ...]:
    """Return the plays from four neighbouring ranks; a cache of whole hands would seldom hit."""
    hand = counts << 16 * quarter
    return tuple(action for action, play in PLAYS.items() if hand >> play.shift & 15 >= play.count)


def _plays(hand: Cards) -> tuple[Action, ...]:
    return (
        _quarter_plays(0, hand & 0xFFFF)
        + _quarter_plays(1, hand >> 16 & 0xFFFF)
        + _quarter_plays(2, hand >> 32 & 0xFFFF)
        + _quarter_plays(3, hand >> 48)
    )


def _by_rank(cards: Cards) -> dict[str, int]:
    """Return the count of each rank that is there, lowest rank first."""
    counts = ((rank, cards // _ONE[rank] & 15) for rank in _STRENGTH)
    return {rank: count for rank, count in counts if count}


def _listed(cards: Cards) -> list[str]:
    """Return the rank of each card, lowest first."""
    return [rank for rank, count in _by_rank(cards).items() for _ in range(count)]


def _classify(before: Play, play: Play) -> Result:
    """Tell what a play does to an avalanche that `before` was laid on last (A4)."""
    if play.count > before.count:
        return "grow"
    if play.count < before.count:
        return "drop"
    if play.strength >= before.strength:
        return "grow"
    return "stop" if play.count > 1 else "drop"


def _with(values: tuple[int, ...], seat: Seat, value: int) -> tuple[int, ...]:
    return (*values[:seat], value, *values[seat + 1 :])


def _next_holder(counts: Sequence[int], seat: Seat) -> Seat:
    """Return the next seat with cards after `seat` (A7), or `seat` itself when no other has any."""
    other = (seat + 1) % len(counts)
    while other != seat and not counts[other]:
        other = (other + 1) % len(counts)
    return other


def _is_unanswerable(counts: tuple[int, ...], seat: Seat, stock: int) -> bool:
    """Tell whether an avalanche that `seat` started or let grow stays open: by A8 with stock, by A9 without."""
    if stock:
        return sum(counts) == counts[seat]
    return counts.count(0) >= len(counts) - 1


class AvalancheState(msgspec.Struct, frozen=True):
    """A position.

    Attributes:
        deck: the whole deck as dealt, each card a multiset of one.
        top: where in `deck` the stock begins.
        counts: the number of cards in each hand.
        piles: the number of cards each seat has collected.
        dead: the number of cards that belong to nobody.
        laid: all cards played so far.
        table: who laid what in the avalanche that is on the table.
        turn: the seat to act while there is no outcome.
        last_owns: an avalanche that nobody drops goes to the last seat that laid (A9).
    """

    deck: tuple[Cards, ...]
    top: int
    hands: tuple[Cards, ...]
    counts: tuple[int, ...]
    piles: tuple[int, ...]
    dead: int
    laid: Cards
    table: tuple[tuple[Seat, Play], ...]
    turn: Seat
    last_owns: bool
    outcome: Outcome | None = None

    @property
    def actors(self) -> tuple[Seat, ...]:
        """The seat to act; () when the deal is over."""
        return (self.turn,) if self.outcome is None else ()

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        """Return the legal actions in ASCII order; () for a seat that is not to act."""
        if seat != self.turn or self.outcome is not None:
            return ()
        plays = _plays(self.hands[seat])
        return (*plays, SNOW) if self._may_snow() else plays

    def observation(self, seat: Seat | None) -> Data:
        """Return what a seat sees: its `hand` and all public counts; None sees `hands` and `stock_cards`."""
        seen: dict[str, object] = {
            "seat": seat,
            "seats": len(self.hands),
            "turn": self.turn if self.outcome is None else None,
            "counts": list(self.counts),
            "piles": list(self.piles),
            "dead": self.dead,
            "stock": len(self.deck) - self.top,
            "leader": self.table[0][0] if self.table else None,
            "table": [{"seat": s, "rank": play.rank, "count": play.count} for s, play in self.table],
            "laid": _by_rank(self.laid),
        }
        if seat is None:
            seen["hands"] = [_listed(hand) for hand in self.hands]
            seen["stock_cards"] = [_RANK[card] for card in self.deck[self.top :]]
        else:
            seen["hand"] = _listed(self.hands[seat])
        return seen

    def apply(self, seat: Seat, action: Action) -> tuple[AvalancheState, tuple[Event, ...]]:
        """Return the next position and what happened.

        Raises:
            IllegalAction: the action is not in `legal_actions(seat)`.
        """
        if seat == self.turn and self.outcome is None:
            if action == SNOW and self._may_snow():
                return self._snow()
            play = PLAYS.get(action)
            if play is not None and self.hands[seat] >> play.shift & 15 >= play.count:
                return self._lay(play)
        raise IllegalAction(f"seat {seat} may not play {action[:40]!r} now")

    def _may_snow(self) -> bool:
        return not self.table and self.top < len(self.deck)

    def _snow(self) -> tuple[AvalancheState, tuple[Event, ...]]:
        seat, card = self.turn, self.deck[self.top]
        counts = _with(self.counts, seat, self.counts[seat] + 1)
        state = AvalancheState(
            deck=self.deck,
            top=self.top + 1,
            hands=_with(self.hands, seat, self.hands[seat] + card),
            counts=counts,
            piles=self.piles,
            dead=self.dead,
            laid=self.laid,
            table=(),
            turn=_next_holder(counts, seat),
            last_owns=self.last_owns,
        )
        return state, (Event("snow", {"seat": seat}), Event("draw", {"seat": seat, "cards": [_RANK[card]]}, (seat,)))

    def _lay(self, play: Play) -> tuple[AvalancheState, tuple[Event, ...]]:
        seat = self.turn
        result: Result = _classify(self.table[-1][1], play) if self.table else "start"
        counts = _with(self.counts, seat, self.counts[seat] - play.count)
        state = AvalancheState(
            deck=self.deck,
            top=self.top,
            hands=_with(self.hands, seat, self.hands[seat] - play.cards),
            counts=counts,
            piles=self.piles,
            dead=self.dead,
            laid=self.laid + play.cards,
            table=(*self.table, (seat, play)),
            turn=_next_holder(counts, seat),
            last_owns=self.last_owns,
        )
        event = Event("play", {"seat": seat, "rank": play.rank, "count": play.count, "result": result})
        if result == "drop":
            return state._settle(self.table[-1][0], event)
        if result == "stop":
            return state._settle(None, event)
        if _is_unanswerable(counts, seat, len(self.deck) - self.top):
            return state._settle(seat if self.last_owns else None, event)
        return state, (event,)

    def _settle(self, owner: Seat | None, event: Event) -> tuple[AvalancheState, tuple[Event, ...]]:
        """Give the avalanche away (None: to nobody), refill, and end the deal or let the next seat lead."""
        cards = sum([play.count for _, play in self.table])
        piles = self.piles if owner is None else _with(self.piles, owner, self.piles[owner] + cards)
        hands, counts, top, draws = self._refill(self.table[0][0])
        last = self.table[-1][0]
        over = top == len(self.deck) and counts.count(0) >= len(counts) - 1
        state = AvalancheState(
            deck=self.deck,
            top=top,
            hands=hands,
            counts=counts,
            piles=piles,
            dead=self.dead + cards if owner is None else self.dead,
            laid=self.laid,
            table=(),
            turn=_next_holder(counts, last),
            last_owns=self.last_owns,
            outcome=Outcome(places_by_points(piles), piles, "played out") if over else None,
        )
        return state, (event, Event("settle", {"to": owner, "cards": cards}), *draws)

    def _refill(self, first: Seat) -> tuple[tuple[Cards, ...], tuple[int, ...], int, tuple[Event, ...]]:
        """Draw up to ten cards a hand (A6); return hands, counts, the new top and the events."""
        hands, counts, top = list(self.hands), list(self.counts), self.top
        events = []
        for seat in (*range(first, len(hands)), *range(first)):
            drawn = self.deck[top : top + max(0, HAND - counts[seat])]
            if drawn:
                top += len(drawn)
                hands[seat] += sum(drawn)
                counts[seat] += len(drawn)
                events.append(Event("draw", {"seat": seat, "cards": [_RANK[card] for card in drawn]}, (seat,)))
        if events:
            added = [new - old for new, old in zip(counts, self.counts, strict=True)]
            events.insert(0, Event("refill", {"drawn": added}))
        return tuple(hands), tuple(counts), top, tuple(events)


class Avalanche(msgspec.Struct, frozen=True):
    """The rules."""

    name: str = "avalanche"
    version: int = 1

    @property
    def seats(self) -> range:
        """2 to 6."""
        return range(2, 7)

    @property
    def schema(self) -> Mapping[str, Option]:
        """The one option, of A9."""
        return {"open_pile": Option(values=("nobody", "last_player"))}

    def deck(self, options: Options) -> tuple[str, ...]:
        """Return 110 cards, each its rank alone: eight of each from 2 to A, then six jokers."""
        return tuple(rank for rank in _STRENGTH for _ in range(_COPIES[rank]))

    def initial_state(
        self, options: Options, seats: int, deck: Sequence[str], seed: bytes
    ) -> tuple[AvalancheState, tuple[Event, ...]]:
        """Deal ten cards to each seat; the rest is the stock. The seed is not used."""
        cards = tuple(_ONE[card] for card in deck)
        hands = tuple(sum(cards[HAND * seat : HAND * (seat + 1)]) for seat in range(seats))
        state = AvalancheState(
            deck=cards,
            top=HAND * seats,
            hands=hands,
            counts=(HAND,) * seats,
            piles=(0,) * seats,
            dead=0,
            laid=0,
            table=(),
            turn=0,
            last_owns=options["open_pile"] == "last_player",
        )
        return state, tuple(Event("deal", {"seat": s, "hand": _listed(hand)}, (s,)) for s, hand in enumerate(hands))

    def outcome_type(self, options: Options) -> OutcomeType:
        """Return `ranking`."""
        return "ranking"

    def max_decisions(self, options: Options, seats: int) -> int:
        """Return the bound of A10: every stock card snows and every card is laid alone."""
        return 220 - 10 * seats

    def house_action(self, state: State, seat: Seat) -> Action:
        """Return `snow` if legal, else the lowest single card."""
        legal = state.legal_actions(seat)
        if SNOW in legal:
            return SNOW
        return min(legal, key=lambda action: (PLAYS[action].count, PLAYS[action].strength))


AVALANCHE = Avalanche()
