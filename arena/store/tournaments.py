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


class Stage(msgspec.Struct, frozen=True):
    """A part of a tournament with a master seed of its own: what it began with, or what an extension added.

    Attributes:
        number: counts from 1; its rounds follow on those of the stages before.
        spec: the whole configuration as JSON, defaults included.
        practice: it is played from a short seed.
        commitment: SHA-256(master || salt).
        master: 32 bytes, secret until `finished_at` is set; empty, as the salt, where it was imported before that.
        match_count: with `first_match`, the ids kept for its matches, so that ids do not depend on what finishes first.
        players: the numbers of the entrants that play in it.
    """

    number: int
    spec: str
    practice: bool
    commitment: bytes
    salt: bytes
    master: bytes
    created_at: float
    match_count: int
    players: tuple[int, ...] = ()
    first_match: int = 0
    finished_at: float | None = None


class Tournament(msgspec.Struct, frozen=True):
    """A tournament as stored.

    Attributes:
        kind: `play` for single matches, which are never rated.
        stages: at least one, by number.
    """

    id: int
    name: str
    kind: str
    isolation: str
    engine: str
    protocol: int
    created_at: float
    stages: tuple[Stage, ...]

    @property
    def practice(self) -> bool:
        """Tell whether any of it is played from a short seed."""
        return any(stage.practice for stage in self.stages)

    @property
    def finished_at(self) -> float | None:
        """When the last stage was finished, or None as long as one is not."""
        return self.stages[-1].finished_at


def create(db: Database, tournament: Tournament, entrants: Sequence[Entrant]) -> int:
    """Store a new tournament and return its id; that and the ids of its matches are set here, unless those are known.

    Everybody plays in a stage that names no players.

    Raises:
        ConfigError: the name is taken.
    """
    if find(db, tournament.name) is not None:
        raise ConfigError(f"there is a tournament called {tournament.name!r} already; choose another with --name")
    row = msgspec.structs.asdict(tournament)
    del row["id"], row["stages"]
    number = int(db.execute(_insert("tournament", row), row).lastrowid or 0)
    for stage in tournament.stages:
        players = stage.players or tuple(one.number for one in entrants)
        add_stage(db, number, msgspec.structs.replace(stage, players=players))
    add_entrants(db, number, entrants)
    return number


def add_stage(db: Database, tournament: int, stage: Stage) -> None:
    """Store a stage of a tournament; the first match's id is set here, unless it is known from elsewhere."""
    row = {"tournament": tournament, **msgspec.structs.asdict(stage)}
    row["players"] = msgspec.json.encode(stage.players).decode()
    if not stage.first_match:
        row["first_match"] = db.execute("SELECT coalesce(max(first_match + match_count), 1) FROM stage").fetchone()[0]
    db.execute(_insert("stage", row), row)


def add_entrants(db: Database, tournament: int, entrants: Sequence[Entrant]) -> None:
    """Store entrants of a tournament."""
    for entrant in entrants:
        kept = {"tournament": tournament, **msgspec.structs.asdict(entrant)}
        kept["games"] = msgspec.json.encode(entrant.games).decode()
        db.execute(_insert("entrant", kept), kept)


def find(db: Database, name: str) -> Tournament | None:
    """Return the tournament of a name."""
    for row in db.query("SELECT * FROM tournament WHERE name = ?", (name,)):
        return _tournament(db, row)
    return None


def get(db: Database, number: int) -> Tournament:
    """Return the tournament of an id that is known to exist."""
    return _tournament(db, next(iter(db.query("SELECT * FROM tournament WHERE id = ?", (number,)))))


def tournaments(db: Database, kind: str = "tournament") -> list[Tournament]:
    """Return all of a kind, the newest first."""
    return [
        _tournament(db, row) for row in db.query("SELECT * FROM tournament WHERE kind = ? ORDER BY id DESC", (kind,))
    ]


def entrants(db: Database, tournament: int, game: str | None = None) -> list[Entrant]:
    """Return the entrants by number: all, or those that play a game."""
    rows = db.query("SELECT number, name, hash, games FROM entrant WHERE tournament = ? ORDER BY number", (tournament,))
    found = [msgspec.convert({**row, "games": msgspec.json.decode(row["games"])}, Entrant) for row in rows]
    return [entrant for entrant in found if game is None or game in entrant.games]


