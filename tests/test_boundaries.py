"""A runner that dies at a statement that writes: at each of them, what follows comes to the same as if it had not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.plan import Plan
from arena.records import BotRef
from arena.rules import Value
from arena.store import tournaments
from arena.store.database import open_writer
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, result, use_fake_bots

GAME: dict[str, dict[str, Value]] = {"avalanche": {}}
PLAN = Plan("swiss", GAME, 2)
BOTS = refs(4, {1: ("crash", 30)})
HARMLESS = ("SELECT", "PRAGMA", "WITH", "ROLLBACK")


class Killed(BaseException):
    """The process is gone; nothing of it runs any more."""


class Mortal(sqlite3.Connection):
    """Dies before the write of some number, and stays dead; what was not committed is lost."""

    writes = 0
    dies_at = -1

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        if not statement.lstrip().upper().startswith(HARMLESS):
            self._write()
        return super().execute(statement, *arguments)

    def executemany(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        self._write()
        return super().executemany(statement, *arguments)

    def _write(self) -> None:
        Mortal.writes += 1
        if 0 < Mortal.dies_at <= Mortal.writes:
            raise Killed


@pytest.fixture(autouse=True)
def mortal(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, factory=Mortal, **more))
    Mortal.dies_at = -1


@contextmanager
def opened(path: Path, dies_at: int = -1) -> Iterator[Database]:
    with open_writer(path) as db:
        Mortal.writes, Mortal.dies_at = 0, dies_at
        try:
            yield db
        finally:
            Mortal.dies_at = -1


def play(db: Database, bots: list[BotRef]) -> None:
    spring = tournaments.find(db, "spring") or begin(db, PLAN, bots)
    lanes = FakeLanes(lanes=1)

    async def main() -> bool:
        return await run(db, spring, by_hash(bots), lanes, lambda _: None, lambda: 2.0, trio.Event())

    assert trio.run(main, clock=MockClock(autojump_threshold=0))


def whole(path: Path, dies_at: int = -1) -> tuple[bytes, int]:
    """Play an event that dies once, and go on with it; return what it came to, and how often was written before."""
    try:
        with opened(path, dies_at) as db:
            play(db, BOTS)
    except* Killed:
        pass
    writes = Mortal.writes
    with opened(path) as db:
        spring = tournaments.find(db, "spring")
        if spring is None or spring.finished_at is None:
            play(db, BOTS)
        spring = tournaments.find(db, "spring")
        assert spring is not None
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute("SELECT count(*) FROM match WHERE state != 'played'").fetchone() == (0,)
        return result(db, spring, GAME), writes


@pytest.mark.parametrize("step", [pytest.param(13, id="some"), pytest.param(1, id="all", marks=pytest.mark.nightly)])
def test_every_write_may_be_the_last_one(tmp_path: Path, step: int) -> None:
    due, writes = whole(tmp_path / "whole.db")
    assert writes > 60
    for dies_at in range(1 + writes % step, writes + 1, step):
        found, reached = whole(tmp_path / f"{dies_at}.db", dies_at)
        assert reached >= dies_at
        assert found == due, f"after a death before write {dies_at}"
