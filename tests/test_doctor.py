"""The doctor: real attacks here, a launcher with holes that it must see, and what follows from what it found."""

from __future__ import annotations

import json
import os
import re
import sysconfig
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio
from typer.testing import CliRunner

from arena.cli.commands import app
from arena.doctor import Status, Verdict, examine, stage
from arena.doctor.advice import ways_out
from arena.doctor.finding import Finding, Line, Part, evidence, judge
from arena.doctor.promises import GAPS, LINES
from arena.doctor.stage import ATTACKS, NothingToReach, NotRun, Scene, Started, open_plain
from arena.doctor.timing import remarks
from arena.errors import ArenaError, ConfigError, InfraError
from arena.sandbox import Level, Limits, Room
from arena.sandbox.levels import problem

ROOT = Path(__file__).parents[1]
BY_NAME = {line.name: line for line in LINES}


def verdicts_at(level: Level, database: Path, **more: object) -> dict[str, Verdict]:
    found = trio.run(lambda: examine(level, database, **more))  # type: ignore[arg-type]  # keywords of examine
    return {verdict.name: verdict for verdict in found}


def plainly(level: Level, room: Room, argv: Sequence[str], limits: Limits) -> AbstractAsyncContextManager[Started]:
    """A launcher that contains nothing."""
    return open_plain((str(room.runtime / "bin" / argv[0]), *argv[1:]), room.bot, os.environ)


def saying(program: str) -> object:
    """Return a launcher that starts another program instead of the attack."""

    @asynccontextmanager
    async def launch(level: Level, room: Room, argv: Sequence[str], limits: Limits) -> AsyncIterator[Started]:
        async with open_plain(("sh", "-c", program), room.bot, os.environ) as plain:
            yield plain

    return launch


# Real attacks


