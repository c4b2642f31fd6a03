"""The functions of arena/rules.py, shown on a game of their own: seats take turns to take stones, the last one wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from arena.cards import deck_order
from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES
from arena.luck import derive
from arena.rules import (
    Action,
    Data,
    Event,
    Game,
    Option,
    Options,
    Outcome,
    OutcomeType,
    Seat,
    State,
    bot_seed,
    complete_options,
    deal,
    places_by_points,
    replay,
    rule_set_id,
    show_value,
)


class Stones(msgspec.Struct, frozen=True):
    left: int
    turn: Seat
    seed: bytes

    @property
    def actors(self) -> tuple[Seat, ...]:
        return (self.turn,) if self.left else ()

    @property
    def outcome(self) -> Outcome | None:
        points = (1, 0) if self.turn else (0, 1)
        return None if self.left else Outcome(places_by_points(points), points, "no stone left")

    def legal_actions(self, seat: Seat) -> tuple[Action, ...]:
        return tuple(str(n) for n in (1, 2) if n <= self.left) if seat in self.actors else ()

    def observation(self, seat: Seat | None) -> Data:
        return {"left": self.left}

    def apply(self, seat: Seat, action: Action) -> tuple[Stones, tuple[Event, ...]]:
        if action not in self.legal_actions(seat):
            raise IllegalAction(action)
        left = self.left - int(action)
        return Stones(left, 1 - seat, self.seed), (
            Event("take", {"seat": seat}),
            Event("hint", {"left": left}, (seat,)),
        )


class TakeStones(msgspec.Struct, frozen=True):
    name: str = "stones"
    version: int = 3
    seats: range = range(2, 4)

    @property
    def schema(self) -> Mapping[str, Option]:
        return {
            "misere": Option(values=(False, True)),
            "heap": Option(values=("none",), low=0, high=9, default=lambda seats: seats + 3),
            "limit": Option(low=1, high=5, default=lambda seats: 2),
        }

    def deck(self, options: Options) -> tuple[str, ...]:
        return ("a", "b", "c", "d", "e")

    def initial_state(
        self, options: Options, seats: int, deck: Sequence[str], seed: bytes
    ) -> tuple[Stones, tuple[Event, ...]]:
        return Stones(5, 0, seed), (Event("deck", {"cards": tuple(deck)}),)

    def outcome_type(self, options: Options) -> OutcomeType:
        return "ranking"

    def max_decisions(self, options: Options, seats: int) -> int:
        return 5

    def house_action(self, state: State, seat: Seat) -> Action:
        return "1"


STONES: Game = TakeStones()
KEY = bytes(range(32))


def test_defaults_are_filled_in_by_number_of_seats_and_in_order() -> None:
    assert list(complete_options(STONES, 2, {}).items()) == [("heap", 5), ("limit", 2), ("misere", False)]
    assert complete_options(STONES, 3, {})["heap"] == 6


def test_given_options_are_kept() -> None:
    options = complete_options(STONES, 2, {"misere": True, "heap": "none", "limit": 5})
    assert options == {"heap": "none", "limit": 5, "misere": True}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"heap": 10}, "stones option heap cannot be 10; allowed: none | 0 ... 9"),
        ({"heap": "all"}, "stones option heap cannot be 'all'; allowed: none | 0 ... 9"),
        ({"heap": True}, "stones option heap cannot be True"),
        ({"misere": 1}, "stones option misere cannot be 1; allowed: false | true"),
        ({"limit": 0}, r"stones option limit cannot be 0; allowed: 1 \.\.\. 5$"),
        ({"wild": 1}, "stones has no option 'wild'; its options are heap, limit, misere"),
    ],
)
def test_impossible_options_are_refused(given: Options, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        complete_options(STONES, 2, given)


@pytest.mark.parametrize("seats", [1, 4])
def test_an_impossible_number_of_seats_is_refused(seats: int) -> None:
    with pytest.raises(ConfigError, match=f"stones is played by 2 to 3 seats, not {seats}"):
        complete_options(STONES, seats, {})


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"not 9; .*'wild'; .*heap cannot be 77"):
        complete_options(STONES, 9, {"wild": 1, "heap": 77})


def test_a_rule_set_id_names_every_option_in_alphabetical_order() -> None:
    assert rule_set_id(STONES, complete_options(STONES, 2, {})) == "stones/3{heap=5,limit=2,misere=false}"
    assert rule_set_id(STONES, {"b": "x", "a": True}) == "stones/3{a=true,b=x}"


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (7, "7"), ("none", "none")])
def test_show_value(value: bool | int | str, text: str) -> None:
    assert show_value(value) == text


def test_a_deal_depends_on_its_deck_key_alone() -> None:
    state, events = deal(STONES, {}, 2, KEY)
    assert state == Stones(5, 0, derive(KEY, "deal"))
    assert events == (Event("deck", {"cards": deck_order(STONES.deck({}), KEY)}),)


def test_replay_returns_the_last_position_and_all_events() -> None:
    state, _ = deal(STONES, {}, 2, KEY)
    last, events = replay(state, [(0, "2"), (1, "2"), (0, "1")])
    assert last.outcome == Outcome((1, 2), (1, 0), "no stone left")
    assert [event.message() for event in events[:2]] == [{"kind": "take", "seat": 0}, {"kind": "hint", "left": 3}]
    assert len(events) == 6
    assert replay(state, []) == (state, ())


def test_replay_refuses_an_illegal_step() -> None:
    with pytest.raises(IllegalAction):
        replay(deal(STONES, {}, 2, KEY)[0], [(0, "1"), (0, "1")])


def test_bot_seeds_come_from_deck_and_seat() -> None:
    assert [bot_seed(KEY, seat) for seat in (0, 1)] == [373447197565347, 414709666197252]
    assert bot_seed(KEY, 0) != bot_seed(bytes(32), 0)


@pytest.mark.parametrize(
    ("points", "places"),
    [((3, 1, 2), (1, 3, 2)), ((5, 5, 1), (1, 1, 3)), ((0, 4, 4), (3, 1, 1)), ((2, 2), (1, 1)), ((), ())],
)
def test_places_by_points(points: tuple[int, ...], places: tuple[int, ...]) -> None:
    assert places_by_points(points) == places


@pytest.mark.parametrize("name", sorted(GAMES))
def test_a_registered_game_describes_itself(name: str) -> None:
    game = GAMES[name]
    assert game.name == name
    assert game.version >= 1
    for seats in game.seats:
        options = complete_options(game, seats, {})
        assert list(options) == sorted(game.schema)
        assert game.outcome_type(options) in ("ranking", "single_loser")
        assert game.max_decisions(options, seats) > 0
    assert rule_set_id(game, options).startswith(f"{name}/{game.version}{{")
