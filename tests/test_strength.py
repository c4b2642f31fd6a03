"""Leaderboard, likelihoods of superiority and the history of a rating, as the command line shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.cli.cells import change_cell
from arena.cli.commands import app
from arena.plan import Plan
from arena.rules import Value
from arena.store.database import open_writer
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

GAMES: dict[str, dict[str, Value]] = {"avalanche": {}, "durak": {}}
FAULTY = {0: ("illegal", 300)}


def play(db: Database, name: str, plan: Plan, bots: int, games: Mapping[str, tuple[str, ...]] | None = None) -> None:
    found = refs(bots, FAULTY)
    tournament = begin(db, plan, found, name=name, games=games)

    async def main() -> bool:
        lanes = FakeLanes()
        return await run(db, tournament, by_hash(found), lanes, lambda event: None, lambda: 2.0, lanes.stopping)

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a tournament over two games; bot-3 plays one of them."""
    path = tmp_path_factory.mktemp("site") / "arena.db"
    with pytest.MonkeyPatch.context() as patch, open_writer(path) as db:
        use_fake_bots(patch)
        play(db, "spring", Plan("round-robin", GAMES, 1, decks=6), 4, {"bot-3": ("durak",)})
    return path


def arena(*args: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output
    return result


def refusal(*args: str | Path) -> str:
    return str(CliRunner().invoke(app, [str(arg) for arg in args]).exception)


def document(*args: str | Path) -> Any:
    return json.loads(arena(*args, "--json").stdout)


def test_a_leaderboard_tells_how_sure_it_is(site: Path) -> None:
    told = document("leaderboard", "--db", site)
    assert [pool["game"] for pool in told["pools"]] == ["avalanche", "durak"]
    shown = arena("leaderboard", "--db", site).stdout
    for pool in told["pools"]:
        assert pool["design_effect"] > 0
        assert f"{pool['deals']} deals · decks shared: worth {pool['design_effect']:.1f} times the deals" in shown
        assert pool["groups"] == 1
        for place, bot in enumerate(pool["bots"], 1):
            assert bot["rank_low"] <= place <= bot["rank_high"]
            assert bot["provisional"] is False
    durak = told["pools"][1]["bots"]
    rows = re.findall(r"^ *(\d) +([\d-]+) +(bot-\d) +(\d+) +(\d+) +([+-]\d+) +\d+ +\d+ +\d+$", shown, re.MULTILINE)
    assert [row[2] for row in rows[-4:]] == [bot["name"] for bot in durak]
    assert [row[5] for row in rows[-4:]] == [f"{bot['change']:+.0f}" for bot in durak]
    assert told["overall"]["bots"][-1]["place"] is None, "bot-3 plays one game only"
    assert {bot["change"] for bot in told["overall"]["bots"]} == {None}


def test_few_decks_make_a_rating_provisional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        play(db, "spring", Plan("swiss", {"avalanche": {}}, 1, decks=2), 2)
    told = document("leaderboard", "--db", path)["pools"][0]
    assert [bot["provisional"] for bot in told["bots"]] == [True, True]
    assert told["design_effect"] is None
    said = arena("leaderboard", "--db", path)
    shown = said.stdout
    assert "a rating is provisional, without an error bar, below 10 decks, and where it is only a bound" in said.stderr
    assert "decks shared" not in shown
    assert "change" not in shown
    assert "places" not in shown
    for bot in told["bots"]:
        assert bot["bound"] or f"{bot['elo']:.0f}?" in shown
    for more in ((), ("--history",)):
        lines = arena("ratings", "bot-1", *more, "--json", "--db", path).stdout.splitlines()
        assert [json.loads(line)["provisional"] for line in lines] == [True]
    rows = arena("export", "ratings", "--format", "ndjson", "--db", path).stdout.splitlines()
    assert [json.loads(row)["provisional"] for row in rows] == [True, True]


def test_a_bound_is_provisional_everywhere(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    with open_writer(path) as db:
        db.execute("UPDATE rating SET bound = '>', error = NULL WHERE elo = (SELECT max(elo) FROM rating)")
    bots = [bot for pool in document("leaderboard", "--db", path)["pools"] for bot in pool["bots"]]
    assert [bot["bound"] for bot in bots if bot["provisional"]] == [">"]
    said = arena("leaderboard", "--db", path)
    assert "a rating is provisional, without an error bar" in said.stderr
    assert "provisional" not in arena("leaderboard", "--db", site).stderr
    rows = arena("export", "ratings", "--format", "ndjson", "--db", path).stdout.splitlines()
    told = [row for row in map(json.loads, rows) if row["game"] != "overall"]
    assert [row["bound"] for row in told if row["provisional"]] == [">"]


def test_equal_ratings_share_a_place_in_the_table_in_json_and_in_exports(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    with open_writer(path) as db:
        db.execute("UPDATE rating SET elo = 1500 WHERE pool = (SELECT id FROM pool WHERE game = 'durak')")
    bots = document("leaderboard", "durak", "--db", path)["pools"][0]["bots"]
    expected = [(1, True, f"bot-{number}") for number in range(4)]
    assert [(bot["place"], bot["shared"], bot["name"]) for bot in bots] == expected
    shown = arena("leaderboard", "durak", "--db", path).stdout
    assert re.findall(r"^ *(=\d) .*?(bot-\d)", shown, re.MULTILINE) == [("=1", f"bot-{number}") for number in range(4)]
    rows = arena("export", "ratings", "--format", "ndjson", "--db", path).stdout.splitlines()
    told = [(row["place"], row["name"]) for row in map(json.loads, rows) if row["game"] == "durak"]
    assert told == [(1, f"bot-{number}") for number in range(4)]
    matrix = arena("los", "durak", "--db", path).stdout
    assert re.findall(r"^ *\d +(bot-\d)", matrix, re.MULTILINE) == [f"bot-{number}" for number in range(4)]


def test_an_anchor_has_its_elo_and_errors_are_against_it(site: Path) -> None:
    free, held = (document("leaderboard", *more, "--db", site) for more in ((), ("--anchor", "bot-1=1200")))
    assert held["anchor"] == "bot-1=1200"
    for before, after in zip(free["pools"], held["pools"], strict=True):
        assert after["anchored"] is True
        anchor = next(bot for bot in after["bots"] if bot["name"] == "bot-1")
        assert (anchor["elo"], anchor["error"]) == (1200.0, 0.0)
        was = {bot["name"]: bot["elo"] for bot in before["bots"]}
        shift = 1200.0 - was["bot-1"]
        assert all(bot["elo"] == pytest.approx(was[bot["name"]] + shift, abs=1e-5) for bot in after["bots"])
        assert [bot["rank_low"] for bot in after["bots"]] == [bot["rank_low"] for bot in before["bots"]]
    overall = {bot["name"]: bot for bot in held["overall"]["bots"]}
    assert (overall["bot-1"]["elo"], overall["bot-1"]["error"]) == (1200.0, 0.0)


def test_a_pool_without_the_anchor_keeps_its_mean(site: Path) -> None:
    told = document("leaderboard", "--anchor", "bot-3=1200", "--db", site)
    assert [pool["anchored"] for pool in told["pools"]] == [False, True]
    mean = {bot["name"]: bot["elo"] for bot in document("leaderboard", "--db", site)["overall"]["bots"]}
    assert {bot["name"]: bot["elo"] for bot in told["overall"]["bots"]} == mean
    said = arena("leaderboard", "--anchor", "bot-3=1200", "--db", site)
    assert "bot-3 is not rated in all of them, so with mean 1500: overall, avalanche 2 seats\n" in said.stderr
    assert re.search(r"^durak .* · Elo and ± against bot-3 = 1200$", said.stdout, re.MULTILINE)
    assert said.stdout.count("against bot-3") == 1


@pytest.mark.parametrize("text", ["bot-1", "=5", "bot-1=", "bot-1=nan", "bot-1=1e3", "bot-1=1234567"])
def test_what_is_no_anchor_is_told(site: Path, text: str) -> None:
    assert "--anchor wants NAME=ELO, e.g. random=1000, not" in refusal("leaderboard", "--anchor", text, "--db", site)
    assert "no bot called 'nobody' is rated here" in refusal("leaderboard", "--anchor", "nobody=1", "--db", site)


def test_likelihoods_of_superiority_add_up(site: Path) -> None:
    (pool,) = document("los", "durak", "--db", site)["pools"]
    by_pair = {(pair["name"], pair["opponent"]): pair["los"] for pair in pool["pairs"]}
    assert len(by_pair) == 12
    for (name, opponent), chance in by_pair.items():
        assert chance + by_pair[opponent, name] == pytest.approx(1.0)
    assert sorted(pool["groups"][0]) == [f"bot-{number}" for number in range(4)]
    order = [bot["name"] for bot in document("leaderboard", "durak", "--db", site)["pools"][0]["bots"]]
    shown = arena("los", "durak", "--db", site)
    rows = re.findall(r"^ *\d +(bot-\d)((?: +[-\d]+){4})$", shown.stdout, re.MULTILINE)
    assert [name for name, _ in rows] == order
    for index, (name, cells) in enumerate(rows):
        assert cells.split()[index] == "-"
        for other, cell in zip(order, cells.split(), strict=True):
            assert name == other or cell == f"{100 * by_pair[name, other]:.0f}"
    assert "not corrected for many pairs" in shown.stderr
    assert "no results are rated for game 'chess'" in refusal("los", "chess", "--db", site)


def test_bots_that_never_met_are_told_apart_by_the_prior_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        play(db, "spring", Plan("swiss", {"avalanche": {}}, 1, decks=5), 4)
    said = arena("los", "--db", path)
    groups = r"avalanche 2 seats: results link the bots in \d groups only; how far these are apart rests on the prior"
    assert re.search(groups, said.stderr)
    assert re.search(groups, arena("leaderboard", "--db", path).stderr)
    assert "n/a" in said.stdout, "five decks are too few"
    assert "n/a: one of the two has fewer than 10 decks" in said.stderr


@pytest.mark.parametrize(
    ("change", "told"), [(None, "new"), (0.0, "0"), (-0.4, "0"), (0.4, "0"), (-0.6, "-1"), (10.2, "+10")]
)
def test_a_change_that_rounds_to_nothing_is_nothing(change: float | None, told: str) -> None:
    assert change_cell({"change": change}) == told


def test_what_an_older_arena_fitted_has_no_likelihoods_yet(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    with open_writer(path) as db:
        db.execute("DELETE FROM fit")
        db.execute("UPDATE rating SET rank_low = NULL, rank_high = NULL, before = NULL")
    assert "were fitted by an older arena" in refusal("los", "--db", path)
    told = document("leaderboard", "durak", "--anchor", "bot-1=1200", "--db", path)["pools"][0]
    assert (told["design_effect"], told["groups"]) == (None, None)
    assert {bot["error"] for bot in told["bots"]} == {None}
    assert arena("verify", "--outcomes", "--db", path).exit_code == 0


def test_a_rating_is_told_now_and_after_each_round(site: Path) -> None:
    now = [json.loads(line) for line in arena("ratings", "bot-1", "--json", "--db", site).stdout.splitlines()]
    past = arena("ratings", "bot-1", "--history", "--json", "--db", site).stdout.splitlines()
    rounds = [json.loads(line) for line in past]
    assert [line["schema"] for line in now] == ["arena.rating/1"] * 2
    assert [line["pool"] for line in now] == ["avalanche · 2 seats · none", "durak · 2 seats · none"]
    assert [(line["tournament"], line["round"]) for line in rounds] == [("spring", 1), ("spring", 2), ("spring", 3)] * 2
    for one in now:
        last = [line for line in rounds if line["pool"] == one["pool"]][-1]
        assert (last["elo"], last["error"], last["deals"]) == (one["elo"], one["error"], one["deals"])
    board = document("leaderboard", "durak", "--db", site)["pools"][0]["bots"]
    (bot,) = (bot for bot in board if bot["name"] == "bot-1")
    assert bot["change"] == pytest.approx(rounds[-1]["elo"] - rounds[-2]["elo"], abs=1e-5)
    shown = arena("ratings", "bot-1", "--history", "--db", site).stdout
    assert len(re.findall(r"^durak · 2 seats · none +spring +\d", shown, re.MULTILINE)) == 3
    assert "spring" not in arena("ratings", "bot-1", "--db", site).stdout
    assert "no bot called 'nobody' is rated" in refusal("ratings", "nobody", "--db", site)


def test_a_correction_keeps_what_the_last_round_changed(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    arena("void", "4", "--reason", "a storm", "--db", path)
    board = document("leaderboard", "durak", "--db", path)["pools"][0]["bots"]
    assert all(bot["change"] is not None for bot in board)
    assert arena("verify", "--outcomes", "--db", path).exit_code == 0
    copy = tmp_path / "all.ndjson"
    arena("export", "all", "-o", copy, "--db", path)
    arena("import", copy, "--db", tmp_path / "copy.db")
    assert document("leaderboard", "--db", tmp_path / "copy.db") == document("leaderboard", "--db", path)
    rows = arena("export", "ratings", "--format", "ndjson", "--db", path).stdout.splitlines()
    told = {row["name"]: row for row in map(json.loads, rows) if row["game"] == "durak"}
    for bot in board:
        assert [told[bot["name"]][key] for key in ("rank_low", "change")] == [bot["rank_low"], bot["change"]]


def test_a_fit_that_was_tampered_with_is_found(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    with open_writer(path) as db:
        db.execute("UPDATE fit SET design_effect = 9")
    result = CliRunner().invoke(app, ["verify", "--outcomes", "--db", str(path)])
    assert result.exit_code == 1
    assert "certainty of the ratings" in result.stdout


def test_before_anything_is_rated_that_is_told(tmp_path: Path) -> None:
    with open_writer(tmp_path / "arena.db"):
        pass
    for command in ("leaderboard", "los"):
        said = arena(command, "--db", tmp_path / "arena.db")
        assert said.stdout == ""
        assert said.stderr.startswith("no results are rated yet")


def test_what_differs_of_a_rating_is_told(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    path.write_bytes(site.read_bytes())
    with open_writer(path) as db:
        db.execute("UPDATE rating SET rank_low = 7, rank_high = 8 WHERE rank_low IS NOT NULL")
    result = CliRunner().invoke(app, ["verify", "--outcomes", "--db", str(path)])
    assert re.search(r"ranks of [0-9a-f]{12}: stored \(7, 8\), found \(\d, \d\)", result.stdout)
