"""The bots of a pool, and how likely each is stronger than each other one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.rating.certainty import Certainty
from arena.rating.places import placed
from arena.records import BotHash, Rating
from arena.store import ratings
from arena.store.ratings import PoolRow


class Compared(msgspec.Struct, frozen=True):
    """The bots of a pool, the strongest first."""

    pool: PoolRow
    found: list[Rating]
    names: list[str]
    certainty: Certainty

    def los(self, a: Rating, b: Rating) -> float | None:
        """Return how likely one is stronger than another, from 0 to 1; None where that is not known."""
        return None if a.bot == b.bot else self.certainty.superiority(a, b)

    def pairs(self) -> Iterator[dict[str, object]]:
        """Yield a document for each ordered pair."""
        for a, name in zip(self.found, self.names, strict=True):
            for b, opponent in zip(self.found, self.names, strict=True):
                if a.bot != b.bot:
                    yield {"name": name, "opponent": opponent, "los": self.los(a, b)}


def compared(db: Database, pool: PoolRow, names: Mapping[BotHash, str]) -> Compared:
    """Compare the bots of a pool.

    Raises:
        ConfigError: it was fitted by an arena that did not keep how sure it was.
    """
    certainty = ratings.certainty(db, pool.id)
    if certainty is None:
        raise ConfigError(
            f"the ratings of {pool.key.game} were fitted by an older arena, without their covariance; the next round "
            "of a tournament brings it, or `arena export all` and `arena import`"
        )
    lines = placed(ratings.ratings(db, pool.id), names)
    return Compared(pool, [line.rating for line in lines], [line.name for line in lines], certainty)
