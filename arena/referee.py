"""Referees a match: asks, applies, turns what bots do wrong into faults. No exception of a bot's making leaves it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack

import msgspec
import trio

from arena.bot import SPIN_S, Bot, OpenProcess, settle
from arena.errors import BotError, FaultKind, OverloadError
from arena.games import GAMES
from arena.lag import Lag
from arena.records import BotRef, DealRecord, Fault, Log, Machine, MatchRecord, MatchSpec, Step
from arena.rules import Action, Event, Game, Seat, State, bot_seed, deal
from arena.verdict import FORFEIT_FAULTS, is_decided, verdict
from arena.wire import NOTE_BYTES, PROTOCOL, Act, encode_event, encode_observation

_FREE_LOOK_S = 0.002
"""A look at the bots' processes that takes longer is not at the cost of who is asked meanwhile."""


class Host(msgspec.Struct, frozen=True):
    """Where a match is played.

    Attributes:
        open_process: starts a bot.
        isolation: the level at which it does.
        now: seconds since the epoch, UTC.
        core: the core everything is pinned to, or -1.
        spin_s: how long waiting for an answer may block the loop.
        clean_up: called after each leg however it ends, when no process of a bot may live any more.
    """

    open_process: OpenProcess
    isolation: str
    machine: Machine
    engine: str
    now: Callable[[], float]
    core: int = -1
    memory_mib: int = 512
    spin_s: float = SPIN_S
    clean_up: Callable[[], object] = lambda: None


class Leg:
    """The processes of one leg, started when a deal needs them; all of them are gone when `open_leg` ends.

    Attributes:
        logs: what each process that has ended wrote to stderr.
    """

    def __init__(self, nursery: trio.Nursery, spec: MatchSpec, host: Host, leg: int) -> None:
        self.number = leg
        self.seating = spec.legs[leg]
        self.lag = Lag(self.look)
        self.bots: dict[Seat, Bot] = {}
        self.logs: list[Log] = []
        self._deck = 0
        self._first_decks: dict[Seat, int] = {}
        self._stacks: dict[Seat, AsyncExitStack] = {}
        self._nursery = nursery
        self._spec = spec
        self._host = host

    async def start(self, seats: Sequence[Seat], deck: int) -> dict[Seat, BotError]:
        """Start the process of each seat that has none, for a deal, all at once; return why any failed."""
        self._deck = deck
        missing = [seat for seat in seats if seat not in self.bots]
        for seat in missing:
            await self._open(seat, self._spec.bots[self.seating[seat]])
        starting = [self.bots[seat] for seat in missing]
        await settle(starting, self._host.spin_s)
        return {seat: error for seat in missing if (error := self.bots[seat].error) is not None}

    async def _open(self, seat: Seat, ref: BotRef) -> None:
        stack = AsyncExitStack()
        self._stacks[seat] = stack
        process = await stack.enter_async_context(self._host.open_process(ref))
        bot = Bot(process)
        stack.callback(bot.close)
        self.bots[seat] = bot
        self._first_decks[seat] = self._deck
        self._nursery.start_soon(bot.drain_stderr)
        clock = self._spec.clock
        bot.begin(bot.talk.hello(clock, self._host.memory_mib), clock.startup_ms / 1000)

    def look(self) -> int:
        """See that no process uses more than it may; return the CPU time of all of them in microseconds."""
        began = trio.current_time()
        used_us = sum(bot.look() for bot in self.bots.values())
        if (took_s := trio.current_time() - began) > _FREE_LOOK_S:
            for bot in self.bots.values():
                bot.excuse(took_s)
        return used_us

    async def stop(self, seat: Seat) -> None:
        """Kill a seat's process and everything it started."""
        if (bot := self.bots.pop(seat, None)) is not None:
            bot.read_stderr()
            if text := bot.stderr.text():
                place, first = self.seating[seat], self._first_decks[seat]
                self.logs.append(Log(self.number, place, first, self._deck, text))
        with trio.CancelScope(shield=True):
            await self._stacks.pop(seat).aclose()

    async def close(self) -> None:
        """Say bye to every bot that is between deals and stop all, the others too when one cannot be stopped."""
        async with AsyncExitStack() as stops:
            for seat in self._stacks:
                stops.push_async_callback(self.stop, seat)
            for bot in self.bots.values():
                if bot.talk.is_ready():
                    bot.send(bot.talk.bye())


@contextlib.asynccontextmanager
async def open_leg(spec: MatchSpec, host: Host, leg: int) -> AsyncIterator[Leg]:
    """Open a leg without processes yet."""
    try:
        async with trio.open_nursery() as nursery:
            opened = Leg(nursery, spec, host, leg)
            nursery.start_soon(opened.lag.measure)
            try:
                yield opened
            finally:
                with trio.CancelScope(shield=True):
                    await opened.close()
                nursery.cancel_scope.cancel()
    finally:
        host.clean_up()


