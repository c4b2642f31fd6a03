"""The command line as its users meet it: real bots, real lanes, a real database."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from arena.cli.app import MODULES
from arena.cli.commands import app

BOTS = Path(__file__).parents[2] / "bots"
RUN = ["run", "--games", "all", "--format", "round-robin", "--decks", "2", "--name", "spring"]


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def document(*args: str | Path) -> dict[str, Any]:
    """Run a command that succeeds and prints one JSON document."""
    result = arena(*args, "--json")
    assert result.exit_code == 0, result.output
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def refusal(*args: str | Path) -> str:
    """Run a command that is refused, and return the text of the error."""
    error = arena(*args).exception
    assert error is not None
    return str(error)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in which two bots were submitted and a small tournament was run."""
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("site")
    os.chdir(folder)
    try:
        for name in ("random", "c-first"):
            submitted = arena("submit", BOTS / name)
            assert submitted.exit_code == 0, submitted.output
        ran = arena(*RUN, "--bots", "all")
        assert ran.exit_code == 0, ran.output
        yield folder
    finally:
        os.chdir(before)


def test_bots_are_listed_with_version_and_games(site: Path) -> None:
    told = document("bots")
    assert told["schema"] == "arena.bots/1"
    assert [(bot["name"], bot["version"], bot["author"]) for bot in told["bots"]] == [
        ("c-first", 1, "arena"),
        ("random", 1, "arena"),
    ]
    assert told["bots"][0]["games"] == ["avalanche", "durak", "smokestack"]
    assert "avalanche durak smokestack" in arena("bots").stdout


def test_the_leaderboard_tells_each_pool_and_overall(site: Path) -> None:
    told = document("leaderboard")
    assert told["schema"] == "arena.leaderboard/1"
    assert [pool["game"] for pool in told["pools"]] == ["avalanche", "durak", "smokestack"]
    for table in (*told["pools"], told["overall"]):
        first, second = table["bots"]
        assert (first["place"], second["place"]) == (1, 1 if second["shared"] else 2)  # a random bot plays
        assert first["elo"] >= second["elo"]
        assert {"name", "elo", "error", "deals", "wins", "faults"} <= table["bots"][0].keys()
    assert told["pools"][0]["bots"][0]["deals"] == 4
    assert told["overall"]["bots"][0]["deals"] == 12
    assert told["practice"] is False


def test_the_leaderboard_of_one_game_has_no_overall_table(site: Path) -> None:
    assert document("leaderboard", "durak")["overall"] == {
        "pools": document("leaderboard", "durak")["overall"]["pools"],
        "bots": [],
    }
    shown = arena("leaderboard", "durak").stdout
    assert "durak · 2 seats" in shown
    assert "avalanche" not in shown
    assert "no results are rated for game 'chess'" in refusal("leaderboard", "chess")


def test_standings_add_up(site: Path) -> None:
    told = document("standings", "spring")
    assert told["finished"] is True
    for lines in told["games"].values():
        assert sum(line["points"] for line in lines) == pytest.approx(1)
        assert [line["deals"] for line in lines] == [4, 4]
    assert "BH1" in arena("standings", "last", "durak").stdout
    assert "there is no tournament 'summer'; there are: spring" in refusal("standings", "summer")
    assert "has no game 'chess'" in refusal("standings", "spring", "chess")


def test_a_deal_is_shown_step_by_step(site: Path) -> None:
    shown = arena("replay", "1-0-0").stdout
    assert "starts an avalanche with" in shown
    assert shown.rstrip().endswith(": played out")
    lines = [json.loads(line) for line in arena("replay", "1-0-0", "--json").stdout.splitlines()]
    assert [line["number"] for line in lines] == list(range(len(lines)))
    assert {line["schema"] for line in lines} == {"arena.replay/1"}
    assert lines[0]["action"] is None
    assert lines[-1]["places"] in ([1, 2], [2, 1], [1, 1])
    assert all(line["action"] in before["legal"][str(line["seat"])] for before, line in pairwise(lines))


