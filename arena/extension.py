"""What an extension adds to a tournament: a further stage with more rounds, other decks, new entrants.

The rules stay, and what was scheduled stays: a Swiss goes on from its next round, a round robin gets further cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.plan import (
    Cast,
    Plan,
    base_name,
    check_plan,
    is_cut,
    match_counts,
    new_stage,
    plan_of,
    pool_key,
    practice_master,
    rounds_before,
)
from arena.records import BotHash, PoolKey
from arena.rules import Options, show_value
from arena.store import bots as kept_bots
from arena.store import matches, ratings, tournaments
from arena.store.corrections import corrections
from arena.store.database import writing
from arena.store.tournaments import Entrant, Stage, Tournament


class Change(NamedTuple):
    """Something that differs between a stored tournament and what is asked for now.

    Attributes:
        allowed: an extension may bring it.
    """

    text: str
    allowed: bool


class Addition(NamedTuple):
    """What an extension adds.

    Attributes:
        playing: who plays in its stage.
        new: who of them enters with it.
        before: by game, as many of the plan's rounds as the stages before have.
    """

    stage: Stage
    playing: list[Entrant]
    new: list[Entrant]
    before: dict[str, int]


def changes(
    db: Database, stored: Tournament, plan: Plan, bots: Sequence[Entrant], isolation: str, seed: int | None = None
) -> list[Change]:
    """Return what differs between a stored tournament and what is asked for now; empty if nothing does.

    Who was withdrawn or disqualified may be asked for or not.

    Args:
        bots: asked for.
        seed: asked for; None takes whatever the stored one has.
    """
    return [*changed_plan(stored, plan, isolation, seed), *_changed_entrants(db, stored, bots)]


def changed_plan(stored: Tournament, plan: Plan, isolation: str, seed: int | None) -> Iterator[Change]:
    """Yield what differs but for the entrants."""
    latest = plan_of(stored)
    kept, asked = (msgspec.to_builtins(msgspec.structs.replace(one, cast=Cast())) for one in (latest, plan))
    kept["isolation"], asked["isolation"] = stored.isolation, isolation
    allowed = {"decks": True, "rounds": plan.rounds > latest.rounds}
    for one in (kept, asked):
        one["games"] = _games(one["games"])
        one.update({f"clock.{limit}": value for limit, value in one.pop("clock").items()})
    for key in kept:
        if kept[key] != asked[key]:
            yield Change(f"{key} was {_told(kept[key])}, now {_told(asked[key])}", allowed.get(key, False))
    first = stored.stages[0]
    if seed is not None and first.master and practice_master(seed) != first.master:
        yield Change(f"its seed was another than {seed}", False)
    if not all(stage.master for stage in stored.stages):
        text = "it was imported unfinished, without its master seed, so only its own arena can go on"
        yield Change(text, False)


def _told(value: object) -> str:
    """Return a value of a plan as it is written on the command line or in a file."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return show_value(value) if isinstance(value, bool | int | str) else str(value)


def _games(games: Mapping[str, Options]) -> str:
    """Return games, each with the options that differ from its defaults; in alphabetical order, as theirs is none."""
    told = [
        (game, ", ".join(f"{key}={show_value(given[key])}" for key in sorted(given))) for game, given in games.items()
    ]
    return ", ".join(f"{game} ({options})" if options else game for game, options in sorted(told))


def _changed_entrants(db: Database, stored: Tournament, bots: Sequence[Entrant]) -> Iterator[Change]:
    entrants = tournaments.entrants(db, stored.id)
    out = out_of(db, stored)
    before = {one.hash: one for one in entrants if one.number in stored.stages[-1].players}
    asked = {bot.hash: bot for bot in bots}
    for bot in sorted(before.keys() - asked.keys()):
        if bot not in out:
            yield Change(f"{before[bot].name} ({bot[:12]}) no longer plays", False)
    for bot in sorted(asked.keys() - before.keys() - out):
        yield Change(f"{asked[bot].name} ({bot[:12]}) is new", True)


def out_of(db: Database, tournament: Tournament) -> set[BotHash]:
    """Return the bots that were withdrawn from a tournament, or disqualified."""
    gone = _gone(db, tournament)
    return {one.hash for one in tournaments.entrants(db, tournament.id) if one.number in gone}


def _gone(db: Database, tournament: Tournament) -> set[int]:
    return {made.entrant for made in corrections(db, tournament.id) if made.entrant is not None}


def extend(
    db: Database, tournament: Tournament, plan: Plan, bots: Sequence[Entrant], now: float, seed: int | None = None
) -> Tournament:
    """Store a further stage of a tournament and return the tournament with it.

    Args:
        plan: as `changes` allows it; its rounds are those of the whole tournament.
        bots: who plays in it; those who are new get the numbers that follow.

    Raises:
        ConfigError: it would have no round, or cannot be played by these bots; names every problem.
    """
    with writing(db):  # nobody leaves between looking and storing
        added = addition(db, tournament, plan, bots, now, seed)
        tournaments.add_stage(db, tournament.id, added.stage)
        tournaments.add_entrants(db, tournament.id, added.new)
    return tournaments.get(db, tournament.id)


