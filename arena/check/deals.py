"""Deals that a check plays: whole ones by the real referee, always the same ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import msgspec

from arena.bot import Bot
from arena.check.usage import peak_kib
from arena.games import GAMES
from arena.luck import derive
from arena.records import BotRef, Clock, DealRecord, Fault, MatchSpec
from arena.referee import Deal, Host, Leg, open_leg, play_deal
from arena.rules import Seat, complete_options
from arena.schedule.seatings import seatings
from arena.verdict import FORFEIT_FAULTS

OpenHost: TypeAlias = Callable[[MatchSpec], Host]
"""Says where a match is played: its clocks decide what its processes may use."""

_KEY = b"arena check"


class Played(msgspec.Struct, frozen=True):
    """Some deals of one table.

    Attributes:
        own: the places at the table that are the examined bot's.
        deals: those that were played; fewer than planned where faults were too many.
        faults: the examined bot's.
        peak_kib: the most memory that one of its processes used.
        stderr_bytes: what all of them wrote there.
    """

    spec: MatchSpec
    own: frozenset[int]
    deals: tuple[DealRecord, ...]
    faults: tuple[Fault, ...]
    peak_kib: int
    stderr_bytes: int

    def own_seats(self, deal: DealRecord) -> list[Seat]:
        """Return where the examined bot sat in a deal."""
        return [seat for seat, place in enumerate(deal.seating) if place in self.own]

    def elapsed_us(self) -> list[int]:
        """Return the time of each decision of the examined bot."""
        return [
            step.elapsed_us
            for deal in self.deals
            for step in deal.steps
            if deal.seating[step.seat] in self.own and step.elapsed_us >= 0
        ]

    def bank_us(self) -> int:
        """Return the most that a seat of the examined bot took from its bank in a deal."""
        increment_us = self.spec.clock.increment_ms * 1000
        used = [0]
        for deal in self.deals:
            for seat in self.own_seats(deal):
                times = [step.elapsed_us - increment_us for step in deal.steps if step.seat == seat]
                used.append(sum(times))
        return max(used)


def check_spec(bot: BotRef, game: str, number: int, clock: Clock, decks: int = 1, seats: int = 0) -> MatchSpec:
    """Return a match of a bot against itself in one seating, always the same one.

    Args:
        seats: by default the fewest.
    """
    return _spec([bot] * (seats or GAMES[game].seats[0]), game, number, clock, range(decks))


def random_specs(bot: BotRef, opponent: BotRef, game: str, clock: Clock, decks: int, seats: int) -> list[MatchSpec]:
    """Return matches at tables where every other seat is the opponent's: half the decks, then the others turned by one.

    So every seat is once the bot's, and no deck is dealt twice.
    """
    table = [bot if place % 2 == 0 else opponent for place in range(seats)]
    found = []
    for turn in range(2):
        spec = _spec(table, game, 1 + turn, clock, range(turn, decks, 2))
        found.append(msgspec.structs.replace(spec, legs=seatings(seats, "rotate")[turn : turn + 1]))
    return [spec for spec in found if spec.decks]


def _spec(table: Sequence[BotRef], game: str, number: int, clock: Clock, decks: Collection[int]) -> MatchSpec:
    rules, seats = GAMES[game], len(table)
    keys = tuple(derive(_KEY, "deck", game, seats, deck) for deck in decks)
    options = complete_options(rules, seats, {})
    return MatchSpec(number, game, rules.version, options, tuple(table), keys, seatings(seats)[:1], clock)


async def play_deals(spec: MatchSpec, bot: BotRef, host: Host) -> Played:
    """Play a match of one leg as the referee does, up to the fault from which on a bot forfeits.

    Raises:
        InfraError: it could not be played for a reason of ours.
    """
    own = frozenset(place for place, ref in enumerate(spec.bots) if ref == bot)
    deals: list[DealRecord] = []
    faults: list[Fault] = []
    used = Usage()
    async with open_leg(spec, host, 0) as leg:
        for deck in range(len(spec.decks)):
            current = Deal(spec, GAMES[spec.game], leg, deck, ())
            deals.append(await play_deal(current, host.spin_s))
            faults += [fault for fault in current.faults if leg.seating[fault.seat] in own]
            used.look(leg, own)
            if len(faults) >= FORFEIT_FAULTS:
                break
    return Played(spec, own, tuple(deals), tuple(faults), used.peak_kib, used.stderr_bytes())


class Usage:
    """What the processes of a leg that are the examined bot's have used so far."""

    def __init__(self) -> None:
        self.peak_kib = 0
        self._stderr: dict[Bot, int] = {}

    def look(self, leg: Leg, own: Collection[int]) -> None:
        """Look at what lives."""
        for seat, bot in leg.bots.items():
            if leg.seating[seat] in own:
                self.peak_kib = max(self.peak_kib, peak_kib(bot.process))
                bot.read_stderr()
                self._stderr[bot] = bot.stderr.total

    def stderr_bytes(self) -> int:
        """Return what all of them wrote there."""
        return sum(self._stderr.values())


async def first_fault(
    bot: BotRef, games: Sequence[str], hosts: OpenHost, clock: Clock | None = None
) -> tuple[str, Fault] | None:
    """Play one deal of each game, the bot against itself; return the game and the fault of the first that has any.

    Raises:
        InfraError: a deal could not be played for a reason of ours.
    """
    for number, game in enumerate(games, 1):
        spec = check_spec(bot, game, number, clock or Clock())
        if faults := (await play_deals(spec, bot, hosts(spec))).faults:
            return game, faults[0]
    return None
