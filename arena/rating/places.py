"""The order of a table of ratings: equal Elo shares a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from arena.records import BotHash, Rating

PROVISIONAL = (
    "a rating is provisional, without an error bar, below 10 decks, and where it is only a bound: "
    "> beat everybody, < lost to everybody"
)
"""What the word means, for people."""


class Placed(msgspec.Struct, frozen=True):
    """A line of a table of ratings.

    Attributes:
        name: what people call the bot.
        place: 1 + the number of bots with more Elo; None for a partial rating, which is not ranked.
        shared: another bot has the same place.
    """

    rating: Rating
    name: str
    place: int | None
    shared: bool


def placed(ratings: Sequence[Rating], names: Mapping[BotHash, str]) -> list[Placed]:
    """Return the lines of a table: the strongest first, equal Elo by name, partial ratings last.

    Args:
        ratings: of one pool, or overall.
        names: of the bots; one that has none is called by its hash.
    """
    ranked = sorted(one.elo for one in ratings if not one.partial)
    above = {elo: len(ranked) - number for number, elo in enumerate(ranked, 1)}  # the last of equals stays
    alike = Counter(ranked)
    lines = [
        Placed(
            one,
            names.get(one.bot, one.bot[:12]),
            None if one.partial else 1 + above[one.elo],
            not one.partial and alike[one.elo] > 1,
        )
        for one in ratings
    ]
    return sorted(lines, key=lambda line: (line.rating.partial, -line.rating.elo, line.name, line.rating.bot))


def place_text(place: int | None, shared: bool) -> str:
    """Return how a table tells a place: `=1` where it is shared, `-` where there is none."""
    return "-" if place is None else f"={place}" if shared else str(place)
