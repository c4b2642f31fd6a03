"""`arena run --extend --dry-run`: what an extension adds is told, not what has been played."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.cli.commands import app
from arena.plan import Plan
from arena.records import BotRef
from arena.store import bots, corrections, tournaments
from arena.store.database import open_writer, writing
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

ROBIN = Plan("round-robin", {"durak": {}}, 1)


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


def submit(db: Database, found: list[BotRef]) -> None:
    with writing(db):
        for one in found:
            manifest = f'name = "{one.name}"\ncommand = ["true"]\ngames = ["durak"]\n'
            bots.add_bot(db, one.hash, manifest, 1, 1, 1.0)
            bots.submit(db, one.name, one.hash, "", 1.0)


def play(db: Database, lanes: FakeLanes | None = None) -> None:
    lanes = lanes or FakeLanes()
    going = partial(
        run, db, tournaments.get(db, 1), by_hash(refs(9)), lanes, lambda _: None, lambda: 2.0, lanes.stopping
    )
    trio.run(going, clock=MockClock(autojump_threshold=0))


def killed(after: int) -> FakeLanes:
    """Return lanes that die after so many matches."""
    lanes = FakeLanes(lanes=1)
    lanes.fail_after = after
    return lanes


def dry(db: Path, plan: Plan, *args: str) -> Result:
    line = ("--bots", "all", "--games", "durak", "--format", plan.format, "--rounds", str(plan.rounds))
    more = ("--decks", str(plan.decks), "--isolation", "none", "--name", "spring", "--db", str(db))
    return CliRunner().invoke(app, ["run", "--extend", "--dry-run", *line, *more, *args])


@pytest.mark.parametrize("name", ["swiss", "round-robin", "gauntlet"])
def test_only_what_it_adds_is_counted_and_paired(tmp_path: Path, name: str) -> None:
    """Of five that played one has left, and one is new: five play on, by two decks of two legs a match."""
    path = tmp_path / "arena.db"
    options = ("--challengers", "bot-1") if name == "gauntlet" else ()
    plan = Plan(name, {"durak": {}}, 1, challengers=options[1:])  # type: ignore[arg-type]  # one of its formats
    with open_writer(path) as db:
        begin(db, plan, refs(5))
        submit(db, refs(5))
        play(db)
        done = len(tournaments.rounds(db, 1, "durak"))
        with writing(db):
            corrections.exclude(db, "withdraw", 1, "bot-2", "asked", 3.0)
        submit(db, refs(6)[5:])
    asked = msgspec.structs.replace(plan, rounds=2, decks=2)
    rounds, matches = {"swiss": (1, 2), "round-robin": (5, 10), "gauntlet": (1, 4)}[name]
    ran = dry(path, asked, *options)
    assert ran.exit_code == 0, ran.exception
    rows = [row.split() for row in ran.stdout.splitlines()]
    unit = "round" if name == "swiss" else "cycle"
    assert rows[0] == ["spring,", name, "·", "adds", unit, "2", "·", "5", "bots"]
    assert rows[2][:4] == ["durak", str(rounds), str(matches), str(4 * matches)]
    assert ["new", "bot-5"] in rows
    assert ["left", "bot-2"] in rows
    assert f"durak round {done + 1}" in ran.stdout
    told = json.loads(dry(path, asked, *options, "--json").stdout)
    span = {"unit": unit, "from": 2, "to": 2}
    assert told["extension"] == {"tournament": "spring", **span, "new": ["bot-5"], "left": ["bot-2"]}
    (game,) = told["games"]
    assert (game["rounds"], game["matches"], game["deals"]) == (rounds, matches, 4 * matches)
    paired = {one for table in game["first"]["tables"] for one in table}
    assert paired | {*game["first"]["byes"]} <= {"bot-0", "bot-1", "bot-3", "bot-4", "bot-5"}
    with open_writer(path) as db:
        assert len(tournaments.get(db, 1).stages) == 1, "nothing was stored"


def test_what_follows_on_a_round_that_is_not_complete_is_not_paired(tmp_path: Path) -> None:
    path, plan = tmp_path / "arena.db", Plan("swiss", {"durak": {}}, 2)
    with open_writer(path) as db:
        begin(db, plan, refs(4))
        submit(db, refs(4))
        with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
            play(db, killed(3))
    ran = dry(path, msgspec.structs.replace(plan, rounds=4))
    assert "adds rounds 3 to 4 ·" in ran.stdout
    assert "durak round" not in ran.stdout
    assert "durak: what it adds is paired once the rounds before are complete" in ran.stderr
    same = dry(path, plan)
    assert "this adds nothing: spring goes on, and has played 3 of its 4 matches" in same.stderr
    assert json.loads(dry(path, plan, "--json").stdout)["games"] == []


def test_a_round_robin_plays_its_own_cycles_before_those_added(tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        begin(db, ROBIN, refs(4))
        submit(db, refs(4))
        with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
            play(db, killed(1))
    assert "durak round 4" in dry(path, msgspec.structs.replace(ROBIN, rounds=3)).stdout


def test_what_cannot_be_added_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        submit(db, refs(4))
    assert "there is no tournament 'spring' to extend" in str(dry(path, ROBIN).exception)
    with open_writer(path) as db:
        begin(db, ROBIN, refs(4))
        submit(db, refs(4))
        play(db)
    assert "cycle 1 of spring is scheduled already; extend it by more --rounds" in str(dry(path, ROBIN).exception)
    shorter = dry(path, Plan("swiss", {"durak": {}}, 2))
    assert "no extension can change tournament spring so: format was round-robin, now swiss" in str(shorter.exception)
    line = ("--bots", "all", "--games", "durak", "--format", "round-robin", "--name", "spring", "--db", str(path))
    plain = CliRunner().invoke(app, ["run", "--dry-run", *line])
    assert "spring is finished, with 6 matches; with --extend, what that adds is told" in plain.stderr
