"""Luck is shared: copies of one bot under other names come out equal, whatever they are dealt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
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


def differences(name: str, bots: str, decks: int) -> list[float]:
    """Return by deck how much more the first bot scored than the second, in points of 0 to 1, over all its legs."""
    legs = seatings(len(bots), "mirror")
    found = []
    for number in range(decks):
        deck = derive(b"copies", "chance", name, number)
        won = [0, 0]
        for seating in legs:
            ended = places(name, [bots[one] for one in seating], deck)
            at = {one: ended[seat] for seat, one in enumerate(seating)}
            for index in (0, 1):
                won[index] += sum((at[index] < at[one]) - (at[index] > at[one]) for one in at)
        found.append((won[0] - won[1]) / (2 * len(legs) * (len(bots) - 1)))
    return found


@pytest.mark.parametrize("name", OF_FOUR)
def test_two_copies_at_four_seats_differ_by_chance_only(name: str) -> None:
    found = differences(name, "aabc", 20)
    assert abs(fmean(found)) <= 3.5 * stdev(found) / math.sqrt(len(found)) + 1e-9


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "seats"), [(name, seats) for name, seats in TABLES if 3 < seats < 7])
def test_two_copies_differ_by_chance_only_at_larger_tables(
    name: str, seats: int, record_property: Callable[[str, object], None]
) -> None:
    found = differences(name, "aabcde"[:seats], 200)
    mean, error = fmean(found), stdev(found) / math.sqrt(len(found))
    what = f"score of one copy less that of another beside {seats - 2} other bots, {name}, 200 decks"
    record_property("calibration", f"| {what} | 0 | {mean:+.4f} ± {1.96 * error:.4f} |")
    assert abs(mean) <= 3.5 * error + 1e-9
