"""What bots did wrong."""

from __future__ import annotations

from arena.errors import FAULT_ADVICE
from arena.store import matches, overview
from arena.store.matches import StoredFault
from arena.web.page import Data, Page, Source, bot_path, deal_name, match_path, replay_path

_SHOWN = 200


def fault_list(source: Source) -> Page:
    """Return the newest faults, and how many there are of each kind."""
    rows = fault_rows(source)
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["fault"]] = counts.get(row["fault"], 0) + 1
    kinds = [{"fault": fault, "count": count} for fault, count in sorted(counts.items(), key=lambda one: -one[1])]
    data = {"kinds": kinds, "faults": rows[:_SHOWN], "count": len(rows)}
    return Page("faults", "Faults", data, "faults.html")


def fault_rows(source: Source, *, bot: str | None = None, match: int | None = None) -> list[Data]:
    """Return faults, the newest first: all, those of a bot's versions or of a match."""
    found = matches.faults(source.db, number=match)
    told = overview.published_matches(source.db, {one.match for one in found})
    chosen = [one for one in found if bot is None or one.name.partition("@")[0] == bot]
    return [_row(one, published=one.match in told) for one in reversed(chosen)]


def _row(one: StoredFault, *, published: bool) -> Data:
    """Return a fault; its words may name cards, so they are told with its round."""
    fault = one.fault
    deal = deal_name(one.match, fault.deck, fault.leg)
    return {
        "deal": deal,
        "page": replay_path(deal) if published else None,
        "match": one.match,
        "match_page": match_path(one.match),
        "name": one.name,
        "bot_page": bot_path(one.name),
        "seat": fault.seat,
        "step": fault.step,
        "fault": f"{fault.kind}/{fault.detail}",
        "text": fault.text if published else None,
        "advice": FAULT_ADVICE[fault.kind, fault.detail],
        "elapsed_us": fault.elapsed_us,
        "limit_us": fault.limit_us,
    }
