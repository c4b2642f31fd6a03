"""The command line's frame: the application, options that many commands share, and what its exit codes mean."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from arena import __version__
from arena.errors import BotError, BusyError, ConfigError, InfraError
from arena.records import Level

EXIT_NO = 1
EXIT_USAGE = 2
EXIT_BOT = 3
EXIT_BUSY = 4
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="arena",
    help="Run bot competitions at three card games.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Db = Annotated[
    Path, typer.Option("--db", envvar="ARENA_DB", help="The database.", show_default="results/arena.db", dir_okay=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with a `schema` key instead of text.")]
InBrowser = Annotated[bool, typer.Option("--open", help="Open it in the browser instead; no server is needed.")]
Stderr = Annotated[
    bool, typer.Option("--stderr", help="Replays show the end of a failed bot's stderr, which may hold its secrets.")
]
IsolationLevel = Annotated[
    Level | None, typer.Option("--isolation", help="Demand a level instead of taking the best that works.")
]
Trusted = Annotated[bool, typer.Option("--trusted", help="All bots are trusted: they may run without isolation.")]

_STARTS_BOTS = {"check", "submit", "play", "run", "compare", "bench", "doctor"}
"""Commands that are supervised by a parent process, so that nothing they started outlives them, however they end."""

MODULES = {
    "bench": "bench",
    "bots": "bots",
    "check": "check",
    "compare": "compare",
    "crosstable": "tables",
    "db": "db",
    "disqualify": "corrections",
    "doctor": "doctor",
    "export": "export",
    "faults": "faults",
    "import": "export",
    "leaderboard": "leaderboard",
    "logs": "logs",
    "los": "strength",
    "new": "new",
    "pairings": "tables",
    "play": "play",
    "ratings": "strength",
    "replay": "replay",
    "retire": "bots",
    "reveal": "verify",
    "run": "run",
    "serve": "serve",
    "standings": "standings",
    "submit": "bots",
    "trace": "trace",
    "verify": "verify",
    "void": "corrections",
    "why": "why",
    "withdraw": "corrections",
}
"""Where each command is, so that one which only reads does not wait for what runs tournaments to be imported."""

DEFAULT_DB = Path("results/arena.db")


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    """Run bot competitions at three card games."""
    if show:
        typer.echo(f"arena {__version__}")
        raise typer.Exit


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def exit_code(error: BaseException) -> int | None:
    """Return the exit code of an error that is explained by its text alone, or None for a bug of ours."""
    match error:
        case ConfigError():
            return EXIT_USAGE
        case BotError():
            return EXIT_BOT
        case BusyError():
            return EXIT_BUSY
        case InfraError():
            return EXIT_NO
        case KeyboardInterrupt():
            return EXIT_INTERRUPTED
        case BrokenPipeError():
            return EXIT_NO
        case OSError(errno=errno.ENOSPC | errno.EMFILE | errno.ENFILE | errno.ENOMEM):
            return EXIT_NO
        case _:
            return None


def main() -> None:
    """Run the command line of this process; the first error that has an exit code is printed as one message."""
    try:
        command = sys.argv[1] if len(sys.argv) > 1 else ""
        if command in _STARTS_BOTS:
            from arena.sandbox.orphans import supervise  # with trio, which commands that only read need not wait for

            supervise()
        import_module(f"arena.cli.{MODULES.get(command, 'commands')}")
        app()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        known = [leaf for leaf in _leaves(error) if exit_code(leaf) is not None]
        if len(known) < len(list(_leaves(error))):
            raise  # a bug: its traceback is what its mender needs
        if isinstance(known[0], BrokenPipeError):  # whoever read our output has left
            os._exit(EXIT_NO)
        from arena.cli.output import say

        say(f"error: {known[0]}" if str(known[0]) else "interrupted")
        sys.exit(exit_code(known[0]))
