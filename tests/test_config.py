from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.bundle import make_bundle, read_bundle
from arena.config import (
    BotManifest,
    TournamentConfig,
    is_name,
    load_manifest,
    load_tournament,
    manifest_of,
    parse_game,
    parse_manifest,
    parse_settings,
    tournament_from_options,
)
from arena.config.document import KeyPath, parse_document
from arena.errors import ConfigError
from arena.games import GAMES, PRESETS
from arena.records import Clock
from arena.rules import Game, Option, Options


class Rules(msgspec.Struct, frozen=True):
    """As much of a game as a configuration asks for."""

    name: str
    seats: range
    schema: dict[str, Option]

    def check(self, seats: int, options: Options) -> None:
        if options.get("transfer") is True and options["max_attack"] == 1:
            raise ConfigError(f"{self.name} option transfer cannot be true with max_attack 1")


DURAK = Rules(
    "durak",
    range(2, 7),
    {
        "deck": Option((36, 52), default=lambda seats: 36 if seats <= 3 else 52),
        "max_attack": Option((6, "none"), low=1, high=51),
        "transfer": Option((False, True)),
    },
)
SMOKESTACK = Rules(
    "smokestack", range(2, 12), {"double": Option(("pair", "off")), "sweeps": Option((1,), low=0, high=99)}
)


FORMATS = "swiss | round-robin | gauntlet | knockout | until-error"
KEYS = ", ".join(sorted(TournamentConfig.model_fields))


