"""One position of a stored deal, asked of a bot again; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.bot import Bot, settle
from arena.errors import BotError, ConfigError
from arena.records import BotRef, Clock, DealRecord, Fault, MatchSpec, Step
from arena.referee import Host, open_leg
from arena.retelling import Moment, moments, rules_of
from arena.rules import Action, Seat, bot_seed
from arena.store.matches import StoredMatch
from arena.wire import Act, encode_event, encode_observation

_NEAREST = 4


class Position(msgspec.Struct, frozen=True):
    """A decision of a seat in a stored deal.

    Attributes:
        told: everything that happened before it, in order.
        step: the number of actions applied before it.
        bank_ms: what was left in the seat's bank.
        played: its action then; None where a fault came first.
        fault: of the seat, if it failed then.
    """

    match: StoredMatch
    deal: DealRecord
    told: tuple[Moment, ...]
    seat: Seat
    step: int
    bank_ms: int
    played: Step | None
    fault: Fault | None

    @property
    def legal(self) -> tuple[Action, ...]:
        """The legal actions."""
        return self.told[-1].state.legal_actions(self.seat)


class Answer(msgspec.Struct, frozen=True):
    """What a bot says to a position.

    Attributes:
        action: None if the bot failed.
        elapsed_us: of the answer, or of its start where that failed.
        limit_us: the time there was for it.
        stderr: what its process wrote there.
    """

    action: Action | None
    note: str
    error: BotError | None
    elapsed_us: int
    limit_us: int
    stderr: bytes


def find_position(
    match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], clock: Clock, seats: Sequence[Seat], step: int
) -> Position:
    """Return what the first of some seats that was asked after so many steps was asked.

    Args:
        faults: those of the deal.
        clock: the limits it was played with.

    Raises:
        ConfigError: none was asked there; names who was, and where they were.
        IllegalAction: the record holds a step that these rules do not allow.
    """
    all_moments = tuple(moments(match, deal))
    if not 0 <= step < len(all_moments):
        raise ConfigError(f"the deal has no step {step}; its steps are 0 ... {len(all_moments) - 1}")
    seat = next((one for one in seats if one in all_moments[step].state.actors), None)
    if seat is None:
        raise ConfigError(_not_asked(match, deal, all_moments, seats, step))
    bank_us = clock.bank_ms * 1000
    for done in deal.steps[:step]:
        if done.seat == seat and done.elapsed_us >= 0:
            bank_us += clock.increment_ms * 1000 - done.elapsed_us
    played = next((done for done in deal.steps[step:] if done.seat == seat), None)
    fault = next((one for one in faults if one.seat == seat and one.step == step), None)
    return Position(match, deal, all_moments[: step + 1], seat, step, bank_us // 1000, played, fault)


def _not_asked(match: StoredMatch, deal: DealRecord, told: Sequence[Moment], seats: Sequence[Seat], step: int) -> str:
    names = [match.names[place] for place in deal.seating]
    actors = " and ".join(f"{names[actor]} (seat {actor})" for actor in told[step].state.actors)
    asked = [moment.number for moment in told if not set(moment.state.actors).isdisjoint(seats)]
    near = sorted(sorted(asked, key=lambda number: abs(number - step))[:_NEAREST])
    where = f"near it are its steps {', '.join(map(str, near))}" if near else "it is never asked in this deal"
    return f"{names[seats[0]]} is not asked at step {step}, but {actors or 'nobody: the deal is over'}; {where}"


def position_spec(position: Position, bot: BotRef, clock: Clock) -> MatchSpec:
    """Return the match as a host needs it, with a bot at all places."""
    match = position.match
    game, options = rules_of(match)
    bots = (bot,) * len(match.names)
    return MatchSpec(match.id, match.game, game.version, options, bots, match.decks, match.legs, clock)


async def ask_again(position: Position, spec: MatchSpec, host: Host) -> Answer:
    """Start the bot of a spec, tell it all that its seat was told before a position, and ask it.

    The asks before are not asked: the observation says all that matters, and the events are all told.

    Raises:
        InfraError: it cannot be started for a reason of ours.
    """
    deal, seat = position.deal, position.seat
    async with open_leg(spec, host, deal.leg) as leg:
        errors = await leg.start([seat], deal.deck)
        bot = leg.bots[seat]
        if seat in errors:
            return _answer(bot, errors[seat], spec.clock.startup_ms)
        limit_ms = min(spec.clock.decision_ms, position.bank_ms)
        ask = _tell(bot, position, spec, limit_ms)
        try:
            bot.check_waiting()
        except BotError as error:
            return _answer(bot, error, limit_ms)
        bot.begin(ask, limit_ms / 1000)
        await settle([bot], host.spin_s)
        return _answer(bot, bot.error, limit_ms)


def _answer(bot: Bot, error: BotError | None, limit_ms: int) -> Answer:
    bot.read_stderr()
    act = bot.answer if error is None and isinstance(bot.answer, Act) else None
    return Answer(
        act.action if act is not None else None,
        act.note if act is not None else "",
        error,
        bot.elapsed_us,
        limit_ms * 1000,
        bot.stderr.text(),
    )


def _tell(bot: Bot, position: Position, spec: MatchSpec, limit_ms: int) -> bytes:
    """Send the deal and what happened in it; return the ask."""
    seat, key = position.seat, spec.decks[position.deal.deck]
    seats = len(spec.bots)
    bot.send(bot.talk.deal(spec.game, spec.version, spec.options, seats, seat, bot_seed(key, seat)))
    for moment in position.told:
        for event in moment.events:
            if event.seen_by is None or seat in event.seen_by:
                bot.send(bot.talk.tell(encode_event(event)))
    view = encode_observation(position.told[-1].state.observation(seat))
    return bot.talk.ask(view, position.legal, limit_ms, position.bank_ms)