def test_a_seat_is_shown_what_it_could_see(site: Path) -> None:
    everything, own = (arena("replay", "1-0-0", *as_seat).stdout for as_seat in ((), ("--as", "1")))
    assert (everything.count(" is dealt "), own.count(" is dealt ")) == (2, 1)
    for line in arena("replay", "1-0-0", "--as", "0", "--json").stdout.splitlines():
        assert "hands" not in json.loads(line)["observation"]
    assert "has no seat 7" in refusal("replay", "1-0-0", "--as", "7")


def test_a_position_is_shown_with_what_was_legal(site: Path) -> None:
    shown = arena("replay", "1-0-0", "--step", "0").stdout
    assert "stock" in shown
    assert "legal for " in shown
    assert "  then " in shown
    (line,) = arena("replay", "1-0-0", "--step", "1", "--json").stdout.splitlines()
    assert json.loads(line)["number"] == 1
    assert "has no step 9999" in refusal("replay", "1-0-0", "--step", "9999")


def test_a_database_is_verified(site: Path, tmp_path: Path) -> None:
    told = document("verify", "spring")
    assert told["deals"] == 12
    assert told["differences"] == []
    assert "0 differences" in arena("verify", "--outcomes").stdout
    copy = tmp_path / "copy.db"
    with sqlite3.connect(site / "results" / "arena.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("UPDATE stage SET commitment = x'00'")
        target.execute("UPDATE deal SET record = (SELECT record FROM deal d WHERE d.match = deal.match AND d.deck = 1)")
    target.close()
    source.close()
    changed = arena("verify", "--db", copy)
    assert changed.exit_code == 1
    assert "spring: commitment: stored 00" in changed.stdout


def test_a_finished_tournament_is_revealed(site: Path) -> None:
    told = document("reveal", "spring")
    (stage,) = told["stages"]
    assert len(stage["master"]) == 64
    assert len(stage["matches"]) == 3
    shown = arena("reveal", "last").stdout
    assert stage["commitment"] in shown
    assert stage["master"] in shown


def test_a_dialogue_is_shown_and_proven(site: Path) -> None:
    lines = [json.loads(line) for line in arena("trace", "1-1-1", "--seat", "1", "--json").stdout.splitlines()]
    assert lines[0]["message"]["type"] == "deal"
    assert lines[-1]["message"]["type"] == "over"
    asked = [line["message"]["id"] for line in lines if line["message"]["type"] == "ask"]
    answered = [line["message"]["id"] for line in lines if line["message"]["type"] == "act"]
    assert asked == answered
    assert " -> " in arena("trace", "last").stdout
    assert "has no seat 2" in refusal("trace", "1-0-0", "--seat", "2")


@pytest.mark.parametrize("name", ["9999-0-0", "1-7-0", "nonsense", "1-0", f"{2**63}-0-0", f"1-0-{10**30}"])
def test_a_deal_that_is_not_there_is_named(site: Path, name: str) -> None:
    assert f"there is no deal {name!r}" in refusal("replay", name)


def test_a_tampered_record_does_not_digest(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with sqlite3.connect(site / "results" / "arena.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        key = b"\0" * 32
        target.execute("UPDATE match SET decks = ? WHERE id = 1", (key + key,))
    target.close()
    source.close()
    assert arena("trace", "1-0-0", "--db", copy).exception is not None


def test_a_play_is_kept_but_never_rated(site: Path) -> None:
    before = document("leaderboard")
    told = document(
        "play", "durak", "random", f"{BOTS}/c-first/", "--seed", "3", "--decks", "2", "--set", "transfer=true"
    )
    assert told["bots"] == ["random", "c-first"]
    assert len(told["deals"]) == 4
    assert document("leaderboard") == before
    assert "transfer=true" in arena("replay", told["deals"][0]["deal"]).stdout
    again = document(
        "play", "durak", "random", f"{BOTS}/c-first/", "--seed", "3", "--decks", "2", "--set", "transfer=true"
    )
    assert [deal["places"] for deal in again["deals"]] == [deal["places"] for deal in told["deals"]]
    shown = arena("play", "smokestack-junior", "random", "random", "c-first")
    assert shown.exit_code == 0, shown.output
    assert "places (points)" in shown.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("chess", "random", "random"), 'there is no game "chess"'),
        (("durak", "random", "nobody"), "no bot is called 'nobody'"),
        (("durak", "random", "./nowhere/"), "there is no folder nowhere/"),
        (("durak", "random"), "2 to 6 seats, not 1"),
        (("durak", "random", "random", "--set", "deck=40"), "deck"),
        (("durak", "random", "random", "--set", "deck"), "option=value"),
    ],
)
def test_what_cannot_be_played_is_named(site: Path, args: tuple[str, ...], told: str) -> None:
    assert told in refusal("play", *args)


