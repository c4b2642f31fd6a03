"""The crosstable: every duel once for each side."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from arena.records import TableScore
from arena.schedule.crosstable import Encounter, encounters


def test_duels_of_several_matches_are_summed() -> None:
    first = TableScore(1, (4, 7), ((0, 6), (2, 0)), 4)
    second = TableScore(2, (7, 4, 9), ((0, 3, 4), (1, 0, 0), (0, 4, 0)), 2)
    found = encounters([first, second])
    assert found[4, 7] == Encounter(7, 6)
    assert found[7, 4] == Encounter(5, 6)
    assert found[4, 9] == Encounter(0, 2)
    assert found[9, 4].share == Fraction(1)
    assert found[4, 7].share == Fraction(7, 12)
    assert (4, 4) not in found
    assert encounters([]) == {}


@given(st.lists(st.tuples(st.permutations(range(5)), st.integers(1, 6), st.data()), max_size=6))
def test_both_sides_of_a_pair_add_up_to_all_their_duels(drawn: list[tuple[list[int], int, st.DataObject]]) -> None:
    scores = []
    for number, (order, deals, data) in enumerate(drawn, 1):
        won = data.draw(st.integers(0, 2 * deals))
        scores.append(TableScore(number, (order[0], order[1]), ((0, won), (2 * deals - won, 0)), deals))
    found = encounters(scores)
    for (own, other), met in found.items():
        assert found[other, own].deals == met.deals
        assert found[other, own].share + met.share == 1
    assert sum(met.deals for met in found.values()) == 2 * sum(score.deals for score in scores)
