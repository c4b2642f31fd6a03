"""Stored deals executed again: position by position, and message by message as the referee sent them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from arena.errors import ConfigError
from arena.games import GAMES
from arena.records import Clock, DealRecord, Fault, Step
from arena.rules import Event, Game, Seat, State, Value, bot_seed, deal, parse_rule_set_id
from arena.store.matches import StoredMatch
from arena.wire import Conversation, encode_event, encode_observation
from arena.wire import State as TalkState


class Moment(msgspec.Struct, frozen=True):
    """A step of a deal, or the dealing itself.

    Attributes:
        step: None for the dealing.
        state: the position after it.
        events: what happened by it.
    """

    number: int
    step: Step | None
    state: State
    events: tuple[Event, ...]


def rules_of(stored: StoredMatch) -> tuple[Game, dict[str, Value]]:
    """Return the game of a stored match and its options.

    Raises:
        ConfigError: the match is of another version of the rules.
    """
    name, version, texts = parse_rule_set_id(stored.rule_set)
    game = GAMES.get(name)
    if game is None or version != game.version:
        present = "no such game" if game is None else f"{name}/{game.version}"
        raise ConfigError(
            f"match {stored.id} is of {name}/{version}, this arena has {present}; "
            "it can only be played and shown by the version that scheduled it"
        )
    if texts.keys() != game.schema.keys():
        raise ConfigError(f"match {stored.id} has other options than {name}/{version}: {', '.join(texts)}")
    return game, {option: game.schema[option].parse(text) for option, text in texts.items()}


def moments(stored: StoredMatch, played: DealRecord) -> Iterator[Moment]:
    """Execute a stored deal again and yield every step of it, the dealing first."""
    game, options = rules_of(stored)
    state, events = deal(game, options, len(stored.hashes), stored.decks[played.deck])
    yield Moment(0, None, state, events)
    for number, step in enumerate(played.steps, 1):
        state, events = state.apply(step.seat, step.action)
        yield Moment(number, step, state, events)


class Said(NamedTuple):
    """Something that was said in a deal: a frame to a seat, its answer, or the fault that ended its part.

    Attributes:
        step: actions applied before it.
    """

    seat: Seat
    step: int
    what: bytes | Step | Fault


class Retelling:
    """The referee's side of the conversations of a deal, followed again from the record.

    Attributes:
        state: the position reached.
        done: the steps applied so far.
        talks: the conversation with each seat that was dealt in, to be digested once all is told.
    """

    def __init__(
        self,
        stored: StoredMatch,
        played: DealRecord,
        faults: Sequence[Fault],
        clock: Clock,
        seats: Collection[Seat] | None = None,
    ) -> None:
        """Prepare to follow a deal.

        Args:
            faults: those of the deal.
            clock: the limits it was played with; only what asks say of them depends on it.
            seats: whose conversations to follow, by default all.
        """
        heard = range(len(played.seating)) if seats is None else seats
        self._game, self._options = rules_of(stored)
        self._key = stored.decks[played.deck]
        self._played = played
        self._clock = clock
        self._faults = {fault.seat: fault for fault in faults if fault.seat in heard}
        # Without a step, and without a fault of a seat that was dealt in, nobody was asked: it was decided before.
        self._was_asked = bool(played.steps) or any(played.first_ids[fault.seat] for fault in faults)
        self._bank_us = dict.fromkeys(heard, clock.bank_ms * 1000)
        dealt_in = [seat for seat in heard if played.first_ids[seat]]
        self.talks = {seat: Conversation(TalkState.READY, played.first_ids[seat] - 1) for seat in dealt_in}
        self._live = dict(self.talks)
        self.done = 0
        self.state, self._events = deal(self._game, self._options, len(played.seating), self._key)

    def follow(self) -> Iterator[Said]:
        """Yield what was said, in the order in which it was sent.

        Raises:
            IllegalAction: the record holds a step that these rules do not allow.
        """
        played, game = self._played, self._game
        for seat, talk in self._live.items():
            seed = bot_seed(self._key, seat)
            frame = talk.deal(game.name, game.version, self._options, len(played.seating), seat, seed)
            yield Said(seat, 0, frame)
        yield from (Said(seat, 0, fault) for seat, fault in self._faults.items() if seat not in self._live)
        yield from self._tell(self._events, 0)
        while (actors := self.state.actors) and self._was_asked and (self.done < len(played.steps) or self._live):
            batch = played.steps[self.done : self.done + len(actors)]
            yield from self._ask(actors, batch, self.done)
            if not batch:  # a fault ended the deal before the answers were applied
                break
            for step in batch:
                self.state, events = self.state.apply(step.seat, step.action)
                self.done += 1
                yield from self._tell(events, self.done)
        for seat, talk in self._live.items():
            yield Said(seat, self.done, talk.over(played.places, played.points, played.reason))

    def _ask(self, actors: Sequence[Seat], batch: Sequence[Step], done: int) -> Iterator[Said]:
        asked = [seat for seat in actors if seat in self._live]
        for seat in asked:
            bank_ms = self._bank_us[seat] // 1000
            limit_ms = min(self._clock.decision_ms, bank_ms)
            view = encode_observation(self.state.observation(seat))
            yield Said(seat, done, self._live[seat].ask(view, self.state.legal_actions(seat), limit_ms, bank_ms))
        for seat in asked:
            fault = self._faults.get(seat)
            if fault is not None and fault.step == done:
                yield Said(seat, done, fault)
                del self._live[seat]
                continue
            self._live[seat].state = TalkState.PLAYING
            for answer in batch:  # it is missing where another seat's fault ended the deal meanwhile
                if answer.seat == seat:
                    self._bank_us[seat] += self._clock.increment_ms * 1000 - answer.elapsed_us
                    yield Said(seat, done, answer)

    def _tell(self, events: Sequence[Event], done: int) -> Iterator[Said]:
        for event in events:
            packed = encode_event(event)
            for seat, talk in self._live.items():
                if (event.seen_by is None or seat in event.seen_by) and (frame := talk.tell(packed)):
                    yield Said(seat, done, frame)

    def digests(self) -> Mapping[Seat, bytes]:
        """Return the digest of what was sent to each seat that was dealt in."""
        return {seat: talk.digest() for seat, talk in self.talks.items()}