class Deal:
    """One play-out in progress: the position, who still plays, what was said.

    Attributes:
        faulted: the step at which each faulted seat did; -1 for seats that forfeited beforehand.
    """

    def __init__(self, spec: MatchSpec, game: Game, leg: Leg, deck: int, forfeited: Collection[Seat]) -> None:
        self.spec = spec
        self.game = game
        self.leg = leg
        self.deck = deck
        self.seats = len(spec.bots)
        self.faulted: dict[Seat, int] = dict.fromkeys(forfeited, -1)
        self.faults: list[Fault] = []
        self.steps: list[Step] = []
        self.live: dict[Seat, Bot] = {}
        self._bank_us = [spec.clock.bank_ms * 1000] * self.seats
        self._digests = [b""] * self.seats
        self._first_ids = [0] * self.seats
        self._stale = [0] * self.seats
        self._cpu_us = [-1] * self.seats
        self._outcome_type = game.outcome_type(spec.options)

    def is_over(self, state: State) -> bool:
        """Tell whether the game has ended or faults have decided it."""
        return not state.actors or self.is_decided()

    def is_decided(self) -> bool:
        """Tell whether faults have decided it."""
        return is_decided(self.faulted, self.seats, self._outcome_type)

    def bot_seats(self) -> list[Seat]:
        """Return the seats whose bots are dealt in."""
        return [seat for seat in range(self.seats) if seat not in self.faulted]

    async def seat_bots(self) -> None:
        """Start the processes and send each its `deal`."""
        wanted = self.bot_seats()
        errors = await self.leg.start(wanted, self.deck)
        key = self.spec.decks[self.deck]
        for seat in wanted:
            bot = self.leg.bots[seat]
            if seat in errors:
                await self.fault(seat, bot, errors[seat], self.spec.clock.startup_ms)
                continue
            self.live[seat] = bot
            self._first_ids[seat] = bot.talk.asked + 1
            self._cpu_us[seat] = bot.process.cpu_us()
            talk = bot.talk
            options = self.spec.options
            bot.send(talk.deal(self.game.name, self.game.version, options, self.seats, seat, bot_seed(key, seat)))

    def tell(self, events: Sequence[Event]) -> None:
        """Queue events for the seats that may see them."""
        for event in events:
            packed = encode_event(event)
            for seat, bot in self.live.items():
                if event.seen_by is None or seat in event.seen_by:
                    bot.send(bot.talk.tell(packed))

    async def ask(self, state: State, spin_s: float) -> dict[Seat, Step]:
        """Ask all seats that are to act, at the same time; return what the clean ones answered."""
        clock = self.spec.clock
        errors: dict[Seat, BotError] = {}
        asked: dict[Seat, tuple[tuple[Action, ...], int]] = {}
        for seat in state.actors:
            if (bot := self.live.get(seat)) is None:
                continue
            bank_ms = self._bank_us[seat] // 1000
            limit_ms = min(clock.decision_ms, bank_ms)
            legal = state.legal_actions(seat)
            ask = bot.talk.ask(encode_observation(state.observation(seat)), legal, limit_ms, bank_ms)
            try:
                bot.check_waiting()
            except BotError as error:
                errors[seat] = error
                continue
            bot.begin(ask, limit_ms / 1000, ", all that was left in its bank" if limit_ms < clock.decision_ms else "")
            asked[seat] = legal, limit_ms
        resting = (bot for seat, bot in self.live.items() if seat not in asked)
        await settle([self.live[seat] for seat in asked], spin_s, resting)
        return await self._take(asked, errors)

    async def _take(
        self, asked: Mapping[Seat, tuple[tuple[Action, ...], int]], errors: dict[Seat, BotError]
    ) -> dict[Seat, Step]:
        steps = {}
        for seat, (legal, _) in asked.items():
            bot = self.live[seat]
            self._bank_us[seat] += self.spec.clock.increment_ms * 1000 - bot.elapsed_us
            if bot.error is not None:
                errors[seat] = bot.error
            elif isinstance(bot.answer, Act):
                if bot.answer.action in legal:
                    steps[seat] = Step(seat, bot.answer.action, bot.elapsed_us, _cut(bot.answer.note))
                else:
                    errors[seat] = _illegal(bot.answer.action, legal)
        for seat in sorted(errors):
            limit_ms = asked[seat][1] if seat in asked else None
            await self.fault(seat, self.live[seat], errors[seat], limit_ms)
        return steps

    async def fault(self, seat: Seat, bot: Bot, error: BotError, limit_ms: int | None) -> None:
        """Record a fault, and end the process that it is the fault of.

        Args:
            limit_ms: of what was asked, or None if nothing was.

        Raises:
            OverloadError: a bot was late while others kept the core from it.
        """
        is_late = error.kind is FaultKind.TIMEOUT or (error.kind, error.detail) == (FaultKind.STARTUP, "silent")
        if is_late and self.leg.lag.was_foreign_since(bot.began):
            raise OverloadError(
                f"this machine is too loaded to judge a bot's time: it was late ({error}), but other programs kept its "
                "core busy; play with fewer --jobs, or with nothing else running"
            )
        self._leave(seat, bot)
        bot.read_stderr()
        await self.leg.stop(seat)
        self.faulted[seat] = len(self.steps)
        self.faults.append(
            Fault(
                error.kind,
                error.detail,
                self.deck,
                self.leg.number,
                seat,
                len(self.steps),
                str(error),
                error.evidence,
                bot.stderr.text(),
                -1 if limit_ms is None else bot.elapsed_us,
                -1 if limit_ms is None else limit_ms * 1000,
            )
        )

    def _leave(self, seat: Seat, bot: Bot) -> None:
        self.live.pop(seat, None)
        if self._first_ids[seat]:  # it was dealt in
            self._digests[seat] = bot.talk.digest()
        self._stale[seat] = bot.talk.stale
        used_us = bot.process.cpu_us()
        is_known = min(used_us, self._cpu_us[seat]) >= 0
        self._cpu_us[seat] = used_us - self._cpu_us[seat] if is_known else -1

    def record(self, state: State, began: float) -> DealRecord:
        """Tell the remaining bots how it ended and return all that is kept of the deal."""
        ended = verdict(state.outcome, self.faulted, self.seats, self._outcome_type)
        for seat, bot in list(self.live.items()):
            bot.send(bot.talk.over(ended.places, ended.points, ended.reason))
            self._leave(seat, bot)
        return DealRecord(
            self.deck,
            self.leg.number,
            self.leg.seating,
            tuple(self.steps),
            ended.places,
            ended.points,
            ended.reason,
            ended.rated,
            tuple(self._digests),
            tuple(self._first_ids),
            tuple(self._cpu_us),
            tuple(self._stale),
            self.leg.lag.reset(),
            round((trio.current_time() - began) * 1e6),
        )


