from __future__ import annotations

from collections import Counter
from itertools import combinations, islice
from math import comb

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.errors import ConfigError
from arena.records import Round
from arena.schedule.meetings import meetings
from arena.schedule.quality import design_quality
from arena.schedule.roundrobin import Design, chosen_design, round_robin, tables_per_cycle, without

KEY = b"round robin key"
WORK = 2_000_000


def check_rounds(rounds: list[Round], entrants: range) -> None:
    """Everybody sits once or has a bye, rounds are numbered from 1."""
    assert [r.number for r in rounds] == list(range(1, len(rounds) + 1))
    for r in rounds:
        assert sorted([*r.byes, *(e for table in r.tables for e in table)]) == list(entrants)
        assert r.tables


@settings(max_examples=40, deadline=None)
@given(entrants=st.integers(2, 24), cycles=st.integers(1, 3), key=st.binary(max_size=4))
def test_two_seats_every_pair_meets_once_a_cycle(entrants: int, cycles: int, key: bytes) -> None:
    field = range(10, 10 + entrants)
    rounds = list(round_robin(field, 2, cycles, key))
    check_rounds(rounds, field)
    met = meetings(table for r in rounds for table in r.tables)
    assert met == dict.fromkeys(combinations(field, 2), cycles)
    assert len(rounds) == cycles * (entrants - 1 + entrants % 2)
    byes = Counter(entrant for r in rounds for entrant in r.byes)
    assert byes == (dict.fromkeys(field, cycles) if entrants % 2 else {})


@settings(max_examples=25, deadline=None)
@given(entrants=st.integers(3, 9), seats=st.integers(3, 6), cycles=st.integers(1, 2))
def test_full_plays_every_table_once_a_cycle(entrants: int, seats: int, cycles: int) -> None:
    if entrants < seats:
        entrants, seats = seats, entrants
    rounds = list(round_robin(range(entrants), seats, cycles, KEY, design="full"))
    check_rounds(rounds, range(entrants))
    tables = Counter(tuple(sorted(table)) for r in rounds for table in r.tables)
    assert tables == dict.fromkeys(combinations(range(entrants), seats), cycles)


@settings(max_examples=10, deadline=None)
@given(entrants=st.integers(7, 20), seats=st.integers(3, 6), cycles=st.integers(1, 2))
def test_balanced_lets_everybody_play_equally_often(entrants: int, seats: int, cycles: int) -> None:
    rounds = list(round_robin(range(entrants), seats, cycles, KEY, design="balanced", work=WORK))
    check_rounds(rounds, range(entrants))
    quality = design_quality(table for r in rounds for table in r.tables)
    assert quality.tables == cycles * tables_per_cycle(entrants, seats, "balanced")
    assert quality.least_appearances == quality.most_appearances
    assert quality.gap < 0.4


def test_sixteen_at_tables_of_four_need_five_rounds() -> None:
    rounds = list(round_robin(range(16), 4, 1, KEY))
    assert [len(r.tables) for r in rounds] == [4] * 5
    assert set(meetings(table for r in rounds for table in r.tables).values()) == {1}


def test_full_packs_complementary_tables() -> None:
    assert [len(r.tables) for r in round_robin(range(8), 4, 1, KEY)] == [2] * 35


@pytest.mark.parametrize(
    ("entrants", "seats", "design"),
    [(500, 2, "full"), (8, 4, "full"), (9, 3, "full"), (9, 4, "balanced"), (20, 4, "balanced")],
)
def test_the_default_design(entrants: int, seats: int, design: Design) -> None:
    assert chosen_design(entrants, seats) == design
    assert tables_per_cycle(entrants, seats) == tables_per_cycle(entrants, seats, design)


def test_tables_per_cycle() -> None:
    assert tables_per_cycle(10, 2) == tables_per_cycle(10, 2, "balanced") == 45
    assert tables_per_cycle(20, 4, "full") == comb(20, 4)
    assert tables_per_cycle(20, 4) == 35


def test_huge_schedules_come_lazily() -> None:
    assert len(list(islice(round_robin(range(1500), 2, 10**6, KEY), 3))) == 3
    assert all(len(r.tables) > 15 for r in islice(round_robin(range(100), 4, 1, KEY, design="full"), 20))


def test_the_order_of_entrants_does_not_show_and_the_key_does() -> None:
    def encoded(entrants: list[int], key: bytes) -> bytes:
        return msgspec.msgpack.encode(list(round_robin(entrants, 3, 2, key, work=WORK)))

    entrants = list(range(10))
    assert encoded(entrants, KEY) == encoded(entrants[::-1], KEY)
    assert encoded(entrants, KEY) != encoded(entrants, b"other")


def test_too_few_entrants_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="tables of 4 needs 4 entrants, not 3"):
        round_robin(range(3), 4, 1, KEY)


def test_withdrawn_leave_smaller_tables_or_byes() -> None:
    round_ = Round(3, ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)), (12, 13))
    gone = {1, 4, 5, 13}
    assert without(round_, gone, 4) == Round(3, ((8, 9, 10, 11),), (0, 2, 3, 6, 7, 12))
    assert without(round_, gone, 4, smaller_tables=True) == Round(3, ((0, 2, 3), (8, 9, 10, 11)), (6, 7, 12))
    assert without(Round(1, ((0, 1),)), {0}, 2, smaller_tables=True) == Round(1, (), (1,))
