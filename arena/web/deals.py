"""A match with its deals."""

from __future__ import annotations

from arena.records import DealRecord
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
    replay_path,
)
from arena.words import reason_words, rule_words


def match(source: Source, number: int) -> Page | None:
    """Return a match with its deals; while its round is not complete, nothing of its cards."""
    row, stored = overview.match_row(source.db, number), matches.match(source.db, number)
    if row is None or stored is None:
        return None
    data = {
        **match_data(row),
        "round_page": round_page(row),
        "rules": " · ".join([*rule_words(stored.rule_set, len(stored.names)), f"{len(stored.names)} seats"]),
        "decks": len(stored.decks),
        "legs": len(stored.legs),
        "isolation": isolation_words(stored.isolation) if stored.isolation else None,
        "deals": [deal_data(stored, row, deal) for deal in _deals(source, row)],
        "fault_rows": fault_rows(source, match=number),
    }
    return Page("match", f"Match {number}", data, "tournaments.html")


def round_page(row: MatchRow) -> str | None:
    """Return where a match's round is; a play has none."""
    return game_path(row.tournament, row.game, row.round) if row.kind == "tournament" else None


def _deals(source: Source, row: MatchRow) -> list[DealRecord]:
    return matches.records(source.db, row.id) if row.state != "scheduled" else []


def deal_data(stored: StoredMatch, row: MatchRow, deal: DealRecord) -> Data:
    """Return a deal: who sat where, what came of it, and where its replay is."""
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
