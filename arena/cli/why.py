"""`arena why`: why a bot lost a deal, in words and cards, for its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.finding import Deal, find_deal
from arena.cli.output import Pair, console, emit_json, emit_pairs, emit_quote, harmless
from arena.errors import FAULT_ADVICE, ConfigError, IllegalAction
from arena.records import DealRecord, Fault
from arena.rules import Seat
from arena.store import matches
from arena.store.database import open_reader
from arena.store.matches import StoredMatch
from arena.why import Why, chosen_seat, explain_deal
from arena.words import action_words, seat_lines

_LEGAL = 20


@app.command(epilog="Example: arena why last --bot mybot")
def why(
    deal: Deal,
    bot: Annotated[str, typer.Option("--bot", help="Whose story; by default who failed first, else who lost.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Tell why a bot lost a deal: what it saw, what it sent, which rule that breaks, and what to do about it.

    `last` is the newest deal of the last match in which a bot failed, or its last deal if none did.
    """
    with open_reader(db) as opened:
        match, record, faults = find_deal(opened, _failed_last(opened, bot) if deal == "last" else deal)
        of_match = [found.fault for found in matches.faults(opened, number=match.id)]
    name = f"{match.id}-{record.deck}-{record.leg}"
    seat = chosen_seat(record, faults, _seats(match, record, bot))
    try:
        told = explain_deal(match, record, of_match, seat)
    except IllegalAction as error:
        raise ConfigError(f"deal {name} breaks the rules: {error}; `arena verify` says more") from None
    next_ = list(_commands(name, told, "" if db == DEFAULT_DB else f" --db {db}"))
    if as_json:
        emit_json("why/1", _document(name, match, told, next_))
    else:
        _show(name, match, told, [fault for fault in faults if fault.seat != seat], next_)


def _failed_last(db: Database, bot: str) -> str:
    """Return the newest deal of the last match in which a bot failed, else `last`."""
    key = matches.last_deal(db)
    found = [one for one in matches.faults(db, number=key[0]) if bot in ("", one.name)] if key else []
    return f"{found[-1].match}-{found[-1].fault.deck}-{found[-1].fault.leg}" if found else "last"


def _seats(match: StoredMatch, record: DealRecord, bot: str) -> list[Seat]:
    names = [match.names[place] for place in record.seating]
    found = [seat for seat, name in enumerate(names) if bot in ("", name)]
    if not found:
        where = f"{match.id}-{record.deck}-{record.leg}"
        raise ConfigError(f"no bot called {bot!r} played deal {where}; there were {', '.join(names)}")
    return found


def _commands(deal: str, told: Why, db: str) -> Iterator[Pair]:
    name = told.names[told.seat]
    step = told.fault.step if told.fault is not None else told.decisions[-1].step if told.decisions else None
    if step is not None and (told.seen is not None or told.fault is None):
        yield "again here", f"arena play --from {deal} --step {step} --bot {name}=YOUR-FOLDER/{db}"
    watch = "" if step is None else f" --step {step}"
    yield "watch", f"arena replay {deal}{watch}{db}"
    if told.fault is not None:
        yield "all faults", f"arena faults --bot {name}{db}"
    else:
        yield "its dialogue", f"arena trace {deal} --seat {told.seat}{db}"


def _show(deal: str, match: StoredMatch, told: Why, others: Sequence[Fault], commands: Sequence[Pair]) -> None:
    out = console()
    out.print(_headline(deal, match, told), soft_wrap=True)
    out.print()
    names = ["you" if seat == told.seat else name for seat, name in enumerate(told.names)]
    emit_pairs([*_lines(match.game, told, names), *_other_lines(told, others)])
    if told.fault is not None and told.fault.stderr.strip():
        emit_quote("the end of its stderr", told.fault.stderr)
    out.print()
    emit_pairs(commands, "cyan", wrap=False)


def _headline(deal: str, match: StoredMatch, told: Why) -> Text:
    is_well = told.result in ("won", "drew")
    fault = told.fault
    reason = told.reason if fault is None else f"{fault.kind}/{fault.detail} at step {fault.step}"
    name = told.names[told.seat]
    shown = Text(harmless(f"{'✔' if is_well else '✖'} {name} {told.result} deal {deal}: {reason}"))
    shown.stylize("bold green" if is_well else "bold red")
    return shown.append(f" ({match.game}, seat {told.seat} of {len(told.names)})")


def _lines(game: str, told: Why, names: Sequence[str]) -> Iterator[Pair]:
    fault = told.fault
    if told.seen is not None:
        yield from seat_lines(game, told.seen, names)
    if fault is not None:
        yield "you sent", told.sent + _time(fault)
        yield ("rule", told.rule) if told.rule else ("what", fault.text)
    if told.legal:
        more = f"   and {len(told.legal) - _LEGAL} more" if len(told.legal) > _LEGAL else ""
        yield "legal", "   ".join(told.legal[:_LEGAL]) + more
    yield "result", told.came
    if fault is not None:
        yield "what to do", FAULT_ADVICE[fault.kind, fault.detail]
    elif told.decisions:
        yield from _decision_lines(told)


def _decision_lines(told: Why) -> Iterator[Pair]:
    label = "last decisions"
    for one in told.decisions:
        note = f"   «{one.note}»" if one.note else ""
        yield label, f"step {one.step}: {action_words(one.action)}   in {one.elapsed_us / 1000:.1f} ms{note}"
        label = ""


def _other_lines(told: Why, others: Sequence[Fault]) -> Iterator[Pair]:
    for fault in others:
        yield "others", f"{told.names[fault.seat]} failed at step {fault.step}: {fault.kind}/{fault.detail}"


def _time(fault: Fault) -> str:
    if fault.limit_us < 0:
        return ""
    return f"   after {fault.elapsed_us / 1000:.1f} ms of {fault.limit_us // 1000} ms"


def _document(deal: str, match: StoredMatch, told: Why, commands: Sequence[Pair]) -> dict[str, object]:
    document = msgspec.structs.asdict(told)
    fault = told.fault
    if fault is not None:
        document["fault"] = {
            **{key: getattr(fault, key) for key in ("kind", "detail", "step", "text", "elapsed_us", "limit_us")},
            "advice": FAULT_ADVICE[fault.kind, fault.detail],
            "evidence": fault.evidence.decode("latin-1"),
            "stderr": fault.stderr.decode(errors="replace"),
        }
    head = {"deal": deal, "game": match.game, "rule_set": match.rule_set, "bot": told.names[told.seat]}
    return {**head, **document, "next": [command for _, command in commands]}
