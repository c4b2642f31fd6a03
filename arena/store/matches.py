"""Matches, their deals, faults and logs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import BotHash, DealRecord, Fault, Log, Machine, MatchRecord, Placing, RatedMatch

KEY_BYTES = 32


class StoredMatch(msgspec.Struct, frozen=True):
    """A match as stored, scheduled or played.

    Attributes:
        entrants: by place at the table, the entrants' numbers.
        names: by place.
        hashes: by place.
        decks: the keys of its decks.
        legs: who sits where.
    """

    id: int
    tournament: int
    game: str
    round: int
    rule_set: str
    state: str
    entrants: tuple[int, ...]
    names: tuple[str, ...]
    hashes: tuple[BotHash, ...]
    decks: tuple[bytes, ...]
    legs: tuple[tuple[int, ...], ...]
    isolation: str | None
    pool_seats: int = 0
    stage: int = 1


class StoredFault(msgspec.Struct, frozen=True):
    """A fault with the names a reader needs."""

    match: int
    name: str
    fault: Fault
    entrant: int


def match(db: Database, number: int) -> StoredMatch | None:
    """Return a match, or None."""
    query = (
        "SELECT m.id, m.tournament, m.game, m.round, p.rule_set, m.state, m.decks, m.legs, m.isolation, "
        "p.seats AS pool_seats, r.stage FROM match m JOIN pool p ON p.id = m.pool "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round WHERE m.id = ?"
    )
    for row in db.query(query, (number,)):
        seats = list(
            db.execute(
                "SELECT p.entrant, e.name, e.hash FROM place p JOIN entrant e "
                "ON e.tournament = p.tournament AND e.number = p.entrant WHERE p.match = ? ORDER BY p.place",
                (number,),
            )
        )
        entrants, names, hashes = zip(*seats, strict=True)
        decks = row.pop("decks")
        keys = tuple(decks[start : start + KEY_BYTES] for start in range(0, len(decks), KEY_BYTES))
        legs = msgspec.json.decode(row.pop("legs"), type=tuple[tuple[int, ...], ...])
        return StoredMatch(**row, entrants=entrants, names=names, hashes=hashes, decks=keys, legs=legs)
    return None


def unplayed(db: Database, tournament: int, game: str, round_number: int) -> list[int]:
    """Return the ids of the matches of a round that are still to be played."""
    query = "SELECT id FROM match WHERE tournament = ? AND game = ? AND round = ? AND state = 'scheduled' ORDER BY id"
    return [number for (number,) in db.execute(query, (tournament, game, round_number))]


def count_played(db: Database, tournament: int, stage: int | None = None) -> int:
    """Return the number of matches of a tournament, or of one stage of it, that are played, or void by now."""
    query = (
        "SELECT count(*) FROM round r JOIN match m ON m.tournament = r.tournament AND m.game = r.game "
        "AND m.round = r.number WHERE r.tournament = ? AND m.state != 'scheduled'"
    )
    if stage is None:
        return int(db.execute(query, (tournament,)).fetchone()[0])
    return int(db.execute(f"{query} AND r.stage = ?", (tournament, stage)).fetchone()[0])


def count_scheduled(db: Database, tournament: int, stage: int) -> int:
    """Return the number of matches of a stage that are scheduled or played."""
    query = (
        "SELECT count(*) FROM round r JOIN match m ON m.tournament = r.tournament AND m.game = r.game "
        "AND m.round = r.number WHERE r.tournament = ? AND r.stage = ?"
    )
    return int(db.execute(query, (tournament, stage)).fetchone()[0])


def record(db: Database, played: MatchRecord) -> bool:
    """Store a played match with its deals, faults and logs; return False, changing nothing, if it was stored before."""
    changed = db.execute(
        "UPDATE match SET state = 'played', isolation = ?, engine = ?, protocol = ?, core = ?, started_at = ?, "
        "duration_us = ? WHERE id = ? AND state = 'scheduled'",
        (
            played.isolation,
            played.engine,
            played.protocol,
            played.core,
            played.started_at,
            played.duration_us,
            played.id,
        ),
    )
    if changed.rowcount == 0:
        return False
    facts = msgspec.json.encode(played.machine).decode()
    db.execute("INSERT INTO machine (facts) VALUES (?) ON CONFLICT DO NOTHING", (facts,))
    db.execute("UPDATE match SET machine = (SELECT id FROM machine WHERE facts = ?) WHERE id = ?", (facts, played.id))
    for deal in played.deals:
        packed = zlib.compress(msgspec.msgpack.encode(deal))
        seats = bytes(deal.seating), bytes(deal.places)
        db.execute(
            "INSERT INTO deal VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (played.id, deal.deck, deal.leg, *seats, int(deal.rated), deal.reason, packed),
        )
    _record_faults(db, played)
    for log in played.logs:
        db.execute(
            "INSERT INTO log (match, leg, place, first_deck, last_deck, text) VALUES (?, ?, ?, ?, ?, ?)",
            (played.id, log.leg, log.place, log.first_deck, log.last_deck, zlib.compress(log.text)),
        )
    return True


def _record_faults(db: Database, played: MatchRecord) -> None:
    query = "SELECT entrant FROM place WHERE match = ? ORDER BY place"
    entrants = [entrant for (entrant,) in db.execute(query, (played.id,))]
    seatings = {(deal.deck, deal.leg): deal.seating for deal in played.deals}
    for fault in played.faults:
        row = msgspec.structs.asdict(fault)
        row["match"] = played.id
        row["entrant"] = entrants[seatings[fault.deck, fault.leg][fault.seat]]
        db.execute(
            "INSERT INTO fault (match, deck, leg, seat, entrant, step, kind, detail, text, evidence, stderr, "
            "elapsed_us, limit_us) VALUES (:match, :deck, :leg, :seat, :entrant, :step, :kind, :detail, :text, "
            ":evidence, :stderr, :elapsed_us, :limit_us)",
            row,
        )


def deal(db: Database, number: int, deck: int, leg: int) -> DealRecord | None:
    """Return a stored deal, or None."""
    query = "SELECT record FROM deal WHERE match = ? AND deck = ? AND leg = ?"
    for (packed,) in db.execute(query, (number, deck, leg)):
        return _unpacked(packed)
    return None


def last_deal(db: Database) -> tuple[int, int, int] | None:
    """Return match, deck and leg of the last deal of the newest tournament or play that has any.

    The newest is the one with the highest id, whatever the clock said; in it the match begun last is taken.
    """
    query = (  # the + lets it go along the index of start times, where the first of the tournament is near
        "SELECT match, deck, leg FROM deal WHERE match = (SELECT id FROM match WHERE state = 'played' "
        "AND +tournament = (SELECT id FROM tournament t WHERE EXISTS "
        "(SELECT 1 FROM match m WHERE m.tournament = t.id AND m.state = 'played') ORDER BY id DESC LIMIT 1) "
        "ORDER BY started_at DESC, id DESC LIMIT 1) ORDER BY leg DESC, deck DESC LIMIT 1"
    )
    for number, deck, leg in db.execute(query):
        return int(number), int(deck), int(leg)
    return None


def mark_void(db: Database, number: int, reason: str) -> None:
    """Take a match out of the results."""
    db.execute("UPDATE match SET state = 'void', reason = ? WHERE id = ?", (reason, number))


def never_played(db: Database, tournament: int, game: str, round_number: int) -> list[int]:
    """Return the ids of the matches of a round that are void without having been played."""
    query = (
        "SELECT id FROM match WHERE tournament = ? AND game = ? AND round = ? AND state = 'void' AND machine IS NULL "
        "ORDER BY id"
    )
    return [number for (number,) in db.execute(query, (tournament, game, round_number))]


def played(db: Database, tournament: int, *, void: bool = False) -> list[int]:
    """Return the ids of the played matches of a tournament.

    Args:
        void: those too that an organiser took out of the results afterwards.
    """
    states = "('played', 'void')" if void else "('played')"
    query = f"SELECT id FROM match WHERE tournament = ? AND state IN {states} AND machine IS NOT NULL ORDER BY id"
    return [number for (number,) in db.execute(query, (tournament,))]


def records(db: Database, number: int) -> list[DealRecord]:
    """Return all of a match's deals, in the order of play."""
    return list(each_record(db, number))


