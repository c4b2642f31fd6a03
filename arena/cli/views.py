"""Commands that only read: leaderboard, standings, trace."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, InBrowser, Json, app
from arena.cli.cells import elo_cell, error_cell, place_cell, ranks_cell
from arena.cli.output import emit_json, emit_lines, emit_table, faults_cell, harmless, say
from arena.errors import ConfigError, IllegalAction
from arena.explain import Line, dialogue
from arena.games import PRESETS
from arena.rating.certainty import Certainty, anchored, overall
from arena.rating.places import PROVISIONAL, placed
from arena.records import TIEBREAKS, BotHash, DealRecord, Fault, Rating, Standing
from arena.rules import parse_rule_set_id, show_value
from arena.store import bots, matches, ratings, tournaments
from arena.store.corrections import Correction, corrections
from arena.store.database import open_reader
from arena.store.matches import StoredMatch
from arena.store.ratings import PoolRow
from arena.words import rule_words

Deal = Annotated[str, typer.Argument(help="A deal's name, MATCH-DECK-LEG, e.g. 17-3-0; `last` for the newest.")]


@app.command(epilog="Examples: arena leaderboard durak    arena leaderboard --anchor random=1000")
def leaderboard(
    game: Annotated[str, typer.Argument(help="One game; by default all of them and the overall table.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
    in_browser: InBrowser = False,
    anchor: Annotated[str | None, typer.Option("--anchor", help="NAME=ELO: a bot whose Elo is given.")] = None,
) -> None:
    """Show how strong the bots are and how sure that is, for each pool of results and overall."""
    if in_browser:
        _open_leaderboard(db, game)
        return
    held = None if anchor is None else parse_anchor(anchor)
    with open_reader(db) as opened:
        boards = [_Board.read(opened, pool, held) for pool in chosen_pools(opened, game)]
        chosen = ratings.largest([board.pool for board in boards])
        mean = [] if game else _overall(opened, [board for board in boards if board.pool in chosen])
        practice = ratings.has_practice(opened)
    if held is not None and not any(board.is_anchored for board in boards):
        raise ConfigError(f"--anchor: no bot called {held[0]!r} is rated here")
    if as_json:
        documents = [board.document() for board in boards]
        overall = {"pools": [_pool_document(pool) for pool in chosen], "bots": mean}
        emit_json("leaderboard/1", {"practice": practice, "anchor": anchor, "pools": documents, "overall": overall})
        return
    for board in boards:
        _show(board.rows, board.title())
    if not boards:
        say("no results are rated yet; they are once a round of a tournament is complete: arena run")
    if not game and len(chosen) > 1:
        _show(mean, "overall · mean over " + ", ".join(" ".join(pool_words(pool)[:-3]) for pool in chosen))
    if free := [board for board in boards if held and not board.is_anchored]:
        say(f"without {held and held[0]}, so with mean 1500: {', '.join(board.pool.key.game for board in free)}")
    _say_unverified(sum(board.pool.unverified for board in boards), sum(board.pool.deals for board in boards))
    if any(row["provisional"] for board in boards for row in board.rows):
        say(f"{PROVISIONAL}; ? marks the others")
    if practice:
        say("some results are practice: played from a short --seed, which can be guessed")


def parse_anchor(text: str) -> tuple[str, float]:
    """Return name and Elo of an anchor.

    Raises:
        ConfigError: it is none.
    """
    name, equals, value = text.partition("=")
    if not name or not equals or not re.fullmatch(r"-?\d{1,5}(\.\d{1,6})?", value):
        raise ConfigError(f"--anchor wants NAME=ELO, e.g. random=1000, not {text!r}")
    return name, float(value)


def chosen_pools(db: Database, game: str) -> list[PoolRow]:
    """Return the pools of a game or preset, or all if none is named.

    Raises:
        ConfigError: it has none; names the games that have.
    """
    every = ratings.pools(db)
    found = [pool for pool in every if _is_of(pool, game)]
    if game and not found:
        raise ConfigError(f"no results are rated for game {game!r}; rated: {_games(every)}")
    return found


def _open_leaderboard(path: Path, game: str) -> None:
    from arena.cli.pages import show
    from arena.web.page import Source, pool_path
    from arena.web.pages import leaderboard_paths

    def choose(source: Source) -> list[str]:
        paths = list(leaderboard_paths(source))
        first = [pool_path(pool.id) for pool in source.largest if _is_of(pool, game)] if game else paths
        if not first:
            raise ConfigError(
                f"no results are rated{f' for game {game!r}' if game else ''}; rated: {_games(source.pools)}"
            )
        return [first[0], *(one for one in paths if one != first[0])]

    show(path, choose)


def _say_unverified(some: int, deals: int) -> None:
    if some:
        say(f"{some} of {deals} deals unverified: imported, but not the same when executed again; see arena verify")


def _is_of(pool: PoolRow, name: str) -> bool:
    """Tell whether a pool is of a game, or of a preset, that somebody asked for."""
    game, given = PRESETS.get(name, (name, {}))
    texts = parse_rule_set_id(pool.key.rule_set)[2]
    return not name or (pool.key.game == game and all(texts.get(key) == show_value(given[key]) for key in given))


def _games(pools: Sequence[PoolRow]) -> str:
    return ", ".join(sorted({pool.key.game for pool in pools})) or "none yet"


def pool_words(pool: PoolRow) -> list[str]:
    """Return what tells a pool from others; of its options only those that are not the defaults."""
    return [
        *rule_words(pool.key.rule_set, pool.key.seats),
        f"{pool.key.seats} seats",
        pool.key.isolation,
        f"{pool.deals} deals",
    ]


class _Board(msgspec.Struct, frozen=True):
    """The leaderboard of a pool.

    Attributes:
        ratings: against the anchor where it is rated here, else against the mean.
        rows: the same as it is shown.
    """

    pool: PoolRow
    ratings: tuple[Rating, ...]
    certainty: Certainty | None
    is_anchored: bool
    rows: list[dict[str, object]]

    @classmethod
    def read(cls, db: Database, pool: PoolRow, anchor: tuple[str, float] | None) -> _Board:
        found, certainty = tuple(ratings.ratings(db, pool.id)), ratings.certainty(db, pool.id)
        names = bots.names_by_hash(db)
        held = [one.bot for one in found if anchor and names.get(one.bot) == anchor[0]]
        if anchor and held:
            found = anchored(found, certainty, held[0], anchor[1])
        rows = _rows(found, db, [pool], ratings.changes(db, pool.id))
        return cls(pool, found, certainty, bool(held), rows)

    @property
    def design_effect(self) -> float | None:
        return None if self.certainty is None else self.certainty.design_effect

    def title(self) -> str:
        worth = [] if self.design_effect is None else [f"decks shared: worth {self.design_effect:.1f} times the deals"]
        return " · ".join([*pool_words(self.pool), *worth])

    def document(self) -> dict[str, object]:
        linked = None if self.certainty is None else len(self.certainty.groups)
        told = {"design_effect": self.design_effect, "groups": linked, "anchored": self.is_anchored}
        return {**_pool_document(self.pool), **told, "bots": self.rows}


def _overall(db: Database, boards: Sequence[_Board]) -> list[dict[str, object]]:
    """Return the overall table; against the anchor only if every pool of it is."""
    whole = all(board.is_anchored for board in boards)
    by_game = {board.pool.key.game: board.ratings if whole else ratings.ratings(db, board.pool.id) for board in boards}
    return _rows(overall(by_game), db, [board.pool for board in boards], {})


def _pool_document(pool: PoolRow) -> dict[str, object]:
    return {**msgspec.structs.asdict(pool.key), "deals": pool.deals, "unverified": pool.unverified}


def _rows(
    found: Sequence[Rating], db: Database, pools: Sequence[PoolRow], changes: Mapping[BotHash, float]
) -> list[dict[str, object]]:
    faults: dict[BotHash, int] = {}
    for pool in pools:
        for bot, count in ratings.fault_counts(db, pool.id).items():
            faults[bot] = faults.get(bot, 0) + count
    return [
        {
            "place": line.place,
            "shared": line.shared,
            "rank_low": rating.ranks and rating.ranks[0],
            "rank_high": rating.ranks and rating.ranks[1],
            "name": line.name,
            "hash": rating.bot,
            "elo": rating.elo,
            "error": rating.error,
            "bound": rating.bound,
            "provisional": rating.provisional,
            "change": changes.get(rating.bot),
            "deals": rating.deals,
            "wins": rating.wins,
            "faults": faults.get(rating.bot, 0),
        }
        for line in placed(found, bots.names_by_hash(db))
        for rating in [line.rating]
    ]


def _show(rows: Sequence[Mapping[str, object]], title: str) -> None:
    """Print a leaderboard; places and changes only where there are any."""
    has_changes = any(row["change"] is not None for row in rows)
    has_ranks = any(row["rank_low"] is not None for row in rows)

    def cells(row: Mapping[str, object]) -> list[object]:
        change = row["change"]
        return [
            place_cell(row),
            *([ranks_cell(row)] if has_ranks else []),
            row["name"],
            elo_cell(row),
            error_cell(row),
            *(["new" if change is None else f"{change:+.0f}"] if has_changes else []),
            row["deals"],
            row["wins"],
            faults_cell(int(str(row["faults"]))),
        ]

    ranks, changed = ["places"] * has_ranks, ["change"] * has_changes
    emit_table(("#", *ranks, "<bot", "elo", "±", *changed, "deals", "wins", "faults"), map(cells, rows), title)
    typer.echo()


@app.command(epilog="Example: arena standings spring durak")
def standings(
    tournament: Annotated[str, typer.Argument(help="A tournament's name; `last` for the newest.")],
    game: Annotated[str, typer.Argument(help="One game; by default all of the tournament.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show a tournament's points and tie-breaks, from its complete rounds."""
    from arena.bracket import read_bracket, standing_fields
    from arena.cli.brackets import show_standings
    from arena.plan import final_standings, plan_of

    with open_reader(db) as opened:
        found = find_tournament(opened, tournament)
        tables = {name: final_standings(opened, found, name) for name in games_of(found, game)}
        brackets = {name: read_bracket(opened, found, name) for name in tables}
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(opened, found.id)}
        made = corrections(opened, found.id)
        doubted = {name: matches.count_unverified(opened, found.id, name) for name in tables}
    if as_json:
        documents = {
            name: [{**_standing(line, names), **standing_fields(brackets[name], line.entrant, names)} for line in lines]
            for name, lines in tables.items()
        }
        unverified = {name: some for name, (some, _) in doubted.items()}
        corrected = [{**msgspec.structs.asdict(one), "entrant": _entrant(one, names)} for one in made]
        told = {"tournament": found.name, "finished": bool(found.finished_at), "unverified": unverified}
        emit_json("standings/1", {**told, "corrections": corrected, "games": documents})
        return
    deciding = [one for one in plan_of(found).tiebreaks if one in _SHORT][:_DECIDING]
    for name, lines in tables.items():
        if bracket := brackets[name]:
            show_standings(f"{found.name} · {name}", bracket, lines, names)
            continue
        rows = (_standing_cells(line, names, deciding) for line in lines)
        emit_table(_columns(deciding), rows, f"{found.name} · {name}")
        typer.echo()
    for one in made:
        day = time.strftime("%Y-%m-%d", time.gmtime(one.made_at))
        typer.echo(f"{day}  {_WORDS[one.kind].format(one.match or _entrant(one, names))}: {harmless(one.reason)}")
    _say_unverified(*(sum(counts) for counts in zip(*doubted.values(), strict=True)))
    if None in brackets.values():
        say(", ".join(f"{_SHORT[one][0]} {_SHORT[one][1]}" for one in deciding))


