"""Whether a database is sound: what SQLite says of the file, and whether all that belongs to it is there."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import msgspec
from sqlite_utils import Database

from arena.store import schema

_SHOWN = 20
_FACTS = ("journal_mode", "page_size", "page_count", "freelist_count", "encoding")
_COUNTS = {
    "bots": "SELECT count(*) FROM bot",
    "tournaments": "SELECT count(*) FROM tournament WHERE kind = 'tournament'",
    "plays": "SELECT count(*) FROM tournament WHERE kind = 'play'",
    "rounds": "SELECT count(*) FROM round",
    "matches": "SELECT count(*) FROM match WHERE state = 'played'",
    "scheduled": "SELECT count(*) FROM match WHERE state = 'scheduled'",
    "deals": "SELECT count(*) FROM deal",
    "faults": "SELECT count(*) FROM fault",
    "logs": "SELECT count(*) FROM log",
}


class Health(msgspec.Struct, frozen=True):
    """What an examination found.

    Attributes:
        problems: what is wrong, in words; empty if nothing is.
        version: of the schema.
        known: the version that this arena reads.
        facts: what SQLite tells of itself and of the file.
        counts: how many of each thing are kept; empty if the file is damaged.
        file_bytes: of the database, and of what is still in its write-ahead log.
        deal_bytes: of the file for each deal, with all that belongs to it; None without deals.
        record_bytes: of that, the deal's own compressed record.
    """

    problems: tuple[str, ...]
    version: int
    known: int
    facts: dict[str, str | int]
    counts: dict[str, int]
    file_bytes: int
    deal_bytes: float | None
    record_bytes: float | None


def examine(db: Database, path: Path) -> Health:
    """Examine an open database, also one of an older schema; reads all of it."""
    facts: dict[str, str | int] = {"sqlite": sqlite3.sqlite_version}
    facts |= {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in _FACTS}
    damages = _damages(db)
    missing = [] if damages else _missing(db)
    counts: dict[str, int] = {}
    sizes: tuple[float | None, float | None] = None, None
    if not damages and not missing:
        counts = {name: int(db.execute(query).fetchone()[0]) for name, query in _COUNTS.items()}
        sizes = _sizes(db, int(facts["page_size"]) * int(facts["page_count"]), counts["deals"])
    size = sum(file.stat().st_size for file in (path, Path(f"{path.resolve()}-wal")) if file.exists())
    problems = (*damages, *missing, *_outdated(db))
    return Health(problems, schema.version(db), len(schema.known()), facts, counts, size, *sizes)


def _damages(db: Database) -> list[str]:
    """Return what is wrong with the file itself, then with what its rows refer to."""
    told = [line for (text,) in db.execute(f"PRAGMA integrity_check({_SHOWN})") for line in text.splitlines()]
    damages = [f"the file is damaged: {line}" for line in told if line != "ok" and not line.startswith("***")]
    if damages:
        return damages
    broken = Counter((table, parent) for table, _, parent, _ in db.execute("PRAGMA foreign_key_check"))
    return [f"{count} rows of {table} name a {parent} that is not there" for (table, parent), count in broken.items()]


def _missing(db: Database) -> list[str]:
    lacking = schema.expected(schema.applied(db)) - schema.entries(db)
    return [f"the {kind} {name} is missing" for kind, name in sorted(lacking)]


def _outdated(db: Database) -> list[str]:
    before, known = schema.version(db), len(schema.known())
    return [f"its schema is of version {before}, older than {known}: `arena db migrate`"] if before < known else []


def _sizes(db: Database, size: int, deals: int) -> tuple[float | None, float | None]:
    if not deals:
        return None, None
    return size / deals, db.execute("SELECT avg(length(record)) FROM deal").fetchone()[0]
