from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.cards import JOKER, RANKS, SUITS, deck_order, sorted_deck

# The published vector of the shuffle: 36 cards, deck key 00 01 ... 1f.
ORDER_36 = "6h 9d 6c Qs Jc Qh 9s 7d 9c Ah Th As Qd 6s 9h Ks Tc 8d Ad 7h 8h Td Js 8s 8c 7c Kh 7s Ts Qc Kd Jh Kc 6d Jd Ac"


def test_a_deck_is_sorted_by_suit_and_rank() -> None:
    deck = sorted_deck()
    assert len(deck) == len(set(deck)) == 52
    assert deck[:3] == ("2c", "3c", "4c")
    assert deck[12:14] == ("Ac", "2d")
    assert deck[-1] == "As"


def test_a_short_deck_begins_at_its_lowest_rank() -> None:
    deck = sorted_deck("6")
    assert len(deck) == 36
    assert deck[:2] == ("6c", "7c")
    assert set(deck) < set(sorted_deck())


def test_an_unknown_lowest_rank_is_refused() -> None:
    with pytest.raises(ValueError, match="substring"):
        sorted_deck("1")


def test_a_joker_is_no_rank_and_no_suit() -> None:
    assert JOKER not in RANKS + SUITS


def test_deck_order_pinned() -> None:
    assert " ".join(deck_order(sorted_deck("6"), bytes(range(32)))) == ORDER_36


@given(key=st.binary(min_size=32, max_size=32))
def test_deck_order_is_a_permutation(key: bytes) -> None:
    assert sorted(deck_order(sorted_deck(), key)) == sorted(sorted_deck())
