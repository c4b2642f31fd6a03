"""The tables that can be exported, as rows; a row's fields are its columns. `tables` has more of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlite_utils import Database

from arena.bracket import read_bracket, standing_fields
from arena.config import parse_manifest
from arena.errors import ConfigError
from arena.export import lines
from arena.plan import deciding, final_standings, plan_of
from arena.rating.certainty import overall
from arena.rating.places import placed
from arena.records import TIEBREAKS, BotHash, Clock, DealRecord, MatchRecord, PoolKey, Rating, Round, Step
from arena.store import bots as kept_bots
from arena.store import matches, tournaments
from arena.store import ratings as kept_ratings
from arena.store.corrections import corrections
from arena.store.matches import StoredMatch
from arena.store.tournaments import Stage, Tournament


class GameRow(msgspec.Struct, frozen=True):
    """A deal and what came of it; lists are by seat.

    Attributes:
        complete: its round is complete, so it counts in standings and, if `rated`, in ratings.
        unverified: it was imported, and executing it again did not give the same.
        thinking_us: the sum of its decisions.
    """

    tournament: str
    kind: str
    game: str
    round: int
    match: int
    deck: int
    leg: int
    deal: str
    seats: int
    bots: tuple[str, ...]
    hashes: tuple[str, ...]
    places: tuple[int, ...]
    points: tuple[int, ...]
    reason: str
    rated: bool
    complete: bool
    unverified: bool
    faults: tuple[dict[str, object], ...]
    steps: int
    thinking_us: tuple[int, ...]
    cpu_us: tuple[int, ...]
    lag_us: int
    duration_us: int
    started_at: float
    rule_set: str
    isolation: str


class StandingRow(msgspec.Struct, frozen=True):
    """A line of a table of standings; what follows `points` are the tie-breaks, in their order."""

    tournament: str
    game: str
    finished: bool
    place: int
    name: str
    hash: str
    points: float
    direct_encounter: float | None
    buchholz: float | None
    buchholz_cut_1: float | None
    sonneborn_berger: float | None
    median_duel: float | None
    sets_won: float | None
    lot: float | None
    rounds: int
    deals: int
    byes: int
    seed: int | None
    seeded_by: str | None
    out_in_round: int | None
    lost_to: str | None
    decided_by: str | None
    mark: str
    reason: str | None


class RatingRow(msgspec.Struct, frozen=True):
    """A bot's strength in a pool or, where `game` is `overall`, in the mean over the largest pool of each game."""

    game: str
    rule_set: str | None
    seats: int | None
    isolation: str | None
    place: int | None
    name: str
    hash: str
    elo: float
    error: float | None
    bound: str
    deals: int
    wins: int
    faults: int
    rank_low: int | None = None
    rank_high: int | None = None
    change: float | None = None
    provisional: bool = False


class ReplayRow(msgspec.Struct, frozen=True):
    """All that is needed to execute a deal again; lists are by seat.

    Attributes:
        deck_key: the deck and the seeds of the bots follow from it.
        steps: seat, action, microseconds (-1 if the house played), note.
        digests: SHA-256 of the messages to each seat.
        commitment: to the master seed of the round's stage, which is here with its salt once the stage is finished.
    """

    tournament: str
    kind: str
    game: str
    round: int
    match: int
    deck: int
    leg: int
    deal: str
    rule_set: str
    deck_key: str
    bots: tuple[str, ...]
    hashes: tuple[str, ...]
    seating: tuple[int, ...]
    steps: tuple[Step, ...]
    places: tuple[int, ...]
    points: tuple[int, ...]
    reason: str
    rated: bool
    faults: tuple[lines.Fault, ...]
    digests: tuple[str, ...]
    first_ids: tuple[int, ...]
    cpu_us: tuple[int, ...]
    stale: tuple[int, ...]
    lag_us: int
    duration_us: int
    started_at: float
    clock: Clock
    isolation: str
    engine: str
    protocol: int
    commitment: str
    salt: str | None
    master: str | None


class BotRow(msgspec.Struct, frozen=True):
    """A version of a submitted bot; one that was only ever named by its folder has no version."""

    name: str
    version: int | None
    hash: str
    author: str | None
    games: tuple[str, ...] | None
    submitted_at: float | None
    retired_at: float | None
    manifest: str


def games(db: Database, chosen: Iterable[Tournament]) -> Iterator[GameRow]:
    """Yield every stored deal, in the order of matches and of play."""
    for one in chosen:
        complete = {(game, played.number) for game, played, _ in published(db, one)}
        for number in matches.played(db, one.id):
            match, record = of_match(db, number)
            doubted = matches.unverified(db, number)
            for deal in matches.each_record(db, number):
                is_unverified = (deal.deck, deal.leg) in doubted
                is_complete = (match.game, match.round) in complete
                yield _game_row(one, match, record, deal, complete=is_complete, unverified=is_unverified)


