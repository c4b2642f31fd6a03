"""What an organiser has corrected: only ever added to, each with its time and its reason."""

from __future__ import annotations

from typing import Literal

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.store import matches, tournaments
from arena.store.ratings import RoundOf

REASON_CHARACTERS = 500


class Correction(msgspec.Struct, frozen=True):
    """A correction of a tournament.

    Attributes:
        kind: `void` takes a match out of the results; `disqualify` takes an entrant out of the rounds to come, of the
            ratings and of the places; `withdraw` out of the rounds to come only.
        entrant: by its number, or None for a match.
        rounds: by game, how many rounds had been scheduled: later ones follow the correction.
        made_at: seconds since the epoch, UTC.
    """

    kind: Literal["void", "disqualify", "withdraw"]
    tournament: int
    entrant: int | None
    match: int | None
    rounds: dict[str, int]
    reason: str
    made_at: float


def corrections(db: Database, tournament: int) -> list[Correction]:
    """Return the corrections of a tournament in the order in which they were made."""
    query = (
        "SELECT kind, tournament, entrant, match, rounds, reason, made_at FROM correction "
        "WHERE tournament = ? ORDER BY id"
    )
    return [
        msgspec.convert({**row, "rounds": msgspec.json.decode(row["rounds"])}, Correction)
        for row in db.query(query, (tournament,))
    ]


def concerned(db: Database, made: Correction) -> dict[int, set[RoundOf]]:
    """Return by pool the rounds with deals that a correction takes out of the ratings."""
    query = (
        "SELECT DISTINCT m.pool, m.tournament, m.round FROM match m JOIN place p ON p.match = m.id "
        "WHERE m.tournament = ? AND (m.id = ? OR p.entrant = ?)"
    )
    entrant = made.entrant if made.kind == "disqualify" else None
    found: dict[int, set[RoundOf]] = {}
    for pool, *of in db.execute(query, (made.tournament, made.match, entrant)):
        found.setdefault(pool, set()).add((of[0], of[1]))
    return found


def last_correction(db: Database) -> int:
    """Return a number that grows with each correction of any tournament."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM correction").fetchone()[0])


def void(db: Database, number: int, reason: str, now: float) -> Correction:
    """Take a match out of the results; one that was not played yet is not played any more.

    Raises:
        ConfigError: there is no such match, it is void already, or it is no match of a tournament.
    """
    found = matches.match(db, number)
    if found is None:
        raise ConfigError(f"there is no match {number}; a match is the first number of a deal's name, 17 of 17-3-0")
    if tournaments.get(db, found.tournament).kind != "tournament":
        raise ConfigError(f"match {number} was only played for its replay; it counts nowhere")
    if found.state == "void":
        raise ConfigError(f"match {number} is void already")
    return _add(db, "void", found.tournament, None, number, reason, now)


def exclude(
    db: Database, kind: Literal["disqualify", "withdraw"], tournament: int, name: str, reason: str, now: float
) -> Correction:
    """Take an entrant out of the rounds to come, and a disqualified one out of ratings and places too.

    Raises:
        ConfigError: no entrant has that name, or it is out already.
    """
    known = tournaments.entrants(db, tournament)
    numbers = [entrant.number for entrant in known if entrant.name == name]
    if not numbers:
        names = ", ".join(entrant.name for entrant in known)
        raise ConfigError(f"no entrant is called {name!r}; there are {names}")
    before = {made.kind for made in corrections(db, tournament) if made.entrant == numbers[0]}
    if kind in before or "disqualify" in before:
        raise ConfigError(f"{name} is {'disqualified' if 'disqualify' in before else 'withdrawn'} already")
    return _add(db, kind, tournament, numbers[0], None, reason, now)


def _add(
    db: Database,
    kind: Literal["void", "disqualify", "withdraw"],
    tournament: int,
    entrant: int | None,
    match: int | None,
    reason: str,
    now: float,
) -> Correction:
    query = "SELECT game, count(*) FROM round WHERE tournament = ? GROUP BY game ORDER BY game"
    rounds = dict(db.execute(query, (tournament,)).fetchall())
    if not reason.strip() or len(reason) > REASON_CHARACTERS:
        raise ConfigError(f"--reason wants 1 to {REASON_CHARACTERS} characters, which everybody may read")
    made = Correction(kind, tournament, entrant, match, rounds, reason, now)
    add(db, made)
    return made


def add(db: Database, made: Correction) -> None:
    """Store a correction as it was made, here or elsewhere; a void match is marked."""
    rounds = made.rounds
    if made.match is not None:
        matches.mark_void(db, made.match, made.reason)
    row = {**msgspec.structs.asdict(made), "rounds": msgspec.json.encode(rounds).decode()}
    names = ", ".join(row)
    db.execute(f"INSERT INTO correction ({names}) VALUES ({', '.join(f':{name}' for name in row)})", row)
