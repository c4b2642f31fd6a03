"""`arena play`: one match here and now; kept for replays, never rated."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import trio
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, EXIT_BOT, Db, IsolationLevel, Json, Trusted, app
from arena.cli.bots import explain_fault
from arena.cli.entrants import find_players
from arena.cli.human import HUMAN, check_human, human_spec, play_human
from arena.cli.output import emit_json, emit_table, say
from arena.cli.position import ask_position
from arena.cli.site import Player, Site, check_places, open_site, open_site_lanes
from arena.config import parse_game, parse_settings
from arena.errors import ConfigError, FaultKind
from arena.games import GAMES
from arena.plan import Plan, new_tournament, scheduled
from arena.records import BotRef, MatchRecord, MatchSpec, Round
from arena.rules import complete_options
from arena.sandbox import require_level
from arena.schedule.seatings import Mode
from arena.store import matches, tournaments
from arena.store.database import open_runner, open_writer, writing
from arena.store.tournaments import Entrant


@app.command(
    epilog="Examples: arena play durak ./mybot/ greedy --decks 5    arena play --from 17-3-0 --bot mybot=./mybot/"
)
def play(
    game: Annotated[str, typer.Argument(help="A game, or a preset such as smokestack-junior.")] = "",
    bots: Annotated[
        list[str] | None, typer.Argument(help="By seat: a folder if it has a /, else a name; or human.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Makes the decks repeatable.", min=0)] = None,
    decks: Annotated[int, typer.Option("--decks", help="Decks, each played in every seating.", min=1)] = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A rule option, as option=value.")] = None,
    seatings: Annotated[
        Mode | None, typer.Option("--seatings", help="Who sits where in the legs; mirror, or as named with human.")
    ] = None,
    start: Annotated[str, typer.Option("--from", help="Instead of a match, one position of this stored deal.")] = "",
    step: Annotated[
        int | None, typer.Option("--step", help="After so many steps; by default where it failed.", min=0)
    ] = None,
    bot: Annotated[str, typer.Option("--bot", help="NAME=DIR: whose seat is taken, and by which bot.")] = "",
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Play one match and show who won; it is kept for `replay` and `trace`, but never rated.

    With `human` for one of the bots you play yourself, in the terminal; that is not kept.
    With `--from` only one position of a stored deal is asked of a bot, and nothing is kept.
    """
    if start or step is not None or bot:
        missing = [name for name, value in (("--from", start), ("--bot", bot)) if not value]
        if game or missing:
            what = (
                f"{' and '.join(missing)} is missing"
                if missing
                else f"{game!r} is one too many: the deal tells its game"
            )
            raise ConfigError(f"{what}; a position is asked as: arena play --from DEAL --step N --bot NAME=DIR")
        ask_position(db, start, step, bot, require_level(isolation, trusted=trusted), as_json=as_json)
        return
    if not game or not bots:
        raise ConfigError("name a game and a bot for each seat, e.g. arena play durak ./mybot/ ./other/")
    if HUMAN in bots:
        check_human(bots, as_json=as_json)
    name, given = parse_game(game)
    given = {**given, **parse_settings(name, settings or [])}
    complete_options(GAMES[name], len(bots), given)
    plan = Plan("round-robin", {name: given}, 1, len(bots), decks, seatings or "mirror")
    check_places(bots, db)
    site = open_site(db, require_level(isolation, trusted=trusted))
    if HUMAN in bots:
        _play_human(site, db, name, plan, bots, seed, seatings)
        return
    with open_runner(db) as opened:
        players, record = trio.run(_play, opened, site, name, plan, bots, seed)
    names = _told_apart([player.ref.name for player in players])
    if as_json:
        firsts = _first_places(record, len(names))
        document = {"match": record.id, "game": name, "bots": names, "first_places": firsts}
        emit_json("play/1", {**document, "deals": _deals(record, names)})
    else:
        _show(record, names)
        _show_faults(record, names)
    if any(fault.kind is FaultKind.STARTUP for fault in record.faults):
        raise typer.Exit(EXIT_BOT)


