"""How a row about a rating is told in a table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from arena.rating.places import place_text


def place_cell(row: Mapping[str, object]) -> str:
    """Return a place; `=1` where it is shared."""
    return place_text(msgspec.convert(row["place"], int | None), bool(row["shared"]))


def ranks_cell(row: Mapping[str, object]) -> str:
    """Return the places that a bot may have."""
    low, high = row["rank_low"], row["rank_high"]
    return "n/a" if low is None else str(low) if low == high else f"{low}-{high}"


def elo_cell(row: Mapping[str, object]) -> str:
    """Return Elo with the mark of a provisional rating: that of a bound, or `?`."""
    bound = row.get("bound", "")  # a history keeps none
    return f"{bound}{row['elo']:.0f}{'?' if row['provisional'] and not bound else ''}"


def change_cell(row: Mapping[str, object]) -> str:
    """Return what the last round changed."""
    if row["change"] is None:
        return "new"
    shown = f"{row['change']:+.0f}"
    return "0" if shown[1:] == "0" else shown


def error_cell(row: Mapping[str, object]) -> str:
    """Return half of the 95 % interval."""
    return "n/a" if row["error"] is None else f"{row['error']:.0f}"
