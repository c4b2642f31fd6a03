"""Checks a whole database: what `arena.verify` checks of each match, and that the tables agree with each other.

It finds what is inconsistent. Whoever can run this code can make another database that is consistent: only the
commitment, told before the first deal, ties the cards of a database to what was played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest

import msgspec
from sqlite_utils import Database

from arena.history import fits
from arena.plan import (
    cycles,
    is_cut,
    lots,
    plan_of,
    players,
    round_after,
    rounds_before,
    scheduled,
    table_scores,
    without_excluded,
)
from arena.rating.duels import collect
from arena.rating.pool import rate_collected
from arena.records import Rating, Round
from arena.store import matches, ratings, tallies, tournaments
from arena.store.corrections import corrections
from arena.store.matches import StoredFault, StoredMatch
from arena.store.ratings import PoolRow
from arena.store.tournaments import Stage, Tournament
from arena.verify import Difference, check_deals, check_luck, is_sealed, stage_name

_LAST_DIGITS = 2.5e-6  # of Elo, which is kept to a millionth


def audit(
    db: Database, chosen: Sequence[Tournament], *, messages: bool = True, whole: bool = True
) -> Iterator[tuple[int, list[Difference]]]:
    """Yield a number of deals that were executed again and what differs, part after part.

    Args:
        chosen: the tournaments and plays to check; of a stage that `is_sealed` neither the decks nor who met whom.
        messages: compare the digests of the messages too.
        whole: check what no tournament owns too: orphaned rows and the ratings.
    """
    everything = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
    if whole:
        yield 0, _guarded("database", partial(_orphans, db))
    for one in chosen:
        for stage in one.stages:
            name = stage_name(one, stage)
            if not is_sealed(stage):
                yield 0, _guarded(name, partial(check_luck, one, stage, everything))
                yield 0, _guarded(name, partial(_check_course, db, one, stage))
        if one.kind != "play":
            yield 0, _guarded(one.name, partial(_check_tallies, db, one))
        for number in matches.played(db, one.id, void=True):
            deals = len(matches.columns(db, number))
            yield deals, _guarded(str(number), partial(_check_match, db, one, number, messages))
    if whole:
        yield 0, _guarded("ratings", partial(_check_ratings, db))


def _guarded(where: str, check: Callable[[], Iterable[Difference]]) -> list[Difference]:
    try:
        return list(check())
    except Exception as error:  # rows that were tampered with may be wrong in any way
        return [Difference(where, "unreadable", "what can be checked", f"{type(error).__name__}: {error}")]


def _orphans(db: Database) -> Iterator[Difference]:
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield Difference("database", f"row {row} of {table}", f"belongs to a {parent}", "to none")


def _check_course(db: Database, tournament: Tournament, stage: Stage) -> Iterator[Difference]:
    """Check rounds, tables and byes of a stage against the schedule, and that nothing of them is missing."""
    if tournament.kind == "play":
        return
    name = stage_name(tournament, stage)
    for game in plan_of(tournament).games:
        stored = tournaments.rounds(db, tournament.id, game)
        stages = tournaments.round_stages(db, tournament.id, game)
        if stages != sorted(stages):
            yield Difference(name, f"stages of the rounds of {game}", str(stages), "one after the other")
            continue
        own = stored[stages.index(stage.number) :][: stages.count(stage.number)] if stage.number in stages else []
        rounds = islice(_due(db, tournament, stage, game, stored), len(own))
        for (found, complete), due in zip(own, rounds, strict=True):
            if found != due:
                yield Difference(name, f"{game} round {found.number}", str(found), str(due))
            if complete and matches.unplayed(db, tournament.id, game, found.number):
                yield Difference(name, f"{game} round {found.number}", "complete", "matches are not played")
        drawn = list(plan_of(stage).cast.drawn.get(game, ()))
        if stage.master and drawn != (lot := lots(stage.master, game, drawn)):
            yield Difference(name, f"{game} seeds by lot", str(drawn), str(lot))
    yield from _check_count(db, tournament, stage)


def _check_tallies(db: Database, tournament: Tournament) -> Iterator[Difference]:
    """Check what is kept of complete rounds against their deals."""
    for game in plan_of(tournament).games:
        complete = [one.number for one, complete in tournaments.rounds(db, tournament.id, game) if complete]
        due = (found for number in complete for found in tallies.fresh(db, tournament.id, game, number))
        for kept, found in zip_longest(tallies.scores(db, tournament.id, game), due):
            if kept != found:
                yield Difference(tournament.name, f"{game} score of a match", str(kept), str(found))


def _check_count(db: Database, tournament: Tournament, stage: Stage) -> Iterator[Difference]:
    is_whole = not corrections(db, tournament.id)  # a match may be void since, or never have been needed
    if not is_whole or stage.finished_at is None or is_cut(tournament, stage):
        return
    played = matches.count_played(db, tournament.id, stage.number)
    if played != stage.match_count:
        yield Difference(stage_name(tournament, stage), "matches", f"{played} played", f"{stage.match_count} in all")


def _due(
    db: Database, tournament: Tournament, stage: Stage, game: str, stored: Sequence[tuple[Round, bool]]
) -> Iterator[Round | None]:
    """Yield the rounds that a stage had to have, each scheduled after those before it."""
    numbers = players(db, tournament, stage, game)
    made = corrections(db, tournament.id)
    history = [played for played, _ in stored]
    before = sum(number < stage.number for number in tournaments.round_stages(db, tournament.id, game))
    if plan_of(stage).format == "round-robin":
        done = rounds_before(db, tournament, stage.number)[game]
        for due in cycles(stage, game, numbers, done, before + 1):
            yield without_excluded(stage, game, due, made)
        return
    for index in range(before, len(history)):
        scores = table_scores(db, tournament.id, game, index + 1)
        yield round_after(stage, game, numbers, history[:index], scores, made)


def _check_match(db: Database, tournament: Tournament, number: int, messages: bool) -> Iterator[Difference]:
    match = matches.match(db, number)
    assert match is not None
    stage = tournament.stages[match.stage - 1]
    due = scheduled(tournament, stage, match.game, match.round, match.entrants)
    kept: dict[str, tuple[object, object]] = {
        "rule set": (match.rule_set, due.pool.rule_set),
        "seats of its pool": (match.pool_seats, due.pool.seats),
        "isolation": (match.isolation, due.pool.isolation),
        "legs": (match.legs, due.legs),
    }
    if not is_sealed(stage):
        kept["decks"] = [key.hex() for key in match.decks], [key.hex() for key in due.decks]
    for what, (stored, found) in kept.items():
        if stored != found:
            yield Difference(str(number), what, str(stored), str(found))
    deals = matches.records(db, number)
    columns = matches.columns(db, number)
    recorded = [(d.deck, d.leg, d.seating, d.places, d.rated, d.reason) for d in deals]
    for row, record in zip(columns, recorded, strict=True):
        if row != record:
            yield Difference(f"{number}-{record[0]}-{record[1]}", "columns", str(row), str(record))
    faults = matches.faults(db, number=number)
    yield from _check_blame(match, faults, {(deal.deck, deal.leg): deal.seating for deal in deals})
    yield from check_deals(match, deals, [one.fault for one in faults], plan_of(stage).clock, messages=messages)


def _check_blame(
    match: StoredMatch, faults: Sequence[StoredFault], seatings: dict[tuple[int, int], tuple[int, ...]]
) -> Iterator[Difference]:
    """Check that each fault is charged to the entrant who sat where it happened."""
    for one in faults:
        due = match.entrants[seatings[one.fault.deck, one.fault.leg][one.fault.seat]]
        if one.entrant != due:
            where = f"{match.id}-{one.fault.deck}-{one.fault.leg}"
            yield Difference(where, "entrant of a fault", str(one.entrant), str(due))


def _check_ratings(db: Database) -> Iterator[Difference]:
    for pool in ratings.pools(db):
        collected = collect(matches.rated_deals(db, pool.id), pool.key.outcome_type)
        if pool.deals != collected.taken:
            yield Difference(f"pool {pool.id}", "deals", str(pool.deals), str(collected.taken))
        due, stored = rate_collected(collected), ratings.certainty(db, pool.id)
        for one, found in zip(ratings.ratings(db, pool.id), due.ratings, strict=True):
            if stored is None:  # fitted by an older arena, which kept no places
                found = msgspec.structs.replace(found, ranks=None)
            yield from _unlike(f"pool {pool.id}", one, found)
        yield from _check_history(db, pool)
        if stored is not None and not due.certainty.is_like(stored):
            yield Difference(f"pool {pool.id}", "certainty of the ratings", "another", "what its deals say")


def _check_history(db: Database, pool: PoolRow) -> Iterator[Difference]:
    """Check the ratings after each round against the same fit, with the corrections made since."""
    deals = 0
    for fitted in fits(db, pool.id, pool.key):
        deals, due = fitted.deals, {one.bot: (one.elo, one.error, one.deals) for one in fitted.pool.ratings}
        for tournament, number in fitted.rounds:
            kept = ratings.history_after(db, pool.id, tournament, number)
            for bot in sorted(due.keys() | kept.keys()):
                if not _is_like(kept.get(bot), due.get(bot)):
                    where = f"pool {pool.id} after round {number} of {tournaments.get(db, tournament).name}"
                    yield Difference(where, f"rating of {bot[:12]}", str(kept.get(bot)), str(due.get(bot)))
    if deals != pool.deals:
        yield Difference(f"pool {pool.id}", "deals of all rounds of its history", str(deals), str(pool.deals))


def _is_like(kept: ratings.Numbers | None, due: ratings.Numbers | None) -> bool:
    """Tell whether two ratings are the same, but for the last digit, which the order of arrival may move."""
    if kept is None or due is None or kept[2] != due[2] or (kept[1] is None) != (due[1] is None):
        return False
    return abs(kept[0] - due[0]) < _LAST_DIGITS and abs((kept[1] or 0) - (due[1] or 0)) < _LAST_DIGITS


def _unlike(where: str, kept: Rating, due: Rating) -> Iterator[Difference]:
    """Yield what of a rating differs; whole ones are too long to be told."""
    for name in kept.__struct_fields__:
        if getattr(kept, name) != getattr(due, name):
            yield Difference(where, f"{name} of {kept.bot[:12]}", str(getattr(kept, name)), str(getattr(due, name)))
