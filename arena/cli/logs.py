"""`arena logs`: what bots wrote to stderr."""

from __future__ import annotations

from typing import Annotated

import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import find_deal
from arena.cli.output import emit_lines, harmless, say
from arena.errors import ConfigError
from arena.records import Log
from arena.store import matches
from arena.store.database import open_reader
from arena.store.matches import StoredMatch


@app.command(epilog="Example: arena logs 17-3-0 --bot mybot")
def logs(
    where: Annotated[str, typer.Argument(help="A deal, e.g. 17-3-0, a match, e.g. 17, or `last` for the last match.")],
    bot: Annotated[str, typer.Option("--bot", help="Only of a bot, by the name it played under.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show what bots wrote to stderr in a match, or around a deal: a process serves all deals of a leg.

    Kept are the first 8 KiB and the last 32 KiB of each process.
    """
    with open_reader(db) as opened:
        match, deal = _find(opened, where)
        found = matches.logs(opened, match.id)
    if bot and bot not in match.names:
        raise ConfigError(f"no bot called {bot!r} played match {match.id}; there were {', '.join(match.names)}")
    chosen = [log for log in found if bot in ("", match.names[log.place]) and _is_of(log, deal)]
    if as_json:
        emit_lines("log/1", (_document(match, log) for log in chosen))
        return
    for log in chosen:
        typer.echo(f"── {harmless(match.names[log.place])} · seat {_seat(match, log)} · {_deals(match, log)}")
        for line in harmless(log.text.decode(errors="replace")).splitlines():
            typer.echo(f"│ {line}")  # so that it cannot be taken for a heading
    if not chosen:
        say(f"{bot or 'no bot'} wrote {'nothing' if bot else 'anything'} to stderr in {where}")


def _find(db: Database, where: str) -> tuple[StoredMatch, tuple[int, int] | None]:
    """Return a match, and of it a deck and a leg if a deal was named."""
    if where != "last" and "-" in where:
        match, record, _ = find_deal(db, where)
        return match, (record.deck, record.leg)
    last = matches.last_deal(db) if where == "last" else None
    number = last[0] if last else int(where) if where.isascii() and where.isdecimal() and len(where) < 19 else -1
    found = matches.match(db, number)
    if found is None or found.state != "played":
        raise ConfigError(f"no match {where!r} was played; name a match, e.g. 17, a deal, e.g. 17-3-0, or `last`")
    return found, None


def _is_of(log: Log, deal: tuple[int, int] | None) -> bool:
    return deal is None or (log.leg == deal[1] and log.first_deck <= deal[0] <= log.last_deck)


def _seat(match: StoredMatch, log: Log) -> int:
    return match.legs[log.leg].index(log.place)


def _deals(match: StoredMatch, log: Log) -> str:
    first, last = (f"{match.id}-{deck}-{log.leg}" for deck in (log.first_deck, log.last_deck))
    return f"deal {first}" if first == last else f"deals {first} ... {last}"


def _document(match: StoredMatch, log: Log) -> dict[str, object]:
    return {
        "match": match.id,
        "bot": match.names[log.place],
        "seat": _seat(match, log),
        "first_deal": f"{match.id}-{log.first_deck}-{log.leg}",
        "last_deal": f"{match.id}-{log.last_deck}-{log.leg}",
        "text": log.text.decode(errors="replace"),
    }
