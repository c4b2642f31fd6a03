"""`arena play --from`: one position of a stored deal, asked of a bot again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import trio
import typer
from sqlite_utils import Database

from arena.cli.app import EXIT_BOT, EXIT_NO
from arena.cli.entrants import submission_of
from arena.cli.finding import find_deal
from arena.cli.output import Pair, emit_json, emit_pairs, emit_quote, harmless, say
from arena.cli.site import Site, check_place, open_site, recall, unpacked
from arena.errors import FAULT_ADVICE, ConfigError, FaultKind, IllegalAction
from arena.lane import LaneConfig, host_for, machine_facts
from arena.plan import plan_of
from arena.position import Answer, Position, ask_again, find_position, position_spec
from arena.records import BotRef, Clock, DealRecord, Fault
from arena.ruling import broken_rule
from arena.sandbox import Level
from arena.store import tournaments
from arena.store.database import open_reader
from arena.store.matches import StoredMatch
from arena.why import escaped
from arena.words import seat_lines


def ask_position(db: Path, deal: str, step: int | None, bot: str, level: Level, *, as_json: bool) -> None:
    """Ask a bot a position of a stored deal and show what it says; nothing of it is stored.

    Args:
        step: by default where the bot failed.
        bot: `NAME=DIR`: whose seat is taken, and by what; what has no `/` is a submitted name.

    Raises:
        ConfigError: there is no such deal, bot or position.
        typer.Exit: the answer is not legal, or the bot did not start.
    """
    name, _, what = bot.partition("=")
    what = what or name
    if "/" in what:
        check_place(Path(what), db.parent)
    with open_reader(db) as opened, tempfile.TemporaryDirectory(prefix="arena-position-") as scratch:
        match, record, faults = find_deal(opened, deal)
        clock = plan_of(tournaments.get(opened, match.tournament)).clock
        position = _position(match, record, faults, clock, name, step)
        site = open_site(db, level)
        answer = trio.run(_ask, opened, what, site, Path(scratch), position, clock)
    rule = _rule(position, answer)
    if as_json:
        emit_json("position/1", _document(name, position, answer, rule))
    else:
        _show(name, position, answer, rule)
        say("a fresh process was asked this position only: what depends on earlier asks does not show here")
    if answer.error is not None and answer.error.kind is FaultKind.STARTUP:
        raise typer.Exit(EXIT_BOT)
    if answer.action not in position.legal:
        raise typer.Exit(EXIT_NO)


def _position(
    match: StoredMatch, record: DealRecord, faults: Sequence[Fault], clock: Clock, name: str, step: int | None
) -> Position:
    names = [match.names[place] for place in record.seating]
    deal = f"{match.id}-{record.deck}-{record.leg}"
    seats = [seat for seat, one in enumerate(names) if one == name]
    if not seats:
        raise ConfigError(f"no bot called {name!r} played deal {deal}; there were {', '.join(names)}")
    failed = [fault.step for fault in faults if fault.seat in seats]
    if step is None and not failed:
        raise ConfigError(f"{name} did not fail in deal {deal}, so say which position you mean with --step")
    try:
        return find_position(match, record, faults, clock, seats, failed[0] if step is None else step)
    except IllegalAction as error:
        raise ConfigError(f"deal {deal} breaks the rules: {error}; `arena verify` says more") from None


async def _ask(db: Database, what: str, site: Site, scratch: Path, position: Position, clock: Clock) -> Answer:
    bot = await _bot(db, what, site, scratch)
    spec = position_spec(position, bot, clock)
    host = host_for(LaneConfig(site.level.value, str(site.runtime)), spec, machine_facts())
    # What outlives its process is killed by the supervisor of this one, which may have other children.
    return await ask_again(position, spec, msgspec.structs.replace(host, clean_up=lambda: None))


async def _bot(db: Database, what: str, site: Site, scratch: Path) -> BotRef:
    if "/" not in what:
        kept = submission_of(db, what)
        return (await recall(kept.name, kept.hash, site)).ref
    _, player = await unpacked(what, site._replace(bots=scratch))
    return player.ref


def _rule(position: Position, answer: Answer) -> str:
    if answer.action is None or answer.action in position.legal:
        return ""
    seen = position.told[-1].state.observation(position.seat)
    return broken_rule(position.match.game, answer.action, position.legal, seen)


def _show(name: str, position: Position, answer: Answer, rule: str) -> None:
    match, record = position.match, position.deal
    names = [match.names[place] for place in record.seating]
    deal = f"{match.id}-{record.deck}-{record.leg}"
    typer.echo(f"{harmless(name)} at step {position.step} of {deal} ({match.game}, seat {position.seat})\n")
    names[position.seat] = "you"
    seen = position.told[-1].state.observation(position.seat)
    emit_pairs([*seat_lines(match.game, seen, names), *_lines(position, answer, rule)])
    if answer.stderr.strip():
        emit_quote("its stderr", answer.stderr)


def _lines(position: Position, answer: Answer, rule: str) -> Iterator[Pair]:
    took = f"after {answer.elapsed_us / 1000:.1f} ms of {answer.limit_us // 1000} ms"
    note = f"   «{answer.note}»" if answer.note else ""
    if answer.action is not None:
        kind = "illegal" if rule else "legal"
        yield "it answers", f"{escaped(answer.action.encode())}   {kind}, {took}{note}"
    if rule:
        yield "rule", rule
        yield "what to do", FAULT_ADVICE[FaultKind.ILLEGAL, "action"]
    if (error := answer.error) is not None:
        yield "fault", f"{error.kind}/{error.detail}   {took}: {error}"
        if error.evidence:
            yield "it sent", escaped(error.evidence)
        yield "what to do", FAULT_ADVICE[error.kind, error.detail]
    yield "legal", "   ".join(position.legal)
    yield "it was", _before(position)


def _before(position: Position) -> str:
    """Return what happened here in the deal."""
    if (fault := position.fault) is not None:
        what = escaped(fault.evidence) if fault.kind is FaultKind.ILLEGAL else fault.text
        return f"{fault.kind}/{fault.detail}: {what}"
    if position.played is None:
        return "not applied: the fault of another bot ended the deal"
    took = position.played.elapsed_us
    return f"{position.played.action}   " + (f"in {took / 1000:.1f} ms" if took >= 0 else "played by the house")


def _document(name: str, position: Position, answer: Answer, rule: str) -> dict[str, object]:
    error, fault = answer.error, position.fault
    return {
        "deal": f"{position.match.id}-{position.deal.deck}-{position.deal.leg}",
        "step": position.step,
        "bot": name,
        "seat": position.seat,
        "action": answer.action,
        "note": answer.note,
        "is_legal": answer.action in position.legal,
        "rule": rule,
        "fault": None
        if error is None
        else {
            "kind": error.kind,
            "detail": error.detail,
            "text": str(error),
            "advice": FAULT_ADVICE[error.kind, error.detail],
            "evidence": error.evidence.decode("latin-1"),
        },
        "elapsed_us": answer.elapsed_us,
        "limit_us": answer.limit_us,
        "legal": position.legal,
        "stderr": answer.stderr.decode(errors="replace"),
        "before": {
            "action": position.played.action if position.played is not None and fault is None else None,
            "fault": f"{fault.kind}/{fault.detail}" if fault is not None else None,
        },
    }
