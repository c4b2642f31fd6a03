"""The tournament that `arena run` plays: begun, gone on with, or extended; what cannot be is named."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import msgspec
import trio
from sqlite_utils import Database

from arena.cli.entrants import as_entrants
from arena.cli.ladder import Ladder
from arena.cli.progress import Mode
from arena.cli.site import Player, Site
from arena.cli.until import Until, find_unfinished
from arena.config import TournamentConfig
from arena.errors import ConfigError
from arena.extension import Change, cast, changed_plan, changes, extend
from arena.plan import Plan, check_plan, default_rounds, match_counts, new_tournament, plan_of
from arena.store import tournaments
from arena.store.database import writing
from arena.store.tournaments import Entrant, Tournament


class Asked(NamedTuple):
    """What the command was given."""

    db: Database
    site: Site
    config: TournamentConfig
    lanes: int
    mode: Mode
    trusted: bool
    extend: bool
    forever: bool
    until: Until | None = None

    @property
    def is_told(self) -> bool:
        """Tell whether a person reads along."""
        return self.mode in ("bars", "lines")


def _plan(config: TournamentConfig, rounds: int) -> Plan:
    clock = config.clock.limits()
    return Plan(
        config.format,
        config.given(),
        rounds,
        config.seats,
        config.decks,
        config.seatings,
        clock,
        avoid_same_author=config.avoid_same_author,
        challengers=tuple(sorted(config.challengers)),
        tiebreaks=config.tiebreaks,
        seeds=config.seeds,
    )


def plan_for(config: TournamentConfig, entrants: Sequence[Entrant]) -> Plan:
    """Return what a configuration plays with these entrants."""
    return _plan(config, config.rounds or default_rounds(config.format, entrants, config.given(), config.seats))


def open_tournament(asked: Asked, entrants: list[Entrant]) -> tuple[Tournament, bool]:
    """Return the tournament to play and whether it was begun before.

    Raises:
        ConfigError: one of that name is finished, or differs; names what differs.
    """
    db, config = asked.db, asked.config
    stored = tournaments.find(db, config.name) if config.name else None
    if asked.extend:
        return _extended(asked, stored, entrants), True
    plan = plan_for(config, entrants)
    check_plan(plan, entrants)
    if asked.until is not None:
        level = asked.site.level.value
        going = find_unfinished(db, config.name, plan, entrants, level, config.seed)
        return (going, True) if going else (_created(asked, asked.until.first(plan, entrants, level), entrants), False)
    if stored is not None:
        if found := changes(db, stored, plan, entrants, asked.site.level.value, config.seed):
            extensible = all(one.allowed for one in found)
            way_out = "pass --extend to add that, or choose another --name" if extensible else "choose another --name"
            raise ConfigError(f"tournament {stored.name} was begun differently: {_listed(found)}; {way_out}")
        if stored.finished_at is not None:
            raise ConfigError(
                f"tournament {stored.name} is finished; --extend it by more --rounds, or play another under a new "
                "--name"
            )
        return stored, True
    if config.name is None:
        for one in tournaments.tournaments(db):
            same = one.finished_at is None
            if same and not changes(db, one, plan, entrants, asked.site.level.value, config.seed):
                return one, True
    return _created(asked, plan, entrants), False


def _extended(asked: Asked, stored: Tournament | None, entrants: list[Entrant]) -> Tournament:
    """Return a tournament extended by what differs, or as it is if nothing does and it is not finished."""
    db, config = asked.db, asked.config
    stored, plan = extension_of(db, config, stored, entrants, asked.site.level.value)
    return stored if plan is None else extend(db, stored, plan, entrants, time.time(), config.seed)


def extension_of(
    db: Database, config: TournamentConfig, stored: Tournament | None, entrants: Sequence[Entrant], isolation: str
) -> tuple[Tournament, Plan | None]:
    """Return the tournament to extend and the plan of its next stage; None if nothing differs and it is not finished.

    Raises:
        ConfigError: there is none, or what differs cannot be added to it.
    """
    if stored is None:
        raise ConfigError(f"there is no tournament {config.name!r} to extend; without --extend it begins")
    plan = _plan(config, config.rounds or plan_of(stored).rounds)
    found = changes(db, stored, plan, entrants, isolation, config.seed)
    if refused := [one for one in found if not one.allowed]:
        raise ConfigError(
            f"no extension can change tournament {stored.name} so: {_listed(refused)}; choose another --name"
        )
    return stored, None if not found and stored.finished_at is None else plan


def _created(asked: Asked, plan: Plan, entrants: list[Entrant]) -> Tournament:
    db = asked.db
    name = asked.config.name
    if name is None:
        numbers = count(len(tournaments.tournaments(db)) + 1)
        name = next(free for number in numbers if tournaments.find(db, free := f"{plan.format}-{number}") is None)
    if asked.until is None:
        plan = msgspec.structs.replace(plan, cast=cast(db, plan, entrants, asked.site.level.value))
    total = sum(match_counts(plan, entrants).values())
    made = new_tournament(name, plan, asked.site.level.value, time.time(), total, seed=asked.config.seed)
    with writing(db):
        number = tournaments.create(db, made, entrants)
    return tournaments.get(db, number)


def _listed(found: Sequence[Change]) -> str:
    return "; ".join(one.text for one in found)


async def open_ladder_tournament(asked: Asked, ladder: Ladder) -> tuple[Tournament, list[Player], bool]:
    """Return a tournament without an end, the bots that were found for it, and whether it was begun before.

    Raises:
        ConfigError: one of that name differs; names what differs.
    """
    config = asked.config
    stored = tournaments.find(asked.db, config.name or "")
    if stored is not None:
        latest = plan_of(stored)
        plan = msgspec.structs.replace(_plan(config, latest.rounds), decks=latest.decks)
        if found := list(changed_plan(stored, plan, asked.site.level.value, config.seed)):
            raise ConfigError(
                f"tournament {stored.name} was begun differently: {_listed(found)}; choose another --name"
            )
        return stored, [], True
    plan = _plan(config, config.rounds or 1)
    players = await ladder.players(plan, trio.Event())
    assert players is not None  # only a signal ends it
    entrants = as_entrants(players, ladder.games)
    check_plan(plan, entrants)
    return _created(asked, plan, entrants), players, False
