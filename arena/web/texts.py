"""The project's own texts as pages: rules, protocol, exports, isolation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from arena.errors import ConfigError
from arena.web.page import Page

_PACKAGE = Path(__file__).resolve().parents[1]
_FILES = {
    "rules": ("Rules", "docs/rules.md"),
    "protocol": ("Protocol", "protocol.md"),
    "export": ("Exports", "docs/export.md"),
    "isolation": ("Isolation", "docs/isolation.md"),
}
TEXTS = tuple(_FILES)
_TABLE = '<div class="scroll" role="region" aria-label="Table {}" tabindex="0"><table>'


def text(name: str) -> Page:
    """Return a text as a page."""
    title, file = _FILES[name]
    source = _read(file)
    pages = [{"page": f"docs/{one}.html", "title": _FILES[one][0]} for one in TEXTS]
    data = {"name": name, "texts": pages, "markdown": source}
    return Page("text", title, data, "docs/rules.html")


def _read(file: str) -> str:
    for folder in (_PACKAGE / "_texts", _PACKAGE.parent):  # where an installation has them, and a checkout
        if (found := folder / file).is_file():
            return found.read_text()
    raise ConfigError(f"{file} is missing from this installation ({_PACKAGE / '_texts'}); install the arena again")


@cache
def html(markdown: str) -> Markup:
    """Return a text as HTML; its links to other texts lead to their pages, others that lead nowhere here are none."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown)
    anchors: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(tokens[index + 1].content, anchors))
        if token.type in ("th_open", "td_open"):
            token.attrs.pop("style", None)  # the pages' policy forbids it
        if token.type == "fence":
            token.info = ""
        _relink(token.children or ())
    drawn = str(parser.renderer.render(tokens, parser.options, {}))
    numbers = count(1)
    drawn = re.sub("<table>", lambda _: _TABLE.format(next(numbers)), drawn).replace("</table>", "</table></div>")
    return Markup(drawn.replace("<pre>", '<pre tabindex="0">'))


def _anchor(heading: str, before: dict[str, int]) -> str:
    """Return the anchor that code forges give a heading, so that links work in both places.

    Args:
        before: how often each was wanted by the headings before it; changed.
    """
    plain = re.sub(r"<[^>]+>", "", heading).lower()
    wanted = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
    again = before[wanted] = before.get(wanted, -1) + 1
    return f"{wanted}-{again}" if again else wanted


def _relink(children: Sequence[Token]) -> None:
    for child in children:
        if child.type == "link_open":
            file, hash_, anchor = str(child.attrGet("href")).partition("#")
            name = Path(file).stem
            if name in _FILES:
                child.attrSet("href", f"{name}.html{hash_}{anchor}")
            elif file and not file.startswith("https://"):
                child.attrs.pop("href")