@pytest.fixture(autouse=True)
def _games(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (GAMES, PRESETS):
        for name in tuple(registry):
            monkeypatch.delitem(registry, name)
    monkeypatch.setitem(GAMES, "durak", cast(Game, DURAK))
    monkeypatch.setitem(GAMES, "smokestack", cast(Game, SMOKESTACK))
    monkeypatch.setitem(PRESETS, "smokestack-junior", ("smokestack", {"double": "off"}))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spring.toml"


def load(file: Path, text: str | bytes) -> TournamentConfig:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_tournament(file)


def mistakes(file: Path, text: str | bytes) -> list[str]:
    """Return the lines of the error without the folder of the file."""
    with pytest.raises(ConfigError) as info:
        load(file, text)
    return str(info.value).replace(f"{file.parent}/", "").split("\n")


def mistake(file: Path, text: str | bytes) -> str:
    """Return the only mistake of a tournament that is otherwise fine."""
    more = text if isinstance(text, bytes) else text.encode()
    (only,) = mistakes(file, b'name = "x"\n' + more)
    return only


# Tournaments


def test_a_tournament_may_be_left_to_the_defaults(file: Path) -> None:
    config = load(file, "")
    assert tournament_from_options() == TournamentConfig()
    assert config == TournamentConfig(name="spring")
    assert config.games == ("durak", "smokestack")
    assert config.bots == ("all",)
    assert config.clock.limits() == Clock()
    assert (config.seats, config.seed, config.jobs, config.rounds) == (2, None, None, None)
    assert config.given() == {"durak": {}, "smokestack": {}}


def test_everything_can_be_said(file: Path) -> None:
    config = load(
        file,
        """
        name = "spring"
        format = "round-robin"
        games = ["smokestack-junior", "durak"]
        bots = ["greedy", "./mine", "../theirs", "/abs/olute"]
        rounds = 3
        seats = 4
        decks = 20
        seed = 0
        jobs = 2
        seatings = "rotate"
        [options.durak]
        max_attack = "none"
        [options.smokestack]
        sweeps = 7
        [clock]
        decision_ms = 100
        bank_ms = 1000
        increment_ms = 0
        startup_ms = 5000
        """,
    )
    assert config.given() == {"smokestack": {"double": "off", "sweeps": 7}, "durak": {"max_attack": "none"}}
    folder = str(file.parent)
    assert config.bots == ("greedy", f"{folder}/mine", f"{folder}/../theirs", "/abs/olute")
    assert config.clock.limits() == Clock(100, 1000, 0, 5000)
    assert (config.rounds, config.seats, config.decks, config.seed, config.jobs) == (3, 4, 20, 0, 2)
    assert (config.format, config.seatings) == ("round-robin", "rotate")


def test_a_tournament_never_changes() -> None:
    config = tournament_from_options(name="x")
    with pytest.raises(ValueError, match="frozen"):
        config.seats = 3


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    text = """\
name = "spring"
format = "league"

rounds = 0 # none
[options.durak]
deck = 40
[clock]
bank = 5
"""
    assert mistakes(file, text) == [
        f'spring.toml:2: format: "league" is not allowed; allowed: {FORMATS}',
        "spring.toml:4: rounds: 0 is not allowed; allowed: an integer, 1 ... 1000",
        "spring.toml:6: options.durak.deck: 40 is not allowed; allowed: 36 | 52",
        'spring.toml:8: clock.bank: there is no key "bank"; known: bank_ms, decision_ms, increment_ms, startup_ms; '
        "did you mean bank_ms",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seats = true", "spring.toml:2: seats: true is not allowed; allowed: an integer, 2 ... 11"),
        ("seats = 3.0", "spring.toml:2: seats: 3.0 is not allowed; allowed: an integer, 2 ... 11"),
        ('decks = "5"', 'spring.toml:2: decks: "5" is not allowed; allowed: an integer, 1 ... 10000'),
        ("seed = -1", "spring.toml:2: seed: -1 is not allowed; allowed: an integer, 0 ... 9223372036854775807"),
        ("jobs = 0", "spring.toml:2: jobs: 0 is not allowed; allowed: an integer, 1 ... 1024"),
        ("clock = 3", "spring.toml:2: clock: 3 is not allowed; allowed: a table of limits"),
        ("clock.bank_ms = 3", "spring.toml:2: clock.bank_ms: 3 is not allowed; allowed: an integer, 100 ... 86400000"),
        ('seatings = ""', 'spring.toml:2: seatings: "" is not allowed; allowed: mirror | rotate | all'),
        (
            "options = 1",
            "spring.toml:2: options: 1 is not allowed; allowed: a table for each game, as in [options.durak]",
        ),
        ("options.durak = 1", "spring.toml:2: options.durak: 1 is not allowed; allowed: a table"),
        (
            'tiebreaks = ["buchholtz"]',
            'spring.toml:2: tiebreaks[0]: there is no tie-break "buchholtz"; known: buchholz, buchholz cut 1, '
            "direct encounter, lot, median duel, sets won, sonneborn-berger; did you mean buchholz",
        ),
        ("seats = 9", "spring.toml:2: seats: durak is played by 2 to 6 seats, not 9"),
        ("date = 1979-05-27", f'spring.toml:2: date: there is no key "date"; known: {KEYS}'),
        ('"a\\u001b" = 1', f'spring.toml:2: "a\\u001b": there is no key "a\\u001b"; known: {KEYS}'),
    ],
)
def test_a_value_that_is_not_allowed_is_told(file: Path, text: str, told: str) -> None:
    assert mistake(file, text) == told


@pytest.mark.parametrize("name", ["", "A", "-a", "all", "last", "overall", "human", "а", "a" * 33, "a\\n", "a_b"])
def test_names_that_are_not_allowed(file: Path, name: str) -> None:
    (told,) = mistakes(file, f'name = "{name}"')
    assert told.startswith("spring.toml:1: name: ")
    assert "is not allowed; allowed: 1 to 32 of a-z" in told


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a-", "allo", "z" * 32])
def test_names_that_are_allowed(name: str) -> None:
    assert is_name(name)
    assert tournament_from_options(name=name).name == name


def test_games_are_told_apart(file: Path) -> None:
    assert mistakes(file, 'name = "x"\ngames = [\n "hearts",\n 5,\n "durak", "durak",\n "smokstack"]') == [
        'spring.toml:3: games[0]: there is no game "hearts"; known: durak, smokestack, smokestack-junior',
        "spring.toml:4: games[1]: 5 is not allowed; allowed: a text",
        'spring.toml:5: games[3]: "durak" is named more than once',
        'spring.toml:6: games[4]: there is no game "smokstack"; known: durak, smokestack, smokestack-junior; '
        "did you mean smokestack",
    ]


