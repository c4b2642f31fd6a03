"""`arena export site` writes a folder that is whole or not there, and deletes nothing of anybody's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from arena.cli.commands import app
from arena.errors import ConfigError


def export(whole: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", "site", *arguments, "--db", str(whole)])


def refusal(whole: Path, *arguments: str) -> str:
    error = export(whole, *arguments).exception
    assert isinstance(error, ConfigError)
    return str(error)


def test_a_site_is_written(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "public"
    done = export(whole, str(folder), "--replays", "last:2")
    assert done.exit_code == 0, done.exception
    assert done.stdout == f"{folder}/index.html\n"
    assert ", 2 replays, " in done.stderr
    assert len(list((folder / "r").glob("*.html"))) == 2
    assert not list(folder.parent.glob(".*"))


def test_a_site_tells_what_it_wrote_as_json(whole: Path, tmp_path: Path) -> None:
    told = json.loads(export(whole, str(tmp_path / "public"), "--replays", "none", "--json").stdout)
    assert (told["schema"], told["replays"]) == ("arena.site/1", 0)
    assert told["pages"] > 20


def test_a_folder_that_is_used_is_only_written_over_by_force(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "is not empty; --force writes the pages over" in refusal(whole, str(tmp_path), "--replays", "none")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    assert export(whole, str(tmp_path), "--replays", "none", "--force").exit_code == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (tmp_path / "index.html").is_file()
    assert export(whole, str(tmp_path), "--replays", "none", "--force").exit_code == 0


def test_what_cannot_be_done_is_refused_with_the_way_out(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for arguments, words in (
        ([], "name the folder: arena export site DIR"),
        ([str(file)], "is no folder; name another"),
        ([str(file / "below")], "cannot be written: Not a directory"),
        ([str(tmp_path / "x"), "--replays", "some"], "is none of all, faults, last:N and none"),
        ([str(tmp_path / "x"), "--format", "csv"], "without --format and --out"),
    ):
        assert words in refusal(whole, *arguments)
    error = CliRunner().invoke(app, ["export", "bots", "--replays", "all", "--db", str(whole)]).exception
    assert "--replays is for `arena export site DIR`" in str(error)
    error = CliRunner().invoke(app, ["export", "bots", "--stderr", "--db", str(whole)]).exception
    assert "--stderr is for `arena export site DIR`" in str(error)
    assert sorted(tmp_path.iterdir()) == [file]


def test_open_says_what_has_no_page(whole: Path) -> None:
    for arguments, words in (
        (["leaderboard", "chess"], "no results are rated for game 'chess'; rated: avalanche, durak, smokestack"),
        (["replay", "last"], "the round of deal last is being played, so it has no page yet"),
    ):
        error = CliRunner().invoke(app, [*arguments, "--open", "--db", str(whole)]).exception
        assert words in str(error)


def test_a_machine_without_a_browser_is_told_where_the_page_is(
    whole: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = CliRunner().invoke(app, ["leaderboard", "durak", "--open", "--db", str(whole)])
    assert Path(done.stdout.strip()).is_file()
    assert "no browser could be opened here" in done.stderr


def test_commands_without_pages_do_not_wait_for_what_makes_them() -> None:
    look = "import sys, arena.cli.commands; print(*{'jinja2', 'starlette', 'uvicorn', 'markdown_it'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout == "\n"
