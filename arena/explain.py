"""Stored deals told again: step by step, and as the dialogue a bot had. The rules are executed anew for both."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Literal

import msgpack
import msgspec

from arena.errors import ConfigError
from arena.games import GAMES
from arena.records import Clock, DealRecord, Fault, Step
from arena.rules import Event, Game, Outcome, Seat, State, Value, bot_seed, deal, parse_rule_set_id
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


class Line(msgspec.Struct, frozen=True):
    """A message of a dialogue.

    Attributes:
        sender: `referee`, `bot`, or `fault` for the failure that ended it.
        step: actions applied before it.
        elapsed_us: of an answer.
    """

    sender: Literal["referee", "bot", "fault"]
    step: int
    message: dict[str, object]
    elapsed_us: int | None = None


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
    return game, {option: game.schema[option].parse(text) for option, text in texts.items()}


def moments(stored: StoredMatch, played: DealRecord) -> Iterator[Moment]:
    """Execute a stored deal again and yield every step of it, the dealing first."""
    game, options = rules_of(stored)
    state, events = deal(game, options, len(stored.hashes), stored.decks[played.deck])
    yield Moment(0, None, state, events)
    for number, step in enumerate(played.steps, 1):
        state, events = state.apply(step.seat, step.action)
        yield Moment(number, step, state, events)


def dialogue(
    stored: StoredMatch, played: DealRecord, seat: Seat, faults: Sequence[Fault], clock: Clock
) -> tuple[list[Line], bool]:
    """Return what was said between the referee and a seat in a deal.

    Args:
        faults: those of the deal.
        clock: the limits it was played with.

    Returns:
        The lines in order, and whether the messages digest to what was stored when they were sent.
    """
    told = _Retold(stored, played, seat, faults, clock)
    told.run()
    return told.lines, told.talk.digest() == played.digests[seat] or not played.first_ids[seat]


def sent_frames(stored: StoredMatch, played: DealRecord, seat: Seat, clock: Clock) -> list[bytes]:
    """Return the frames that were sent to a seat in a deal without faults, in order."""
    told = _Retold(stored, played, seat, [], clock)
    told.run()
    return told.frames


class _Retold:
    """The referee's side of a seat's conversation, followed again from the record."""

    def __init__(
        self, stored: StoredMatch, played: DealRecord, seat: Seat, faults: Sequence[Fault], clock: Clock
    ) -> None:
        self.lines: list[Line] = []
        self.frames: list[bytes] = []
        self.talk = Conversation(TalkState.READY, played.first_ids[seat] - 1)
        self._stored = stored
        self._played = played
        self._seat = seat
        self._fault = next((fault for fault in faults if fault.seat == seat), None)
        # Without a step, and without a fault of a seat that was dealt in, nobody was asked: it was decided before.
        self._was_asked = bool(played.steps) or any(played.first_ids[fault.seat] for fault in faults)
        self._clock = clock
        self._bank_us = clock.bank_ms * 1000
        self._live = played.first_ids[seat] > 0
        self._done = 0

    def run(self) -> None:
        """Follow the deal to its end."""
        game, options = rules_of(self._stored)
        seats, key = len(self._stored.hashes), self._stored.decks[self._played.deck]
        state, events = deal(game, options, seats, key)
        if self._live:
            seed = bot_seed(key, self._seat)
            self._sent(self.talk.deal(game.name, game.version, options, seats, self._seat, seed))
        elif self._fault is not None:
            self._failed(self._fault)
        self._tell(events)
        steps = list(self._played.steps)
        while state.actors and self._was_asked and (steps or self._live):
            actors = state.actors
            if self._seat in actors and self._live:
                self._ask(state, steps)
            if not steps:
                break
            for step in steps[: len(actors)]:
                state, events = state.apply(step.seat, step.action)
                self._done += 1
                self._tell(events)
            del steps[: len(actors)]
        if self._live:
            outcome = Outcome(self._played.places, self._played.points, self._played.reason)
            self._sent(self.talk.over(outcome.places, outcome.points, outcome.reason))

    def _ask(self, state: State, steps: Sequence[Step]) -> None:
        bank_ms = self._bank_us // 1000
        limit_ms = min(self._clock.decision_ms, bank_ms)
        view = encode_observation(state.observation(self._seat))
        self._sent(self.talk.ask(view, state.legal_actions(self._seat), limit_ms, bank_ms))
        if self._fault is not None and self._fault.step == self._done:
            self._failed(self._fault)
            return
        answer = next((step for step in steps[: len(state.actors)] if step.seat == self._seat), None)
        self.talk.state = TalkState.PLAYING
        if answer is None:  # another seat's fault ended the deal while this one had answered
            return
        self._bank_us += self._clock.increment_ms * 1000 - answer.elapsed_us
        message: dict[str, object] = {"type": "act", "id": self.talk.asked, "action": answer.action}
        if answer.note:
            message["note"] = answer.note
        self.lines.append(Line("bot", self._done, message, answer.elapsed_us))

    def _failed(self, fault: Fault) -> None:
        kept: dict[str, object] = {"kind": fault.kind.value, "detail": fault.detail, "text": fault.text}
        self.lines.append(Line("fault", self._done, kept))
        self._live = False

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            if self._live and (event.seen_by is None or self._seat in event.seen_by):
                self._sent(self.talk.tell(encode_event(event)))

    def _sent(self, frame: bytes) -> None:
        if frame:
            self.frames.append(frame)
            (length,) = struct.unpack_from(">I", frame)
            self.lines.append(Line("referee", self._done, msgpack.unpackb(frame[4 : 4 + length])))
