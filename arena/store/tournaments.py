"""Tournaments, their entrants and their rounds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import BotHash, PoolKey, Round


class Entrant(msgspec.Struct, frozen=True):
    """A bot version in a tournament.

    Attributes:
        number: counts from 0 in the order of the bots' hashes.
        games: those of the tournament that it plays.
    """

    number: int
    name: str
    hash: BotHash
    games: tuple[str, ...]


class Tournament(msgspec.Struct, frozen=True):
    """A tournament as stored.

    Attributes:
        kind: `play` for single matches, which are never rated.
        spec: the whole configuration as JSON, defaults included.
        practice: it was played from a short seed.
        master: 32 bytes, secret until `finished_at` is set; empty, as the salt, where it was imported before that.
        first_match: with `match_count`, the ids kept for its matches, so that ids do not depend on what finishes first.
        commitment: SHA-256(master || salt).
    """

    id: int
    name: str
    kind: str
    spec: str
    practice: bool
    isolation: str
    engine: str
    protocol: int
    commitment: bytes
    salt: bytes
    master: bytes
    created_at: float
    match_count: int
    first_match: int = 0
    finished_at: float | None = None


def create(db: Database, tournament: Tournament, entrants: Sequence[Entrant]) -> int:
    """Store a new tournament and return its id; that and the first match's id are set here.

    Raises:
        ConfigError: the name is taken.
    """
    if find(db, tournament.name) is not None:
        raise ConfigError(f"there is a tournament called {tournament.name!r} already; choose another with --name")
    row = msgspec.structs.asdict(tournament)
    del row["id"]
    row["first_match"] = db.execute("SELECT coalesce(max(first_match + match_count), 1) FROM tournament").fetchone()[0]
    number = int(db.execute(_insert("tournament", row), row).lastrowid or 0)
    for entrant in entrants:
        kept = {"tournament": number, **msgspec.structs.asdict(entrant)}
        kept["games"] = msgspec.json.encode(entrant.games).decode()
        db.execute(_insert("entrant", kept), kept)
    return number


def find(db: Database, name: str) -> Tournament | None:
    """Return the tournament of a name."""
    for row in db.query("SELECT * FROM tournament WHERE name = ?", (name,)):
        return _tournament(row)
    return None


def get(db: Database, number: int) -> Tournament:
    """Return the tournament of an id that is known to exist."""
    return _tournament(next(iter(db.query("SELECT * FROM tournament WHERE id = ?", (number,)))))


def tournaments(db: Database, kind: str = "tournament") -> list[Tournament]:
    """Return all of a kind, the newest first."""
    return [_tournament(row) for row in db.query("SELECT * FROM tournament WHERE kind = ? ORDER BY id DESC", (kind,))]


def entrants(db: Database, tournament: int, game: str | None = None) -> list[Entrant]:
    """Return the entrants by number: all, or those that play a game."""
    rows = db.query("SELECT number, name, hash, games FROM entrant WHERE tournament = ? ORDER BY number", (tournament,))
    found = [msgspec.convert({**row, "games": msgspec.json.decode(row["games"])}, Entrant) for row in rows]
    return [entrant for entrant in found if game is None or game in entrant.games]


def finish(db: Database, tournament: int, now: float) -> None:
    """Mark a tournament as finished, from which on its master may be shown."""
    db.execute("UPDATE tournament SET finished_at = ? WHERE id = ?", (now, tournament))


class Scheduled(msgspec.Struct, frozen=True):
    """A match to be stored: what it will be played with, before it has an id."""

    pool: PoolKey
    table: tuple[int, ...]
    decks: tuple[bytes, ...]
    legs: tuple[tuple[int, ...], ...]


def add_round(
    db: Database, tournament: int, game: str, played: Round, matches: Sequence[Scheduled], first_match: int
) -> None:
    """Store a round and its matches before any of them is played.

    Args:
        first_match: the id of the game's first match in the tournament; later rounds follow on.
    """
    db.execute(
        "INSERT INTO round (tournament, game, number, byes) VALUES (?, ?, ?, ?)",
        (tournament, game, played.number, msgspec.json.encode(played.byes).decode()),
    )
    query = "SELECT count(*) FROM match WHERE tournament = ? AND game = ?"
    (before,) = db.execute(query, (tournament, game)).fetchone()
    for number, match in enumerate(matches, first_match + before):
        add_match(db, number, tournament, game, played.number, match)


def add_match(db: Database, number: int, tournament: int, game: str, round_number: int, match: Scheduled) -> None:
    """Store a match of a stored round."""
    row: dict[str, object] = {
        "id": number,
        "tournament": tournament,
        "game": game,
        "round": round_number,
        "pool": pool_of(db, match.pool),
        "decks": b"".join(match.decks),
        "legs": msgspec.json.encode(match.legs).decode(),
    }
    db.execute(_insert("match", row), row)
    for place, entrant in enumerate(match.table):
        db.execute("INSERT INTO place VALUES (?, ?, ?, ?)", (number, place, tournament, entrant))


def complete_round(db: Database, tournament: int, game: str, number: int) -> None:
    """Mark a round as complete, as all its matches are played, and keep what they come to."""
    from arena.store import tallies  # numpy takes a tenth of a second, which commands that only read need not pay

    db.execute(
        "UPDATE round SET complete = 1 WHERE tournament = ? AND game = ? AND number = ?", (tournament, game, number)
    )
    tallies.add(db, tournament, game, number)


def rounds(db: Database, tournament: int, game: str) -> list[tuple[Round, bool]]:
    """Return the rounds of a game in order, each with whether it is complete."""
    tables: dict[int, dict[int, list[int]]] = {}
    for number, match, entrant in db.execute(
        "SELECT m.round, m.id, p.entrant FROM match m JOIN place p ON p.match = m.id "
        "WHERE m.tournament = ? AND m.game = ? ORDER BY m.round, m.id, p.place",
        (tournament, game),
    ):
        tables.setdefault(number, {}).setdefault(match, []).append(entrant)
    return [
        (
            Round(
                number,
                tuple(tuple(table) for table in tables.get(number, {}).values()),
                tuple(msgspec.json.decode(byes)),
            ),
            bool(complete),
        )
        for number, byes, complete in db.execute(
            "SELECT number, byes, complete FROM round WHERE tournament = ? AND game = ? ORDER BY number",
            (tournament, game),
        )
    ]


def pool_of(db: Database, pool: PoolKey) -> int:
    """Return the id of a pool, storing it if it is new."""
    row = msgspec.structs.asdict(pool)
    db.execute(_insert("pool", row) + " ON CONFLICT DO NOTHING", row)
    query = (
        "SELECT id FROM pool WHERE game = :game AND rule_set = :rule_set AND seats = :seats AND isolation = :isolation"
    )
    return int(db.execute(query, row).fetchone()[0])


def _insert(table: str, row: dict[str, object]) -> str:
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(f':{key}' for key in row)})"


def _tournament(row: dict[str, object]) -> Tournament:
    return msgspec.convert({**row, "practice": bool(row["practice"])}, Tournament)
