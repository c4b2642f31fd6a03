"""What a bot must do before it is kept: start, and play a short match of each of its games."""

from __future__ import annotations

import pytest

from arena.check import check_spec, first_fault
from arena.errors import FaultKind, InfraError
from arena.games import GAMES
from arena.records import Clock
from tests.fakes_executor import FakeLanes, refs, use_fake_bots


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.mark.parametrize("game", sorted(GAMES))
def test_the_match_is_always_the_same_one_against_itself(game: str) -> None:
    (bot,) = refs(1)
    spec = check_spec(bot, game, 3, Clock(decision_ms=9))
    assert spec == check_spec(bot, game, 3, Clock(decision_ms=9))
    assert (spec.id, spec.bots, len(spec.decks), spec.legs) == (3, (bot, bot), 1, ((0, 1),))
    assert spec.clock.decision_ms == 9
    assert len({check_spec(bot, name, 1, Clock()).decks for name in GAMES}) == len(GAMES)


async def test_a_clean_bot_plays_all_its_games() -> None:
    lanes = FakeLanes()
    assert await first_fault(refs(1)[0], sorted(GAMES), lanes) is None
    assert lanes.played == [1, 2, 3]


async def test_the_first_game_with_a_fault_ends_it() -> None:
    (bot,) = refs(1, {0: ("startup", 1)})
    lanes = FakeLanes()
    found = await first_fault(bot, ["durak", "avalanche"], lanes, Clock(startup_ms=5))
    assert found is not None
    game, fault = found
    assert (game, fault.kind, fault.deck, fault.leg) == ("durak", FaultKind.STARTUP, 0, 0)
    assert lanes.played == [1]


async def test_a_void_match_is_not_the_bots_fault() -> None:
    lanes = FakeLanes()
    lanes.voids = {2: 1}
    with pytest.raises(InfraError, match="the lane died"):
        await first_fault(refs(1)[0], sorted(GAMES), lanes)
