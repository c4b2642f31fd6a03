"""`arena check` as an author meets it: real bots, each wrong in its own way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arena.check import Finding
from arena.cli.check import Sheet
from arena.cli.commands import app
from tests.scripts import HONEST, PREAMBLE

BOTS = Path(__file__).parents[2] / "bots"
PATIENT = ("--decision-ms", "10000")
"""Whatever else this machine does, an honest bot is not late."""


def check(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(app, ["check", str(folder), "--quick", "--trusted", *PATIENT, *args])


def checks(result: Result) -> dict[str, dict[str, Any]]:
    """Return the findings of a document by name."""
    told = json.loads(result.stdout)
    assert told["schema"] == "arena.check/1"
    assert told["ok"] is (result.exit_code == 0)
    return {one["name"]: one for one in told["checks"]}


def write_bot(folder: Path, body: str, manifest: str = 'command = ["python3", "bot.py"]') -> Path:
    folder.mkdir()
    (folder / "bot.toml").write_text(f'name = "{folder.name}"\ngames = ["durak"]\n{manifest}\n')
    (folder / "bot.py").write_text(PREAMBLE + body)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["greedy", "c-first"])
def test_an_example_bot_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = check(BOTS / name)
    assert result.exit_code == 0, result.output
    assert f"{name} (" in result.stdout
    assert "ready to submit" in result.stdout
    assert result.stdout.count("\nok ") >= 14
    assert "FAIL" not in result.stdout
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == [], "nothing is kept"


@pytest.mark.slow
def test_the_document_tells_the_numbers(tmp_path: Path) -> None:
    found = checks(check(BOTS / "random", "--json", "--games", "durak,avalanche"))
    assert [name for name in found if name.endswith(" deals")] == ["durak deals", "avalanche deals"]
    assert found["bundle"]["figures"]["files"] == 3
    assert found["build"]["evidence"] == "none"
    assert 5 < found["memory"]["figures"]["peak_mib"] < 100
    assert found["decision time"]["figures"].keys() >= {"p50_ms", "p95_ms", "p99_ms", "max_ms", "bank_ms"}
    assert found["durak deals"]["figures"]["deals"] == 5


@pytest.mark.slow
def test_a_bot_that_crashes_shows_its_stderr_and_the_fix(tmp_path: Path) -> None:
    body = "hello()\nwhile True:\n    message = ask()\n    assert len(message['legal']) < 15, 'too many\\x1b[2J'\n"
    result = check(write_bot(tmp_path / "weak", body + "    answer(message)\n"), "--isolation", "none")
    assert result.exit_code == 1
    assert "FAIL durak positions" in result.stdout
    assert "the longest list of legal actions (26 legal): crash/exit: your bot ended with exit" in result.stdout
    assert "fix: Read the end of its stderr; exit only at `bye`" in result.stdout
    assert "AssertionError: too many·[2J" in result.stdout
    assert "weak (none): failed: durak positions" in result.stdout


@pytest.mark.parametrize(
    ("body", "code", "fault"),
    [
        ("sys.exit(4)", 3, "startup/exit"),
        ("os.write(1, b'loading\\n'); hello(); play_on()", 1, "garbage/text"),
    ],
)
def test_a_bot_that_does_not_start(tmp_path: Path, body: str, code: int, fault: str) -> None:
    result = check(write_bot(tmp_path / "bad", body), "--json")
    assert result.exit_code == code
    found = checks(result)
    assert (found["handshake"]["verdict"], found["handshake"]["fault"]) == ("FAIL", fault)
    assert found["durak deals"]["verdict"] == "skip"
    assert (found["stdout"]["verdict"] == "FAIL") is ("loading" in body)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ('command = ["python3", "bot.py"]\nbuild = ["false"]', "the build of bad failed with exit code 1"),
        ("command = 7", "bot.toml"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path, manifest: str, told: str) -> None:
    assert told in str(check(write_bot(tmp_path / "bad", HONEST, manifest)).exception)


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    assert "there is no folder" in str(check(tmp_path / "nowhere").exception)
    folder = write_bot(tmp_path / "mine", HONEST)
    assert "--games avalanche: bot.toml names durak" in str(check(folder, "--games", "avalanche,durak").exception)


def test_on_a_terminal_it_shows_what_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    sheet = Sheet(quiet=False)
    sheet.begin("durak deals, 1 of 7")
    said = b"Traceback\n" + b"x" * 500 + b"\nValueError\n"
    sheet.add(Finding("durak deals", "FAIL", "1 fault", "Do better.", "crash/exit", said))
    sheet.add(Finding("stdout", "warn", "odd", "Do better.", "crash/exit", said))
    told = capsys.readouterr()
    assert told.err == "\r\x1b[2K     durak deals, 1 of 7 ...\r\x1b[2K\r\x1b[2K"
    assert told.out.count("ValueError") == 1
    assert "x" * 201 not in told.out.replace("\n", "").replace(" ", "")
