"""The player of replays as people use it, in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from arena.explain import dialogue
from arena.plan import plan_of
from arena.store import matches, overview, tournaments
from arena.store.database import open_reader
from arena.web.page import Source
from arena.web.writing import write_pages
from tests.web.test_browser import AXE, looking

pytestmark = pytest.mark.slow

Key = tuple[int, int, int]


def newest(whole: Path, game: str, *, faulty: bool = False) -> Key:
    """Return the newest deal of a game in which a bot failed, or none, that has some steps."""
    with open_reader(whole) as db:
        failed = overview.published_deals(db, faulty=True)
        for key in failed if faulty else [one for one in overview.published_deals(db) if one not in failed]:
            stored, played = matches.match(db, key[0]), matches.deal(db, *key)
            if stored and stored.game == game and played and len(played.steps) > 12:
                return key
    raise AssertionError(game)


def address(port: int, key: Key, rest: str = "") -> str:
    return f"http://127.0.0.1:{port}/r/{'-'.join(map(str, key))}.html{rest}"


@pytest.fixture
def page(browser: Browser, whole: Path, port: int) -> Iterator[Page]:
    """The replay of a deal of avalanche in which nobody failed."""
    with looking(browser) as opened:
        opened.goto(address(port, newest(whole, "avalanche")))
        yield opened


def where(page: Page) -> int:
    return int(page.locator("#where").inner_text().split()[1])


def last(page: Page) -> int:
    return int(page.locator("#slider").get_attribute("max") or 0)


def test_keys_step_and_jump(page: Page) -> None:
    for key, step in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", last(page)), ("Home", 0)):
        page.keyboard.press(key)
        assert where(page) == step
        assert page.locator("tr[aria-current]").get_attribute("id") == f"step-{step}"
        assert page.locator("#told").inner_text().startswith(f"Step {step} of ")
        assert page.url.endswith(f"#step={step}")


def test_buttons_slider_and_steps_move_too(page: Page) -> None:
    page.get_by_role("button", name="Last step").click()
    assert where(page) == last(page)
    assert page.locator("#who").inner_text() == "The deal is over."
    page.get_by_role("button", name="Step back").click()
    assert where(page) == last(page) - 1
    page.locator("#slider").fill("5")
    assert where(page) == 5
    page.locator("#step-7 td").first.click()
    assert where(page) == 7
    page.locator("#slider").focus()
    page.keyboard.press("ArrowRight")
    assert where(page) == 8


def test_space_plays_and_pauses(page: Page) -> None:
    page.locator("#speed").select_option("8")
    page.locator("h1").click()
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Pause"
    assert page.locator("#told").get_attribute("aria-live") == "off"
    page.locator("#where", has_text=re.compile(r"step ([3-9]|\d\d)")).wait_for(timeout=5000)
    page.keyboard.press("Space")
    assert page.locator("#play").inner_text() == "Play"
    assert page.url.endswith(f"#step={where(page)}")


def test_a_seat_sees_no_more_than_it_may(page: Page) -> None:
    page.keyboard.press("End")
    page.keyboard.press("Home")
    hands = page.locator(".seat .held")
    assert page.locator(".held .backs").count() == 0
    page.locator("#view").select_option("1")
    assert page.locator(".held .backs").count() == hands.count() - 1
    assert page.locator(".held .backs .face:not(.down)").count() == 0
    assert page.locator(".middle .tiny").count() == 0
    shown = page.locator("#step-0 .text div:visible").all_inner_texts()
    assert len(shown) == 1
    own = page.locator(".bottom .plate b").inner_text().removeprefix("▶ ")
    assert shown[0].startswith(f"{own} is dealt ")
    assert page.locator("#legal li").count() == 0  # seat 0 is to act
    assert page.url.endswith("#step=0&seat=1")
    page.keyboard.press("ArrowRight")
    assert page.locator("#legal li").count() > 0


def test_what_a_bot_did_wrong_is_hidden_from_others_as_it_names_cards(browser: Browser, whole: Path, port: int) -> None:
    with open_reader(whole) as db:
        found = [one for one in matches.faults(db) if "legal: play:" in one.fault.text]
        told = overview.published_matches(db, {one.match for one in found})
    one = next(one for one in found if one.match in told)
    words = re.compile(re.escape(one.fault.text))
    other = int(one.fault.seat == 0)
    with looking(browser) as page:
        page.goto(address(port, (one.match, one.fault.deck, one.fault.leg)))
        banner = page.locator(".banner", has_text=words)
        assert words.search(banner.inner_text())
        page.locator("#view").select_option(str(other))
        assert not words.search(page.locator("main").inner_text())
        assert f"failed at step {one.fault.step}: illegal/action" in banner.inner_text()
        page.locator("#view").select_option(str(one.fault.seat))
        assert words.search(banner.inner_text())


def test_answers_in_an_open_window_are_hidden_from_others(browser: Browser, whole: Path, port: int) -> None:
    with looking(browser) as page:
        page.goto(address(port, newest(whole, "smokestack"), "#step=1&seat=1"))
        assert "hidden" not in page.locator("#step-2 td").nth(2).inner_text()
        assert not page.locator("#step-1 td span").first.is_visible()
        assert page.locator("#told").inner_text().endswith("a seat has answered in the window")
        page.locator("#view").select_option("")
        assert page.locator("#step-1 td span").first.is_visible()


def test_a_link_leads_to_a_step_in_a_view(browser: Browser, whole: Path, port: int) -> None:
    key = newest(whole, "durak")
    with looking(browser) as page:
        for link, step, seat in (
            ("#step=12&seat=1", 12, "1"),
            ("#step-4", 4, ""),
            ("#step=99999&seat=77", -1, ""),
            ("#step=x&seat=%3Cb%3E", 0, ""),
            ("#nothing", 0, ""),
        ):
            page.goto("about:blank")
            page.goto(address(port, key, link))
            assert where(page) == (last(page) if step < 0 else step)
            assert page.locator("#view").input_value() == seat
        page.evaluate("location.hash = '#step=3&seat=0'")
        page.locator("#where", has_text="step 3 of").wait_for(timeout=5000)
        assert page.locator("#here").get_attribute("href") == "#step=3&seat=0"


def test_the_next_fault_is_found(browser: Browser, whole: Path, port: int) -> None:
    key = newest(whole, "avalanche", faulty=True)
    with open_reader(whole) as db:
        found = [one.fault for one in matches.faults(db, number=key[0])]
    steps = sorted({fault.step for fault in found if (fault.deck, fault.leg) == key[1:]})
    with looking(browser) as page:
        page.goto(address(port, key))
        for step in (*steps, steps[0]):
            page.keyboard.press("f")
            assert where(page) == step
        assert page.locator(".seat.failed").count() >= 1
        assert "failed here" in page.locator("#who").inner_text()
        page.keyboard.press("Home")
        page.locator(".banner a").first.click()
        assert where(page) in steps


@pytest.mark.parametrize(
    ("game", "faulty"), [("avalanche", False), ("avalanche", True), ("durak", False), ("smokestack", False)]
)
def test_what_was_said_is_what_the_referee_sent(
    browser: Browser, whole: Path, port: int, game: str, *, faulty: bool
) -> None:
    key = newest(whole, game, faulty=faulty)
    with open_reader(whole) as db:
        stored, played = matches.match(db, key[0]), matches.deal(db, *key)
        assert stored is not None
        assert played is not None
        faults = [one.fault for one in matches.faults(db, number=key[0])]
        clock = plan_of(tournaments.get(db, stored.tournament)).clock
    own = [one for one in faults if (one.deck, one.leg) == key[1:]]
    talks = [dialogue(stored, played, seat, own, clock)[0] for seat in range(len(played.seating))]
    asks = [iter([one.message for one in talk if one.message.get("type") == "ask"]) for talk in talks]
    answers = [iter([one.message for one in talk if one.sender == "bot"]) for talk in talks]
    with looking(browser) as page:
        page.goto(address(port, key))
        for number, step in enumerate(played.steps[:40]):
            assert where(page) == number
            if step.elapsed_us >= 0:  # else the house played
                page.locator("#said").evaluate("said => { said.open = true; }")
                assert json.loads(page.locator("#asked").text_content() or "") == next(asks[step.seat])
                assert json.loads(page.locator("#answered").text_content() or "") == next(answers[step.seat])
            page.keyboard.press("ArrowRight")


@pytest.fixture
def file(whole: Path, tmp_path: Path) -> Path:
    """A replay that was written without a server."""
    path = f"r/{'-'.join(map(str, newest(whole, 'smokestack')))}.html"
    with open_reader(whole) as db:
        write_pages(Source(db), tmp_path, [path], 1.0)
    return tmp_path / path


def test_a_deal_is_played_from_a_file(browser: Browser, file: Path) -> None:
    with looking(browser, reduced_motion="reduce") as page:
        page.goto(file.as_uri() + "#step=2")
        assert where(page) == 2
        page.keyboard.press("ArrowRight")
        assert page.locator(".face").count() > 4


def test_without_scripts_the_steps_stay(browser: Browser, file: Path) -> None:
    with looking(browser, java_script_enabled=False) as page:
        page.goto(file.as_uri())
        assert page.locator(".steps tbody tr").count() > 10
        assert not page.locator("#player").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_player(
    browser: Browser, whole: Path, port: int, scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    found = []
    for game in ("avalanche", "durak", "smokestack"):
        page.goto(address(port, newest(whole, game, faulty=game == "avalanche"), "#step=12"))
        page.locator("#said").evaluate("said => { said.open = true; }")
        page.evaluate(AXE)
        result = page.evaluate("axe.run(document)")
        found += [f"{game}: {one['id']} {one['nodes'][0]['html'][:120]}" for one in result["violations"]]
    context.close()
    assert not found, "\n".join(found)


def test_the_table_fits_a_phone(browser: Browser, whole: Path, port: int) -> None:
    for width in (320, 390):
        with looking(browser, viewport={"width": width, "height": 700}) as page:
            for game in ("avalanche", "durak", "smokestack"):
                page.goto(address(port, newest(whole, game), "#step=12"))
                assert page.evaluate("document.documentElement.scrollWidth") <= width, game
