"""`arena run` as a process of its own: interrupted, killed, run twice; nothing is lost and nothing is left running."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from arena.store import tournaments
from arena.store.database import open_reader

BOTS = Path(__file__).parents[2] / "bots"
PATIENCE_S = 60


def command(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "arena", *map(str, args)]


def run_line(db: Path, name: str = "long", decks: int = 4, rounds: int = 15) -> list[str]:
    bots = f"{BOTS}/random/,{BOTS}/c-first/"
    options = ("--games", "durak", "--format", "round-robin", "--rounds", str(rounds), "--decks", str(decks))
    practice = ("--seed", "5", "--trusted", "--jobs", "1", "--name", name, "--json")
    return command("run", "--bots", bots, *options, *practice, "--db", db)


def done(line: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def wait_for(process: subprocess.Popen[str], event: str) -> None:
    """Read events of a run until one of a kind comes."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line).get("event") == event:
            return
    raise AssertionError(f"the run ended before {event}")


@contextmanager
def running(line: list[str], cwd: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(line, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def runner_of(supervisor: int) -> int:
    """Return the process that plays: the child of the process that was started which runs the same program."""
    program = Path(f"/proc/{supervisor}/cmdline").read_bytes()
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    (child,) = (child for child in children if Path(f"/proc/{child}/cmdline").read_bytes() == program)
    return int(child)


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(FileNotFoundError):
            found += [int(child), *descendants(int(child))]
    return found


def is_running(pid: int) -> bool:
    """Tell whether a process lives; what is dead and not yet reaped by its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    state = re.sub(r".*\) ", "", stat)[0]
    return state not in "ZX"


def tables(db: Path, name: str, cwd: Path) -> list[object]:
    shown = [done(command(*view, "--json", "--db", db), cwd) for view in (("leaderboard",), ("standings", name))]
    assert [view.returncode for view in shown] == [0, 0]
    return [json.loads(view.stdout) for view in shown]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    ran = done(run_line(folder / "arena.db"), folder)
    assert ran.returncode == 0, ran.stderr
    return tables(folder / "arena.db", "long", folder)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_by_the_same_command(tmp_path: Path, uninterrupted: list[object]) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db), tmp_path) as process:
        wait_for(process, "MatchPlayed")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
    assert "the same command goes on" in told
    assert done(run_line(db), tmp_path).returncode == 0
    assert tables(db, "long", tmp_path) == uninterrupted


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_plays_nothing_yet_is_interrupted_at_once(tmp_path: Path, number: signal.Signals) -> None:
    line = command("run", "--forever", "--name", "ladder", "--games", "durak", "--db", tmp_path / "arena.db")
    with running([*line, "--isolation", "none", "--trusted"], tmp_path) as process:
        assert process.stderr is not None
        assert "waiting for bots" in process.stderr.readline()
        process.send_signal(number)
        _, told = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (130, "stopped; the same command goes on where it stopped\n")


@pytest.mark.slow
def test_a_second_interrupt_stops_at_once(tmp_path: Path, uninterrupted: list[object]) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db), tmp_path) as process:
        wait_for(process, "MatchPlayed")
        runner = runner_of(process.pid)
        for _ in range(2):
            os.kill(runner, signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
    assert done(run_line(db), tmp_path).returncode == 0
    assert tables(db, "long", tmp_path) == uninterrupted


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_behind_and_loses_nothing(tmp_path: Path, uninterrupted: list[object]) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db), tmp_path) as process:
        wait_for(process, "RoundComplete")
        below = descendants(process.pid)
        assert len(below) >= 2
        os.kill(runner_of(process.pid), signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 128 + signal.SIGKILL
        assert not [pid for pid in below if is_running(pid)]
    assert done(run_line(db), tmp_path).returncode == 0
    assert tables(db, "long", tmp_path) == uninterrupted


@pytest.mark.slow
def test_a_second_runner_is_refused_and_readers_are_not(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db, rounds=900), tmp_path) as process:
        wait_for(process, "RoundComplete")
        second = done(run_line(db, name="other"), tmp_path)
        assert second.returncode == 4
        assert second.stderr.startswith(f"error: another arena is playing on {db}")
        assert done(command("leaderboard", "--db", db), tmp_path).returncode == 0
        told = json.loads(done(command("reveal", "long", "--json", "--db", db), tmp_path).stdout)
        (stage,) = told["stages"]
        assert (len(stage["commitment"]), stage["master"]) == (64, None), "the master is secret until the end"
        assert process.poll() is None


@pytest.mark.slow
def test_a_ladder_goes_on_for_ever_with_whoever_is_there(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    options = ("--games", "avalanche", "--seed", "5", "--trusted", "--forever", "--name", "ladder", "--json")
    line = command("run", *options, "--db", db)

    def submit(bot: str) -> None:
        assert done(command("submit", BOTS / bot, "--db", db), tmp_path).returncode == 0

    def meets(process: subprocess.Popen[str], bot: str) -> None:
        assert process.stdout is not None
        assert any(bot in json.loads(event).get("bots", ()) for event in process.stdout)

    def stop(process: subprocess.Popen[str]) -> str:
        os.kill(runner_of(process.pid), signal.SIGINT)
        told = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == 130
        return told

    submit("c-first")
    with running(line, tmp_path) as process:
        assert process.stderr is not None
        assert "waiting for bots to be submitted: avalanche" in process.stderr.readline()
        submit("random")
        meets(process, "random")
        submit("greedy")
        meets(process, "greedy")
        assert "the same command goes on" in stop(process)
    assert done(command("retire", "random", "--db", db), tmp_path).returncode == 0
    with running(line, tmp_path) as process:
        for _ in range(3):
            wait_for(process, "RoundComplete")
        stop(process)
    (stage, *earlier) = json.loads(done(command("reveal", "ladder", "--json", "--db", db), tmp_path).stdout)["stages"][
        ::-1
    ]
    assert len(earlier) > 2
    assert all(one["master"] for one in earlier)
    assert done(command("verify", "--db", db), tmp_path).returncode == 0
    with open_reader(db) as opened:
        ladder = tournaments.find(opened, "ladder")
        assert ladder is not None
        names = [entrant.name for entrant in tournaments.entrants(opened, ladder.id)]
        assert {names[number] for number in ladder.stages[-1].players} == {"c-first", "greedy"}
        assert [stage["stage"], names.count("random")] == [len(ladder.stages), 1]


@pytest.mark.slow
def test_a_changed_plan_under_the_same_name_is_refused(tmp_path: Path) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db), tmp_path) as process:
        wait_for(process, "MatchPlayed")
        os.kill(runner_of(process.pid), signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    changed = done(run_line(db, decks=5), tmp_path)
    assert changed.returncode == 2
    assert "decks was 4, now 5" in changed.stderr


@pytest.mark.slow
def test_a_reader_that_leaves_stops_the_run_and_loses_nothing(tmp_path: Path, uninterrupted: list[object]) -> None:
    db = tmp_path / "arena.db"
    with running(run_line(db), tmp_path) as process:
        wait_for(process, "MatchPlayed")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        process.stdout = None
    assert done(run_line(db), tmp_path).returncode == 0
    assert tables(db, "long", tmp_path) == uninterrupted


def test_a_full_device_is_named(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        line = command("bench", "engine", "--help")
        ran = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("leaderboard",), 2, "error: there is no database at results/arena.db yet"),
        (("play", "chess", "a", "b"), 2, 'error: there is no game "chess"'),
        (("nonsense",), 2, "No such command 'nonsense'"),
        (("submit", "nowhere"), 2, "error: there is no folder nowhere"),
    ],
)
def test_an_error_is_one_message_and_an_exit_code(tmp_path: Path, args: tuple[str, ...], code: int, told: str) -> None:
    result = done(command(*args), tmp_path)
    assert (result.returncode, result.stdout) == (code, "")
    assert told in result.stderr
    assert "Traceback" not in result.stderr