def players(db: Database, tournament: int | None = None) -> list[str]:
    """Return the names of all that entered a tournament, or any."""
    where, given = ("WHERE tournament = ? ", (tournament,)) if tournament is not None else ("", ())
    return [name for (name,) in db.execute(f"SELECT DISTINCT name FROM entrant {where}ORDER BY name", given)]


def finish(db: Database, tournament: int, now: float, stage: int = 1) -> None:
    """Mark a stage of a tournament as finished, from which on its master may be shown."""
    db.execute("UPDATE stage SET finished_at = ? WHERE tournament = ? AND number = ?", (now, tournament, stage))


class Scheduled(msgspec.Struct, frozen=True):
    """A match to be stored: what it will be played with, before it has an id."""

    pool: PoolKey
    table: tuple[int, ...]
    decks: tuple[bytes, ...]
    legs: tuple[tuple[int, ...], ...]


def add_round(
    db: Database,
    tournament: int,
    game: str,
    played: Round,
    matches: Sequence[Scheduled],
    first_match: int,
    stage: int = 1,
) -> None:
    """Store a round and its matches before any of them is played.

    Args:
        first_match: the id of the game's first match in the stage; later rounds follow on.
    """
    db.execute(
        "INSERT INTO round (tournament, game, number, stage, byes) VALUES (?, ?, ?, ?, ?)",
        (tournament, game, played.number, stage, msgspec.json.encode(played.byes).decode()),
    )
    query = (
        "SELECT count(*) FROM round r JOIN match m ON m.tournament = r.tournament AND m.game = r.game "
        "AND m.round = r.number WHERE r.tournament = ? AND r.game = ? AND r.stage = ?"
    )
    (before,) = db.execute(query, (tournament, game, stage)).fetchone()
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


def complete_round(db: Database, tournament: int, game: str, number: int, order: int = 0) -> None:
    """Mark a round as complete, as all its matches are played, and keep what they come to.

    Args:
        order: the how many-th round of all it was to be so, where that is known from elsewhere.
    """
    from arena.store import tallies  # numpy takes a tenth of a second, which commands that only read need not pay

    order = order or int(db.execute("SELECT coalesce(max(complete), 0) + 1 FROM round").fetchone()[0])
    query = "UPDATE round SET complete = ? WHERE tournament = ? AND game = ? AND number = ?"
    db.execute(query, (order, tournament, game, number))
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


def completed(db: Database) -> list[tuple[int, str, int]]:
    """Return tournament, game and number of all complete rounds of tournaments, in the order of their completion."""
    query = (
        "SELECT r.tournament, r.game, r.number FROM round r JOIN tournament t ON t.id = r.tournament "
        "AND t.kind = 'tournament' WHERE r.complete ORDER BY r.complete, r.tournament, r.game, r.number"
    )
    return [(tournament, game, number) for tournament, game, number in db.execute(query)]


def completions(db: Database, tournament: int, game: str) -> dict[int, int]:
    """Return the how many-th round of all each complete round of a game was, by its number."""
    query = "SELECT number, complete FROM round WHERE tournament = ? AND game = ? AND complete"
    return dict(db.execute(query, (tournament, game)).fetchall())


def round_stages(db: Database, tournament: int, game: str) -> list[int]:
    """Return the number of the stage of each round of a game, in the order of the rounds."""
    query = "SELECT stage FROM round WHERE tournament = ? AND game = ? ORDER BY number"
    return [stage for (stage,) in db.execute(query, (tournament, game))]


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


def _tournament(db: Database, row: dict[str, object]) -> Tournament:
    found = db.query("SELECT * FROM stage WHERE tournament = ? ORDER BY number", (row["id"],))
    return msgspec.convert({**row, "stages": [_stage(stage) for stage in found]}, Tournament)


def _stage(row: dict[str, object]) -> Stage:
    players = msgspec.json.decode(str(row["players"]))
    return msgspec.convert({**row, "practice": bool(row["practice"]), "players": players}, Stage)
