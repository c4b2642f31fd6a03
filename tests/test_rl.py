"""The learning environments: PettingZoo's own conformance tests, and what docs/rl.md promises."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pettingzoo.test.api_test import api_test
from pettingzoo.test.seed_test import seed_test

from arena import rl
from arena.errors import ConfigError, IllegalAction
from arena.games import GAMES
from arena.games.avalanche import AvalancheState
from arena.games.durak_collecting import Collecting
from arena.games.smokestack import Position
from arena.luck import Stream, derive
from arena.rules import Game, Option, State, Value, complete_options, deal, replay

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "rl.md").read_text()

every_game = pytest.mark.parametrize("name", sorted(GAMES))
every_table = pytest.mark.parametrize(
    ("name", "seats"), [(name, p) for name in sorted(GAMES) for p in GAMES[name].seats]
)


def some_value(option: Option, luck: Stream) -> Value:
    values = [*option.values, option.low, option.high] if option.high >= option.low else option.values
    return values[luck.below(len(values))]


def some_options(game: Game, luck: Stream) -> dict[str, Any]:
    """Return a random value for each option, the default about every second time."""
    return {name: some_value(option, luck) for name, option in game.schema.items() if luck.below(2)}


def steps(env: rl.DealEnv, luck: Stream) -> Iterator[str]:
    """Yield the agent to act before each random step of a deal; after the last one nobody is selected."""
    while env.position.actors:
        agent = env.agent_selection
        yield agent
        legal = np.flatnonzero(env.observe(agent)["action_mask"])
        env.step(legal[luck.below(len(legal))])


# PettingZoo's tests


@pytest.mark.filterwarnings(
    # Only environments that PettingZoo ships may have dicts with a mask, which its documentation asks for.
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
    # It looks at the masks of finished agents too, which can do nothing.
    "ignore:Action mask numpy array is all zeros:UserWarning",
)
@every_table
def test_pettingzoo_finds_nothing_wrong(name: str, seats: int) -> None:
    api_test(rl.env(name, seats), num_cycles=300)  # type: ignore[no-untyped-call] # it is not annotated


@every_table
def test_two_environments_with_one_seed_are_alike(name: str, seats: int) -> None:
    seed_test(lambda: rl.env(name, seats), num_cycles=40)  # type: ignore[no-untyped-call] # it is not annotated


# Play


@every_table
def test_masks_infos_and_observations_agree_with_the_position(name: str, seats: int) -> None:
    luck = Stream(b"rl", "agree", name, seats)
    for seed in range(2):
        env = rl.env(name, seats, **some_options(GAMES[name], luck))
        env.reset(seed=seed)
        for count, actor in zip(range(250), steps(env, luck), strict=False):
            actors = env.position.actors
            assert actor == f"player_{actors[0]}"
            for seat in {actors[0], count % seats}:
                agent = f"player_{seat}"
                seen, legal = env.observe(agent), env.position.legal_actions(seat)
                assert env.infos[agent] == {"legal": legal}
                assert tuple(env.actions[i] for i in np.flatnonzero(seen["action_mask"])) == legal
                assert env.observation_space(agent).contains(seen)
                assert (seen["observation"].dtype, seen["action_mask"].dtype) == (np.float32, np.int8)


@every_table
def test_the_end_pays_by_places(name: str, seats: int) -> None:
    env, luck = rl.env(name, seats), Stream(b"rl", "end", name, seats)
    env.reset(seed=seats)
    for _ in steps(env, luck):
        assert not any(env.rewards.values())
        assert not any(env.terminations.values())
    outcome = env.position.outcome
    assert outcome is not None
    assert list(env.rewards.values()) == rl.rewards_of(outcome.places)
    assert all(env.terminations.values())
    assert not any(env.truncations.values())
    for agent in list(env.agents):
        assert not env.observe(agent)["action_mask"].any()
        assert env.observation_space(agent).contains(env.observe(agent))
    paid = []
    for _ in env.agent_iter():
        paid.append(env.last()[1])
        env.step(None)
    assert paid == rl.rewards_of(outcome.places)
    assert env.agents == []


@pytest.mark.parametrize(
    ("places", "rewards"),
    [
        ((1, 2), [1, -1]),
        ((1, 1), [0, 0]),
        ((1, 1, 3), [0.5, 0.5, -1]),
        ((3, 1, 2), [-1, 1, 0]),
        ((1, 2, 2, 2, 5), [1, 0, 0, 0, -1]),
    ],
)
def test_rewards_are_balanced(places: Sequence[int], rewards: list[float]) -> None:
    assert rl.rewards_of(places) == rewards
    assert sum(rewards) == 0


# Decks


def opening(env: rl.DealEnv) -> Mapping[str, object]:
    return env.position.observation(None)


@every_game
def test_a_seed_determines_the_decks_that_follow_it(name: str) -> None:
    env, other = rl.env(name, 3), rl.env(name, 3)
    env.reset(seed=5)
    series = [opening(env)]
    next(steps(env, Stream(b"rl", "series")))
    env.reset(options={"seats": 2})
    series.append(opening(env))
    other.reset(seed=6)
    assert opening(other) not in series
    other.reset(seed=5)
    assert opening(other) == series[0]
    other.reset()
    assert opening(other) == series[1] != series[0]


def test_decks_are_derived_as_documented() -> None:
    env, game = rl.env("durak", 2), GAMES["durak"]
    env.reset(seed=12)
    env.reset()
    key = derive(derive(b"12", "rl"), "rl", "durak", 2, 1)
    assert env.position == deal(game, complete_options(game, 2, {}), 2, key)[0]


def test_without_a_seed_decks_are_random() -> None:
    first, second = rl.env("avalanche"), rl.env("avalanche")
    assert opening(first) != opening(second)
    first.reset()
    second.reset()
    assert opening(first) != opening(second)


def test_decks_that_leave_nothing_to_decide_are_skipped() -> None:
    game, env = GAMES["smokestack"], rl.env("smokestack", 11)
    options, key = complete_options(game, 11, {}), derive(b"1", "rl")
    starts = [deal(game, options, 11, derive(key, "rl", "smokestack", 11, number))[0] for number in range(40)]
    assert any(not state.actors for state in starts)
    env.reset(seed=1)
    for state in starts:
        if state.actors:
            assert env.position == state
            env.reset()


# Secrets


def with_other_hidden_cards(state: State, seat: int) -> State:
    """Return the position with the cards that a seat cannot know in another order."""
    match state:
        case Position():
            return msgspec.structs.replace(state, stock=state.stock[::-1])
        case Collecting():
            return msgspec.structs.replace(
                state, deck=(*state.deck[: state.taken], *state.deck[: state.taken - 1 : -1])
            )
        case AvalancheState():
            return with_other_hands(state, seat)
    return state


def with_other_hands(state: AvalancheState, seat: int) -> AvalancheState:
    ones = [1 << 4 * place for place in range(14)]
    held = [
        one for hand in state.hands if hand is not state.hands[seat] for one in ones for _ in range(hand // one & 15)
    ]
    hidden = Stream(b"rl", "hidden").shuffled([*held, *state.deck[state.top :]])
    hands = list(state.hands)
    for other, count in enumerate(state.counts):
        if other != seat:
            hands[other], hidden = sum(hidden[:count]), hidden[count:]
    return msgspec.structs.replace(state, hands=tuple(hands), deck=(*state.deck[: state.top], *hidden))


@every_game
def test_hidden_cards_show_nowhere(name: str) -> None:
    luck = Stream(b"rl", "secrets", name)
    changed = 0
    for seats, seed in product((2, 4), range(2)):
        env = rl.env(name, seats)
        env.reset(seed=seed)
        for count, _ in enumerate(steps(env, luck)):
            position = env.position
            seat = count % seats
            agent = env.possible_agents[seat]
            before, legal = env.observe(agent), env.infos[agent]
            env.position = with_other_hidden_cards(position, seat)
            changed += env.position != position
            after = env.observe(agent)
            assert np.array_equal(before["observation"], after["observation"])
            assert np.array_equal(before["action_mask"], after["action_mask"])
            assert legal == {"legal": env.position.legal_actions(seat)}
            env.position = position
    assert changed > 20


def test_answers_in_a_window_show_when_it_closes() -> None:
    views = []
    for first, second in product(("sweep", "wait"), repeat=2):
        env = rl.env("smokestack", 3)
        env.reset(seed=3)
        seen: list[tuple[Any, ...]] = []
        for words in (first, second):
            env.step(env.actions.index(words))
            seen += [(*env.observe(agent).values(), env.infos[agent]) for agent in env.agents]
        assert env.agent_selection == "player_2"
        views.append(seen)
        env.step(env.actions.index("wait"))
        assert env.agent_selection == "player_0"
        assert env.observe("player_0")["observation"][env.layout["sweeps"]].sum() == 3 - ("sweep" in (first, second))
    for view in views[1:]:
        for one, other in zip(views[0], view, strict=True):
            assert np.array_equal(one[0], other[0])
            assert np.array_equal(one[1], other[1])
            assert one[2] == other[2]


# What the numbers say


def standing(name: str, seats: int, deck: str, played: Sequence[str], given: Mapping[str, Any]) -> rl.DealEnv:
    """Return an environment that stands where named cards and steps lead; the rest of the deck follows in order."""
    env, game = rl.env(name, seats, **given), GAMES[name]
    options = complete_options(game, seats, given)
    top, rest = deck.split(), list(game.deck(options))
    for card in top:
        rest.remove(card)
    state, _ = game.initial_state(options, seats, [*top, *rest], bytes(32))
    pairs = [step.split() for step in played]
    env.position, _ = replay(state, [(int(seat), action) for seat, action in pairs])
    return env


def cards_at(vector: Any) -> str:
    cards = GAMES["smokestack"].deck({})
    return " ".join(cards[place] for place in np.flatnonzero(vector))


def told(env: rl.DealEnv, seat: int) -> dict[str, Any]:
    """Return the fields of what a seat observes, as lists."""
    vector = env.observe(f"player_{seat}")["observation"]
    return {name: [round(float(value), 6) for value in vector[place]] for name, place in env.layout.items()}


def test_avalanche_in_numbers() -> None:
    deck = "2 2 4 4 4 4 4 4 4 4  2 2 5 5 5 5 5 5 5 5  * 7 7 7 7 7 7 7 7 9"
    env = standing("avalanche", 3, deck, ["0 play:2x1", "1 play:5x2"], {})
    seen = told(env, 1)
    assert seen["seat"] == [0, 1, 0]
    assert seen["turn"] == [0, 1, 0]
    assert seen["leader"] == [0, 0, 1]
    assert seen["last"] == [1, 0, 0]
    assert seen["last_play"] == [0, 0, 0, 0.25, *[0] * 10]
    assert seen["table"] == seen["laid"] == [0.125, 0, 0, 0.25, *[0] * 10]
    assert seen["hand"] == [0.25, 0, 0, 0.75, *[0] * 10]
    assert told(env, 2)["hand"] == [0, 0, 0, 0, 0, 1, 0, 0.125, 0, 0, 0, 0, 0, 0.125]
    assert seen["counts"] == pytest.approx([8 / 110, 10 / 110, 9 / 110], abs=1e-6)
    assert seen["piles"] == [0, 0, 0]
    assert (seen["dead"], seen["stock"]) == ([0], [pytest.approx(80 / 110, abs=1e-6)])


DURAK = """
As Ks Qs Js Ts 9s 8s 7s 6s Ac Kc Qc Jc Tc 9d 8c 6c Ah Kh Qh Jh Th 9c 9h 8h 7h 6h Ad Kd Qd Jd Td 8d 7d 6d 7c"""


def test_durak_in_numbers() -> None:
    played = ["0 capture:8c", "2 attack:6s", "0 beat:6s:9c", "2 pass", "1 throw:9d"]
    env = standing("durak", 3, DURAK, played, {})
    seen = told(env, 1)
    assert seen["phase"] == [0, 0, 1, 0]
    assert seen["turn"] == seen["defender"] == [0, 0, 1]
    assert seen["leader"] == [0, 1, 0]
    assert seen["passed"] == seen["out"] == [0, 0, 0]
    assert seen["trump"] == [1, 0, 0, 0]
    assert [cards_at(seen["hands"][place : place + 52]) for place in (0, 104)] == ["Ad", "8c"]
    assert [cards_at(seen[key]) for key in ("attacks", "beaten", "beats")] == ["9d", "6s", "9c"]
    assert sum(map(sum, (seen["open"], seen["drawn"], seen["discard"], seen["taking"], seen["deck"]))) == 0
    assert seen["limit"] == [pytest.approx(2 / 36, abs=1e-6)]
    assert seen["bout"] == [pytest.approx(1 / (36**2 + 72), abs=1e-6)]


def test_durak_collecting_in_numbers() -> None:
    env = standing("durak", 2, "8h 6h 6s 9h Th 7s Ah Kh", ["0 capture:8h"], {})
    seen = told(env, 1)
    assert (seen["phase"], seen["turn"], sum(seen["trump"])) == ([1, 0, 0, 0], [0, 1], 0)
    assert (cards_at(seen["drawn"]), cards_at(seen["open"])) == ("Kh", "6h Th Ah")
    assert [cards_at(seen["hands"][place : place + 52]) for place in (0, 52)] == ["6s 7s", "8h 9h"]
    assert seen["deck"] == [pytest.approx(28 / 36, abs=1e-6)]


def test_smokestack_in_numbers() -> None:
    deck = "2c 3c 4c 5d  2d 3d 4d 2s  Tc Qd 5h Ks  6c 6d 7h 9d  8c 8h Ts Jc"
    env = standing("smokestack", 2, deck, ["0 wait", "1 sweep", "0 double", "0 swap:2s:Qd"], {"sweeps": 2})
    seen = told(env, 1)
    assert (seen["window"], seen["swept"], seen["turn"]) == ([1], [0], [1, 0])
    stacks = [cards_at(seen["stacks"][place : place + 52]) for place in range(0, 208, 52)]
    assert stacks == ["2c 3c 4c 5d", "", "8c Jc 8h Ts", "6c 6d 9d 7h"]
    assert cards_at(seen["centre"]) == "Tc 5h 2s Ks"
    assert cards_at(seen["banked_cards"]) == "2d 3d 4d Qd"
    assert seen["banked_stacks"] == [0, 0.1]
    assert seen["sweeps"] == [0.5, 1]
    assert (seen["stock"], seen["turns"]) == ([0.8], [0.005])
    assert (seen["passes"], seen["stalled"], seen["refreshes"]) == ([0], [0], [0])


# What is refused


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("chess",), {}, "no game 'chess'; known are avalanche, durak, smokestack, smokestack-junior"),
        (("durak", 7), {}, "durak is played by 2 to 6 seats, not 7"),
        (("durak",), {"jokers": True}, "durak has no option 'jokers'; its options are chain, deck"),
        (("durak",), {"deck": 40}, "durak option deck cannot be 40; allowed: 36 | 52"),
        (("durak",), {"render_mode": "human"}, "render_mode cannot be 'human'; allowed: None | 'ansi'"),
    ],
)
def test_an_impossible_environment_is_refused(arguments: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        rl.env(*arguments, **options)


def test_a_preset_is_a_game_with_options() -> None:
    env = rl.env("smokestack-junior", 3, sweep="off")
    assert str(env) == "arena_smokestack_v1"
    assert "wait" not in env.infos["player_0"]["legal"]
    with pytest.raises(ConfigError, match="render_mode"):
        rl.env("smokestack-junior", render_mode="html")


@pytest.mark.parametrize("action", [-1, 2550, None, 0.0, "take", np.int64(2445)])
def test_an_illegal_action_changes_nothing(action: Any) -> None:
    env = rl.env("durak", render_mode="ansi")
    env.reset(seed=1)
    position, agent, text = env.position, env.agent_selection, env.render()
    with pytest.raises(IllegalAction, match=r"player_0 must play an index|may not 'take'"):
        env.step(action)
    assert (env.position, env.agent_selection, env.render()) == (position, agent, text)


@pytest.mark.parametrize("library", ["gymnasium", "pettingzoo"])
def test_without_the_extra_the_way_out_is_told(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"arena\.rl needs {library}: .*pip install -e '\.\[rl\]'"):
        runpy.run_path(str(ROOT / "arena" / "rl.py"))


# Texts


def test_render_tells_the_position_in_words() -> None:
    env = rl.env("durak", render_mode="ansi")
    env.reset(seed=1)
    assert str(env.render()).startswith("seats        2\nphase        collect\n")
    for _ in steps(env, Stream(b"rl", "render")):
        pass
    lines = str(env.render()).splitlines()
    assert re.fullmatch(r"player_\d [a-z:\w]+", lines[0])
    assert lines[-1] == f"places       {env.position.outcome.places if env.position.outcome else ()}"
    assert rl.env("durak").render() is None
    env.close()


def documented(kind: str, name: str) -> list[list[str]]:
    """Return the cells of the table about a game."""
    section = re.split(r"^##", TEXT.split(f"### {kind} of {name}\n")[1], flags=re.MULTILINE)[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]


@every_game
def test_the_action_list_is_documented(name: str) -> None:
    listed = rl.ACTIONS[name]
    assert list(listed) == sorted(set(listed))
    assert f"### Actions of {name}\n\n{len(listed)} actions.\n" in TEXT
    found = []
    for verb, group in groupby(enumerate(listed), key=lambda pair: pair[1].split(":")[0]):
        places = [place for place, _ in group]
        found.append((verb, " … ".join(str(place) for place in sorted({places[0], places[-1]}))))
    assert found == [(re.split("[:`]", cells[0])[1], cells[1]) for cells in documented("Actions", name)]


@every_table
def test_the_fields_of_an_observation_are_documented(name: str, seats: int) -> None:
    def number(size: str) -> int:
        return int(size.removesuffix("p") or 1) * (seats if size.endswith("p") else 1)

    env = rl.env(name, seats)
    table = documented("Observation", name)
    sizes = {key: place.stop - place.start for key, place in env.layout.items()}
    assert list(sizes.items()) == [(cells[0].strip("`"), number(cells[1])) for cells in table]
    assert env.observe("player_0")["observation"].shape == (sum(sizes.values()),)


def test_the_example_of_the_text_runs() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    exec(code, {})


def test_greedy_beats_random_in_the_example() -> None:
    example = runpy.run_path(str(ROOT / "docs" / "rl_example.py"))
    assert 0 < example["score"](6) <= 1
