"""Bots: all of them, and one with its versions, ratings, opponents, faults and matches."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.rating.places import placed
from arena.records import BotHash
from arena.store import bots, matches, overview, ratings, tournaments
from arena.web.charts import COLOURS
from arena.web.faults import fault_rows
from arena.web.leaderboards import curve_data, match_data
from arena.web.page import Data, Page, Source, bot_path, language, pool_path, pool_words, slug

_MATCHES = 20
_FAULTS = 20


def bot_list(source: Source) -> Page:
    """Return all bots by name, the submitted ones with author and version."""
    newest = {one.name: one for one in bots.submissions(source.db, retired=True)}
    names = sorted(all_names(source))
    found = []
    for name in names:
        one = newest.get(name)
        found.append(
            {
                "name": name,
                "page": bot_path(name),
                "author": one.author if one else "",
                "version": one.version if one else None,
                "language": language(one.manifest) if one else "",
                "submitted_at": one.submitted_at if one else None,
                "retired": bool(one and one.retired_at),
            }
        )
    return Page("bots", "Bots", {"bots": found}, "bots.html")


def all_names(source: Source) -> set[str]:
    """Return the names of all bots that were submitted or have played, without versions."""
    played = {name.partition("@")[0] for name in tournaments.players(source.db)}
    return played | {one.name for one in bots.submissions(source.db, retired=True)}


def find_name(source: Source, part: str) -> str | None:
    """Return the name whose page has this address, or None."""
    return next((name for name in all_names(source) if slug(name) == part), None)


def bot(source: Source, name: str) -> Page:
    """Return what is known of a bot under a name."""
    hashes = _hashes(source, name)
    faults = fault_rows(source, bot=name)
    data = {
        "name": name,
        "versions": _versions(source, name),
        "ratings": _ratings(source, hashes),
        "opponents": opponents(source, hashes),
        "faults": faults[:_FAULTS],
        "fault_count": len(faults),
        "matches": [match_data(one) for one in overview.matches_of_bot(source.db, name, _MATCHES)],
    }
    return Page("bot", name, data, "bots.html")


def _hashes(source: Source, name: str) -> list[BotHash]:
    """Return the bots whose name this is, the newest last."""
    return [bot for bot, shown in source.names.items() if shown.partition("@")[0] == name]


def _versions(source: Source, name: str) -> list[Data]:
    found = [one for one in bots.all_versions(source.db) if one.name == name]
    return [
        {
            "version": one.version,
            "hash": one.hash,
            "author": one.author,
            "language": language(one.manifest),
            "submitted_at": one.submitted_at,
            "retired_at": one.retired_at,
        }
        for one in sorted(found, key=lambda one: -one.version)
    ]


def _ratings(source: Source, hashes: Sequence[BotHash]) -> list[Data]:
    """Return the rating of each version in each pool, with its history."""
    found = []
    for pool in source.pools:
        every = ratings.ratings(source.db, pool.id)
        past = overview.histories(source.db, pool.id) if any(one.bot in hashes for one in every) else {}
        own = [line for line in placed(every, source.names) if line.rating.bot in hashes]
        versions = [
            {
                **msgspec.structs.asdict(one),
                "name": line.name,
                "elo": round(one.elo, 1),
                "error": None if one.error is None else round(one.error, 1),
                "provisional": one.provisional,
                "place": line.place,
                "shared": line.shared,
            }
            for line in own
            for one in [line.rating]
        ]
        if versions:
            curves = [curve_data(line.name, past.get(line.rating.bot, ())) for line in own]
            drawn = [curve for curve in curves if len(curve["points"]) > 1]
            page = pool_path(pool.id)
            found.append({"words": pool_words(pool), "page": page, "versions": versions, "curves": drawn[:COLOURS]})
    return found


def opponents(source: Source, hashes: Sequence[BotHash]) -> list[Data]:
    """Return a bot's share of its duels with each other in rated rounds, all games together, most deals first."""
    won: dict[str, int] = {}
    met: dict[str, int] = {}
    for own in hashes:
        tables: dict[int, tuple[BotHash, ...]] = {}
        for match, seating, places in overview.placings_of(source.db, own):
            table = tables.get(match) or tables.setdefault(match, matches.hashes(source.db, match))
            at = next(seat for seat, place in enumerate(seating) if table[place] == own)
            for seat, place in enumerate(seating):
                if table[place] not in hashes:
                    name = source.name(table[place]).partition("@")[0]
                    met[name] = met.get(name, 0) + 1
                    won[name] = won.get(name, 0) + 1 + (places[at] < places[seat]) - (places[at] > places[seat])
    rows = [
        {"name": name, "page": bot_path(name), "deals": met[name], "share": round(50 * won[name] / met[name])}
        for name in met
    ]
    return sorted(rows, key=lambda row: (-row["deals"], row["name"]))