_WORDS = {"void": "match {} is void", "disqualify": "{} is disqualified", "withdraw": "{} has withdrawn"}


def _entrant(made: Correction, names: Mapping[int, str]) -> str | None:
    return None if made.entrant is None else names[made.entrant]


_DECIDING = 4
"""Tie-breaks that are shown: more do not fit, and hardly ever decide."""
_SHORT = {
    "direct encounter": ("DE", "direct encounter"),
    "buchholz": ("BH", "Buchholz"),
    "buchholz cut 1": ("BH1", "without the weakest opponent"),
    "sonneborn-berger": ("SB", "Sonneborn-Berger"),
    "median duel": ("MD", "median duel"),
    "sets won": ("SW", "deal sets won"),
}


def _columns(deciding: Sequence[str]) -> list[str]:
    return ["#", "<bot", "points", *(_SHORT[one][0] for one in deciding), "rounds", "deals", "byes"]


def _standing(line: Standing, names: Mapping[int, str]) -> dict[str, object]:
    document = {"name": names[line.entrant], **msgspec.structs.asdict(line)}
    return {**document, "tiebreaks": dict(zip(TIEBREAKS, line.tiebreaks, strict=True))}


def _standing_cells(line: Standing, names: Mapping[int, str], deciding: Sequence[str]) -> list[object]:
    values = [line.tiebreaks[TIEBREAKS.index(one)] for one in deciding]
    shown = ["-" if value is None else f"{value:.2f}" for value in values]
    return [line.place, marked_name(line, names), f"{line.points:.3f}", *shown, line.rounds, line.deals, line.byes]


