"""Commands about bots: submit, bots, retire."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from arena.cli.app import DEFAULT_DB, EXIT_BOT, EXIT_NO, Db, IsolationLevel, Json, Trusted, app
from arena.cli.output import count_of, emit_json, emit_table, harmless, say
from arena.errors import FAULT_ADVICE, ConfigError, FaultKind
from arena.records import Fault
from arena.store import bots as stored_bots
from arena.store.database import open_reader, open_writer, writing
from arena.why import escaped

AUTHOR_CHARACTERS = 64


@app.command(epilog="Example: arena submit ./mybot")
def submit(
    folder: Annotated[str, typer.Argument(help="The bot's folder with its bot.toml, or an archive of it.")],
    author: Annotated[str, typer.Option("--author", help="Who hands it in; by default as bot.toml says.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Take a name over from another author.")] = False,
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Bundle, build and check a bot, and keep it under its name."""
    import trio

    from arena.check import first_fault
    from arena.cli.site import admit, check_place, open_site, own_lane
    from arena.sandbox import require_level

    if len(author) > AUTHOR_CHARACTERS or not author.isprintable():
        raise ConfigError(f"--author {author!r} is not at most {AUTHOR_CHARACTERS} printable characters")
    check_place(Path(folder), db.parent)
    site = open_site(db, require_level(isolation, trusted=trusted))
    with open_writer(db) as opened:
        player = trio.run(admit, opened, folder, site, time.time())
        with own_lane(site) as hosts:
            found = trio.run(first_fault, player.ref, player.manifest.games, hosts)
        if found is not None:
            game, fault = found
            where = f"{game}, seat {fault.seat}, step {fault.step}"
            say(f"error: {player.manifest.name} was not accepted: {where}: {explain_fault(fault)}")
            raise typer.Exit(EXIT_BOT if fault.kind is FaultKind.STARTUP else EXIT_NO)
        name, writer = player.manifest.name, author or player.manifest.author
        with writing(opened):
            before = stored_bots.latest(opened, name)
            kept = stored_bots.submit(opened, name, player.ref.hash, writer, time.time(), force=force)
    if as_json:
        emit_json("submission/1", _document(kept))
    else:
        news = " is unchanged," if before is not None and before.version == kept.version else ""
        plays = ", ".join(player.manifest.games)
        typer.echo(f"{kept.name} version {kept.version} ({kept.hash[:12]}){news} plays {plays}")


def explain_fault(fault: Fault) -> str:
    """Return a fault in words: what, the evidence, what to do, and the last that the bot wrote to stderr."""
    lines = [f"{fault.kind}/{fault.detail}: {harmless(fault.text)}"]
    if fault.evidence and fault.kind is not FaultKind.ILLEGAL:  # there the text has it
        lines.append(f"it sent {count_of(len(fault.evidence), 'byte')}: {escaped(fault.evidence)}")
    if fault.limit_us >= 0:
        lines.append(f"after {fault.elapsed_us / 1000:.1f} ms of {fault.limit_us // 1000} ms")
    lines.append(f"what to do: {FAULT_ADVICE[fault.kind, fault.detail]}")
    if said := harmless(fault.stderr.decode(errors="replace")).strip():
        lines.append(f"the end of its stderr:\n{said[-2000:]}")
    return "\n".join(lines)


def _document(kept: stored_bots.Submission) -> dict[str, object]:
    document = msgspec.structs.asdict(kept)
    del document["manifest"]
    return document


@app.command(epilog="Example: arena bots --all")
def bots(
    everything: Annotated[bool, typer.Option("--all", help="Retired ones too.")] = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """List the submitted bots."""
    from arena.config import parse_manifest

    with open_reader(db) as opened:
        found = stored_bots.submissions(opened, retired=everything)
    games = [parse_manifest(kept.manifest.encode(), kept.name).games for kept in found]
    if as_json:
        rows = [{**_document(kept), "games": plays} for kept, plays in zip(found, games, strict=True)]
        emit_json("bots/1", {"bots": rows})
        return
    columns = ("<bot", "version", "<hash", "<author", "<plays", "<state")
    emit_table(
        columns,
        (
            (k.name, k.version, k.hash[:12], k.author, " ".join(plays), "retired" if k.retired_at else "")
            for k, plays in zip(found, games, strict=True)
        ),
    )


@app.command(epilog="Example: arena retire mybot")
def retire(
    name: Annotated[str, typer.Argument(help="A submitted name.")], db: Db = DEFAULT_DB, as_json: Json = False
) -> None:
    """Take a bot out of `--bots all`; its results stay, and submitting it again brings it back."""
    with open_writer(db) as opened, writing(opened):
        stored_bots.retire(opened, name, time.time())
    if as_json:
        emit_json("retired/1", {"name": name})
    else:
        typer.echo(f"{name} is retired")
