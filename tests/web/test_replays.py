"""What a replay's page holds: every step, and for each seat what it saw and nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.games import GAMES
from arena.rules import Seat
from arena.store import matches, overview
from arena.store.database import open_reader
from arena.web import pages, rendering
from arena.web.page import Page, Source, deal_name
from arena.web.positions import changes, views
from arena.web.rendering import Frame
from arena.web.replays import embedded
from tests.properties.test_games import tables, walk

every_game = pytest.mark.parametrize("name", sorted(GAMES))
values = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=2), lambda inner: st.lists(inner, max_size=4)
)


def apply(seen: dict[str, Any], change: list[Any]) -> None:
    """Do what the player does with a change."""
    path, *what = change
    place: Any = seen
    for key in path[:-1]:
        place = place[key]
    if len(what) == 1:
        place[path[-1]] = json.loads(json.dumps(what[0]))
    else:
        start, left, new = what
        place[path[-1]][start : start + left] = json.loads(json.dumps(new))


def position(told: dict[str, Any], seat: Seat | None, number: int) -> dict[str, Any]:
    """Return what a view sees after a step, as the player puts it together."""
    seen: dict[str, Any] = {}
    for part in (told["shared"], told["spectator"] if seat is None else told["seats"][seat]):
        at = 0
        for after, made in part:
            at += after
            for one in made if at <= number else ():
                apply(seen, one)
    return seen


def plain(value: object) -> Any:
    return json.loads(json.dumps(value))


@every_game
@given(data=st.data())
def test_each_seat_sees_its_observation_and_nothing_else(name: str, data: st.DataObject) -> None:
    table = data.draw(tables(name))
    steps = walk(table, table.random_policy(), data.draw(st.sampled_from((8, 40, 250))))
    states = [table.start()[0], *(state.apply(*step)[0] for state, step, _ in steps)]
    told = plain(views(states, table.seats))
    for number in data.draw(st.sets(st.integers(0, len(states) - 1), min_size=1, max_size=5)):
        for seat in (None, *range(table.seats)):
            assert position(told, seat, number) == plain(states[number].observation(seat))


@given(old=st.lists(values, max_size=5), new=st.lists(values, max_size=5))
def test_changes_turn_one_value_into_the_other(old: list[Any], new: list[Any]) -> None:
    seen = plain({"x": old})
    for change in changes(old, new, ["x"]):
        apply(seen, plain(change))
    assert seen == {"x": new}


def some_replays(whole: Path, *, stderr: bool = False) -> list[Page]:
    """Return the newest replays with a fault, and one of each tournament's games."""
    with open_reader(whole) as db:
        source = Source(db, stderr=stderr)
        deals = [*overview.published_deals(db, faulty=True, last=12), (1, 0, 0), (7, 0, 0), (13, 0, 0)]
        found = [pages.page(source, f"r/{deal_name(*deal)}") for deal in deals]
        return [page for page in found if page is not None]


@pytest.fixture(scope="module")
def replays(whole: Path) -> list[Page]:
    return some_replays(whole)


def text_of(page: Page) -> str:
    return rendering.html(page, "r/x.html", Frame([], lambda _: True, "")).decode()


def test_the_twin_has_every_step_with_its_legal_actions_and_its_ask(whole: Path, replays: list[Page]) -> None:
    with open_reader(whole) as db:
        for page in replays:
            twin = json.loads(rendering.json(page))
            record = matches.deal(db, *map(int, twin["deal"].split("-")))
            assert record is not None
            assert [one["action"] for one in twin["moments"]] == [None, *(step.action for step in record.steps)]
            for step in twin["moments"][1:]:
                assert step["action"] in step["legal"]
                assert (step["ask"] is None) == (step["elapsed_us"] < 0)


def test_a_failed_bot_is_shown_with_what_it_could_do_and_sent(replays: list[Page]) -> None:
    faults = [fault for page in replays for fault in page.data["faults"]]
    assert {fault["fault"] for fault in faults} == {"illegal/action", "crash/exit"}
    for fault in faults:
        assert fault["ask"].at == fault["step"]
        assert fault["legal"]
        assert fault["sent"]
        assert bool(fault["rule"]) == (fault["fault"] == "illegal/action")


def test_stderr_is_shown_only_where_it_was_asked_for(whole: Path, replays: list[Page]) -> None:
    for allowed, found in ((False, replays), (True, some_replays(whole, stderr=True))):
        texts = [text_of(page) + rendering.json(page).decode() for page in found]
        assert any("Show the end of its stderr" in text for text in texts) == allowed
        assert any("Traceback" in text for text in texts) == allowed


def test_what_bots_said_does_not_leave_the_data_of_the_player(replays: list[Page]) -> None:
    data = plain(replays[0].data | {"positions": None, "faults": [], "moments": []})
    data["seats"][0]["name"] = "</script><b>\x1b\u202e"
    text = embedded(data)
    assert "<" not in text
    assert json.loads(text)["names"][0] == "</script><b>··"


def test_a_replay_is_small_enough_for_a_slow_line(replays: list[Page]) -> None:
    for page in replays:
        assert len(gzip.compress(text_of(page).encode())) < 150_000
