"""The replay of a deal: every step in words, every position, and what each bot was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from arena.errors import ConfigError, IllegalAction
from arena.explain import Line, dialogue
from arena.plan import plan_of
from arena.records import Clock, DealRecord, Fault
from arena.retelling import Moment, moments
from arena.rules import Seat
from arena.store import matches, overview, tournaments
from arena.store.matches import StoredMatch
from arena.store.overview import MatchRow
from arena.web.deals import deal_data, round_page
from arena.web.faults import fault_rows
from arena.web.page import Data, Page, Source, deal_name, match_path, tournament_path
from arena.web.positions import views
from arena.why import explain_deal
from arena.words import action_words, event_words, harmless


def replay(source: Source, match: int, deck: int, leg: int) -> Page | None:
    """Return a deal step by step; None while its round is not complete, since its tables share their decks."""
    deal = deal_name(match, deck, leg)
    row, stored = overview.match_row(source.db, match), matches.match(source.db, match)
    played = matches.deal(source.db, match, deck, leg) if row and row.published else None
    if row is None or stored is None or played is None:
        return None
    clock = plan_of(tournaments.get(source.db, stored.tournament)).clock
    every = [found.fault for found in matches.faults(source.db, number=match)]
    rows = [one for one in reversed(fault_rows(source, match=match)) if one["deal"] == deal]
    data = {**_of_deal(stored, row, played), **_told(stored, played, every, rows, clock)}
    if source.stderr:
        _add_stderr(data["faults"], [one for one in every if (one.deck, one.leg) == (deck, leg)])
    return Page("replay", f"{stored.game.title()} · deal {deal}", data, "tournaments.html")


def _add_stderr(rows: Sequence[Data], faults: Sequence[Fault]) -> None:
    for row, fault in zip(rows, faults, strict=True):
        if fault.stderr:
            row["stderr"] = fault.stderr.decode(errors="replace")


def _of_deal(stored: StoredMatch, row: MatchRow, played: DealRecord) -> Data:
    return {
        **deal_data(stored, row, played),
        "game": stored.game,
        "match": stored.id,
        "match_page": match_path(stored.id),
        "tournament": row.tournament,
        "tournament_page": tournament_path(row.tournament, row.kind),
        "round": row.round,
        "round_page": round_page(row),
        "rule_set": stored.rule_set,
        "started_at": row.started_at,
    }


def _told(
    stored: StoredMatch, played: DealRecord, of_match: Sequence[Fault], rows: Sequence[Data], clock: Clock
) -> Data:
    """Return what happened in a deal as far as it can be executed again, and why not further.

    Args:
        of_match: all faults of the match.
        rows: those of the deal as pages show them, in the same order.
    """
    names = [stored.names[place] for place in played.seating]
    faults = [one for one in of_match if (one.deck, one.leg) == (played.deck, played.leg)]
    done: list[Moment] = []
    asks, failed, problem = _Asks([None] * len(played.steps), {}), list(rows), None
    try:
        done.extend(moments(stored, played))  # what it yields before an error stays
        asks = _asks(stored, played, faults, clock)
        failed = [
            {**row, **_failed(stored, played, of_match, one.seat), "ask": asks.failed.get(one.seat)}
            for row, one in zip(rows, faults, strict=True)
        ]
    except IllegalAction as error:
        problem = f"the deal breaks the rules: {error}"
    except ConfigError as error:  # it is of another version of the rules
        problem = str(error)
    positions = views([one.state for one in done], len(names)) if done else None
    told = [_moment(stored.game, one, names) for one in done]
    for number, step in enumerate(played.steps[: max(len(told) - 1, 0)], 1):
        told[number] |= {"legal": done[number - 1].state.legal_actions(step.seat), "ask": asks.answered[number - 1]}
    return {"moments": told, "positions": positions, "faults": failed, "problem": problem}


def _moment(game: str, moment: Moment, names: Sequence[str]) -> Data:
    """Return a step and what happened by it; `seen_by` is None where everybody saw an event."""
    step = moment.step
    return {
        "number": moment.number,
        "seat": step.seat if step else None,
        "name": names[step.seat] if step else None,
        "action": step.action if step else None,
        "words": action_words(step.action) if step else "the deal begins",
        "elapsed_us": step.elapsed_us if step else None,
        "note": step.note if step else "",
        "events": [
            {**event.message(), "seen_by": event.seen_by, "words": event_words(game, event, names)}
            for event in moment.events
        ],
    }


class Ask(msgspec.Struct, frozen=True):
    """What an ask said besides the position, the legal actions and the events.

    Attributes:
        at: actions before it; in a window, those before the window.
        events: how many were in it: the last that its seat had seen then.
    """

    at: int
    id: int
    events: int
    decision_ms: int
    bank_ms: int


class _Asks(NamedTuple):
    """By step the ask it answers, None where the house played; by seat the ask in which it failed."""

    answered: Sequence[Ask | None]
    failed: Mapping[Seat, Ask]


def _asks(stored: StoredMatch, played: DealRecord, faults: Sequence[Fault], clock: Clock) -> _Asks:
    answered: list[list[Ask]] = []
    failed: dict[Seat, Ask] = {}
    for seat in range(len(played.seating)):
        own: list[Ask] = []
        ask: Ask | None = None
        for line in dialogue(stored, played, seat, faults, clock)[0]:
            if line.sender == "referee":
                ask = _ask(line)
            elif ask and line.sender == "bot":
                own.append(ask)
            elif ask:
                failed[seat] = ask
        answered.append(own)
    told = [iter(own) for own in answered]
    return _Asks([next(told[step.seat], None) if step.elapsed_us >= 0 else None for step in played.steps], failed)


def _ask(line: Line) -> Ask | None:
    message: Any = line.message
    if message["type"] != "ask":
        return None
    clock = message["clock"]
    return Ask(line.step, message["id"], len(message["events"]), clock["decision_ms"], clock["bank_ms"])


def _failed(stored: StoredMatch, played: DealRecord, of_match: Sequence[Fault], seat: Seat) -> Data:
    """Return what a failed bot could have done, what it sent, and the rule that it broke."""
    why = explain_deal(stored, played, of_match, seat)
    return {"legal": why.legal, "sent": why.sent, "rule": why.rule}


def embedded(data: Data) -> Markup:
    """Return what the player needs of a replay as JSON that may stand in a page; words are beside it in the page."""
    told = {
        "game": data["game"],
        "deal": data["deal"],
        "names": [harmless(seat["name"]) for seat in data["seats"]],
        "positions": data["positions"],
        "faults": [_plain(fault) for fault in data["faults"]],
        "steps": [_step(one) for one in data["moments"]],
    }
    return Markup(msgspec.json.encode(told).decode().replace("<", "\\u003c"))


def _plain(fault: Data) -> Data:
    keys = ("seat", "step", "fault", "legal", "sent", "ask")
    return {key: fault.get(key) for key in keys}


def _step(told: Data) -> list[object]:
    """Return seat, action, time, note, legal actions, the ask as a list, and the events, each with who saw it."""
    ask = told.get("ask")
    events = [
        [{key: value for key, value in event.items() if key not in ("seen_by", "words")}, event["seen_by"]]
        for event in told["events"]
    ]
    asked = msgspec.structs.astuple(ask) if ask else None
    return [told["seat"], told["action"], told["elapsed_us"], harmless(told["note"]), told.get("legal"), asked, events]
