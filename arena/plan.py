"""What a tournament plays and what its complete rounds say: everything about it that starts no bot."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec
from sqlite_utils import Database

from arena import __version__
from arena.errors import ConfigError
from arena.games import GAMES
from arena.luck import Stream, commitment, derive
from arena.rating.sequential import Hypotheses
from arena.records import TIEBREAKS, Clock, PoolKey, Round, Standing, TableScore
from arena.rules import Value, complete_options, rule_set_id
from arena.schedule import gauntlet
from arena.schedule.gauntlet import gauntlet_round
from arena.schedule.knockout import by_survival, knockout_round, rounds_of
from arena.schedule.roundrobin import round_robin, tables_per_cycle, without
from arena.schedule.scores import HALF, tied
from arena.schedule.seatings import Mode, seatings
from arena.schedule.standings import decided_by, standings
from arena.schedule.swiss import next_round, round_shape, swiss_rounds
from arena.store import tallies, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.tournaments import Entrant, Scheduled, Stage, Tournament
from arena.wire import PROTOCOL

Format: TypeAlias = Literal["swiss", "round-robin", "gauntlet", "knockout", "until-error"]
"""How a tournament pairs; `until-error` goes on, a round a stage, until all differences are known well enough."""


class Cast(msgspec.Struct, frozen=True):
    """What a schedule is told of entrants, by their numbers; found once, when a stage is stored.

    Attributes:
        apart: groups of those who should not meet.
        challengers: those who meet the others in a gauntlet.
        seeds: by game, the first seeds of a knockout, the best first: those that were given, then those rated.
        elo: by game, of those that were rated, in the same order.
        drawn: by game, the seeds that follow by lot; where a game is missing, from the master seed.
        tables: by game, the tables of the one round of a stage that goes on until errors are small enough.
    """

    apart: tuple[tuple[int, ...], ...] = ()
    challengers: tuple[int, ...] = ()
    seeds: dict[str, tuple[int, ...]] = {}
    elo: dict[str, tuple[float, ...]] = {}
    drawn: dict[str, tuple[int, ...]] = {}
    tables: dict[str, tuple[tuple[int, ...], ...]] = {}


class Plan(msgspec.Struct, frozen=True):
    """What is to be played; stored with each stage of the tournament.

    Attributes:
        games: for each game the options that differ from its defaults.
        rounds: rounds, or cycles of a round robin or a gauntlet; those of earlier stages among them.
        seats: at a table.
        decks: of a match.
        one_leg: a match has one leg; the seatings of a table come in turn, another one each round.
        avoid_same_author: a Swiss keeps bots of one author apart.
        challengers: names of a gauntlet's.
        seeds: names of a knockout's first seeds, the best first.
        cast: what follows for the entrants of the stage.
        tiebreaks: what decides among equal points, the first first.
        hypotheses: what a comparison of two bots tests; None for everything else.
    """

    format: Format
    games: dict[str, dict[str, Value]]
    rounds: int
    seats: int = 2
    decks: int = 1
    seatings: Mode = "mirror"
    clock: Clock = Clock()
    hypotheses: Hypotheses | None = None
    avoid_same_author: bool = False
    challengers: tuple[str, ...] = ()
    cast: Cast = Cast()
    tiebreaks: tuple[str, ...] = TIEBREAKS
    seeds: tuple[str, ...] = ()
    one_leg: bool = False

    def __post_init__(self) -> None:
        known = tuple(name for name in self.tiebreaks if name != "rating")  # older plans name it; it never had a value
        msgspec.structs.force_setattr(self, "tiebreaks", known)

    @property
    def unit(self) -> str:
        """What `rounds` counts."""
        return "cycle" if self.format in ("round-robin", "gauntlet") else "round"


def check_plan(plan: Plan, entrants: Sequence[Entrant]) -> None:
    """Raise ConfigError if the plan cannot be played by these entrants; names every problem."""
    problems = [f"{entrant.name} plays none of {', '.join(plan.games)}" for entrant in entrants if not entrant.games]
    problems += too_few(plan, entrants)
    known = {base_name(entrant) for entrant in entrants}
    for what, names in (("challenger", plan.challengers), ("seed", plan.seeds)):
        unknown = [name for name in names if name not in known]
        problems += [f"{what} {name} is not among the bots, which are {', '.join(sorted(known))}" for name in unknown]
    for game, options in plan.games.items():
        try:
            complete_options(GAMES[game], plan.seats, options)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))


def too_few(plan: Plan, entrants: Sequence[Entrant]) -> list[str]:
    """Return which games these entrants cannot fill a table of."""
    problems = []
    for game in plan.games:
        playing = [entrant for entrant in entrants if game in entrant.games]
        if len(playing) < plan.seats:
            problems.append(
                f"{game} at tables of {plan.seats} needs {plan.seats} bots that play it, not {len(playing)}"
            )
        elif plan.format == "gauntlet":
            field = sum(base_name(entrant) not in plan.challengers for entrant in playing)
            if not plan.seats - 1 <= field < len(playing):
                problems.append(
                    f"a gauntlet of {game} at tables of {plan.seats} needs at least 1 challenger and {plan.seats - 1} "
                    f"of the others; challengers that play it: {len(playing) - field}, others: {field}"
                )
    return problems


def base_name(entrant: Entrant) -> str:
    """Return the name of an entrant without its version."""
    return entrant.name.partition("@")[0]


def default_rounds(plan_format: Format, entrants: Sequence[Entrant], games: Collection[str], seats: int) -> int:
    """Return how many rounds or cycles are played if nobody says so."""
    if plan_format == "swiss":
        return swiss_rounds(len(entrants), seats)
    if plan_format == "knockout":
        return max(1, rounds_of(max(sum(game in one.games for one in entrants) for game in games)))
    return 1


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
    """Return a stage to be stored, with a fresh master seed or, for practice, one made from a short seed.

    Args:
        plan: those who are to be drawn in any order.
    """
    master = secrets.token_bytes(32) if seed is None else practice_master(seed, number)
    salt = secrets.token_bytes(32) if seed is None else derive(b"practice", "salt", seed, *_later(number))
    drawn = {game: tuple(lots(master, game, rest)) for game, rest in plan.cast.drawn.items()}
    plan = msgspec.structs.replace(plan, cast=msgspec.structs.replace(plan.cast, drawn=drawn))
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
    pool = pool_key(plan, game, seats, tournament.isolation)
    decks = tuple(derive(stage.master, "deck", game, seats, number, deck) for deck in range(plan.decks))
    legs = seatings(seats, plan.seatings)
    if plan.one_leg:
        legs = (legs[(number - 1) % len(legs)],)
    return Scheduled(pool, tuple(table), decks, legs)


def pool_key(plan: Plan, game: str, seats: int, isolation: str) -> PoolKey:
    """Return the pool that the matches of a game at tables of a size belong to."""
    rules = GAMES[game]
    options = complete_options(rules, seats, plan.games[game])
    return PoolKey(game, rule_set_id(rules, options), seats, isolation, rules.outcome_type(options))


def plan_of(what: Tournament | Stage) -> Plan:
    """Return what a stage plays, or a tournament in its last stage; an extension changes only rounds and decks."""
    stage = what.stages[-1] if isinstance(what, Tournament) else what
    return msgspec.json.decode(stage.spec, type=Plan)


def challengers_of(tournament: Tournament) -> frozenset[int]:
    """Return the numbers of the challengers of a gauntlet, in any of its stages; nobody's of other formats."""
    return frozenset(number for stage in tournament.stages for number in plan_of(stage).cast.challengers)


