"""`arena trace`: every message between the referee and a bot in a deal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import Deal, find_deal
from arena.cli.output import emit_lines, harmless
from arena.errors import ConfigError, IllegalAction
from arena.explain import Line, dialogue
from arena.records import Fault
from arena.store import tournaments
from arena.store.database import open_reader


@app.command(epilog="Example: arena trace 17-3-0 --seat 1")
def trace(
    deal: Deal,
    seat: Annotated[int, typer.Option("--seat", help="Whose dialogue, 0-based.", min=0)] = 0,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show every message between the referee and a bot in a deal."""
    from arena.plan import plan_of

    with open_reader(db) as opened:
        match, record, faults = find_deal(opened, deal)
        clock = plan_of(tournaments.get(opened, match.tournament)).clock
    name = f"{match.id}-{record.deck}-{record.leg}"
    if seat >= len(record.seating):
        raise ConfigError(f"deal {name} has no seat {seat}; its seats are 0 ... {len(record.seating) - 1}")
    try:
        lines, is_genuine = dialogue(match, record, seat, faults, clock)
    except IllegalAction as error:
        raise ConfigError(f"deal {name} breaks the rules: {error}; `arena verify` says more") from None
    if as_json:
        emit_lines("trace/1", ({"deal": name, "seat": seat, **msgspec.structs.asdict(line)} for line in lines))
    else:
        _show_dialogue(name, lines, next((fault for fault in faults if fault.seat == seat), None))
    if not is_genuine:
        raise ConfigError(f"the messages of deal {name} do not digest to what was stored: record or rules have changed")


def _show_dialogue(name: str, lines: Sequence[Line], fault: Fault | None) -> None:
    arrows = {"referee": "->", "bot": "<-", "fault": "!!"}
    for line in lines:
        took = "" if line.elapsed_us is None else f"   # {line.elapsed_us / 1000:.2f} ms"
        typer.echo(f"{line.step:4} {arrows[line.sender]} {harmless(json.dumps(line.message))}{took}")
    if not lines:
        typer.echo(f"nothing was said in {name}: it was forfeited")
    if fault is not None and fault.stderr:
        typer.echo("the end of its stderr:\n" + harmless(fault.stderr.decode(errors="replace")).rstrip())
