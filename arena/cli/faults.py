"""`arena faults`: what bots did wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import find_tournament
from arena.cli.output import emit_lines, emit_table, say
from arena.errors import FAULT_ADVICE, ConfigError, FaultKind
from arena.store import matches, tournaments
from arena.store.database import open_reader
from arena.store.matches import StoredFault


@app.command(epilog="Example: arena faults spring --bot mybot")
def faults(
    tournament: Annotated[str, typer.Argument(help="A tournament's name; by default everything, plays too.")] = "",
    bot: Annotated[str, typer.Option("--bot", help="Only those of a bot, by the name it played under.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="Only those of a kind, e.g. timeout.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """List the faults of bots, the oldest first, each with the deal and the step where it happened."""
    if kind and kind not in set(FaultKind):
        raise ConfigError(f"there is no fault kind {kind!r}; there are {', '.join(FaultKind)}")
    with open_reader(db) as opened:
        number = find_tournament(opened, tournament).id if tournament else None
        found = matches.faults(opened, tournament=number)
        if bot and bot not in (known := tournaments.players(opened, number)):
            where = f"in {tournament}" if tournament else "here"
            raise ConfigError(f"no bot called {bot!r} has played {where}; there were {', '.join(known) or 'none yet'}")
    chosen = [one for one in found if bot in ("", one.name) and kind in ("", one.fault.kind)]
    if as_json:
        emit_lines("fault/1", map(_document, chosen))
        return
    if not chosen:
        say("no faults" + (f" of {bot}" if bot else "") + (f" of kind {kind}" if kind else ""))
        return
    columns = ("<deal", "step", "<bot", "<fault", "<~what")
    emit_table(columns, ((_deal(one), one.fault.step, one.name, _kind(one), one.fault.text) for one in chosen))
    last = chosen[-1]
    say(f"arena why {_deal(last)} --bot {last.name} tells more of the last, and what to do about it")
    say(f"arena trace {_deal(last)} --seat {last.fault.seat} shows what led to it")


def _deal(one: StoredFault) -> str:
    return f"{one.match}-{one.fault.deck}-{one.fault.leg}"


def _kind(one: StoredFault) -> str:
    return f"{one.fault.kind}/{one.fault.detail}"


def _document(one: StoredFault) -> dict[str, object]:
    fault = one.fault
    return {
        "deal": _deal(one),
        "bot": one.name,
        "seat": fault.seat,
        "step": fault.step,
        "kind": fault.kind,
        "detail": fault.detail,
        "text": fault.text,
        "advice": FAULT_ADVICE[fault.kind, fault.detail],
        "elapsed_us": fault.elapsed_us,
        "limit_us": fault.limit_us,
        "evidence": fault.evidence.decode("latin-1"),
        "stderr": fault.stderr.decode(errors="replace"),
    }