def test_a_game_is_played_by_one_set_of_rules(file: Path) -> None:
    told = mistake(file, 'games = ["smokestack-junior", "smokestack"]')
    assert (
        told.startswith("spring.toml:2: games[1]: is the same game as smokestack-junior, ") or "; a tournament" in told
    )


@pytest.mark.parametrize("value", ['"durak"', "[]", "3", "{}"])
def test_games_are_a_list(file: Path, value: str) -> None:
    told = mistake(file, f"games = {value}")
    assert told.endswith('allowed: "all" or a list of some of durak, smokestack, smokestack-junior')


def test_all_games_and_bots_can_be_named(file: Path) -> None:
    assert load(file, 'name = "x"\ngames = "all"\nbots = "all"') == load(file, 'name = "x"')


def test_bots_are_told_apart(file: Path) -> None:
    text = 'seats = 6\nbots = ["greedy", "Random", "human",\n"", "greedy", 1, "a/\\u001b"]'
    told = mistakes(file, 'name = "x"\n' + text)
    assert [line.split(" ")[:3] for line in told] == [
        ["spring.toml:3:", "bots[1]:", '"Random"'],
        ["spring.toml:3:", "bots[2]:", '"human"'],
        ["spring.toml:4:", "bots[3]:", '""'],
        ["spring.toml:4:", "bots[4]:", '"greedy"'],
        ["spring.toml:4:", "bots[5]:", "1"],
        ["spring.toml:4:", "bots[6]:", '"a/\\u001b"'],
    ]
    assert "a folder (with a /), NAME@VERSION or a name: 1 to 32" in told[0]


def test_there_are_bots_for_a_table(file: Path) -> None:
    assert mistake(file, 'bots = ["a", "b"]\nseats = 3') == "spring.toml:2: bots: has too few: 2 for a table of 3 seats"
    assert load(file, 'bots = ["a", "b", "c"]\nseats = 3').bots == ("a", "b", "c")
    assert load(file, 'bots = ["all", "a/"]\nseats = 4').bots == ("all", f"{file.parent}/a")


def test_options_are_told_apart(file: Path) -> None:
    text = """name = "x"
games = ["smokestack-junior"]
[options.hearts]
[options.durak]
deck = 36
[options.smokestack-junior]
[options]
smokestack.sweeps = 100
smokestack.doubel = "off"
"""
    assert mistakes(file, text) == [
        'spring.toml:3: options.hearts: there is no game "hearts"; known: durak, smokestack',
        "spring.toml:4: options.durak: is not among the games: smokestack-junior",
        "spring.toml:6: options.smokestack-junior: is a preset; options that go beyond it belong into "
        "[options.smokestack]",
        "spring.toml:8: options.smokestack.sweeps: 100 is not allowed; allowed: 1 | 0 ... 99",
        'spring.toml:9: options.smokestack.doubel: there is no smokestack option "doubel"; known: double, sweeps; '
        "did you mean double",
    ]


def test_options_are_checked_whatever_else_is_wrong(file: Path) -> None:
    text = 'games = "none"\nseats = 99\n[options.durak]\ndeck = 40\n[options.smokestack]\nsweeps = "many"'
    told = mistakes(file, text)
    assert [line.split(" ")[1] for line in told] == [
        "games:",
        "seats:",
        "options.durak.deck:",
        "options.smokestack.sweeps:",
    ]


def test_long_values_are_cut(file: Path) -> None:
    told = mistake(file, f'format = "{"x" * 1000}"')
    assert told == f'spring.toml:2: format: "{"x" * 56}... is not allowed; allowed: {FORMATS}'


def test_options_of_the_command_line_are_checked_alike() -> None:
    config = tournament_from_options(name="x", games=["durak"], jobs=None, options={"durak": {"deck": 52}})
    assert config.given() == {"durak": {"deck": 52}}
    with pytest.raises(ConfigError) as info:
        tournament_from_options(name="x", games=("durak",), rounds=0, options={"durak": {"deck": 40}}, bots=["a"])
    assert str(info.value).split("\n") == [
        "command line: options.durak.deck: 40 is not allowed; allowed: 36 | 52",
        "command line: bots: has too few: 1 for a table of 2 seats",
        "command line: rounds: 0 is not allowed; allowed: an integer, 1 ... 1000",
    ]