def marked_name(line: Standing, names: Mapping[int, str]) -> str:
    """Return who a line of standings is of, and that it has left if it has."""
    return f"{names[line.entrant]} ({line.mark})" if line.mark else names[line.entrant]


def find_tournament(db: Database, name: str) -> tournaments.Tournament:
    """Return a tournament by its name, or the newest for `last`.

    Raises:
        ConfigError: there is none of that name; names those there are.
    """
    known = tournaments.tournaments(db)
    found = (known[0] if known else None) if name == "last" else tournaments.find(db, name)
    if found is None:
        names = ", ".join(one.name for one in known) or "none yet"
        raise ConfigError(f"there is no tournament {name!r}; there are: {names}")
    return found


def games_of(tournament: tournaments.Tournament, game: str) -> list[str]:
    """Return the games of a tournament, or the one asked for.

    Raises:
        ConfigError: it has no such game; names those it has.
    """
    from arena.plan import plan_of

    games = list(plan_of(tournament).games)
    if game and game not in games:
        raise ConfigError(f"tournament {tournament.name} has no game {game!r}; it has {', '.join(games)}")
    return [game] if game else games


def find_deal(db: Database, name: str) -> tuple[StoredMatch, DealRecord, list[Fault]]:
    """Return a stored deal by its name, with its match and its faults.

    Raises:
        ConfigError: there is none of that name.
    """
    key = matches.last_deal(db) if name == "last" else _deal_key(name)
    match = matches.match(db, key[0]) if key else None
    deal = matches.deal(db, *key) if key else None
    if key is None or match is None or deal is None:
        raise ConfigError(f"there is no deal {name!r}; a deal's name is MATCH-DECK-LEG, e.g. 1-0-0, or `last`")
    faults = [found.fault for found in matches.faults(db, number=key[0])]
    return match, deal, [fault for fault in faults if (fault.deck, fault.leg) == key[1:]]


