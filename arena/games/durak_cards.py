"""The cards of durak as bits, and every action in words: tables that keep positions small and steps fast.

A card is an int with one bit set, a set of cards the sum of its cards. Bits go by suit (c d h s) and then by rank, so
the lowest bit of a suit is its lowest card and "the higher cards of the suit" are one mask.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from arena.cards import sorted_deck

Card: TypeAlias = int
Cards: TypeAlias = int

NAME: dict[Card, str] = {1 << i: name for i, name in enumerate(sorted_deck())}
CARD: dict[str, Card] = {name: card for card, name in NAME.items()}


def mask_by_card(belongs: Callable[[Card, Card], bool]) -> dict[Card, Cards]:
    """Return for each card the set of cards that stand in a relation to it."""
    return {card: sum(other for other in NAME if belongs(card, other)) for card in NAME}


SUIT = mask_by_card(lambda card, other: NAME[card][1] == NAME[other][1])
RANK = mask_by_card(lambda card, other: NAME[card][0] == NAME[other][0])
HIGHER = mask_by_card(lambda card, other: NAME[card][1] == NAME[other][1] and other > card)
LOWER = mask_by_card(lambda card, other: NAME[card][1] == NAME[other][1] and other < card)


@lru_cache(maxsize=8192)
def names(cards: Cards) -> tuple[str, ...]:
    """Return the names of a set of cards, by suit and then rank; most hands do not change between two observations."""
    return tuple(NAME[card] for card in split(cards))


def split(cards: Cards) -> list[Card]:
    """Return the single cards of a set, lowest bit first."""
    found = []
    while cards:
        card = cards & -cards
        found.append(card)
        cards ^= card
    return found


class Verb:
    """An action that names one card, e.g. `attack:7s`.

    Attributes:
        action: its words by card.
        card: the card by words.
    """

    def __init__(self, verb: str) -> None:
        self.action: dict[Card, str] = {card: f"{verb}:{name}" for card, name in NAME.items()}
        self.card: dict[str, Card] = {action: card for card, action in self.action.items()}

    def actions(self, cards: Cards) -> list[str]:
        """Return the action for each card of a set, in ASCII order."""
        action = self.action
        found = []
        while cards:
            card = cards & -cards
            found.append(action[card])
            cards ^= card
        found.sort()
        return found


ATTACK = Verb("attack")
CAPTURE = Verb("capture")
THROW = Verb("throw")
TRANSFER = Verb("transfer")
BEAT: dict[Card, Verb] = {card: Verb(f"beat:{name}") for card, name in NAME.items()}
"""The verbs `beat:ATTACK`, by attack card; the card they name is the defender's own."""
BEATEN: dict[str, tuple[Card, Card]] = {
    action: (attack, own) for attack, verb in BEAT.items() for own, action in verb.action.items()
}
"""The attack card and the defender's card of every `beat`."""
