"""bot.toml: what a bot is called, how it is built and started, what it plays."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from arena.config.document import parse_document, read_document
from arena.config.mistake import Mistake, check_texts, not_allowed, refuse, unknown, validate
from arena.config.name import ALLOWED, is_name
from arena.errors import ConfigError
from arena.games import GAMES

FILE = "bot.toml"
OUT = "{out}"
"""In `command` and `build`: the folder that the build writes to."""

_MAX_ARGUMENTS = 256
_MAX_ARGUMENT_CHARACTERS = 4096
_ARGUMENTS = f'a list of 1 to {_MAX_ARGUMENTS} texts, the program first, e.g. ["python3", "main.py"]'
_SHORT = "a text of at most 64 printable characters"


class Files(Protocol):
    """What is asked of a bundle."""

    def find(self, path: str) -> bytes | None:
        """Return the contents of a file, or None if there is none of that path."""
        ...


class BotManifest(BaseModel):
    """A bot's own description of itself.

    Attributes:
        build: run once in the bot's folder, to write to `{out}`; None if there is nothing to build.
        command: the argument list that starts it; never given to a shell.
        games: names in `GAMES`; all of them unless the file says less.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description=ALLOWED)
    build: tuple[str, ...] | None = Field(default=None, description=_ARGUMENTS)
    command: tuple[str, ...] = Field(description=_ARGUMENTS)
    games: tuple[str, ...] = Field(default_factory=lambda: tuple(sorted(GAMES)))
    author: str = Field(default="", description=_SHORT)
    language: str = Field(default="", description=_SHORT)

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not is_name(value):
            raise ValueError
        return value

    @field_validator("author", "language")
    @classmethod
    def _check_short(cls, value: str) -> str:
        if len(value) > 64 or not value.isprintable():
            raise ValueError
        return value

    @field_validator("build", mode="plain")
    @classmethod
    def _check_build(cls, value: object) -> tuple[str, ...]:
        return _arguments(value)

    @field_validator("command", mode="plain")
    @classmethod
    def _check_command(cls, value: object, info: ValidationInfo) -> tuple[str, ...]:
        arguments = _arguments(value)
        if "build" in info.data and info.data["build"] is None:
            text = f"{OUT} is where a build writes to, but there is no build"
            refuse([Mistake((index,), text) for index, argument in enumerate(arguments) if OUT in argument])
        return arguments

    @field_validator("games", mode="plain")
    @classmethod
    def _check_games(cls, value: object) -> tuple[str, ...]:
        def problem(name: str) -> str:
            return "" if name in GAMES else unknown("game", name, GAMES)

        return check_texts(value, f"a list of some of {', '.join(sorted(GAMES))}", problem)


def load_manifest(folder: Path) -> BotManifest:
    """Read the bot.toml of a bot's folder.

    Raises:
        ConfigError: tells all mistakes, each on a line, with its place.
    """
    return validate(BotManifest, read_document(folder / FILE))


def manifest_of(bundle: Files, source: str = FILE) -> BotManifest:
    """Return what the bot.toml of a bundle says; `source` names it in errors.

    Raises:
        ConfigError: there is none, or tells all its mistakes.
    """
    data = bundle.find(FILE)
    if data is None:
        raise ConfigError(f"there is no {source}; it belongs into the bot's folder, beside its program")
    return parse_manifest(data, source)


def parse_manifest(contents: bytes | str, source: str = FILE) -> BotManifest:
    """Return the manifest of a bot.toml with these contents; `source` names it in errors."""
    data = contents.encode() if isinstance(contents, str) else contents
    return validate(BotManifest, parse_document(data, source))


def _arguments(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        refuse([Mistake((), not_allowed(value, _ARGUMENTS) + _as_list(value))])
    arguments = check_texts(value, _ARGUMENTS, _argument_problem, unique=False)
    if len(arguments) > _MAX_ARGUMENTS or not arguments[0]:
        refuse([Mistake((), not_allowed(arguments, _ARGUMENTS))])
    return arguments


def _argument_problem(argument: str) -> str:
    if "\0" not in argument and len(argument) <= _MAX_ARGUMENT_CHARACTERS:
        return ""
    return not_allowed(argument, f"at most {_MAX_ARGUMENT_CHARACTERS} characters, none of them NUL")


def _as_list(line: str) -> str:
    """Return a hint for somebody who gave a shell command."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    return f"; perhaps {json.dumps(words)}" if words else ""
