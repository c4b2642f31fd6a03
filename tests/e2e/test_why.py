"""An author's way from a lost deal to a mended bot: `why`, `logs`, `play --from`, with real bots."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arena.cli.commands import app

BOTS = Path(__file__).parents[2] / "bots"
STUBBORN = """
import sys
from arena_bot import run
asked = 0
def choose(ask):
    global asked
    asked += 1
    print(f"choose {asked} \\x1b[31m", file=sys.stderr)
    return ask.legal[0] if asked % 6 else "beat:6s"
run(choose, name="x", version="1")
"""
MENDED = "from arena_bot import run\nrun(lambda ask: ask.legal[-1], name='x', version='1')\n"
CRASHES = "raise SystemExit('no model file')\n"
GAMES = ("avalanche", "durak", "smokestack")


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def refusal(*args: str | Path) -> str:
    error = arena(*args).exception
    assert error is not None
    return str(error)


def lines(*args: str | Path) -> list[dict[str, Any]]:
    result = arena(*args, "--json")
    assert result.exit_code in (0, 1, 3), result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def write_bot(folder: Path, source: str) -> None:
    folder.mkdir(parents=True)
    (folder / "bot.toml").write_text('name = "mine"\ncommand = ["python3", "bot.py"]\n')
    (folder / "bot.py").write_text(source)
    (folder / "arena_bot.py").write_bytes((BOTS / "sdk" / "python" / "arena_bot.py").read_bytes())


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which a bot lost a match of each game; match 4 went without a fault."""
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("site")
    os.chdir(folder)
    try:
        for name, source in (("mine", STUBBORN), ("mended", MENDED), ("crashes", CRASHES)):
            write_bot(folder / name, source)
        for game in GAMES:
            played = arena("play", game, "./mine/", f"{BOTS}/c-first/", "--seed", "1")
            assert played.exit_code == 0, played.output
        assert arena("play", "avalanche", "./mended/", f"{BOTS}/c-first/", "--seed", "1", "--decks", "2").exit_code == 0
        yield folder
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("number", "game"), list(enumerate(GAMES, 1)))
def test_a_fault_is_told_in_words_and_cards(number: int, game: str) -> None:
    result = arena("why", f"{number}-0-0")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    (told,) = lines("why", f"{number}-0-0")
    step = told["fault"]["step"]
    head = shown.splitlines()[0]
    assert head == f"✖ mine lost deal {number}-0-0: illegal/action at step {step} ({game}, seat 0 of 2)"
    assert "you sent" in shown
    assert f"beat:6s   after {told['fault']['elapsed_us'] / 1000:.1f} ms of 1000 ms" in shown
    assert told["rule"] in shown
    assert "the fault ended the deal: place 2 of 2" in shown
    assert "send one of `legal` unchanged" in shown
    assert "\n  │  choose 6 ·[31m\n" in shown
    assert f"arena play --from {number}-0-0 --step {step} --bot mine=YOUR-FOLDER/\n" in shown
    assert f"arena replay {number}-0-0 --step {step}\n" in shown
    assert "arena faults --bot mine" in shown
    assert "\x1b" not in shown
    assert not [line for line in shown.splitlines() if line != line.rstrip()]


def test_a_fault_is_told_as_json() -> None:
    (told,) = lines("why", "2-0-1")
    assert (told["schema"], told["deal"], told["game"], told["bot"], told["seat"]) == (
        "arena.why/1",
        "2-0-1",
        "durak",
        "mine",
        1,
    )
    assert told["rule"] == "it is not written as beat:ATTACK:OWN, a card as its rank and its suit, e.g. Th"
    assert (told["fault"]["kind"], told["fault"]["detail"], told["fault"]["evidence"]) == (
        "illegal",
        "action",
        "beat:6s",
    )
    assert told["fault"]["advice"] == "send one of `legal` unchanged"
    assert told["seen"]["seat"] == 1
    assert told["legal"]
    assert [one["step"] for one in told["decisions"]] == sorted(one["step"] for one in told["decisions"])
    assert told["next"][0].startswith("arena play --from 2-0-1 --step ")
    (fault,) = [line for line in lines("faults") if line["deal"] == "2-0-1"]
    assert (fault["elapsed_us"], fault["limit_us"]) == (told["fault"]["elapsed_us"], 1_000_000)
    assert fault["advice"] == told["fault"]["advice"]