def final_standings(db: Database, tournament: Tournament, game: str, after: int | None = None) -> list[Standing]:
    """Return the standings of a game of a tournament after its complete rounds; the lot decides last.

    Args:
        after: the number of a complete round, to have them as they were when the next one was scheduled.
    """
    stored = tournaments.rounds(db, tournament.id, game)
    history = [played for played, complete in stored if complete and (after is None or played.number <= after)]
    numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
    last = tournament.stages[tournaments.round_stages(db, tournament.id, game)[len(history) - 1] - 1 if history else 0]
    # Before its end nobody elsewhere can draw the lot, and all copies of a tournament have the same standings.
    key = derive(last.master, "lot", game) if last.finished_at is not None else None
    plan, before = plan_of(tournament), None if after is None else after + 1
    scores = table_scores(db, tournament.id, game, before)
    # Elsewhere everybody sits out equally often, or goes on for it, so a bye is worth nothing; in a Swiss half a round.
    bye = HALF if plan.format == "swiss" else Fraction(0)
    lines = standings(numbers, history, scores, bye_score=bye, key=key, order=plan.tiebreaks)
    made = [one for one in corrections(db, tournament.id) if before is None or one.rounds.get(game, 0) < before]
    if plan.format == "knockout":
        gone = list(dict.fromkeys(one.entrant for one in made if one.entrant is not None))
        lines = by_survival(lines, seeding_of(tournament.stages[0], game, numbers), history, scores, gone)
    return _marked(lines, made)


