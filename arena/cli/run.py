"""`arena run`: a tournament from a file or from options; started, or gone on with."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar, TypeVarTuple

import trio
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, EXIT_INTERRUPTED, Db, IsolationLevel, Json, Trusted, app
from arena.cli.entrants import as_entrants, by_hash, find_players
from arena.cli.ladder import Ladder, open_ladder
from arena.cli.opening import Asked, extension_of, open_ladder_tournament, open_tournament, plan_for
from arena.cli.output import count_of, emit_json, say
from arena.cli.progress import Display, Mode
from arena.cli.site import Player, check_jobs, check_places, open_site, open_site_lanes, recall
from arena.cli.until import Until, sureness
from arena.config import TournamentConfig, load_tournament, tournament_from_options
from arena.errors import ConfigError
from arena.executor import Executor
from arena.extension import cast, total_matches
from arena.plan import Plan, allows_smaller, check_plan, plan_of
from arena.records import BotHash, BotRef
from arena.sandbox import Level, available_level, require_level
from arena.sandbox.warm import kept_warm, shared_folders
from arena.schedule.swiss import round_shape
from arena.store import matches, tournaments
from arena.store.database import open_reader, open_runner
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import Memory
from arena.tournament import run as play_all

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@app.command(
    epilog="Examples: arena run spring.toml    arena run --bots all --games durak --format round-robin --decks 5"
)
def run(
    file: Annotated[Path | None, typer.Argument(help="A tournament.toml; its keys are the long options.")] = None,
    bots: Annotated[str | None, typer.Option("--bots", help="all, or names and folders (with a /) by commas.")] = None,
    games: Annotated[str | None, typer.Option("--games", help="all, or names by commas.")] = None,
    format: Annotated[  # noqa: A002
        str | None, typer.Option("--format", help="swiss, round-robin, gauntlet, knockout; or --until-error.")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of a Swiss, else cycles.")] = None,
    seats: Annotated[int | None, typer.Option("--seats", help="Bots at a table; 2 by default.")] = None,
    decks: Annotated[int | None, typer.Option("--decks", help="Decks of a match; 1 by default.")] = None,
    challengers: Annotated[str | None, typer.Option("--challengers", help="Of a gauntlet: names by commas.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="Of a knockout: the first ones, by commas.")] = None,
    until_error: Annotated[
        int | None, typer.Option("--until-error", help="Go on until every difference is known so well, in Elo.")
    ] = None,
    max_rounds: Annotated[int | None, typer.Option("--max-rounds", help="Of --until-error, at most.")] = None,
    avoid_same_author: Annotated[
        bool, typer.Option("--avoid-same-author", help="A Swiss keeps bots of one author apart.")
    ] = False,
    seatings: Annotated[str | None, typer.Option("--seatings", help="mirror, rotate or all.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Practice: a repeatable master seed (--trusted).")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Matches at a time; the cores by default.")] = None,
    oversubscribe: Annotated[bool, typer.Option("--oversubscribe", help="Allow more jobs than cores.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="The tournament's name.")] = None,
    extend: Annotated[bool, typer.Option("--extend", help="Add rounds, other decks or new bots to one.")] = False,
    forever: Annotated[bool, typer.Option("--forever", help="A round after the other, with whoever is there.")] = False,
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be played.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Run a tournament, or go on with one that was stopped; ends with who won, and the leaderboards.

    Bots may be submitted and results corrected meanwhile.
    """
    given = {
        "bots": bots,
        "games": games,
        "format": format,
        "rounds": rounds,
        "seats": seats,
        "decks": decks,
        "challengers": challengers,
        "seeds": seeds,
        "until_error": until_error,
        "max_rounds": max_rounds,
        "avoid_same_author": avoid_same_author or None,
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
    _check_further(config, extend=extend, forever=forever, max_rounds=max_rounds)
    if dry_run:
        _show_plan(config, db, isolation or available_level()[0], extend=extend, as_json=as_json)
        return
    lanes = check_jobs(config.jobs, oversubscribe=oversubscribe)
    check_places(config.bots, db)
    site = open_site(db, require_level(isolation, trusted=trusted))
    if isolation is None and site.level in (Level.LANDLOCK, Level.NONE):
        say(f"isolation is {site.level} here ({available_level()[1]}); `arena doctor` says more")
    mode: Mode = "events" if as_json else "quiet" if quiet else "bars" if sys.stderr.isatty() else "lines"
    with open_runner(db) as opened:
        found = run_interruptibly(_run, Asked(opened, site, config, lanes, mode, trusted, extend, forever))
    if found is None:
        say("stopped; the same command goes on where it stopped")
        raise typer.Exit(EXIT_INTERRUPTED)
    with open_reader(db) as reader:
        _tell_result(reader, found, db, is_until=config.format == "until-error", as_json=as_json)


def _tell_result(db: Database, found: Tournament, path: Path, *, is_until: bool, as_json: bool) -> None:
    """Tell what a tournament came to, then the leaderboards of its pools, then what tells more."""
    from arena.cli.leaderboard import show_leaderboards
    from arena.cli.result import results_of, show_results

    found = tournaments.get(db, found.id)  # it is finished by now, so the lot is drawn
    results = results_of(db, found)
    if as_json:
        told = {"sureness": sureness(db, found)} if is_until else {"result": [one.document() for one in results]}
        emit_json("finished/1", {"tournament": found.name, **told})
        return
    show_results(found, results)
    show_leaderboards(db, found.id)
    where = "" if path == DEFAULT_DB else f" --db {path}"
    if failed := len(matches.faults(db, tournament=found.id)):
        say(f"{count_of(failed, 'fault')}: arena faults {found.name}{where}")
    # Points mean nothing where bots sit at unequally many tables, chosen for what they tell.
    further = f"who is stronger: arena los{where}" if is_until else f"points: arena standings {found.name}{where}"
    say(f"shown again by: arena leaderboard{where}    {further}")


def _check_further(config: TournamentConfig, *, extend: bool, forever: bool, max_rounds: int | None) -> None:
    if max_rounds is not None and config.format != "until-error":
        raise ConfigError("--max-rounds is for --until-error; other formats take --rounds")
    if extend and forever:
        raise ConfigError("--forever extends a tournament by itself; leave --extend out")
    if (extend or forever) and config.format == "until-error":
        raise ConfigError("--until-error goes on by itself; leave --extend and --forever out")
    if forever and config.format == "knockout":
        raise ConfigError("a knockout ends with its winner, so it is not played --forever")
    if (extend or forever) and config.name is None:
        option = "--forever" if forever else "--extend"
        raise ConfigError(f"{option} needs a --name, by which the tournament is found again")


def _show_plan(config: TournamentConfig, db: Path, level: Level, *, extend: bool, as_json: bool) -> None:
    from arena.cli import dryrun

    if config.format == "until-error":
        raise ConfigError("--until-error ends when its errors are small enough, so --dry-run cannot tell what it takes")
    entrants = dryrun.entrants_of(db, config)
    if extend:
        _show_extension(config, db, level, entrants, as_json=as_json)
        return
    plan = plan_for(config, entrants)
    check_plan(plan, entrants)
    if not db.is_file():
        dryrun.show(plan, entrants, config.seed, cast(None, plan, entrants, level.value), as_json=as_json)
        return
    with open_reader(db) as opened:
        dryrun.show(plan, entrants, config.seed, cast(opened, plan, entrants, level.value), as_json=as_json)
        if config.name is not None:
            _tell_begun(opened, config.name)


def _show_extension(
    config: TournamentConfig, db: Path, level: Level, entrants: list[Entrant], *, as_json: bool
) -> None:
    from arena.cli import dryrun

    with open_reader(db) as opened:
        stored, plan = extension_of(
            opened, config, tournaments.find(opened, config.name or ""), entrants, str(level.value)
        )
        if plan is not None:
            dryrun.show_extension(opened, stored, plan, entrants, config.seed, as_json=as_json)
            return
        if as_json:
            emit_json(
                "run.dry/1", {"bots": len(entrants), "drawn": config.seed is None, "games": [], "extension": None}
            )
        done, total = matches.count_played(opened, stored.id), total_matches(opened, stored)
        say(f"this adds nothing: {stored.name} goes on, and has played {done:,} of its {count_of(total, 'match')}")


def _tell_begun(db: Database, name: str) -> None:
    """Tell that a plan is not that of the rest, if a tournament was begun before."""
    stored = tournaments.find(db, name)
    if stored is None:
        return
    done, total = matches.count_played(db, stored.id), count_of(total_matches(db, stored), "match")
    if stored.finished_at is not None:
        say(f"{name} is finished, with {count_of(done, 'match')}; with --extend, what that adds is told")
    else:
        say(f"{name} was begun before, and has played {done:,} of its {total}; this is all of it")


async def _run(asked: Asked) -> Tournament | None:
    """Return the finished tournament, or None if it was stopped."""
    ladder = await _ladder(asked) if asked.forever else None
    if ladder is None:
        games = list(asked.config.given())
        players = await find_players(asked.db, asked.config.bots, games, asked.site, time.time())
        if asked.config.format == "until-error":
            asked = asked._replace(until=_until(asked, players))
        tournament, resumed = open_tournament(asked, as_entrants(players, games))
    else:
        tournament, players, resumed = await open_ladder_tournament(asked, ladder)
    _announce(asked, tournament, "goes on" if resumed else "begins")
    if asked.trusted:
        return await _play(asked, tournament, players, ladder or asked.until)
    if asked.is_told:
        say("reading what all bots may read into memory, so that they tell each other nothing by it (not if --trusted)")
    async with kept_warm([*shared_folders(), asked.site.bots, asked.site.runtime]) as problem:
        if problem and asked.mode != "events":
            say(f"{problem}, too much to keep in memory: a bot can tell its next leg something by what it reads")
        return await _play(asked, tournament, players, ladder or asked.until)


async def _ladder(asked: Asked) -> Ladder:
    return await open_ladder(asked.db, asked.site, asked.config, partial(_tell, asked), time.time)


def _until(asked: Asked, players: list[Player]) -> Until:
    config = asked.config
    return Until(asked.db, config.until_error, config.max_rounds, config.seed, players, partial(_tell, asked))


def _tell(asked: Asked, text: str) -> None:
    if asked.mode != "quiet":
        say(text)


def _announce(asked: Asked, tournament: Tournament, word: str) -> None:
    """Tell what is played, and the commitments to its master seeds."""
    plan = plan_of(tournament)
    playing = set(tournament.stages[-1].players)
    entrants = [one for one in tournaments.entrants(asked.db, tournament.id) if one.number in playing]
    if asked.is_told:
        until = f"until ±{asked.config.until_error}, {plan.unit} {plan.rounds}"
        length = until if asked.until else f"{plan.format}, {count_of(plan.rounds, plan.unit)}"
        say(
            f"{tournament.name} {word} · {', '.join(_sizes(plan, entrants))} · {length} · "
            f"{count_of(len(entrants), 'bot')} · {count_of(asked.lanes, 'lane')} · "
            f"isolation {asked.site.level.value}{' · practice' if tournament.practice else ''}"
        )
    _tell_commitments(asked, tournament)


def _announce_next(asked: Asked, tournament: Tournament) -> None:
    """Tell which round of a ladder comes next."""
    if asked.is_told:
        plan = plan_of(tournament)
        players = count_of(len(tournament.stages[-1].players), "bot")
        say(f"{tournament.name} · {plan.unit} {plan.rounds} · {players}")
    _tell_commitments(asked, tournament)


def _tell_commitments(asked: Asked, tournament: Tournament) -> None:
    """Tell the commitment of each stage that is not finished."""
    for stage in tournament.stages:
        told = {"tournament": tournament.name, "stage": stage.number, "sha256": stage.commitment.hex()}
        if stage.finished_at is None and asked.is_told:
            say(f"commitment {told['sha256']}")
        if stage.finished_at is None and asked.mode == "events":
            emit_json("event/1", {"event": "Commitment", **told})


async def _play(
    asked: Asked, tournament: Tournament, players: list[Player], source: Ladder | Until | None
) -> Tournament | None:
    stopping = trio.Event()
    shown: list[Display] = []
    memory = Memory()
    finished = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, stopping, nursery.cancel_scope, partial(_remark, shown))
        async with open_site_lanes(asked.site, asked.lanes) as pool:
            play = partial(_play_shown, asked, pool=pool, stopping=stopping, shown=shown, memory=memory)
            finished = await play(tournament, players)
            while finished and source is not None:
                following = await source.extended(tournament, stopping)
                if following is None:  # a ladder ends only if it is to stop
                    finished = isinstance(source, Until)
                    break
                tournament, players = following
                _announce_next(asked, tournament)
                finished = await play(tournament, players, silent=True)
        nursery.cancel_scope.cancel()
    return tournament if finished else None


