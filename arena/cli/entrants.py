"""Turning `--bots` into entrants: folders, submitted names, or all."""

from __future__ import annotations

from collections.abc import Sequence

from sqlite_utils import Database

from arena.cli.site import Player, Site, admit, recall
from arena.errors import ConfigError
from arena.records import BotHash, BotRef
from arena.store import bots
from arena.store.tournaments import Entrant


async def find_players(
    db: Database, names: Sequence[str], games: Sequence[str], site: Site, now: float
) -> list[Player]:
    """Return the bots named: an argument with a `/` is a folder, else it is a submitted name, or `all`.

    `name@2` is the second version of a name; `all` is every submitted bot that plays one of the games.

    Raises:
        ConfigError: names every one that is not found, or that plays none of the games.
    """
    players: list[Player] = []
    problems: list[str] = []
    for name in names:
        try:
            found = await _find(db, name, site, now)
        except ConfigError as error:
            problems.append(str(error))
            continue
        players += [player for player in found if plays(player, games)]
        if not any(plays(player, games) for player in found):
            known = ", ".join(sorted({game for player in found for game in player.manifest.games}))
            problems.append(f"{name} does not play {' or '.join(games)}; its bot.toml names {known}")
    if problems:
        raise ConfigError("\n".join(problems))
    return players


async def _find(db: Database, name: str, site: Site, now: float) -> list[Player]:
    if "/" in name:
        return [await admit(db, name, site, now)]
    if name != "all":
        kept = submission_of(db, name)
        return [await recall(kept.name, kept.hash, site)]
    found = bots.submissions(db)
    if not found:
        raise ConfigError("no bot is submitted yet; `arena submit DIR`, or name folders as ./DIR/")
    return [await recall(kept.name, kept.hash, site) for kept in found]


def submission_of(db: Database, name: str) -> bots.Submission:
    """Return a submitted bot by its name, or the version that `NAME@VERSION` says.

    Raises:
        ConfigError: there is none.
    """
    latest, _, version = name.partition("@")
    found = bots.version(db, latest, int(version)) if version.isdecimal() else bots.latest(db, name)
    if found is None:
        known = ", ".join(one.name for one in bots.submissions(db)) or "none yet"
        raise ConfigError(f"no bot is called {name!r} (submitted: {known}); write a folder as ./{name}/")
    return found


def as_entrants(players: Sequence[Player], games: Sequence[str]) -> list[Entrant]:
    """Return entrants numbered in the order of their hashes, so that the order of naming changes nothing.

    Args:
        games: those of the tournament.

    Raises:
        ConfigError: a bot is named twice, or two bots under one name.
    """
    names = [player.ref.name for player in players]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            f"named twice: {', '.join(twice)}; an entrant needs a name of its own: change `name` in a bot.toml, "
            "or name an earlier version as NAME@VERSION"
        )
    return [
        Entrant(number, player.ref.name, player.ref.hash, plays(player, games))
        for number, player in enumerate(sorted(players, key=lambda player: player.ref.hash))
    ]


def plays(player: Player, games: Sequence[str]) -> tuple[str, ...]:
    """Return which of some games a bot plays."""
    return tuple(game for game in games if game in player.manifest.games)


def by_hash(players: Sequence[Player]) -> dict[BotHash, BotRef]:
    """Return the bots by their hash."""
    return {player.ref.hash: player.ref for player in players}
