"""`arena replay`: a stored deal executed again, in words and cards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from arena.cli.app import DEFAULT_DB, Db, InBrowser, Json, app
from arena.cli.finding import Deal, find_deal
from arena.cli.output import emit_lines, harmless
from arena.errors import ConfigError, IllegalAction
from arena.records import DealRecord, Fault
from arena.retelling import Moment, moments
from arena.rules import Event, Seat
from arena.store.database import open_reader
from arena.words import action_words, event_words, position_lines


@app.command(epilog="Example: arena replay 17-3-0 --as 1 --step 26")
def replay(
    deal: Deal,
    seat: Annotated[int | None, typer.Option("--as", help="Only what this seat could see, 0-based.", min=0)] = None,
    step: Annotated[int | None, typer.Option("--step", help="Only the position after so many steps.", min=0)] = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
    in_browser: InBrowser = False,
) -> None:
    """Execute a stored deal again and show each step of it in words and cards."""
    if in_browser:
        _open(db, deal)
        return
    with open_reader(db) as opened:
        match, record, faults = find_deal(opened, deal)
    if seat is not None and seat >= len(record.seating):
        raise ConfigError(f"deal {deal} has no seat {seat}; its seats are 0 ... {len(record.seating) - 1}")
    if step is not None and step > len(record.steps):
        raise ConfigError(f"deal {deal} has no step {step}; its steps are 0 ... {len(record.steps)}")
    try:
        chosen = [moment for moment in moments(match, record) if step is None or moment.number == step]
    except IllegalAction as error:
        raise ConfigError(f"deal {deal} breaks the rules: {error}; `arena verify` says more") from None
    names = [match.names[place] for place in record.seating]
    if as_json:
        emit_lines("replay/1", (_document(moment, seat, names, record) for moment in chosen))
        return
    typer.echo(f"{match.id}-{record.deck}-{record.leg} · {match.rule_set}")
    typer.echo("   ".join(f"seat {place} {harmless(name)}" for place, name in enumerate(names)))
    if step is not None:
        _show_position(chosen[0], seat, names, record)
        _show_faults([one for one in faults if one.step == step and seat in (None, one.seat)], names)
        return
    for moment in chosen:
        for line in _step_lines(match.game, moment, seat, names):
            typer.echo(line)
    _show_end(record, [fault for fault in faults if seat in (None, fault.seat)], names)


def _open(db: Path, name: str) -> None:
    from arena.cli.pages import show
    from arena.web.page import Source, deal_name, replay_path
    from arena.web.pages import page

    def choose(source: Source) -> list[str]:
        match, record, _ = find_deal(source.db, name)
        path = replay_path(deal_name(match.id, record.deck, record.leg))
        if page(source, path.removesuffix(".html")) is None:
            raise ConfigError(f"the round of deal {name} is being played, so it has no page yet; leave --open out")
        return [path]

    show(db, choose)


def _seen(events: Sequence[Event], seat: Seat | None) -> list[Event]:
    return [event for event in events if seat is None or event.seen_by is None or seat in event.seen_by]


def _step_lines(game: str, moment: Moment, seat: Seat | None, names: Sequence[str]) -> Iterator[str]:
    step = moment.step
    # An answer in a window is nobody else's to see until the window closes.
    if step is not None and (moment.events or seat in (None, step.seat)):
        own = seat in (None, step.seat)  # how long others think, and whether the house plays for them, nobody is told
        took = "" if not own else "house" if step.elapsed_us < 0 else f"{step.elapsed_us / 1000:.1f} ms"
        note = f"  «{harmless(step.note)}»" if step.note and seat in (None, step.seat) else ""
        yield f"{moment.number - 1:4}  {names[step.seat]:<12} {action_words(step.action):<20} {took:>9}{note}"
    for event in _seen(moment.events, seat):
        yield f"        {event_words(game, event, names)}"


def _show_position(moment: Moment, seat: Seat | None, names: Sequence[str], record: DealRecord) -> None:
    for line in position_lines(moment.state.observation(seat), names):
        typer.echo(f"  {line}")
    for actor in moment.state.actors:
        if seat in (None, actor):
            legal = ", ".join(map(action_words, moment.state.legal_actions(actor)))
            typer.echo(f"  legal for {names[actor]}: {legal}")
    for chosen in record.steps[moment.number : moment.number + 1]:
        if seat in (None, chosen.seat):
            typer.echo(f"  then {names[chosen.seat]}: {action_words(chosen.action)}")


def _show_end(record: DealRecord, faults: Sequence[Fault], names: Sequence[str]) -> None:
    _show_faults(faults, names)
    places = sorted(zip(record.places, names, record.points, strict=True))
    typer.echo("; ".join(f"{place}. {name} ({points})" for place, name, points in places) + f": {record.reason}")


def _show_faults(faults: Sequence[Fault], names: Sequence[str]) -> None:
    for fault in faults:
        where = f"fault after step {fault.step}, {names[fault.seat]}"
        typer.echo(f"{where}: {fault.kind}/{fault.detail}: {harmless(fault.text)}")


def _document(moment: Moment, seat: Seat | None, names: Sequence[str], record: DealRecord) -> dict[str, object]:
    step = moment.step
    hidden = step is not None and not moment.events and seat not in (None, step.seat)
    shown = None if step is None or hidden else step
    return {
        "number": moment.number,
        "seat": shown.seat if shown else None,
        "name": names[shown.seat] if shown else None,
        "action": shown.action if shown else None,
        "elapsed_us": shown.elapsed_us if shown and seat in (None, shown.seat) else None,
        "events": [event.message() for event in _seen(moment.events, seat)],
        "observation": moment.state.observation(seat),
        "legal": {
            str(actor): moment.state.legal_actions(actor) for actor in moment.state.actors if seat in (None, actor)
        },
        "places": record.places if moment.number == len(record.steps) else None,
    }
