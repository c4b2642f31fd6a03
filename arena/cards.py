"""Cards and decks. A card is a rank of `23456789TJQKA` and a suit of `cdhs`, e.g. `Th`; a joker is `*`."""

from __future__ import annotations

from arena.luck import Stream

RANKS = "23456789TJQKA"
SUITS = "cdhs"
JOKER = "*"


def sorted_deck(lowest: str = "2") -> tuple[str, ...]:
    """Return the cards from rank `lowest` to the ace, by suit (c d h s) and then rank: 52 cards, 36 from `6`."""
    ranks = RANKS[RANKS.index(lowest) :]
    return tuple(rank + suit for suit in SUITS for rank in ranks)


def deck_order(deck: tuple[str, ...], deck_key: bytes) -> tuple[str, ...]:
    """Return the deck shuffled by the stream (deck key, `shuffle`); the first card is the top."""
    return tuple(Stream(deck_key, "shuffle").shuffled(deck))
