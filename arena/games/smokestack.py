"""Smokestack: open cards on the table, one swap a turn, four cards of one suit are a smokestack.

Source: the Russian rules text "Дымовая труба" (Smokestack): 2 and more players, one deck of 52 cards.

Decisions: the numbers of docs/rules.md, where the text is silent, contradicts itself or would never end.

* S1 `swap:OWN:CENTRE` exchanges an own open card for a centre card, one a turn; `pass` is always legal.
* S2 Stacks of one suit are banked (1 point) and refilled from the stock by the referee, in laps from the seat to move.
* S3 `double` (two equal ranks, one open stack) opens a second stack from the stock. Option `double`.
* S4 Open straights of mixed suits count 1 each at the end, ace low or high. Option `straight`.
* S5 `sweep` hands all open stacks to the right, once a deal for each seat; all seats are asked for it at the same time
  in a window before every turn, or it is a free action. Options `sweep`, `sweeps`, `sweep_scope`.
* S6 After p passes in a row two centre cards are renewed and the stock is shuffled from the deal seed.
* S7 The deal ends as soon as the stock is empty; open stacks of one suit count too.
* S8 It also ends `stalled` at the 10th refresh since the last swap and at a `turn limit` of 100 turns a seat.
* S9 Most smokestacks win; the outcome is a ranking.

With 12 seats no card would be left for the stock, so 11 are the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from arena.cards import sorted_deck
from arena.errors import IllegalAction
from arena.luck import Stream
from arena.rules import Action, Data, Event, Option, Options, Outcome, OutcomeType, Seat, State, places_by_points

T = TypeVar("T")
Stack: TypeAlias = tuple[str, ...]
"""Four cards that are collected together."""

STACK = 4
"""Cards of a stack and of the centre."""
STALLED_REFRESHES = 10  # S8
TURNS_PER_SEAT = 100  # S8
ANSWERS: tuple[Action, ...] = ("sweep", "wait")
"""What a seat may answer in a window, in ASCII order."""
STRAIGHTS = frozenset(frozenset("A23456789TJQKA"[low : low + STACK]) for low in range(11))
"""The ranks of each straight (S4)."""


class RuleSet(msgspec.Struct, frozen=True):
    """What stays fixed during a deal.

    Attributes:
        windows: sweeps are asked for before every turn; without, they are a free action of the seat to move.
        all_travel: banked stacks travel with a sweep too.
        seed: the key of the refresh streams.
    """

    seats: int
    double: bool
    straight: bool
    windows: bool
    all_travel: bool
    seed: bytes


class Position(msgspec.Struct, frozen=True):
    """A position; `arena.rules.State`.

    Attributes:
        stacks: by seat, its one or two open stacks.
        centre: the open cards by position.
        stock: top first; its size is a multiple of 4.
        banked: by seat, the stacks set aside, oldest first.
        sweeps: by seat, how many it may still call.
        actors: in a window the seats that have not answered yet.
        turn: the seat to move.
        turns: played so far.
        passes: in a row (S6).
        stalled: refreshes since the last swap.
        refreshes: in this deal; names the next refresh stream.
        swept: the seat to move has swept in this turn.
        answers: () outside windows; in one by seat, the empty string where there is none.
    """

    rules: RuleSet
    stacks: tuple[tuple[Stack, ...], ...]
    centre: tuple[str, ...]
    stock: tuple[str, ...]
    banked: tuple[tuple[Stack, ...], ...]
    sweeps: tuple[int, ...]
    actors: tuple[Seat, ...] = ()
    outcome: Outcome | None = None
    turn: Seat = 0
    turns: int = 0
    passes: int = 0
    stalled: int = 0
    refreshes: int = 0
    swept: bool = False
    answers: tuple[Action, ...] = ()

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        """Return `sweep` and `wait` in a window, else the free actions, the swaps and `pass`, in ASCII order."""
        if seat not in self.actors:
            return ()
        if self.answers:
            return ANSWERS
        centre = sorted(self.centre)
        own = sorted(card for stack in self.stacks[seat] for card in stack)
        actions = ["double", "pass"] if self._may_double() else ["pass"]
        actions += [f"swap:{card}:{other}" for card in own for other in centre]
        if self._may_sweep():
            actions.append("sweep")
        return tuple(actions)

    def observation(self, seat: Seat | None) -> Data:
        """Return everything but the order of the stock and the answers in a window; None sees those too."""
        seen: dict[str, object] = {
            "seat": seat,
            "seats": self.rules.seats,
            "turn": self.turn,
            "window": self.answers != (),
            "stacks": self.stacks,
            "centre": self.centre,
            "stock": len(self.stock),
            "banked": self.banked,
            "sweeps": self.sweeps,
            "swept": self.swept,
            "passes": self.passes,
            "stalled": self.stalled,
            "refreshes": self.refreshes,
            "turns": self.turns,
        }
        if seat is None:
            seen["stock_cards"] = self.stock
            seen["answers"] = self.answers
        return seen

    def apply(self, seat: Seat, action: Action) -> tuple[Position, tuple[Event, ...]]:
        """Return the next position and what happened; an answer in a window is told only when the window closes.

        Raises:
            IllegalAction: the action is not in `legal_actions(seat)`.
        """
        if seat not in self.actors:
            raise IllegalAction(f"seat {seat} is not to act")
        if self.answers:
            if action in ANSWERS:
                return _answer(self, seat, action)
            raise IllegalAction(f"seat {seat} cannot play {action[:40]!r} in a window, only sweep or wait")
        match action:
            case "pass":
                return _pass(self)
            case "double" if self._may_double():
                return _double(self)
            case "sweep" if self._may_sweep():
                return _sweep(replace(self, swept=True), seat)
        own, other = action[5:7], action[8:]
        hand = self.stacks[seat]
        if action == f"swap:{own}:{other}" and other in self.centre and any(own in stack for stack in hand):
            return _swap(self, own, other)
        raise IllegalAction(f"seat {seat} cannot play {action[:40]!r} now")

    def _may_double(self) -> bool:
        """S3. The stock is never empty while the deal goes on, so it holds at least 4 cards."""
        hand = self.stacks[self.turn]
        return self.rules.double and len(hand) == 1 and len({card[0] for card in hand[0]}) < STACK

    def _may_sweep(self) -> bool:
        """S5, as a free action."""
        return not self.rules.windows and not self.swept and self.sweeps[self.turn] > 0


def is_one_suit(stack: Stack) -> bool:
    """Tell whether a stack is a smokestack."""
    first, second, third, fourth = stack
    return first[1] == second[1] == third[1] == fourth[1]


def is_straight(stack: Stack) -> bool:
    """Tell whether a stack has four consecutive ranks, ace low or high, of any suits (S4)."""
    return frozenset(card[0] for card in stack) in STRAIGHTS


def _put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def _swap(state: Position, own: str, other: str) -> tuple[Position, tuple[Event, ...]]:
    seat = state.turn
    hand = state.stacks[seat]
    index = 0 if own in hand[0] else 1
    stack = _put(hand[index], hand[index].index(own), other)
    state = replace(
        state,
        stacks=_put(state.stacks, seat, _put(hand, index, stack)),
        centre=_put(state.centre, state.centre.index(other), own),
        passes=0,
        stalled=0,
    )
    events = [Event("swap", {"seat": seat, "own": own, "centre": other})]
    if is_one_suit(stack):
        state = _bank(state, events)
    return _end_turn(state), tuple(events)


def _pass(state: Position) -> tuple[Position, tuple[Event, ...]]:
    events = [Event("pass", {"seat": state.turn})]
    state = replace(state, passes=state.passes + 1)
    if state.passes == state.rules.seats:
        state = _refresh(state, events)
    return _end_turn(state), tuple(events)


def _refresh(state: Position, events: list[Event]) -> Position:
    """S6: positions and stock are shuffled by one stream, in this order."""
    stream = Stream(state.rules.seed, "refresh", state.refreshes + 1)
    first, second = stream.shuffled(range(STACK))[:2]
    old = state.centre[first], state.centre[second]
    new = state.stock[:2]
    events.append(Event("refresh", {"positions": (first, second), "old": old, "new": new}))
    return replace(
        state,
        centre=_put(_put(state.centre, first, new[0]), second, new[1]),
        stock=tuple(stream.shuffled(state.stock[2:] + old)),
        passes=0,
        stalled=state.stalled + 1,
        refreshes=state.refreshes + 1,
    )


def _double(state: Position) -> tuple[Position, tuple[Event, ...]]:
    seat = state.turn
    cards = state.stock[:STACK]
    state = replace(state, stacks=_put(state.stacks, seat, (*state.stacks[seat], cards)), stock=state.stock[STACK:])
    events = [Event("double", {"seat": seat, "cards": cards})]
    state = _bank(state, events)
    return state if state.stock else _over(state, "stock"), tuple(events)


def _answer(state: Position, seat: Seat, action: Action) -> tuple[Position, tuple[Event, ...]]:
    answers = _put(state.answers, seat, action)
    waiting = tuple(other for other in state.actors if other != seat)
    if waiting:
        return replace(state, answers=answers, actors=waiting), ()
    told = Event("window", {"answers": answers})
    state = replace(state, answers=(), actors=(state.turn,))
    if "sweep" not in answers:
        return state, (told,)
    clockwise = answers[state.turn :] + answers[: state.turn]
    state, events = _sweep(state, (state.turn + clockwise.index("sweep")) % state.rules.seats)
    return state, (told, *events)


def _sweep(state: Position, caller: Seat) -> tuple[Position, tuple[Event, ...]]:
    """S5. No stack is new, and those of one suit were banked before, so nothing can be banked here."""
    banked = state.banked
    state = replace(
        state,
        stacks=state.stacks[1:] + state.stacks[:1],
        banked=banked[1:] + banked[:1] if state.rules.all_travel else banked,
        sweeps=_put(state.sweeps, caller, state.sweeps[caller] - 1),
        passes=0,
    )
    return state, (Event("sweep", {"seat": caller}),)


def _bank(state: Position, events: list[Event]) -> Position:
    """S2: bank and refill in laps from the seat to move, until a lap banks nothing or the stock is empty."""
    # Seat 0 moves first, and later only stacks of the seat to move can be of one suit: the order from seat 0 will do.
    stacks = {(seat, index): stack for seat, hand in enumerate(state.stacks) for index, stack in enumerate(hand)}
    banked, stock = list(state.banked), state.stock
    lap = [place for place, stack in stacks.items() if is_one_suit(stack)]
    while lap and stock:
        # A refill lies at a place that its lap has visited, so the list of a lap is known when it begins.
        for seat, index in lap[: len(stock) // STACK]:
            cards, refill, stock = stacks[seat, index], stock[:STACK], stock[STACK:]
            banked[seat] = (*banked[seat], cards)
            stacks[seat, index] = refill
            events.append(Event("bank", {"seat": seat, "stack": index, "cards": cards, "refill": refill}))
        lap = [place for place in lap if is_one_suit(stacks[place])]
    hands = tuple(tuple(stacks[seat, i] for i in range(len(hand))) for seat, hand in enumerate(state.stacks))
    return replace(state, stacks=hands, banked=tuple(banked), stock=stock)


def _end_turn(state: Position) -> Position:
    turns = state.turns + 1
    reason = None
    if not state.stock:
        reason = "stock"
    elif state.stalled == STALLED_REFRESHES:
        reason = "stalled"
    elif turns == TURNS_PER_SEAT * state.rules.seats:
        reason = "turn limit"
    if reason is not None:
        return _over(replace(state, turns=turns), reason)
    return _begin_turn(state, (state.turn + 1) % state.rules.seats, turns)


def _begin_turn(state: Position, turn: Seat, turns: int) -> Position:
    """Open the window before a turn if there is anybody to ask (S5), else let its seat act."""
    asked = tuple(seat for seat, left in enumerate(state.sweeps) if left) if state.rules.windows else ()
    return replace(
        state,
        turn=turn,
        turns=turns,
        swept=False,
        answers=("",) * state.rules.seats if asked else (),
        actors=asked or (turn,),
    )


def _over(state: Position, reason: str) -> Position:
    """S7 and S9: count every open stack once, besides the banked ones."""
    straight = state.rules.straight
    points = tuple(
        len(banked) + sum(is_one_suit(stack) or (straight and is_straight(stack)) for stack in hand)
        for banked, hand in zip(state.banked, state.stacks, strict=True)
    )
    return replace(state, actors=(), outcome=Outcome(places_by_points(points), points, reason))


class Smokestack:
    """The rules of Smokestack; `arena.rules.Game`."""

    name = "smokestack"
    version = 1
    seats = range(2, 12)
    schema: ClassVar[Mapping[str, Option]] = {
        "double": Option(("pair", "off")),
        "straight": Option(("end", "off")),
        "sweep": Option(("anytime", "own_turn", "off")),
        "sweep_scope": Option(("open", "all")),
        "sweeps": Option((1,), low=0, high=99),
    }

    def deck(self, options: Options) -> tuple[str, ...]:
        """Return the 52 cards."""
        return sorted_deck()

    def initial_state(
        self, options: Options, seats: int, deck: Sequence[str], seed: bytes
    ) -> tuple[Position, tuple[Event, ...]]:
        """Deal a stack to each seat and the centre, bank what is of one suit (S2) and begin the first turn."""
        rules = RuleSet(
            seats=seats,
            double=options["double"] == "pair",
            straight=options["straight"] == "end",
            windows=options["sweep"] == "anytime",
            all_travel=options["sweep_scope"] == "all",
            seed=seed,
        )
        sweeps = 0 if options["sweep"] == "off" else int(options["sweeps"])
        dealt = [tuple(deck[start : start + STACK]) for start in range(0, STACK * (seats + 1), STACK)]
        state = Position(
            rules=rules,
            stacks=tuple((stack,) for stack in dealt[:seats]),
            centre=dealt[seats],
            stock=tuple(deck[STACK * (seats + 1) :]),
            banked=((),) * seats,
            sweeps=(sweeps,) * seats,
        )
        told = {"seats": seats, "stacks": state.stacks, "centre": state.centre, "stock": len(state.stock)}
        events = [Event("deal", told)]
        state = _bank(state, events)
        return _begin_turn(state, 0, 0) if state.stock else _over(state, "stock"), tuple(events)

    def outcome_type(self, options: Options) -> OutcomeType:
        """Tell that every place counts (S9)."""
        return "ranking"

    def max_decisions(self, options: Options, seats: int) -> int:
        """Return a bound on the number of actions of a deal.

        Each kind of action is bounded on its own, with p seats:

        * `swap` and `pass` end a turn: at most 100p (S8).
        * `double`: open stacks begin as p, never become fewer and are at most 2p; each double adds one and takes 4 of
          48 - 4p stock cards, which never become more: at most min(p, 12 - p).
        * `sweep` as a free action: one a turn, `sweeps` a seat: at most min(100p, p * sweeps).
        * Answers: a window belongs to one turn and asks each seat once: at most 100p * p, none without sweeps.
        """
        turns = TURNS_PER_SEAT * seats
        doubles = min(seats, 12 - seats) if options["double"] == "pair" else 0
        sweeps = int(options["sweeps"])
        free = min(turns, seats * sweeps) if options["sweep"] == "own_turn" else 0
        answers = turns * seats if options["sweep"] == "anytime" and sweeps else 0
        return turns + doubles + free + answers

    def house_action(self, state: State, seat: Seat) -> Action:
        """Return `wait` in a window and `pass` in a turn."""
        return "wait" if "wait" in state.legal_actions(seat) else "pass"


SMOKESTACK = Smokestack()
"""The game, as registered in `arena.games`."""
