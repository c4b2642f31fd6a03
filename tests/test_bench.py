"""The benches run and tell ratios; what they measure is for a quiet machine, not for a test."""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from arena.bench import engine, generated, readers, sandbox, size
from arena.cli import bench as commands
from arena.cli.commands import app
from arena.errors import ConfigError, InfraError
from arena.plan import Plan
from arena.sandbox import Level, levels

BOTS = Path(__file__).parents[1] / "bots"


def test_a_decision_is_measured_against_the_blocking_round_trip() -> None:
    ran = CliRunner().invoke(app, ["bench", "decision", "--bot", str(BOTS / "c-first"), "--rounds", "1", "--json"])
    assert ran.exit_code in (0, 1), ran.output
    told = json.loads(ran.stdout)
    assert told["schema"] == "arena.bench.decision/1"
    assert told["ratio"] == told["low"] == told["high"] > 1
    assert told["arena_us"] > told["limit_us"] > 0
    assert told["decisions"] > 1000


def test_a_decision_that_costs_too_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "DECISION_LIMIT", 0.0)
    ran = CliRunner().invoke(app, ["bench", "decision", "--bot", str(BOTS / "c-first"), "--rounds", "1"])
    assert ran.exit_code == 1
    assert "blocking round trips" in ran.stdout


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure each thing once or twice."""
    for name, value in (("THINK_S", 0.2), ("_DECKS", 2), ("_STARTS", 1), ("_MATCHES", 1)):
        monkeypatch.setattr(sandbox, name, value)


def bench_sandbox(*arguments: str, program: str = "c-first", python: str = "greedy") -> Result:
    bots = ("--bot", str(BOTS / program), "--python", str(BOTS / python))
    return CliRunner().invoke(app, ["bench", "sandbox", *bots, "--rounds", "1", *arguments])


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_levels_are_measured_against_none() -> None:
    ran = bench_sandbox("--json")
    assert ran.exit_code in (0, 1), ran.output
    told = json.loads(ran.stdout)
    assert told["schema"] == "arena.bench.sandbox/1"
    assert sorted([level["level"] for level in told["levels"]] + list(told["missing"])) == sorted(Level)
    none = told["levels"][-1]
    assert none["level"] == "none"
    assert none["program_added_ms"] == none["python_added_ms"] == 0
    assert none["round_trip_ratio"] == none["decision_ratio"] == 1
    assert none["decision_us"] > none["round_trip_us"] > 0
    for level in told["levels"][:-1]:
        assert level["off_turn_ms"] < 100, "milliseconds of CPU time while the other had 200"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_level_that_does_not_work_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "problem", lambda level: "" if level is Level.NONE else "out of order")
    ran = bench_sandbox()
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.splitlines()[0].split() == ["median", "none"]
    assert "namespaced does not work here: out of order" in ran.stdout
    assert json.loads(bench_sandbox("--json").stdout)["missing"]["strict"] == "out of order"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_level_that_costs_too_much_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "START_LIMIT_MS", -1000.0)
    monkeypatch.setattr(commands, "LEVEL_LIMIT", 0.0)
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 0.0, 0.0))
    ran = bench_sandbox()
    assert ran.exit_code == 1
    for what in (
        "99.0 programs want",
        "a start (compiled)",
        "a start (Python)",
        "times the round trip",
        "times the decision",
    ):
        assert what in ran.stderr
    monkeypatch.setattr(commands, "START_LIMIT_MS", 1000.0)
    monkeypatch.setattr(commands, "LEVEL_LIMIT", 1000.0)
    assert bench_sandbox().exit_code == 0


@pytest.mark.usefixtures("quick")
def test_bots_that_do_not_play_cannot_be_measured(tmp_path: Path) -> None:
    (tmp_path / "bot.toml").write_text('name = "mute"\ngames = ["durak"]\ncommand = ["true"]\n')
    for given in ({"program": str(tmp_path)}, {"python": str(tmp_path)}):
        error = bench_sandbox(**given).exception
        assert isinstance(error, ConfigError)
        assert str(error).startswith("nothing can be measured with mute: your bot ended with exit code 0")


@pytest.mark.parametrize("name", ["durak", "avalanche", "smokestack"])
def test_our_play_outs_go_on_for_ever(name: str) -> None:
    assert len(list(islice(engine.own(name, 2), 3000))) == 3000


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rlcard", "pyspiel", "pokerkit"):
        monkeypatch.setitem(sys.modules, name, None)
    for playout in (engine.rlcard_uno(), engine.open_spiel("hearts"), engine.pokerkit()):
        with pytest.raises(ConfigError, match="pip install --group bench"):
            next(playout)


def test_engines_are_told_as_ratios_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries are stood in for, since only `make bench` installs them."""
    monkeypatch.setattr(engine, "_SECONDS", 0.001)
    monkeypatch.setattr(
        engine,
        "playouts",
        lambda: {engine.BASE: lambda: engine.own("durak", 2), "durak 2": lambda: engine.own("durak", 2)},
    )
    ran = CliRunner().invoke(app, ["bench", "engine", "--rounds", "2", "--json"])
    told = {one["name"]: one for one in json.loads(ran.stdout)["engines"]}
    assert told[engine.BASE]["ratio"] == 1
    assert told["durak 2"]["steps_per_s"] > 0
    monkeypatch.setattr(commands, "ENGINE_WANTED", 1e9)
    ran = CliRunner().invoke(app, ["bench", "engine", "--rounds", "1"])
    assert ran.exit_code == 1
    assert "durak 2" in ran.stdout
    assert "less than" in ran.stderr