def test_options_of_the_command_line_go_before_the_file(file: Path) -> None:
    file.write_text('games = ["durak"]\nbots = ["./a", "b"]\nrounds = 0\nseats = 0\n[clock]\nbank_ms = 1')
    with pytest.raises(ConfigError) as info:
        load_tournament(file, rounds=0, seats=3, jobs=None, bots="./x,y,z")
    assert str(info.value).split("\n") == [
        "command line: rounds: 0 is not allowed; allowed: an integer, 1 ... 1000",
        f"{file}:6: clock.bank_ms: 1 is not allowed; allowed: an integer, 100 ... 86400000",
    ]
    config = load_tournament(file, rounds=1, seats=3, bots="./x,y,z", games="all", clock={})
    assert (config.bots, config.seats, config.games) == (("./x", "y", "z"), 3, ("durak", "smokestack"))


def test_a_game_is_named_by_itself_or_a_preset() -> None:
    assert parse_game("durak") == ("durak", {})
    assert parse_game("smokestack-junior") == ("smokestack", {"double": "off"})
    parse_game("smokestack-junior")[1].clear()
    assert parse_game("smokestack-junior")[1]
    with pytest.raises(ConfigError, match=r'there is no game "durok"; known: .*; did you mean durak'):
        parse_game("durok")


def test_settings_become_options() -> None:
    assert parse_settings("durak", []) == {}
    assert parse_settings("durak", ["deck=36", "transfer=true", "max_attack=none", "deck=52"]) == {
        "deck": 52,
        "transfer": True,
        "max_attack": "none",
    }
    assert parse_settings("durak", ["max_attack=51"]) == {"max_attack": 51}


def test_all_wrong_settings_are_told_at_once() -> None:
    wrong = ["deck", "dek=36", "deck=40", "deck=thirty", "transfer=1", "max_attack=-1", "max_attack=" + "9" * 5000]
    with pytest.raises(ConfigError) as info:
        parse_settings("durak", wrong)
    assert [line.split(";")[0] for line in str(info.value).split("\n")][:-1] == [
        'deck: "deck" is not allowed',
        'dek: there is no durak option "dek"',
        'deck: "40" is not allowed',
        'deck: "thirty" is not allowed',
        'transfer: "1" is not allowed',
        'max_attack: "-1" is not allowed',
    ]


