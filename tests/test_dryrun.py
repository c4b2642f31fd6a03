"""`arena run --dry-run`: what would be played is told, and nothing is played or stored."""

from __future__ import annotations

import json
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.cli import dryrun
from arena.cli.commands import app
from arena.cli.dryrun import entrants_of
from arena.config import tournament_from_options
from arena.errors import ConfigError
from arena.plan import Cast, Plan, new_tournament
from arena.records import BotHash, BotRef
from arena.store import bots
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

BOTS = Path(__file__).parents[1] / "bots"
FOLDERS = ",".join(f"{BOTS / name}/" for name in ("random", "greedy", "knave"))


def dry(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["run", "--dry-run", *map(str, args)])


def test_a_round_robin_is_told_whole(tmp_path: Path) -> None:
    line = ("--bots", FOLDERS, "--games", "durak,avalanche", "--format", "round-robin", "--rounds", "2", "--decks", "3")
    ran = dry(*line, "--db", tmp_path / "none.db")
    assert ran.exit_code == 0, ran.output
    rows = [row.split() for row in ran.stdout.splitlines()]
    assert rows[0] == ["round-robin,", "2", "cycles", "·", "3", "bots"]
    assert [row[:4] for row in rows[2:4]] == [["durak", "6", "6", "36"], ["avalanche", "2", "2", "12"]]
    assert rows[4][:3] == ["all", "8", "48"]
    assert rows[4][3:] == ["about", rows[4][4], "kB"]
    assert "durak round 1" in ran.stdout
    assert "bye: " in ran.stdout
    assert "nothing was played or stored; the pairings are an example" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_format_is_told(tmp_path: Path) -> None:
    line = ("--bots", FOLDERS, "--games", "durak", "--db", tmp_path / "none.db", "--json")
    for options, told in (
        (("--format", "knockout"), (2, 2, 4)),
        (("--format", "gauntlet", "--challengers", "greedy", "--rounds", "3"), (3, 6, 12)),
    ):
        (game,) = json.loads(dry(*line, *options).stdout)["games"]
        assert (game["rounds"], game["matches"], game["deals"]) == told
    assert "--dry-run cannot tell what it takes" in str(dry(*line, "--until-error", "15").exception)
    plan = Plan("knockout", {"durak": {}}, 4)
    found = dryrun.course(plan, new_tournament("dry", plan, "none", 0.0, 0, seed=1), entrants(11), "durak")
    assert (found.rounds, found.matches) == (4, 10)


def test_a_seed_tells_the_pairings_that_will_be(tmp_path: Path) -> None:
    line = ("--bots", FOLDERS, "--games", "durak", "--format", "swiss", "--seed", "7", "--trusted", "--json")
    told = json.loads(dry(*line, "--db", tmp_path / "none.db").stdout)
    assert (told["schema"], told["bots"], told["drawn"]) == ("arena.run.dry/1", 3, False)
    (game,) = told["games"]
    assert (game["rounds"], game["matches"], game["deals"]) == (4, 4, 8)
    assert sorted([*game["first"]["tables"][0], *game["first"]["byes"]]) == ["greedy", "knave", "random"]


