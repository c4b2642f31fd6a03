"""Turns pages into HTML and their JSON twins; the same for what is served and what is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from arena.rating.places import PROVISIONAL, place_text
from arena.web import charts, replays, texts
from arena.web.page import Page
from arena.words import harmless

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""What a page may load: files of the site itself, nothing inline and nothing of another host."""

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_PLAIN = "text/plain; charset=utf-8"


class Frame(msgspec.Struct, frozen=True):
    """What is around a page.

    Attributes:
        tabs: address and name of the navigation's entries.
        there: tells whether an address of the site leads somewhere.
        note: a line at the foot.
        live: pages change while they are looked at.
    """

    tabs: list[tuple[str, str]]
    there: Callable[[str], bool]
    note: str
    live: bool = False


@cache
def static_files() -> Mapping[str, tuple[str, bytes]]:
    """Return content type and bytes of each file that pages use, by address."""
    folder = resources.files("arena.web") / "static"
    return {
        f"static/{file.name}": (
            _TYPES.get(Path(file.name).suffix, _PLAIN),
            file.read_bytes(),
        )
        for file in folder.iterdir()
        if file.is_file()
    }


def json(page: Page) -> bytes:
    """Return the JSON twin of a page."""
    return msgspec.json.encode({"schema": f"arena.page.{page.kind}/1", "title": page.title, **page.data}) + b"\n"


def html(page: Page, path: str, frame: Frame) -> bytes:
    """Return a page as HTML.

    Args:
        path: its address, which its links are relative to.
    """
    root = "../" * path.count("/")

    def link(target: str | None, text: object, kind: str = "") -> Markup:
        words = escape(text)
        class_ = f' class="{kind}"' if kind else ""  # our own words, as all that is put together here
        if target is None or not frame.there(target):
            return Markup(f"<span{class_}>{words}</span>")
        return Markup(f'<a href="{root}{target}"{class_}>{words}</a>')

    template = _environment().get_template(f"{page.kind}.html")
    shown = {
        "embedded": lambda: replays.embedded(page.data),
        "root": root,
        "link": link,
        "page": page,
        "frame": frame,
        "twin": f"{path[:-5]}.json",
        "policy": POLICY,
    }
    return harmless(template.render({**page.data, **shown})).encode()  # all of it at once: nothing can slip by


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("arena.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "whisker": charts.whisker,
        "sparkline": charts.sparkline,
        "chart": _chart,
        "scale_of": lambda rows: charts.scale_of([(row["elo"], row["error"]) for row in rows]),
        "from_markdown": texts.html,
        "provisional_words": f"{PROVISIONAL[0].upper()}{PROVISIONAL[1:]}.",
    }
    made.filters |= {"utc": _utc, "count": "{:,}".format, "signed": "{:+.0f}".format, "seconds": _seconds}
    made.filters["place"] = lambda row: place_text(row["place"], row["shared"])
    return made


def _chart(curves: list[dict[str, list[tuple[str, float]]]], title: str) -> Markup:
    return charts.chart([charts.Curve(str(one["name"]), one["points"]) for one in curves], title)


def _utc(moment: float | None) -> Markup:
    """Return a time as an element; seconds since the epoch."""
    if moment is None:
        return Markup("–")
    there = time.gmtime(moment)
    words = f"{there.tm_mday} {time.strftime('%b %Y %H:%M', there)} UTC"
    return Markup(f'<time datetime="{time.strftime("%Y-%m-%dT%H:%M:%SZ", there)}">{words}</time>')


def _seconds(micros: int) -> str:
    return f"{micros / 1e6:.2f} s" if micros >= 100_000 else f"{micros / 1e3:.1f} ms"
