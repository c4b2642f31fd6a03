"""What `arena run` ends with: what the tournament came to, then the leaderboards of its own pools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner

from arena.cli.commands import app
from arena.cli.run import _tell_result
from arena.plan import Plan, final_standings
from arena.store import corrections, matches, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

PATH = Path("some.db")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    use_fake_bots(monkeypatch)
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def played(db: Database, plan: Plan, name: str = "spring") -> Tournament:
    begun = begin(db, plan, refs(4), name=name)
    lanes = FakeLanes()

    async def main() -> bool:
        return await run(db, begun, by_hash(refs(4)), lanes, lambda _: None, lambda: 2.0, lanes.stopping)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return tournaments.get(db, begun.id)


def told(db: Database, found: Tournament, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the lines and the document that a run ends with."""
    is_until = "until-error" in found.stages[0].spec
    _tell_result(db, found, PATH, is_until=is_until, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    _tell_result(db, found, PATH, is_until=is_until, as_json=True)
    return lines, json.loads(capsys.readouterr().out)


def test_the_result_comes_first_and_other_pools_are_left_out(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    played(db, Plan("round-robin", {"avalanche": {}}, 1), "before")
    spring = played(db, Plan("swiss", {"durak": {}}, 2))
    lines, document = told(db, spring, capsys)
    standings = final_standings(db, spring, "durak")
    names = {one.number: one.name for one in tournaments.entrants(db, spring.id)}
    first = [f"{line.place} {names[line.entrant]} {line.points:.3f}" for line in standings[:3]]
    assert lines[:2] == ["result of spring", f"  durak  {', '.join(first)} points"]
    assert [line for line in lines if " seats · " in line] == [line for line in lines if line.startswith("durak ·")]
    (game,) = document["result"]
    assert (game["game"], game["winner"]) == ("durak", None)
    assert game["first"][0] == {
        "place": 1,
        "name": names[standings[0].entrant],
        "points": standings[0].points,
        "challenger": False,
    }
    assert len(game["first"]) == 3


def test_the_games_of_a_tournament_are_told_together(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    lines, document = told(db, played(db, Plan("swiss", {"durak": {}, "avalanche": {}}, 2)), capsys)
    assert [one["game"] for one in document["result"]] == ["durak", "avalanche"]
    assert [line.split()[0] for line in lines[1:3]] == ["durak", "avalanche"]
    assert any(line.startswith("overall · mean over avalanche, durak") for line in lines)


def test_of_a_knockout_the_winner_is_told(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    lines, document = told(db, played(db, Plan("knockout", {"durak": {}}, 2)), capsys)
    (game,) = document["result"]
    assert game["winner"] == game["first"][0]["name"]
    assert lines[1] == f"  durak  winner: {game['winner']}"


def test_who_challenges_is_marked(db: Database, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plan = Plan("gauntlet", {"avalanche": {}}, 1, challengers=("bot-1", "bot-3"))
    lines, document = told(db, played(db, plan), capsys)
    (game,) = document["result"]
    assert all(one["challenger"] == (one["name"] in plan.challengers) for one in game["first"])
    assert lines[1].count("*") == sum(one["challenger"] for one in game["first"])
    for command in ("standings", "crosstable", "pairings"):
        ran = CliRunner().invoke(app, [command, "spring", "--db", str(tmp_path / "arena.db")])
        assert "* challenger: meets all others, but not each other" in ran.stderr
        assert "bot-1*" in ran.stdout
        assert "bot-0*" not in ran.stdout
        assert "pairing: " not in ran.stdout, "it chooses nothing"
        ran = CliRunner().invoke(app, [command, "spring", "--json", "--db", str(tmp_path / "arena.db")])
        rows = [json.loads(line) for line in ran.stdout.splitlines()]
        if command == "pairings":
            assert all([name for name in row["bots"] if name in plan.challengers] == row["challengers"] for row in rows)
            assert all(row["quality"] is None for row in rows)
            continue
        assert all(row["challenger"] == (row["name"] in plan.challengers) for row in rows[0]["games"]["avalanche"])


def test_points_that_mean_nothing_are_no_result(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    lines, document = told(db, played(db, Plan("until-error", {"durak": {}}, 1)), capsys)
    assert "result" not in document
    assert "sureness" in document
    assert not any(line.startswith("result") for line in lines)


def test_the_lot_is_drawn_when_a_run_has_ended(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    spring = played(db, Plan("swiss", {"durak": {}}, 1))
    with writing(db):
        for number in matches.played(db, spring.id):
            corrections.void(db, number, "a storm", 3.0)
    (stage,) = spring.stages
    begun = msgspec.structs.replace(spring, stages=(msgspec.structs.replace(stage, finished_at=None),))
    assert told(db, begun, capsys) == told(db, spring, capsys)
    assert [line.place for line in final_standings(db, spring, "durak")] == [1, 2, 3, 4]
