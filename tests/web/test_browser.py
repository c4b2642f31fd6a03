"""The pages as people meet them, in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from arena.store.database import open_writer, writing
from arena.web import server as serving_module
from tests.web.conftest import serving

pytestmark = pytest.mark.slow

PAGES = (
    "index.html",
    "leaderboard/1.html",
    "leaderboard/overall.html",
    "tournaments.html",
    "t/spring.html",
    "t/faulty/durak.html",
    "t/spring/durak-1.html",
    "bots.html",
    "b/bot-0.html",
    "m/1.html",
    "faults.html",
    "data.html",
    "docs/rules.html",
    "docs/protocol.html",
)
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text()


def be_live(page: Page) -> None:
    """Wait until a page hears of commits."""
    page.locator("#live", has_text="live").wait_for(timeout=15_000)


@contextmanager
def looking(browser: Browser, **how: Any) -> Iterator[Page]:
    """Open a page in a context of its own, which must not complain nor ask another host for anything."""
    context = browser.new_context(bypass_csp=False, **how)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        yield page
    finally:
        context.close()
    assert not complaints
    assert all(url.startswith(("http://127.0.0.1:", "file://")) for url in asked)


def test_every_page_opens_from_a_file(browser: Browser, written: Path) -> None:
    with looking(browser) as page:
        for path in (*PAGES, replay_of(written)):
            page.goto(f"{(written / path).as_uri()}")
            assert page.locator("main h1").count() >= 1, path
            assert page.evaluate("getComputedStyle(document.body).margin") == "0px", path


def replay_of(written: Path) -> str:
    return sorted(f"r/{file.name}" for file in (written / "r").glob("*.html"))[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, written: Path, port: int, scheme: Literal["light", "dark"]) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    rules = {"resultTypes": ["violations"]}
    if scheme == "dark":  # all else is the same in both
        rules["runOnly"] = ["color-contrast"]
    found = []
    for path in (*PAGES[:-1], replay_of(written)):
        page.goto(f"http://127.0.0.1:{port}/{path}")
        page.evaluate(AXE)
        result = page.evaluate("rules => axe.run(document, rules)", rules)
        found += [f"{path}: {one['id']} {one['nodes'][0]['html'][:120]}" for one in result["violations"]]
    context.close()
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width", [320, 390])
def test_pages_fit_a_phone(browser: Browser, written: Path, width: int) -> None:
    with looking(browser, viewport={"width": width, "height": 700}) as page:
        for path in (*PAGES, replay_of(written)):
            page.goto((written / path).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_every_page_is_reached_and_read_by_keyboard(browser: Browser, port: int) -> None:
    with looking(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/leaderboard/1.html")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        seen = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.getAttribute('href') || document.activeElement.ariaLabel"))
        assert {"../b/bot-0.html", "Table of ratings", "../leaderboard/1.json"} <= seen


def test_pages_of_a_served_site_complain_of_nothing(browser: Browser, port: int) -> None:
    with looking(browser) as page:
        for path in PAGES:
            page.goto(f"http://127.0.0.1:{port}/{path}")
            be_live(page)


def test_hostile_text_does_nothing(browser: Browser, port: int) -> None:
    with looking(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/bots.html")
        assert "<img src=x onerror=alert(1)>" in page.locator("table").inner_text()
        assert page.locator("img").count() == 0


def test_nothing_moves_for_those_who_want_it_so(browser: Browser, written: Path) -> None:
    style = "const row = document.querySelector('tr[data-key]'); row.classList.add('fresh');"
    style += "getComputedStyle(row.children[0]).animationName"
    for motion, name in (("reduce", "none"), ("no-preference", "fresh")):
        with looking(browser, reduced_motion=motion) as page:
            page.goto((written / "leaderboard/1.html").as_uri())
            assert page.evaluate(style) == name


# Live


@pytest.fixture
def growing(whole: Path, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A database of its own that may be written to, and where it is served."""
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with serving(path) as number:
        yield path, number


def change(path: Path, *statements: str) -> None:
    with open_writer(path) as db, writing(db):
        for statement in statements:
            db.execute(statement)


