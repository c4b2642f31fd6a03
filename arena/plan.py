"""What a tournament plays and what its complete rounds say: everything about it that starts no bot."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import count
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
from arena.schedule.scores import HALF, table_score, tied
from arena.schedule.seatings import Mode, seatings
from arena.schedule.standings import standings
from arena.schedule.swiss import next_round, round_shape
from arena.store import matches, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.tournaments import Entrant, Scheduled, Tournament
from arena.wire import PROTOCOL


class Plan(msgspec.Struct, frozen=True):
    """What is to be played; stored with the tournament.

    Attributes:
        games: for each game the options that differ from its defaults.
        rounds: rounds of a Swiss, cycles of a round robin.
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
    for game, options in plan.games.items():
        players = sum(game in entrant.games for entrant in entrants)
        if players < plan.seats:
            problems.append(f"{game} at tables of {plan.seats} needs {plan.seats} bots that play it, not {players}")
        try:
            complete_options(GAMES[game], plan.seats, options)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("; ".join(problems))


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
    """Return a tournament to be stored, with a fresh master seed or, for practice, one made from a short seed.

    Args:
        match_count: how many matches it will have in all.
    """
    master = secrets.token_bytes(32) if seed is None else practice_master(seed)
    salt = secrets.token_bytes(32) if seed is None else derive(b"practice", "salt", seed)
    spec = msgspec.json.encode(plan).decode()
    commit = commitment(master, salt)
    practice = seed is not None
    return Tournament(
        0, name, kind, spec, practice, isolation, __version__, PROTOCOL, commit, salt, master, now, match_count
    )


def practice_master(seed: int) -> bytes:
    """Return the master seed that a short seed stands for."""
    return derive(b"practice", "master", seed)


def scheduled(plan: Plan, tournament: Tournament, game: str, number: int, table: Sequence[int]) -> Scheduled:
    """Return the match of a table: all tables of a round with the same game and size share their decks."""
    seats = len(table)
    rules = GAMES[game]
    options = complete_options(rules, seats, plan.games[game])
    pool = PoolKey(game, rule_set_id(rules, options), seats, tournament.isolation, rules.outcome_type(options))
    decks = tuple(derive(tournament.master, "deck", game, seats, number, deck) for deck in range(plan.decks))
    return Scheduled(pool, tuple(table), decks, seatings(seats, plan.seatings))


def same_tournament(
    stored: Tournament, plan: Plan, entrants: Sequence[Entrant], bots: Sequence[Entrant], seed: int | None = None
) -> list[str]:
    """Return what differs between a stored tournament and what was asked for now; empty if nothing does.

    Args:
        entrants: of the stored one.
        bots: asked for.
        seed: asked for; None takes whatever the stored one has.
    """
    kept = msgspec.to_builtins(plan_of(stored))
    asked = msgspec.to_builtins(plan)
    differences = [f"{key} was {kept[key]}, now {asked[key]}" for key in kept if kept[key] != asked[key]]
    before, after = ({(bot.name, bot.hash) for bot in side} for side in (entrants, bots))
    differences += [f"{name} ({bot[:12]}) no longer plays" for name, bot in sorted(before - after)]
    differences += [f"{name} ({bot[:12]}) is new" for name, bot in sorted(after - before)]
    if seed is not None and practice_master(seed) != stored.master:
        differences.append(f"its seed was another than {seed}")
    if not stored.master:
        differences.append("it was imported unfinished, without its master seed, so only its own arena can go on")
    return differences


def plan_of(tournament: Tournament) -> Plan:
    """Return what a stored tournament plays."""
    return msgspec.json.decode(tournament.spec, type=Plan)


def final_standings(db: Database, tournament: Tournament, game: str) -> list[Standing]:
    """Return the standings of a game of a tournament after its complete rounds; the lot decides last."""
    history = [played for played, complete in tournaments.rounds(db, tournament.id, game) if complete]
    numbers = [entrant.number for entrant in tournaments.entrants(db, tournament.id, game)]
    key = derive(tournament.master, "lot", game) if tournament.master else None
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


def match_counts(plan: Plan, entrants: Sequence[Entrant]) -> dict[str, int]:
    """Return the number of matches of each game of a whole tournament."""
    counts = {}
    for game in plan.games:
        players = sum(game in entrant.games for entrant in entrants)
        if plan.format == "round-robin":
            counts[game] = plan.rounds * tables_per_cycle(players, plan.seats)
        else:
            shape = round_shape(players, plan.seats, smaller_tables=allows_smaller(plan, game))
            counts[game] = plan.rounds * (shape.full + shape.small)
    return counts


def all_rounds(
    tournament: Tournament, game: str, numbers: Sequence[int], made: Sequence[Correction] = ()
) -> Iterator[Round]:
    """Yield the rounds of a game of a round robin, which follow from the master seed and from who left."""
    plan = plan_of(tournament)
    smaller = allows_smaller(plan, game)
    for due in round_robin(numbers, plan.seats, plan.rounds, _schedule_key(tournament, game)):
        gone = excluded(made, game, due.number)
        yield without(due, gone, plan.seats, smaller_tables=smaller) if gone else due


def round_after(
    tournament: Tournament,
    game: str,
    numbers: Sequence[int],
    history: Sequence[Round],
    scores: Sequence[TableScore],
    made: Sequence[Correction] = (),
) -> Round | None:
    """Return the round of a game of a Swiss that follows on complete rounds and their scores.

    Args:
        made: the tournament's corrections.

    Returns:
        None if too few are left to play.
    """
    plan = plan_of(tournament)
    key, smaller = _schedule_key(tournament, game), allows_smaller(plan, game)
    gone = excluded(made, game, len(history) + 1)
    if len(set(numbers) - gone) < plan.seats - smaller:
        return None
    return next_round(numbers, plan.seats, history, scores, key, smaller_tables=smaller, withdrawn=gone)


def _schedule_key(tournament: Tournament, game: str) -> bytes:
    return derive(tournament.master, "schedule", game)


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
    found = []
    for played, complete in tournaments.rounds(db, tournament, game):
        if not complete or (before is not None and played.number >= before):
            continue
        for number, table in matches.tables(db, tournament, game, played.number):
            score = table_score(played.number, table, matches.deals(db, number))
            found.append(tied(score) if number in void else score)
    return found
