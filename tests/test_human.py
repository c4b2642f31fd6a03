"""A person at the table: asked as the rules say, told what its seat may know, and never kept."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from typer.testing import CliRunner

from arena.cli.commands import app
from arena.cli.human import HUMAN, Left, Table, _play, check_human, human_spec
from arena.errors import ConfigError
from arena.games import GAMES
from arena.plan import Plan, new_tournament, scheduled
from arena.records import BotHash, BotRef, MatchSpec
from arena.referee import Host
from arena.store.bots import submissions
from arena.store.database import open_reader
from arena.store.matches import deals
from tests.fakes import MACHINE, Fakes, Script, at_ask, bot_ref, illegal, last, player, spec_of

BOTS = Path(__file__).parents[1] / "bots"
PERSON = BotRef(HUMAN, BotHash(""), "", ())


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as stdin; what is written to the descriptor is typed there."""
    ours, theirs = pty.openpty()
    mode = termios.tcgetattr(theirs)
    mode[3] &= ~termios.ECHO  # nobody reads what it would show
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    with os.fdopen(theirs, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


async def play(spec: MatchSpec, scripts: dict[str, Script], names: Sequence[str]) -> None:
    async with trio.open_nursery() as nursery:
        host = Host(Fakes(nursery, scripts).open, "none", MACHINE, "0", lambda: 0.0, spin_s=0.0)
        await _play(spec, host, names)


@pytest.mark.parametrize("game", sorted(GAMES))
async def test_a_whole_deal_of_each_game(keyboard: int, capsys: pytest.CaptureFixture[str], game: str) -> None:
    spec = msgspec.structs.replace(spec_of("foe", PERSON, game=game))
    os.write(keyboard, b"1\n" * 600)
    await play(spec, {"foe": player(last)}, ["foe", HUMAN])
    told = capsys.readouterr().out
    assert told.startswith("deal 1 of 1: seat 0 foe   seat 1 human; you are in seat 1, q leaves\n")
    assert told.count("your action: ") > 3
    assert "\n1. " in told
    assert "fault" not in told


async def test_each_leg_and_deck_is_a_deal(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    spec = spec_of(PERSON, "foe", game="durak", decks=2, legs=[(0, 1), (1, 0)])
    os.write(keyboard, b"1\n" * 600)
    await play(spec, {"foe": player(last)}, [HUMAN, "foe"])
    told = capsys.readouterr().out
    seats = [line.rsplit("you are in ")[1] for line in told.splitlines() if line.startswith("deal ")]
    assert seats == ["seat 0, q leaves"] * 2 + ["seat 1, q leaves"] * 2


async def test_hidden_cards_stay_hidden(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"1\n" * 600)
    await play(spec_of(PERSON, "foe", game="avalanche"), {"foe": player(last)}, [HUMAN, "foe"])
    told = capsys.readouterr().out
    assert "human is dealt " in told
    assert "foe is dealt " not in told
    assert "foe draws: snowfall" in told
    assert [line for line in told.splitlines() if line.startswith("- foe draws ")] == []


async def test_an_answer_in_a_window_is_not_told_before_it_closes(
    keyboard: int, capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(keyboard, b"q\n")
    with pytest.RaisesGroup(Left, flatten_subgroups=True):
        await play(spec_of("foe", PERSON, game="smokestack"), {"foe": player()}, ["foe", HUMAN])
    told = capsys.readouterr().out
    assert "1 sweep" in told
    assert "foe sweep" not in told
    assert "answers" not in told


async def test_a_fault_of_a_bot_ends_the_deal(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"1\n" * 50)
    await play(spec_of(PERSON, "foe", game="durak"), {"foe": at_ask(2, illegal)}, [HUMAN, "foe"])
    told = capsys.readouterr().out
    assert "fault of foe: illegal/action: your bot answered 'castle'" in told
    assert told.rstrip().endswith("1. human (0); 2. foe (0): fault")


async def said(keyboard: int, typed: bytes) -> str:
    os.write(keyboard, typed)
    return await Table(0, ["human", "foe"]).ask({"hand": ["7h"]}, ("beat:7h:9h", "take"))


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        (b"1\n", "beat:7h:9h"),
        (b" 2 \n", "take"),
        (b"take\n", "take"),
        (b"beat:7h:9h\n", "beat:7h:9h"),
        ("beat 7♥ 9♥\n".encode(), "beat:7h:9h"),
        (b"0\n3\n-1\n\xff\n\n99999\nTAKE\n\x1b[2J\n2\n", "take"),
    ],
)
async def test_an_action_is_named_by_number_or_text(keyboard: int, typed: bytes, action: str) -> None:
    assert await said(keyboard, typed) == action


async def test_nonsense_is_asked_again(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert await said(keyboard, b"castle\x1b\n1\n") == "beat:7h:9h"
    told = capsys.readouterr().out
    assert "hand         7♥" in told
    assert " 1 beat 7♥ 9♥    2 take" in told
    assert "'castle·' is none of them: a number from 1 to 2, an action, or q" in told


@pytest.mark.parametrize("typed", [b"q\n", b"\x04", b"0\nq\n"])
async def test_q_and_the_end_of_input_leave(keyboard: int, typed: bytes) -> None:
    with pytest.raises(Left):
        await said(keyboard, typed)


async def test_what_is_nothing_is_not_shown(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"1\n")
    seen: dict[str, object] = {
        "seat": 0,
        "seats": 2,
        "drawn": None,
        "table": [],
        "out": [None, None],
        "laid": {},
        "limit": 0,
        "trump": "s",
    }
    await Table(0, ["human", "foe"]).ask(seen, ("take",))
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert shown == ["limit", "trump", "1"]


def test_the_decks_are_those_that_bots_are_dealt() -> None:
    plan = Plan("round-robin", {"durak": {"transfer": True}}, 1, 2, 3)
    spec = human_spec("durak", plan, [bot_ref("foe"), None], 5, None, "none")
    made = new_tournament("play", plan, "none", 0.0, 1, seed=5, kind="play")
    assert spec.decks == scheduled(made, made.stages[0], "durak", 1, (0, 1)).decks
    assert (spec.legs, spec.options["transfer"], [ref.name for ref in spec.bots]) == (((0, 1),), True, ["foe", HUMAN])
    assert human_spec("durak", plan, [bot_ref("foe"), None], 5, "mirror", "none").legs == ((0, 1), (1, 0))


def test_what_a_person_cannot_do_is_refused(keyboard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_human([HUMAN, "foe"], as_json=False)
    with pytest.raises(ConfigError, match="human is named 2 times"):
        check_human([HUMAN, HUMAN], as_json=False)
    with pytest.raises(ConfigError, match="leave --json out"):
        check_human([HUMAN, "foe"], as_json=True)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(ConfigError, match="human needs a terminal"):
            check_human([HUMAN, "foe"], as_json=False)


def test_without_a_terminal_it_is_refused(tmp_path: Path) -> None:
    line = ["play", "durak", HUMAN, f"{BOTS}/random/", "--db", str(tmp_path / "arena.db")]
    assert "human needs a terminal" in str(CliRunner().invoke(app, line).exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "code", "told"),
    [
        (b"1\n" * 400, 0, "a match with human is not kept"),
        (b"castle\n1\nq\n", 130, "you left the table; nothing is kept"),
        (b"1\n\x04", 130, "you left the table; nothing is kept"),
        (b"1\n\x03", 130, "interrupted"),
    ],
)
def test_a_person_and_a_real_bot(tmp_path: Path, typed: bytes, code: int, told: str) -> None:
    db = tmp_path / "arena.db"
    line = [sys.executable, "-m", "arena", "play", "durak", HUMAN, f"{BOTS}/random/", "--seed", "3", "--trusted"]
    ours, theirs = pty.openpty()
    try:
        # setsid makes it the terminal that sends signals, as a login does.
        started = subprocess.Popen(
            ["setsid", "--ctty", *line, "--db", str(db)], stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = read(ours, b"your action: ")
        os.write(ours, typed)
        shown += read(ours)
        assert started.wait(60) == code, shown
    finally:
        os.close(ours)
    assert told.encode() in shown
    assert b"human draws" in shown
    with open_reader(db) as opened:
        assert deals(opened, 1) == []
        assert submissions(opened) == []


def read(terminal: int, until: bytes = b"\0") -> bytes:
    """Return what a terminal shows, up to some text or to the end of all that have it open."""
    shown = b""
    while until not in shown:
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:
            return shown
    return shown
