"""The pages as people meet them, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

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


Visit = Callable[[str], Page]


def test_every_page_opens_from_a_file(browser: Browser, written: Path) -> None:
    with looking(browser) as page:
        replays = sorted(f"r/{file.name}" for file in (written / "r").glob("*.html"))
        assert len(replays) == 4
        for path in (*PAGES, replays[0]):
            page.goto(f"{(written / path).as_uri()}")
            assert page.locator("main h1").count() >= 1, path
            assert page.evaluate("getComputedStyle(document.body).margin") == "0px", path
