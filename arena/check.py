"""What `arena submit` asks of a bot before it is kept: that it starts and plays a short match of each of its games."""

from __future__ import annotations

from collections.abc import Sequence

from arena.executor import Executor
from arena.games import GAMES
from arena.luck import derive
from arena.records import BotRef, Clock, Fault, MatchSpec
from arena.rules import complete_options
from arena.schedule.seatings import seatings

_KEY = b"arena check"


def check_spec(bot: BotRef, game: str, number: int, clock: Clock) -> MatchSpec:
    """Return a match of a bot against itself, one deal of it, always the same one."""
    rules = GAMES[game]
    seats = rules.seats[0]
    options = complete_options(rules, seats, {})
    deck = derive(_KEY, "deck", game)
    return MatchSpec(number, game, rules.version, options, (bot,) * seats, (deck,), seatings(seats)[:1], clock)


async def first_fault(
    bot: BotRef, games: Sequence[str], executor: Executor, clock: Clock | None = None
) -> tuple[str, Fault] | None:
    """Play the short matches; return the game and the first fault of the first one that has any.

    Raises:
        InfraError: a match is void.
    """
    for number, game in enumerate(games, 1):
        played = await executor.play(check_spec(bot, game, number, clock or Clock()))
        if played.faults:
            return game, played.faults[0]
    return None
