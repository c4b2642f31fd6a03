"""The shape of the database, as migrations that are applied once and in order.

Times are seconds since the epoch in UTC, or microseconds where a name ends in `_us`. `match.decks` is the concatenation
of 32-byte deck keys; `deal.seating` and `deal.places` are one byte a seat; `deal.record` is a `DealRecord`, msgpack
compressed with zlib; `log.text` is compressed too. `round.complete` is 0, or the how many-th round it was to be
completed (1 for all in a database of an older arena). Those of `fit` are float64, the lower
triangle of a matrix.
"""

from __future__ import annotations

import sqlite_utils
from sqlite_utils import Migrations

from arena.errors import FAULT_DETAILS

migrations = Migrations("arena")
"""Each function below that it decorates is one; they are applied in the order of the file, and never changed."""


def known() -> list[str]:
    """Return the names of all migrations, in order; their number is the version of the schema of this arena."""
    empty = sqlite_utils.Database(memory=True)
    try:
        return [migration.name for migration in migrations.pending(empty)]
    finally:
        empty.close()


def expected(names: list[str]) -> set[tuple[str, str]]:
    """Return type and name of each table and index that a database has after these migrations."""
    fresh = sqlite_utils.Database(memory=True)
    try:
        later = next((name for name in known() if name not in names), None)
        migrations.apply(fresh, stop_before=later)
        return entries(fresh)
    finally:
        fresh.close()


