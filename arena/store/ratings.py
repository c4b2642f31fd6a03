"""Ratings: derived from the deals of complete rounds, kept so that reading them is quick."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import TypeAlias

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.rating.certainty import Certainty
from arena.records import BotHash, PoolKey, Rating

RoundOf: TypeAlias = tuple[int, int]
"""A round of a pool: the id of its tournament, and its number."""

Numbers: TypeAlias = tuple[float, float | None, int]
"""Elo, its error and the number of deals."""


class PoolRow(msgspec.Struct, frozen=True):
    """A pool with its id, the number of rated deals, and how many of those are unverified: never more."""

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
        "JOIN tournament t ON t.id = m.tournament AND t.kind = 'tournament' WHERE m.pool = p.id "
        "AND NOT EXISTS (SELECT 1 FROM correction c JOIN place s ON s.tournament = c.tournament "
        "AND s.entrant = c.entrant WHERE c.tournament = m.tournament AND c.kind = 'disqualify' AND s.match = m.id)"
        ") AS unverified FROM pool p WHERE EXISTS (SELECT 1 FROM rating r WHERE r.pool = p.id)"
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


def pools_of_tournament(db: Database, tournament: int) -> set[int]:
    """Return the ids of the pools that the matches of a tournament belong to."""
    return {row["pool"] for row in db.query("SELECT DISTINCT pool FROM match WHERE tournament = ?", (tournament,))}


def save(
    db: Database,
    pool: int,
    tournament: int,
    round_number: int,
    rated: Sequence[Rating],
    deals: int,
    *,
    certainty: Certainty,
    before: Mapping[BotHash, float] | None = None,
) -> None:
    """Replace the ratings of a pool and keep them as its history after a round.

    Args:
        deals: how many they rest on.
        certainty: how sure they are.
        before: Elo before that round; by default that of the ratings that are replaced.
    """
    elo_before = {one.bot: one.elo for one in ratings(db, pool)} if before is None else before
    db.execute("UPDATE pool SET deals = ? WHERE id = ?", (deals, pool))
    db.execute("DELETE FROM rating WHERE pool = ?", (pool,))
    db.conn.executemany(
        "INSERT INTO rating VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (pool, r.bot, r.elo, r.error, r.deals, r.wins, r.bound, *(r.ranks or (None, None)), elo_before.get(r.bot))
            for r in rated
        ],
    )
    keep_history(db, pool, tournament, round_number, rated)
    lists = (certainty.bots, certainty.decks, certainty.groups)
    bots, decks, groups = (msgspec.json.encode(one).decode() for one in lists)
    matrices = (certainty.covariance.tobytes(), certainty.naive.tobytes())
    row = (pool, tournament, round_number, bots, *matrices, decks, groups, certainty.design_effect)
    db.execute("INSERT OR REPLACE INTO fit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def keep_history(db: Database, pool: int, tournament: int, round_number: int, rated: Sequence[Rating]) -> None:
    """Keep ratings as those after a round, in place of what was kept."""
    db.execute("DELETE FROM history WHERE pool = ? AND tournament = ? AND round = ?", (pool, tournament, round_number))
    db.conn.executemany(
        "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(pool, tournament, round_number, r.bot, r.elo, r.error, r.deals) for r in rated],
    )


def ratings(db: Database, pool: int) -> list[Rating]:
    """Return the ratings of a pool, the strongest first."""
    query = (
        "SELECT hash AS bot, elo, error, deals, wins, bound, rank_low, rank_high FROM rating WHERE pool = ? "
        "ORDER BY elo DESC, hash"
    )
    return [_rating(row) for row in db.query(query, (pool,))]


def _rating(row: dict[str, object]) -> Rating:
    ranks = row.pop("rank_low"), row.pop("rank_high")
    return msgspec.convert({**row, "ranks": None if None in ranks else ranks}, Rating)


def changes(db: Database, pool: int) -> dict[BotHash, float]:
    """Return by how much Elo the last round of a pool changed each bot that was rated before it."""
    query = "SELECT hash, elo - before FROM rating WHERE pool = ? AND before IS NOT NULL"
    return {BotHash(bot): change for bot, change in db.execute(query, (pool,))}


def certainty(db: Database, pool: int) -> Certainty | None:
    """Return how sure the ratings of a pool are; None if they were fitted by an arena that did not keep it.

    Raises:
        ConfigError: what is kept is damaged.
    """
    for row in db.query(
        "SELECT bots, covariance, naive, decks, groups, design_effect FROM fit WHERE pool = ?", (pool,)
    ):
        bots = msgspec.json.decode(row["bots"], type=tuple[BotHash, ...])
        decks = msgspec.json.decode(row["decks"], type=tuple[int, ...])
        groups = msgspec.json.decode(row["groups"], type=tuple[tuple[int, ...], ...])
        size = 8 * (len(bots) * (len(bots) + 1) // 2)
        blobs = row["covariance"], row["naive"]
        covariance, naive = (array("d", blob if len(blob) == size else b"") for blob in blobs)
        if not (
            {len(blob) for blob in blobs} == {size}
            and all(map(math.isfinite, chain(covariance, naive)))
            and len(decks) == len(bots)
            and sorted(chain(*groups)) == list(range(len(bots)))
            and {bot for (bot,) in db.execute("SELECT hash FROM rating WHERE pool = ?", (pool,))} == {*bots}
        ):
            raise ConfigError(f"the fit of pool {pool} is damaged; take the database from a backup")
        return Certainty(bots, covariance, naive, decks, groups, row["design_effect"])
    return None


class Past(msgspec.Struct, frozen=True):
    """A rating after a round; `tournament` is an id."""

    tournament: int
    round: int
    elo: float
    error: float | None
    deals: int

    @property
    def provisional(self) -> bool:
        """Whether nobody could say yet how sure it was."""
        return self.error is None


def history(db: Database, pool: int, bot: BotHash) -> list[Past]:
    """Return the rating of a bot after each round of a pool, in the order in which they were completed."""
    query = "SELECT tournament, round, elo, error, deals FROM history WHERE pool = ? AND hash = ?"
    found = {(row[0], row[1]): Past(*row) for row in db.execute(query, (pool, bot))}
    return [found[one] for alike in rounds(db, pool) for one in alike if one in found]


def rounds(db: Database, pool: int) -> list[tuple[RoundOf, ...]]:
    """Return the rounds after which a pool was rated, in the order in which they were completed.

    Rounds with the same number of deals are together: what follows on the first of them brought nothing that is rated.
    """
    query = (
        "SELECT h.tournament, h.round, sum(h.deals) AS seats FROM history h JOIN pool p ON p.id = h.pool "
        "LEFT JOIN round r ON r.tournament = h.tournament AND r.game = p.game AND r.number = h.round WHERE h.pool = ? "
        "GROUP BY h.tournament, h.round ORDER BY coalesce(r.complete, 0), seats, h.tournament, h.round"
    )
    every = db.execute(query, (pool,)).fetchall()
    return [tuple((row[0], row[1]) for row in alike) for _, alike in groupby(every, lambda row: row[2])]


def history_after(db: Database, pool: int, tournament: int, round_number: int) -> dict[BotHash, Numbers]:
    """Return the rating of each bot after a round."""
    query = "SELECT hash, elo, error, deals FROM history WHERE pool = ? AND tournament = ? AND round = ?"
    return {BotHash(bot): tuple(row) for bot, *row in db.execute(query, (pool, tournament, round_number))}


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
