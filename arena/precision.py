"""A tournament until its error bars are small enough: how sure it is, and which tables its next round has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from sqlite_utils import Database

from arena.extension import extend, out_of
from arena.luck import Stream, derive
from arena.plan import Cast, Plan, plan_of, pool_key
from arena.rating.apart import DECKS, FAR
from arena.rating.focus import Known, choose_tables, known_of, widest
from arena.records import BotHash
from arena.schedule.seatings import seatings
from arena.store import matches, ratings, tournaments
from arena.store.tournaments import Entrant, Tournament

_LOT = b"until error"  # among tables that tell equally much; it is no secret, since who meets first wins nothing by it


_NAMED = 4  # bots of a tier that are named; more are counted


class Widest(NamedTuple):
    """The widest error bar of a game.

    Attributes:
        error: half of a 95 % interval, in Elo, infinite if unknown; of the differences that are to be measured.
        bots: whose difference it is; none if all are beyond measure.
        tiers: names of bots, the best first; from one tier to the next no difference is to be measured, since the
            upper is too far above.
        level: pairs that no play tells apart, since others always lose.
        swept: who took every point of whom, though others rate them closer together or the other way round.
    """

    game: str
    error: float
    bots: tuple[str, str] | None
    tiers: tuple[tuple[str, ...], ...]
    level: tuple[tuple[str, str], ...]
    swept: tuple[tuple[str, str], ...] = ()


def widest_errors(db: Database, tournament: Tournament) -> list[Widest]:
    """Return the widest error bar of each game with two bots left."""
    plan, left = plan_of(tournament), entrants_left(db, tournament)
    found = []
    for game in plan.games:
        playing = [one for one in left if game in one.games]
        if len(playing) >= plan.seats:
            known = _known(db, plan, game, playing, tournament.isolation)
            error, i, j = widest(known)
            bots = None if i == j else (playing[i].name, playing[j].name)
            tiers = tuple(tuple(playing[k].name for k in tier) for tier in known.tiers())
            level = tuple((playing[i].name, playing[j].name) for i, j in np.argwhere(np.triu(known.apart.level)))
            swept = tuple((playing[i].name, playing[j].name) for i, j in np.argwhere(known.apart.swept))
            found.append(Widest(game, error, bots, tiers, level, swept))
    return found


def entrants_left(db: Database, tournament: Tournament) -> list[Entrant]:
    """Return the entrants that were not withdrawn or disqualified."""
    out = out_of(db, tournament)
    return [one for one in tournaments.entrants(db, tournament.id) if one.hash not in out]


def next_tables(db: Database, plan: Plan, entrants: Sequence[Entrant], isolation: str, target: float) -> Cast:
    """Return the tables of the next round of each game, chosen by the pool's results so far.

    Args:
        target: half the width of the widest 95 % interval that is small enough, in Elo.
    """
    tables = {}
    for game in plan.games:
        playing = [one for one in entrants if game in one.games]
        if len(playing) < plan.seats:
            continue
        deals = plan.decks * len(seatings(plan.seats, plan.seatings))
        outcome = pool_key(plan, game, plan.seats, isolation).outcome_type
        known = _known(db, plan, game, playing, isolation)
        stream = Stream(derive(_LOT, "until-error", game, plan.rounds), "until-error")
        chosen = choose_tables(known, target, plan.seats, deals, outcome, stream)
        tables[game] = tuple(tuple(playing[i].number for i in table) for table in chosen)
    return Cast(tables={game: found for game, found in tables.items() if found})


def _known(db: Database, plan: Plan, game: str, playing: Sequence[Entrant], isolation: str) -> Known:
    key = pool_key(plan, game, plan.seats, isolation)
    bots: list[BotHash] = [one.hash for one in playing]
    for pool in ratings.pools(db):
        if pool.key == key:
            deals = (deal for match in matches.rated_deals(db, pool.id) for deal in match.deals())
            return known_of(bots, ratings.ratings(db, pool.id), ratings.certainty(db, pool.id), deals)
    return known_of(bots, [], None)


def next_stage(db: Database, tournament: Tournament, target: float, now: float, seed: int | None) -> Tournament | None:
    """Store the stage that follows and return the tournament with it; None if all error bars are small enough."""
    latest = plan_of(tournament)
    plan = msgspec.structs.replace(latest, rounds=latest.rounds + 1)
    left = entrants_left(db, tournament)
    plan = msgspec.structs.replace(plan, cast=next_tables(db, plan, left, tournament.isolation, target))
    if not plan.cast.tables:
        return None
    return extend(db, tournament, plan, left, now, seed)


def words_of(found: Widest) -> str:
    """Return the widest error bar in words."""
    if found.bots is None:
        return f"{found.game} none, all are beyond measure"
    error = "unknown" if math.isinf(found.error) else f"±{found.error:.0f}"
    return f"{found.game} {error} ({found.bots[0]} and {found.bots[1]})"


def unmeasured_in_words(found: Widest) -> Iterator[str]:
    """Tell between whom differences are beyond measure, from the best to the weakest, who is level, who swept whom."""
    for above, below in pairwise(found.tiers):
        verb = "are" if len(above) > 1 else "is"
        yield (f"{found.game}: {_listed(above)} {verb} more than {FAR} Elo above {_listed(below)}: beyond measure")
    for one, other in found.level:
        yield f"{found.game}: no deal tells {one} from {other}: where they sit together, others lose"
    for winner, pairs in groupby(found.swept, lambda pair: pair[0]):
        beaten = _listed([loser for _, loser in pairs])
        yield f"{found.game}: {winner} took every point of {beaten}, on {DECKS} decks or more: no rating describes that"


def _listed(names: Sequence[str]) -> str:
    shown = [*names] if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} others"]
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
