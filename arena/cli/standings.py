"""`arena standings`: the points and tie-breaks of a tournament."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Annotated

import msgspec
import typer

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import find_tournament, games_of
from arena.cli.output import emit_json, emit_table, harmless, say, say_unverified
from arena.records import TIEBREAKS, Standing
from arena.schedule.standings import value_of
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
    from arena.plan import challengers_of, deciding, final_standings, plan_of

    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        tables = {name: final_standings(opened, found, name) for name in games_of(found, game)}
        brackets = {name: read_bracket(opened, found, name) for name in tables}
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(opened, found.id)}
        coming = challengers_of(found)
        made = corrections(opened, found.id)
        doubted = {name: matches.count_unverified(opened, found.id, name) for name in tables}
    plan = plan_of(found)
    decisions = {name: deciding(plan, lines) for name, lines in tables.items()}
    if as_json:
        documents = {
            name: [
                {
                    **_standing(line, names, standing_fields(brackets[name], line.entrant, names), decided),
                    "challenger": line.entrant in coming,
                }
                for line, decided in zip(lines, decisions[name], strict=True)
            ]
            for name, lines in tables.items()
        }
        unverified = {name: some for name, (some, _) in doubted.items()}
        corrected = [{**msgspec.structs.asdict(one), "entrant": _entrant(one, names)} for one in made]
        told = {"tournament": found.name, "finished": bool(found.finished_at), "unverified": unverified}
        emit_json("standings/1", {**told, "corrections": corrected, "games": documents})
        return
    shown = [one for one in plan.tiebreaks if one in _SHORT][:_DECIDING]
    for name, lines in tables.items():
        if bracket := brackets[name]:
            show_standings(f"{found.name} · {name}", bracket, lines, names)
            continue
        rows = (_standing_cells(line, starred(names, coming), shown) for line in lines)
        emit_table(_columns(shown), rows, f"{found.name} · {name}")
        for text in _unseen(lines, decisions[name], shown):
            typer.echo(text)
        typer.echo()
    for one in made:
        day = time.strftime("%Y-%m-%d", time.gmtime(one.made_at))
        typer.echo(f"{day}  {_WORDS[one.kind].format(one.match or _entrant(one, names))}: {harmless(one.reason)}")
    say_stars(coming)
    say_unverified(*(sum(counts) for counts in zip(*doubted.values(), strict=True)))
    if None in brackets.values():
        say(", ".join(f"{_SHORT[one][0]} {_SHORT[one][1]}" for one in shown))
    if plan.format == "until-error":
        say("bots sat unequally often, wherever that told most, so points do not rank them; `arena leaderboard` does")


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


def _columns(shown: Sequence[str]) -> list[str]:
    return ["#", "<bot", "points", *(_SHORT[one][0] for one in shown), "rounds", "deals", "byes"]


def _standing(
    line: Standing, names: Mapping[int, str], of_bracket: Mapping[str, object], decided: str | None
) -> dict[str, object]:
    document = {"name": names[line.entrant], **msgspec.structs.asdict(line)}
    document["tiebreaks"] = dict(zip(TIEBREAKS, line.tiebreaks, strict=True))
    return {**document, **of_bracket, "decided_by": of_bracket["decided_by"] or decided}


def _standing_cells(line: Standing, names: Mapping[int, str], shown: Sequence[str]) -> list[object]:
    values = [_cell(line, name) for name in ("points", *shown)]
    return [line.place, marked_name(line, names), *values, line.rounds, line.deals, line.byes]


def _cell(line: Standing, name: str) -> str:
    value = value_of(line, name)
    return "-" if value is None else f"{value:.3f}" if name == "points" else f"{value:.2f}"


def _unseen(lines: Sequence[Standing], decisions: Sequence[str | None], shown: Sequence[str]) -> Iterator[str]:
    """Yield what decided about places and cannot be read off the table."""
    for lot, found in groupby(zip(pairwise(lines), decisions[1:], strict=True), lambda one: one[1] == "lot"):
        pairs = [(before, line, decided) for (before, line), decided in found]
        if lot:
            yield f"places {pairs[0][0].place}-{pairs[-1][1].place}: by lot"
            continue
        for before, line, decided in pairs:
            is_seen = decided in ("points", *shown) and _cell(before, decided) != _cell(line, decided)
            if decided not in (None, "disqualified") and not is_seen:
                yield f"places {before.place}-{line.place}: by {decided} {_apart(before, line, decided)}"


def _apart(before: Standing, line: Standing, name: str) -> str:
    """Return two values with as many digits as it takes to see that they differ."""
    values = value_of(before, name), value_of(line, name)
    for digits in range(1, 17):
        first, second = ("none" if value is None else f"{value:.{digits}f}" for value in values)
        if first != second:
            break
    return f"{first} to {second}"


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
