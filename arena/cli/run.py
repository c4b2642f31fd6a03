"""`arena run`: a tournament from a file or from options; started, or gone on with."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Annotated

import trio
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, EXIT_INTERRUPTED, Db, IsolationLevel, Json, Trusted, app
from arena.cli.entrants import as_entrants, by_hash, find_players
from arena.cli.output import count_of, emit_json, say
from arena.cli.progress import Display, Mode
from arena.cli.site import Site, check_jobs, check_places, open_site, open_site_lanes
from arena.config import TournamentConfig, load_tournament, tournament_from_options
from arena.errors import ConfigError
from arena.plan import Plan, allows_smaller, check_plan, match_counts, new_tournament, same_tournament, swiss_rounds
from arena.records import BotHash, BotRef
from arena.sandbox import Level, available_level, require_level
from arena.sandbox.warm import kept_warm, shared_folders
from arena.schedule.swiss import round_shape
from arena.store import matches, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import run as play_all


@app.command(
    epilog="Examples: arena run spring.toml    arena run --bots all --games durak --format round-robin --decks 5"
)
def run(
    file: Annotated[Path | None, typer.Argument(help="A tournament.toml; its keys are the long options.")] = None,
    bots: Annotated[str | None, typer.Option("--bots", help="all, or names and folders (with a /) by commas.")] = None,
    games: Annotated[str | None, typer.Option("--games", help="all, or names by commas.")] = None,
    format: Annotated[str | None, typer.Option("--format", help="swiss or round-robin.")] = None,  # noqa: A002
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of a Swiss, cycles of a round robin.")] = None,
    seats: Annotated[int | None, typer.Option("--seats", help="Bots at a table; 2 by default.")] = None,
    decks: Annotated[int | None, typer.Option("--decks", help="Decks of a match; 1 by default.")] = None,
    seatings: Annotated[str | None, typer.Option("--seatings", help="mirror, rotate or all.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Practice: a repeatable master seed (--trusted).")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Matches at a time; the cores by default.")] = None,
    oversubscribe: Annotated[bool, typer.Option("--oversubscribe", help="Allow more jobs than cores.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="The tournament's name.")] = None,
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Run a tournament, or go on with one that was stopped; ends with the leaderboard."""
    given = {
        "bots": bots,
        "games": games,
        "format": format,
        "rounds": rounds,
        "seats": seats,
        "decks": decks,
        "seatings": seatings,
        "seed": seed,
        "jobs": jobs,
        "name": name,
    }
    config = load_tournament(file, **given) if file else tournament_from_options(**given)
    if config.seed is not None and not trusted:
        where = f"{file}: seed" if file and seed is None else "--seed"
        raise ConfigError(
            f"{where}: a short seed can be guessed, so it is for practice; leave it out, or pass --trusted"
        )
    lanes = check_jobs(config.jobs, oversubscribe=oversubscribe)
    check_places(config.bots, db)
    site = open_site(db, require_level(isolation, trusted=trusted))
    if isolation is None and site.level in (Level.LANDLOCK, Level.NONE):
        say(f"isolation is {site.level} here ({available_level()[1]}); `arena doctor` says more")
    mode: Mode = "events" if as_json else "quiet" if quiet else "bars" if sys.stderr.isatty() else "lines"
    with open_writer(db) as opened:
        found = trio.run(_run, opened, site, config, lanes, mode, trusted)
    if found is None:
        say("stopped; the same command goes on where it stopped")
        raise typer.Exit(EXIT_INTERRUPTED)
    if as_json:
        emit_json("finished/1", {"tournament": found.name})
    else:
        from arena.cli.views import leaderboard

        leaderboard("", db, False)
        where = "" if db == DEFAULT_DB else f" --db {db}"
        say(f"shown again by: arena leaderboard{where}    points: arena standings {found.name}{where}")


