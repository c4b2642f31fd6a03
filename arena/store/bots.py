"""Bots and the names they were submitted under."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import BotHash


class KeptBot(msgspec.Struct, frozen=True):
    """A bot without its files, which lie beside the database; `manifest` is the text of its bot.toml."""

    hash: BotHash
    manifest: str
    files: int
    bytes: int
    added_at: float


class Submission(msgspec.Struct, frozen=True):
    """A bot under a name; a changed folder under the same name is the next version.

    Attributes:
        manifest: the text of its bot.toml.
        submitted_at: seconds since the epoch, UTC.
        retired_at: when it was taken out of `all`, or None.
    """

    name: str
    version: int
    hash: BotHash
    author: str
    manifest: str
    submitted_at: float
    retired_at: float | None


_SUBMISSIONS = """
SELECT name, version, s.hash AS hash, author, manifest, submitted_at, retired_at
FROM submission s JOIN bot b ON b.hash = s.hash
"""


def add_bot(db: Database, bot: BotHash, manifest: str, files: int, size: int, now: float) -> None:
    """Keep a bot; if it is there, only its manifest is written again, which an import may have said wrongly."""
    db.execute(
        "INSERT INTO bot (hash, manifest, files, bytes, added_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (hash) DO UPDATE SET manifest = excluded.manifest",
        (bot, manifest, files, size, now),
    )


def submit(db: Database, name: str, bot: BotHash, author: str, now: float, *, force: bool = False) -> Submission:
    """Give a kept bot a name, as its next version; the same bot again only un-retires it.

    Raises:
        ConfigError: the name is another author's, and `force` is not given.
    """
    last = latest(db, name)
    if last is not None and last.author != author and not force:
        raise ConfigError(
            f"{name} was submitted by {last.author or 'nobody'}, not {author or 'nobody'}; --force takes it over"
        )
    if last is not None and last.hash == bot and last.author == author:
        db.execute("UPDATE submission SET retired_at = NULL WHERE name = ? AND version = ?", (name, last.version))
    else:
        version = 1 if last is None else last.version + 1
        db.execute(
            "INSERT INTO submission (name, version, hash, author, submitted_at) VALUES (?, ?, ?, ?, ?)",
            (name, version, bot, author, now),
        )
    kept = latest(db, name)
    assert kept is not None
    return kept


def latest(db: Database, name: str) -> Submission | None:
    """Return the newest version under a name, retired or not."""
    found = _select(db, "WHERE name = ? ORDER BY version DESC LIMIT 1", (name,))
    return found[0] if found else None


def version(db: Database, name: str, number: int) -> Submission | None:
    """Return a version of a name, called `NAME@VERSION` unless it is the newest."""
    newest = latest(db, name)
    if newest is not None and newest.version == number:
        return newest
    found = _select(db, "WHERE name = ? AND version = ?", (name, number))
    return msgspec.structs.replace(found[0], name=f"{name}@{number}") if found else None


def version_of(db: Database, name: str, bot: BotHash) -> int | None:
    """Return the newest version under which a bot was submitted by a name, or None."""
    query = "SELECT max(version) FROM submission WHERE name = ? AND hash = ?"
    found = db.execute(query, (name, bot)).fetchone()[0]
    return None if found is None else int(found)


def submissions(db: Database, *, retired: bool = False) -> list[Submission]:
    """Return the newest version of each name, by name."""
    where = "WHERE version = (SELECT max(version) FROM submission o WHERE o.name = s.name)"
    if not retired:
        where += " AND retired_at IS NULL"
    return _select(db, where + " ORDER BY name")


def kept(db: Database) -> Iterator[KeptBot]:
    """Stream all bots, by hash."""
    for row in db.query("SELECT hash, manifest, files, bytes, added_at FROM bot ORDER BY hash"):
        yield msgspec.convert(row, KeptBot)


def all_versions(db: Database) -> Iterator[Submission]:
    """Stream all versions of all names, in the order in which they were submitted."""
    for row in db.query(_SUBMISSIONS + "ORDER BY s.id"):
        yield msgspec.convert(row, Submission)


def add_submission(db: Database, one: Submission) -> None:
    """Store a submission of another database as it is there."""
    db.execute(
        "INSERT INTO submission (name, version, hash, author, submitted_at, retired_at) VALUES (?, ?, ?, ?, ?, ?)",
        (one.name, one.version, one.hash, one.author, one.submitted_at, one.retired_at),
    )


def retire(db: Database, name: str, now: float) -> None:
    """Take a name out of `all`; its results stay.

    Raises:
        ConfigError: there is no such name.
    """
    last = latest(db, name)
    if last is None:
        raise ConfigError(f"no bot is called {name!r}; `arena bots` lists them")
    db.execute("UPDATE submission SET retired_at = ? WHERE name = ? AND retired_at IS NULL", (now, name))


def names_by_hash(db: Database) -> dict[BotHash, str]:
    """Return a name to show for every bot: the newest it was submitted under, else the one it played under."""
    names = {}
    for bot, name in db.execute("SELECT hash, name FROM entrant ORDER BY tournament"):
        names[BotHash(bot)] = name
    query = (
        "SELECT hash, name, version, version = (SELECT max(version) FROM submission o WHERE o.name = s.name) "
        "FROM submission s ORDER BY id"
    )
    for bot, name, version, is_newest in db.execute(query):
        names[BotHash(bot)] = name if is_newest else f"{name}@{version}"
    return names


def _select(db: Database, where: str, parameters: tuple[object, ...] = ()) -> list[Submission]:
    return [msgspec.convert(row, Submission) for row in db.query(_SUBMISSIONS + where, parameters)]
