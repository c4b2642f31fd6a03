"""What a tournament plays and what its complete rounds say: everything about it that starts no bot."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Literal

import msgspec
from sqlite_utils import Database

from arena import __version__
from arena.errors import ConfigError
from arena.games import GAMES
from arena.luck import commitment, derive
from arena.rating.sequential import Hypotheses
from arena.records import Clock, PoolKey, Round, Standing, TableScore
from arena.rules import Value, complete_options, rule_set_id
from arena.schedule.roundrobin import round_robin, tables_per_cycle, without
from arena.schedule.scores import HALF, tied
from arena.schedule.seatings import Mode, seatings
from arena.schedule.standings import standings
from arena.schedule.swiss import next_round, round_shape
from arena.store import tallies, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.tournaments import Entrant, Scheduled, Stage, Tournament
from arena.wire import PROTOCOL


class Plan(msgspec.Struct, frozen=True):
    """What is to be played; stored with each stage of the tournament.

    Attributes:
        games: for each game the options that differ from its defaults.
        rounds: rounds of a Swiss, cycles of a round robin; those of earlier stages among them.
        seats: at a table.
        decks: of a match.
        hypotheses: what a comparison of two bots tests; None for everything else.
    """

    format: Literal["swiss", "round-robin"]
    games: dict[str, dict[str, Value]]
    rounds: int
    seats: int = 2
    decks: int = 1
    seatings: Mode = "mirror"
    clock: Clock = Clock()
    hypotheses: Hypotheses | None = None


def check_plan(plan: Plan, entrants: Sequence[Entrant]) -> None:
    """Raise ConfigError if the plan cannot be played by these entrants; names every problem."""
    problems = [f"{entrant.name} plays none of {', '.join(plan.games)}" for entrant in entrants if not entrant.games]
    problems += too_few(plan, entrants)
    for game, options in plan.games.items():
        try:
            complete_options(GAMES[game], plan.seats, options)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))


def too_few(plan: Plan, entrants: Sequence[Entrant]) -> list[str]:
    """Return which games these entrants cannot fill a table of."""
    players = {game: sum(game in entrant.games for entrant in entrants) for game in plan.games}
    return [
        f"{game} at tables of {plan.seats} needs {plan.seats} bots that play it, not {count}"
        for game, count in players.items()
        if count < plan.seats
    ]


def swiss_rounds(entrants: int, seats: int) -> int:
    """Return the default number of rounds: enough to find one winner among so many, and two to sort the others."""
    base = max(seats, 2)
    return 2 + next(n for n in count(1) if base**n >= entrants)


def new_tournament(
    name: str,
    plan: Plan,
    isolation: str,
    now: float,
    match_count: int,
    *,
    seed: int | None = None,
    kind: str = "tournament",
) -> Tournament:
    """Return a tournament of one stage to be stored, as `new_stage` makes it.

    Args:
        match_count: how many matches it will have in all.
    """
    stage = new_stage(1, plan, now, match_count, seed=seed)
    return Tournament(0, name, kind, isolation, __version__, PROTOCOL, now, (stage,))


def new_stage(number: int, plan: Plan, now: float, match_count: int, *, seed: int | None = None) -> Stage:
    """Return a stage to be stored, with a fresh master seed or, for practice, one made from a short seed."""
    master = secrets.token_bytes(32) if seed is None else practice_master(seed, number)
    salt = secrets.token_bytes(32) if seed is None else derive(b"practice", "salt", seed, *_later(number))
    spec = msgspec.json.encode(plan).decode()
    return Stage(number, spec, seed is not None, commitment(master, salt), salt, master, now, match_count)


def practice_master(seed: int, stage: int = 1) -> bytes:
    """Return the master seed of a stage that a short seed stands for."""
    return derive(b"practice", "master", seed, *_later(stage))


def _later(stage: int) -> tuple[int, ...]:
    return (stage,) if stage > 1 else ()


def scheduled(tournament: Tournament, stage: Stage, game: str, number: int, table: Sequence[int]) -> Scheduled:
    """Return the match of a table: all tables of a round with the same game and size share their decks."""
    plan, seats = plan_of(stage), len(table)
    rules = GAMES[game]
    options = complete_options(rules, seats, plan.games[game])
    pool = PoolKey(game, rule_set_id(rules, options), seats, tournament.isolation, rules.outcome_type(options))
    decks = tuple(derive(stage.master, "deck", game, seats, number, deck) for deck in range(plan.decks))
    return Scheduled(pool, tuple(table), decks, seatings(seats, plan.seatings))


def plan_of(what: Tournament | Stage) -> Plan:
    """Return what a stage plays, or a tournament in its last stage; an extension changes only rounds and decks."""
    stage = what.stages[-1] if isinstance(what, Tournament) else what
    return msgspec.json.decode(stage.spec, type=Plan)


def final_standings(db: Database, tournament: Tournament, game: str) -> list[Standing]:
    """Return the standings of a game of a tournament after its complete rounds; the lot decides last."""
    history = [played for played, complete in tournaments.rounds(db, tournament.id, game) if complete]
    numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
    last = tournament.stages[tournaments.round_stages(db, tournament.id, game)[len(history) - 1] - 1 if history else 0]
    key = derive(last.master, "lot", game) if last.master else None
    # In a round robin everybody sits out equally often, so a bye is worth nothing; in a Swiss it is half a round.
    bye = Fraction(0) if plan_of(tournament).format == "round-robin" else HALF
    lines = standings(numbers, history, table_scores(db, tournament.id, game), bye_score=bye, key=key)
    return _marked(lines, corrections(db, tournament.id))


def _marked(lines: Sequence[Standing], made: Sequence[Correction]) -> list[Standing]:
    """Return standings with those marked that are out, the disqualified below all others."""
    out = {one.kind: {other.entrant for other in made if other.kind == one.kind} for one in made}
    disqualified, withdrawn = out.get("disqualify", set()), out.get("withdraw", set())
    left = [line for line in lines if line.entrant not in disqualified]
    ranked = [*left, *(line for line in lines if line.entrant in disqualified)]
    marked = []
    for index, line in enumerate(ranked):
        if line.entrant in disqualified:
            marked.append(msgspec.structs.replace(line, place=len(left) + 1, mark="disqualified"))
            continue
        shares = index > 0 and ranked[index - 1].place == line.place
        place = marked[-1].place if shares else index + 1
        marked.append(msgspec.structs.replace(line, place=place, mark="withdrawn" if line.entrant in withdrawn else ""))
    return marked


def excluded(made: Sequence[Correction], game: str, number: int) -> set[int]:
    """Return who was disqualified or withdrawn before a round of a game was scheduled."""
    return {one.entrant for one in made if one.entrant is not None and one.rounds.get(game, 0) < number}


def match_counts(
    plan: Plan, entrants: Sequence[Entrant], before: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """Return the number of matches of each game of a stage.

    Args:
        entrants: those that play in it.
        before: by game, as many of the plan's rounds as earlier stages have.
    """
    counts = {}
    for game in plan.games:
        players = sum(game in entrant.games for entrant in entrants)
        rounds = plan.rounds - before.get(game, 0)
        if plan.format == "round-robin":
            counts[game] = rounds * tables_per_cycle(players, plan.seats)
        else:
            shape = round_shape(players, plan.seats, smaller_tables=allows_smaller(plan, game))
            counts[game] = rounds * (shape.full + shape.small)
    return counts


def players(db: Database, tournament: Tournament, stage: Stage, game: str) -> list[int]:
    """Return the numbers of the entrants that play a game in a stage."""
    return [one.number for one in tournaments.entrants(db, tournament.id, game) if one.number in stage.players]


def rounds_before(db: Database, tournament: Tournament, stage: int) -> dict[str, int]:
    """Return for each game how many rounds of a Swiss, or cycles of a round robin, the stages before one have."""
    plan = plan_of(tournament)
    if plan.format == "round-robin":
        return dict.fromkeys(plan.games, plan_of(tournament.stages[stage - 2]).rounds if stage > 1 else 0)
    return {
        game: sum(number < stage for number in tournaments.round_stages(db, tournament.id, game)) for game in plan.games
    }


def is_cut(tournament: Tournament, stage: Stage) -> bool:
    """Tell whether a stage ends with the rounds it has: a Swiss is extended from the next round on."""
    return stage.number < len(tournament.stages) and plan_of(stage).format == "swiss"


def cycles(stage: Stage, game: str, numbers: Sequence[int], done: int, first: int) -> Iterator[Round]:
    """Yield the rounds of a game in a stage of a round robin, as if nobody left; they follow from the master seed.

    Args:
        numbers: who plays in it.
        done: the cycles of the stages before.
        first: the number of the first round.
    """
    plan = plan_of(stage)
    key = derive(stage.master, "schedule", game)
    for due in round_robin(numbers, plan.seats, plan.rounds - done, key):
        yield msgspec.structs.replace(due, number=due.number + first - 1)


def without_excluded(stage: Stage, game: str, due: Round, made: Sequence[Correction]) -> Round:
    """Return a round of a round robin without those that left before it was scheduled."""
    plan, gone = plan_of(stage), excluded(made, game, due.number)
    return without(due, gone, plan.seats, smaller_tables=allows_smaller(plan, game)) if gone else due


def round_after(
    stage: Stage,
    game: str,
    numbers: Sequence[int],
    history: Sequence[Round],
    scores: Sequence[TableScore],
    made: Sequence[Correction] = (),
) -> Round | None:
    """Return the round of a game of a Swiss that follows on complete rounds and their scores.

    Args:
        numbers: who plays in the stage.
        history: the rounds of all stages.
        made: the tournament's corrections.

    Returns:
        None if too few are left to play.
    """
    plan = plan_of(stage)
    key, smaller = derive(stage.master, "schedule", game), allows_smaller(plan, game)
    gone = excluded(made, game, len(history) + 1)
    if len(set(numbers) - gone) < plan.seats - smaller:
        return None
    return next_round(numbers, plan.seats, history, scores, key, smaller_tables=smaller, withdrawn=gone)


def allows_smaller(plan: Plan, game: str) -> bool:
    """Tell whether tables of one seat less may stand in for byes."""
    return plan.seats > 2 and plan.seats - 1 in GAMES[game].seats


def table_scores(db: Database, tournament: int, game: str, before: int | None = None) -> list[TableScore]:
    """Return what the matches of all complete rounds say about their tables; a void one says that all tied.

    Args:
        before: as it was known when the round of this number was scheduled; by default as it is now.
    """
    made = corrections(db, tournament)
    void = {one.match for one in made if before is None or one.rounds.get(game, 0) < before}
    return [
        tied(score) if number in void else score
        for number, score in tallies.scores(db, tournament, game)
        if before is None or score.round < before
    ]
