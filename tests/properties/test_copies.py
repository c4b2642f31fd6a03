"""Luck is shared: copies of one bot under other names come out equal, whatever they are dealt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from statistics import fmean, stdev

import msgpack
import pytest

from arena.games import GAMES
from arena.luck import derive
from arena.records import Placing, TableScore
from arena.rules import bot_seed, complete_options, deal
from arena.schedule.scores import table_score
from arena.schedule.seatings import Mode, seatings

TABLES = [(name, seats) for name, game in GAMES.items() for seats in game.seats]
OF_FOUR = [name for name, game in GAMES.items() if 4 in game.seats]


def choice(bot: str, seed: int, seen: object, legal: Sequence[str]) -> str:
    """Return what a bot does: anything, but always the same where it sees the same from the same seat of a deck."""
    digest = hashlib.sha256(msgpack.packb([bot, seed, seen, legal])).digest()
    return legal[int.from_bytes(digest[:8], "big") % len(legal)]


def places(name: str, bots: Sequence[str], deck: bytes) -> tuple[int, ...]:
    """Play a deal with bots by seat."""
    game = GAMES[name]
    state, _ = deal(game, complete_options(game, len(bots), {}), len(bots), deck)
    while state.actors:
        chosen = {
            seat: choice(bots[seat], bot_seed(deck, seat), state.observation(seat), state.legal_actions(seat))
            for seat in state.actors
        }
        for seat, action in chosen.items():
            state, _ = state.apply(seat, action)
    assert state.outcome is not None
    return state.outcome.places


def played(name: str, bots: str, mode: Mode, decks: int) -> TableScore:
    """Play all legs of so many decks at a table; a letter is a bot, and equal letters are copies of one."""
    legs = seatings(len(bots), mode)
    placings = [
        Placing(deck, leg, seating, places(name, [bots[one] for one in seating], derive(b"copies", "deck", name, deck)))
        for deck in range(decks)
        for leg, seating in enumerate(legs)
    ]
    return table_score(1, tuple(range(len(bots))), placings)


@pytest.mark.parametrize(("name", "seats"), TABLES)
def test_a_table_of_copies_ends_exactly_equal(name: str, seats: int) -> None:
    score = played(name, "a" * seats, "mirror", decks=1)
    points = {sum(row) for row in score.duels}
    assert points == {score.deals * (seats - 1)}


@pytest.mark.parametrize("bots", ["aab", "aba", "baa"])
@pytest.mark.parametrize("name", GAMES)
def test_two_copies_beside_another_bot_end_exactly_equal_at_three_seats(name: str, bots: str) -> None:
    """The seatings of three exchange any two: all that one of the copies meets, the other meets too."""
    score = played(name, bots, "mirror", decks=2)
    first, second = (index for index, bot in enumerate(bots) if bot == "a")
    assert sum(score.duels[first]) == sum(score.duels[second])
    assert score.duels[first][second] == score.deals


@pytest.mark.parametrize("name", OF_FOUR)
def test_two_copies_at_four_seats_end_exactly_equal_in_all_seatings(name: str) -> None:
    score = played(name, "aabc", "all", decks=1)
    assert sum(score.duels[0]) == sum(score.duels[1])


@pytest.mark.parametrize("name", OF_FOUR)
def test_two_copies_at_four_seats_differ_by_chance_only(name: str) -> None:
    bots, (first, second) = "aabc", (0, 1)
    legs = seatings(4, "mirror")
    differences = []
    for number in range(20):
        deck = derive(b"copies", "chance", name, number)
        won = [0, 0]
        for seating in legs:
            ended = places(name, [bots[one] for one in seating], deck)
            at = {one: ended[seat] for seat, one in enumerate(seating)}
            for index, own in enumerate((first, second)):
                won[index] += sum((at[own] < at[one]) - (at[own] > at[one]) for one in range(4))
        differences.append(won[0] - won[1])
    error = stdev(differences) / math.sqrt(len(differences))
    assert abs(fmean(differences)) <= 3.5 * error + 1e-9
