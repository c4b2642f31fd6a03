"""`arena verify` and `arena reveal`: that stored results are what was played, and that nobody chose the cards."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer

from arena.audit import audit
from arena.cli.app import DEFAULT_DB, EXIT_NO, Db, Json, app
from arena.cli.finding import find_tournament
from arena.cli.output import count_of, emit_json, harmless, say
from arena.store import matches, tournaments
from arena.store.database import open_reader
from arena.verify import Difference, is_sealed, revealed, stage_name

_SHOWN = 50
_CUT = 80
_SEALED = (
    "imported before its end, and a master seed is not revealed before; so its cards and who met whom "
    "could not be checked, all else was"
)


@app.command(epilog="Example: arena verify spring")
def verify(
    tournament: Annotated[str, typer.Argument(help="A tournament's name; by default the whole database.")] = "",
    outcomes: Annotated[bool, typer.Option("--outcomes", help="Leave the messages out, which is faster.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Execute every stored deal again and compare outcome, messages and luck; exit code 1 if anything differs."""
    began, deals = time.perf_counter(), 0
    differences: list[Difference] = []
    with open_reader(db) as opened:
        everything = [*tournaments.tournaments(opened), *tournaments.tournaments(opened, "play")]
        chosen = [find_tournament(opened, tournament)] if tournament else everything
        for count, found in audit(opened, chosen, messages=not outcomes, whole=not tournament):
            deals += count
            differences += found
    took = time.perf_counter() - began
    sealed = [stage_name(one, stage) for one in chosen for stage in one.stages if is_sealed(stage)]
    if as_json:
        rows = [msgspec.structs.asdict(difference) for difference in differences]
        told = {"tournaments": len(chosen), "deals": deals, "seconds": took}
        emit_json("verify/1", {**told, "differences": rows, "sealed": sealed})
    else:
        for difference in differences[:_SHOWN]:
            typer.echo(_line(difference))
        if len(differences) > _SHOWN:
            typer.echo(f"... and {len(differences) - _SHOWN} more, all of them with --json")
        typer.echo(
            f"{count_of(deals, 'deal')} of {count_of(len(chosen), 'tournament')}, plays included: "
            f"{count_of(len(differences), 'difference')}"
        )
        for name in sealed:
            say(f"{harmless(name)}: {_SEALED}")
        say(f"{deals / took:.0f} deals a second")
    if differences:
        raise typer.Exit(EXIT_NO)


def _line(difference: Difference) -> str:
    stored, found = (
        value if len(value) <= _CUT else value[: _CUT - 3] + "..." for value in (difference.stored, difference.found)
    )
    return harmless(f"{difference.where}: {difference.what}: stored {stored}, found {found}")


@app.command(epilog="Example: arena reveal spring --json > spring.json")
def reveal(
    tournament: Annotated[str, typer.Argument(help="A tournament's name; `last` for the newest.")],
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show the commitment of each stage of a tournament and, once it is finished, its master seed and what follows."""
    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        played = [matches.match(opened, number) for number in matches.played(opened, found.id, void=True)]
    if as_json:
        emit_json("reveal/1", revealed(found, [match for match in played if match is not None]))
        return
    for stage in found.stages:
        if len(found.stages) > 1:
            typer.echo(f"stage {stage.number}")
        typer.echo(f"commitment {stage.commitment.hex()}")
        if stage.finished_at is None:
            typer.echo("the master seed is shown when this is finished")
        else:
            typer.echo(f"salt       {stage.salt.hex()}")
            typer.echo(f"master     {stage.master.hex()}")
    if found.stages[0].finished_at is not None:
        typer.echo(f"{len(played)} matches; --json has their decks and seeds, protocol.md says how each follows")
