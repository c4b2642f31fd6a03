"""A match with its deals, and the replay of a deal."""

from __future__ import annotations

from typing import Any

from arena.errors import ConfigError, IllegalAction
from arena.records import DealRecord
from arena.retelling import Moment, moments
from arena.store import matches, overview
from arena.store.matches import StoredMatch
from arena.store.overview import MatchRow
from arena.web.faults import fault_rows
from arena.web.leaderboards import match_data
from arena.web.page import (
    Data,
    Page,
    Source,
    bot_link,
    deal_name,
    game_path,
    isolation_words,
    match_path,
    replay_path,
    tournament_path,
)
from arena.words import action_words, event_words, reason_words, rule_words


def match(source: Source, number: int) -> Page | None:
    """Return a match with its deals; while its round is not complete, nothing of its cards."""
    row, stored = overview.match_row(source.db, number), matches.match(source.db, number)
    if row is None or stored is None:
        return None
    data = {
        **match_data(row),
        "round_page": _round_page(row),
        "rules": " · ".join([*rule_words(stored.rule_set, len(stored.names)), f"{len(stored.names)} seats"]),
        "decks": len(stored.decks),
        "legs": len(stored.legs),
        "isolation": isolation_words(stored.isolation) if stored.isolation else None,
        "deals": [_deal_data(source, stored, row, deal) for deal in _deals(source, row)],
        "fault_rows": fault_rows(source, match=number),
    }
    return Page("match", f"Match {number}", data, "tournaments.html")


def _round_page(row: MatchRow) -> str | None:
    return game_path(row.tournament, row.game, row.round) if row.kind == "tournament" else None


def _deals(source: Source, row: MatchRow) -> list[DealRecord]:
    return matches.records(source.db, row.id) if row.state != "scheduled" else []


def _deal_data(source: Source, stored: StoredMatch, row: MatchRow, deal: DealRecord) -> Data:
    name = deal_name(stored.id, deal.deck, deal.leg)
    thinking = [0] * len(deal.seating)
    for step in deal.steps:
        thinking[step.seat] += max(step.elapsed_us, 0)
    seats = [
        {
            **bot_link(stored.names[place]),
            "place": deal.places[seat],
            "points": deal.points[seat],
            "thinking_us": thinking[seat],
        }
        for seat, place in enumerate(deal.seating)
    ]
    return {
        "deal": name,
        "page": replay_path(name) if row.published else None,
        "deck": deal.deck,
        "leg": deal.leg,
        "seats": seats,
        "reason": reason_words(stored.game, deal.reason),
        "steps": len(deal.steps),
        "rated": deal.rated,
    }


def replay(source: Source, match: int, deck: int, leg: int) -> Page | None:
    """Return a deal step by step; None while its round is not complete, since its tables share their decks."""
    deal = deal_name(match, deck, leg)
    row, stored = overview.match_row(source.db, match), matches.match(source.db, match)
    played = matches.deal(source.db, match, deck, leg) if row and row.published else None
    if row is None or stored is None or played is None:
        return None
    data = {
        **_of_deal(source, stored, row, played),
        **_told(stored, played),
        "faults": [one for one in fault_rows(source, match=match) if one["deal"] == deal],
    }
    return Page("replay", f"{stored.game.title()} · deal {deal}", data, "tournaments.html")


def _of_deal(source: Source, stored: StoredMatch, row: MatchRow, played: DealRecord) -> Data:
    return {
        **_deal_data(source, stored, row, played),
        "game": stored.game,
        "match": stored.id,
        "match_page": match_path(stored.id),
        "tournament": row.tournament,
        "tournament_page": tournament_path(row.tournament, row.kind),
        "round": row.round,
        "rule_set": stored.rule_set,
        "started_at": row.started_at,
    }


def _told(stored: StoredMatch, played: DealRecord) -> Data:
    """Return the moments of a deal, or why there are none."""
    names = [stored.names[place] for place in played.seating]
    told: list[Data] = []
    try:
        told.extend(_moment(stored.game, moment, names) for moment in moments(stored, played))
    except IllegalAction as error:
        return {"moments": told, "problem": f"the deal breaks the rules: {error}"}
    except ConfigError as error:  # it is of another version of the rules
        return {"moments": told, "problem": str(error)}
    return {"moments": told, "problem": None}


def _moment(game: str, moment: Moment, names: list[str]) -> Data:
    """Return a step and the position after it; `seen_by` is None where everybody saw an event."""
    step, state = moment.step, moment.state
    observation: Any = state.observation(None)
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
        "observation": observation,
        "legal": {str(actor): state.legal_actions(actor) for actor in state.actors},
    }
