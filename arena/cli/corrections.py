"""`arena void`, `arena disqualify`, `arena withdraw`: what an organiser corrects, with the reason that all may read."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.output import emit_json
from arena.cli.views import find_tournament
from arena.history import rate_again
from arena.store import corrections, tournaments
from arena.store.corrections import Correction
from arena.store.database import open_writer, writing

Reason = Annotated[str, typer.Option("--reason", help="Why; it is shown with the standings.")]
Of = Annotated[str, typer.Option("--tournament", help="Its name; `last` for the newest.")]
Bot = Annotated[str, typer.Argument(help="An entrant, by its name.")]


@app.command(epilog='Example: arena void 17 --reason "a lane ran on a laptop that slept"')
def void(
    match: Annotated[int, typer.Argument(help="The first number of the name of a deal.")],
    reason: Reason,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Take a match out of the results: in standings it counts as a tie of all at its table, in ratings not at all.

    One that is not played yet, because a bot ends every lane that plays it, is not played any more.
    """

    def correct(opened: Database, now: float) -> Correction:
        return corrections.void(opened, match, reason, now)

    _correct(db, correct, f"match {match} is void", as_json=as_json)


@app.command(epilog='Example: arena disqualify cheat --tournament spring --reason "two bots of one author"')
def disqualify(bot: Bot, tournament: Of, reason: Reason, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Take an entrant out of the rounds to come and of the ratings, and place it below all others.

    Others keep the points that they have against it.
    """
    _exclude("disqualify", bot, tournament, reason, db, as_json=as_json)


@app.command(epilog='Example: arena withdraw mybot --tournament spring --reason "its author asked for it"')
def withdraw(bot: Bot, tournament: Of, reason: Reason, db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Take an entrant out of the rounds to come; what it has played stays."""
    _exclude("withdraw", bot, tournament, reason, db, as_json=as_json)


def _exclude(
    kind: Literal["disqualify", "withdraw"], bot: str, tournament: str, reason: str, db: Path, *, as_json: bool
) -> None:
    def correct(opened: Database, now: float) -> Correction:
        return corrections.exclude(opened, kind, find_tournament(opened, tournament).id, bot, reason, now)

    word = "disqualified" if kind == "disqualify" else "withdrawn"
    _correct(db, correct, f"{bot} is {word}", as_json=as_json)


def _correct(db: Path, correct: Callable[[Database, float], Correction], done: str, *, as_json: bool) -> None:
    with open_writer(db) as opened, writing(opened):
        made = correct(opened, time.time())
        rate_again(opened, made)
        found = tournaments.get(opened, made.tournament)
    if as_json:
        emit_json("correction/1", document(made, found.name))
    else:
        typer.echo(f"{done}; standings and ratings of {found.name} follow")


def document(made: Correction, tournament: str) -> dict[str, object]:
    """Return a correction for programs."""
    return {
        "kind": made.kind,
        "tournament": tournament,
        "entrant": made.entrant,
        "match": made.match,
        "after_rounds": made.rounds,
        "reason": made.reason,
        "made_at": made.made_at,
    }
