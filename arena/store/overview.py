"""What pages show of many matches or rounds at once, in one query each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

import msgspec
from sqlite_utils import Database

from arena.records import BotHash
from arena.store.ratings import Past, rounds

_SEATS = (
    "(SELECT json_group_array(name) FROM (SELECT e.name FROM place p "
    "JOIN entrant e ON e.tournament = p.tournament AND e.number = p.entrant WHERE p.match = m.id ORDER BY p.place))"
)


class MatchRow(msgspec.Struct, frozen=True):
    """A match in a list.

    Attributes:
        names: by place at the table.
        published: everything about it may be told: its round is complete, or it is a play.
    """

    id: int
    tournament: str
    kind: str
    game: str
    round: int
    state: str
    names: tuple[str, ...]
    started_at: float | None
    published: bool
    faults: int


class Progress(msgspec.Struct, frozen=True):
    """How far a game of a tournament is.

    Attributes:
        rounds: scheduled so far.
        complete: of these.
        played: matches, the void ones too.
    """

    game: str
    rounds: int
    complete: int
    played: int


def histories(db: Database, pool: int) -> dict[BotHash, list[Past]]:
    """Return the rating of each bot of a pool after each round, in order."""
    found: dict[BotHash, list[Past]] = {}
    order = {one: place for place, one in enumerate(chain(*rounds(db, pool)))}
    query = "SELECT hash, tournament, round, elo, error, deals FROM history WHERE pool = ?"
    for bot, *past in sorted(db.execute(query, (pool,)), key=lambda row: order[row[1], row[2]]):
        found.setdefault(BotHash(bot), []).append(Past(*past))
    return found


_PUBLISHED = (
    "SELECT m.id FROM match m JOIN tournament t ON t.id = m.tournament "
    "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round "
    "WHERE (r.complete OR t.kind = 'play') AND m.state != 'scheduled' "
)
_MATCHES = (
    f"SELECT m.id, t.name AS tournament, t.kind, m.game, m.round, m.state, {_SEATS} AS names, m.started_at, "
    "(r.complete OR t.kind = 'play') AND m.state != 'scheduled' AS published, "
    "(SELECT count(*) FROM fault f WHERE f.match = m.id) AS faults "
    "FROM match m JOIN tournament t ON t.id = m.tournament "
    "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round "
)


def latest_matches(db: Database, count: int, pool: int | None = None) -> list[MatchRow]:
    """Return the matches of a pool, or of all tournaments and plays, that began last, the newest first."""
    only = "AND pool = :pool " if pool is not None else ""
    newest = f"SELECT id FROM match WHERE started_at IS NOT NULL {only}ORDER BY started_at DESC, id DESC LIMIT :count"
    query = _MATCHES + f"WHERE m.id IN ({newest}) ORDER BY m.started_at DESC, m.id DESC"
    return [_match_row(row) for row in db.query(query, {"pool": pool, "count": count})]


def matches_of_round(db: Database, tournament: int, game: str, number: int) -> list[MatchRow]:
    """Return the matches of a round, in order."""
    query = _MATCHES + "WHERE m.tournament = ? AND m.game = ? AND m.round = ? ORDER BY m.id"
    return [_match_row(row) for row in db.query(query, (tournament, game, number))]


def match_row(db: Database, number: int) -> MatchRow | None:
    """Return a match, or None."""
    return next((_match_row(row) for row in db.query(_MATCHES + "WHERE m.id = ?", (number,))), None)


def matches_of_bot(db: Database, name: str, count: int) -> list[MatchRow]:
    """Return the played matches of a bot that began last, under its name or as `NAME@VERSION`, the newest first."""
    newest = (
        "SELECT id FROM match WHERE started_at IS NOT NULL AND id IN (SELECT p.match FROM place p JOIN entrant e "
        "ON e.tournament = p.tournament AND e.number = p.entrant "
        "WHERE e.name = :name OR substr(e.name, 1, length(:name) + 1) = :name || '@') "
        "ORDER BY started_at DESC, id DESC LIMIT :count"
    )
    query = _MATCHES + f"WHERE m.id IN ({newest}) ORDER BY m.started_at DESC, m.id DESC"
    return [_match_row(row) for row in db.query(query, {"name": name, "count": count})]


def _match_row(row: dict[str, object]) -> MatchRow:
    names = msgspec.json.decode(str(row["names"]), type=tuple[str, ...])
    return msgspec.convert({**row, "names": names, "published": bool(row["published"])}, MatchRow)


def match_numbers(db: Database) -> Iterator[int]:
    """Stream the ids of all matches that were played or are void."""
    for (number,) in db.execute("SELECT id FROM match WHERE state != 'scheduled' ORDER BY id"):
        yield number


def published_deals(db: Database, *, faulty: bool = False, last: int = -1) -> list[tuple[int, int, int]]:
    """Return match, deck and leg of the deals of which everything may be told, the newest matches first.

    Args:
        faulty: only those with a fault.
        last: how many at most; all if negative.
    """
    only = "AND EXISTS (SELECT 1 FROM fault f WHERE f.match = d.match AND f.deck = d.deck AND f.leg = d.leg) "
    query = (
        "SELECT d.match, d.deck, d.leg FROM deal d JOIN match m ON m.id = d.match "
        "JOIN tournament t ON t.id = m.tournament "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round "
        f"WHERE (r.complete OR t.kind = 'play') {only if faulty else ''}"
        "ORDER BY d.match DESC, d.leg DESC, d.deck DESC LIMIT ?"
    )
    return [(match, deck, leg) for match, deck, leg in db.execute(query, (last,))]


def published_matches(db: Database, numbers: Collection[int]) -> set[int]:
    """Return those of some matches of which everything may be told."""
    query = _PUBLISHED + "AND m.id IN (SELECT value FROM json_each(?))"
    return {number for (number,) in db.execute(query, (msgspec.json.encode(sorted(numbers)).decode(),))}


def progress(db: Database, tournament: int) -> list[Progress]:
    """Return how far each game of a tournament is that has a round."""
    query = (
        "SELECT r.game, count(*), sum(r.complete > 0), (SELECT count(*) FROM match m WHERE m.tournament = r.tournament "
        "AND m.game = r.game AND m.state != 'scheduled') FROM round r WHERE r.tournament = ? GROUP BY r.game"
    )
    return [Progress(*row) for row in db.execute(query, (tournament,))]


def placings_of(db: Database, bot: BotHash) -> Iterator[tuple[int, bytes, bytes]]:
    """Stream match, seating and places of each deal of a bot's matches in complete rounds of tournaments."""
    query = (
        "SELECT d.match, d.seating, d.places FROM entrant e JOIN place p "
        "ON p.tournament = e.tournament AND p.entrant = e.number JOIN match m ON m.id = p.match AND m.state = 'played' "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "JOIN tournament t ON t.id = m.tournament AND t.kind = 'tournament' "
        "JOIN deal d ON d.match = m.id WHERE e.hash = ? ORDER BY d.match"
    )
    yield from db.execute(query, (bot,))
