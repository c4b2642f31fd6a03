"""tournament.toml: what is played, by whom, how often and by which clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from arena.config.document import COMMAND_LINE, Document, read_document
from arena.config.mistake import Mistake, check_texts, not_allowed, refuse, unknown, validate
from arena.config.name import ALLOWED, is_name
from arena.config.setting import game_of, parse_game
from arena.errors import ConfigError
from arena.games import GAMES, PRESETS
from arena.records import TIEBREAKS, Clock
from arena.rules import Value

ALL = "all"
"""Every game, or every submitted bot."""

_DEFAULT = Clock()
_HOUR_MS = 3_600_000
_BOTS = '"all" or a list of names of submitted bots and of folders (with a /)'


class ClockTable(BaseModel):
    """The `[clock]` table; `arena.records.Clock` says what each limit is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision_ms: int = Field(default=_DEFAULT.decision_ms, strict=True, ge=10, le=_HOUR_MS)
    bank_ms: int = Field(default=_DEFAULT.bank_ms, strict=True, ge=100, le=24 * _HOUR_MS)
    increment_ms: int = Field(default=_DEFAULT.increment_ms, strict=True, ge=0, le=_HOUR_MS)
    startup_ms: int = Field(default=_DEFAULT.startup_ms, strict=True, ge=100, le=_HOUR_MS)

    def limits(self) -> Clock:
        """Return the clock as matches carry it."""
        return Clock(**self.model_dump())


