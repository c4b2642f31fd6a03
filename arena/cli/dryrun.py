"""`arena run --dry-run`: what a tournament would play, without playing or storing anything."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path

import msgspec
import trio
from sqlite_utils import Database

from arena.bench.generated import GeneratedLanes
from arena.bracket import Seed, seed_document, seeds_of
from arena.bundle import read_bundle
from arena.cli.entrants import as_entrants, plays, submission_of
from arena.cli.output import count_of, emit_json, emit_pairs, emit_table, say
from arena.cli.site import Player, check_place
from arena.config import TournamentConfig, manifest_of, parse_manifest
from arena.errors import ConfigError
from arena.luck import derive
from arena.plan import Cast, Plan, allows_smaller, cycles, new_tournament, round_after, scheduled
from arena.records import BotHash, BotRef, MatchSpec, Round
from arena.schedule.knockout import rounds_of
from arena.schedule.swiss import round_shape
from arena.store import bots
from arena.store.database import open_reader
from arena.store.tournaments import Entrant, Tournament

ROW_BYTES = 230
"""What a stored deal takes beside its record: its columns, its keys and its part of the match (`arena bench size`)."""
_SAMPLES = 10
_SHOWN = 6
_SEEDS = 16


class Course(msgspec.Struct, frozen=True):
    """What a tournament would play of a game.

    Attributes:
        bytes: on disk, about.
        first: the first round; without a seed or an earlier run another one will be drawn.
        seeds: of a knockout; so will be those by lot.
    """

    game: str
    rounds: int
    matches: int
    deals: int
    bytes: int
    first: Round
    seeds: tuple[Seed, ...] = ()


def entrants_of(db: Path, config: TournamentConfig) -> list[Entrant]:
    """Return who would play; bots are read, but neither built nor kept.

    Raises:
        ConfigError: a bot is not found, or plays none of the games.
    """
    games = list(config.given())
    if all("/" in name for name in config.bots):
        players = [_of_folder(name, db) for name in config.bots]
    else:
        with open_reader(db) as opened:
            players = [player for name in config.bots for player in _found(opened, name, db)]
    idle = [player.ref.name for player in players if not plays(player, games)]
    if idle and "all" not in config.bots:
        raise ConfigError(f"{', '.join(idle)}: plays none of {', '.join(games)}")
    return as_entrants([player for player in players if plays(player, games)], games)


def _found(db: Database, name: str, path: Path) -> Iterator[Player]:
    if "/" in name:
        yield _of_folder(name, path)
        return
    for kept in bots.submissions(db) if name == "all" else [submission_of(db, name)]:
        yield Player(parse_manifest(kept.manifest), BotRef(kept.name, kept.hash, "", ()))


def _of_folder(name: str, db: Path) -> Player:
    check_place(Path(name), db.parent)
    bundle = read_bundle(Path(name))
    manifest = manifest_of(bundle, f"{name.rstrip('/')}/bot.toml")
    return Player(manifest, BotRef(manifest.name, bundle.hash, "", ()))


def show(plan: Plan, entrants: Sequence[Entrant], seed: int | None, cast: Cast, *, as_json: bool) -> None:
    """Show rounds, matches, deals, about how many bytes they take, and of each game the seeds and the first pairings.

    Args:
        cast: what would be stored with the stage.
    """
    plan = msgspec.structs.replace(plan, cast=cast)
    made = new_tournament("dry", plan, "none", 0.0, 0, seed=seed)
    courses = [course(plan, made, entrants, game) for game in plan.games]
    names = {entrant.number: entrant.name for entrant in entrants}
    if as_json:
        games = [
            {
                **msgspec.structs.asdict(one),
                "seeds": [seed_document(seed, names) for seed in one.seeds],
                "first": _document(one.first, names),
            }
            for one in courses
        ]
        emit_json("run.dry/1", {"bots": len(entrants), "drawn": seed is None, "games": games})
        return
    title = f"{plan.format}, {count_of(plan.rounds, plan.unit)} · {count_of(len(entrants), 'bot')}"
    rows = [(one.game, f"{one.rounds:,}", f"{one.matches:,}", f"{one.deals:,}", _size(one.bytes)) for one in courses]
    if len(courses) > 1:
        matches, deals, size = (sum(getattr(one, what) for one in courses) for what in ("matches", "deals", "bytes"))
        rows.append(("all", "", f"{matches:,}", f"{deals:,}", _size(size)))
    emit_table(("<game", "rounds", "matches", "deals", "on disk"), rows, title)
    seeded = [(f"{one.game} seeds", _seeds(one.seeds, names)) for one in courses if one.seeds]
    emit_pairs([*seeded, *((f"{one.game} round 1", _pairings(one.first, names)) for one in courses)])
    drawn = "" if seed is not None else "; the pairings are an example: the seed that draws them is drawn at the start"
    say(f"nothing was played or stored{drawn}")


def course(plan: Plan, tournament: Tournament, entrants: Sequence[Entrant], game: str) -> Course:
    """Go through the schedule of a game, one round at a time."""
    numbers = [entrant.number for entrant in entrants if game in entrant.games]
    (stage,) = tournament.stages
    rounds: Iterator[Round]
    shapes: Iterator[dict[int, int]]
    if plan.format == "round-robin":
        rounds = cycles(stage, game, numbers, 0, 1)
        first = next(rounds)
        shapes = ({plan.seats: len(one.tables)} for one in chain([first], rounds))
    else:
        drawn = round_after(stage, game, numbers, [], [])
        assert drawn is not None
        first = drawn
        shapes = _shapes(plan, game, len(numbers), len(first.tables))
    count, tables = 0, dict.fromkeys((plan.seats, plan.seats - 1), 0)
    for of_round in shapes:
        count += 1
        for seats, number in of_round.items():
            tables[seats] += number
    deals = size = 0
    for seats, number in tables.items():
        if number:
            a_match, its_bytes = _sample(plan, tournament, game, seats)
            deals += number * a_match
            size += round(number * a_match * its_bytes)
    seeds = seeds_of(stage, game, entrants) if plan.format == "knockout" else ()
    return Course(game, count, sum(tables.values()), deals, size, first, seeds)


def _shapes(plan: Plan, game: str, players: int, first: int) -> Iterator[dict[int, int]]:
    """Yield how many tables of each size the rounds have, where each is paired once those before it are complete."""
    if plan.format == "knockout":
        yield {2: first}
        for number in reversed(range(rounds_of(players) - 1)):
            yield {2: 1 << number}
        return
    small = 0
    if plan.format == "swiss":
        shape = round_shape(players, plan.seats, smaller_tables=allows_smaller(plan, game))
        first, small = shape.full, shape.small
    yield from repeat({plan.seats: first, plan.seats - 1: small}, plan.rounds)


def _sample(plan: Plan, tournament: Tournament, game: str, seats: int) -> tuple[int, float]:
    """Return the deals of a match, and the bytes of one as a few random play-outs take them."""
    match = scheduled(tournament, tournament.stages[0], game, 1, range(seats))
    decks = tuple(derive(b"dry", "deck", number) for number in range(_SAMPLES))
    players = tuple(BotRef("", BotHash(f"{seat:064}"), "", ()) for seat in range(seats))
    options = plan.games[game]
    spec = MatchSpec(1, game, 1, options, players, decks, match.legs[:1], plan.clock)
    played = trio.run(GeneratedLanes("none").play, spec)
    packed = sum(len(zlib.compress(msgspec.msgpack.encode(deal))) for deal in played.deals)
    return len(match.decks) * len(match.legs), packed / len(played.deals) + ROW_BYTES


def _seeds(seeds: Sequence[Seed], names: dict[int, str]) -> str:
    told = [f"{seed.number} {names[seed.entrant]} ({seed.words()})" for seed in seeds]
    more = [f"and {len(told) - _SEEDS} more"] if len(told) > _SEEDS else []
    return ", ".join([*told[:_SEEDS], *more])


def _pairings(first: Round, names: dict[int, str]) -> str:
    tables = [" - ".join(names[entrant] for entrant in table) for table in first.tables]
    more = [f"and {len(tables) - _SHOWN} more"] if len(tables) > _SHOWN else []
    byes = [f"bye: {', '.join(names[entrant] for entrant in first.byes[:_SHOWN])}"] if first.byes else []
    return "; ".join([*tables[:_SHOWN], *more, *byes])


def _document(first: Round, names: dict[int, str]) -> dict[str, object]:
    tables = [[names[entrant] for entrant in table] for table in first.tables]
    return {"tables": tables, "byes": [names[entrant] for entrant in first.byes]}


def _size(count: float) -> str:
    unit, least = next((unit, least) for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 0.0)) if count >= least)
    shown = count / (least or 1e3)
    return f"about {shown:.{0 if shown >= 10 else 1}f} {unit}"
