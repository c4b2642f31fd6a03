from __future__ import annotations

import hashlib
import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.luck import Stream, commitment, derive

KEY = bytes(range(32))


def test_a_stream_is_shake_256_of_its_length_prefixed_name() -> None:
    # Printed by `openssl dgst -shake256 -xoflen 24` for the parts arena-luck-1, KEY, shuffle.
    stream = Stream(KEY, "shuffle")
    assert "".join(f"{stream.word():016x}" for _ in range(3)) == "019bd11f884fe93424d19b64179d7f7ac4e1ac34367916bb"


def test_a_stream_goes_on_beyond_the_words_it_read_first() -> None:
    name = b"".join(struct.pack(">I", len(p)) + p for p in (b"arena-luck-1", KEY, b"refresh", b"7", "ход".encode()))
    stream = Stream(KEY, "refresh", 7, "ход")
    words = [stream.word() for _ in range(600)]
    assert words == list(struct.unpack(">600Q", hashlib.shake_256(name).digest(4800)))


def test_ids_are_kept_apart() -> None:
    names: list[tuple[str, tuple[int | str, ...]]]
    names = [("a", ()), ("a", (1,)), ("a", (11,)), ("a", (1, 1)), ("a1", ()), ("", ("a",))]
    assert len({Stream(KEY, purpose, *ids).word() for purpose, ids in names}) == len(names)
    assert Stream(KEY, "a", 1).word() == Stream(KEY, "a", "1").word()


def test_below_pinned() -> None:
    drawn = [Stream(KEY, "refresh", 1).below(n) for n in (1, 2, 10, 1000, 2**53, 2**64)]
    assert drawn == [0, 1, 1, 421, 1926701558314933, 5081987081232234421]


def test_below_rejects_words_from_the_largest_multiple_on() -> None:
    n = (1 << 63) + 1
    raw, drawn = Stream(KEY, "test"), Stream(KEY, "test")
    words = [raw.word() for _ in range(100)]
    kept = [word for word in words if word < n]
    assert 30 < len(kept) < 70
    assert [drawn.below(n) for _ in kept] == kept


def test_below_is_even() -> None:
    stream = Stream(KEY, "even")
    counts = Counter(stream.below(6) for _ in range(6000))
    chi_square = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert sorted(counts) == list(range(6))
    assert chi_square < 20.5  # p = 0.001 at 5 degrees of freedom


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_below_refuses(n: int) -> None:
    with pytest.raises(ValueError, match=str(n)):
        Stream(KEY, "test").below(n)


def test_shuffled_pinned() -> None:
    assert Stream(b"", "test").shuffled(range(10)) == [7, 0, 5, 4, 6, 1, 8, 2, 3, 9]


def test_shuffled_is_fisher_yates_from_the_last_position_down() -> None:
    luck = Stream(KEY, "test")
    expected = list("abcdefgh")
    for last in range(7, 0, -1):
        other = luck.below(last + 1)
        expected[last], expected[other] = expected[other], expected[last]
    assert Stream(KEY, "test").shuffled("abcdefgh") == expected


@given(items=st.lists(st.integers()), key=st.binary())
def test_shuffled_keeps_the_items_and_leaves_the_argument(items: list[int], key: bytes) -> None:
    before = list(items)
    shuffled = Stream(key, "test").shuffled(items)
    assert sorted(shuffled) == sorted(items)
    assert items == before


def test_derive_pinned() -> None:
    assert derive(KEY, "deal").hex() == "9a45030412b2b082fb6017051d391fe48fb6179437f8413fe0a1d58334af6f34"
    assert derive(KEY, "deck", "durak", 3).hex() == "3edb0d4f117f548c2b773a780adc92f34a4f37cbcac3e998b875c11b6c8e0c0b"


def test_derive_is_the_beginning_of_the_stream_of_that_name() -> None:
    stream = Stream(KEY, "deck", 5)
    assert derive(KEY, "deck", 5) == struct.pack(">4Q", *(stream.word() for _ in range(4)))


def test_commitment_pinned() -> None:
    # Printed by `sha256sum` for the bytes 0 ... 31 and the text salt.
    assert commitment(KEY, b"salt").hex() == "997f53827ac2c4811452aca8ecddf936d2b6c486f74b28193444e159b9c4c461"