class TournamentConfig(BaseModel):
    """A tournament as it was asked for.

    Attributes:
        name: None leaves it to whoever stores the tournament.
        games: names in `GAMES` or `PRESETS`; no two of the same game.
        seats: bots at a table.
        options: per game the options that were given; `given` adds those of presets.
        bots: names of submitted bots, `NAME@VERSION`, folders (with a `/`), and `all` for every submitted bot.
        rounds: None leaves it to the format.
        decks: decks of a match, each played in every leg.
        seed: a short master seed for practice; None draws a secret one.
        jobs: lanes; None uses the machine.
        challengers: names of those bots that meet all others in a gauntlet.
        seeds: names of the first seeds of a knockout, the best first; the others are seeded by rating, then by lot.
        tiebreaks: what decides among equal points in the standings, some of `TIEBREAKS`, the first first.
        avoid_same_author: a Swiss keeps bots of one author apart, as far as it can.
        until_error: of that format: half the width of the widest 95 % interval of a difference, in Elo, that is
            small enough.
        max_rounds: of that format: after so many it ends all the same.
        seatings: the legs of a match; `mirror` is all rotations, with three or more seats also of the reversed circle.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, description=ALLOWED)
    format: Literal["swiss", "round-robin", "gauntlet", "knockout", "until-error"] = "swiss"
    games: tuple[str, ...] = Field(default_factory=lambda: tuple(sorted(GAMES)))
    seats: int = Field(default=2, strict=True, ge=2, le=11, validate_default=True)
    options: dict[str, dict[str, Value]] = Field(default_factory=dict, validate_default=True)
    bots: tuple[str, ...] = (ALL,)
    rounds: int | None = Field(default=None, strict=True, ge=1, le=1000)
    decks: int = Field(default=1, strict=True, ge=1, le=10_000)
    seed: int | None = Field(default=None, strict=True, ge=0, le=(1 << 63) - 1)
    jobs: int | None = Field(default=None, strict=True, ge=1, le=1024)
    seatings: Literal["mirror", "rotate", "all"] = "mirror"
    challengers: tuple[str, ...] = Field(default=(), validate_default=True)
    seeds: tuple[str, ...] = Field(default=(), validate_default=True)
    avoid_same_author: bool = Field(default=False, strict=True)
    until_error: int = Field(default=15, strict=True, ge=1, le=1000)
    max_rounds: int = Field(default=1000, strict=True, ge=1, le=10_000)
    tiebreaks: tuple[str, ...] = TIEBREAKS
    clock: ClockTable = Field(default=ClockTable(), description="a table of limits")

    def given(self) -> dict[str, dict[str, Value]]:
        """Return the options that were given, by presets too, by the name of each game in `GAMES`."""
        return {game_of(name): {**parse_game(name)[1], **self.options.get(game_of(name), {})} for name in self.games}

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str | None) -> str | None:
        if value is not None and not is_name(value):
            raise ValueError
        return value

    @field_validator("games", mode="plain")
    @classmethod
    def _check_games(cls, value: object) -> tuple[str, ...]:
        known = GAMES.keys() | PRESETS.keys()
        if value == ALL:
            return tuple(sorted(GAMES))

        played: dict[str, str] = {}

        def problem(name: str) -> str:
            if name not in known:
                return unknown("game", name, known)
            other = played.setdefault(game_of(name), name)
            return (
                "" if other == name else f"is the same game as {other}; a tournament plays a game by one set of rules"
            )

        return check_texts(value, f'"all" or a list of some of {", ".join(sorted(known))}', problem)

    @field_validator("seats")
    @classmethod
    def _check_seats(cls, value: int, info: ValidationInfo) -> int:
        text = "{} is played by {} to {} seats, not {}"
        games = [GAMES[game_of(name)] for name in info.data.get("games", ())]
        unfit = [game for game in games if value not in game.seats]
        refuse([Mistake((), text.format(game.name, game.seats[0], game.seats[-1], value)) for game in unfit])
        if info.data.get("format") == "knockout" and value != 2:
            refuse([Mistake((), f"a knockout is played at tables of 2, not {value}")])
        return value

    @field_validator("rounds")
    @classmethod
    def _check_rounds(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("format") == "knockout":
            refuse([Mistake((), "a knockout has as many as it takes until one is left; leave it out")])
        if value is not None and info.data.get("format") == "until-error":
            refuse([Mistake((), "it goes on until its errors are small enough; leave it out, or set max_rounds")])
        return value

    @field_validator("challengers", mode="plain")
    @classmethod
    def _check_challengers(cls, value: object, info: ValidationInfo) -> tuple[str, ...]:
        is_gauntlet = info.data.get("format") == "gauntlet"
        if value in ((), []) and not is_gauntlet:
            return ()
        if not is_gauntlet:
            refuse([Mistake((), 'only a gauntlet has them: format = "gauntlet"')])
        if not value:
            refuse([Mistake((), "a gauntlet needs some: names of bots that meet all others")])
        return _check_names(value)

    @field_validator("seeds", mode="plain")
    @classmethod
    def _check_seeds(cls, value: object, info: ValidationInfo) -> tuple[str, ...]:
        if value in ((), []):
            return ()
        if info.data.get("format", "knockout") != "knockout":
            refuse([Mistake((), 'only a knockout has them: format = "knockout"')])
        return _check_names(value)

    @field_validator("avoid_same_author")
    @classmethod
    def _check_authors(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("format", "swiss") != "swiss":
            refuse([Mistake((), "only a Swiss can, where pairs are chosen")])
        return value

    @field_validator("tiebreaks", mode="plain")
    @classmethod
    def _check_tiebreaks(cls, value: object) -> tuple[str, ...]:
        return check_texts(
            value,
            f"a list of some of {', '.join(TIEBREAKS)}",
            lambda name: "" if name in TIEBREAKS else unknown("tie-break", name, TIEBREAKS),
        )

    @field_validator("options", mode="plain")
    @classmethod
    def _check_options(cls, value: object, info: ValidationInfo) -> dict[str, dict[str, Value]]:
        games: tuple[str, ...] = info.data.get("games", tuple(GAMES))
        if not isinstance(value, dict):
            refuse([Mistake((), not_allowed(value, "a table for each game, as in [options.durak]"))])
        tables = cast(dict[str, dict[str, Value]], value)  # which _table_mistakes makes sure of
        mistakes = [mistake for name in tables for mistake in _table_mistakes(name, tables[name], games)]
        refuse(mistakes)
        return tables

    @field_validator("bots", mode="plain")
    @classmethod
    def _check_bots(cls, value: object, info: ValidationInfo) -> tuple[str, ...]:
        if value == ALL:
            return (ALL,)
        names = check_texts(value, _BOTS, _bot_problem)
        seats = info.data.get("seats", 0)
        if ALL not in names and len(names) < seats:
            refuse([Mistake((), f"has too few: {len(names)} for a table of {seats} seats")])
        return names


def load_tournament(path: Path, **options: object) -> TournamentConfig:
    """Read a tournament.toml; folders of bots in it are relative to it, and it is called like its file by default.

    Args:
        options: what was given on the command line instead, as for `tournament_from_options`.

    Raises:
        ConfigError: tells all mistakes, each on a line, with its place.
    """
    given = _given(options)
    config = validate(TournamentConfig, read_document(path).override(given))
    if config.name is None and is_name(path.stem):
        config = config.model_copy(update={"name": path.stem})
    if "bots" in given:
        return config
    bots = tuple(str(path.parent.absolute() / bot) if "/" in bot else bot for bot in config.bots)
    return config.model_copy(update={"bots": bots})


def tournament_from_options(**options: object) -> TournamentConfig:
    """Return the tournament of options given on the command line.

    Args:
        options: named like the keys of the file; None is not given; `games` and `bots` may be texts with commas.

    Raises:
        ConfigError: tells all mistakes, each on a line.
    """
    return validate(TournamentConfig, Document(COMMAND_LINE, {}, {}).override(_given(options)))


def _given(options: Mapping[str, object]) -> dict[str, object]:
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("games", "bots", "challengers", "seeds"):
        value = given.get(name)
        if isinstance(value, str) and value != ALL:
            given[name] = value.split(",")
    if "until_error" in given and given.setdefault("format", "until-error") != "until-error":
        raise ConfigError(f"--until-error pairs by itself; leave out --format {given['format']}")
    return given


def _check_names(value: object) -> tuple[str, ...]:
    return check_texts(
        value, "a list of names of bots", lambda name: "" if is_name(name) else not_allowed(name, ALLOWED)
    )


def _bot_problem(name: str) -> str:
    latest, at, version = name.partition("@")
    if name == ALL or ("/" in name and name.isprintable()):
        return ""
    if is_name(latest) and (not at or (version.isascii() and version.isdecimal() and len(version) < 10)):
        return ""
    return not_allowed(name, f"a folder (with a /), NAME@VERSION or a name: {ALLOWED}")


def _table_mistakes(name: str, table: object, games: tuple[str, ...]) -> Iterator[Mistake]:
    if name in PRESETS:
        yield Mistake((name,), f"is a preset; options that go beyond it belong into [options.{game_of(name)}]")
    elif name not in GAMES:
        yield Mistake((name,), unknown("game", name, GAMES))
    elif name not in map(game_of, games):
        yield Mistake((name,), f"is not among the games: {', '.join(games)}")
    elif not isinstance(table, dict):
        yield Mistake((name,), not_allowed(table, "a table"))
    else:
        schema = GAMES[name].schema
        for option, value in table.items():
            if option not in schema:
                yield Mistake((name, option), unknown(f"{name} option", option, schema))
            elif not schema[option].allows(value):
                yield Mistake((name, option), not_allowed(value, schema[option].describe()))
