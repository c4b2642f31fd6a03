"""Who is beyond measure: decks count and deals do not, chains and groups are followed, and a tournament ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest

from arena.luck import Stream
from arena.rating.apart import DECKS, FAR, told_apart
from arena.rating.focus import Known, choose_tables, known_of, widest
from arena.rating.pool import rate_pool
from arena.records import BotHash, RatedDeal
from arena.rules import OutcomeType

A, B, C, D, E = (BotHash(name) for name in "abcde")


def met(winner: BotHash, loser: BotHash, decks: int, times: int = 2) -> Iterator[RatedDeal]:
    """One beats the other in all deals of so many decks."""
    for deck in range(decks):
        for time in range(times):
            yield RatedDeal(
                f"{winner}{loser}{deck}", (winner, loser)[:: 1 - 2 * (time % 2)], (1, 2)[:: 1 - 2 * (time % 2)]
            )


def level(one: BotHash, other: BotHash, decks: int = 20) -> Iterator[RatedDeal]:
    """Each wins one of the two deals of each deck."""
    for deck in range(decks):
        for places in ((1, 2), (2, 1)):
            yield RatedDeal(f"{one}{other}{deck}", (one, other), places)


def known(bots: Sequence[BotHash], deals: Sequence[RatedDeal], outcome: OutcomeType = "ranking") -> Known:
    pool = rate_pool(deals, outcome)
    return known_of(bots, pool.ratings, pool.certainty, deals)


def above(bots: Sequence[BotHash], *parts: Iterator[RatedDeal], outcome: OutcomeType = "ranking") -> set[str]:
    """Return who is told to be above whom, as pairs of letters."""
    found = known(bots, [deal for part in parts for deal in part], outcome).apart.above
    return {bots[i] + bots[j] for i in range(len(bots)) for j in range(len(bots)) if found[i, j]}


def test_so_many_decks_say_it_with_such_confidence() -> None:
    chance = 1 / (1 + 10 ** (-FAR / 400))
    assert chance**DECKS <= 0.025 < chance ** (DECKS - 1)


@pytest.mark.parametrize("times", [1, 2, 6])
def test_decks_count_and_not_deals(times: int) -> None:
    assert above([A, B], met(A, B, DECKS - 1, times)) == set()
    assert above([A, B], met(A, B, DECKS, times)) == {"ab"}


def test_with_a_point_the_bound_is_that_of_the_rating() -> None:
    point = RatedDeal("other", (A, B), (2, 1))
    assert above([A, B], met(A, B, 20), iter([point])) == set()
    assert above([A, B], met(A, B, 100), iter([point])) == {"ab"}


def test_where_bots_stand_between_the_differences_of_linked_ones_are_measured() -> None:
    """Each wins nine of ten deals against the next: 380 Elo."""
    steps = [
        RatedDeal(f"{one}{deck}", (one, two), (1, 2) if deck % 10 else (2, 1))
        for one, two in ((A, B), (B, C))
        for deck in range(400)
    ]
    assert above([A, B, C], iter(steps)) == set()
    assert above([A, C], iter(steps)) == set(), "they have never met"
    assert known([A, C], steps).apart.unmet[0, 1], "nobody of those who play stands between"
    assert above([A, C], iter(steps), met(A, C, 5)) == {"ac"}
    assert above([A, C], iter(steps), met(C, A, 1, 1)) == set(), "a deal won speaks against it"


def test_chains_are_followed_also_over_bots_that_do_not_play_any_more() -> None:
    chain = [met(A, B, DECKS), met(B, C, DECKS), met(C, D, DECKS)]
    assert above([A, B, C, D], *chain) == {"ab", "bc", "cd"}, "the others have not met"
    chain = [met(A, B, DECKS), met(B, C, DECKS), met(C, D, DECKS)]
    assert above([A, B, C, D], *chain, met(A, C, 1), met(A, D, 1), met(B, D, 1)) == {"ab", "ac", "ad", "bc", "bd", "cd"}
    chain = [met(A, B, DECKS), met(B, C, DECKS), met(C, D, DECKS)]
    assert above([D, A], *chain, met(A, D, 1)) == {"ad"}
    assert above([A, B, C], met(A, B, DECKS), met(C, B, DECKS)) == {"ab", "cb"}


def test_what_is_told_of_the_nearest_holds_for_all_of_their_groups() -> None:
    upper = [*level(A, B), *(RatedDeal(f"up{n}", (A, B), (1, 2)) for n in range(5))]
    lower = [*level(C, D), *(RatedDeal(f"low{n}", (C, D), (1, 2)) for n in range(5))]
    bots = [A, B, C, D]
    once = [RatedDeal("once", pair, (1, 2)) for pair in ((A, C), (A, D), (B, D))]
    assert above(bots, iter(upper), iter(lower), met(B, C, DECKS)) == {"bc"}
    assert above(bots, iter(upper), iter(lower), met(B, C, DECKS), iter(once)) == {"ac", "ad", "bc", "bd"}
    assert above(bots, iter(upper), iter(lower), met(A, D, DECKS), iter(once)) == {"ad"}


def test_ties_of_those_who_did_not_lose_are_no_duels() -> None:
    deals = [RatedDeal(str(deck), (A, B, C), (1, 1, 3)) for deck in range(DECKS)]
    assert above([A, B, C], iter(deals), outcome="single_loser") == {"ac", "bc"}


def test_unknown_bots_and_those_that_never_met_are_not_told_apart() -> None:
    assert above([A, B, E], met(A, B, DECKS)) == {"ab"}
    assert above([A, B, C, D], met(A, B, DECKS), met(C, D, DECKS)) == {"ab", "cd"}


def test_no_deal_is_read_where_all_are_linked_nor_after_all_are_told_apart() -> None:
    elo, leads = np.array([1600.0, 1400.0]), np.zeros((2, 2), np.bool_)
    unread = iter([RatedDeal("none", (A, B), (1, 2))])
    assert not told_apart([A, B], [A, B], elo, leads, np.ones((2, 2), np.bool_), unread).settled.any()
    assert len(list(unread)) == 1
    deals = met(A, B, 100, 1)
    assert told_apart([A, B], [A, B], elo, leads, np.eye(2, dtype=np.bool_), deals).above[0, 1]
    assert len(list(deals)) == 100 - DECKS


def test_what_is_beyond_measure_is_neither_wide_nor_played() -> None:
    bots = [A, B, C, D]
    deals = [deal for one, two in ((A, B), (B, C), (C, D)) for deal in met(one, two, DECKS)]
    chained = known(bots, deals)
    assert math.isinf(widest(chained)[0]), "a has never met c"
    tables = choose_tables(chained, 30.0, 2, 10, "ranking", Stream(bytes(32), "test", 0))
    assert {frozenset(table) for table in tables} == {frozenset(pair) for pair in ((0, 2), (0, 3), (1, 3))}
    threes = choose_tables(chained, 30.0, 3, 10, "ranking", Stream(bytes(32), "test", 0))
    assert all(any({*pair} <= {*table} for table in threes) for pair in ((0, 2), (0, 3), (1, 3)))
    assert len(threes) <= 2, "a table of three has more than one such pair"
    ordered = known(bots, [*deals, *(deal for pair in ((A, C), (A, D), (B, D)) for deal in met(*pair, 1))])
    assert widest(ordered) == (0.0, 0, 0)
    assert ordered.tiers() == [[0], [1], [2], [3]]
    assert choose_tables(ordered, 30.0, 2, 10, "ranking", Stream(bytes(32), "test", 0)) == ()
    pair = known(bots, [*met(A, B, DECKS), *met(A, C, DECKS), *level(B, C), *met(C, D, 5)])
    tables = choose_tables(pair, 30.0, 2, 10, "ranking", Stream(bytes(32), "test", 0))
    assert tables
    assert not any(0 in table and 3 not in table for table in tables), "a is told apart from b and c, not from d"


@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("outcome", ["ranking", "single_loser"])
@pytest.mark.parametrize("tiers", [[1, 1, 1, 1], [1, 3], [3, 1], [2, 2], [1, 2, 1]])
def test_a_tournament_ends_though_some_always_beat_others(tiers: list[int], seats: int, outcome: OutcomeType) -> None:
    """Within a tier all are equal; a better tier always wins."""
    bots = [A, B, C, D]
    tier = [number for number, size in enumerate(tiers) for _ in range(size)]
    luck, deals, rounds = Stream(bytes(32), "luck"), list[RatedDeal](), 0
    now = known_of(bots, [], None)
    while widest(now)[0] > 150.0:
        tables = choose_tables(now, 150.0, seats, 5 * seats, outcome, Stream(bytes(32), "test", rounds))
        rounds += 1
        assert rounds < 60
        for table in tables:
            for deal in range(5 * seats):
                ranked = sorted(luck.shuffled(table), key=lambda bot: tier[bot])
                places = {bot: place + 1 for place, bot in enumerate(ranked)}
                if outcome == "single_loser":
                    places = {bot: seats if bot == ranked[-1] else 1 for bot in table}
                deck = f"{rounds}-{deal // seats}"
                deals.append(RatedDeal(deck, tuple(bots[i] for i in table), tuple(places[i] for i in table)))
        now = known(bots, deals, outcome)
    if (outcome, seats, tiers) == ("single_loser", 3, [1, 1, 1, 1]):
        tiers = [2, 1, 1]  # where two better ones sit with a third, that one loses
    assert [len(one) for one in now.tiers()] == tiers
    never_lose = outcome == "single_loser" and seats == 3 and tiers[0] == 2
    assert now.apart.level.sum() == (2 if never_lose else 0)
    assert (now.measured | now.apart.level).sum() == sum(size * (size - 1) for size in tiers)


def all_or_nothing(count: int, wins: Callable[[int, int], bool], target: float, most: int) -> tuple[Known, set[str]]:
    """Play until the errors are small enough; tell also who has met, as pairs of letters."""
    bots, deals = [BotHash(name) for name in "abcdefgh"[:count]], list[RatedDeal]()
    now = known_of(bots, [], None)
    for number in range(most):
        tables = choose_tables(now, target, 2, 10, "ranking", Stream(bytes(32), "test", number))
        if not tables:
            return now, {deal.bots[0] + deal.bots[1] for deal in deals}
        for i, j in tables:
            winner, loser = (i, j) if wins(i, j) else (j, i)
            for deck in range(10):
                deals.append(
                    RatedDeal(
                        f"{number}-{deck // 2}",
                        (bots[winner], bots[loser])[:: 1 - 2 * (deck % 2)],
                        (1, 2)[:: 1 - 2 * (deck % 2)],
                    )
                )
        now = known(bots, deals)
    raise AssertionError(f"not ended after {most} rounds")


def test_bots_that_beat_each_other_in_a_cycle_are_of_one_tier() -> None:
    now, together = all_or_nothing(5, lambda i, j: (j - i) % 5 <= 2, 60.0, 60)
    assert len(now.tiers()) == 1
    assert len(together) == 20
    assert not now.apart.above.any()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 6))])
def test_whatever_the_results_nobody_is_told_above_one_who_won(seed: int) -> None:
    """Each pair has its winner, by lot: most such results are full of cycles, and no rating describes them."""
    luck = Stream(bytes(32), "results", seed)
    upper = {pair for pair in combinations(range(6), 2) if luck.below(2)}

    def wins(i: int, j: int) -> bool:
        return (i, j) in upper if i < j else (j, i) not in upper

    now, together = all_or_nothing(6, wins, 60.0, 250)
    for i, j in np.argwhere(now.apart.above | now.apart.swept).tolist():
        assert wins(i, j)
        assert "abcdef"[i] + "abcdef"[j] in together
    assert not now.apart.unmet.any()


def test_whoever_won_all_their_direct_deals_is_not_below() -> None:
    """b leads by what it did against c and d; a beat it, but lost to them."""
    others = [met(B, C, 300, 20), met(B, D, 300, 20), met(C, A, 300), met(D, A, 300), level(C, D)]
    found = known([A, B, C, D], [*(deal for part in others for deal in part), *met(A, B, DECKS)])
    assert found.elo[1] - found.elo[0] > FAR
    assert not found.apart.above[1, 0]
    assert found.apart.swept[0, 1]


def test_who_sits_together_without_a_duel_is_level() -> None:
    together = [RatedDeal(f"t{deck}", (A, B, C), (1, 1, 3)) for deck in range(DECKS)]
    assert known([A, B, C], together[1:], "single_loser").apart.level.sum() == 0
    found = known([A, B, C], together, "single_loser")
    assert found.apart.level[0, 1]
    assert found.apart.level.sum() == 2
    assert found.tiers() == [[0, 1], [2]]
    seldom = [RatedDeal("once", (A, B), (1, 2)), *together]
    assert known([A, B, C], seldom, "single_loser").apart.level.sum() == 0, "one duel wants as many decks again"
    more = [RatedDeal(f"m{deck}", (A, B, C), (1, 1, 3)) for deck in range(DECKS)]
    assert known([A, B, C], [*seldom, *more], "single_loser").apart.level[0, 1]
