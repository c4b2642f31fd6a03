"""What must hold of a line that types alone cannot say, so that nothing stored can confuse a command that reads it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

import msgspec

from arena.config.name import is_name
from arena.errors import FAULT_DETAILS, ConfigError
from arena.export import lines
from arena.games import GAMES
from arena.importing.reading import Lines
from arena.luck import commitment
from arena.plan import Plan, plan_of, seeding_of
from arena.records import Clock
from arena.rules import OutcomeType, complete_options, parse_rule_set_id, rule_set_id
from arena.store.tournaments import Entrant, Stage, Tournament

_PLAY = re.compile(r"play [1-9][0-9]{0,8}")
_VERSION = re.compile(r"@[1-9][0-9]{0,8}\Z")
_MAX_ROUNDS = 10_000
_MAX_DECKS = 50_000
_MAX_SEATS = 11
_MAX_MS = 1 << 40


def check_tournament(read: Lines, line: lines.Tournament) -> Tournament:
    """Return a tournament to be stored, without its stages.

    Raises:
        ConfigError: it cannot be one.
    """
    named = _PLAY.fullmatch(line.name) if line.kind == "play" else is_name(line.name)
    read.check(bool(named), f"{line.name!r} is no name of a {line.kind}")
    return Tournament(0, line.name, line.kind, line.isolation, line.engine, line.protocol, line.created_at, ())


def check_stage(read: Lines, line: lines.Stage, before: Tournament) -> Stage:
    """Return a stage to be stored.

    Args:
        before: its tournament with the stages before it.

    Raises:
        ConfigError: it cannot be one.
    """
    _check_plan(read, line.plan)
    for last in before.stages[-1:]:
        plan = plan_of(last)
        alike = msgspec.structs.replace(line.plan, rounds=plan.rounds, decks=plan.decks, cast=plan.cast) == plan
        read.check(alike and line.plan.rounds >= plan.rounds, f"it is no extension of stage {last.number}")
        early = last.finished_at is None and line.finished_at is not None
        read.check(not early, f"it is finished before stage {last.number}")
    read.check(len({*line.players}) == len(line.players) > 0, "its players are not each there once")
    read.check((line.salt is None) == (line.master is None), "salt and master belong together")
    finished = line.finished_at is not None
    read.check(finished == (line.master is not None), "a stage has its master seed exactly if it is finished")
    master, salt = bytes.fromhex(line.master or ""), bytes.fromhex(line.salt or "")
    if finished:
        fits = commitment(master, salt).hex() == line.commitment
        read.check(fits, f"the master seed of {before.name} is not the one that was committed to")
    return Stage(
        number=len(before.stages) + 1,
        spec=msgspec.json.encode(line.plan).decode(),
        practice=line.practice,
        commitment=bytes.fromhex(line.commitment),
        salt=salt,
        master=master,
        created_at=line.created_at,
        match_count=line.match_count,
        players=line.players,
        finished_at=line.finished_at,
        first_match=line.first_match,
    )


def _check_plan(read: Lines, plan: Plan) -> None:
    read.check(bool(plan.games), "a tournament has at least one game")
    for game in plan.games:
        read.check(game in GAMES, f"there is no game {game!r}; known: {', '.join(sorted(GAMES))}")
    bounds = {"rounds": (1, _MAX_ROUNDS), "decks": (1, _MAX_DECKS), "seats": (2, _MAX_SEATS)}
    for name, (low, high) in bounds.items():
        _check_bounds(read, name, getattr(plan, name), low, high)
    for name in Clock.__struct_fields__:
        _check_bounds(read, name, getattr(plan.clock, name), 0, _MAX_MS)


def _check_bounds(read: Lines, name: str, value: int, low: int, high: int) -> None:
    read.check(low <= value <= high, f"{name} is {value}, not {low} ... {high}")


def check_entrant(read: Lines, line: lines.Entrant, plan: Plan, bots: Collection[str]) -> None:
    """Raise ConfigError if an entrant cannot be one of a tournament that plays this."""
    read.check(is_name(_VERSION.sub("", line.name)), f"{line.name!r} is no name of an entrant")
    read.check(line.hash in bots, f"bot {line.hash} is not in the file")
    read.check({*line.games} <= plan.games.keys(), f"{line.name} plays what the tournament does not")


def check_seeds(read: Lines, stage: Stage, entrants: Sequence[Entrant]) -> None:
    """Raise ConfigError if the seeds of a knockout are not its players, each there once."""
    plan = plan_of(stage)
    for game in plan.games if plan.format == "knockout" else ():
        numbers = [one.number for one in entrants if one.number in stage.players and game in one.games]
        is_whole = game in plan.cast.drawn or bool(stage.master)  # which tells the lots too
        fits = is_whole and sorted(seeding_of(stage, game, numbers)) == numbers
        read.check(fits, f"before it, the seeds of {game} are not the players of stage {stage.number}, each once")


def check_correction(read: Lines, line: lines.Correction, plan: Plan, entrants: int, own: Collection[int]) -> None:
    """Raise ConfigError if a correction cannot be one of a tournament that plays this.

    Args:
        own: the matches of the tournament that are not void.
    """
    is_whole = (line.match is None) == (line.kind != "void") and (line.entrant is None) == (line.kind == "void")
    read.check(is_whole, f"a correction of kind {line.kind} with match {line.match} and entrant {line.entrant}")
    read.check(line.match is None or line.match in own, f"match {line.match} is not there, or is void already")
    read.check(line.entrant is None or line.entrant < entrants, f"entrant {line.entrant} is not there")
    read.check({*line.rounds} <= plan.games.keys(), "a correction of games that the tournament does not play")


def check_match(read: Lines, game: str, line: lines.Scheduled, plan: Plan) -> None:
    """Raise ConfigError if a match of a game cannot be one of a tournament that plays this."""
    seats = len(line.table)
    read.check(seats in (plan.seats, plan.seats - 1), f"a table of {seats}, but tables have {plan.seats} seats")
    read.check(len(line.decks) == plan.decks, f"{len(line.decks)} decks, but a match has {plan.decks}")
    circles = 1 if seats == 2 else 2
    seatings = {"rotate": seats, "mirror": circles * seats, "all": math.factorial(seats)}[plan.seatings]
    legs = 1 if plan.one_leg else seatings
    read.check(len(line.legs) == legs, f"{len(line.legs)} legs, but a match has {legs}")
    for leg in line.legs:
        read.check(sorted(leg) == list(range(seats)), f"{list(leg)} is no seating of {seats}")
    try:
        due = _outcome_type(game, line.rule_set, seats)
    except ConfigError as error:
        raise read.problem(str(error)) from None
    read.check(due in (None, line.outcome_type), f"outcome_type is {line.outcome_type}, but {due} by these rules")


def _outcome_type(game: str, rule_set: str, seats: int) -> OutcomeType | None:
    """Return what a rule set of a game says of places, or None for one of another version."""
    rules = GAMES[game]
    name, version, texts = parse_rule_set_id(rule_set)
    if name == game and version != rules.version:
        return None
    options = {option: rules.schema[option].parse(text) for option, text in texts.items() if option in rules.schema}
    if rule_set_id(rules, complete_options(rules, seats, options)) != rule_set:
        raise ConfigError(f"{rule_set!r} is no rule set of {game}")
    return rules.outcome_type(options)


def check_deal(read: Lines, line: lines.Deal, of: lines.Match, before: int) -> None:
    """Raise ConfigError if a deal cannot be the next one of a match.

    Args:
        before: the deals of the match before it.
    """
    leg, deck = divmod(before, len(of.decks))
    due = f"deal {deck}-{leg} of match {of.id} is due"
    read.check((line.deck, line.leg) == (deck, leg) and leg < len(of.legs), f"deal {line.deck}-{line.leg}, but {due}")
    read.check(line.seating == of.legs[leg], f"seating {list(line.seating)}, but leg {leg} has {list(of.legs[leg])}")
    seats = len(of.table)
    for name in ("places", "points", "digests", "first_ids", "cpu_us", "stale"):
        count = len(getattr(line, name))
        read.check(count == seats, f"{count} {name} for {seats} seats")
    read.check(max(line.places) <= seats, f"places {list(line.places)} of {seats} seats")
    faulted = [fault.seat for fault in line.faults]
    read.check(len(faulted) == len({*faulted}), "a seat has two faults")
    for fault in line.faults:
        read.check(fault.seat < seats, f"a fault of seat {fault.seat}, but there are {seats}")
        read.check(fault.detail in FAULT_DETAILS[fault.kind], f"there is no fault {fault.kind}/{fault.detail}")
