"""Writes a file of everything: bots by their hashes, and all rounds of which everything may be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Literal

import msgspec
from sqlite_utils import Database

from arena import __version__
from arena.export import lines
from arena.export.rows import faults_of, of_match, published, secrets
from arena.plan import plan_of
from arena.records import DealRecord, MatchRecord, Step
from arena.rules import OutcomeType
from arena.store import bots, matches, ratings, tournaments
from arena.store.corrections import corrections
from arena.store.tournaments import Tournament


def everything(db: Database) -> Iterator[lines.Line]:
    """Yield the lines of the file, in their order."""
    before = 0
    for line in _lines(db):
        yield line
        before += 1
    yield lines.End(before)


def _lines(db: Database) -> Iterator[lines.Line]:
    yield lines.Begin(__version__)
    for bot in bots.kept(db):
        yield lines.Bot(**msgspec.structs.asdict(bot))
    for one in bots.all_versions(db):
        kept = msgspec.structs.asdict(one)
        del kept["manifest"]
        yield lines.Submission(**kept)
    stored = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
    for tournament in sorted(stored, key=lambda one: one.id):
        yield from _tournament(db, tournament)


def _tournament(db: Database, one: Tournament) -> Iterator[lines.Line]:
    kind: Literal["play", "tournament"] = "play" if one.kind == "play" else "tournament"
    yield lines.Tournament(one.name, kind, one.isolation, one.engine, one.protocol, one.created_at)
    for stage in one.stages:
        salt, master = secrets(stage)
        yield lines.Stage(
            plan=plan_of(stage),
            players=stage.players,
            practice=stage.practice,
            commitment=stage.commitment.hex(),
            salt=salt,
            master=master,
            match_count=stage.match_count,
            created_at=stage.created_at,
            finished_at=stage.finished_at,
            first_match=stage.first_match,
        )
    for entrant in tournaments.entrants(db, one.id):
        yield lines.Entrant(entrant.name, entrant.hash, entrant.games)
    told: set[int] = set()
    stages = {game: tournaments.round_stages(db, one.id, game) for game in plan_of(one).games}
    order = {game: tournaments.completions(db, one.id, game) for game in stages}
    for game, played, numbers in published(db, one, void=True):
        nth = order[game].get(played.number, 0)
        yield lines.Round(game, played.number, stages[game][played.number - 1], played.byes, nth)
        pools = ratings.pools_of_round(db, one.id, game, played.number)
        types = {pool.seats: pool.outcome_type for _, pool in pools}
        for number in numbers:
            yield from _match(db, number, types)
        never = matches.never_played(db, one.id, game, played.number)
        for number in never:
            yield lines.Unplayed(**_scheduled(db, number, types))
        told.update(numbers, never)
    for made in corrections(db, one.id):
        if made.match is None or made.match in told:  # else of a round that is not complete, so that nothing is known
            yield lines.Correction(made.kind, made.entrant, made.match, made.rounds, made.reason, made.made_at)


def _match(db: Database, number: int, types: Mapping[int, OutcomeType]) -> Iterator[lines.Line]:
    _, record = of_match(db, number)
    yield lines.Match(
        **_scheduled(db, number, types),
        isolation=record.isolation,
        engine=record.engine,
        protocol=record.protocol,
        machine=record.machine,
        core=record.core,
        started_at=record.started_at,
        duration_us=record.duration_us,
    )
    for deal in matches.each_record(db, number):
        yield from _deal(record, deal)


def _scheduled(db: Database, number: int, types: Mapping[int, OutcomeType]) -> dict[str, Any]:
    """Return the fields of `lines.Scheduled`."""
    match = matches.match(db, number)
    assert match is not None
    return {
        "id": number,
        "table": match.entrants,
        "rule_set": match.rule_set,
        "outcome_type": types[match.pool_seats],
        "decks": tuple(key.hex() for key in match.decks),
        "legs": match.legs,
    }


def _deal(record: MatchRecord, deal: DealRecord) -> Iterator[lines.Line]:
    steps = (_moves(deal.steps[start : start + lines.STEPS_A_LINE]) for start in count(0, lines.STEPS_A_LINE))
    told = msgspec.structs.asdict(deal)
    told |= {
        "steps": next(steps),
        "digests": tuple(digest.hex() for digest in deal.digests),
        "faults": faults_of(record, deal),
    }
    yield lines.Deal(**told)
    while more := next(steps):
        yield lines.Steps(more)


def _moves(steps: tuple[Step, ...]) -> tuple[lines.Move, ...]:
    return tuple(lines.Move(step.seat, step.action, step.elapsed_us, step.note) for step in steps)
