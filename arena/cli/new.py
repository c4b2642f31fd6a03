"""`arena new`: a bot to start from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from arena.cli.app import Json, app
from arena.cli.output import emit_json
from arena.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]

_MANIFEST = """\
name = "{name}"
command = ["python3", "bot.py"]
games = ["{game}"]
author = ""
language = "python"
"""

_SOURCE = '''\
"""A bot for {game}. What it may answer stands in `ask.legal`; protocol.md says what `ask.observation` holds."""

from arena_bot import Ask, run


def choose(ask: Ask) -> str:
    """Return one of the legal actions. print() goes to stderr; its end is shown with a fault."""
    return ask.rng.choice(ask.legal)


if __name__ == "__main__":
    run(choose, name="{name}", version="1", games=["{game}"])
'''


def _sdk() -> bytes:
    """Return the SDK's one file: in an installed package beside this code, in a checkout in bots/."""
    for folder in (_PACKAGE / "_sdk", _PACKAGE.parent / "bots" / "sdk"):
        path = folder / "python" / "arena_bot.py"
        if path.is_file():
            return path.read_bytes()
    raise ConfigError(f"the SDK is missing from this installation ({_PACKAGE / '_sdk'}); install the arena again")


@app.command(epilog="Example: arena new mybot --game durak")
def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name becomes the bot's.")],
    game: Annotated[str, typer.Option("--game", help="The game it plays.")],
    as_json: Json = False,
) -> None:
    """Make a folder with a bot that plays at random, to be changed into yours."""
    from arena.config import RESERVED_NAMES, is_name, parse_game

    name = folder.absolute().name
    game, _ = parse_game(game)
    if not is_name(name):
        taken = ", ".join(sorted(RESERVED_NAMES))
        raise ConfigError(f"{name!r} cannot be a bot's name: 1 to 32 of a-z, 0-9 and -, and none of {taken}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bot.toml").write_text(_MANIFEST.format(name=name, game=game))
    (folder / "bot.py").write_text(_SOURCE.format(name=name, game=game))
    (folder / "arena_bot.py").write_bytes(_sdk())
    if as_json:
        emit_json("new/1", {"name": name, "folder": os.fsencode(folder).decode(errors="backslashreplace")})
        return
    typer.echo(f"made {folder}: bot.toml, bot.py, arena_bot.py (the SDK)")
    typer.echo(f"next: change bot.py, then `arena play {game} {folder}/ {folder}/` and `arena submit {folder}`")
