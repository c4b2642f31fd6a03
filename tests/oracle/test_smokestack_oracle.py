"""Smokestack as `arena.games` plays it against the oracle: random deals, ends that meet, whole trees of small deals."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from arena.games import GAMES
from arena.rules import Value, complete_options
from tests.oracle.compare import Pair, compare, count, random_pair, start, walk
from tests.oracle.smokestack import Table

GAME = GAMES["smokestack"]
SEED = bytes(range(32))
EVERYTHING = {
    *(f"event {kind}" for kind in ("deal", "bank", "window", "sweep", "swap", "double", "pass", "refresh")),
    *(f"action {kind}" for kind in ("sweep", "wait", "double", "pass", "swap")),
    *(f"reason {reason}" for reason in ("stock", "stalled", "turn limit")),
}
"""All that can happen, by protocol.md and S8."""


def dealt(seats: int, named: str, options: Mapping[str, Value]) -> Pair:
    """Deal the named cards, the first one on top, and the rest of the deck in sorted order."""
    complete = complete_options(GAME, seats, options)
    top = named.split()
    rest = [card for card in GAME.deck(complete) if card not in top]
    return start(GAME, Table, complete, seats, [*top, *rest], SEED)


def reason(pair: Pair) -> str | None:
    return pair.state.outcome.reason if pair.state.outcome else None


@pytest.mark.slow
def test_a_thousand_random_deals_agree() -> None:
    assert compare("smokestack", Table, 1000, "ci", longest=60).keys() == EVERYTHING


@pytest.mark.nightly
@pytest.mark.parametrize("lot", range(20))
def test_twenty_thousand_random_deals_agree_to_their_ends(lot: int) -> None:
    assert compare("smokestack", Table, 1000, f"nightly {lot}").keys() == EVERYTHING


TWO = "2c 3d 4h 6s  7c 8d 9h Js  Tc Qd 5h Ks"
ELEVEN = """
2c 2d 7h 9s  Jc Qd Kh As  Qc Kd Ah 2s  3c 5c 7c Ad  3d 5d 7d 9h  3h 5h 8s Tc  3s 5s 8c Td  4c 6c 8d 2h  4d 6d 8h Ts
4h 6h 9c Jd  Js 6s 4s Ac  Qs 7s Kc Ks  Qh Th 9d Jh"""
"""Seat 0 has a pair, seat 10 and the centre have four spades, the last four cards are a straight."""


def test_the_tenth_refresh_in_the_last_turn_is_a_stall() -> None:
    pair = dealt(2, TWO, {"sweep": "off"})
    for turn in range(180):
        pair.apply(turn % 2, ("swap:2c:Tc", "swap:7c:Qd", "swap:Tc:2c", "swap:Qd:7c")[turn % 4])
    for turn in range(20):
        assert reason(pair) is None
        pair.apply(turn % 2, "pass")
    assert reason(pair) == "stalled"


def test_the_ninth_refresh_in_the_last_turn_is_the_turn_limit() -> None:
    pair = dealt(2, TWO, {"sweep": "off"})
    for turn in range(182):
        pair.apply(turn % 2, ("swap:2c:Tc", "swap:7c:Qd", "swap:Tc:2c", "swap:Qd:7c")[turn % 4])
    for turn in range(18):
        assert reason(pair) is None
        pair.apply(turn % 2, "pass")
    assert reason(pair) == "turn limit"


def test_the_last_stock_in_the_last_turn_ends_by_stock() -> None:
    pair = dealt(11, ELEVEN, {"sweep": "off"})
    for turn in range(1099):
        shuttle = ("swap:2c:Kc", "swap:Kc:2c")[turn // 11 % 2]
        pair.apply(turn % 11, shuttle if turn % 11 == 0 else "pass")
    assert reason(pair) is None
    pair.apply(10, "swap:Ac:Qs")
    assert reason(pair) == "stock"


PAIRS = "7c 7d 4h 6s  2c 2d 4c 9h  Tc 5c 5h Ks"
ONE_PAIR = "7c 7d 4h 6s  2c 3d 4c 9h  Tc 5c 5h Ks"
NEARLY_BANKED = "7c 7d 4h 6s  2c 3c 4c 9h  Tc 5c 5h Ks"
BANKED = "2c 3c 4c 5c  2d 3d 4d 5d  2h 3h 4h 5h"
NO_SWAPS = "double pass sweep wait"
TREES = [
    ("swaps", 2, TWO, {"sweep": "off"}, 3, "", (5220, 4333), {}),
    ("all actions", 2, NEARLY_BANKED, {"sweep": "own_turn", "sweeps": 2}, 2, "", (377, 377), {}),
    ("doubles", 2, PAIRS, {"sweep": "off"}, None, NO_SWAPS, (1066, 1066), {"stalled": 121}),
    ("sweeps", 2, PAIRS, {"sweep": "own_turn", "double": "off"}, None, NO_SWAPS, (1251, 141), {"stalled": 131}),
    ("windows", 3, PAIRS, {"sweep_scope": "all"}, 6, NO_SWAPS, (1111, 89), {}),
    ("banked out", 9, BANKED, {"sweep": "off"}, None, "", (1, 1), {"stock": 1}),
    ("last stock", 11, ELEVEN, {"sweep": "own_turn"}, 2, "", (343, 343), {"stock": 1}),
]
LARGER_TREES = [
    ("doubles and sweeps", 2, ONE_PAIR, {"sweep": "own_turn"}, None, NO_SWAPS, (12976, 1040), {"stalled": 1681}),
    ("more windows", 3, NEARLY_BANKED, {"sweep_scope": "all"}, 9, NO_SWAPS, (8251, 187), {}),
    ("more last stock", 11, ELEVEN, {"sweep": "own_turn"}, 3, "", (6140, 6140), {"stock": 1}),
]
"""Name, seats, deck, options, depth, kinds of actions, numbers of sequences and of positions, ends by reason."""


@pytest.mark.parametrize(
    ("seats", "named", "options", "depth", "kinds", "sizes", "ends"),
    [pytest.param(*tree, id=name) for name, *tree in TREES]
    + [pytest.param(*tree, id=name, marks=pytest.mark.nightly) for name, *tree in LARGER_TREES],
)
def test_trees_agree_and_have_the_pinned_size(
    seats: int,
    named: str,
    options: dict[str, Value],
    depth: int | None,
    kinds: str,
    sizes: tuple[int, int],
    ends: dict[str, int],
) -> None:
    counts = count(walk(dealt(seats, named, options), depth, kinds.split()))
    assert counts == {"sequences": sizes[0], "positions": sizes[1], **ends}


@pytest.mark.parametrize("seats", range(2, 12))
@pytest.mark.parametrize("double", ["pair", "off"])
@pytest.mark.parametrize("sweeps", [0, 1, 7, 99])
def test_the_bound_on_actions_is_that_of_s8(seats: int, double: str, sweeps: int) -> None:
    def bound(sweep: str) -> int:
        options: dict[str, Value] = {"sweep": sweep, "double": double, "sweeps": sweeps}
        return GAME.max_decisions(complete_options(GAME, seats, options), seats)

    turns_and_doubles = 100 * seats + (0 if double == "off" else min(seats, 12 - seats))
    assert bound("off") == turns_and_doubles
    assert bound("anytime") == turns_and_doubles + (100 * seats * seats if sweeps > 0 else 0)
    assert bound("own_turn") == turns_and_doubles + min(100 * seats, seats * sweeps)


def test_the_house_waits_and_passes() -> None:
    rng = random.Random("house")
    for _ in range(50):
        pair = random_pair(rng, GAME, Table)
        for _ in range(20):
            if not pair.state.actors:
                break
            seat = rng.choice(pair.state.actors)
            assert GAME.house_action(pair.state, seat) == ("wait" if "wait" in pair.table.legal(seat) else "pass")
            pair.apply(seat, rng.choice(pair.table.legal(seat)))