def _cut(note: str) -> str:
    return note.encode()[:NOTE_BYTES].decode(errors="ignore")


def _illegal(action: Action, legal: Sequence[Action]) -> BotError:
    shown = ", ".join(legal[:20]) + (", ..." if len(legal) > 20 else "")
    text = f"your bot answered {action[:80]!r}, which is not legal here; legal: {shown}"
    return BotError(FaultKind.ILLEGAL, "action", text, action.encode())


async def play_deal(current: Deal, spin_s: float = SPIN_S) -> DealRecord:
    """Play one deal to its end, whatever its bots do."""
    spec, game = current.spec, current.game
    state, events = deal(game, spec.options, current.seats, spec.decks[current.deck])
    if current.is_decided():
        return current.record(state, trio.current_time())
    await current.seat_bots()
    began = yielded = trio.current_time()
    current.tell(events)
    while not current.is_over(state):
        answers = await current.ask(state, spin_s)
        if current.is_decided():
            break
        for seat in state.actors:
            step = answers.get(seat) or Step(seat, game.house_action(state, seat), -1)
            state, events = state.apply(seat, step.action)
            current.steps.append(step)
            current.tell(events)
        if (now := trio.current_time()) - yielded > SPIN_S:
            await trio.lowlevel.checkpoint()
            yielded = now
    return current.record(state, began)


async def play_match(spec: MatchSpec, host: Host) -> MatchRecord:
    """Play every deck in every leg, leg after leg, each leg in fresh processes.

    Raises:
        InfraError: the match is void.
    """
    game = GAMES[spec.game]
    started_at, began = host.now(), trio.current_time()
    deals: list[DealRecord] = []
    faults: list[Fault] = []
    logs: list[Log] = []
    strikes = [0] * len(spec.bots)
    for number, seating in enumerate(spec.legs):
        async with open_leg(spec, host, number) as leg:
            for deck in range(len(spec.decks)):
                out = [seat for seat, place in enumerate(seating) if strikes[place] >= FORFEIT_FAULTS]
                current = Deal(spec, game, leg, deck, out)
                deals.append(await play_deal(current, host.spin_s))
                faults += current.faults
                for fault in current.faults:
                    strikes[seating[fault.seat]] += 1
        logs += leg.logs
    return MatchRecord(
        spec.id,
        tuple(deals),
        tuple(faults),
        host.isolation,
        host.engine,
        PROTOCOL,
        host.machine,
        host.core,
        started_at,
        round((trio.current_time() - began) * 1e6),
        tuple(logs),
    )
