"""`arena compare`: whether a new version of a bot is better than the old one, played until it is known."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import msgspec
import trio
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, EXIT_INTERRUPTED, EXIT_NO, Db, IsolationLevel, Json, Trusted, app
from arena.cli.entrants import by_hash, find_players
from arena.cli.output import count_of, emit_json, emit_pairs, say
from arena.cli.run import run_interruptibly, watch_signals
from arena.cli.scale import Scale, elo_text, signed
from arena.cli.site import Player, Site, check_jobs, check_places, open_site, open_site_lanes
from arena.comparison import NEW, OLD, Comparison, begin, check_comparison, find_comparison
from arena.comparison import run as play_all
from arena.config import parse_game, parse_settings
from arena.errors import ConfigError
from arena.games import GAMES
from arena.plan import Plan
from arena.rating.interval import Interval
from arena.rating.sequential import Hypotheses, Judgement
from arena.records import BotHash, BotRef
from arena.rules import Value
from arena.sandbox import require_level
from arena.sandbox.warm import kept_warm, shared_folders
from arena.schedule.seatings import Mode
from arena.store.database import open_runner
from arena.store.tournaments import Entrant

DECKS = 8
"""Of a match, by default: processes start once for all of them, and few are played in vain after the last one."""
MAX_SETS = 10_000
_DEFAULT = Hypotheses()


class _Asked(msgspec.Struct, frozen=True):
    """What the command line asks for; `game` may be empty."""

    old: str
    new: str
    field: tuple[str, ...]
    game: str
    options: dict[str, Value]
    plan: Plan
    seed: int | None
    again: bool


@app.command(
    epilog="Examples: arena compare greedy ./greedy/ --game durak    arena compare bot@1 bot@2 --seats 4 --field all"
)
def compare(
    old: Annotated[
        str, typer.Argument(help="The bot as it was: a submitted name, NAME@VERSION, or a folder with a /.")
    ],
    new: Annotated[str, typer.Argument(help="The bot that may be better.")],
    game: Annotated[
        str, typer.Option("--game", help="A game or a preset; may be left out if both play one game.")
    ] = "",
    field: Annotated[str, typer.Option("--field", help="Who else is at the table: all, or names by commas.")] = "",
    elo0: Annotated[float, typer.Option("--elo0", help="By H0, NEW is stronger by this.")] = _DEFAULT.elo0,
    elo1: Annotated[float, typer.Option("--elo1", help="By H1, NEW is stronger by this.")] = _DEFAULT.elo1,
    alpha: Annotated[float, typer.Option("--alpha", help="The risk to accept H1 if H0 holds.")] = _DEFAULT.alpha,
    beta: Annotated[float, typer.Option("--beta", help="The risk to accept H0 if H1 holds.")] = _DEFAULT.beta,
    logistic: Annotated[bool, typer.Option("--logistic", help="elo0, elo1 are plain Elo, not normalised.")] = False,
    seats: Annotated[int, typer.Option("--seats", help="Of a table; with 3 and more there is a field.", min=2)] = 2,
    decks: Annotated[int, typer.Option("--decks", help="Of a match; each is a deal set.", min=1)] = DECKS,
    max_sets: Annotated[int, typer.Option("--max-sets", help="End undecided after about so many.", min=1)] = MAX_SETS,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A rule option, as option=value.")] = None,
    seatings: Annotated[Mode, typer.Option("--seatings", help="Who sits where; with a field, in turn.")] = "mirror",
    seed: Annotated[int | None, typer.Option("--seed", help="Practice: repeatable decks (--trusted).", min=0)] = None,
    again: Annotated[bool, typer.Option("--again", help="Play another one, though this one is over.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Matches at a time; the cores by default.")] = None,
    oversubscribe: Annotated[bool, typer.Option("--oversubscribe", help="Allow more jobs than cores.")] = False,
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Play two bots until it is known whether NEW is better; exit code 0 if it is, 1 if it is not or stays open.

    The same command goes on with what was stopped, and shows again what is over. Nothing of it is rated.
    """
    if seed is not None and not trusted:
        raise ConfigError("--seed: a short seed can be guessed, so it is for practice; leave it out, or pass --trusted")
    name, given = parse_game(game) if game else ("", {})
    hypotheses = Hypotheses(elo0, elo1, alpha, beta, logistic)
    plan = Plan("round-robin", {}, -(-max_sets // decks), seats, decks, seatings, hypotheses=hypotheses)
    others = tuple(field.split(",")) if field else ("all",) if seats > 2 else ()
    asked = _Asked(old, new, others, name, given, plan, seed, again)
    lanes = check_jobs(jobs, oversubscribe=oversubscribe)
    check_places([old, new, *others], db)
    site = open_site(db, require_level(isolation, trusted=trusted))
    scale = Scale("events" if as_json else "quiet" if quiet else "bars" if sys.stderr.isatty() else "lines")
    with open_runner(db) as opened:
        done = run_interruptibly(_run, opened, site, asked, settings or [], lanes, scale, trusted)
    if done is None or not done[0].is_over:
        say("stopped; the same command goes on where it stopped")
        raise typer.Exit(EXIT_INTERRUPTED)
    comparison, entrants = done
    if as_json:
        emit_json("compare/1", _document(comparison, entrants))
    else:
        _show(comparison, entrants)
    if comparison.judgement().verdict != "H1":
        raise typer.Exit(EXIT_NO)


async def _run(
    db: Database, site: Site, asked: _Asked, settings: list[str], lanes: int, scale: Scale, trusted: bool
) -> tuple[Comparison, list[Entrant]]:
    players, plan = await _players(db, site, asked, settings)
    (game,) = plan.games
    entrants = [
        Entrant(number, _entrant_name(argument, player), player.ref.hash, (game,))
        for number, (argument, player) in enumerate(players)
    ]
    check_comparison(plan, len(entrants))
    stored = find_comparison(db, plan, entrants, site.level.value, asked.seed)
    resumed = stored is not None and not (asked.again and stored.finished_at is not None)
    tournament = stored if resumed else begin(db, plan, entrants, site.level.value, time.time(), asked.seed)
    assert tournament is not None
    comparison = Comparison(db, tournament)
    scale.start_from(comparison, entrants, lanes, resumed=resumed)
    if tournament.finished_at is not None:
        return comparison, entrants
    bots = by_hash([player for _, player in players])
    if trusted:
        await _play(db, site, comparison, bots, lanes, scale)
        return comparison, entrants
    scale.remark("reading what all bots may read into memory, so that they tell each other nothing by it")
    async with kept_warm([*shared_folders(), site.bots, site.runtime]) as problem:
        if problem:
            scale.remark(f"{problem}, too much to keep in memory: a bot can tell its next leg something by it")
        await _play(db, site, comparison, bots, lanes, scale)
    return comparison, entrants


async def _play(
    db: Database, site: Site, comparison: Comparison, bots: dict[BotHash, BotRef], lanes: int, scale: Scale
) -> None:
    stopping = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch_signals, stopping, nursery.cancel_scope, scale.remark)
        nursery.start_soon(scale.keep_showing)
        with scale:
            async with open_site_lanes(site, lanes) as pool:
                await play_all(db, comparison, bots, pool, scale.report, time.time, stopping)
        nursery.cancel_scope.cancel()


async def _players(
    db: Database, site: Site, asked: _Asked, settings: list[str]
) -> tuple[list[tuple[str, Player]], Plan]:
    """Return NEW, OLD and the field, each with the argument that named it, and the plan with its game.

    Raises:
        ConfigError: one is not found or does not play the game; both are the same; one of the field is one of both.
    """
    if "all" in (asked.old, asked.new):
        raise ConfigError("OLD and NEW are one bot each; `all` can be the --field")
    games = [asked.game] if asked.game else sorted(GAMES)
    old, new = await find_players(db, [asked.old, asked.new], games, site, time.time())
    if old.ref.hash == new.ref.hash:
        raise ConfigError(f"{asked.old} and {asked.new} are the same bot, file by file; there is nothing to compare")
    game = asked.game or _only_game(old, new)
    options = {**asked.options, **parse_settings(game, settings)}
    named = await find_players(db, asked.field, [game], site, time.time())
    both = {old.ref.hash, new.ref.hash}
    if asked.field != ("all",) and (twice := [other.ref.name for other in named if other.ref.hash in both]):
        raise ConfigError(f"--field: {', '.join(twice)} is one of the two that are compared; name others")
    others = {other.ref.hash: other for other in named if other.ref.hash not in both}
    field = [(other.ref.name, others[bot]) for bot, other in sorted(others.items())]
    plan = msgspec.structs.replace(asked.plan, games={game: options}, one_leg=bool(field))
    return [(asked.new, new), (asked.old, old), *field], plan


def _only_game(old: Player, new: Player) -> str:
    shared = sorted({*old.manifest.games} & {*new.manifest.games})
    if len(shared) != 1:
        raise ConfigError(f"--game: both play {', '.join(shared) or 'no game in common'}; name one")
    return shared[0]


def _entrant_name(argument: str, player: Player) -> str:
    """Return a name that tells versions apart where the user did."""
    return argument if "@" in argument and "/" not in argument else player.ref.name


_ANSWERS = {
    "H1": "yes: NEW is stronger by {elo1:+g} {unit} rather than by {elo0:+g} (H1 accepted)",
    "H0": "no: NEW is stronger by {elo0:+g} {unit} rather than by {elo1:+g} (H0 accepted)",
    "": "undecided: neither {elo0:+g} nor {elo1:+g} {unit} is likely enough; a larger --max-sets begins anew",
}


def _show(comparison: Comparison, entrants: list[Entrant]) -> None:
    said, hypotheses = comparison.judgement(), comparison.plan.hypotheses
    assert hypotheses is not None
    unit = "Elo" if hypotheses.logistic else "normalised Elo"
    typer.echo(_ANSWERS[said.verdict].format(elo0=hypotheses.elo0, elo1=hypotheses.elo1, unit=unit))
    seats = count_of(comparison.plan.seats, "seat")
    pairs = [
        ("NEW", _named(entrants[NEW])),
        ("OLD", _named(entrants[OLD])),
        ("game", f"{comparison.game}, {seats}"),
        ("LLR", f"{said.llr:+.2f}, bounds {said.lower:+.2f} and {said.upper:+.2f}"),
        ("Elo", _interval(said.elo)),
        ("normalised", _interval(said.normalised)),
        ("sets", f"{said.sets} of {count_of(comparison.shape.deals, 'deal')}"),
        ("faults", ", ".join(f"{who} {count}" for who, count in _faults(comparison).items())),
    ]
    if field := ", ".join(entrant.name for entrant in entrants[2:]):
        pairs.insert(2, ("field", field))
    emit_pairs(pairs)
    say(f"kept as {comparison.tournament.name}; not rated")


def _named(entrant: Entrant) -> str:
    return f"{entrant.name} ({entrant.hash[:12]})"


def _interval(found: Interval | None) -> str:
    assert found is not None
    if found.low is None or found.high is None:
        return f"{elo_text(found)} (95 %; all sets alike)"
    return f"{elo_text(found)}, 95 % from {signed(found.low)} to {signed(found.high)}"


def _faults(comparison: Comparison) -> dict[str, int]:
    counted = comparison.faults
    found = {"NEW": counted[NEW], "OLD": counted[OLD]}
    return found if not comparison.shape.substituted else {**found, "field": counted.total() - sum(found.values())}


def _document(comparison: Comparison, entrants: list[Entrant]) -> dict[str, object]:
    said: Judgement = comparison.judgement()
    return {
        "play": comparison.tournament.name,
        "game": comparison.game,
        "options": comparison.plan.games[comparison.game],
        "seats": comparison.plan.seats,
        "isolation": comparison.tournament.isolation,
        "practice": comparison.tournament.practice,
        "new": {"name": entrants[NEW].name, "hash": entrants[NEW].hash},
        "old": {"name": entrants[OLD].name, "hash": entrants[OLD].hash},
        "field": [{"name": other.name, "hash": other.hash} for other in entrants[2:]],
        "hypotheses": comparison.plan.hypotheses,
        **msgspec.structs.asdict(said),
        "deals": said.sets * comparison.shape.deals,
        "faults": _faults(comparison),
    }
