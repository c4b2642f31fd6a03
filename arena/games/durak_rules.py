"""The rule options of durak as one struct: what holds for a whole deal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arena.games.durak_cards import CARD, Card
from arena.rules import Options, Value


class Rules(msgspec.Struct, frozen=True):
    """What holds for a whole deal.

    Attributes:
        deck: the cards in play, sorted.
        seed: key of the streams of D5.
        max_attack: with `first_bout_max`, a number of cards; "none" is the size of the whole deck.
        first_bout_max: holds until a bout has been beaten off.
        by_places: `score = places`.
        attacker_wins: `simultaneous = attacker_wins`.
        stall_draw: `stall = draw`.
    """

    seats: int
    deck: tuple[Card, ...]
    seed: bytes
    chain: bool
    redeal_if_empty: bool
    max_attack: int
    first_bout_max: int
    throw_after_take: bool
    transfer: bool
    first_transfer: bool
    by_places: bool
    attacker_wins: bool
    stall_draw: bool


def rules_of(options: Options, seats: int, deck: Sequence[str], seed: bytes) -> Rules:
    """Return the rules of a deal with complete options."""
    return Rules(
        seats=seats,
        deck=tuple(sorted(CARD[card] for card in deck)),
        seed=seed,
        chain=bool(options["chain"]),
        redeal_if_empty=bool(options["redeal_if_empty"]),
        max_attack=number_or(options["max_attack"], len(deck)),
        first_bout_max=number_or(options["first_bout_max"], len(deck)),
        throw_after_take=bool(options["throw_after_take"]),
        transfer=bool(options["transfer"]),
        first_transfer=bool(options["first_transfer"]),
        by_places=options["score"] == "places",
        attacker_wins=options["simultaneous"] == "attacker_wins",
        stall_draw=options["stall"] == "draw",
    )


def number_or(value: Value, unlimited: int) -> int:
    """Return an option's number, or `unlimited` for the word `none`."""
    return value if isinstance(value, int) else unlimited
