"""Tables for other programs, as files of the site."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from sqlite_utils import Database

from arena.export import rows
from arena.export.formats import WRITERS, Format
from arena.store import tournaments
from arena.web.page import Page

_TABLES: dict[str, tuple[str, type[msgspec.Struct], Callable[[Database], Iterator[msgspec.Struct]]]] = {
    "standings": ("places and tie-breaks", rows.StandingRow, lambda db: rows.standings(db, _all(db))),
    "ratings": ("strength in each pool and overall", rows.RatingRow, lambda db: rows.ratings(db)),
    "bots": ("every version of every bot", rows.BotRow, lambda db: rows.bots(db)),
    "games": ("every deal: who, where, how it ended", rows.GameRow, lambda db: rows.games(db, _all(db))),
}
FILES = {
    f"data/{table}.{end}": "text/csv" if end == "csv" else "application/x-ndjson"
    for table in _TABLES
    for end in ("csv", "ndjson")
}
"""Address and content type of each file."""


def _all(db: Database) -> list[tournaments.Tournament]:
    found = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
    return sorted(found, key=lambda one: one.id)


def download(db: Database, path: str) -> Iterator[bytes]:
    """Yield a file of `FILES`, piece by piece; what must stay secret is not in it."""
    table, _, end = path.removeprefix("data/").partition(".")
    _, kind, read = _TABLES[table]
    return WRITERS[Format(end)](f"arena.export.{table}", kind, read(db))


def data_page() -> Page:
    """Return the page that lists the files."""
    tables = [
        {"name": name, "what": what, "csv": f"data/{name}.csv", "ndjson": f"data/{name}.ndjson"}
        for name, (what, _, _) in _TABLES.items()
    ]
    return Page("data", "Data", {"tables": tables}, "data.html")
