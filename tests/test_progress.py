from __future__ import annotations

import io
import json

import pytest
import trio
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from arena.cli import progress
from arena.cli.progress import Display, Mode
from arena.errors import FaultKind
from arena.records import DealRecord, Fault, Machine, MatchRecord
from arena.tournament import MatchPlayed, MatchVoid, RoundBegan, RoundComplete


def played(number: int, *, faulty: bool = False) -> MatchPlayed:
    deal = DealRecord(0, 0, (1, 0), (), (1, 2), (0, 0), "durak", True, (b"", b""), (1, 1), (-1, -1), (0, 0), 0, 10)
    fault = Fault(FaultKind.ILLEGAL, "action", 0, 0, 1, 26, "your bot\x1b[2J answered '7c'")
    machine = Machine("Linux", "cpu", 2, 1000, "3.11")
    faults = (fault,) if faulty else ()
    record = MatchRecord(number, (deal,), faults, "namespaced", "0", 1, machine, 0, 0.0, 10)
    return MatchPlayed("durak", ("ann", "bob"), record)


def told(mode: Mode, width: int = 100) -> tuple[str, Display]:
    """Return what a display writes to stderr during a short run, and the display."""
    err = io.StringIO()
    with Display(mode, 4, Console(file=err, force_terminal=mode == "bars", width=width)) as display:
        display.start_from(1)
        display.report(RoundBegan("durak", 2, 3, 3))
        display.report(played(1))
        display.report(MatchVoid("durak", 2, "a lane ended"))
        display.report(played(2, faulty=True))
        display.report(RoundComplete("durak", 2))
        display.report(RoundBegan("durak", 3, 1, 1))
    return err.getvalue(), display


def test_lines_tell_rounds_faults_and_void_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    text, display = told("lines")
    assert text.splitlines() == [
        "1 of 4 matches were played before",
        "durak round 2: 3 matches",
        "  void match 2: a lane ended; it is played again",
        "  fault 2-0-0 durak step 26 ann: illegal/action your bot·[2J answered '7c'  arena why 2-0-0",
        "  durak round 2 complete  3 matches  0:00  faults 1 (ann illegal 1)",
        "durak round 3: 1 match",
    ]
    assert display.line().startswith("progress matches=3/4 rate=")
    assert display.line().endswith("faults=1")


def test_the_rounds_of_a_ladder_do_not_say_again_how_it_is_stopped() -> None:
    err = io.StringIO()
    display = Display("bars", 4, Console(file=err, width=100))
    display.start_from(1, silent=True)
    assert err.getvalue() == ""
    assert display.line().startswith("progress matches=1/4")


def test_bars_show_the_round_and_the_whole() -> None:
    text, _ = told("bars")
    assert "tournament" in text
    assert "durak round" in text
    assert "2-0-0" in text
    assert "arena why 2-0-0" in Text.from_ansi(told("bars", width=160)[0]).plain
    assert progress.HINT[:40] in text


@pytest.mark.parametrize("width", [80, 160])
async def test_bars_fit_on_one_line(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock, width: int
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    err = io.StringIO()
    with Display("bars", 1800, Console(file=err, force_terminal=True, width=width)) as display:
        display.start_from(900)
        display.report(RoundBegan("smokestack", 12, 200, 200))
        for number in range(198):
            now += 0.25
            display.report(replace(played(number), game="smokestack"))
        now += 5
        with trio.move_on_after(1):
            await display.keep_showing()
    lines = [line.rstrip() for line in Text.from_ansi(err.getvalue()).plain.replace("\r", "\n").splitlines()]
    assert max(len(line) for line in lines if "left" in line) <= width
    (whole,) = {" ".join(line.split()[-7:]) for line in lines if line.startswith("  tournament") and "2.9/s" in line}
    assert whole == "1098/1800 61% 2.9/s elapsed 0:54 left 4:05"
    (of_round,) = {line for line in lines if line.startswith("  smokestack round 12") and "2.9/s" in line}
    assert of_round.endswith("198/200   99% 2.9/s elapsed 0:54 left 0:00")


def test_a_rate_falls_while_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pace = progress.Pace(1000)
    assert (pace.rate(), pace.left_s()) == (0, None)
    for _ in range(200):
        now += 1
        pace.count()
    assert (pace.rate(), pace.left_s()) == (1, 800)
    now += 150
    assert pace.rate() == 0.25
    assert [progress._minutes(seconds) for seconds in (5.9, 271, 7471)] == ["0:05", "4:31", "2:04:31"]


def test_a_fault_stays_on_one_line_of_a_narrow_terminal() -> None:
    text, _ = told("bars", width=40)
    (line,) = [line for line in text.splitlines() if "2-0-0" in line]
    assert line.rstrip().endswith("…")


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert told("quiet")[0] == ""
    assert capsys.readouterr().out == ""


def test_events_are_documents_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert told("events")[0] == ""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = ["RoundBegan", "MatchPlayed", "MatchVoid", "MatchPlayed", "RoundComplete", "RoundBegan"]
    assert [line["event"] for line in lines] == kinds
    assert {line["schema"] for line in lines} == {"arena.event/1"}
    assert (lines[1]["first_places"], lines[3]["faults"]) == ({"bob": 1}, 1)


def test_the_rate_is_unknown_at_first() -> None:
    assert "eta=?" in Display("quiet", 4).line()


@pytest.mark.parametrize("mode", ["bars", "lines", "quiet"])
async def test_a_display_keeps_showing(mode: Mode, autojump_clock: trio.testing.MockClock) -> None:
    err = io.StringIO()
    with Display(mode, 4, Console(file=err, force_terminal=mode == "bars", width=100)) as display:
        with trio.move_on_after(3.5 * progress.LINE_EVERY_S):
            await display.keep_showing()
    shown = err.getvalue().count("progress ")
    assert shown == (3 if mode == "lines" else 0)