def test_a_deal_without_a_fault_is_told_too() -> None:
    shown = arena("why", "4-0-0").stdout
    assert " lost deal 4-0-0: played out (avalanche, seat " in shown.splitlines()[0]
    assert "the stock and the hands were used up: place 2 of 2 with " in shown
    assert "last decisions  step " in shown
    assert "arena trace 4-0-0 --seat " in shown
    winner = {"mine", "c-first"} - {lines("why", "4-0-0")[0]["bot"]}
    won = arena("why", "4-0-0", "--bot", winner.pop()).stdout
    assert won.startswith("✔ ")
    assert " won deal 4-0-0: played out" in won.splitlines()[0]
    other = arena("why", "1-0-0", "--bot", "c-first").stdout
    assert "mine failed at step" in other
    assert "no bot called 'nobody' played deal 1-0-0; there were mine, c-first" in refusal(
        "why", "1-0-0", "--bot", "nobody"
    )
    assert "there is no deal '9-0-0'" in refusal("why", "9-0-0")


def test_the_last_is_the_newest_deal_that_has_a_fault(site: Path, tmp_path: Path) -> None:
    assert lines("why", "last")[0]["deal"] == "4-1-1", "nobody failed in the last match"
    db = tmp_path / "arena.db"
    assert arena("play", "durak", "./mine/", f"{BOTS}/c-first/", "--decks", "2", "--db", db).exit_code == 0
    (told,) = lines("why", "last", "--db", db)
    assert told["fault"] is not None
    assert told["next"][1] == f"arena replay {told['deal']} --step {told['fault']['step']} --db {db}"
    assert lines("why", "last", "--bot", "c-first", "--db", db)[0]["deal"] == "1-1-1"