def published(db: Database, one: Tournament, *, void: bool = False) -> Iterator[tuple[str, Round, list[int]]]:
    """Yield the rounds of which everything may be told: their game, the round, and the ids of its matches.

    That is the complete ones, and what has been played of a play that is finished.

    Args:
        void: matches that were taken out of the results too.
    """
    done = set(matches.played(db, one.id, void=void))
    is_over = one.kind == "play" and one.finished_at is not None and bool(done)
    for game in plan_of(one).games:
        for played, complete in tournaments.rounds(db, one.id, game):
            numbers = [number for number, _ in matches.tables(db, one.id, game, played.number) if number in done]
            if complete or is_over:
                yield game, played, numbers


def of_match(db: Database, number: int) -> tuple[StoredMatch, MatchRecord]:
    """Return a match that was played, as scheduled and as recorded, without its deals."""
    match = matches.match(db, number)
    assert match is not None
    return match, matches.recorded(db, number)


def _game_row(
    one: Tournament, match: StoredMatch, record: MatchRecord, deal: DealRecord, *, complete: bool, unverified: bool
) -> GameRow:
    faults = faults_of(record, deal)
    thinking = [0] * len(deal.seating)
    for step in deal.steps:
        thinking[step.seat] += max(step.elapsed_us, 0)
    return GameRow(
        tournament=one.name,
        kind=one.kind,
        game=match.game,
        round=match.round,
        match=match.id,
        deck=deal.deck,
        leg=deal.leg,
        deal=f"{match.id}-{deal.deck}-{deal.leg}",
        seats=len(deal.seating),
        bots=_by_seat(match.names, deal),
        hashes=_by_seat(match.hashes, deal),
        places=deal.places,
        points=deal.points,
        reason=deal.reason,
        rated=deal.rated,
        complete=complete,
        unverified=unverified,
        faults=tuple({"seat": f.seat, "step": f.step, "fault": f"{f.kind}/{f.detail}"} for f in faults),
        steps=len(deal.steps),
        thinking_us=tuple(thinking),
        cpu_us=deal.cpu_us,
        lag_us=deal.lag_us,
        duration_us=deal.duration_us,
        started_at=record.started_at,
        rule_set=match.rule_set,
        isolation=record.isolation,
    )


def _by_seat(values: Sequence[str], deal: DealRecord) -> tuple[str, ...]:
    return tuple(values[place] for place in deal.seating)


_MARKS = {"void": "", "withdraw": "withdrawn", "disqualify": "disqualified"}
_TIEBREAKS = tuple(re.sub("[ -]", "_", name) for name in TIEBREAKS)


def standings(db: Database, chosen: Iterable[Tournament]) -> Iterator[StandingRow]:
    """Yield the standings after the complete rounds of each tournament and game."""
    for one in chosen:
        if one.kind == "play":
            continue
        entrants = {entrant.number: entrant for entrant in tournaments.entrants(db, one.id)}
        names = {number: entrant.name for number, entrant in entrants.items()}
        reasons = {(made.entrant, _MARKS[made.kind]): made.reason for made in corrections(db, one.id)}
        plan = plan_of(one)
        for game in plan.games:
            bracket = read_bracket(db, one, game)
            table = final_standings(db, one, game)
            for line, decided in zip(table, deciding(plan, table), strict=True):
                who = entrants[line.entrant]
                told: dict[str, Any] = dict(zip(_TIEBREAKS, line.tiebreaks, strict=True))
                told |= standing_fields(bracket, line.entrant, names)
                told["decided_by"] = told["decided_by"] or decided
                yield StandingRow(
                    tournament=one.name,
                    game=game,
                    finished=one.finished_at is not None,
                    place=line.place,
                    name=who.name,
                    hash=who.hash,
                    points=line.points,
                    rounds=line.rounds,
                    deals=line.deals,
                    byes=line.byes,
                    mark=line.mark,
                    reason=reasons.get((line.entrant, line.mark)),
                    **told,
                )


