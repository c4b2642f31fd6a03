"""A person at the table: deals played in the terminal, refereed as any other, and not kept."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence

import trio
import typer
from rich.columns import Columns
from rich.padding import Padding
from rich.text import Text

from arena.cli.app import EXIT_INTERRUPTED
from arena.cli.bots import explain_fault
from arena.cli.output import console, harmless, say
from arena.cli.site import Site, own_lane
from arena.errors import ConfigError
from arena.games import GAMES
from arena.plan import Plan, new_tournament, scheduled
from arena.records import BotHash, BotRef, DealRecord, Fault, MatchSpec, Step
from arena.referee import Deal, Host, Leg, open_leg, play_deal
from arena.rules import Action, Data, Event, Game, Seat, State, complete_options
from arena.schedule.seatings import Mode, seatings
from arena.words import action_words, event_words, position_lines

HUMAN = "human"
"""What stands for a person among the bots of a match; no bot can be called so."""

_LINE_BYTES = 4096


class Left(Exception):
    """The person has left the table."""


def check_human(bots: Sequence[str], *, as_json: bool) -> None:
    """Raise ConfigError if a person cannot play here and so."""
    if bots.count(HUMAN) > 1:
        raise ConfigError(f"{HUMAN} is named {bots.count(HUMAN)} times; one person can play, at one terminal")
    if as_json:
        raise ConfigError(f"--json tells what bots have played; {HUMAN} plays in the terminal, leave --json out")
    if not sys.stdin.isatty():
        raise ConfigError(f"{HUMAN} needs a terminal, and stdin is none; start it from a terminal, or name a bot")


def human_spec(
    game: str, plan: Plan, bots: Sequence[BotRef | None], seed: int | None, seatings_mode: Mode | None, isolation: str
) -> MatchSpec:
    """Return the match to play; its decks are those that `arena play` deals bots for the same seed.

    Args:
        bots: by seat, None for the person.
        seatings_mode: None leaves everybody in the seat in which they are named.
    """
    rules, seats = GAMES[game], len(bots)
    made = new_tournament("play", plan, isolation, time.time(), 1, seed=seed, kind="play")
    decks = scheduled(made, made.stages[0], game, 1, tuple(range(seats))).decks
    legs = seatings(seats, seatings_mode) if seatings_mode else (tuple(range(seats)),)
    options = complete_options(rules, seats, plan.games[game])
    person = BotRef(HUMAN, BotHash(""), "", ())
    refs = tuple(bot or person for bot in bots)
    return MatchSpec(0, game, rules.version, options, refs, decks, legs, plan.clock)


def play_human(site: Site, spec: MatchSpec, names: Sequence[str]) -> None:
    """Play the match of a spec, every deck in every leg, with a person in the place called `human`.

    Args:
        names: by place at the table.

    Raises:
        typer.Exit: the person left.
    """
    left = False
    with own_lane(site) as hosts:
        try:
            trio.run(_play, spec, hosts(spec), names)
        except* Left:
            left = True
    if left:
        say("you left the table; nothing is kept")
        raise typer.Exit(EXIT_INTERRUPTED)
    say(f"a match with {HUMAN} is not kept: there is no replay of it, and no rating")


async def _play(spec: MatchSpec, host: Host, names: Sequence[str]) -> None:
    place = next(number for number, ref in enumerate(spec.bots) if not ref.command)
    for number, seating in enumerate(spec.legs):
        async with open_leg(spec, host, number) as leg:
            for deck in range(len(spec.decks)):
                table = Table(seating.index(place), [names[one] for one in seating])
                table.open(f"deal {number * len(spec.decks) + deck + 1} of {len(spec.legs) * len(spec.decks)}")
                current = HumanDeal(spec, GAMES[spec.game], leg, deck, table)
                table.close(await play_deal(current, host.spin_s), current.faults)


class HumanDeal(Deal):
    """A deal in which one seat is a person's, who is not timed and cannot fault; all else is the referee's."""

    def __init__(self, spec: MatchSpec, game: Game, leg: Leg, deck: int, table: Table) -> None:
        super().__init__(spec, game, leg, deck, ())
        self._table = table

    def bot_seats(self) -> list[Seat]:
        """Return the seats of bots."""
        return [seat for seat in super().bot_seats() if seat != self._table.seat]

    def tell(self, events: Sequence[Event]) -> None:
        """Queue events for the bots, and for the person those it may see."""
        super().tell(events)
        self._table.tell(self.game.name, events)

    async def ask(self, state: State, spin_s: float) -> dict[Seat, Step]:
        """Ask the bots that are to act, then the person: in a window nobody hears what the others answered."""
        steps = await super().ask(state, spin_s)
        seat = self._table.seat
        if seat in state.actors and not self.is_decided():
            began = trio.current_time()
            action = await self._table.ask(state.observation(seat), state.legal_actions(seat))
            steps[seat] = Step(seat, action, round((trio.current_time() - began) * 1e6))
        return steps


class Table:
    """What the person sees and says; only what its seat may know is ever given to it.

    Attributes:
        seat: the person's.
    """

    def __init__(self, seat: Seat, names: Sequence[str]) -> None:
        self.seat = seat
        self._names = names
        self._untold: list[str] = []

    def open(self, title: str) -> None:
        """Tell who sits where."""
        seated = "   ".join(f"seat {seat} {name}" for seat, name in enumerate(self._names))
        typer.echo(f"{title}: {seated}; you are in seat {self.seat}, q leaves")

    def tell(self, game: str, events: Sequence[Event]) -> None:
        """Keep what the person may see of some events for its next decision."""
        for event in events:
            if event.seen_by is None or self.seat in event.seen_by:
                self._untold.append(event_words(game, event, self._names))

    async def ask(self, observation: Data, legal: Sequence[Action]) -> Action:
        """Show what happened, the position and the legal actions; return the one that the person names.

        Raises:
            Left: it does not want to.
        """
        self._show_events()
        for line in position_lines(_worth_showing(observation), self._names):
            typer.echo(f"  {line}")
        typer.echo()
        numbered = [Text(f"{number:2} {action_words(action)}") for number, action in enumerate(legal, 1)]
        console().print(Padding(Columns(numbered, padding=(0, 3)), (0, 2)))
        while True:
            typer.echo("your action: ", nl=False)
            said = await _read_line()
            if said is None or said == "q":
                raise Left
            if (action := _named(said, legal)) is not None:
                return action
            typer.echo(f"{harmless(said)[:40]!r} is none of them: a number from 1 to {len(legal)}, an action, or q")

    def close(self, record: DealRecord, faults: Sequence[Fault]) -> None:
        """Tell how the deal ended."""
        self._show_events()
        for fault in faults:
            name = self._names[fault.seat]
            typer.echo(f"fault of {name}: {explain_fault(fault)}")
        places = sorted(zip(record.places, record.points, self._names, strict=True))
        ranking = "; ".join(f"{place}. {name} ({points})" for place, points, name in places)
        typer.echo(f"{ranking}: {record.reason}\n")

    def _show_events(self) -> None:
        typer.echo()
        for line in self._untold:
            typer.echo(f"- {line}")
        self._untold.clear()


def _worth_showing(observation: Data) -> dict[str, object]:
    """Return an observation without what is said already, or is nothing."""
    said = {"seat", "seats", "turn"}
    return {key: value for key, value in observation.items() if key not in said and not _is_nothing(value)}


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, (list, tuple, Mapping)) and all(one is None for one in value))


def _named(said: str, legal: Sequence[Action]) -> Action | None:
    """Return the legal action that is named by its number, as it is sent, or in words."""
    if said.isascii() and said.isdecimal() and len(said) < 5:
        return legal[int(said) - 1] if 0 < int(said) <= len(legal) else None
    return next((action for action in legal if said in (action, action_words(action))), None)


async def _read_line() -> str | None:
    """Return what the person typed, or None at the end of input; bots' stderr is read on meanwhile.

    A terminal gives a line at a time, so nothing is left in a buffer that waiting would not see.
    """
    await trio.lowlevel.wait_readable(sys.stdin.fileno())
    data = os.read(sys.stdin.fileno(), _LINE_BYTES)
    return data.decode(errors="replace").strip() if data else None