def each_record(db: Database, number: int) -> Iterator[DealRecord]:
    """Stream a match's deals, in the order of play."""
    for (packed,) in db.execute("SELECT record FROM deal WHERE match = ? ORDER BY leg, deck", (number,)):
        yield _unpacked(packed)


def recorded(db: Database, number: int) -> MatchRecord:
    """Return a played match as it was recorded, but for its deals, which `each_record` streams, and its logs."""
    query = (
        "SELECT m.isolation, m.engine, m.protocol, f.facts, m.core, m.started_at, m.duration_us "
        "FROM match m JOIN machine f ON f.id = m.machine WHERE m.id = ?"
    )
    isolation, engine, protocol, facts, core, started_at, duration_us = db.execute(query, (number,)).fetchone()
    machine = msgspec.json.decode(facts, type=Machine)
    found = tuple(one.fault for one in faults(db, number=number))
    return MatchRecord(number, (), found, isolation, engine, protocol, machine, core, started_at, duration_us)


def columns(db: Database, number: int) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...], bool, str]]:
    """Return deck, leg, seating, places, rated and reason of a match's deals as queries see them, in order of play."""
    query = "SELECT deck, leg, seating, places, rated, reason FROM deal WHERE match = ? ORDER BY leg, deck"
    return [
        (deck, leg, tuple(seating), tuple(places), bool(rated), reason)
        for deck, leg, seating, places, rated, reason in db.execute(query, (number,))
    ]


