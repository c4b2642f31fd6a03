"""`arena run --dry-run`: what a tournament would play, without playing or storing anything."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import msgspec
import trio
from sqlite_utils import Database

from arena.bench.generated import GeneratedLanes
from arena.bracket import Seed, seed_document, seeds_of
from arena.bundle import read_bundle
from arena.cli.entrants import as_entrants, plays, submission_of
from arena.cli.output import Pair, count_of, emit_json, emit_pairs, emit_table, say
from arena.cli.site import Player, check_place
from arena.config import TournamentConfig, manifest_of, parse_manifest
from arena.errors import ConfigError
from arena.extension import addition, out_of
from arena.luck import derive
from arena.plan import (
    Cast,
    Plan,
    allows_smaller,
    cycles,
    match_counts,
    new_tournament,
    plan_of,
    players,
    round_after,
    scheduled,
    table_scores,
)
from arena.records import BotHash, BotRef, MatchSpec, Round, TableScore
from arena.schedule.knockout import rounds_of
from arena.schedule.swiss import round_shape
from arena.store import bots, tournaments
from arena.store.corrections import Correction, corrections
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
        first: the first round that it adds; without a seed or an earlier run another one will be drawn. None where it
            follows from a round that is not complete.
        seeds: of a knockout; so will be those by lot.
    """

    game: str
    rounds: int
    matches: int
    deals: int
    bytes: int
    first: Round | None
    seeds: tuple[Seed, ...] = ()


class Past(NamedTuple):
    """What an extension of a game follows on.

    Attributes:
        done: as many of the plan's rounds as the stages before have.
        first: the number of the round that follows on them.
        history: the rounds there are.
        is_complete: none of them is still to be played.
    """

    done: int = 0
    first: int = 1
    history: Sequence[Round] = ()
    scores: Sequence[TableScore] = ()
    made: Sequence[Correction] = ()
    is_complete: bool = True


START = Past()
"""What a new tournament follows on."""


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
        _emit(courses, entrants, names, seed)
        return
    _tell(f"{plan.format}, {count_of(plan.rounds, plan.unit)}", courses, entrants, names, [], seed)


def show_extension(
    db: Database, stored: Tournament, plan: Plan, entrants: Sequence[Entrant], seed: int | None, *, as_json: bool
) -> None:
    """Show what an extension adds to a tournament, who is new in it and who has left.

    Args:
        entrants: asked for, whether they are in the tournament, new or have left it.

    Raises:
        ConfigError: it cannot be extended so.
    """
    added = addition(db, stored, plan, entrants, 0.0, seed)
    plan = plan_of(added.stage)
    longer = msgspec.structs.replace(stored, stages=(*stored.stages, added.stage))
    courses = [
        course(plan, longer, added.playing, game, _past(db, stored, game, added.before[game])) for game in plan.games
    ]
    new, out = [one.name for one in added.new], out_of(db, stored)
    left = [one.name for one in tournaments.entrants(db, stored.id) if one.hash in out]
    names = {one.number: one.name for one in (*tournaments.entrants(db, stored.id), *added.new)}
    start = min(added.before.values()) + 1
    if as_json:
        span = {"unit": plan.unit, "from": start, "to": plan.rounds}
        told = {"tournament": stored.name, **span, "new": new, "left": left}
        _emit(courses, added.playing, names, seed, told)
        return
    span_words = f"{plan.unit} {start}" if start == plan.rounds else f"{plan.unit}s {start} to {plan.rounds}"
    people = [(label, ", ".join(found)) for label, found in (("new", new), ("left", left)) if found]
    _tell(f"{stored.name}, {plan.format} · adds {span_words}", courses, added.playing, names, people, seed)


def _past(db: Database, stored: Tournament, game: str, done: int) -> Past:
    rounds = tournaments.rounds(db, stored.id, game)
    history, made = [one for one, _ in rounds], corrections(db, stored.id)
    first = len(history) + 1
    if plan_of(stored).format == "round-robin":  # which plays all of its cycles first
        first, before = 1, 0
        for stage in stored.stages:
            first += len(list(cycles(stage, game, players(db, stored, stage, game), before, 1)))
            before = plan_of(stage).rounds
    scores = table_scores(db, stored.id, game)
    return Past(done, first, history, scores, made, all(complete for _, complete in rounds))


