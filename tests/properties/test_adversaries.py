"""Players made to stall: however they play, each deal ends within its bound, with the result that the rules state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from arena.games import GAMES
from arena.rules import Action, Options, Outcome, Seat, State, Value, complete_options, deal

Player = Callable[[State, Seat, Sequence[Action]], Action]
DEALS = 6


def prefer(*starts: str) -> Player:
    """Return a player that takes the first legal action beginning with the first of these that any begins with."""

    def choose(state: State, seat: Seat, legal: Sequence[Action]) -> Action:
        for start in starts:
            for action in legal:
                if action.startswith(start):
                    return action
        return legal[0]

    return choose


def swap_back(state: State, seat: Seat, legal: Sequence[Action]) -> Action:
    """Undo the swap before, or make one that can be undone; never sweep, never double."""
    swaps = [action for action in legal if action.startswith("swap:")]
    harmless = [swap for swap in swaps if not banks(state, seat, swap)]
    return harmless[0] if harmless else prefer("wait", "pass")(state, seat, legal)


def banks(state: State, seat: Seat, action: Action) -> bool:
    return any(event.kind == "bank" for event in state.apply(seat, action)[1])


def last(state: State, seat: Seat, legal: Sequence[Action]) -> Action:
    return legal[-1]


PLAYERS: dict[str, dict[str, Player]] = {
    "smokestack": {
        "passes": prefer("wait", "pass"),
        "swaps back and forth": swap_back,
        "sweeps at once": prefer("sweep", "pass"),
        "doubles": prefer("double", "wait", "pass"),
        "last": last,
    },
    "avalanche": {
        "snow": prefer("snow"),
        "small": prefer("play:2", "play:3", "play:4"),
        "jokers first": prefer("play:*"),
        "last": last,
    },
    "durak": {
        "takes": prefer("take", "pass", "attack"),
        "throws everything": prefer("throw", "take"),
        "passes": prefer("pass", "take"),
        "transfers": prefer("transfer", "throw", "take"),
        "beats": prefer("beat", "throw"),
        "last": last,
    },
}
OPTIONS: dict[str, list[Options]] = {
    "smokestack": [{}, {"sweep": "off"}, {"sweep": "own_turn", "sweeps": 99}, {"sweeps": 99}, {"sweep_scope": "all"}],
    "avalanche": [{}, {"open_pile": "last_player"}],
    "durak": [{}, {"transfer": True}, {"transfer": True, "max_attack": "none"}, {"score": "places"}, {"deck": 36}],
}
CASES = [
    pytest.param(game, options, player, id=f"{game} {player} {options}")
    for game, players in PLAYERS.items()
    for options in OPTIONS[game]
    for player in players
]


def play_out(name: str, options: dict[str, Value], seats: int, key: bytes, player: Player) -> tuple[Outcome, int]:
    """Play a deal to its end; fail if it is longer than its bound."""
    game = GAMES[name]
    bound = game.max_decisions(options, seats)
    state, _ = deal(game, options, seats, key)
    count = 0
    while actors := state.actors:
        seat = actors[0]
        state, _ = state.apply(seat, player(state, seat, state.legal_actions(seat)))
        count += 1
        assert count <= bound
    assert state.outcome is not None
    return state.outcome, count


@pytest.mark.parametrize(("name", "given", "player"), CASES)
def test_a_stalling_player_ends_within_the_bound(name: str, given: Options, player: str) -> None:
    seats = GAMES[name].seats
    for number, count in enumerate((seats[0], seats[1], seats[len(seats) // 2], seats[-1])):
        options = complete_options(GAMES[name], count, given)
        outcome, _ = play_out(name, options, count, bytes([number]) * 32, PLAYERS[name][player])
        assert min(outcome.places) == 1


@pytest.mark.parametrize("seats", [2, 5, 11])
def test_a_smokestack_of_passes_is_stalled_by_the_tenth_refresh(seats: int) -> None:
    """S8: ten refreshes since the last swap, each after as many passes as there are seats."""
    options = complete_options(GAMES["smokestack"], seats, {"sweep": "off"})
    outcome, count = play_out("smokestack", options, seats, b"\1" * 32, prefer("pass"))
    assert (outcome.reason, count) == ("stalled", 10 * seats)


@pytest.mark.parametrize("seats", [2, 3])
def test_a_smokestack_of_idle_swaps_ends_by_the_turn_limit(seats: int) -> None:
    """S8: a hundred turns a seat."""
    options = complete_options(GAMES["smokestack"], seats, {"sweep": "off", "double": "off"})
    outcome, count = play_out("smokestack", options, seats, b"\2" * 32, swap_back)
    assert (outcome.reason, count) == ("turn limit", 100 * seats)


@pytest.mark.parametrize("seats", [2, 4, 6])
def test_an_avalanche_of_snow_uses_up_the_stock_first(seats: int) -> None:
    """A10: 220 - 10p turns at the most; snowfall alone takes as many as the stock holds."""
    options = complete_options(GAMES["avalanche"], seats, {})
    _, count = play_out("avalanche", options, seats, b"\3" * 32, prefer("snow"))
    assert 110 - 10 * seats < count <= 220 - 10 * seats


@pytest.mark.parametrize("seats", [3, 4, 6])
def test_a_durak_of_takes_is_stalled_after_two_bouts_a_card(seats: int) -> None:
    """D14: after 2 * deck bouts in a row that end in a take the deal stops, if nobody could go out."""
    options = complete_options(GAMES["durak"], seats, {})
    reasons = set()
    for number in range(DEALS):
        outcome, _ = play_out("durak", options, seats, bytes([number]) * 32, prefer("take", "pass", "attack"))
        reasons.add(outcome.reason)
    assert reasons <= {"stalled", "durak"}
    assert "stalled" in reasons