def _unpacked(packed: bytes) -> DealRecord:
    try:
        return msgspec.msgpack.decode(zlib.decompress(packed), type=DealRecord)
    except (zlib.error, msgspec.DecodeError) as error:
        raise ConfigError(f"the record of a deal is damaged ({error}); take the database from a backup") from None


def mark_unverified(db: Database, number: int, deck: int, leg: int, reason: str) -> bool:
    """Mark a deal that was imported and did not come out the same; return False if it is marked already."""
    query = "INSERT INTO unverified VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return bool(db.execute(query, (number, deck, leg, reason)).rowcount)


def unverified(db: Database, number: int) -> dict[tuple[int, int], str]:
    """Return deck and leg of a match's unverified deals, with the reasons."""
    query = "SELECT deck, leg, reason FROM unverified WHERE match = ?"
    return {(deck, leg): reason for deck, leg, reason in db.execute(query, (number,))}


def count_unverified(db: Database, tournament: int, game: str) -> tuple[int, int]:
    """Return how many deals of the complete rounds of a game are unverified, and how many there are."""
    given = tournament, game
    query = (
        "SELECT count(*) FROM match m JOIN unverified u ON u.match = m.id "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "WHERE m.tournament = ? AND m.game = ?"
    )
    (some,) = db.execute(query, given).fetchone()
    query = "SELECT coalesce(sum(deals), 0) FROM tally WHERE tournament = ? AND game = ?"
    (every,) = db.execute(query, given).fetchone()
    return int(some), int(every)


def deals(db: Database, number: int) -> list[Placing]:
    """Return who finished where in each deal of a match, in order of deck and leg."""
    query = "SELECT deck, leg, seating, places FROM deal WHERE match = ? ORDER BY deck, leg"
    return [
        Placing(deck, leg, tuple(seating), tuple(places)) for deck, leg, seating, places in db.execute(query, (number,))
    ]


