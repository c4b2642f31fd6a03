"""`arena run --forever`: a tournament that extends itself, and who plays in its next round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import trio
from sqlite_utils import Database

from arena.cli.entrants import as_entrants, plays
from arena.cli.site import Player, Site, admit, recall
from arena.config import TournamentConfig
from arena.errors import ConfigError
from arena.extension import extend, out_of
from arena.plan import Plan, plan_of, rounds_before, too_few
from arena.records import BotHash
from arena.store import bots
from arena.store.tournaments import Tournament

POLL_S = 3.0
"""How often it is looked whether there are enough bots."""


class Ladder(NamedTuple):
    """What is asked for; bots by their names are looked up anew for each round, folders are read once.

    Attributes:
        games: by name, with the options that were given.
        folders: the bots that were named by their folders.
        tell: is told in words what a person may want to know.
        now: seconds since the epoch, UTC.
        said: what was told of bots that cannot be run.
    """

    db: Database
    site: Site
    config: TournamentConfig
    games: list[str]
    folders: list[Player]
    tell: Callable[[str], None]
    now: Callable[[], float]
    said: set[str]

    async def players(
        self, plan: Plan, stopping: trio.Event, without: Callable[[], set[BotHash]] = set, poll_s: float = POLL_S
    ) -> list[Player] | None:
        """Return who plays now, waiting until there are enough for every game; None if it is to stop.

        Args:
            without: bots that are not let in.
        """
        told = ""
        while not stopping.is_set():
            out = without()
            found = [player for player in await self._found() if player.ref.hash not in out]
            lacking = "; ".join(too_few(plan, as_entrants(found, self.games)))
            if not lacking:
                return found
            if lacking != told:
                self.tell(f"waiting for bots to be submitted: {lacking}")
            told = lacking
            with trio.move_on_after(poll_s):
                await stopping.wait()
        return None

    async def extended(self, tournament: Tournament, stopping: trio.Event) -> tuple[Tournament, list[Player]] | None:
        """Store the next stage of a tournament, one round or cycle long; return it and its bots; None if to stop."""
        before = rounds_before(self.db, tournament, len(tournament.stages) + 1)
        rounds = max(before.values()) + 1
        plan = msgspec.structs.replace(plan_of(tournament), rounds=rounds, decks=self.config.decks)
        found = await self.players(plan, stopping, lambda: out_of(self.db, tournament))
        if found is None:
            return None
        entrants = as_entrants(found, self.games)
        return extend(self.db, tournament, plan, entrants, self.now(), self.config.seed), found

    async def _found(self) -> list[Player]:
        """Return the bots that are there now; of several with one name the first."""
        found = {player.ref.name: player for player in self.folders}
        for kept in self._submitted():
            if kept.name in found:
                continue
            try:
                player = await recall(kept.name, kept.hash, self.site)
            except ConfigError as error:  # one that cannot be run does not keep the others from playing
                if kept.hash not in self.said:
                    self.tell(f"{kept.name} does not play: {error}")
                self.said.add(kept.hash)
                continue
            if plays(player, self.games):
                found[kept.name] = player
        return list(found.values())

    def _submitted(self) -> Iterator[bots.Submission]:
        for name in self.config.bots:
            latest, _, version = name.partition("@")
            if name == "all":
                yield from bots.submissions(self.db)
            elif "/" not in name:
                kept = bots.version(self.db, latest, int(version)) if version else bots.latest(self.db, name)
                if kept is not None and kept.retired_at is None:
                    yield kept


async def open_ladder(
    db: Database, site: Site, config: TournamentConfig, tell: Callable[[str], None], now: Callable[[], float]
) -> Ladder:
    """Return a ladder, the bots that were named by their folders admitted.

    Raises:
        ConfigError: a folder is not accepted.
    """
    folders = [await admit(db, name, site, now()) for name in config.bots if "/" in name]
    games = list(config.given())
    return Ladder(db, site, config, games, [one for one in folders if plays(one, games)], tell, now, set())
