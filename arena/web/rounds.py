"""A tournament, and its games round by round: standings, pairings and a crosstable."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from arena.bracket import Bracket, read_bracket, standing_fields
from arena.export.rows import secrets
from arena.plan import Plan, deciding, final_standings, plan_of, table_scores
from arena.records import TIEBREAKS, Round, Standing, TableScore
from arena.schedule.crosstable import encounters
from arena.store import overview, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.tournaments import Stage, Tournament
from arena.web.brackets import bracket_data
from arena.web.leaderboards import match_data, tournament_data
from arena.web.page import Data, Page, Source, bot_link, game_path, match_path, tournament_path

CROSS = 32
"""Bots of a crosstable: more fit no screen."""
_NEAR = 12
"""Rounds before and after the shown one that are offered, beside the first and the last: a ladder has no end."""


def tournament(source: Source, one: Tournament) -> Page:
    """Return a tournament: how far it is, its leaders, its entrants and what was corrected."""
    entrants = tournaments.entrants(source.db, one.id)
    names = {entrant.number: entrant.name for entrant in entrants}
    shown = tournament_data(source, one)
    for game in shown["games"]:
        table = final_standings(source.db, one, game["game"])[:5]
        game["standings"] = _standings(plan_of(one), table, names, None)
    data = {
        **shown,
        "clock": msgspec.structs.asdict(plan_of(one).clock),
        "options": {game: chosen for game, chosen in plan_of(one).games.items() if chosen},
        "entrants": [{**bot_link(entrant.name), "hash": entrant.hash, "games": entrant.games} for entrant in entrants],
        "corrections": [_correction(made, names) for made in corrections(source.db, one.id)],
        "stages": [_stage(stage) for stage in one.stages],
    }
    return Page("tournament", one.name, data, "tournaments.html")


def _stage(stage: Stage) -> Data:
    salt, master = secrets(stage)
    told = {"number": stage.number, "commitment": stage.commitment.hex(), "salt": salt, "master": master}
    return {**told, "rounds": plan_of(stage).rounds, "begun_at": stage.created_at, "finished_at": stage.finished_at}


_WORDS = {"void": "match {} is void", "disqualify": "{} is disqualified", "withdraw": "{} has withdrawn"}


def _correction(made: Correction, names: dict[int, str]) -> Data:
    who = made.match if made.entrant is None else names[made.entrant]
    page = match_path(made.match) if made.match is not None else bot_link(str(who))["page"]
    day = time.strftime("%Y-%m-%d", time.gmtime(made.made_at))
    return {"day": day, "what": _WORDS[made.kind].format(who), "page": page, "reason": made.reason}


def game(source: Source, one: Tournament, name: str) -> Page:
    """Return a game of a tournament: standings now, a crosstable, and its rounds with their pairings."""
    entrants = tournaments.entrants(source.db, one.id, name)
    names = {entrant.number: entrant.name for entrant in entrants}
    rounds = tournaments.rounds(source.db, one.id, name)
    lines = final_standings(source.db, one, name)
    bracket = read_bracket(source.db, one, name)
    scores = table_scores(source.db, one.id, name)
    current = rounds[-1] if rounds else None
    data = {
        **_of_game(one, name, rounds, None),
        "standings": _standings(plan_of(one), lines, names, bracket),
        "bracket": None if bracket is None else bracket_data(bracket, names),
        "tiebreaks": TIEBREAKS,
        "crosstable": crosstable([line.entrant for line in lines], scores, names),
        "round": _round(source, one, name, *current, names) if current else None,
    }
    return Page("game", f"{one.name} · {name}", data, "tournaments.html")


def game_round(source: Source, one: Tournament, name: str, number: int) -> Page | None:
    """Return a round of a game: its pairings, and the standings after it; None if there is no such round."""
    entrants = tournaments.entrants(source.db, one.id, name)
    names = {entrant.number: entrant.name for entrant in entrants}
    rounds = tournaments.rounds(source.db, one.id, name)
    found = next(((played, done) for played, done in rounds if played.number == number), None)
    if found is None:
        return None
    is_told = any(done for played, done in rounds if played.number <= number)
    lines = final_standings(source.db, one, name, number) if is_told else []
    bracket = read_bracket(source.db, one, name, number)
    data = {
        **_of_game(one, name, rounds, number),
        "standings": _standings(plan_of(one), lines, names, bracket),
        "bracket": None if bracket is None else bracket_data(bracket, names),
        "tiebreaks": TIEBREAKS,
        "round": _round(source, one, name, *found, names),
    }
    return Page("game", f"{one.name} · {name} · round {number}", data, "tournaments.html")


def _of_game(one: Tournament, name: str, rounds: Sequence[tuple[Round, bool]], number: int | None) -> Data:
    last = len(rounds)
    near = {1, last, *range((number or last) - _NEAR, (number or last) + _NEAR + 1)}
    listed = [
        {"number": played.number, "complete": done, "page": game_path(one.name, name, played.number)}
        for played, done in rounds
        if played.number in near
    ]
    return {
        "tournament": one.name,
        "tournament_page": tournament_path(one.name),
        "game": name,
        "game_page": game_path(one.name, name),
        "rounds": listed,
        "number": number,
        "crosstable": None,
    }


def _standings(plan: Plan, lines: Sequence[Standing], names: dict[int, str], bracket: Bracket | None) -> list[Data]:
    decisions = zip(lines, deciding(plan, lines), strict=True)
    return [_standing(line, decided, names, bracket) for line, decided in decisions]


def _standing(line: Standing, decided: str | None, names: dict[int, str], bracket: Bracket | None) -> Data:
    of_bracket = standing_fields(bracket, line.entrant, names)
    return {
        **bot_link(names[line.entrant]),
        "place": line.place,
        "points": round(line.points, 3),
        "tiebreaks": [None if value is None else round(value, 3) for value in line.tiebreaks],
        "rounds": line.rounds,
        "deals": line.deals,
        "byes": line.byes,
        "mark": line.mark,
        **of_bracket,
        "decided_by": of_bracket["decided_by"] or decided,
        "end": None if bracket is None else bracket.end(line.entrant, names),
    }


def _round(source: Source, one: Tournament, name: str, played: Round, done: bool, names: dict[int, str]) -> Data:
    rows = [match_data(row) for row in overview.matches_of_round(source.db, one.id, name, played.number)]
    byes = [bot_link(names[entrant]) for entrant in played.byes]
    return {"number": played.number, "complete": done, "matches": rows, "byes": byes}


def crosstable(ranked: Sequence[int], scores: Sequence[TableScore], names: dict[int, str]) -> Data | None:
    """Return each bot's share of its duels with each other, in percent, the best first."""
    shown = ranked[:CROSS]
    met = encounters(scores)
    if not met:
        return None
    rows = []
    for row in shown:
        cells = [round(100 * met[row, column].share) if (row, column) in met else None for column in shown]
        rows.append({**bot_link(names[row]), "cells": cells})
    return {"rows": rows, "left_out": len(ranked) - len(shown)}