@pytest.fixture(scope="module", autouse=True)
def small_machine() -> Iterator[None]:
    """Read into memory only what attacks read, and not all that bots may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arena.doctor.use.shared_folders", lambda: [Path(sysconfig.get_path("stdlib"))])
        yield


@pytest.fixture(scope="module")
def namespaced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    assert not problem(Level.NAMESPACED), "these tests need bwrap"
    database = tmp_path_factory.mktemp("site") / "arena.db"
    database.write_bytes(b"SQLite format 3\0")
    return verdicts_at(Level.NAMESPACED, database)


@pytest.mark.slow
def test_every_attack_runs_and_has_a_control(namespaced: dict[str, Verdict]) -> None:
    assert list(namespaced) == list(BY_NAME)
    assert [verdict for verdict in namespaced.values() if verdict.status is Status.UNKNOWN] == []


@pytest.mark.slow
def test_namespaced_holds_what_it_promises(namespaced: dict[str, Verdict]) -> None:
    assert {name: verdict for name, verdict in namespaced.items() if not verdict.holds} == {}


@pytest.mark.slow
def test_evidence_is_in_the_words_of_the_attack(namespaced: dict[str, Verdict]) -> None:
    assert namespaced["tcp"].evidence == "TCP: Connection refused"
    assert "the database" in namespaced["files"].evidence
    assert "No such file or directory" in namespaced["files"].evidence
    assert namespaced["survivors"].control == "daemon: it lives on"
    assert re.search(r"timing: drop: Operation not permitted, then \d+ of 32 bits", namespaced["dropped"].evidence)


@pytest.mark.slow
def test_other_levels_hold_what_they_promise_where_they_work(tmp_path: Path) -> None:
    differ = {"plays", "unix", "processes", "kill", "survivors", "memory", "tree", "forks", "scratch", "atime"}
    lines = [line for line in LINES if line.name in differ]
    for level in (Level.STRICT, Level.LANDLOCK):
        if not problem(level):
            found = verdicts_at(level, tmp_path / "arena.db", lines=lines)
            assert {name: verdict for name, verdict in found.items() if not verdict.holds} == {}


@pytest.mark.slow
def test_none_holds_its_few_promises(tmp_path: Path) -> None:
    promised = BY_NAME.keys() - GAPS["none"].keys()
    broken = {"tcp", "files", "kill", "locks"}
    lines = [line for line in LINES if line.name in promised | broken]
    found = verdicts_at(Level.NONE, tmp_path / "arena.db", lines=lines)
    assert {name for name, verdict in found.items() if verdict.status is Status.ENFORCED} == promised
    assert {name for name, verdict in found.items() if verdict.status is Status.NOT_ENFORCED} == broken
    assert all(verdict.holds for verdict in found.values())


@pytest.mark.slow
def test_it_sees_every_hole_of_a_launcher_that_contains_nothing(tmp_path: Path) -> None:
    before = set(Path("/usr").iterdir()) | set(Path("/etc").iterdir())
    found = verdicts_at(Level.NAMESPACED, tmp_path / "arena.db", launcher=plainly)
    held = {name for name, verdict in found.items() if verdict.status is not Status.NOT_ENFORCED}
    # A lane kills what is left, and a tournament reads all files before it begins, whatever the launcher.
    assert held == {"plays", "survivors", "atime", "warmed"}
    assert not any(verdict.holds for name, verdict in found.items() if name not in held | GAPS["namespaced"].keys())
    assert set(Path("/usr").iterdir()) | set(Path("/etc").iterdir()) == before


# Attacks that do not run as they should


def status_of(tmp_path: Path, name: str, launcher: object) -> tuple[Status, str]:
    (verdict,) = verdicts_at(Level.NAMESPACED, tmp_path, lines=[BY_NAME[name]], launcher=launcher).values()
    return verdict.status, verdict.evidence


def test_a_crashed_attack_proves_nothing(tmp_path: Path) -> None:
    status, words = status_of(tmp_path, "tcp", saying("echo no such thing >&2; exit 3"))
    assert (status, words) == (Status.UNKNOWN, "the attack did not run: tcp ended with 3: no such thing")


def test_text_that_is_no_report_proves_nothing(tmp_path: Path) -> None:
    status, words = status_of(tmp_path, "udp", saying("echo hello"))
    assert (status, words) == (Status.UNKNOWN, "the attack did not run: udp ended with 0: no word on stderr")


def test_a_silent_attack_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "ANSWER_S", 0.3)
    status, words = status_of(tmp_path, "tcp", saying("exec sleep 30"))
    assert (status, words) == (Status.UNKNOWN, "the attack did not run: tcp said nothing for 0 s")


def test_a_bot_that_cannot_play_is_a_broken_promise(tmp_path: Path) -> None:
    status, words = status_of(tmp_path, "plays", saying("exit 127"))
    assert status is Status.NOT_ENFORCED
    assert "ended with 127" in words


def test_a_launcher_that_fails_proves_nothing(tmp_path: Path) -> None:
    def fails(*_: object) -> AbstractAsyncContextManager[Started]:
        raise InfraError("cannot start bwrap")

    assert status_of(tmp_path, "kill", fails) == (Status.UNKNOWN, "the attack did not run: cannot start bwrap")


BEGUN = """echo '{"begun": "x"}'; echo '{"taken": 8}'; kill -9 $$"""


def test_being_killed_for_what_it_took_stops_an_attack(tmp_path: Path) -> None:
    assert status_of(tmp_path, "memory", saying(BEGUN)) == (Status.ENFORCED, "one: killed at 8 MiB")


def test_being_killed_otherwise_proves_nothing(tmp_path: Path) -> None:
    assert status_of(tmp_path, "tcp", saying(BEGUN)) == (Status.UNKNOWN, "the attack did not run: tcp was killed")


def test_a_daemon_that_did_not_start_proves_nothing(tmp_path: Path) -> None:
    found = """echo '{"found": {"daemon": "it did not start"}}'; sleep 30"""
    status, words = status_of(tmp_path, "survivors", saying(found))
    assert (status, words) == (Status.UNKNOWN, "the attack did not run: it did not start")


def test_an_attempt_without_end_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def waits(scene: Scene) -> Finding:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr("arena.doctor.examination._LINE_S", 0.1)
    (verdict,) = verdicts_at(Level.NONE, tmp_path, lines=[Line("tcp", "?", waits)]).values()
    assert (verdict.status, verdict.control) == (Status.UNKNOWN, "no end within 0 s")


# What follows from an attack and its control


async def unused(scene: Scene) -> Finding:
    raise AssertionError


REACHED = {"a": Part(True, "done"), "b": Part(True, "done: 3 MiB")}
DENIED = {"a": Part(False, "Operation not permitted"), "b": Part(False, "Operation not permitted")}
HALF = {"a": Part(False, "Bad address"), "b": Part(True, "done")}


@pytest.mark.parametrize(
    ("contained", "control", "status", "words"),
    [
        (DENIED, REACHED, Status.ENFORCED, "a, b: Operation not permitted"),
        (REACHED, REACHED, Status.NOT_ENFORCED, "a: it works; b: 3 MiB"),
        (HALF, REACHED, Status.NOT_ENFORCED, "b: it works"),
        (REACHED, NotRun("x"), Status.NOT_ENFORCED, "a: it works; b: 3 MiB"),
        (DENIED, HALF, Status.ENFORCED, "b: Operation not permitted (denied, but without a control: a)"),
        (DENIED, DENIED, Status.UNKNOWN, "the control failed, without a sandbox too: a, b: Operation not permitted"),
        (DENIED, NotRun("x"), Status.UNKNOWN, "the control did not run: x"),
        (NotRun("x"), REACHED, Status.UNKNOWN, "the attack did not run: x"),
        (NothingToReach("no times"), NothingToReach("no times"), Status.ENFORCED, "no times"),
    ],
)
def test_judging(contained: Finding | ArenaError, control: Finding | ArenaError, status: Status, words: str) -> None:
    assert judge(Line("x", "?", unused), contained, control) == (status, words)


def test_a_line_without_control_is_judged_by_itself() -> None:
    line = Line("plays", "?", unused, control=False)
    assert judge(line, DENIED, {}) == (Status.ENFORCED, "a, b: Operation not permitted")
    assert judge(line, NotRun("x"), {})[0] is Status.NOT_ENFORCED


def test_what_a_level_does_not_promise_holds_all_the_same() -> None:
    assert Verdict("x", "?", Status.NOT_ENFORCED, "", "", "a reason").holds
    assert not Verdict("x", "?", Status.NOT_ENFORCED, "", "", "").holds
    assert not Verdict("x", "?", Status.UNKNOWN, "", "", "").holds


# Promises and texts


def test_gaps_are_of_lines_and_levels_that_there_are() -> None:
    assert {level.value for level in Level} <= GAPS.keys()
    assert all(gaps.keys() <= BY_NAME.keys() for gaps in GAPS.values())


def test_the_promises_are_documented() -> None:
    text = (ROOT / "docs" / "isolation.md").read_text()
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| `.+$", text, re.MULTILINE)]
    assert rows == [
        [f"`{line.name}`", line.question, *("no" if line.name in gaps else "yes" for gaps in GAPS.values())]
        for line in LINES
    ]
    for gaps in GAPS.values():
        assert all(f": {reason}." in text for reason in gaps.values())


def test_attacks_import_nothing_of_the_arena() -> None:
    for path in ATTACKS.glob("*.py"):
        assert not re.search(r"^\s*(from|import) arena", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("problem", "way"),
    [
        ("bwrap is not installed", "apt install bubblewrap"),
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns=0"),
        ("bwrap: No permissions to create new namespace", "seccomp=unconfined"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("no control group can be made in /sys/fs/cgroup/process: Permission denied", "Delegate=yes"),
        ("this kernel has no landlock, or forbids it", "security modules"),
        ("there is no filter of system calls for riscv64", "seccomp.py"),
        ("bwrap: Can't find source path /home/x: Permission denied", "ls -ld"),
    ],
)
def test_a_reason_has_a_way_out(problem: str, way: str) -> None:
    (found,) = ways_out(f"strict: {problem}")
    assert way in found


def test_an_unknown_reason_has_none() -> None:
    assert ways_out("") == ways_out("strict: it ended with 7") == []


def test_each_reason_has_its_way_out_once() -> None:
    bwrap = "bwrap is not installed (apt install bubblewrap)"
    found = ways_out(f"strict: {bwrap}; namespaced: {bwrap}; landlock: this kernel has no landlock, or forbids it")
    assert [way.split()[0] for way in found] == ["install", "a"]


# Timing


def machine(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


CPU = "sys__devices__system__cpu__cpu"


def test_a_quiet_machine(tmp_path: Path) -> None:
    quiet = {
        f"{CPU}0__topology__thread_siblings_list": "0,2\n",
        f"{CPU}1__topology__thread_siblings_list": "1,3\n",
        f"{CPU}0__cpufreq__scaling_governor": "performance\n",
        "proc__swaps": "Filename Type Size\n",
        "proc__sys__kernel__core_pattern": "core\n",
        "proc__self__cgroup": "4:memory:/x\n0::/user\n",
        "sys__fs__cgroup__user__cpu.stat": "usage_usec 5\nnr_throttled 0\n",
        "proc__loadavg": "0.50 0.4 0.3 1/100 7\n",
    }
    found = remarks({0, 1}, machine(tmp_path, **quiet))
    assert [remark.name for remark in found] == ["cores", "siblings", "governor", "swap", "crashes", "load"]
    assert all(remark.good for remark in found)


def test_a_machine_that_makes_times_uneven(tmp_path: Path) -> None:
    uneven = {
        f"{CPU}0__topology__thread_siblings_list": "0-1\n",
        f"{CPU}1__topology__thread_siblings_list": "0-1\n",
        f"{CPU}1__cpufreq__scaling_governor": "powersave\n",
        "proc__swaps": "Filename Type Size\n/swapfile file 1\n",
        "proc__sys__kernel__core_pattern": "|/usr/share/apport/apport %p\n",
        "proc__self__cgroup": "2:cpu,cpuacct:/job\n",
        "sys__fs__cgroup__cpu,cpuacct__job__cpu.stat": "nr_periods 9\nnr_throttled 4\n",
        "proc__loadavg": "2.50 0.4 0.3 1/100 7\n",
    }
    bad = {remark.name: remark.words for remark in remarks({0, 1}, machine(tmp_path, **uneven)) if not remark.good}
    assert bad.keys() == {"siblings", "governor", "swap", "crashes", "throttling", "load"}
    assert bad["siblings"].startswith("2 cores are threads of 1")
    assert "apport" in bad["crashes"]
    assert "4 times" in bad["throttling"]


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert [remark.name for remark in remarks({0}, tmp_path)] == ["cores", "siblings", "swap"]


# The command

SOME = [
    Verdict("tcp", "no TCP", Status.ENFORCED, "refused", "it arrived", ""),
    Verdict("totals", "no totals", Status.NOT_ENFORCED, "sysinfo\x1b[2J", "", "a gap"),
]
BROKEN = Verdict("kill", "no kill", Status.UNKNOWN, "killed", "", "")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """What the doctor will say without having looked."""
    verdicts = list(SOME)

    async def pretend(level: Level, database: Path, tell: object) -> list[Verdict]:
        assert callable(tell)
        tell(BY_NAME["tcp"])
        return verdicts

    monkeypatch.setattr("arena.cli.doctor.examine", pretend)
    monkeypatch.setattr("arena.cli.doctor.available_level", lambda: (Level.NONE, "bwrap is not installed"))
    return verdicts


def test_the_command_tells_level_reason_and_lines(found: list[Verdict]) -> None:
    result = CliRunner().invoke(app, ["doctor", "--isolation", "none"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "isolation level: none, 1 of 2 lines enforced"
    assert lines[1] == "what does not work here: bwrap is not installed"
    assert lines[2].startswith("way out: install bubblewrap")
    assert re.search(r"NOT ENFORCED +no totals +sysinfo·\[2J \(not promised: a gap\)", result.stdout)
    assert lines[-1].strip() == "none holds what it promises"


def test_a_level_that_was_asked_for_is_told_from_the_best(found: list[Verdict]) -> None:
    result = CliRunner().invoke(app, ["doctor", "--isolation", "none"])
    assert "the best that works here" not in result.stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("arena.cli.doctor.available_level", lambda: (Level.NAMESPACED, ""))
        result = CliRunner().invoke(app, ["doctor", "--isolation", "none"])
    assert result.stdout.splitlines()[1] == "the best that works here is namespaced"
    assert "what does not work" not in result.stdout


def test_a_broken_promise_is_exit_code_1(found: list[Verdict]) -> None:
    found.append(BROKEN)
    result = CliRunner().invoke(app, ["doctor", "--isolation", "none"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].strip() == "none does not hold 1 line of what it promises here"


def test_the_command_as_json(found: list[Verdict]) -> None:
    found.append(BROKEN)
    result = CliRunner().invoke(app, ["doctor", "--isolation", "none", "--json"])
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (told["schema"], told["level"], told["best"], told["holds"]) == ("arena.doctor/1", "none", "none", False)
    assert told["lines"][1]["status"] == "NOT ENFORCED"
    assert [line["holds"] for line in told["lines"]] == [True, True, False]
    assert told["timing"][0]["name"] == "cores"


def test_a_level_that_does_not_work_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(wanted: Level, *, trusted: bool) -> Level:
        raise ConfigError(f"isolation level {wanted} does not work here: bwrap is not installed")

    monkeypatch.setattr("arena.cli.doctor.require_level", refuse)
    error = CliRunner().invoke(app, ["doctor", "--isolation", "namespaced"]).exception
    assert isinstance(error, ConfigError)
    assert "does not work here: bwrap is not installed\ninstall bubblewrap" in str(error)


def test_evidence_groups_what_has_the_same_words() -> None:
    assert evidence({**DENIED, "c": Part(False, "Bad address")}) == "a, b: Operation not permitted; c: Bad address"
