"""`arena export` and `arena import`: results for other programs, and a file of everything read back."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated

import msgspec
import typer
from sqlite_utils import Database

from arena.cli.app import DEFAULT_DB, Db, Json, Stderr, app
from arena.cli.finding import find_tournament
from arena.cli.output import count_of, emit_json, say
from arena.cli.pages import REPLAYS, site
from arena.errors import ConfigError, InfraError
from arena.export import rows, tables
from arena.export.everything import everything
from arena.export.formats import WRITERS, Format
from arena.store import tournaments
from arena.store.database import open_reader, open_runner
from arena.store.tournaments import Tournament


class What(StrEnum):
    """What can be exported."""

    GAMES = "games"
    STANDINGS = "standings"
    RATINGS = "ratings"
    REPLAYS = "replays"
    BOTS = "bots"
    CROSSTABLE = "crosstable"
    PAIRINGS = "pairings"
    LOS = "los"
    HISTORY = "history"
    ALL = "all"
    SITE = "site"


_ROWS: dict[What, type[msgspec.Struct]] = {
    What.GAMES: rows.GameRow,
    What.STANDINGS: rows.StandingRow,
    What.RATINGS: rows.RatingRow,
    What.REPLAYS: rows.ReplayRow,
    What.BOTS: rows.BotRow,
    What.CROSSTABLE: tables.CrosstableRow,
    What.PAIRINGS: tables.PairingRow,
    What.LOS: tables.LosRow,
    What.HISTORY: tables.HistoryRow,
}
_OF_TOURNAMENTS: dict[What, Callable[[Database, list[Tournament]], Iterator[msgspec.Struct]]] = {
    What.GAMES: rows.games,
    What.STANDINGS: rows.standings,
    What.REPLAYS: rows.replays,
    What.CROSSTABLE: tables.crosstable,
    What.PAIRINGS: tables.pairings,
    What.HISTORY: tables.history,
}


@app.command(epilog="Examples: arena export standings spring -o spring.csv    arena export site public")
def export(
    what: Annotated[What, typer.Argument(help="A table, a file of everything for `arena import`, or all pages.")],
    of: Annotated[
        str,
        typer.Argument(metavar="TOURNAMENT|DIR", help="Of one tournament, but for ratings, los, bots. Of site: DIR."),
    ] = "",
    format: Annotated[Format | None, typer.Option("--format", help="By default as FILE ends.")] = None,  # noqa: A002
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The file; by default stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file, or the site in DIR.")] = False,
    replays: Annotated[
        str | None, typer.Option("--replays", help="Of site: all, faults, last:N or none.", show_default=REPLAYS)
    ] = None,
    stderr: Stderr = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Write results for other programs; while a tournament runs, without what must stay secret."""
    if what is What.SITE:
        if format is not None or out is not None:
            raise ConfigError("site is a folder of pages: arena export site DIR, without --format and --out")
        site(of, db, replays or REPLAYS, stderr=stderr, force=force, as_json=as_json)
        return
    if replays is not None or stderr:
        option = "--stderr" if replays is None else "--replays"
        raise ConfigError(f"{option} is for `arena export site DIR`; leave it out for {what}")
    if out is not None:
        _check_place(out, db, force=force)
    _export(what, of, _format(what, format, out, as_json=as_json), out, db, force=force)


def _export(what: What, tournament: str, chosen: Format, out: Path | None, db: Path, *, force: bool) -> None:
    if tournament and what not in _OF_TOURNAMENTS:
        raise ConfigError(f"{what} is not of one tournament; leave {tournament!r} out")
    with open_reader(db) as opened:
        found = _found(opened, what, tournament)
        chunks = WRITERS[chosen](f"arena.export.{what}", _ROWS.get(what), found)
        if out is None:
            _write(chunks, sys.stdout.buffer)
            return
        with _new_file(out, force=force) as file:
            _write(chunks, file)
    say(f"{out} is written")


def _format(what: What, given: Format | None, out: Path | None, *, as_json: bool) -> Format:
    asked = {Format.JSON} if as_json else set()
    asked |= {given} if given else set()
    if not asked:
        asked = {_format_of(out)}
    if len(asked) > 1:
        raise ConfigError(f"--json is --format json, so it contradicts --format {given}; leave one out")
    (chosen,) = asked
    if what is What.ALL and chosen is not Format.NDJSON:
        raise ConfigError(f"all is written as ndjson, one kind of line after the other, not as {chosen}")
    return chosen


def _format_of(out: Path | None) -> Format:
    """Return the format that a file ends in; NDJSON for one without an ending, and for stdout."""
    if out is None or not out.suffix:
        return Format.NDJSON
    ending = out.suffix[1:].lower()
    if ending not in set(Format):
        known = ", ".join(f".{one}" for one in Format)
        raise ConfigError(f"{out} ends in no format; known are {known}, or name one with --format")
    return Format(ending)


def _found(db: Database, what: What, tournament: str) -> Iterator[msgspec.Struct]:
    match what:
        case What.ALL:
            return everything(db)
        case What.BOTS:
            return rows.bots(db)
        case What.RATINGS:
            return rows.ratings(db)
        case What.LOS:
            return tables.los(db)
        case _:
            stored = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
            chosen = [find_tournament(db, tournament)] if tournament else sorted(stored, key=lambda one: one.id)
            return _OF_TOURNAMENTS[what](db, chosen)


def _write(chunks: Iterator[bytes], file: IO[bytes]) -> None:
    for chunk in chunks:
        file.write(chunk)
    file.flush()


def _check_place(out: Path, db: Path, *, force: bool) -> None:
    """Raise ConfigError if a file must not be written there."""
    if out.exists() and not out.is_file():
        raise ConfigError(f"{out} is no file; name another with -o, or leave it out to write to stdout")
    if out.exists() and db.exists() and out.samefile(db):
        raise ConfigError(f"{out} is the database itself; name another file with -o")
    if out.exists() and not force:
        raise ConfigError(f"{out} is there already; --force overwrites it")


@contextlib.contextmanager
def _new_file(out: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name whole or not at all."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        file = part.open("xb")
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror}; name another file with -o") from None
    try:
        with file:
            yield file
            os.fsync(file.fileno())
        if out.exists() and not force:
            raise ConfigError(f"{out} was made by somebody else meanwhile; --force overwrites it")
        part.replace(out)
    except OSError as error:
        raise InfraError(
            f"{out} cannot be written: {error.strerror}; make room (a full disk?), or name another file with -o"
        ) from error
    finally:
        part.unlink(missing_ok=True)


@app.command("import", epilog="Example: arena import all.ndjson --db copy/arena.db")
def import_(
    file: Annotated[Path, typer.Argument(help="What `arena export all` wrote.", dir_okay=False)],
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Read a file of everything into an empty database; every deal in it is executed again."""
    from arena.importing import begin, import_everything

    try:
        source = file.open("rb")
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}; name what `arena export all` wrote") from None
    with source:
        read = begin(source, str(file))
        with open_runner(db) as opened:
            done = import_everything(opened, read, lambda name: say(f"{name}: executing its deals again"))
    if as_json:
        emit_json("import/1", msgspec.structs.asdict(done))
        return
    events = count_of(done.tournaments, "tournament") + " and plays"
    parts = [events, count_of(done.matches, "match"), count_of(done.deals, "deal"), count_of(done.bots, "bot")]
    typer.echo(f"{', '.join(parts)}; {done.unverified} deals unverified")
    if done.unverified:
        say("unverified: of other rules, or not the same when executed again; `arena verify` says more")