async def _play_shown(
    asked: Asked,
    tournament: Tournament,
    players: list[Player],
    *,
    pool: Executor,
    stopping: trio.Event,
    shown: list[Display],
    memory: Memory,
    silent: bool = False,
) -> bool:
    """Play what is left of the stages there are, and show it; return False if it was stopped.

    Args:
        silent: do not say again what was said when the run began.
    """
    display = Display(asked.mode, total_matches(asked.db, tournament))
    display.start_from(matches.count_played(asked.db, tournament.id), silent=silent)
    bots = await _bots(asked, tournament, players)
    shown[:] = [display]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(display.keep_showing)
        with display:
            finished = await play_all(asked.db, tournament, bots, pool, display.report, time.time, stopping, memory)
        nursery.cancel_scope.cancel()
    shown.clear()
    return finished


async def _bots(asked: Asked, tournament: Tournament, players: Sequence[Player]) -> dict[BotHash, BotRef]:
    """Return the bots of all stages that are not finished; some may be retired by now, or have a newer version."""
    known = by_hash(players)
    playing = {number for stage in tournament.stages if stage.finished_at is None for number in stage.players}
    for entrant in tournaments.entrants(asked.db, tournament.id):
        if entrant.number in playing and entrant.hash not in known:
            known[entrant.hash] = (await recall(entrant.name, entrant.hash, asked.site)).ref
    return known


def _remark(shown: Sequence[Display], text: str) -> None:
    for display in shown:
        display.remark(text)


def run_interruptibly(main: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T | None:
    """Run; return None if it was interrupted while nobody watched signals, since nothing was being played yet.

    SIGTERM is then the same as Ctrl-C.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return trio.run(main, *args)
    except KeyboardInterrupt:
        return None
    finally:
        signal.signal(signal.SIGTERM, before)


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