def test_a_plan_is_not_taken_for_the_rest_of_what_was_begun(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    line = ("--bots", FOLDERS, "--games", "durak", "--format", "round-robin", "--name", "spring", "--db", db)
    with open_writer(db) as opened:
        assert "spring" not in dry(*line).stderr
        begin(opened, Plan("round-robin", {"durak": {}}, 1), refs(3))
    assert dry(*line).stderr.startswith("nothing was played or stored")
    assert "spring was begun before, and has played 0 of its 3 matches; this is all of it" in dry(*line).stderr


def test_submitted_bots_are_found_and_others_are_named(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    with open_writer(db) as opened, writing(opened):
        for number, game in enumerate(("durak", "durak", "avalanche")):
            bot, manifest = BotHash(f"{number:064}"), f'name = "b{number}"\ncommand = ["true"]\ngames = ["{game}"]\n'
            bots.add_bot(opened, bot, manifest, 1, 1, 1.0)
            bots.submit(opened, f"b{number}", bot, "", 1.0)
    line = ("--games", "durak", "--format", "round-robin", "--db", db)
    assert "b0 - b1" in dry("--bots", "all", *line).stdout.replace("b1 - b0", "b0 - b1")
    assert "3 bots" in dry("--bots", f"b0,b1,{BOTS / 'greedy'}/", *line).stdout
    for names, told in (("b0,b2", "b2: plays none of durak"), ("b0,b9", "no bot is called 'b9'")):
        error = dry("--bots", names, *line).exception
        assert isinstance(error, ConfigError)
        assert told in str(error)


def entrants(count: int) -> list[Entrant]:
    return [Entrant(number, f"b{number}", BotHash(f"{number:064}"), ("durak",)) for number in range(count)]


@pytest.mark.parametrize(("many", "few"), [(12, "b"), (40, "more")])
def test_smaller_tables_count_with_their_own_legs(many: int, few: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan("swiss", {"durak": {}}, 3, seats=3, decks=2)
    dryrun.show(plan, entrants(many + 1), 1, Cast(), as_json=False)
    assert few in capsys.readouterr().out
    made = new_tournament("dry", plan, "none", 0.0, 0, seed=1)
    found = dryrun.course(plan, made, entrants(8), "durak")  # two tables of 3 with 6 legs, one of 2 with 2
    assert (found.rounds, found.matches, found.deals) == (3, 9, 3 * (2 * 6 + 2) * 2)


@pytest.mark.slow
def test_a_schedule_is_gone_through_without_being_kept() -> None:
    plan = Plan("round-robin", {"durak": {}}, 400)
    made = new_tournament("dry", plan, "none", 0.0, 0, seed=1)
    dryrun.course(plan, made, entrants(2), "durak")  # so that all code is loaded
    tracemalloc.start(1)
    try:
        found = dryrun.course(plan, made, entrants(23), "durak")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.matches == 101_200
    assert peak < 2_000_000


@pytest.mark.parametrize(
    ("count", "told"), [(0, "about 0.0 kB"), (9_900, "about 9.9 kB"), (2.5e6, "about 2.5 MB"), (3e11, "about 300 GB")]
)
def test_sizes_are_told_in_a_unit_that_fits(count: float, told: str) -> None:
    assert dryrun._size(count) == told


def test_a_knockout_is_seeded_as_it_will_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = tmp_path / "arena.db"
    line = ("--bots", FOLDERS, "--games", "durak", "--format", "knockout", "--isolation", "none", "--db", db)
    use_fake_bots(monkeypatch)
    players = [BotRef(one.name, one.hash, "", ()) for one in entrants_of(db, tournament_from_options(bots=FOLDERS))]
    (game,) = json.loads(dry(*line, "--json").stdout)["games"]
    assert [one["by"] for one in game["seeds"]] == ["lot", "lot", "lot"]
    with open_writer(db) as opened:
        before = begin(opened, Plan("round-robin", {"durak": {}}, 1, decks=3), players[:2])
        lanes = FakeLanes()
        bots = by_hash(players)
        going = partial(run, opened, before, bots, lanes, lambda _: None, lambda: 2.0, lanes.stopping)
        trio.run(going, clock=MockClock(autojump_threshold=0))
    (game,) = json.loads(dry(*line, "--seeds", players[2].name, "--json").stdout)["games"]
    assert [one["by"] for one in game["seeds"]] == ["given", "rating", "rating"]
    assert game["seeds"][0] == {"seed": 1, "name": players[2].name, "by": "given", "elo": None}
    assert game["first"]["byes"] == [players[2].name]
    shown = dry(*line, "--seeds", players[2].name).stdout
    assert f"durak seeds    1 {players[2].name} (given), 2 " in shown
    error = dry(*line, "--seeds", "nobody").exception
    assert "seed nobody is not among the bots, which are greedy, knave, random" in str(error)


def test_of_many_seeds_the_first_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan("knockout", {"durak": {}}, 5)
    dryrun.show(plan, entrants(20), 1, Cast(), as_json=False)
    assert "and 4 more" in capsys.readouterr().out