def _play_human(
    site: Site, db: Path, game: str, plan: Plan, bots: list[str], seed: int | None, seatings: Mode | None
) -> None:
    """Play with a person; the database is free for others meanwhile."""
    others = [bot for bot in bots if bot != HUMAN]
    with open_writer(db) as opened:
        players = trio.run(find_players, opened, others, [game], site, time.time())
    refs: list[BotRef | None] = [player.ref for player in players]
    refs.insert(bots.index(HUMAN), None)
    spec = human_spec(game, plan, refs, seed, seatings, site.level.value)
    play_human(site, spec, _told_apart([ref.name for ref in spec.bots]))


def _told_apart(names: list[str]) -> list[str]:
    """Return names of which no two are equal, so that it shows who won."""
    return [f"{name}#{place}" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]


def _first_places(record: MatchRecord, bots: int) -> list[int]:
    firsts = [0] * bots
    for deal in record.deals:
        for seat, place in enumerate(deal.seating):
            firsts[place] += deal.places[seat] == 1
    return firsts


def _show_faults(record: MatchRecord, names: list[str]) -> None:
    """Show each fault, but what a bot wrote to stderr only once, since it mostly fails in the same way."""
    seatings = {(deal.deck, deal.leg): deal.seating for deal in record.deals}
    told: set[bytes] = set()
    for fault in record.faults:
        name = names[seatings[fault.deck, fault.leg][fault.seat]]
        quiet = msgspec.structs.replace(fault, stderr=b"") if fault.stderr in told else fault
        told.add(fault.stderr)
        where = f"{record.id}-{fault.deck}-{fault.leg}, seat {fault.seat}, step {fault.step}"
        say(f"fault {where}, {name}: {explain_fault(quiet)}")
    if record.faults:
        say("arena why last tells more of the last one")


async def _play(
    db: Database, site: Site, game: str, plan: Plan, bots: list[str], seed: int | None
) -> tuple[list[Player], MatchRecord]:
    now = time.time()
    players = await find_players(db, bots, [game], site, now)
    spec = _store(db, site, game, plan, players, seed)
    async with open_site_lanes(site, 1) as lanes:
        record = await lanes.play(spec)
    with writing(db):
        matches.record(db, record)
    return players, record


def _store(db: Database, site: Site, game: str, plan: Plan, players: list[Player], seed: int | None) -> MatchSpec:
    now = time.time()
    with writing(db):
        count = len(tournaments.tournaments(db, "play"))
        made = new_tournament(f"play {count + 1}", plan, site.level.value, now, 1, seed=seed, kind="play")
        entrants = [Entrant(number, player.ref.name, player.ref.hash, (game,)) for number, player in enumerate(players)]
        number = tournaments.create(db, made, entrants)
        table = tuple(range(len(players)))
        match = tournaments.get(db, number).stages[0].first_match
        tournaments.add_round(
            db, number, game, Round(1, (table,)), [scheduled(made, made.stages[0], game, 1, table)], match
        )
        tournaments.finish(db, number, now)
    stored = matches.match(db, match)
    assert stored is not None
    rules = GAMES[game]
    options = complete_options(rules, len(players), plan.games[game])
    bots = tuple(player.ref for player in players)
    return MatchSpec(match, game, rules.version, options, bots, stored.decks, stored.legs, plan.clock)


def _deals(record: MatchRecord, names: list[str]) -> list[dict[str, object]]:
    return [
        {
            "deal": f"{record.id}-{deal.deck}-{deal.leg}",
            "seats": [names[place] for place in deal.seating],
            "places": deal.places,
            "points": deal.points,
            "reason": deal.reason,
            "actions": len(deal.steps),
            "duration_us": deal.duration_us,
        }
        for deal in record.deals
    ]


def _show(record: MatchRecord, names: list[str]) -> None:
    rows = []
    for deal in record.deals:
        by_place = sorted(zip(deal.places, deal.points, (names[place] for place in deal.seating), strict=True))
        ranking = "  ".join(f"{place}. {name} ({points})" for place, points, name in by_place)
        name = f"{record.id}-{deal.deck}-{deal.leg}"
        rows.append((name, ranking, deal.reason, len(deal.steps), f"{deal.duration_us / 1000:.0f} ms"))
    emit_table(("<deal", "<~places (points)", "<reason", "actions", "time"), rows)
    firsts = zip(names, _first_places(record, len(names)), strict=True)
    typer.echo("first places: " + ", ".join(f"{name} {count}" for name, count in firsts))
    say(f"arena replay {record.id}-0-0 shows the first deal, arena trace {record.id}-0-0 --seat 0 what was said")
