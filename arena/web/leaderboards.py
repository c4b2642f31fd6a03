"""The home page and the leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from arena.plan import plan_of
from arena.rating.certainty import overall as mean
from arena.rating.places import placed
from arena.records import BotHash, Rating
from arena.store import overview, ratings, tournaments
from arena.store.overview import MatchRow
from arena.store.ratings import Past, PoolRow
from arena.store.tournaments import Tournament
from arena.web.page import (
    Data,
    Page,
    Source,
    bot_path,
    game_path,
    isolation_words,
    language,
    match_path,
    pool_path,
    pool_words,
    tournament_path,
)

OVERALL = "leaderboard/overall.html"
_LATEST = 8
_TOP = 5
_SPARK_ROUNDS = 20
_CURVES = 5


def home(source: Source) -> Page:
    """Return the first page: what is being played, who leads, what was played last."""
    stored = tournaments.tournaments(source.db)
    running = [tournament_data(source, one) for one in stored if one.finished_at is None]
    done = [tournament_data(source, one) for one in stored if one.finished_at is not None][:_TOP]
    leaders = []
    for pool in source.largest:
        rows = rating_rows(source, ratings.ratings(source.db, pool.id), {})[:_TOP]
        leaders.append({"page": pool_path(pool.id), "game": pool.key.game, "words": pool_words(pool), "bots": rows})
    latest = [match_data(one) for one in overview.latest_matches(source.db, _LATEST)]
    return Page(
        "home",
        "Home",
        {"running": running, "finished": done, "leaders": leaders, "latest": latest, "overall": _overall_link(source)},
    )


def tournament_data(source: Source, one: Tournament) -> Data:
    """Return how far a tournament is, and its games."""
    plan = plan_of(one)
    far = {progress.game: progress for progress in overview.progress(source.db, one.id)}
    games = [
        {
            "game": game,
            "page": game_path(one.name, game),
            "complete": far[game].complete if game in far else 0,
            "rounds": far[game].rounds if game in far else 0,
        }
        for game in plan.games
    ]
    return {
        "name": one.name,
        "page": tournament_path(one.name),
        "format": plan.format,
        "seats": plan.seats,
        "decks": plan.decks,
        "stages": len(one.stages),
        "games": games,
        "played": sum(progress.played for progress in far.values()),
        "matches": sum(stage.match_count for stage in one.stages),
        "isolation": isolation_words(one.isolation),
        "practice": one.practice,
        "created_at": one.created_at,
        "finished_at": one.finished_at,
    }


def match_data(one: MatchRow) -> Data:
    """Return a match as lists show it."""
    data: Data = {**msgspec.structs.asdict(one), "page": match_path(one.id)}
    data["bots"] = [{"name": name, "page": bot_path(name)} for name in data.pop("names")]
    data["tournament_page"] = tournament_path(one.tournament, one.kind)
    return data


def _overall_link(source: Source) -> str | None:
    return OVERALL if len(source.largest) > 1 else None


def leaderboard(source: Source, pool: PoolRow) -> Page:
    """Return the ratings of a pool."""
    past = overview.histories(source.db, pool.id)
    found = ratings.ratings(source.db, pool.id)
    rows = rating_rows(source, found, past, [pool])
    data = {
        **_of_all_pools(source, pool_path(pool.id)),
        "pools": [_pool_data(pool)],
        "bots": rows,
        "curves": _curves(source, found[:_CURVES], past),
        "latest": [match_data(one) for one in overview.latest_matches(source.db, _LATEST, pool.id)],
    }
    return Page("leaderboard", f"{pool.key.game.title()} ratings", data, pool_path(_chief(source, pool)))


def _chief(source: Source, pool: PoolRow) -> int:
    """Return the pool by which the navigation names a pool's game."""
    return next(one.id for one in source.largest if one.key.game == pool.key.game)