def tables(db: Database, tournament: int, game: str, round_number: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return the id and the table of each match of a round, in order."""
    query = (
        "SELECT m.id, p.entrant FROM match m JOIN place p ON p.match = m.id "
        "WHERE m.tournament = ? AND m.game = ? AND m.round = ? ORDER BY m.id, p.place"
    )
    found: dict[int, list[int]] = {}
    for number, entrant in db.execute(query, (tournament, game, round_number)):
        found.setdefault(number, []).append(entrant)
    return [(number, tuple(table)) for number, table in found.items()]


def faults(db: Database, *, number: int | None = None, tournament: int | None = None) -> list[StoredFault]:
    """Return faults in the order in which they were stored, of one match or tournament or of all."""
    chosen = {"f.match": number, "m.tournament": tournament}
    given = {column: value for column, value in chosen.items() if value is not None}
    where = f"WHERE {' AND '.join(f'{column} = ?' for column in given)} " if given else ""
    query = (
        "SELECT f.*, e.name AS name FROM fault f JOIN match m ON m.id = f.match "
        f"JOIN entrant e ON e.tournament = m.tournament AND e.number = f.entrant {where}ORDER BY f.id"
    )
    return [
        StoredFault(row["match"], row["name"], msgspec.convert(row, Fault), row["entrant"])
        for row in db.query(query, tuple(given.values()))
    ]


def logs(db: Database, number: int) -> list[Log]:
    """Return what the bots of a match wrote to stderr, in the order of play.

    Raises:
        ConfigError: it is damaged.
    """
    query = (
        "SELECT leg, place, first_deck, last_deck, text FROM log WHERE match = ? ORDER BY leg, first_deck, place, id"
    )
    found = db.execute(query, (number,)).fetchall()
    try:
        return [Log(leg, place, first, last, zlib.decompress(packed)) for leg, place, first, last, packed in found]
    except zlib.error as error:
        raise ConfigError(f"a log of match {number} is damaged ({error}); take the database from a backup") from None


def rated_deals(
    db: Database, pool: int, only: tuple[int, str, int] | None = None, *, without: tuple[int, str, int] | None = None
) -> Iterator[RatedMatch]:
    """Stream the deals of a pool that may be rated, by match: those of complete rounds of tournaments.

    Args:
        only: tournament, game and number of one round to leave it at.
        without: the same of one round to leave out.

    Raises:
        ConfigError: the deals of a match do not fit together.
    """
    query = (  # the deals of a match in one row: a million rows would take longer than all that is made of them
        "SELECT m.id, m.tournament, m.decks, (SELECT group_concat(p.place || ' ' || p.entrant) FROM place p "
        "WHERE p.match = m.id), group_concat(d.deck), group_concat(hex(d.seating), ''), "
        "group_concat(hex(d.places), '') FROM match m "
        "JOIN round r ON r.tournament = m.tournament AND r.game = m.game AND r.number = m.round AND r.complete "
        "JOIN tournament t ON t.id = m.tournament AND t.kind = 'tournament' "
        "JOIN deal d ON d.match = m.id AND d.rated WHERE m.pool = :pool AND m.state = 'played' "
        "AND NOT EXISTS (SELECT 1 FROM correction c JOIN place p ON p.tournament = c.tournament "
        "AND p.entrant = c.entrant WHERE c.tournament = m.tournament AND c.kind = 'disqualify' AND p.match = m.id) "
    )
    if only is not None:
        query += "AND m.tournament = :tournament AND m.game = :game AND m.round = :round "
    if without is not None:
        query += "AND NOT (m.tournament = :tournament AND m.game = :game AND m.round = :round) "
    tournament, game, number = only or without or (0, "", 0)
    given = {"pool": pool, "tournament": tournament, "game": game, "round": number}
    tables: dict[tuple[int, str], tuple[BotHash, ...]] = {}
    for row in db.execute(query + "GROUP BY m.id ORDER BY m.id", given):
        number, tournament, decks, seated, dealt, seatings, places = row
        table = tables.get((tournament, seated))
        if table is None:
            table = tables[tournament, seated] = hashes(db, number)
        keys = decks.hex()
        names = tuple(keys[start : start + 2 * KEY_BYTES] for start in range(0, len(keys), 2 * KEY_BYTES))
        try:
            yield RatedMatch(table, names, _numbers(dealt), bytes.fromhex(seatings), bytes.fromhex(places))
        except ValueError as error:
            text = f"the deals of match {number} are damaged ({error}); take the database from a backup"
            raise ConfigError(text) from None


@lru_cache
def _numbers(dealt: str) -> tuple[int, ...]:
    return tuple(map(int, dealt.split(",")))


def hashes(db: Database, number: int) -> tuple[BotHash, ...]:
    """Return the bots of a match, by place at the table."""
    query = (
        "SELECT e.hash FROM place p JOIN entrant e ON e.tournament = p.tournament AND e.number = p.entrant "
        "WHERE p.match = ? ORDER BY p.place"
    )
    return tuple(BotHash(bot) for (bot,) in db.execute(query, (number,)))