# Files


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = 1\nrounds = \n", "spring.toml:2: is not TOML: Invalid value: 'rounds ='"),
        ("a = 1\nb = [1,\n", "spring.toml:2: is not TOML: Invalid value: 'b = [1,'"),
        ("a = 1\na = 2", "spring.toml:2: is not TOML: Cannot overwrite a value: 'a = 2'"),
        (b"a = 1\r\nb = \r\n", "spring.toml:2: is not TOML: Invalid value: 'b ='"),
        (b"a = 1\rb = 2", "spring.toml:1: is not TOML: "),
        (b"a = 1\n# \xe9\n", "spring.toml:2: the byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfea\0", "spring.toml:1: the byte 0xff is not UTF-8"),
        ("a = " + "9" * 5000, "spring.toml: Exceeds the limit"),
        ("a = " + "[" * 20_000, "spring.toml: is nested too deeply"),
        (b"#" * (1 << 20) + b"\n", "spring.toml: is larger than 1 MiB"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(file: Path, text: str | bytes, told: str) -> None:
    (only,) = mistakes(file, text)
    assert only.startswith(told)


def test_windows_files_are_read(file: Path) -> None:
    assert load(file, b'\xef\xbb\xbfname = "x"\r\nseats = 3\r\n').seats == 3
    told = mistakes(file, b'\xef\xbb\xbfname = "x"\r\n\r\nseats = 1\r\n')
    assert told == ["spring.toml:3: seats: 1 is not allowed; allowed: an integer, 2 ... 11"]


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing.toml: cannot be read: No such file"):
        load_tournament(tmp_path / "nothing.toml")
    with pytest.raises(ConfigError, match="is not a file"):
        load_tournament(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is not a file"):
        load_tournament(tmp_path / "pipe")


def test_lines_are_found_in_every_notation() -> None:
    text = '''# [no] = 1
a = 1 # "
"b c".'d' . e = """
x = 1 \\"""
[t]""""" # two quotes more
f = [ # [
  1,
  [ 2, "]" ], # ,
  {x = "}", y.z = 1979-05-27 07:32:00}, 3,
]
g = \'\'\'
'\'\'\'
[t]
h = "\\"# [" # x
[t.u.v]
w = 1
[[k]]
l = 1
[[k]]
l = 2
[k.m]
n = ''
[[k.o]]
[[k.o]]
p = []
q = {}
'''
    document = parse_document(text.encode(), "x")
    expected: dict[KeyPath, int] = {
        ("a",): 2,
        ("b c", "d", "e"): 3,
        ("f",): 6,
        ("f", 0): 7,
        ("f", 1, 1): 8,
        ("f", 2, "x"): 9,
        ("f", 2, "y", "z"): 9,
        ("f", 3): 9,
        ("g",): 11,
        ("t",): 13,
        ("t", "h"): 14,
        ("t", "u", "v", "w"): 16,
        ("k", 0, "l"): 18,
        ("k", 1): 19,
        ("k", 1, "l"): 20,
        ("k", 1, "m", "n"): 22,
        ("k", 1, "o", 1, "p"): 25,
        ("k", 1, "o", 1, "q"): 26,
    }
    assert {path: document.lines.get(path) for path in expected} == expected
    assert set(paths(document.values)) == set(document.lines)


def paths(value: object, path: KeyPath = ()) -> list[KeyPath]:
    """Return where everything in a document is."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    if isinstance(value, list):
        inner = list(enumerate(value))
    return [found for key, item in inner for found in ((*path, key), *paths(item, (*path, key)))]


blanks = st.sampled_from(["", " ", "\t", "  "])
gaps = st.sampled_from(["", " ", "\n", "\n\n", " # [c = '\n"])
texts = st.sampled_from(['"a]"', "'b}'", '"""\nc = "\\""\n"""', "'''\n'd\n'''", '"\\"#"', '""', "''", '""""""'])
plains = st.sampled_from(["1", "true", "1.5e3", "1979-05-27", "1979-05-27 07:32:00", "07:32:00", "-inf", "0xff"])
scalars = texts | plains


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    items = [draw(gaps) + draw(values) + draw(gaps) for _ in range(draw(st.integers(0, 3)))]
    return "[" + ",".join(items) + draw(gaps) + "]"


@st.composite
def inline_tables(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    keys = draw(st.lists(st.sampled_from(["a", '"b.c"', "d . e", "'f'"]), unique=True, max_size=3))
    return "{" + ",".join(f"{draw(blanks)}{key} = {draw(values)}{draw(blanks)}" for key in keys) + "}"


values = st.recursive(scalars, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=5)
headers = ["[t]", "[ t . 'u v' ]", "[[l]]", "[l.m]", "[[l.n]]", "[[ l . n . o ]]", "# c", ""]


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines = []
    for number in range(draw(st.integers(1, 5))):
        key = f"k{number}" + draw(st.sampled_from(["", ".x", ' . "y z"']))
        lines.append(f"{draw(blanks)}{key}{draw(blanks)}={draw(blanks)}{draw(values)}{draw(blanks)}{draw(gaps)}")
        lines.append(draw(st.sampled_from(headers)))
    return "\n".join(lines)


@given(documents())
def test_every_value_has_the_line_of_its_key(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    document = parse_document(text.encode(), "x")
    assert set(paths(document.values)) == set(document.lines)
    lines = text.split("\n")
    for path, line in document.lines.items():
        if isinstance(path[-1], str):
            assert path[-1] in lines[line - 1]


# Manifests

MANIFEST = """
name = "greedy"
build = ["cc", "-o", "{out}/bot", "bot.c"]
command = ["{out}/bot", "--fast", "--fast"]
games = ["durak"]
author = "Ада"
language = "C"
"""


def manifest_mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as info:
        parse_manifest(text.encode())
    return str(info.value).split("\n")


def test_a_manifest_is_read(tmp_path: Path) -> None:
    (tmp_path / "bot.toml").write_text(MANIFEST, encoding="utf-8")
    manifest = load_manifest(tmp_path)
    assert manifest == parse_manifest(MANIFEST.encode()) == parse_manifest(MANIFEST)
    assert manifest == manifest_of(read_bundle(tmp_path))
    assert manifest == BotManifest(
        name="greedy",
        build=["cc", "-o", "{out}/bot", "bot.c"],  # type: ignore[arg-type]  # as a file gives it
        command=["{out}/bot", "--fast", "--fast"],  # type: ignore[arg-type]  # as a file gives it
        games=["durak"],  # type: ignore[arg-type]  # as a file gives it
        author="Ада",
        language="C",
    )
    assert manifest.command == ("{out}/bot", "--fast", "--fast")


def test_a_manifest_may_be_short() -> None:
    manifest = parse_manifest(b'name = "a"\ncommand = ["./a"]')
    assert (manifest.build, manifest.games) == (None, ("durak", "smokestack"))
    assert (manifest.author, manifest.language) == ("", "")


def test_a_folder_without_a_manifest_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bot.toml: cannot be read: No such file"):
        load_manifest(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no bot\.toml"):
        manifest_of(make_bundle([]))


def test_all_mistakes_of_a_manifest_are_told_at_once() -> None:
    text = """name = "human"
command = "python3 'main bot.py'"
games = ["durak", "hearts"]
env = {PATH = "/"}
author = "\\u001b[2J"
"""
    told = manifest_mistakes(text)
    assert [line.split(" ")[:2] for line in told] == [
        ["bot.toml:1:", "name:"],
        ["bot.toml:2:", "command:"],
        ["bot.toml:3:", "games[1]:"],
        ["bot.toml:4:", "env:"],
        ["bot.toml:5:", "author:"],
    ]
    assert told[1].endswith('e.g. ["python3", "main.py"]; perhaps ["python3", "main bot.py"]')
    assert told[4].endswith("allowed: a text of at most 64 printable characters")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("[]", "command: [] is not allowed; allowed: a list of 1 to 256 texts"),
        ('[""]', 'command: [""] is not allowed; allowed: a list of 1 to 256 texts'),
        ("3", "command: 3 is not allowed"),
        ('"a \'b"', 'command: "a \'b" is not allowed'),
        ('["a", 1]', "command[1]: 1 is not allowed; allowed: a text"),
        (
            '["a", "\\u0000"]',
            'command[1]: "\\u0000" is not allowed; allowed: at most 4096 characters, none of them NUL',
        ),
        (f'["a", "{"b" * 4097}"]', 'command[1]: "bbb'),
        ("[" + '"a",' * 257 + "]", 'command: ["a", "a"'),
        ('["a", "-o={out}"]', "command[1]: {out} is where a build writes to, but there is no build"),
    ],
)
def test_commands_that_are_not_allowed(command: str, told: str) -> None:
    (only,) = manifest_mistakes(f'name = "a"\ncommand = {command}')
    assert only.startswith(f"bot.toml:2: {told}")


def test_a_wrong_build_does_not_make_the_command_wrong() -> None:
    told = manifest_mistakes('name = "a"\nbuild = "make"\ncommand = ["{out}/a"]')
    assert [line.split(" ")[1] for line in told] == ["build:"]


def test_a_command_and_a_name_must_be_given() -> None:
    assert [line.split(";")[0] for line in manifest_mistakes("")] == [
        "bot.toml: name: is missing",
        "bot.toml: command: is missing",
    ]


@pytest.mark.parametrize("games", ["[]", '"all"', '"durak"', '["smokestack-junior"]'])
def test_games_of_a_bot_are_a_list_of_games(games: str) -> None:
    (only,) = manifest_mistakes(f'name = "a"\ncommand = ["a"]\ngames = {games}')
    assert only.startswith("bot.toml:3: games")
