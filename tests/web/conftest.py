"""A database worth looking at, a server over it and a browser: one of each for all tests of a worker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest
import trio
from playwright.sync_api import Browser, sync_playwright
from sqlite_utils import Database
from trio.testing import MockClock

from arena.plan import Plan
from arena.records import BotRef
from arena.store import bots as kept_bots
from arena.store import tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import run
from arena.web.server import Server
from arena.web.writing import Replays, write_site
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

GAMES = ("avalanche", "durak", "smokestack")
FAULTS = {0: ("illegal", 40), 1: ("crash", 50)}
MANIFEST = 'name = "{}"\nlanguage = "python"\ncommand = ["python3", "bot.py"]\ngames = ["durak"]\n'
HOSTILE = "<img src=x onerror=alert(1)>\"'&\x1b[2J\u202eevil"
CHROMIUM = "/usr/bin/chromium"
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


def play(db: Database, plan: Plan, bots: Sequence[BotRef], name: str, stop_after: int = -1) -> Tournament:
    """Play a tournament to its end, or until it is stopped after so many matches."""
    lanes = FakeLanes()
    lanes.stop_after = stop_after
    made = begin(db, plan, bots, name=name, seed=None)
    going = partial(run, db, made, by_hash(bots), lanes, lambda _: None, lambda: 1.8e9, lanes.stopping)
    trio.run(going, clock=MockClock(autojump_threshold=0))
    return tournaments.get(db, made.id)


def submit(db: Database, bots: Sequence[BotRef]) -> None:
    """Submit bots; the author of the last is hostile."""
    with writing(db):
        for number, bot in enumerate(bots):
            author = HOSTILE if number == len(bots) - 1 else "zoe"
            kept_bots.add_bot(db, bot.hash, MANIFEST.format(bot.name), 2, 500, 1.8e9)
            kept_bots.submit(db, bot.name, bot.hash, author, 1.8e9 + number)


def fill(path: Path) -> None:
    """Make a database with two finished tournaments, one with faults, and one that was stopped in its first round."""
    with pytest.MonkeyPatch.context() as patch, open_writer(path) as db:
        use_fake_bots(patch)
        patch.setattr("arena.plan.secrets.token_bytes", Random(7).randbytes)  # the same deals for every look at them
        play(db, Plan("round-robin", {game: {} for game in GAMES}, 1, decks=4), refs(4), "spring")
        play(db, Plan("swiss", {"durak": {}, "avalanche": {}}, 2, seats=3, decks=2), refs(6, FAULTS), "faulty")
        play(db, Plan("round-robin", {"durak": {}}, 1, decks=1), refs(6), "stopped", stop_after=2)
        submit(db, refs(4))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database that `fill` makes, to be read only."""
    path = tmp_path_factory.mktemp("whole") / "arena.db"
    fill(path)
    return path


@pytest.fixture(scope="session")
def written(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with the newest replays."""
    folder = tmp_path_factory.mktemp("site") / "public"
    with open_reader(whole) as db:
        write_site(db, folder, Replays(last=4), 1.8e9)
    return folder


@contextmanager
def serving(db: Path, port: int = 0) -> Iterator[int]:
    """Serve a database on a port of this machine, by default a free one."""
    listening = threading.Event()
    with socket.create_server(("127.0.0.1", port)) as bound:
        server = Server(db, ["127.0.0.1"], listening.set)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        assert listening.wait(20)
        try:
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def port(whole: Path) -> Iterator[int]:
    """Where the whole database is served."""
    with serving(whole) as number:
        yield number


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield opened
        opened.close()
