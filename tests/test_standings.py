"""Standings, as the command line shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.cli.commands import app
from arena.cli.standings import _unseen
from arena.plan import Plan
from arena.records import TIEBREAKS, Standing
from arena.store.database import open_writer
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots


def lines(*values: tuple[float, float, float | None]) -> list[Standing]:
    """Return lines of points, Buchholz and median duel."""
    found = []
    for place, (points, buchholz, duel) in enumerate(values, 1):
        ties = {"buchholz": buchholz, "median duel": duel, "lot": -place}
        found.append(Standing(place, place, points, tuple(ties.get(name) for name in TIEBREAKS), 1, 2, 0))
    return found


@pytest.mark.parametrize(
    ("table", "decisions", "told"),
    [
        (lines((2, 1, 1), (1, 1, 1)), [None, "points"], []),
        (lines((2, 2, 1), (2, 1.5, 1)), [None, "buchholz"], []),
        (lines((2, 1, 12), (2, 1, 11.5)), [None, "median duel"], ["places 1-2: by median duel 12.0 to 11.5"]),
        (lines((2, 1, 1), (2, 1, None)), [None, "median duel"], ["places 1-2: by median duel 1.0 to none"]),
        (lines((2, 1.004, 1), (2, 1.001, 1)), [None, "buchholz"], ["places 1-2: by buchholz 1.004 to 1.001"]),
        (lines((2.00001, 1, 1), (2, 1, 1)), [None, "points"], ["places 1-2: by points 2.00001 to 2.00000"]),
        (
            lines((2, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 1, 1), (0, 1, 1)),
            [None, "points", "lot", "lot", "points", "lot"],
            ["places 2-4: by lot", "places 5-6: by lot"],
        ),
        (lines((2, 1, 1), (2, 1, 1)), [None, None], []),
        (lines((1, 1, 1), (2, 1, 1)), [None, "disqualified"], []),
        ([], [], []),
    ],
)
def test_what_decided_and_is_in_no_column_is_told(
    table: Sequence[Standing], decisions: Sequence[str | None], told: Sequence[str]
) -> None:
    assert list(_unseen(table, decisions, ["buchholz"])) == told


def arena(*args: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_fake_bots(monkeypatch)
    return tmp_path / "arena.db"


def played(path: Path, plan: Plan, bots: int) -> None:
    with open_writer(path) as opened:
        made, lanes = begin(opened, plan, refs(bots)), FakeLanes(lanes=1)

        async def main() -> bool:
            return await run(opened, made, by_hash(refs(bots)), lanes, lambda _: None, lambda: 2.0, lanes.stopping)

        trio.run(main, clock=MockClock(autojump_threshold=0))


def test_table_document_and_export_tell_what_decided(db: Path) -> None:
    played(db, Plan("round-robin", {"durak": {}}, 1, tiebreaks=("lot",)), 5)
    found = json.loads(arena("standings", "last", "--json", "--db", db).stdout)["games"]["durak"]
    decided = [line["decided_by"] for line in found]
    assert decided[0] is None
    assert {"points", "lot"} == {*decided[1:]}
    exported = json.loads(arena("export", "standings", "--json", "--db", db).stdout)["rows"]
    assert [row["decided_by"] for row in exported] == decided
    shown = arena("standings", "last", "--db", db)
    assert ": by lot\n" in shown.stdout
    assert "unequally" not in shown.stderr


def test_points_of_unequal_numbers_of_rounds_are_said_not_to_rank(db: Path) -> None:
    played(db, Plan("until-error", {"avalanche": {}}, 1), 4)
    shown = arena("standings", "last", "--db", db)
    assert "points do not rank them; `arena leaderboard` does" in shown.stderr.replace("\n", " ")