def test_a_finished_tournament_wants_another_name(site: Path) -> None:
    assert "is finished" in refusal(*RUN, "--bots", "all")


def test_a_tournament_is_extended_by_what_may_be_added(site: Path, tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    bots = f"{BOTS}/greedy/,{BOTS}/c-first/"
    line = ("run", "--bots", bots, "--games", "avalanche", "--quiet", "--db", db)
    begun = (*line, "--name", "autumn", "--rounds", "1")
    assert "there is no tournament 'autumn' to extend" in refusal(*begun, "--extend")
    assert arena(*begun).exit_code == 0
    more = (*line, "--name", "autumn", "--rounds", "2", "--decks", "2")
    told = "begun differently: rounds was 1, now 2; decks was 1, now 2; pass --extend to add that, or choose another"
    assert told in refusal(*more)
    assert "format was swiss, now round-robin; choose" in refusal(*more, "--format", "round-robin", "--extend")
    assert "--name, by which the tournament is found again" in refusal(*line, "--extend")
    assert arena(*more, "--extend").exit_code == 0
    assert "round 2 of autumn is scheduled already" in refusal(*more, "--extend")
    shown = arena("reveal", "autumn", "--db", db).stdout
    assert shown.count("master") == 2
    assert "stage 2\ncommitment " in shown
    assert [stage["stage"] for stage in document("reveal", "autumn", "--db", db)["stages"]] == [1, 2]
    assert arena("verify", "--db", db).exit_code == 0


def test_a_ladder_has_no_end_to_ask_for(site: Path) -> None:
    assert "leave --extend out" in refusal("run", "--extend", "--forever", "--name", "ladder")
    assert "--forever needs a --name" in refusal("run", "--forever")
    told = refusal(*RUN, "--bots", "all", "--seats", "3", "--forever")
    assert "spring was begun differently: seats was 2, now 3; choose another --name" in told


def test_the_same_seed_gives_the_same_results_whatever_the_jobs(site: Path, tmp_path: Path) -> None:
    tables = []
    for jobs in ("1", "2"):
        db = tmp_path / f"{jobs}.db"
        bots = f"{BOTS}/random/,{BOTS}/c-first/"
        options = (
            "--rounds",
            "2",
            "--decks",
            "1",
            "--seed",
            "7",
            "--trusted",
            "--jobs",
            jobs,
            "--oversubscribe",
            "--quiet",
        )
        ran = arena("run", "--bots", bots, "--games", "durak,avalanche", "--format", "swiss", *options, "--db", db)
        assert ran.exit_code == 0, ran.output
        shown = document("leaderboard", "--db", db)
        assert shown["practice"] is True
        with sqlite3.connect(db) as connection:
            deals = connection.execute(
                "SELECT m.game, m.round, hex(m.decks), d.deck, d.leg, hex(d.places) "
                "FROM deal d JOIN match m ON m.id = d.match ORDER BY 1, 2, 3, 4, 5"
            ).fetchall()
        connection.close()
        tables.append((shown, document("standings", "last", "--db", db), deals))
    assert tables[0] == tables[1]
    assert "practice" in arena("leaderboard", "--db", tmp_path / "1.db").stderr


def test_a_short_seed_needs_trust(site: Path) -> None:
    assert "--trusted" in refusal("run", "--bots", "all", "--seed", "1")


def test_more_jobs_than_cores_are_refused(site: Path) -> None:
    assert "--oversubscribe" in refusal("run", "--bots", "all", "--jobs", "1000")


def test_no_isolation_needs_trust(site: Path) -> None:
    assert "--trusted" in refusal("play", "durak", "random", "random", "--isolation", "none")
    shown = arena("play", "durak", "random", "random", "--isolation", "none", "--trusted")
    assert shown.exit_code == 0, shown.output


def test_a_file_with_three_mistakes_names_all_three(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('format = "swis"\nrounds = 0\n\n[options.durak]\ndeck = 40\n')
    told = refusal("run", file)
    assert [line.removeprefix(str(file)).split(": ")[:2] for line in told.splitlines()] == [
        [":1", "format"],
        [":2", "rounds"],
        [":5", "options.durak.deck"],
    ]


def test_events_are_one_document_a_line(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.toml"
    file.write_text(
        f'games = ["avalanche"]\nbots = ["{BOTS}/random/", "{BOTS}/c-first/"]\nformat = "round-robin"\ndecks = 1\n'
    )
    ran = arena("run", file, "--json")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line.get("event") for line in lines] == ["Commitment", "RoundBegan", "MatchPlayed", "RoundComplete", None]
    assert lines[0]["sha256"] == document("reveal", "events")["stages"][0]["commitment"]
    assert (lines[-1]["schema"], lines[-1]["tournament"]) == ("arena.finished/1", "events")
    (result,) = lines[-1]["result"]
    assert (result["game"], result["winner"]) == ("avalanche", None)
    assert [one["place"] for one in result["first"]] == [1, 2]
    assert result["first"][0]["points"] >= result["first"][1]["points"]


def test_retired_bots_are_left_out_of_all_until_submitted_again(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    for name in ("random", "c-first"):
        assert document("submit", BOTS / name, "--db", db)["name"] == name
    assert document("retire", "random", "--db", db) == {"schema": "arena.retired/1", "name": "random"}
    assert [bot["name"] for bot in document("bots", "--db", db)["bots"]] == ["c-first"]
    assert [bot["name"] for bot in document("bots", "--all", "--db", db)["bots"]] == ["c-first", "random"]
    assert "needs 2 bots" in refusal("run", "--bots", "all", "--games", "durak", "--db", db)
    assert "no bot is called" in refusal("retire", "nobody", "--db", db)
    assert document("submit", BOTS / "random", "--db", db)["version"] == 1
    assert "is retired" in arena("retire", "random", "--db", db).stdout


def write_bot(folder: Path, source: str, command: str = '["python3", "bot.py"]') -> Path:
    folder.mkdir()
    (folder / "bot.toml").write_text(f'name = "{folder.name}"\ncommand = {command}\ngames = ["durak"]\n')
    (folder / "bot.py").write_text(source)
    (folder / "arena_bot.py").write_bytes((BOTS / "sdk" / "python" / "arena_bot.py").read_bytes())
    return folder


ILLEGAL = 'from arena_bot import run\nrun(lambda ask: "no", name="x", version="1", games=["durak"])\n'


@pytest.mark.parametrize(
    ("source", "command", "code", "told"),
    [
        ("", '["./missing"]', 3, "startup/missing"),
        ("", '["./bot.py"]', 3, "startup/exec"),
        ("raise SystemExit(4)", '["python3", "bot.py"]', 3, "startup/exit"),
        ("print('hello world', flush=True)", '["python3", "bot.py"]', 1, "garbage/text"),
        (ILLEGAL, '["python3", "bot.py"]', 1, "illegal/action"),
    ],
)
def test_a_bot_that_does_not_work_is_refused_with_the_reason(
    tmp_path: Path, source: str, command: str, code: int, told: str
) -> None:
    db = tmp_path / "arena.db"
    result = arena("submit", write_bot(tmp_path / "bad", source, command), "--db", db)
    assert result.exit_code == code
    assert told in result.stderr
    assert document("bots", "--db", db)["bots"] == []


FIRST = 'from arena_bot import run\nrun(lambda ask: ask.legal[0], name="x", version="1", games=["durak"])\n'


def test_an_earlier_version_can_be_played_and_told_apart(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    folder = write_bot(tmp_path / "mine", FIRST)
    assert "mine version 1" in arena("submit", folder, "--db", db).stdout
    assert "is unchanged" in arena("submit", folder, "--db", db).stdout
    (folder / "more.txt").write_text("changed")
    assert "mine version 2" in arena("submit", folder, "--db", db).stdout
    told = document("play", "durak", "mine@1", "mine@2", "--db", db)
    assert told["bots"] == ["mine@1", "mine"]
    assert sum(told["first_places"]) == 2
    assert document("play", "durak", "mine", "mine", "--db", db)["bots"] == ["mine#1", "mine#2"]
    assert "no bot is called 'mine@7'" in refusal("play", "durak", "mine@7", "mine", "--db", db)
    line = ("--games", "durak", "--format", "round-robin", "--quiet", "--db", db)
    assert "named twice: mine" in refusal("run", "--bots", "mine,mine@2", *line)
    assert '"mine@x" is not allowed' in refusal("run", "--bots", "mine,mine@x", *line)
    assert arena("run", "--bots", "mine,mine@1", *line).exit_code == 0
    assert {bot["name"] for bot in document("leaderboard", "--db", db)["pools"][0]["bots"]} == {"mine", "mine@1"}


def test_all_are_those_that_play_a_game(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    for folder in (write_bot(tmp_path / "mine", FIRST), BOTS / "random", BOTS / "c-first"):
        assert arena("submit", folder, "--db", db).exit_code == 0
    options = ("--format", "round-robin", "--quiet", "--db", db)
    assert arena("run", "--bots", "all", "--games", "avalanche", *options).exit_code == 0
    told = document("standings", "last", "--db", db)
    assert [line["name"] for line in told["games"]["avalanche"]] == ["random", "c-first"]
    assert "mine does not play avalanche" in refusal("run", "--bots", "mine,random", "--games", "avalanche", *options)
    assert "plays" not in refusal("leaderboard", "chess", "--db", db)


def test_a_tournament_goes_on_until_errors_are_small_enough(site: Path, tmp_path: Path) -> None:
    db = str(tmp_path / "arena.db")
    asked = ["run", "--bots", f"{BOTS / 'random'}/,{BOTS / 'c-first'}/", "--games", "avalanche", "--decks", "12"]
    asked += ["--name", "sure", "--db", db, "--until-error", "5"]
    for rounds in (1, 3):
        ran = arena(*asked, "--max-rounds", str(rounds))
        assert ran.exit_code == 0, ran.output
        assert f"ended by --max-rounds after {rounds} round" in ran.stderr
        assert "widest: avalanche" in ran.stderr
        assert "who is stronger: arena los" in ran.stderr
        assert "points" not in ran.stderr
        assert document("leaderboard", "--db", db)["pools"][0]["deals"] == rounds * 24
    ran = arena(*asked, "--max-rounds", "3", "--json")
    assert [one["game"] for one in json.loads(ran.stdout.splitlines()[-1])["sureness"]] == ["avalanche"]
    assert "--until-error goes on by itself" in refusal(*asked, "--extend")
    assert "sure was begun differently: decks was 12, now 2" in refusal(*asked, "--decks", "2")
    assert arena("verify", "--outcomes", "--db", db).exit_code == 0


def test_a_gauntlet_and_a_knockout_are_run(site: Path, tmp_path: Path) -> None:
    db = str(tmp_path / "arena.db")
    asked = ["run", "--bots", f"{BOTS / 'random'}/,{BOTS / 'c-first'}/", "--games", "avalanche", "--db", db]
    assert arena(*asked, "--format", "gauntlet", "--challengers", "random", "--rounds", "2").exit_code == 0
    ran = arena(*asked, "--format", "knockout", "--avoid-same-author")
    assert "only a Swiss can" in str(ran.exception)
    ran = arena(*asked, "--format", "knockout")
    assert "· knockout, 1 round ·" in ran.stderr
    assert ran.stdout.splitlines()[0] == "result of knockout-2"
    assert "  avalanche  winner: " in ran.stdout.splitlines()[1]
    lines = document("standings", "last", "--db", db)["games"]["avalanche"]
    assert [line["place"] for line in lines] == [1, 2]
    assert arena("verify", "--outcomes", "--db", db).exit_code == 0


def test_a_preset_has_a_leaderboard_of_its_own(site: Path, tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    bots = ("--bots", f"{BOTS}/random/,{BOTS}/c-first/", "--format", "round-robin", "--quiet", "--db", db)
    assert arena("run", "--games", "smokestack-junior", *bots).exit_code == 0
    (pool,) = document("leaderboard", "smokestack-junior", "--db", db)["pools"]
    assert "double=off" in pool["rule_set"]
    assert "smokestack · double=off · straight=off" in arena("leaderboard", "smokestack", "--db", db).stdout
    assert "no results are rated" in refusal("leaderboard", "smokestack-junior")


def test_a_database_inside_a_bot_is_refused_before_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_bot(tmp_path / "mine", FIRST)
    monkeypatch.chdir(folder)
    for line in (("submit", "."), ("play", "durak", "./", "./"), ("run", "--bots", "./,../mine/", "--games", "durak")):
        assert "lies inside the bot's folder" in refusal(*line)
    assert not (folder / "results").exists()
    (tmp_path / "empty").mkdir()
    assert "there is no bot.toml in ../empty/" in refusal("submit", "../empty")


def test_rounds_of_smaller_tables_are_told(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    bots = [f"{write_bot(tmp_path / name, FIRST)}/" for name in ("a", "b", "c", "d")]
    ran = arena("run", "--bots", ",".join(bots), "--games", "durak", "--seats", "3", "--rounds", "1", "--db", db)
    assert ran.exit_code == 0, ran.output
    assert "durak (2 tables of 2)" in ran.stderr
    assert re.search(r"^commitment [0-9a-f]{64}$", ran.stderr, re.MULTILINE)


def test_faults_are_listed_with_what_a_bot_said(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    crash = "import sys\nfrom arena_bot import run\ndef choose(ask):\n    sys.exit(f'lost my way {1}')\n"
    bad = write_bot(tmp_path / "bad", crash + 'run(choose, name="x", version="1", games=["durak"])\n')
    played = arena("play", "durak", f"{bad}/", f"{BOTS}/c-first/", "--db", db)
    assert played.exit_code == 0, played.output
    lines = [json.loads(line) for line in arena("faults", "--json", "--db", db).stdout.splitlines()]
    assert [(line["bot"], line["kind"], line["detail"]) for line in lines] == [("bad", "crash", "exit")] * 2
    assert all("lost my way 1" in line["stderr"] for line in lines)
    shown = arena("faults", "--bot", "bad", "--kind", "crash", "--db", db)
    assert shown.stdout.count("crash/exit") == 2
    assert "arena trace 1-0-1 --seat 1" in shown.stderr
    assert "lost my way 1" in arena("trace", "1-0-1", "--seat", "1", "--db", db).stdout
    position = arena("replay", lines[0]["deal"], "--step", str(lines[0]["step"]), "--db", db)
    assert f"fault after step {lines[0]['step']}, bad: crash/exit" in position.stdout
    none = arena("faults", "--bot", "c-first", "--db", db)
    assert (none.stdout, none.stderr) == ("", "no faults of c-first\n")
    assert "no bot called 'nobody' has played here; there were bad, c-first" in refusal(
        "faults", "--bot", "nobody", "--db", db
    )
    assert "no fault kind 'late'" in refusal("faults", "--kind", "late", "--db", db)
    assert "no tournament 'spring'" in refusal("faults", "spring", "--db", db)
    both = f"{bad}/,{BOTS}/c-first/"
    ran = arena("run", "--bots", both, "--games", "durak", "--format", "round-robin", "--name", "spring", "--db", db)
    assert f"2 faults: arena faults spring --db {db}\n" in ran.stderr


def test_a_new_bot_plays_at_once(tmp_path: Path) -> None:
    told = document("new", tmp_path / "mine", "--game", "avalanche")
    assert told["name"] == "mine"
    assert document("submit", tmp_path / "mine", "--db", tmp_path / "arena.db")["name"] == "mine"
    assert "not an empty folder" in refusal("new", tmp_path / "mine", "--game", "durak")
    assert 'no game "chess"' in refusal("new", tmp_path / "other", "--game", "chess")
    assert "cannot be a bot's name" in refusal("new", tmp_path / "Other", "--game", "durak")
    assert "next:" in arena("new", tmp_path / "third", "--game", "durak").stdout


def test_a_damaged_record_is_named(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with sqlite3.connect(site / "results" / "arena.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("UPDATE deal SET record = x'0102'")
    target.close()
    source.close()
    assert "record of a deal is damaged" in refusal("replay", "1-0-0", "--db", copy)


@pytest.mark.parametrize("author", ["a\nb", "\x1b[31m", "x" * 65, "\udcff"])
def test_an_author_is_short_and_printable(tmp_path: Path, author: str) -> None:
    assert "printable" in refusal("submit", BOTS / "random", "--author", author, "--db", tmp_path / "arena.db")


def test_an_unnamed_tournament_finds_a_free_name(site: Path, tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    bots = f"{BOTS}/random/,{BOTS}/c-first/"
    line = (
        "run",
        "--bots",
        bots,
        "--games",
        "avalanche",
        "--format",
        "round-robin",
        "--decks",
        "1",
        "--quiet",
        "--db",
        db,
    )
    for name in (("--name", "round-robin-2"), ()):
        assert arena(*line, *name).exit_code == 0
    assert document("standings", "last", "--db", db)["tournament"] == "round-robin-3"


def test_another_author_needs_force(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    folder = write_bot(
        tmp_path / "mine",
        'from arena_bot import run\nrun(lambda ask: ask.legal[0], name="x", version="1", games=["durak"])\n',
    )
    assert document("submit", folder, "--author", "ann", "--db", db)["version"] == 1
    (folder / "more.txt").write_text("changed")
    assert "submitted by ann, not bob" in refusal("submit", folder, "--author", "bob", "--db", db)
    assert document("submit", folder, "--author", "bob", "--force", "--db", db)["version"] == 2


def test_databases_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    assert "there is no database" in refusal("leaderboard", "--db", tmp_path / "none.db")
    text = tmp_path / "text.db"
    text.write_text("no database")
    assert "is not a database" in refusal("leaderboard", "--db", text)
    blocked = text / "below" / "arena.db"
    assert "cannot be written" in refusal("play", "durak", "a", "b", "--db", blocked)


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]  # a group, as it has commands
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", command.commands[inner]) for inner in command.commands)
        else:
            yield name, command


def test_every_command_is_found_in_its_module() -> None:
    found = {name.split()[0]: command.callback.__module__ for name, command in commands() if command.callback}
    assert found == {name: f"arena.cli.{module}" for name, module in MODULES.items()}


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_each_command_has_help_an_example_and_json(name: str) -> None:
    shown = arena(*name.split(), "--help").stdout
    assert f"arena {name}" in shown
    assert "Example" in shown
    assert "--json" in shown


def test_the_version_is_told() -> None:
    assert arena("--version").stdout.startswith("arena 0.")