def ratings(db: Database) -> Iterator[RatingRow]:
    """Yield the ratings of each pool, and overall where there are several games."""
    names = kept_bots.names_by_hash(db)
    pools = kept_ratings.pools(db)
    counted = {pool.id: kept_ratings.fault_counts(db, pool.id) for pool in pools}
    for pool in pools:
        changes = kept_ratings.changes(db, pool.id)
        yield from _rating_rows(pool.key, kept_ratings.ratings(db, pool.id), names, [counted[pool.id]], changes)
    chosen = kept_ratings.largest(pools)
    if len(chosen) > 1:
        mean = overall({pool.key.game: kept_ratings.ratings(db, pool.id) for pool in chosen})
        yield from _rating_rows(None, mean, names, [counted[pool.id] for pool in chosen], {})


def _rating_rows(
    key: PoolKey | None,
    found: Sequence[Rating],
    names: Mapping[BotHash, str],
    counted: Sequence[Mapping[BotHash, int]],
    changes: Mapping[BotHash, float],
) -> Iterator[RatingRow]:
    for line in placed(found, names):
        one = line.rating
        yield RatingRow(
            game=key.game if key else "overall",
            rule_set=key.rule_set if key else None,
            seats=key.seats if key else None,
            isolation=key.isolation if key else None,
            place=line.place,
            name=line.name,
            hash=one.bot,
            elo=one.elo,
            error=one.error,
            bound=one.bound,
            deals=one.deals,
            wins=one.wins,
            faults=sum(counts.get(one.bot, 0) for counts in counted),
            rank_low=one.ranks and one.ranks[0],
            rank_high=one.ranks and one.ranks[1],
            change=changes.get(one.bot),
            provisional=one.provisional,
        )


def replays(db: Database, chosen: Iterable[Tournament]) -> Iterator[ReplayRow]:
    """Yield the deals of complete rounds and of plays, each with all that is needed to execute it again."""
    for one in chosen:
        clock = plan_of(one).clock
        for _, _, numbers in published(db, one):
            for number in numbers:
                match, record = of_match(db, number)
                for deal in matches.each_record(db, number):
                    yield _replay_row(one, match, record, deal, clock)


def secrets(one: Stage) -> tuple[str | None, str | None]:
    """Return salt and master of a stage in hex, once it is finished."""
    return (one.salt.hex(), one.master.hex()) if one.finished_at is not None else (None, None)


_AS_RECORDED = ("seating", "steps", "places", "points", "reason", "rated", "first_ids", "cpu_us", "stale", "lag_us")


def _replay_row(one: Tournament, match: StoredMatch, record: MatchRecord, deal: DealRecord, clock: Clock) -> ReplayRow:
    stage = one.stages[match.stage - 1]
    salt, master = secrets(stage)
    return ReplayRow(
        tournament=one.name,
        kind=one.kind,
        game=match.game,
        round=match.round,
        match=match.id,
        deck=deal.deck,
        leg=deal.leg,
        deal=f"{match.id}-{deal.deck}-{deal.leg}",
        rule_set=match.rule_set,
        deck_key=match.decks[deal.deck].hex(),
        bots=_by_seat(match.names, deal),
        hashes=_by_seat(match.hashes, deal),
        faults=faults_of(record, deal),
        digests=tuple(digest.hex() for digest in deal.digests),
        duration_us=deal.duration_us,
        started_at=record.started_at,
        clock=clock,
        isolation=record.isolation,
        engine=record.engine,
        protocol=record.protocol,
        commitment=stage.commitment.hex(),
        salt=salt,
        master=master,
        **{name: getattr(deal, name) for name in _AS_RECORDED},
    )


def faults_of(record: MatchRecord, deal: DealRecord) -> tuple[lines.Fault, ...]:
    """Return the faults of a deal as they may be told: without what bots wrote to stderr."""
    return tuple(
        lines.Fault(one.kind, one.detail, one.seat, one.step, one.text, one.evidence, one.elapsed_us, one.limit_us)
        for one in record.faults
        if (one.deck, one.leg) == (deal.deck, deal.leg)
    )


def bots(db: Database) -> Iterator[BotRow]:
    """Yield every version of every name in the order in which they were submitted, then the bots without a version."""
    seen = set()
    for one in kept_bots.all_versions(db):
        seen.add(one.hash)
        yield BotRow(
            one.name,
            one.version,
            one.hash,
            one.author,
            _games_of(one.manifest),
            one.submitted_at,
            one.retired_at,
            one.manifest,
        )
    names = kept_bots.names_by_hash(db)
    for kept in kept_bots.kept(db):
        if kept.hash not in seen:
            name = names.get(kept.hash, kept.hash[:12])
            yield BotRow(name, None, kept.hash, None, _games_of(kept.manifest), None, None, kept.manifest)


def _games_of(manifest: str) -> tuple[str, ...] | None:
    try:
        return parse_manifest(manifest).games
    except ConfigError:  # of another version, or of an import
        return None