def test_what_readers_cost_is_told_as_a_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "COMMITS", 5)
    ran = CliRunner().invoke(app, ["bench", "readers", "--rounds", "2", "--json"])
    assert ran.exit_code in (0, 1), ran.output
    told = json.loads(ran.stdout)
    assert told["schema"] == "arena.bench.readers/1"
    assert 0 < told["low"] <= told["ratio"] <= told["high"]
    assert told["reads"] >= 2
    monkeypatch.setattr(commands, "READERS_WANTED", 1e9)
    ran = CliRunner().invoke(app, ["bench", "readers", "--rounds", "1"])
    assert ran.exit_code == 1
    assert "of what it does alone" in ran.stdout


@pytest.mark.slow
def test_sizes_are_told_in_bytes_and_megabytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(size, "BOTS", 24)
    monkeypatch.setattr(size, "PLANNED", 5000)
    for limit in ("RATE_LIMIT_S", "LEADERBOARD_LIMIT_S"):
        monkeypatch.setattr(commands, limit, 1e9)
    kept = tmp_path / "kept.db"
    ran = CliRunner().invoke(app, ["bench", "size", "--deals", "5000", "--keep", str(kept), "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert (told["schema"], told["matches"], told["deals"]) == ("arena.bench.size/1", 276, 5520)
    assert 500 < told["record_bytes"] < told["deal_bytes"] < 1500
    peaks = {peak["command"]: peak["mb"] for peak in told["peaks"]}
    assert {"leaderboard", "standings last", "verify --outcomes", "run --dry-run"} <= peaks.keys()
    assert all(20 < mb < commands.PEAK_LIMIT_MB for mb in peaks.values())
    assert told["rate_s"] > 0
    assert all(peak["seconds"] > 0 for peak in told["peaks"])
    ran = CliRunner().invoke(app, ["bench", "size", "--keep", str(kept)])
    assert isinstance(ran.exception, ConfigError)
    monkeypatch.setattr(commands, "PEAK_LIMIT_MB", 1.0)
    for limit in ("RATE_LIMIT_S", "LEADERBOARD_LIMIT_S", "GROWTH_LIMIT_MB"):
        monkeypatch.setattr(commands, limit, -1e9)
    monkeypatch.setattr(commands, "_ENOUGH_MATCHES", 1)
    monkeypatch.setattr(size, "_commands", lambda: [("leaderboard",)])
    monkeypatch.setattr(size, "BOTS", 6)
    ran = CliRunner().invoke(app, ["bench", "size", "--deals", "1"])
    assert ran.exit_code == 1
    assert "bytes a deal" in ran.stdout
    told = r"more than wanted: \d+ MB of leaderboard; \d\.\d+ s of leaderboard; .* of a run; \d\.\d s to rate all"
    assert re.search(told, ran.stderr)


def test_a_command_that_fails_beside_the_bench_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=r"`arena leaderboard` failed beside the bench: .*there is no database"):
        size._peak(("leaderboard",), tmp_path / "none.db")


@pytest.mark.slow
def test_the_coordinator_keeps_no_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(size, "BOTS", 40)
    monkeypatch.setattr(generated, "WAYS", 1)
    marks = size.generate(tmp_path / "arena.db", Plan("round-robin", {"durak": {}}, 2, decks=2))
    half, last = marks[len(marks) // 2], marks[-1]
    assert (len(marks), last.matches) == (78, 1560)
    assert last.resident_mb - half.resident_mb < 5, "760 matches later, the records of which take 30 MB"


def test_ratings_and_pairings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("bench", "rating", "--deals", "6000", "--bots", "16", "--rounds", "1")
    monkeypatch.setattr(commands, "FIT_LIMIT_MS", 60_000.0)
    told = json.loads(CliRunner().invoke(app, [*few, "--json"]).stdout)
    assert told["rating"]["deals"] == 6000
    assert min(told["rating"].values()) > 0
    assert (told["swiss"]["bots"], told["swiss"]["rounds"], told["swiss"]["repeats"]) == (16, 11, 0)
    ran = CliRunner().invoke(app, few)
    assert ran.exit_code == 0
    assert "200 bots, 6,000 deals: fit " in ran.stdout
    monkeypatch.setattr(commands, "FIT_LIMIT_MS", 0.0)
    assert CliRunner().invoke(app, few).exit_code == 1
