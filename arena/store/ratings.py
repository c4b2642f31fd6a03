"""Ratings: derived from the deals of complete rounds, kept so that reading them is quick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from sqlite_utils import Database

from arena.records import BotHash, PoolKey, Rating


class PoolRow(msgspec.Struct, frozen=True):
    """A pool with its id, the number of rated deals, and how many of those are unverified."""

    id: int
    key: PoolKey
    deals: int
    unverified: int = 0


def pools(db: Database) -> list[PoolRow]:
    """Return the pools that hold ratings, by key."""
    query = (  # CROSS has it begin with what is unverified, which is little, and not with all that was played
        "SELECT p.*, (SELECT count(*) FROM unverified u CROSS JOIN match m ON m.id = u.match AND m.state = 'played' "
        "JOIN deal d ON d.match = u.match AND d.deck = u.deck AND d.leg = u.leg AND d.rated "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "WHERE m.pool = p.id) AS unverified FROM pool p WHERE EXISTS (SELECT 1 FROM rating r WHERE r.pool = p.id)"
    )
    found = [
        PoolRow(row["id"], msgspec.convert(row, PoolKey), row["deals"], row["unverified"]) for row in db.query(query)
    ]
    return sorted(found, key=lambda pool: pool.key)


def largest(found: Iterable[PoolRow]) -> list[PoolRow]:
    """Return the pool with the most rated deals of each game: the ones that the overall table is the mean of."""
    best: dict[str, PoolRow] = {}
    for pool in found:
        if pool.key.game not in best or pool.deals > best[pool.key.game].deals:
            best[pool.key.game] = pool
    return [best[game] for game in sorted(best)]


def pools_of_round(db: Database, tournament: int, game: str, number: int) -> list[tuple[int, PoolKey]]:
    """Return the pools that the matches of a round belong to."""
    query = (
        "SELECT DISTINCT p.* FROM match m JOIN pool p ON p.id = m.pool "
        "WHERE m.tournament = ? AND m.game = ? AND m.round = ? ORDER BY p.id"
    )
    return [(row["id"], msgspec.convert(row, PoolKey)) for row in db.query(query, (tournament, game, number))]


def save(db: Database, pool: int, tournament: int, round_number: int, ratings: Sequence[Rating], deals: int) -> None:
    """Replace the ratings of a pool and keep them as its history after a round.

    Args:
        deals: how many they rest on.
    """
    db.execute("UPDATE pool SET deals = ? WHERE id = ?", (deals, pool))
    db.execute("DELETE FROM rating WHERE pool = ?", (pool,))
    db.conn.executemany(
        "INSERT INTO rating VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(pool, r.bot, r.elo, r.error, r.deals, r.wins, r.bound) for r in ratings],
    )
    db.conn.executemany(
        "INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(pool, tournament, round_number, r.bot, r.elo, r.error, r.deals) for r in ratings],
    )


def ratings(db: Database, pool: int) -> list[Rating]:
    """Return the ratings of a pool, the strongest first."""
    query = "SELECT hash AS bot, elo, error, deals, wins, bound FROM rating WHERE pool = ? ORDER BY elo DESC, hash"
    return [msgspec.convert(row, Rating) for row in db.query(query, (pool,))]


def history(db: Database, pool: int, bot: BotHash) -> list[tuple[int, int, float]]:
    """Return tournament, round and Elo of a bot after each round of a pool, in order."""
    query = "SELECT tournament, round, elo FROM history WHERE pool = ? AND hash = ? ORDER BY tournament, round"
    return [tuple(row) for row in db.execute(query, (pool, bot))]


def fault_counts(db: Database, pool: int) -> dict[BotHash, int]:
    """Return the number of faults of each bot in a pool's complete rounds; plays do not count."""
    query = (
        "SELECT e.hash, count(*) FROM match m JOIN fault f ON f.match = m.id "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "JOIN tournament t ON t.id = m.tournament AND t.kind = 'tournament' "
        "JOIN entrant e ON e.tournament = m.tournament AND e.number = f.entrant WHERE m.pool = ? GROUP BY e.hash"
    )
    return {BotHash(bot): count for bot, count in db.execute(query, (pool,))}


def has_practice(db: Database) -> bool:
    """Tell whether any rated result is from a tournament played from a short seed."""
    query = (
        "SELECT EXISTS (SELECT 1 FROM tournament t JOIN stage s ON s.tournament = t.id AND s.practice "
        "JOIN round r ON r.tournament = t.id AND r.stage = s.number AND r.complete WHERE t.kind = 'tournament')"
    )
    return bool(db.execute(query).fetchone()[0])