def test_a_commit_is_on_the_page_without_a_reload(browser: Browser, growing: tuple[Path, int]) -> None:
    path, port = growing
    with looking(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/bots.html")
        be_live(page)
        page.evaluate("window.kept = true")
        change(path, "UPDATE submission SET author = 'ada' WHERE name = 'bot-2'")
        page.get_by_text("ada").wait_for(timeout=5000)
        assert page.evaluate("window.kept")


def test_what_is_below_the_pointer_does_not_move(browser: Browser, growing: tuple[Path, int]) -> None:
    path, port = growing
    with looking(browser, viewport={"width": 1000, "height": 600}) as page:
        page.goto(f"http://127.0.0.1:{port}/bots.html")
        be_live(page)
        row = page.locator("tr[data-key='bot-3']")
        row.hover()
        before = row.bounding_box()
        change(path, "UPDATE submission SET author = 'ada' WHERE name = 'bot-2'")
        page.get_by_text("ada").wait_for(timeout=5000)
        assert row.bounding_box() == before
        change(path, "UPDATE submission SET name = 'a-new-one' WHERE name = 'bot-2'")
        page.get_by_text("new results are waiting").wait_for(timeout=5000)
        assert row.bounding_box() == before
        page.mouse.move(5, 5)
        page.get_by_text("a-new-one").wait_for(timeout=5000)
        page.get_by_text("live · updated").wait_for(timeout=5000)


def test_focus_stays_where_it_was(browser: Browser, growing: tuple[Path, int]) -> None:
    path, port = growing
    with looking(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/bots.html")
        be_live(page)
        page.locator("a[href='b/bot-3.html']").focus()
        change(path, "UPDATE submission SET name = 'a-new-one' WHERE name = 'bot-2'")
        page.get_by_text("a-new-one").wait_for(timeout=5000)
        assert page.evaluate("document.activeElement.getAttribute('href')") == "b/bot-3.html"


def test_a_page_stays_when_the_server_ends(browser: Browser, whole: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    with serving(whole) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        be_live(page)
    page.get_by_text("not connected; trying again").wait_for(timeout=5000)
    assert page.locator("h1").inner_text() == "Competitions"
    context.close()


HIDE = "Object.defineProperty(document, 'visibilityState', { value: '%s', configurable: true });"
HIDE += "document.dispatchEvent(new Event('visibilitychange'))"


def test_pages_that_nobody_looks_at_hold_no_connection(browser: Browser, growing: tuple[Path, int]) -> None:
    path, port = growing
    context = browser.new_context()
    pages = []
    for _ in range(8):  # a browser opens six connections to a host
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/bots.html", timeout=10_000)
        be_live(page)
        page.evaluate(HIDE % "hidden")
        pages.append(page)
    change(path, "UPDATE submission SET author = 'ada' WHERE name = 'bot-2'")
    pages[0].evaluate(HIDE % "visible")
    pages[0].get_by_text("ada").wait_for(timeout=5000)
    context.close()


def test_what_was_missed_is_shown_once_the_server_is_back(browser: Browser, growing: tuple[Path, int]) -> None:
    path, _ = growing
    context = browser.new_context()
    page = context.new_page()
    with serving(path) as port:
        page.goto(f"http://127.0.0.1:{port}/bots.html")
        be_live(page)
    page.get_by_text("not connected; trying again").wait_for(timeout=5000)
    change(path, "UPDATE submission SET author = 'ada' WHERE name = 'bot-2'")
    with serving(path, port):
        page.get_by_text("ada").wait_for(timeout=10_000)
    context.close()


def test_a_refused_stream_is_tried_again(browser: Browser, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "MAX_STREAMS", 0)
    context = browser.new_context()
    page = context.new_page()
    with serving(whole) as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.get_by_text("not connected; trying again").wait_for(timeout=5000)
        monkeypatch.setattr(serving_module, "MAX_STREAMS", 64)
        be_live(page)
    context.close()


def test_pages_without_scripts_do_not_say_that_they_are_live(browser: Browser, port: int) -> None:
    with looking(browser, java_script_enabled=False) as page:
        page.goto(f"http://127.0.0.1:{port}/")
        assert page.locator("#live").inner_text() == ""
