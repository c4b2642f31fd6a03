"""`arena check`: everything that a tournament would find wrong with a bot, before it is handed in."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import trio
import typer
from rich.table import Table
from rich.text import Text

from arena.build import bot_ref, build, prepare
from arena.bundle import read_bundle
from arena.check import Examination, Finding, examine
from arena.cli.app import EXIT_BOT, EXIT_NO, IsolationLevel, Json, Trusted, app
from arena.cli.output import console, emit_json, harmless
from arena.cli.site import Player, Site, check_place, open_site, own_lane
from arena.config import manifest_of
from arena.errors import ConfigError
from arena.records import Clock
from arena.sandbox import require_level

DEALS = 20
QUICK_DEALS = 5
_PACKAGE = Path(__file__).parents[1]
_STYLES = {"ok": "green", "FAIL": "bold red", "warn": "yellow", "skip": "dim"}
_STDERR_LINES = 6
_STDERR_COLUMNS = 200


@app.command(epilog="Example: arena check ./mybot")
def check(
    folder: Annotated[str, typer.Argument(help="The bot's folder with its bot.toml, or an archive of it.")],
    games: Annotated[str, typer.Option("--games", help="all that it plays, or names by commas.")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK_DEALS} deals of a game, not {DEALS}.")] = False,
    decision_ms: Annotated[
        int, typer.Option("--decision-ms", help="The time for one decision.", min=1)
    ] = Clock().decision_ms,
    trusted: Trusted = False,
    isolation: IsolationLevel = None,
    as_json: Json = False,
) -> None:
    """Examine a bot before it is submitted: how it starts, answers and ends, and what it uses; nothing is kept."""
    level = require_level(isolation, trusted=trusted)
    with tempfile.TemporaryDirectory(prefix="arena-check-") as scratch:
        site = open_site(Path(scratch, "arena.db"), level)
        check_place(Path(folder), Path(scratch))
        sheet = Sheet(quiet=as_json)
        player = trio.run(_make_ready, folder, site, sheet)
        opponent = trio.run(_make_ready, str(_random_folder()), site, Sheet(quiet=True))
        chosen = _chosen(games, player)
        deals = QUICK_DEALS if quick else DEALS
        clock = Clock(decision_ms=decision_ms)
        with own_lane(site) as hosts:
            exam = Examination(player.ref, opponent.ref, chosen, hosts, clock, deals, sheet.add, sheet.begin)
            trio.run(examine, exam)
    sheet.close(player, level.value)
    if code := _exit_code(sheet.findings):
        raise typer.Exit(code)


def _chosen(games: str, player: Player) -> tuple[str, ...]:
    plays = player.manifest.games
    chosen = plays if games == "all" else tuple(dict.fromkeys(games.split(",")))
    if unknown := [game for game in chosen if game not in plays]:
        raise ConfigError(f"--games {', '.join(unknown)}: bot.toml names {', '.join(plays)}")
    return chosen


def _exit_code(findings: Sequence[Finding]) -> int:
    failures = [finding for finding in findings if finding.verdict == "FAIL"]
    if any(finding.name == "handshake" and finding.fault.startswith("startup/") for finding in failures):
        return EXIT_BOT
    return EXIT_NO if failures else 0


def _random_folder() -> Path:
    """Return the bot that plays at random: in an installed package beside this code, in a checkout in bots/."""
    for folder in (_PACKAGE / "_random", _PACKAGE.parent / "bots" / "random"):
        if (folder / "bot.toml").is_file():
            return folder
    raise ConfigError(f"the bot {_PACKAGE / '_random'} is missing from this installation; install the arena again")


async def _make_ready(folder: str, site: Site, sheet: Sheet) -> Player:
    """Bundle and build a bot in the site's folder.

    Raises:
        ConfigError: the folder is not accepted, or its build fails.
    """
    bundle = read_bundle(Path(folder))
    manifest = manifest_of(bundle, f"{folder.rstrip('/')}/bot.toml")
    size = sum(len(file.data) for file in bundle.files)
    what = f"{len(bundle.files)} files, {size} bytes, {bundle.hash[:12]}"
    sheet.add(Finding("bundle", "ok", what, figures={"files": len(bundle.files), "bytes": size, "hash": bundle.hash}))
    home = prepare(site.bots, bundle)
    sheet.begin("build")
    began = time.monotonic()
    await build(site.level, home, site.runtime, manifest)
    took_s = round(time.monotonic() - began, 1)
    evidence = "none" if manifest.build is None else f"{took_s:.1f} s"
    sheet.add(Finding("build", "ok", evidence, figures={} if manifest.build is None else {"build_s": took_s}))
    return Player(manifest, bot_ref(site.bots, bundle.hash, manifest))


class Sheet:
    """Shows findings as they come, and on a terminal what is looked at meanwhile."""

    def __init__(self, *, quiet: bool) -> None:
        self.findings: list[Finding] = []
        self._quiet = quiet
        self._shown: set[str] = set()
        self._progress = not quiet and sys.stderr.isatty()

    def begin(self, what: str) -> None:
        """Show what is looked at next."""
        self._wipe(f"     {what} ...")

    def add(self, finding: Finding) -> None:
        """Keep a finding and show it."""
        self._wipe("")
        self.findings.append(finding)
        if self._quiet:
            return
        lines = Text(harmless(finding.evidence))
        if finding.fix:
            lines.append(f"\nfix: {finding.fix}", style="bold")
        lines.append(self._new_stderr(finding.stderr), style="dim")
        row = Table.grid(padding=(0, 1))
        row.add_column(width=4)
        row.add_column(width=20)
        row.add_column(overflow="fold")
        row.add_row(Text(finding.verdict, style=_STYLES[finding.verdict]), Text(finding.name), lines)
        console().print(row)

    def _new_stderr(self, stderr: bytes) -> str:
        """Return the end of what a bot wrote, unless it has been shown: mostly it fails in the same way each time."""
        said = [line[:_STDERR_COLUMNS] for line in harmless(stderr.decode(errors="replace")).strip().splitlines()]
        if not said or said[-1] in self._shown:
            return ""
        self._shown.add(said[-1])
        return "\nthe end of its stderr:\n" + "\n".join(said[-_STDERR_LINES:])

    def close(self, player: Player, isolation: str) -> None:
        """Tell the whole in one document or line."""
        self._wipe("")
        failures = [finding.name for finding in self.findings if finding.verdict == "FAIL"]
        if self._quiet:
            checks = [_document(finding) for finding in self.findings]
            document = {"bot": player.ref.name, "hash": player.ref.hash, "isolation": isolation, "ok": not failures}
            emit_json("check/1", {**document, "checks": checks})
            return
        warnings = sum(finding.verdict == "warn" for finding in self.findings)
        verdict = f"failed: {', '.join(failures)}" if failures else "ready to submit"
        typer.echo(f"{player.ref.name} ({isolation}): {verdict}" + (f"; {warnings} warnings" if warnings else ""))

    def _wipe(self, text: str) -> None:
        if self._progress:
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()


def _document(finding: Finding) -> dict[str, object]:
    told = msgspec.structs.asdict(finding)
    return told | {"stderr": finding.stderr.decode(errors="replace")}
