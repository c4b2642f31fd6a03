"""Crosstable and pairings, as the command line shows them."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.cli.commands import app
from arena.cli.tables import _quality_words
from arena.plan import Plan
from arena.records import Round
from arena.schedule.quality import round_quality
from arena.store.database import open_writer
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_fake_bots(monkeypatch)
    return tmp_path / "arena.db"


def played(db: Path, plan: Plan, bots: int, stop_after: int = -1) -> None:
    async def main() -> bool:
        lanes = FakeLanes(lanes=1)
        lanes.stop_after = stop_after
        return await run(
            opened, tournament, by_hash(refs(bots)), lanes, lambda event: None, lambda: 2.0, lanes.stopping
        )

    with open_writer(db) as opened:
        tournament = begin(opened, plan, refs(bots))
        trio.run(main, clock=MockClock(autojump_threshold=0))


def arena(*args: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result


def refusal(*args: str | Path) -> str:
    return str(CliRunner().invoke(app, [str(arg) for arg in args]).exception)


def test_a_crosstable_is_ordered_as_the_standings_and_adds_up(db: Path) -> None:
    played(db, Plan("round-robin", {"durak": {}, "avalanche": {}}, 1, decks=2), 4)
    told = json.loads(arena("crosstable", "spring", "--json", "--db", db).stdout)
    assert told["schema"] == "arena.crosstable/1"
    assert list(told["games"]) == ["durak", "avalanche"]
    by_pair = {(one["name"], one["opponent"]): one for one in told["games"]["durak"]}
    assert len(by_pair) == 12
    for (name, opponent), one in by_pair.items():
        assert one["deals"] == 4
        assert one["share"] + by_pair[opponent, name]["share"] == 1
    standings = json.loads(arena("standings", "spring", "durak", "--json", "--db", db).stdout)["games"]["durak"]
    shown = arena("crosstable", "spring", "durak", "--db", db).stdout
    rows = re.findall(r"^ *\d+ +(bot-\d)((?: +[-\d]+){4})$", shown, re.MULTILINE)
    assert [name for name, _ in rows] == [line["name"] for line in standings]
    for index, (name, cells) in enumerate(rows):
        assert cells.split()[index] == "-", "nobody meets itself"
        for (other, _), cell in zip(rows, cells.split(), strict=True):
            assert name == other or cell == f"{100 * by_pair[name, other]['share']:.0f}"


def test_a_crosstable_that_is_too_wide_comes_in_parts(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.cli.output.PLAIN_WIDTH", 40)
    monkeypatch.setenv("COLUMNS", "40")
    played(db, Plan("swiss", {"avalanche": {}}, 1), 8)
    shown = arena("crosstable", "last", "--db", db).stdout
    assert shown.count("spring · avalanche") == 2
    assert all(len(line) <= 40 for line in shown.splitlines())
    assert shown.count("·  ") > 8, "who did not meet"


def test_pairings_tell_results_byes_and_how_good_they_are(db: Path) -> None:
    played(db, Plan("swiss", {"avalanche": {}}, 3), 5)
    shown = arena("pairings", "spring", "--db", db)
    assert re.findall(r"spring · avalanche · round (\d)\n", shown.stdout) == ["1", "2", "3"]
    assert len(re.findall(r"^bye: bot-\d$", shown.stdout, re.MULTILINE)) == 3
    assert shown.stdout.count("pairing: nobody had met before, points at a table 0.") == 3
    assert "at most 1 bye each" in shown.stdout
    assert "after the same bot" not in shown.stdout, "at two seats everybody sits after the other"
    for line in arena("pairings", "spring", "--round", "2", "--json", "--db", db).stdout.splitlines():
        told = json.loads(line)
        assert (told["schema"], told["round"], told["complete"], told["played"]) == ("arena.pairing/1", 2, True, True)
        assert sum(told["scores"]) == 1
        assert told["quality"]["repeats"] == 0
        cells = zip(told["bots"], told["scores"], strict=True)
        assert " – ".join(f"{name} {score:.3f}" for name, score in cells) in shown.stdout


def test_pairings_of_larger_tables_tell_who_follows_whom(db: Path) -> None:
    played(db, Plan("swiss", {"smokestack": {}}, 2, seats=3), 6)
    assert "time in the seat after the same bot" in arena("pairings", "spring", "--db", db).stdout


def test_repeats_are_counted(db: Path) -> None:
    played(db, Plan("round-robin", {"avalanche": {}}, 2), 2)
    shown = arena("pairings", "spring", "--round", "2", "--db", db).stdout
    assert "pairing: 1 pair had met before (all unavoidable), points" in shown


@pytest.mark.parametrize(("least", "told"), [(1, " (at least 1 unavoidable),"), (0, ","), (None, ",")])
def test_what_could_have_been_avoided_is_told_if_it_is_known(least: int | None, told: str) -> None:
    repeated = round_quality(
        Round(2, ((0, 1), (2, 3))), [Round(1, ((0, 1), (2, 3)))], dict.fromkeys(range(4), Fraction(0))
    )
    shown = _quality_words(msgspec.structs.replace(repeated, least_repeats=least), 2)
    assert shown.startswith(f"pairing: 2 pairs had met before{told} points")


def test_a_round_that_is_not_complete_says_what_is_left(db: Path) -> None:
    played(db, Plan("swiss", {"avalanche": {}}, 3), 12, stop_after=2)
    shown = arena("pairings", "spring", "--db", db).stdout
    (left,) = re.findall(r"round 1 · (\d) of 6 to play", shown)
    assert shown.count("(to play)") == int(left) > 0
    told = [json.loads(line) for line in arena("pairings", "spring", "--json", "--db", db).stdout.splitlines()]
    assert [one["scores"] for one in told] == [None] * 6, "they count once the round is complete"
    assert sum(one["played"] for one in told) == 6 - int(left)


def test_a_tournament_that_has_not_begun_says_so(db: Path) -> None:
    with open_writer(db) as opened:
        begin(opened, Plan("swiss", {"avalanche": {}}, 1), refs(4))
    assert "no round of spring is scheduled yet" in arena("pairings", "spring", "--db", db).stderr


def test_what_there_is_not_is_named(db: Path) -> None:
    played(db, Plan("swiss", {"avalanche": {}}, 1), 4)
    assert "tournament spring has no game 'durak'; it has avalanche" in refusal(
        "crosstable", "spring", "durak", "--db", db
    )
    asked = ("pairings", "spring", "--round", "7", "--db", db)
    assert "tournament spring has no round 7; it has round 1" in refusal(*asked)
    with open_writer(db) as opened:
        begin(opened, Plan("swiss", {"avalanche": {}}, 9), refs(4), name="autumn")
    assert "has no round 7 yet; none is scheduled" in refusal("pairings", "autumn", "--round", "7", "--db", db)
    assert "there is no tournament 'winter'" in refusal("pairings", "winter", "--db", db)