def _emit(
    courses: Sequence[Course],
    entrants: Sequence[Entrant],
    names: dict[int, str],
    seed: int | None,
    extension: dict[str, object] | None = None,
) -> None:
    games = [
        {
            **msgspec.structs.asdict(one),
            "seeds": [seed_document(seed, names) for seed in one.seeds],
            "first": one.first and _document(one.first, names),
        }
        for one in courses
    ]
    told = {"bots": len(entrants), "drawn": seed is None, "games": games}
    emit_json("run.dry/1", {**told, "extension": extension})


def _tell(
    title: str,
    courses: Sequence[Course],
    entrants: Sequence[Entrant],
    names: dict[int, str],
    people: Sequence[Pair],
    seed: int | None,
) -> None:
    rows = [(one.game, f"{one.rounds:,}", f"{one.matches:,}", f"{one.deals:,}", _size(one.bytes)) for one in courses]
    if len(courses) > 1:
        matches, deals, size = (sum(getattr(one, what) for one in courses) for what in ("matches", "deals", "bytes"))
        rows.append(("all", "", f"{matches:,}", f"{deals:,}", _size(size)))
    emit_table(("<game", "rounds", "matches", "deals", "on disk"), rows, f"{title} · {count_of(len(entrants), 'bot')}")
    seeded = [(f"{one.game} seeds", _seeds(one.seeds, names)) for one in courses if one.seeds]
    paired = [(f"{one.game} round {one.first.number}", _pairings(one.first, names)) for one in courses if one.first]
    emit_pairs([*people, *seeded, *paired])
    for one in courses:
        if one.first is None:
            say(f"{one.game}: what it adds is paired once the rounds before are complete")
    drawn = "" if seed is not None else "; the pairings are an example: the seed that draws them is drawn at the start"
    say(f"nothing was played or stored{drawn if paired else ''}")


def course(plan: Plan, tournament: Tournament, entrants: Sequence[Entrant], game: str, past: Past = START) -> Course:
    """Go through the schedule of a game in the last stage, one round at a time."""
    numbers = [entrant.number for entrant in entrants if game in entrant.games]
    stage = tournament.stages[-1]
    rounds: Iterator[Round]
    shapes: Iterator[dict[int, int]]
    first: Round | None
    if plan.format == "round-robin":
        rounds = cycles(stage, game, numbers, past.done, past.first)
        first = next(rounds)
        shapes = ({plan.seats: len(one.tables)} for one in chain([first], rounds))
    else:
        first = round_after(stage, game, numbers, past.history, past.scores, past.made) if past.is_complete else None
        shapes = _shapes(plan, game, entrants, plan.rounds - past.done)
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


def _shapes(plan: Plan, game: str, entrants: Sequence[Entrant], rounds: int) -> Iterator[dict[int, int]]:
    """Yield how many tables of each size the rounds have, where each is paired once those before it are complete."""
    players = sum(game in entrant.games for entrant in entrants)
    if plan.format == "knockout":
        left = players
        for number in reversed(range(rounds_of(players))):
            yield {2: left - (1 << number)}
            left = 1 << number
        return
    if plan.format == "swiss":
        shape = round_shape(players, plan.seats, smaller_tables=allows_smaller(plan, game))
        yield from repeat({plan.seats: shape.full, plan.seats - 1: shape.small}, rounds)
        return
    a_cycle = match_counts(msgspec.structs.replace(plan, rounds=1), entrants)[game]
    yield from repeat({plan.seats: a_cycle}, rounds)


def _sample(plan: Plan, tournament: Tournament, game: str, seats: int) -> tuple[int, float]:
    """Return the deals of a match, and the bytes of one as a few random play-outs take them."""
    match = scheduled(tournament, tournament.stages[-1], game, 1, range(seats))
    decks = tuple(derive(b"dry", "deck", number) for number in range(_SAMPLES))
    sitting = tuple(BotRef("", BotHash(f"{seat:064}"), "", ()) for seat in range(seats))
    options = plan.games[game]
    spec = MatchSpec(1, game, 1, options, sitting, decks, match.legs[:1], plan.clock)
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
