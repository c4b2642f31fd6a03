"""`arena standings`: the points and tie-breaks of a tournament."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

import msgspec
import typer

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import find_tournament, games_of
from arena.cli.output import emit_json, emit_table, harmless, say, say_unverified
from arena.records import TIEBREAKS, Standing
from arena.store import matches, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.database import open_reader


@app.command(epilog="Example: arena standings spring durak")
def standings(
    tournament: Annotated[str, typer.Argument(help="A tournament's name; `last` for the newest.")],
    game: Annotated[str, typer.Argument(help="One game; by default all of the tournament.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show a tournament's points and tie-breaks, from its complete rounds."""
    from arena.bracket import read_bracket, standing_fields
    from arena.cli.brackets import show_standings
    from arena.plan import challengers_of, final_standings, plan_of

    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        tables = {name: final_standings(opened, found, name) for name in games_of(found, game)}
        brackets = {name: read_bracket(opened, found, name) for name in tables}
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(opened, found.id)}
        coming = challengers_of(found)
        made = corrections(opened, found.id)
        doubted = {name: matches.count_unverified(opened, found.id, name) for name in tables}
    if as_json:
        documents = {
            name: [
                {
                    **_standing(line, names),
                    "challenger": line.entrant in coming,
                    **standing_fields(brackets[name], line.entrant, names),
                }
                for line in lines
            ]
            for name, lines in tables.items()
        }
        unverified = {name: some for name, (some, _) in doubted.items()}
        corrected = [{**msgspec.structs.asdict(one), "entrant": _entrant(one, names)} for one in made]
        told = {"tournament": found.name, "finished": bool(found.finished_at), "unverified": unverified}
        emit_json("standings/1", {**told, "corrections": corrected, "games": documents})
        return
    deciding = [one for one in plan_of(found).tiebreaks if one in _SHORT][:_DECIDING]
    for name, lines in tables.items():
        if bracket := brackets[name]:
            show_standings(f"{found.name} · {name}", bracket, lines, names)
            continue
        rows = (_standing_cells(line, starred(names, coming), deciding) for line in lines)
        emit_table(_columns(deciding), rows, f"{found.name} · {name}")
        typer.echo()
    for one in made:
        day = time.strftime("%Y-%m-%d", time.gmtime(one.made_at))
        typer.echo(f"{day}  {_WORDS[one.kind].format(one.match or _entrant(one, names))}: {harmless(one.reason)}")
    say_stars(coming)
    say_unverified(*(sum(counts) for counts in zip(*doubted.values(), strict=True)))
    if None in brackets.values():
        say(", ".join(f"{_SHORT[one][0]} {_SHORT[one][1]}" for one in deciding))


_WORDS = {"void": "match {} is void", "disqualify": "{} is disqualified", "withdraw": "{} has withdrawn"}


def _entrant(made: Correction, names: Mapping[int, str]) -> str | None:
    return None if made.entrant is None else names[made.entrant]


_DECIDING = 4
"""Tie-breaks that are shown: more do not fit, and hardly ever decide."""
_SHORT = {
    "direct encounter": ("DE", "direct encounter"),
    "buchholz": ("BH", "Buchholz"),
    "buchholz cut 1": ("BH1", "without the weakest opponent"),
    "sonneborn-berger": ("SB", "Sonneborn-Berger"),
    "median duel": ("MD", "median duel"),
    "sets won": ("SW", "deal sets won"),
}


def _columns(deciding: Sequence[str]) -> list[str]:
    return ["#", "<bot", "points", *(_SHORT[one][0] for one in deciding), "rounds", "deals", "byes"]


def _standing(line: Standing, names: Mapping[int, str]) -> dict[str, object]:
    document = {"name": names[line.entrant], **msgspec.structs.asdict(line)}
    return {**document, "tiebreaks": dict(zip(TIEBREAKS, line.tiebreaks, strict=True))}


def _standing_cells(line: Standing, names: Mapping[int, str], deciding: Sequence[str]) -> list[object]:
    values = [line.tiebreaks[TIEBREAKS.index(one)] for one in deciding]
    shown = ["-" if value is None else f"{value:.2f}" for value in values]
    return [line.place, marked_name(line, names), f"{line.points:.3f}", *shown, line.rounds, line.deals, line.byes]


def marked_name(line: Standing, names: Mapping[int, str]) -> str:
    """Return who a line of standings is of, and that it has left if it has."""
    return f"{names[line.entrant]} ({line.mark})" if line.mark else names[line.entrant]


def starred(names: Mapping[int, str], challengers: Collection[int]) -> dict[int, str]:
    """Return names by entrant, with a star after those of challengers."""
    return {number: f"{name}*" if number in challengers else name for number, name in names.items()}


def say_stars(challengers: Collection[int]) -> None:
    """Say what stars mean, if there are any."""
    if challengers:
        say("* challenger: meets all others, but not each other")
