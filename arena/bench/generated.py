"""Matches that nobody played: legal deals with right digests, made as fast as a database can take them.

The deals of a match are random play-outs. The tables of a round share its decks and a few ways to play them, so that a
million deals take thousands of play-outs; times and CPU differ in each, as they do between real ones.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

import msgspec
import trio

from arena import __version__
from arena.games import GAMES
from arena.records import BotHash, Clock, DealRecord, Machine, MatchRecord, MatchSpec, Step
from arena.retelling import Retelling
from arena.rules import Game, Value, complete_options, deal, rule_set_id
from arena.store.matches import StoredMatch
from arena.wire import PROTOCOL

WAYS = 2
"""In how many ways the decks of a round are played."""
_MACHINE = Machine("Linux", "generated", 2, 4096, "3.11")
_MOST_US = 400


class GeneratedLanes:
    """An executor that starts no bot and waits for nothing; equal specs give equal records."""

    def __init__(self, isolation: str) -> None:
        self.lanes = 2
        self._isolation = isolation

    async def play(self, spec: MatchSpec) -> MatchRecord:
        """Return a record of the match."""
        await trio.lowlevel.checkpoint()
        luck = Random(spec.id)
        options = tuple(sorted(spec.options.items()))
        deals: list[DealRecord] = []
        for leg, seating in enumerate(spec.legs):
            ways = _played(spec.game, options, len(spec.bots), spec.decks, (spec.id + leg) % WAYS, spec.clock)
            deals += (_own(made, leg, seating, luck) for made in ways)
        return MatchRecord(
            spec.id, tuple(deals), (), self._isolation, __version__, PROTOCOL, _MACHINE, 0, 1e9 + spec.id, 1_000_000
        )


def _own(made: DealRecord, leg: int, seating: tuple[int, ...], luck: Random) -> DealRecord:
    """Return a deal as one table played it: with its leg, its seating and times of its own."""
    times = luck.choices(range(50, _MOST_US), k=len(made.steps))
    steps = tuple(Step(step.seat, step.action, us) for step, us in zip(made.steps, times, strict=True))
    cpu = tuple(luck.randrange(1_000, 50_000) for _ in seating)
    return msgspec.structs.replace(
        made, leg=leg, seating=seating, steps=steps, cpu_us=cpu, lag_us=luck.randrange(900), duration_us=sum(times)
    )


@lru_cache(maxsize=64)
def _played(
    name: str, options: tuple[tuple[str, Value], ...], seats: int, decks: tuple[bytes, ...], way: int, clock: Clock
) -> list[DealRecord]:
    """Return the deals of a leg, played one after the other by the same processes."""
    game = GAMES[name]
    whole = complete_options(game, seats, dict(options))
    hashes = tuple(BotHash(f"{seat:064}") for seat in range(seats))
    circle = tuple(range(seats))
    stored = StoredMatch(
        0, 0, name, 1, rule_set_id(game, whole), "played", circle, hashes, hashes, decks, (circle,), None, seats
    )
    first_ids = [1] * seats
    deals = []
    for number, key in enumerate(decks):
        made = _play_out(game, whole, circle, number, key, Random(key + bytes([way])))
        made = msgspec.structs.replace(made, first_ids=tuple(first_ids))
        told = Retelling(stored, made, (), clock)
        for _ in told.follow():
            pass
        digests = tuple(told.digests()[seat] for seat in circle)
        deals.append(msgspec.structs.replace(made, digests=digests))
        for step in made.steps:
            first_ids[step.seat] += 1
    return deals


def _play_out(
    game: Game, options: dict[str, Value], circle: tuple[int, ...], number: int, key: bytes, luck: Random
) -> DealRecord:
    state, _ = deal(game, options, len(circle), key)
    steps = []
    while state.actors:
        for seat in state.actors:
            step = Step(seat, luck.choice(state.legal_actions(seat)), 0)
            state, _ = state.apply(seat, step.action)
            steps.append(step)
    ended = state.outcome
    assert ended is not None
    none = (0,) * len(circle)
    return DealRecord(
        number, 0, circle, tuple(steps), ended.places, ended.points, ended.reason, True, (), (), none, none, 0, 0
    )
