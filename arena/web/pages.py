"""What each address shows, and which addresses there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from arena.plan import plan_of
from arena.store import overview, tournaments
from arena.web import bots, deals, downloads, faults, leaderboards, replays, rounds, texts
from arena.web.page import (
    Page,
    Source,
    bot_path,
    game_path,
    match_path,
    pool_path,
    slug,
    tournament_path,
)

_NUMBER = r"(0|[1-9]\d{0,17})"
_PART = r"([a-z0-9~][a-z0-9-]*)"

Maker = Callable[..., Page | None]


def page(source: Source, path: str) -> Page | None:
    """Return what an address shows, without its ending, or None if there is no such page."""
    for pattern, make in _ROUTES:
        if found := re.fullmatch(pattern, path, re.ASCII):
            return make(source, *found.groups())
    return None


def _leaderboard(source: Source, number: str) -> Page | None:
    pool = next((one for one in source.pools if one.id == int(number)), None)
    return leaderboards.leaderboard(source, pool) if pool else None


def _tournament(source: Source, part: str) -> tournaments.Tournament | None:
    return next((one for one in tournaments.tournaments(source.db) if slug(one.name) == part), None)


def _tournament_page(source: Source, part: str) -> Page | None:
    one = _tournament(source, part)
    return rounds.tournament(source, one) if one else None


def _game(source: Source, part: str, game: str, number: str | None) -> Page | None:
    one = _tournament(source, part)
    if one is None or game not in plan_of(one).games:
        return None
    return rounds.game(source, one, game) if number is None else rounds.game_round(source, one, game, int(number))


def _bot(source: Source, part: str) -> Page | None:
    name = bots.find_name(source, part)
    return bots.bot(source, name) if name else None


def _text(source: Source, name: str) -> Page:
    return texts.text(name)


_ROUTES: list[tuple[str, Maker]] = [
    ("index", leaderboards.home),
    ("leaderboard/overall", leaderboards.overall),
    (f"leaderboard/{_NUMBER}", _leaderboard),
    ("tournaments", leaderboards.tournament_list),
    (f"t/{_PART}", _tournament_page),
    (f"t/{_PART}/([a-z]+)(?:-{_NUMBER})?", _game),
    ("bots", bots.bot_list),
    (f"b/{_PART}", _bot),
    (f"m/{_NUMBER}", lambda source, number: deals.match(source, int(number))),
    (f"r/{_NUMBER}-{_NUMBER}-{_NUMBER}", lambda source, *key: replays.replay(source, *map(int, key))),
    ("faults", faults.fault_list),
    ("data", lambda source: downloads.data_page()),
    (f"docs/({'|'.join(texts.TEXTS)})", _text),
]


def paths(source: Source) -> Iterator[str]:
    """Yield the addresses of all pages but replays."""
    yield "index.html"
    yield from leaderboard_paths(source)
    yield "tournaments.html"
    for one in tournaments.tournaments(source.db):
        yield str(tournament_path(one.name))
        for game in plan_of(one).games:
            yield game_path(one.name, game)
            for played, _ in tournaments.rounds(source.db, one.id, game):
                yield game_path(one.name, game, played.number)
    yield "bots.html"
    yield from sorted(bot_path(name) for name in bots.all_names(source))
    yield from (match_path(number) for number in overview.match_numbers(source.db))
    yield from ("faults.html", "data.html", *(f"docs/{name}.html" for name in texts.TEXTS))


def leaderboard_paths(source: Source) -> Iterator[str]:
    """Yield the addresses of the leaderboards."""
    if len(source.largest) > 1:
        yield leaderboards.OVERALL
    yield from (pool_path(pool.id) for pool in source.pools)