def overall(source: Source) -> Page:
    """Return the mean over the largest pool of each game."""
    by_game = {pool.key.game: ratings.ratings(source.db, pool.id) for pool in source.largest}
    rows = rating_rows(source, mean(by_game) if by_game else [], {}, source.largest)
    data = {
        **_of_all_pools(source, OVERALL),
        "pools": [_pool_data(pool) for pool in source.largest],
        "bots": rows,
        "curves": [],
        "latest": [match_data(one) for one in overview.latest_matches(source.db, _LATEST)],
    }
    return Page("leaderboard", "Overall ratings", data)


def _of_all_pools(source: Source, here: str) -> Data:
    every = [{"page": pool_path(pool.id), "words": pool_words(pool)} for pool in source.pools]
    if (mean := _overall_link(source)) is not None:
        every.insert(0, {"page": mean, "words": "overall"})
    unfinished = [one for one in tournaments.tournaments(source.db) if one.finished_at is None]
    return {
        "here": here,
        "all_pools": every,
        "practice": ratings.has_practice(source.db),
        "overall": here == OVERALL,
        "running": [tournament_data(source, one) for one in unfinished],
    }


def _pool_data(pool: PoolRow) -> Data:
    return {
        **msgspec.structs.asdict(pool.key),
        "page": pool_path(pool.id),
        "words": pool_words(pool),
        "deals": pool.deals,
        "unverified": pool.unverified,
    }


def _curves(source: Source, leaders: Sequence[Rating], past: Mapping[BotHash, Sequence[Past]]) -> list[Data]:
    """Return the history of the leaders, if there is more than one round of it."""
    curves = [curve_data(source.name(one.bot), past.get(one.bot, ())) for one in leaders]
    return curves if any(len(curve["points"]) > 1 for curve in curves) else []


def curve_data(name: str, past: Sequence[Past]) -> Data:
    """Return the history of a rating."""
    return {"name": name, "points": [[f"R{index}", round(one.elo, 1)] for index, one in enumerate(past, 1)]}


def rating_rows(
    source: Source,
    found: Sequence[Rating],
    past: Mapping[BotHash, Sequence[Past]],
    pools: Sequence[PoolRow] = (),
) -> list[Data]:
    """Return a row for each rating, in their order."""
    faults: dict[BotHash, int] = {}
    for pool in pools:
        for bot, count in ratings.fault_counts(source.db, pool.id).items():
            faults[bot] = faults.get(bot, 0) + count
    changes = ratings.changes(source.db, pools[0].id) if len(pools) == 1 else _changes(past)
    rows = []
    for line in placed(found, source.names):
        one, name = line.rating, line.name
        submitted = source.submissions.get(one.bot)
        went = [old.elo for old in past.get(one.bot, ())]
        rows.append(
            {
                "place": line.place,
                "shared": line.shared,
                "ranks": one.ranks,
                "name": name,
                "page": bot_path(name),
                "hash": one.bot,
                "author": submitted.author if submitted else "",
                "version": submitted.version if submitted else None,
                "language": language(submitted.manifest) if submitted else "",
                "elo": round(one.elo, 1),
                "error": None if one.error is None else round(one.error, 1),
                "bound": one.bound,
                "provisional": one.provisional,
                "change": round(changes[one.bot], 1) if one.bot in changes else None,
                "history": [round(elo) for elo in went[-_SPARK_ROUNDS:]],
                "deals": one.deals,
                "wins": one.wins,
                "faults": faults.get(one.bot, 0),
            }
        )
    return rows


def _changes(past: Mapping[BotHash, Sequence[Past]]) -> dict[BotHash, float]:
    return {bot: went[-1].elo - went[-2].elo for bot, went in past.items() if len(went) > 1}


def tournament_list(source: Source) -> Page:
    """Return all tournaments, the newest first."""
    found = [tournament_data(source, one) for one in tournaments.tournaments(source.db)]
    return Page("tournaments", "Tournaments", {"tournaments": found}, "tournaments.html")
