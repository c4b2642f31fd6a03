"""Writes pages as files, which open by double click and on any host of files."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from sqlite_utils import Database

from arena.errors import ConfigError
from arena.store import overview
from arena.web import downloads, pages, rendering
from arena.web.page import Source, deal_name, replay_path
from arena.web.rendering import Frame


class Replays(NamedTuple):
    """Which replays are written.

    Attributes:
        faulty: only those with a fault.
        last: how many of the newest at most; all if negative.
    """

    faulty: bool = False
    last: int = -1


class Written(NamedTuple):
    """What was written."""

    pages: int
    replays: int
    bytes: int


def parse_replays(text: str) -> Replays:
    """Return which replays `all`, `faults`, `last:N` or `none` means.

    Raises:
        ConfigError: it is none of them.
    """
    known = {"all": Replays(), "faults": Replays(faulty=True), "none": Replays(last=0)}
    if text in known:
        return known[text]
    kind, _, number = text.partition(":")
    if kind == "last" and number.isascii() and number.isdecimal() and len(number) < 10:
        return Replays(last=int(number))
    raise ConfigError(f"--replays {text} is none of all, faults, last:N and none, e.g. last:500")


def write_site(db: Database, folder: Path, replays: Replays, now: float, *, stderr: bool = False) -> Written:
    """Write all pages, their JSON twins and all tables into a folder.

    Args:
        stderr: as in `Source`.

    Raises:
        ConfigError: it cannot be written, or an address names two pages.
    """
    source = Source(db, stderr=stderr)
    deals = overview.published_deals(db, faulty=replays.faulty, last=replays.last)
    replayed = [replay_path(deal_name(*deal)) for deal in deals]
    shown = list(pages.paths(source))
    size = write_pages(source, folder, [*shown, *replayed], now, others=downloads.FILES)
    for path in downloads.FILES:
        size += _write(folder / path, downloads.download(db, path))
    return Written(len(shown), len(replayed), size)


def write_pages(source: Source, folder: Path, paths: Collection[str], now: float, others: Collection[str] = ()) -> int:
    """Write pages and what they need into a folder, without links to pages that are not among them; return bytes.

    Args:
        others: files that will be beside them.
    """
    twins = {f"{path[:-5]}.json" for path in paths}
    there = {*paths, *twins, *others, *rendering.static_files()}
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    frame = Frame(source.tabs, there.__contains__, f"Written {made}")
    size = 0
    for path in paths:
        page = pages.page(source, path[:-5])
        assert page is not None, path
        size += _write(folder / path, [rendering.html(page, path, frame)])
        size += _write(folder / f"{path[:-5]}.json", [rendering.json(page)])
    for path, (_, data) in rendering.static_files().items():
        size += _write(folder / path, [data])
    return size


def _write(file: Path, chunks: Collection[bytes] | Iterator[bytes]) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with file.open("wb") as opened:
        for chunk in chunks:
            size += opened.write(chunk)
    return size
