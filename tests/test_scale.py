from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from rich.console import Console
from sqlite_utils import Database

from arena.cli import scale
from arena.cli.progress import Mode
from arena.cli.scale import Scale
from arena.comparison import Comparison, Judged, begin
from arena.errors import FaultKind
from arena.plan import Plan
from arena.rating.sequential import Hypotheses, SequentialTest
from arena.records import DealRecord, Fault, Machine, MatchRecord
from arena.store import bots as kept_bots
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant
from arena.tournament import MatchPlayed, MatchVoid
from tests.fakes_executor import refs


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def begun(db: Database, scores: list[int]) -> tuple[Comparison, list[Entrant]]:
    """Return a comparison that has judged some scores."""
    bots = refs(2)
    with writing(db):
        for bot in bots:
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
    plan = Plan("round-robin", {"durak": {}}, 100, hypotheses=Hypotheses())
    entrants = [Entrant(number, bot.name, bot.hash, ("durak",)) for number, bot in enumerate(bots)]
    comparison = Comparison(db, begin(db, plan, entrants, "none", 1.0, 1))
    test = SequentialTest(Hypotheses(), comparison.shape)
    test.add(scores)
    comparison.judgement = test.judgement  # type: ignore[method-assign]  # no deal is played for a line
    return comparison, entrants


def played() -> MatchPlayed:
    deal = DealRecord(0, 0, (1, 0), (), (1, 2), (0, 0), "durak", True, (b"", b""), (1, 1), (-1, -1), (0, 0), 0, 10)
    fault = Fault(FaultKind.ILLEGAL, "action", 0, 0, 1, 26, "your bot answered '7c'")
    record = MatchRecord(7, (deal,), (fault,), "none", "0", 1, Machine("Linux", "cpu", 2, 1000, "3.11"), 0, 0.0, 10)
    return MatchPlayed("durak", ("new", "old"), record)


def told(mode: Mode, db: Database, width: int = 100) -> str:
    """Return what is written to stderr during a short comparison."""
    err = io.StringIO()
    comparison, entrants = begun(db, [2, 3, 1, 2] * 10)
    with Scale(mode, Console(file=err, force_terminal=mode == "bars", width=width)) as shown:
        shown.start_from(comparison, entrants, 2, resumed=False)
        shown.report(played())
        shown.report(MatchVoid("durak", 8, "a lane\x1b[2J ended"))
        shown.report(Judged(comparison.judgement()))
    return err.getvalue()


def test_lines_tell_faults_and_void_matches(db: Database) -> None:
    assert told("lines", db).splitlines() == [
        "fault 7-0-0 step 26 new: illegal/action",
        "void match 8: a lane·[2J ended; it is played again",
    ]


def test_the_line_tells_how_it_stands(db: Database) -> None:
    shown = Scale("quiet")
    comparison, entrants = begun(db, [])
    shown.start_from(comparison, entrants, 2, resumed=False)
    assert shown.line() == "LLR +0.00 (-2.94…+2.94) · Elo n/a · 0 sets · 0 faults"


def test_the_line_tells_how_much_is_to_come(db: Database) -> None:
    shown = Scale("quiet")
    comparison, entrants = begun(db, [2, 3, 1, 2] * 10)
    shown.start_from(comparison, entrants, 2, resumed=True)
    assert shown.line().startswith("LLR -0.1")
    assert " · Elo +0.0 ± 39." in shown.line()
    assert " · 40 sets · 0 faults · ~" in shown.line()
    assert len(shown.line()) <= 80


@pytest.mark.parametrize(("score", "bound"), [(4, "more than +"), (0, "less than -")])
def test_the_line_tells_the_one_end_of_an_open_interval(db: Database, score: int, bound: str) -> None:
    shown = Scale("quiet")
    comparison, entrants = begun(db, [score] * 30)
    shown.start_from(comparison, entrants, 2, resumed=True)
    assert f" · Elo {bound}3" in shown.line()
    assert len(shown.line()) <= 80


def test_quiet_says_nothing(db: Database) -> None:
    assert told("quiet", db) == ""


def test_events_are_documents(db: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert told("events", db) == ""
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["MatchPlayed", "MatchVoid", "Judged"]
    assert events[0]["bots"] == ["new", "old"]
    assert events[2]["sets"] == 40


@pytest.mark.parametrize("mode", ["bars", "lines"])
def test_it_is_shown_again_and_again(mode: Mode, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(scale, "_REDRAW_S", 0.0)
    err = io.StringIO()
    comparison, entrants = begun(db, [])

    async def main() -> None:
        with Scale(mode, Console(file=err, force_terminal=mode == "bars", width=80)) as shown:
            shown.start_from(comparison, entrants, 2, resumed=True)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(shown.keep_showing)
                    for _ in range(5):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

    trio.run(main)
    assert "LLR +0.00" in err.getvalue()
