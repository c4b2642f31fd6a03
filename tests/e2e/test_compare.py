"""`arena compare` as its users meet it: real bots, real lanes, a real database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arena.cli.commands import app

BOTS = Path(__file__).parents[2] / "bots"
RANDOM, GREEDY, KNAVE = (f"{BOTS}/{name}/" for name in ("random", "greedy", "knave"))
FAST = ("--game", "durak", "--elo1", "100", "--decks", "16")
PATIENCE_S = 60


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def compared(*args: str | Path) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Return the exit code, the last document and the events of a comparison."""
    result = arena("compare", *args, "--json")
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert documents, result.output
    return result.exit_code, documents[-1], documents[:-1]


def refusal(*args: str | Path) -> str:
    error = arena("compare", *args).exception
    assert error is not None
    return str(error)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which a bot was submitted."""
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("site")
    os.chdir(folder)
    try:
        assert arena("submit", BOTS / "random").exit_code == 0
        yield folder
    finally:
        os.chdir(before)


@pytest.mark.slow
def test_a_better_bot_is_found_kept_and_verified(site: Path) -> None:
    code, found, events = compared("random@1", GREEDY, *FAST)
    assert (code, found["schema"], found["verdict"]) == (0, "arena.compare/1", "H1")
    assert (found["new"]["name"], found["old"]["name"], found["field"]) == ("greedy", "random@1", [])
    assert found["deals"] == 2 * found["sets"]
    assert found["llr"] >= found["upper"]
    if found["elo"]["value"] is None:  # it won every set, which bounds its lead from below alone
        assert found["elo"]["low"] > 0
        assert found["elo"]["high"] is None
    else:
        assert found["elo"]["low"] < found["elo"]["value"] < found["elo"]["high"]
    assert found["faults"] == {"NEW": 0, "OLD": 0}
    assert {event["event"] for event in events} == {"MatchPlayed", "Judged"}

    code, again, events = compared("random@1", GREEDY, *FAST)
    assert (code, again, events) == (0, found, [])

    told = arena("compare", "random@1", GREEDY, *FAST, "--quiet")
    assert told.stdout.startswith("yes: NEW is stronger by +100 normalised Elo rather than by +0 (H1 accepted)\n")
    assert "random@1 (" in told.stdout
    verified = arena("verify", "--json")
    assert (verified.exit_code, json.loads(verified.stdout)["differences"]) == (0, [])
    assert json.loads(arena("leaderboard", "--json").stdout).get("games", []) == []


@pytest.mark.slow
def test_a_comparison_among_others_stays_open_at_its_cap_and_travels(site: Path) -> None:
    field = ("--field", f"{KNAVE},random", "--seats", "3", "--game", "durak", "--decks", "2", "--seatings", "rotate")
    copy = site / "copy"
    copy.mkdir()
    for path in (BOTS / "greedy").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "changed.txt").write_text("another version")
    named = ("compare", GREEDY, f"{copy}/", *field, "--max-sets", "3")
    told = arena(*named)
    assert told.exit_code == 1, told.output
    assert told.stdout.startswith("undecided: ")
    assert "field       knave, random" in told.stdout or "field       random, knave" in told.stdout
    assert "Elo         +0.0 ± " in told.stdout
    assert "sets        4 of 2 deals" in told.stdout
    assert " begins · OLD greedy (" in told.stderr

    another = json.loads(arena(*named, "--again", "--json").stdout.splitlines()[-1])
    assert another["play"] != "play 1"
    assert arena("export", "all", "-o", "all.ndjson").exit_code == 0
    assert arena("import", "all.ndjson", "--db", "there/arena.db").exit_code == 0
    there = arena("verify", "--db", "there/arena.db")
    assert there.exit_code == 0, there.output


def test_what_cannot_be_compared_is_refused(site: Path) -> None:
    assert "are the same bot" in refusal("random", RANDOM)
    assert "both play avalanche, durak, smokestack" in refusal(RANDOM, GREEDY)
    assert "OLD and NEW are one bot each" in refusal("all", GREEDY, "--game", "durak")
    assert "--elo1 -1 must be more" in refusal(RANDOM, GREEDY, "--game", "durak", "--elo1", "-1")
    for option, value in (("--alpha", "nan"), ("--beta", "1e-320"), ("--elo1", "inf"), ("--elo0", "nan")):
        assert f"{option} {float(value):g}" in refusal(RANDOM, GREEDY, "--game", "durak", option, value)
    assert "random is one of the two" in refusal(RANDOM, GREEDY, "--game", "durak", "--field", "random")
    assert "pass --trusted" in refusal(RANDOM, GREEDY, "--game", "durak", "--seed", "1")
    assert "name them with --field" in refusal("random", GREEDY, "--game", "durak", "--seats", "3")


def line(db: Path) -> list[str]:
    fixed = ("--game", "durak", "--decks", "2", "--seed", "5", "--trusted", "--jobs", "1", "--json", "--db", str(db))
    return [sys.executable, "-m", "arena", "compare", RANDOM, f"{BOTS}/c-first/", *fixed, "--elo1", "100"]


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_by_the_same_command(tmp_path: Path) -> None:
    def last(stdout: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(stdout.splitlines()[-1])
        return loaded

    whole = subprocess.run(line(tmp_path / "whole.db"), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    with subprocess.Popen(line(tmp_path / "arena.db"), stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "MatchPlayed"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "the same command goes on" in told
    rest = subprocess.run(line(tmp_path / "arena.db"), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert rest.returncode == whole.returncode
    assert last(rest.stdout) == last(whole.stdout)