def test_a_record_that_breaks_the_rules_is_refused(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with sqlite3.connect(site / "results" / "arena.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("UPDATE match SET decks = zeroblob(32) WHERE id = 2")
    target.close()
    source.close()
    assert "deal 2-0-0 breaks the rules" in refusal("why", "2-0-0", "--db", copy)
    assert "deal 2-0-0 breaks the rules" in refusal("play", "--from", "2-0-0", "--bot", "mine=./mine/", "--db", copy)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_mended_bot_is_asked_where_it_failed(number: int) -> None:
    before = Path("results/arena.db").read_bytes()
    kept = sorted(Path("results/bots").iterdir())
    result = arena("play", "--from", f"{number}-0-0", "--bot", "mine=./mended/")
    assert result.exit_code == 0, result.output
    assert "   legal, after " in result.stdout
    assert "illegal/action: beat:6s" in result.stdout
    (told,) = lines("play", "--from", f"{number}-0-0", "--bot", "mine=./mended/")
    (story,) = lines("why", f"{number}-0-0")
    assert told["schema"] == "arena.position/1"
    assert (told["step"], told["legal"]) == (story["fault"]["step"], story["legal"])
    assert (told["is_legal"], told["action"], told["fault"]) == (True, told["legal"][-1], None)
    assert told["before"] == {"action": None, "fault": "illegal/action"}
    assert Path("results/arena.db").read_bytes() == before, "nothing is stored"
    assert sorted(Path("results/bots").iterdir()) == kept


def test_an_answer_that_is_still_wrong_says_so(tmp_path: Path) -> None:
    write_bot(tmp_path / "wrong", MENDED.replace("ask.legal[-1]", "'Take'"))
    result = arena("play", "--from", "2-0-0", "--bot", f"mine={tmp_path}/wrong/")
    assert result.exit_code == 1
    assert "Take   illegal, after " in result.stdout
    assert "what to do" in result.stdout
    crashed = arena("play", "--from", "2-0-0", "--bot", "mine=./crashes/")
    assert crashed.exit_code == 3
    assert "startup/exit" in crashed.stdout
    assert "no model file" in crashed.stdout
    (told,) = lines("play", "--from", "2-0-0", "--bot", "mine=./crashes/")
    assert told["fault"]["advice"] == "read the end of its stderr"
    assert (told["action"], told["is_legal"]) == (None, False)
    write_bot(tmp_path / "printer", "print('hello world', flush=True)\n")
    printed = arena("play", "--from", "2-0-0", "--bot", f"mine={tmp_path}/printer/")
    assert printed.exit_code == 1
    assert "it sent" in printed.stdout
    assert "garbage/text" in printed.stdout


def test_any_decision_of_a_deal_may_be_asked_of_a_submitted_bot_too(tmp_path: Path) -> None:
    assert arena("submit", "./mended").exit_code == 0
    (told,) = lines("play", "--from", "1-0-0", "--step", "1", "--bot", "c-first=mine")
    assert (told["bot"], told["seat"], told["is_legal"]) == ("c-first", 1, True)
    assert told["before"]["action"]
    shown = arena("play", "--from", "1-0-0", "--step", "1", "--bot", "c-first=mine").stdout
    assert "it was" in shown
    assert "in " in shown


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--from", "1-0-0", "--bot", "nobody=./mine/"), "no bot called 'nobody' played deal 1-0-0; there were mine"),
        (("--from", "1-0-0", "--bot", "c-first=./mine/"), "c-first did not fail in deal 1-0-0, so say which"),
        (
            ("--from", "1-0-0", "--step", "0", "--bot", "c-first=./mine/"),
            "not asked at step 0, but mine (seat 0); near",
        ),
        (("--from", "1-0-0", "--step", "999", "--bot", "mine=./mine/"), "the deal has no step 999"),
        (("--from", "1-0-0", "--bot", "mine=./nowhere/"), "there is no folder nowhere/"),
        (("--from", "1-0-0", "--bot", "mine=nobody"), "no bot is called 'nobody'"),
        (("--from", "9-0-0", "--bot", "mine=./mine/"), "there is no deal '9-0-0'"),
        (("--from", "1-0-0"), "a position is asked as: arena play --from DEAL --step N --bot NAME=DIR"),
        (("--step", "3", "--bot", "mine=./mine/"), "--from is missing; a position is asked as"),
        (("--from", "1-0-0", "--step", "3"), "--bot is missing; a position is asked as"),
        (("durak", "./mine/", "--from", "1-0-0", "--bot", "mine=./mine/"), "'durak' is one too many"),
        ((), "name a game and a bot for each seat"),
        (("durak",), "name a game and a bot for each seat"),
    ],
)
def test_what_cannot_be_asked_is_named(args: tuple[str, ...], told: str) -> None:
    assert told in refusal("play", *args)


def test_what_bots_wrote_is_shown_by_match_and_by_deal() -> None:
    shown = arena("logs", "2").stdout.splitlines()
    heads = [line for line in shown if line.startswith("──")]
    assert heads == ["── mine · seat 0 · deal 2-0-0", "── mine · seat 1 · deal 2-0-1"]
    assert shown[1] == "│ choose 1 ·[31m"
    assert len([line for line in arena("logs", "2-0-1").stdout.splitlines() if line.startswith("──")]) == 1
    told = lines("logs", "2-0-1")
    assert [(line["schema"], line["match"], line["bot"], line["seat"]) for line in told] == [
        ("arena.log/1", 2, "mine", 1)
    ]
    assert told[0]["text"].startswith("choose 1 \x1b[31m\n")
    assert "c-first wrote nothing to stderr in 2" in arena("logs", "2", "--bot", "c-first").stderr
    assert "no bot wrote anything to stderr in last" in arena("logs", "last").stderr


@pytest.mark.parametrize("where", ["99", "nonsense", f"{10**30}"])
def test_a_match_that_is_not_there_is_named(where: str) -> None:
    assert f"no match {where!r} was played; name a match" in refusal("logs", where)


def test_logs_of_what_is_not_there_are_refused(tmp_path: Path) -> None:
    assert "there is no deal '1-9-0'" in refusal("logs", "1-9-0")
    assert "there were mine, c-first" in refusal("logs", "1", "--bot", "nobody")
    assert arena("submit", "./mended", "--db", tmp_path / "arena.db").exit_code == 0
    assert "no match 'last' was played" in refusal("logs", "last", "--db", tmp_path / "arena.db")
    assert "there is no deal 'last'" in refusal("why", "last", "--db", tmp_path / "arena.db")
