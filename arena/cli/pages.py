"""Pages as files: a whole site in a folder, or some in a temporary one, opened in the browser."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from arena.cli.output import count_of, emit_json, say
from arena.errors import ConfigError
from arena.store.database import open_reader

if TYPE_CHECKING:
    from arena.web.page import Source

REPLAYS = "last:300"
"""Some 40 MB with their JSON twins; all the replays of a long tournament are more than most hosts take."""


def site(folder: str, db: Path, replays: str, *, stderr: bool, force: bool, as_json: bool) -> None:
    """Write all pages into a folder.

    Raises:
        ConfigError: the folder holds something, and `force` is not given; or it cannot be written.
    """
    from arena.web.writing import parse_replays, write_site  # templates take a tenth of a second to import

    if not folder:
        raise ConfigError("name the folder: arena export site DIR")
    target, chosen = Path(folder), parse_replays(replays)
    _check(target, force=force)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with open_reader(db) as opened:
        try:
            written = write_site(opened, part, chosen, time.time(), stderr=stderr)
            _put(part, target, force=force)
        except OSError as error:
            raise ConfigError(f"{folder} cannot be written: {error.strerror}; name another folder") from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
    if as_json:
        emit_json("site/1", {"folder": folder, **written._asdict()})
        return
    typer.echo(target / "index.html")
    counted = f"{count_of(written.pages, 'page')}, {count_of(written.replays, 'replay')}"
    say(f"{counted}, {written.bytes / 1e6:.1f} MB; open it, or put {folder} on a host of files")


def _check(target: Path, *, force: bool) -> None:
    if target.exists() and not target.is_dir():
        raise ConfigError(f"{target} is no folder; name another")
    is_used = target.is_dir() and any(target.iterdir())
    if is_used and not force:
        raise ConfigError(f"{target} is not empty; --force writes the pages over what is in it, and deletes nothing")


def _put(part: Path, target: Path, *, force: bool) -> None:
    """Move what was written to where it belongs: a new folder at once, else file by file."""
    if not target.exists() or not any(target.iterdir()):
        part.replace(target)
        return
    for file in sorted(part.rglob("*")):
        if file.is_file():
            place = target / file.relative_to(part)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)


def show(db: Path, choose: Callable[[Source], Sequence[str]]) -> None:
    """Write some pages into a temporary folder and open the first in the browser; it stays for the browser to read.

    Args:
        choose: returns their addresses.
    """
    from arena.web.page import Source
    from arena.web.writing import write_pages

    folder = Path(tempfile.mkdtemp(prefix="arena-"))
    with open_reader(db) as opened:
        source = Source(opened)
        paths = choose(source)
        write_pages(source, folder, paths, time.time())
    first = folder / paths[0]
    typer.echo(first)
    if not webbrowser.open(first.as_uri()):
        say("no browser could be opened here; the file is for any")