def _deal_key(name: str) -> tuple[int, int, int] | None:
    parts = name.split("-")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


@app.command(epilog="Example: arena trace 17-3-0 --seat 1")
def trace(
    deal: Deal,
    seat: Annotated[int, typer.Option("--seat", help="Whose dialogue, 0-based.", min=0)] = 0,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show every message between the referee and a bot in a deal."""
    from arena.plan import plan_of

    with open_reader(db) as opened:
        match, record, faults = find_deal(opened, deal)
        clock = plan_of(tournaments.get(opened, match.tournament)).clock
    name = f"{match.id}-{record.deck}-{record.leg}"
    if seat >= len(record.seating):
        raise ConfigError(f"deal {name} has no seat {seat}; its seats are 0 ... {len(record.seating) - 1}")
    try:
        lines, is_genuine = dialogue(match, record, seat, faults, clock)
    except IllegalAction as error:
        raise ConfigError(f"deal {name} breaks the rules: {error}; `arena verify` says more") from None
    if as_json:
        emit_lines("trace/1", ({"deal": name, "seat": seat, **msgspec.structs.asdict(line)} for line in lines))
    else:
        _show_dialogue(name, lines, next((fault for fault in faults if fault.seat == seat), None))
    if not is_genuine:
        raise ConfigError(f"the messages of deal {name} do not digest to what was stored: record or rules have changed")


def _show_dialogue(name: str, lines: Sequence[Line], fault: Fault | None) -> None:
    arrows = {"referee": "->", "bot": "<-", "fault": "!!"}
    for line in lines:
        took = "" if line.elapsed_us is None else f"   # {line.elapsed_us / 1000:.2f} ms"
        typer.echo(f"{line.step:4} {arrows[line.sender]} {harmless(json.dumps(line.message))}{took}")
    if not lines:
        typer.echo(f"nothing was said in {name}: it was forfeited")
    if fault is not None and fault.stderr:
        typer.echo("the end of its stderr:\n" + harmless(fault.stderr.decode(errors="replace")).rstrip())
