"""`arena db`: looking after the database: where it is, whether it is sound, a copy of it, a newer schema."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from arena.cli.app import DEFAULT_DB, EXIT_NO, Db, Json, app
from arena.cli.output import count_of, emit_json, emit_pairs, harmless, say
from arena.store import backup as backups
from arena.store.database import migrate as bring_up_to_date
from arena.store.database import open_reader
from arena.store.health import Health, examine
from arena.store.trouble import DamagedError

db = typer.Typer(help="Look after the database.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(db, name="db")

WAY_OUT = (
    "put a backup in its place (`arena db backup` makes one) after moving it away with its -wal and -shm files; "
    "without a backup, the sqlite3 program's .recover saves what can be read"
)


@db.command(epilog="Example: arena db check")
def check(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Tell whether the database is sound, and what is in it; exit code 1 if something is wrong."""
    found: Health | None = None
    problems: tuple[str, ...]
    try:
        with open_reader(db, outdated=True) as opened:
            found = examine(opened, db)
        problems = found.problems
    except DamagedError as error:
        problems = (str(error),)
    if as_json:
        told = msgspec.structs.asdict(found) if found else {}
        emit_json("db.check/1", {"path": str(db.absolute()), "sound": not problems, **told, "problems": problems})
    else:
        for problem in problems:
            typer.echo(harmless(problem))
        if found:
            emit_pairs([("database", str(db.absolute())), *_pairs(found)])
    if not problems:
        say("sound; whether it holds what was played is examined by `arena verify`")
    else:
        if found is None or found.version == found.known:
            say(WAY_OUT)
        raise typer.Exit(EXIT_NO)


def _pairs(found: Health) -> list[tuple[str, str]]:
    pairs = [("schema", f"version {found.version}")]
    pairs += [(name, str(value)) for name, value in found.facts.items()]
    pairs += [(name, f"{count:,}") for name, count in found.counts.items()]
    pairs += [("bytes", f"{found.file_bytes:,}")]
    if found.deal_bytes is not None and found.record_bytes is not None:
        told = f"{found.deal_bytes:,.0f} with all that belongs to it; its record alone {found.record_bytes:,.0f}"
        pairs += [("bytes a deal", told)]
    return pairs


@db.command(epilog="Example: arena db backup ../spring.db")
def backup(
    file: Annotated[Path, typer.Argument(help="Where to.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an earlier backup.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Copy the database into one file and examine the copy; a tournament may run meanwhile."""
    with open_reader(db, outdated=True) as opened:
        backups.backup(opened, file, force=force)
    size = file.stat().st_size
    if as_json:
        emit_json("db.backup/1", {"path": str(file.absolute()), "bytes": size})
    else:
        typer.echo(f"{file}: {size:,} bytes, examined and sound")
        say(f"the files of the bots are in {db.parent / 'bots'}; copy that folder too, if they are to play again")


@db.command(epilog="Example: arena db migrate")
def migrate(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Bring a database of an older arena up to date, with a backup beside it."""
    done = bring_up_to_date(db, time.time())
    if as_json:
        kept = str(done.backup.absolute()) if done.backup else None
        emit_json("db.migrate/1", {"before": done.before, "after": done.after, "backup": kept})
    elif done.backup is None:
        typer.echo(f"the schema is of version {done.after}: nothing to do")
    else:
        steps = count_of(done.after - done.before, "migration")
        typer.echo(f"the schema is now of version {done.after} ({steps}); as it was before: {done.backup}")


@db.command(epilog="Example: arena db path")
def path(db: Db = DEFAULT_DB, as_json: Json = False) -> None:
    """Print where the database is, whether it exists or not."""
    if as_json:
        emit_json("db.path/1", {"path": str(db.absolute()), "exists": db.is_file()})
    else:
        typer.echo(harmless(str(db.absolute())))
