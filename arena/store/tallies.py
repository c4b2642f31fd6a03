"""What the matches of complete rounds come to, kept so that nobody reads their deals again to know it.

A tally is derived: it can be made anew from the deals at any time, and `arena verify` does so.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import TableScore
from arena.schedule.scores import table_score, tied
from arena.store import matches


class _Row(msgspec.Struct, frozen=True, array_like=True):
    match: int
    table: tuple[int, ...]
    duels: tuple[tuple[int, ...], ...]
    deals: int
    sets_won: tuple[int, ...]


def add(db: Database, tournament: int, game: str, number: int) -> None:
    """Keep what the matches of a round come to."""
    found = [*fresh(db, tournament, game, number)]
    packed = zlib.compress(
        msgspec.msgpack.encode([_Row(match, s.table, s.duels, s.deals, s.sets_won) for match, s in found])
    )
    deals = sum(score.deals for _, score in found)
    db.execute("INSERT OR REPLACE INTO tally VALUES (?, ?, ?, ?, ?)", (tournament, game, number, deals, packed))


def fresh(db: Database, tournament: int, game: str, number: int) -> Iterator[tuple[int, TableScore]]:
    """Yield the matches of a round with what their deals come to, in order; a tie for one that is void unplayed.

    Raises:
        ConfigError: the deals of a match do not fit together.
    """
    void = set(matches.never_played(db, tournament, game, number))
    for match, table in matches.tables(db, tournament, game, number):
        if match in void:
            yield match, _tie(db, match, number, table)
        elif deals := matches.deals(db, match):
            try:
                yield match, table_score(number, table, deals)
            except (ValueError, IndexError) as error:
                text = f"the deals of match {match} are damaged ({error}); take the database from a backup"
                raise ConfigError(text) from None


def _tie(db: Database, match: int, number: int, table: tuple[int, ...]) -> TableScore:
    """Return the score of a match as if everybody had tied in all deals that it was to have."""
    stored = matches.match(db, match)
    assert stored is not None
    return tied(TableScore(number, table, (), len(stored.decks) * len(stored.legs), (0,) * len(table)))


def scores(db: Database, tournament: int, game: str) -> Iterator[tuple[int, TableScore]]:
    """Yield the matches of complete rounds with what they come to, in order; equal parts are the same objects.

    Raises:
        ConfigError: what is kept is damaged.
    """
    same: dict[object, object] = {}
    query = "SELECT round, scores FROM tally WHERE tournament = ? AND game = ? ORDER BY round"
    for number, packed in db.execute(query, (tournament, game)):
        for row in _unpacked(packed, game, number):
            parts = (same.setdefault(part, part) for part in (row.table, row.duels, row.deals, row.sets_won))
            yield row.match, TableScore(number, *parts)  # type: ignore[arg-type] # each is equal to what it replaces


def _unpacked(packed: bytes, game: str, number: int) -> list[_Row]:
    try:
        return msgspec.msgpack.decode(zlib.decompress(packed), type=list[_Row])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ConfigError(
            f"what is kept of round {number} of {game} is damaged ({error}); take the database from a backup"
        ) from None


def fill(db: Database) -> None:
    """Keep what is not kept yet of complete rounds, as in a database of an older arena."""
    query = (
        "SELECT r.tournament, r.game, r.number FROM round r LEFT JOIN tally t ON t.tournament = r.tournament "
        "AND t.game = r.game AND t.round = r.number WHERE r.complete AND t.round IS NULL"
    )
    for tournament, game, number in db.execute(query).fetchall():
        add(db, tournament, game, number)