def addition(
    db: Database, tournament: Tournament, plan: Plan, bots: Sequence[Entrant], now: float, seed: int | None = None
) -> Addition:
    """Return what `extend` would store; raises what it does."""
    number = len(tournament.stages) + 1
    if plan.format == "knockout":
        raise ConfigError(
            f"{tournament.name} is a knockout, which ends with its winner; play another under a new --name"
        )
    before = rounds_before(db, tournament, number)
    if plan.rounds <= (most := max(before.values())):
        raise ConfigError(f"{plan.unit} {most} of {tournament.name} is scheduled already; extend it by more --rounds")
    playing, new = _entering(db, tournament, bots)
    check_plan(_without_gone(db, tournament, plan), playing)
    if plan.format != "until-error":  # which has found what follows from the results so far
        plan = msgspec.structs.replace(plan, cast=cast(db, plan, playing, tournament.isolation))
    stage = new_stage(number, plan, now, sum(match_counts(plan, playing, before).values()), seed=seed)
    players = tuple(sorted(one.number for one in playing))
    return Addition(msgspec.structs.replace(stage, players=players), playing, new, before)


def cast(db: Database | None, plan: Plan, entrants: Sequence[Entrant], isolation: str) -> Cast:
    """Return what a schedule is told of the entrants of a new stage, from what is known of them now.

    Seeds by lot are in it in no order: they are drawn with the master seed.

    Args:
        db: None where nothing is known.
    """
    apart: tuple[tuple[int, ...], ...] = ()
    if plan.avoid_same_author:
        authors = kept_bots.authors_by_hash(db) if db is not None else {}
        groups: dict[str, list[int]] = {}
        for one in entrants:
            groups.setdefault(authors.get(one.hash, ""), []).append(one.number)
        apart = tuple(tuple(group) for author, group in sorted(groups.items()) if author and len(group) > 1)
    found = Cast(apart, tuple(one.number for one in entrants if base_name(one) in plan.challengers))
    if plan.format != "knockout":
        return found
    seeded = {
        game: _seeds(db, plan, [one for one in entrants if game in one.games], game, isolation) for game in plan.games
    }
    return msgspec.structs.replace(
        found,
        seeds={game: seeds for game, (seeds, _, _) in seeded.items()},
        elo={game: elo for game, (_, elo, _) in seeded.items()},
        drawn={game: rest for game, (_, _, rest) in seeded.items()},
    )


def _seeds(
    db: Database | None, plan: Plan, playing: Sequence[Entrant], game: str, isolation: str
) -> tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]]:
    """Return the seeds of a game that were given or rated, the Elo of the latter, and who is to be drawn."""
    elo = _elo_in(db, pool_key(plan, game, plan.seats, isolation)) if db is not None else {}
    by_name = {base_name(one): one for one in playing}
    given = [by_name[name] for name in plan.seeds if name in by_name]
    rest = [one for one in playing if one not in given]
    rated = sorted((one for one in rest if one.hash in elo), key=lambda one: (-elo[one.hash], one.hash))
    drawn = tuple(one.number for one in rest if one not in rated)
    return tuple(one.number for one in (*given, *rated)), tuple(elo[one.hash] for one in rated), drawn


def _elo_in(db: Database, key: PoolKey) -> dict[BotHash, float]:
    return {one.bot: one.elo for pool in ratings.pools(db) if pool.key == key for one in ratings.ratings(db, pool.id)}


def _without_gone(db: Database, tournament: Tournament, plan: Plan) -> Plan:
    """Return a plan that does not ask for the challengers who have left a gauntlet."""
    gone = _gone(db, tournament)
    left = {base_name(one) for one in tournaments.entrants(db, tournament.id) if one.number in gone}
    return msgspec.structs.replace(plan, challengers=tuple(name for name in plan.challengers if name not in left))


def _entering(db: Database, tournament: Tournament, bots: Sequence[Entrant]) -> tuple[list[Entrant], list[Entrant]]:
    """Return who plays in a further stage, and who of them enters with it."""
    known = {one.hash: one for one in tournaments.entrants(db, tournament.id)}
    taken = {one.name for one in known.values()}
    gone = _gone(db, tournament)
    asked = {bot.hash: bot for bot in bots}
    playing = [known[bot] for bot in sorted(asked.keys() & known.keys()) if known[bot].number not in gone]
    new: list[Entrant] = []
    for bot in (asked[unknown] for unknown in sorted(asked.keys() - known.keys())):
        name = _free_name(db, bot, taken)
        new.append(msgspec.structs.replace(bot, number=len(known) + len(new), name=name))
        taken.add(name)
    return playing + new, new


def _free_name(db: Database, bot: Entrant, taken: set[str]) -> str:
    """Return the name of a new entrant; of a later version than one that has played, with its version."""
    if bot.name not in taken:
        return bot.name
    version = kept_bots.version_of(db, bot.name, bot.hash)
    if version is None or (name := f"{bot.name}@{version}") in taken:
        raise ConfigError(
            f"another version of {bot.name} has played under its name; submit it, so that it has a version"
        )
    return name


def total_matches(db: Database, tournament: Tournament) -> int:
    """Return how many matches a tournament has in all, those that are not scheduled yet among them."""
    return sum(
        matches.count_scheduled(db, tournament.id, stage.number) if is_cut(tournament, stage) else stage.match_count
        for stage in tournament.stages
    )
