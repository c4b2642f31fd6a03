"""`arena play`: one match here and now; kept for replays, never rated."""

from __future__ import annotations

import time
from typing import Annotated

import trio
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, IsolationLevel, Json, Trusted, app
from arena.cli.bots import explain_fault
from arena.cli.entrants import find_players
from arena.cli.output import emit_json, emit_table, say
from arena.cli.site import Player, Site, open_site, open_site_lanes
from arena.config import parse_game, parse_settings
from arena.errors import ConfigError
from arena.games import GAMES
from arena.plan import Plan, new_tournament, scheduled
from arena.records import MatchRecord, MatchSpec, Round
from arena.rules import complete_options
from arena.sandbox import require_level
from arena.schedule.seatings import Mode
from arena.store import matches, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant


@app.command(epilog="Example: arena play durak ./mybot/ greedy --decks 5")
def play(
    game: Annotated[str, typer.Argument(help="A game, or a preset such as smokestack-junior.")],
    bots: Annotated[list[str], typer.Argument(help="A bot for each seat: a folder if it has a /, else a name.")],
    seed: Annotated[int | None, typer.Option("--seed", help="Makes the decks repeatable.", min=0)] = None,
    decks: Annotated[int, typer.Option("--decks", help="Decks, each played in every seating.", min=1)] = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A rule option, as option=value.")] = None,
    seatings: Annotated[Mode, typer.Option("--seatings", help="Who sits where in the legs.")] = "mirror",
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Play one match between bots and show who won; it is kept for `replay` and `trace`, but never rated."""
    name, given = parse_game(game)
    given = {**given, **parse_settings(name, settings or [])}
    complete_options(GAMES[name], len(bots), given)
    plan = Plan("round-robin", {name: given}, 1, len(bots), decks, seatings)
    site = open_site(db, require_level(isolation, trusted=trusted))
    with open_writer(db) as opened:
        players, record = trio.run(_play, opened, site, name, plan, bots, seed)
    names = [player.ref.name for player in players]
    if as_json:
        emit_json("play/1", {"match": record.id, "game": name, "bots": names, "deals": _deals(record, names)})
        return
    _show(record, names)
    for fault in record.faults:
        say(f"fault {record.id}-{fault.deck}-{fault.leg}, seat {fault.seat}, step {fault.step}: {explain_fault(fault)}")
    say(f"arena replay {record.id}-0-0 shows the first deal, arena trace {record.id}-0-0 --seat 0 what was said")


async def _play(
    db: Database, site: Site, game: str, plan: Plan, bots: list[str], seed: int | None
) -> tuple[list[Player], MatchRecord]:
    now = time.time()
    players = await find_players(db, bots, site, now)
    for player in players:
        if game not in player.manifest.games:
            raise ConfigError(f"{player.ref.name} does not play {game}: its bot.toml names other games")
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
        match = tournaments.get(db, number).first_match
        tournaments.add_round(db, number, game, Round(1, (table,)), [scheduled(plan, made, game, 1, table)], match)
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
    emit_table(("<deal", "<places (points)", "<reason", "actions", "time"), rows)
