"""The order of a table of ratings: equal Elo shares a place, and nobody is above another by a hash."""

from __future__ import annotations

from arena.rating.places import place_text, placed
from arena.records import BotHash, Rating

A, B, C, D, E = (BotHash(letter * 64) for letter in "abcde")
NAMES = {A: "zoe", B: "bea", C: "cy", D: "dan"}


def rating(bot: BotHash, elo: float, *, partial: bool = False, error: float | None = 9.0) -> Rating:
    return Rating(bot, elo, error, 40, 20, partial=partial)


def told(*ratings: Rating) -> list[tuple[str, str]]:
    return [(place_text(line.place, line.shared), line.name) for line in placed(ratings, NAMES)]


def test_equal_elo_shares_a_place_and_stands_by_name() -> None:
    assert told(rating(A, 1600), rating(B, 1600), rating(C, 1500)) == [("=1", "bea"), ("=1", "zoe"), ("3", "cy")]
    assert told(rating(A, 1600), rating(B, 1500), rating(C, 1500)) == [("1", "zoe"), ("=2", "bea"), ("=2", "cy")]
    assert told(*(rating(bot, 1500) for bot in (A, B, C, D))) == [("=1", name) for name in ("bea", "cy", "dan", "zoe")]


def test_the_slightest_difference_decides() -> None:
    assert told(rating(A, 1500.000001), rating(B, 1500)) == [("1", "zoe"), ("2", "bea")]


def test_partial_ratings_are_last_and_have_no_place() -> None:
    lines = told(rating(A, 1700, partial=True), rating(B, 1500), rating(C, 1700, partial=True), rating(D, 1700))
    assert lines == [("1", "dan"), ("2", "bea"), ("-", "cy"), ("-", "zoe")]


def test_a_bot_without_a_name_is_called_by_its_hash() -> None:
    assert told(rating(E, 1500)) == [("1", "e" * 12)]
    assert placed([], NAMES) == []


def test_a_rating_without_an_error_bar_is_provisional() -> None:
    assert not rating(A, 1500).provisional
    assert rating(A, 1500, error=None).provisional
