"""`arena leaderboard`: how strong the bots are, and how sure that is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, InBrowser, Json, app
from arena.cli.cells import change_cell, elo_cell, error_cell, place_cell, ranks_cell
from arena.cli.output import emit_json, emit_table, faults_cell, say, say_unverified
from arena.errors import ConfigError
from arena.games import PRESETS
from arena.rating.certainty import Certainty, anchored, overall
from arena.rating.places import PROVISIONAL, placed
from arena.records import BotHash, Rating
from arena.rules import parse_rule_set_id, show_value
from arena.store import bots, ratings
from arena.store.database import open_reader
from arena.store.ratings import PoolRow
from arena.words import rule_words


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
        found = _Leaderboards.read(opened, chosen_pools(opened, game), held, with_overall=not game)
    if held is not None and not any(board.is_anchored for board in found.boards):
        raise ConfigError(f"--anchor: no bot called {held[0]!r} is rated here")
    if as_json:
        emit_json("leaderboard/1", {"practice": found.practice, "anchor": anchor, **found.documents()})
        return
    found.show(held)


def show_leaderboards(db: Database, tournament: int) -> None:
    """Print the leaderboards of the pools that a tournament played in, and what they are together."""
    played = ratings.pools_of_tournament(db, tournament)
    pools = [pool for pool in ratings.pools(db) if pool.id in played]
    _Leaderboards.read(db, pools, None, with_overall=True).show(None)


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


def say_groups(pool: PoolRow, certainty: Certainty | None) -> None:
    """Say on stderr if results do not link all bots of a pool."""
    if certainty is not None and len(certainty.groups) > 1:
        say(
            f"{' '.join(pool_words(pool)[:-2])}: results link the bots in {len(certainty.groups)} groups only; how far "
            "these are apart rests on the prior alone"
        )


class _Leaderboards(NamedTuple):
    """Leaderboards that are shown together.

    Attributes:
        chosen: the pools of the overall table.
        mean: its rows; none without it.
        practice: some results of the database are.
    """

    boards: list[_Board]
    chosen: list[PoolRow]
    mean: list[dict[str, object]]
    practice: bool

    @classmethod
    def read(
        cls, db: Database, pools: Sequence[PoolRow], held: tuple[str, float] | None, *, with_overall: bool
    ) -> _Leaderboards:
        boards = [_Board.read(db, pool, held) for pool in pools]
        chosen = ratings.largest(pools)
        mean = _overall(db, [board for board in boards if board.pool in chosen]) if with_overall else []
        return cls(boards, chosen, mean, ratings.has_practice(db))

    def documents(self) -> dict[str, object]:
        overall = {"pools": [_pool_document(pool) for pool in self.chosen], "bots": self.mean}
        return {"pools": [board.document() for board in self.boards], "overall": overall}

    def show(self, held: tuple[str, float] | None) -> None:
        boards = self.boards
        for board in boards:
            _show(board.rows, board.title())
            say_groups(board.pool, board.certainty)
        if not boards:
            say("no results are rated yet; they are once a round of a tournament is complete: arena run")
        if self.mean and len(self.chosen) > 1:
            games = ", ".join(" ".join(pool_words(pool)[:-3]) for pool in self.chosen)
            _show(self.mean, f"overall · mean over {games}")
        if held and (free := [board.pool for board in boards if not board.is_anchored]):
            named = ["overall"] * bool(self.mean) + [" ".join(pool_words(pool)[:-2]) for pool in free]
            say(f"{held[0]} is not rated in all of them, so with mean 1500: {', '.join(named)}")
        say_unverified(sum(board.pool.unverified for board in boards), sum(board.pool.deals for board in boards))
        if any(row["provisional"] for board in boards for row in board.rows):
            say(f"{PROVISIONAL}; ? marks the others")
        if self.practice:
            say("some results are practice: played from a short --seed, which can be guessed")


class _Board(msgspec.Struct, frozen=True):
    """The leaderboard of a pool.

    Attributes:
        ratings: against the anchor where it is rated here, else against the mean.
        rows: the same as it is shown.
    """

    pool: PoolRow
    ratings: tuple[Rating, ...]
    certainty: Certainty | None
    anchor: tuple[str, float] | None
    rows: list[dict[str, object]]

    @classmethod
    def read(cls, db: Database, pool: PoolRow, anchor: tuple[str, float] | None) -> _Board:
        found, certainty = tuple(ratings.ratings(db, pool.id)), ratings.certainty(db, pool.id)
        names = bots.names_by_hash(db)
        held = [one.bot for one in found if anchor and names.get(one.bot) == anchor[0]]
        if anchor and held:
            found = anchored(found, certainty, held[0], anchor[1])
        rows = _rows(found, db, [pool], ratings.changes(db, pool.id))
        return cls(pool, found, certainty, anchor if held else None, rows)

    @property
    def is_anchored(self) -> bool:
        return self.anchor is not None

    @property
    def design_effect(self) -> float | None:
        return None if self.certainty is None else self.certainty.design_effect

    def title(self) -> str:
        worth = [] if self.design_effect is None else [f"decks shared: worth {self.design_effect:.1f} times the deals"]
        against = [f"Elo and ± against {self.anchor[0]} = {self.anchor[1]:g}"] if self.anchor else []
        return " · ".join([*pool_words(self.pool), *worth, *against])

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
        return [
            place_cell(row),
            *([ranks_cell(row)] if has_ranks else []),
            row["name"],
            elo_cell(row),
            error_cell(row),
            *([change_cell(row)] if has_changes else []),
            row["deals"],
            row["wins"],
            faults_cell(int(str(row["faults"]))),
        ]

    ranks, changed = ["places"] * has_ranks, ["change"] * has_changes
    emit_table(("#", *ranks, "<bot", "elo", "±", *changed, "deals", "wins", "faults"), map(cells, rows), title)
    typer.echo()