def deciding(plan: Plan, lines: Sequence[Standing]) -> list[str | None]:
    """Return what puts each line of standings below the one before; None in a knockout, whose bracket tells it."""
    return [None] * len(lines) if plan.format == "knockout" else decided_by(lines, plan.tiebreaks)


def seeding_of(stage: Stage, game: str, numbers: Sequence[int]) -> list[int]:
    """Return the seeds of a knockout, the best first: given, by rating, then by lot.

    Args:
        numbers: who plays the game in it.
    """
    cast = plan_of(stage).cast
    first = [number for number in cast.seeds.get(game, ()) if number in numbers]
    rest = cast.drawn[game] if game in cast.drawn else lots(stage.master, game, {*numbers} - {*first})
    return [*first, *rest]


def lots(master: bytes, game: str, numbers: Collection[int]) -> list[int]:
    """Return those who are seeds of a knockout by lot alone, in the order in which they are drawn."""
    return Stream(derive(master, "schedule", game), "knockout").shuffled(sorted(numbers))


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
        elif plan.format == "gauntlet":
            coming = sum(game in one.games and base_name(one) in plan.challengers for one in entrants)
            counts[game] = rounds * gauntlet.tables_per_cycle(players, coming, plan.seats)
        elif plan.format == "knockout":
            counts[game] = players - 1
        elif plan.format == "until-error":
            counts[game] = len(plan.cast.tables.get(game, ()))
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
    """Tell whether a stage ends with the rounds it has: but for a round robin all are extended from the next one on."""
    return stage.number < len(tournament.stages) and plan_of(stage).format != "round-robin"


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
    """Return the round of a game that follows on complete rounds and their scores, in any format but a round robin.

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
    if plan.format == "knockout":
        return knockout_round(seeding_of(stage, game, numbers), history, scores, gone)
    if plan.format == "until-error":
        told = Round(len(history) + 1, plan.cast.tables.get(game, ()))
        left = msgspec.structs.replace(without(told, gone, plan.seats), byes=())  # nobody has a place to miss
        return left if left.tables else None
    if plan.format == "gauntlet":
        return gauntlet_round({*numbers} - gone, plan.cast.challengers, plan.seats, history, key)
    if len(set(numbers) - gone) < plan.seats - smaller:
        return None
    apart = plan.cast.apart
    return next_round(numbers, plan.seats, history, scores, key, smaller_tables=smaller, withdrawn=gone, apart=apart)


def allows_smaller(plan: Plan, game: str) -> bool:
    """Tell whether tables of one seat less may stand in for byes."""
    return plan.seats > 2 and plan.seats - 1 in GAMES[game].seats


def table_scores(db: Database, tournament: int, game: str, before: int | None = None) -> list[TableScore]:
    """Return what the matches of all complete rounds say about their tables; a void one says that all tied.

    Args:
        before: as it was known when the round of this number was scheduled; by default as it is now.
    """
    every = [*tallies.scores(db, tournament, game)]
    return scores_as_of(every, corrections(db, tournament), game, before)


def scores_as_of(
    every: Iterable[tuple[int, TableScore]], made: Sequence[Correction], game: str, before: int | None = None
) -> list[TableScore]:
    """Return scores by what was corrected when a round was scheduled, as `table_scores` does.

    Args:
        every: matches with what they come to, as nothing was corrected.
    """
    void = {one.match for one in made if before is None or one.rounds.get(game, 0) < before}
    return [
        tied(score) if number in void else score for number, score in every if before is None or score.round < before
    ]