def entries(db: sqlite_utils.Database) -> set[tuple[str, str]]:
    """Return type and name of each table and index that a database has."""
    return {(kind, name) for kind, name in db.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL")}


def applied(db: sqlite_utils.Database) -> list[str]:
    """Return the names of the migrations that a database has had, in order."""
    return [migration.name for migration in migrations.applied(db)]


def version(db: sqlite_utils.Database) -> int:
    """Return the version of a database's schema: how many migrations it has had, 0 for a new one."""
    return len(migrations.applied(db))


_FAULTS = ", ".join(f"'{kind}/{detail}'" for kind, details in FAULT_DETAILS.items() for detail in details)

_FIRST = f"""
CREATE TABLE bot (
    hash TEXT PRIMARY KEY,
    manifest TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    added_at REAL NOT NULL
) STRICT;
CREATE TABLE submission (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    hash TEXT NOT NULL REFERENCES bot(hash),
    author TEXT NOT NULL,
    submitted_at REAL NOT NULL,
    retired_at REAL,
    UNIQUE (name, version)
) STRICT;
CREATE INDEX submission_hash ON submission(hash);
CREATE TABLE tournament (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('tournament', 'play')),
    spec TEXT NOT NULL,
    practice INTEGER NOT NULL,
    isolation TEXT NOT NULL,
    engine TEXT NOT NULL,
    protocol INTEGER NOT NULL,
    commitment BLOB NOT NULL,
    salt BLOB NOT NULL,
    master BLOB NOT NULL,
    first_match INTEGER NOT NULL,
    match_count INTEGER NOT NULL,
    created_at REAL NOT NULL,
    finished_at REAL
) STRICT;
CREATE TABLE entrant (
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL REFERENCES bot(hash),
    games TEXT NOT NULL,
    PRIMARY KEY (tournament, number)
) STRICT;
CREATE INDEX entrant_hash ON entrant(hash);
CREATE TABLE pool (
    id INTEGER PRIMARY KEY,
    game TEXT NOT NULL,
    rule_set TEXT NOT NULL,
    seats INTEGER NOT NULL,
    isolation TEXT NOT NULL,
    outcome_type TEXT NOT NULL,
    UNIQUE (game, rule_set, seats, isolation)
) STRICT;
CREATE TABLE round (
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    game TEXT NOT NULL,
    number INTEGER NOT NULL,
    byes TEXT NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tournament, game, number)
) STRICT;
CREATE TABLE machine (
    id INTEGER PRIMARY KEY,
    facts TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE match (
    id INTEGER PRIMARY KEY,
    tournament INTEGER NOT NULL,
    game TEXT NOT NULL,
    round INTEGER NOT NULL,
    pool INTEGER NOT NULL REFERENCES pool(id),
    decks BLOB NOT NULL,
    legs TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'scheduled' CHECK (state IN ('scheduled', 'played', 'void')),
    reason TEXT NOT NULL DEFAULT '',
    isolation TEXT,
    engine TEXT,
    protocol INTEGER,
    machine INTEGER REFERENCES machine(id),
    core INTEGER,
    started_at REAL,
    duration_us INTEGER,
    FOREIGN KEY (tournament, game, round) REFERENCES round(tournament, game, number)
) STRICT;
CREATE INDEX match_round ON match(tournament, game, round);
CREATE INDEX match_pool ON match(pool, state);
CREATE INDEX match_started ON match(started_at);
CREATE TABLE place (
    match INTEGER NOT NULL REFERENCES match(id),
    place INTEGER NOT NULL,
    tournament INTEGER NOT NULL,
    entrant INTEGER NOT NULL,
    PRIMARY KEY (match, place),
    FOREIGN KEY (tournament, entrant) REFERENCES entrant(tournament, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX place_entrant ON place(tournament, entrant);
CREATE TABLE deal (
    match INTEGER NOT NULL REFERENCES match(id),
    deck INTEGER NOT NULL,
    leg INTEGER NOT NULL,
    seating BLOB NOT NULL,
    places BLOB NOT NULL,
    rated INTEGER NOT NULL,
    reason TEXT NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (match, deck, leg)
) STRICT, WITHOUT ROWID;
CREATE TABLE unverified (
    match INTEGER NOT NULL,
    deck INTEGER NOT NULL,
    leg INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (match, deck, leg),
    FOREIGN KEY (match, deck, leg) REFERENCES deal(match, deck, leg)
) STRICT, WITHOUT ROWID;
CREATE TABLE fault (
    id INTEGER PRIMARY KEY,
    match INTEGER NOT NULL,
    deck INTEGER NOT NULL,
    leg INTEGER NOT NULL,
    seat INTEGER NOT NULL,
    entrant INTEGER NOT NULL,
    step INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    text TEXT NOT NULL,
    evidence BLOB NOT NULL,
    stderr BLOB NOT NULL,
    elapsed_us INTEGER NOT NULL,
    limit_us INTEGER NOT NULL,
    CHECK (kind || '/' || detail IN ({_FAULTS})),
    FOREIGN KEY (match, deck, leg) REFERENCES deal(match, deck, leg)
) STRICT;
CREATE INDEX fault_match ON fault(match);
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    match INTEGER NOT NULL,
    leg INTEGER NOT NULL,
    place INTEGER NOT NULL,
    first_deck INTEGER NOT NULL,
    last_deck INTEGER NOT NULL,
    text BLOB NOT NULL,
    FOREIGN KEY (match, place) REFERENCES place(match, place)
) STRICT;
CREATE INDEX log_match ON log(match);
CREATE TABLE correction (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('void', 'disqualify', 'withdraw')),
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    entrant INTEGER,
    match INTEGER REFERENCES match(id),
    rounds TEXT NOT NULL,
    reason TEXT NOT NULL,
    made_at REAL NOT NULL,
    FOREIGN KEY (tournament, entrant) REFERENCES entrant(tournament, number)
) STRICT;
CREATE INDEX correction_tournament ON correction(tournament);
CREATE TABLE rating (
    pool INTEGER NOT NULL REFERENCES pool(id),
    hash TEXT NOT NULL REFERENCES bot(hash),
    elo REAL NOT NULL,
    error REAL,
    deals INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    bound TEXT NOT NULL,
    PRIMARY KEY (pool, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE history (
    pool INTEGER NOT NULL REFERENCES pool(id),
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    round INTEGER NOT NULL,
    hash TEXT NOT NULL REFERENCES bot(hash),
    elo REAL NOT NULL,
    error REAL,
    deals INTEGER NOT NULL,
    PRIMARY KEY (pool, tournament, round, hash)
) STRICT, WITHOUT ROWID;
"""


@migrations()
def first(db: sqlite_utils.Database) -> None:
    """Create all tables."""
    for statement in _FIRST.split(";"):
        if statement.strip():
            db.execute(statement)
    for action in ("UPDATE", "DELETE"):
        db.execute(
            f"CREATE TRIGGER correction_{action.lower()} BEFORE {action} ON correction "
            "BEGIN SELECT raise(ABORT, 'corrections are only added to'); END"
        )


_STAGES = """
CREATE TABLE stage (
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    number INTEGER NOT NULL,
    spec TEXT NOT NULL,
    players TEXT NOT NULL,
    practice INTEGER NOT NULL,
    commitment BLOB NOT NULL,
    salt BLOB NOT NULL,
    master BLOB NOT NULL,
    first_match INTEGER NOT NULL,
    match_count INTEGER NOT NULL,
    created_at REAL NOT NULL,
    finished_at REAL,
    PRIMARY KEY (tournament, number)
) STRICT;
INSERT INTO stage SELECT id, 1, spec,
    (SELECT json_group_array(number) FROM (SELECT number FROM entrant WHERE tournament = t.id ORDER BY number)),
    practice, commitment, salt, master, first_match, match_count, created_at, finished_at FROM tournament t;
CREATE TABLE staged_round (
    tournament INTEGER NOT NULL REFERENCES tournament(id),
    game TEXT NOT NULL,
    number INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    byes TEXT NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tournament, game, number),
    FOREIGN KEY (tournament, stage) REFERENCES stage(tournament, number)
) STRICT;
INSERT INTO staged_round SELECT tournament, game, number, 1, byes, complete FROM round;
DROP TABLE round;
ALTER TABLE staged_round RENAME TO round;
ALTER TABLE tournament DROP COLUMN spec;
ALTER TABLE tournament DROP COLUMN practice;
ALTER TABLE tournament DROP COLUMN commitment;
ALTER TABLE tournament DROP COLUMN salt;
ALTER TABLE tournament DROP COLUMN master;
ALTER TABLE tournament DROP COLUMN first_match;
ALTER TABLE tournament DROP COLUMN match_count;
ALTER TABLE tournament DROP COLUMN finished_at;
"""


@migrations()
def stages(db: sqlite_utils.Database) -> None:
    """Give each tournament stages; what it was until now is its first."""
    for statement in _STAGES.split(";"):
        if statement.strip():
            db.execute(statement)


@migrations()
def tallies(db: sqlite_utils.Database) -> None:
    """Keep what complete rounds come to and how many deals a pool is rated by; whoever migrates fills the first."""
    db.execute(
        "CREATE TABLE tally (tournament INTEGER NOT NULL, game TEXT NOT NULL, round INTEGER NOT NULL, "
        "deals INTEGER NOT NULL, scores BLOB NOT NULL, PRIMARY KEY (tournament, game, round), "
        "FOREIGN KEY (tournament, game, round) REFERENCES round(tournament, game, number)) STRICT"
    )
    db.execute("ALTER TABLE pool ADD COLUMN deals INTEGER NOT NULL DEFAULT 0")
    db.execute(
        "UPDATE pool SET deals = (SELECT count(*) FROM match m JOIN deal d ON d.match = m.id AND d.rated "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "JOIN tournament t ON t.id = m.tournament AND t.kind = 'tournament' "
        "WHERE m.pool = pool.id AND m.state = 'played')"
    )


@migrations()
def fits(db: sqlite_utils.Database) -> None:
    """Keep how sure ratings are: places that a bot may have, Elo before the last round, and the covariance of a pool.

    A pool that was rated before gets them with its next round.
    """
    for column in ("rank_low INTEGER", "rank_high INTEGER", "before REAL"):
        db.execute(f"ALTER TABLE rating ADD COLUMN {column}")
    db.execute(
        "CREATE TABLE fit (pool INTEGER PRIMARY KEY REFERENCES pool(id), tournament INTEGER NOT NULL, "
        "round INTEGER NOT NULL, bots TEXT NOT NULL, covariance BLOB NOT NULL, naive BLOB NOT NULL, "
        "decks TEXT NOT NULL, groups TEXT NOT NULL, design_effect REAL, "
        "FOREIGN KEY (tournament) REFERENCES tournament(id)) STRICT"
    )