async def _run(
    db: Database, site: Site, config: TournamentConfig, lanes: int, mode: Mode, trusted: bool
) -> Tournament | None:
    """Return the finished tournament, or None if it was stopped."""
    now = time.time()
    games = config.given()
    players = await find_players(db, config.bots, list(games), site, now)
    entrants = as_entrants(players, list(games))
    plan = _plan(config, len(entrants))
    check_plan(plan, entrants)
    tournament, resumed = _open_tournament(db, site, config, plan, entrants)
    if mode in ("bars", "lines"):
        word = "goes on" if resumed else "begins"
        unit = "round" if plan.format == "swiss" else "cycle"
        say(
            f"{tournament.name} {word} · {', '.join(_sizes(plan, entrants))} · {plan.format}, "
            f"{count_of(plan.rounds, unit)} · {count_of(len(entrants), 'bot')} · {count_of(lanes, 'lane')} · "
            f"isolation {site.level.value}{' · practice' if tournament.practice else ''}"
        )
        say(f"commitment to the master seed: {tournament.commitment.hex()}")
    if mode == "events":
        emit_json(
            "event/1", {"event": "Commitment", "tournament": tournament.name, "sha256": tournament.commitment.hex()}
        )
    if trusted:
        return await _play(db, site, tournament, by_hash(players), lanes, mode)
    if mode in ("bars", "lines"):
        say("reading what all bots may read into memory, so that they tell each other nothing by it (not if --trusted)")
    async with kept_warm([*shared_folders(), site.bots, site.runtime]) as problem:
        if problem and mode != "events":
            say(f"{problem}, too much to keep in memory: a bot can tell its next leg something by what it reads")
        return await _play(db, site, tournament, by_hash(players), lanes, mode)


async def _play(
    db: Database, site: Site, tournament: Tournament, bots: dict[BotHash, BotRef], lanes: int, mode: Mode
) -> Tournament | None:
    stopping = trio.Event()
    display = Display(mode, tournament.match_count)
    display.start_from(matches.count_played(db, tournament.id))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, stopping, nursery.cancel_scope, display.remark)
        nursery.start_soon(display.keep_showing)
        finished = False
        with display:
            async with open_site_lanes(site, lanes) as pool:
                finished = await play_all(db, tournament, bots, pool, display.report, time.time, stopping)
        nursery.cancel_scope.cancel()
    return tournament if finished else None


async def watch_signals(stopping: trio.Event, scope: trio.CancelScope, remark: Callable[[str], None]) -> None:
    """Finish what is being played at the first SIGINT or SIGTERM, leave at once at the second."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            if stopping.is_set():
                scope.cancel()
            else:
                stopping.set()
                remark("finishing the matches being played; again to stop now")


def _sizes(plan: Plan, entrants: list[Entrant]) -> list[str]:
    """Return the games; with how they sit where not all tables are of the size that was asked for."""
    told = []
    for game in plan.games:
        shape = round_shape(
            sum(game in entrant.games for entrant in entrants), plan.seats, smaller_tables=allows_smaller(plan, game)
        )
        small = f"{count_of(shape.small, 'table')} of {plan.seats - 1}"
        full = f"{count_of(shape.full, 'table')} of {plan.seats} and " if shape.full else ""
        told.append(f"{game} ({full}{small})" if shape.small and plan.format == "swiss" else game)
    return told


def _plan(config: TournamentConfig, entrants: int) -> Plan:
    rounds = config.rounds or (swiss_rounds(entrants, config.seats) if config.format == "swiss" else 1)
    clock = config.clock.limits()
    return Plan(config.format, config.given(), rounds, config.seats, config.decks, config.seatings, clock)


def _open_tournament(
    db: Database, site: Site, config: TournamentConfig, plan: Plan, entrants: list[Entrant]
) -> tuple[Tournament, bool]:
    """Return the tournament to play and whether it was begun before.

    Raises:
        ConfigError: one of that name is finished, or differs; names what differs.
    """
    if config.name is None:
        for stored in tournaments.tournaments(db):
            if stored.finished_at is None and not _differences(db, stored, plan, entrants, site, config.seed):
                return stored, True
        numbers = count(len(tournaments.tournaments(db)) + 1)
        name = next(free for number in numbers if tournaments.find(db, free := f"{plan.format}-{number}") is None)
    else:
        name = config.name
        stored_one = tournaments.find(db, name)
        if stored_one is not None:
            if stored_one.finished_at is not None:
                raise ConfigError(f"tournament {name} is finished; play another under a new --name")
            if differences := _differences(db, stored_one, plan, entrants, site, config.seed):
                raise ConfigError(
                    f"tournament {name} was begun differently: {'; '.join(differences)}; choose another --name"
                )
            return stored_one, True
    total = sum(match_counts(plan, entrants).values())
    made = new_tournament(name, plan, site.level.value, time.time(), total, seed=config.seed)
    with writing(db):
        number = tournaments.create(db, made, entrants)
    return tournaments.get(db, number), False


def _differences(
    db: Database, stored: Tournament, plan: Plan, entrants: list[Entrant], site: Site, seed: int | None
) -> list[str]:
    found = same_tournament(stored, plan, tournaments.entrants(db, stored.id), entrants, seed)
    if stored.isolation != site.level.value:
        found.append(f"isolation was {stored.isolation}, now {site.level.value}")
    return found
