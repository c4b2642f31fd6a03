"""`arena los` and `arena ratings`: how likely one bot is stronger than another, and how a rating came about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, Json, app
from arena.cli.cells import elo_cell, error_cell
from arena.cli.leaderboard import chosen_pools, pool_words, say_groups
from arena.cli.output import emit_json, emit_lines, emit_matrix, emit_table, say
from arena.errors import ConfigError
from arena.records import BotHash
from arena.store import bots, ratings, tournaments
from arena.store.database import open_reader
from arena.strength import Compared, compared

_SURE = 0.975
"""Beyond it, or below 1 - 0.975, a difference is outside its 95 % interval."""


@app.command(epilog="Example: arena los durak")
def los(
    game: Annotated[str, typer.Argument(help="One game; by default every pool of results.")] = "",
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show how likely each bot is stronger than each other one, for each pool of results."""
    with open_reader(db) as opened:
        names = bots.names_by_hash(opened)
        found = [compared(opened, pool, names) for pool in chosen_pools(opened, game)]
    if as_json:
        emit_json("los/1", {"pools": [_document(one) for one in found]})
        return
    for one in found:
        rows = [[_cell(one.los(a, b), a is b) for b in one.found] for a in one.found]
        emit_matrix(" · ".join(pool_words(one.pool)), one.names, rows)
        say_groups(one.pool, one.certainty)
        if any(cell.plain == "n/a" for row in rows for cell in row):
            say("n/a: one of the two has fewer than 10 decks; more come with run --extend, or --until-error")
    if not found:
        say("no results are rated yet; they are once a round of a tournament is complete: arena run")
        return
    say(
        "each row: how likely the bot is stronger than the bot of that number, in percent; not corrected for many pairs"
    )


def _document(one: Compared) -> dict[str, object]:
    told = zip(one.found, one.names, strict=True)
    named = {rating.bot: name for rating, name in told}
    return {
        **msgspec.structs.asdict(one.pool.key),
        "groups": [[named[one.certainty.bots[i]] for i in group] for group in one.certainty.groups],
        "pairs": list(one.pairs()),
    }


def _cell(chance: float | None, itself: bool) -> Text:
    if chance is None:
        return Text("-" if itself else "n/a", style="dim")
    return Text(f"{100 * chance:.0f}", style="green" if chance > _SURE else "red" if chance < 1 - _SURE else "")


@app.command(name="ratings", epilog="Example: arena ratings greedy --history")
def ratings_(
    bot: Annotated[str, typer.Argument(help="A bot, by its name in the leaderboard.")],
    history: Annotated[bool, typer.Option("--history", help="After each round, not only now.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show the ratings of a bot in each pool of results, now or after each round."""
    with open_reader(db) as opened:
        found = [hashed for hashed, name in bots.names_by_hash(opened).items() if name == bot]
        rows = list((_history if history else _now)(opened, found[0])) if found else []
    if not rows:
        raise ConfigError(f"no bot called {bot!r} is rated; `arena leaderboard` shows those that are")
    if as_json:
        emit_lines("rating/1", ({"name": bot, **row} for row in rows))
        return
    where = ["<tournament", "round"] if history else []
    columns = ("<pool", *where, "elo", "±", "deals")
    cells = ([row["pool"], *([row["tournament"], row["round"]] if history else []), *_numbers(row)] for row in rows)
    emit_table(columns, cells, bot)


def _numbers(row: Mapping[str, object]) -> Sequence[object]:
    return elo_cell(row), error_cell(row), row["deals"]


def _now(db: Database, bot: BotHash) -> Iterator[dict[str, object]]:
    for pool in ratings.pools(db):
        for one in ratings.ratings(db, pool.id):
            if one.bot == bot:
                numbers = {"elo": one.elo, "error": one.error, "bound": one.bound, "deals": one.deals}
                told = {"pool": " · ".join(pool_words(pool)[:-1]), "provisional": one.provisional}
                yield {**told, **numbers}


def _history(db: Database, bot: BotHash) -> Iterator[dict[str, object]]:
    names = {one.id: one.name for one in tournaments.tournaments(db)}
    for pool in ratings.pools(db):
        for past in ratings.history(db, pool.id, bot):
            told = {**msgspec.structs.asdict(past), "tournament": names[past.tournament]}
            yield {"pool": " · ".join(pool_words(pool)[:-1]), "provisional": past.provisional, **told}
