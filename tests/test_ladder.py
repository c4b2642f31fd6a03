"""Who plays in the next round of a tournament without an end: bots join, leave and are replaced between two rounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.cli.ladder import Ladder, open_ladder
from arena.cli.site import Player, Site
from arena.config import parse_manifest, tournament_from_options
from arena.errors import ConfigError
from arena.history import rate_again
from arena.plan import Plan, plan_of
from arena.records import BotHash, BotRef
from arena.sandbox import Level
from arena.store import bots, corrections, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import Memory, run
from tests.fakes_executor import FakeLanes, begin, refs, use_fake_bots

SITE = Site(Path("/nowhere"), Path("/nowhere"), Level.NONE)
PLAN = Plan("swiss", {"avalanche": {}}, 1)
T = TypeVar("T")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    use_fake_bots(monkeypatch)

    async def recall(name: str, bot: BotHash, site: Site) -> Player:
        if name == "broken":
            raise ConfigError("its files are gone")
        plays = "durak" if name == "other" else "avalanche"
        manifest = parse_manifest(f'name = "{name.partition("@")[0]}"\ncommand = ["x"]\ngames = ["{plays}"]\n', name)
        return Player(manifest, BotRef(name, bot, "/nowhere", ("hash",)))

    async def admit(db: Database, folder: str, site: Site, now: float) -> Player:
        return await recall(Path(folder).name, refs(9)[8].hash, site)

    monkeypatch.setattr("arena.cli.ladder.recall", recall)
    monkeypatch.setattr("arena.cli.ladder.admit", admit)
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def submit(db: Database, name: str, number: int) -> None:
    with writing(db):
        bots.add_bot(db, refs(9)[number].hash, "", 1, 1, 1.0)
        bots.submit(db, name, refs(9)[number].hash, "", 1.0)


def waited(body: Callable[[], Awaitable[T]]) -> T:
    return trio.run(body, clock=MockClock(autojump_threshold=0))


def opened(db: Database, told: list[str], **options: object) -> Ladder:
    config = tournament_from_options(games="avalanche", name="ladder", **options)
    return waited(lambda: open_ladder(db, SITE, config, told.append, lambda: 3.0))


def test_it_waits_until_there_are_enough_and_says_so_once(db: Database) -> None:
    submit(db, "ace", 0)
    told: list[str] = []
    ladder = opened(db, told)

    async def main() -> list[str]:
        found: list[Player] = []

        async def wait() -> None:
            found.extend(await ladder.players(PLAN, trio.Event()) or ())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(20)
            submit(db, "other", 1)
            await trio.sleep(20)
            assert not found
            submit(db, "bee", 2)
        return [player.ref.name for player in found]

    assert waited(main) == ["ace", "bee"]
    assert told == ["waiting for bots to be submitted: avalanche at tables of 2 needs 2 bots that play it, not 1"]


def test_it_stops_waiting_when_it_is_to_stop(db: Database) -> None:
    ladder = opened(db, [])
    begin(db, PLAN, refs(2), name="ladder")

    async def main() -> object:
        stopping = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 5)
            with trio.move_on_after(1):
                await ladder.players(PLAN, stopping)
            stopping.set()
            return await ladder.extended(stored(db), stopping)

    assert waited(main) is None


def test_a_bot_that_cannot_be_run_does_not_keep_the_others_from_playing(db: Database) -> None:
    for number, name in enumerate(("ace", "broken", "bee")):
        submit(db, name, number)
    told: list[str] = []
    ladder = opened(db, told)
    for _ in range(2):
        found = waited(lambda: ladder.players(PLAN, trio.Event()))
        assert [player.ref.name for player in found or ()] == ["ace", "bee"]
    assert told == ["broken does not play: its files are gone"]


def test_bots_are_named_by_folders_versions_and_names(db: Database) -> None:
    for number, name in enumerate(("ace", "bee", "cow", "bee")):
        submit(db, name, number)
    ladder = opened(db, [], bots="./dog/,ace,bee@1,missing,./other/")
    found = waited(lambda: ladder.players(PLAN, trio.Event())) or []
    assert [player.ref.name for player in found] == ["dog", "ace", "bee@1"]
    assert [player.ref.hash for player in found][2] == refs(2)[1].hash


def stored(db: Database) -> Tournament:
    found = tournaments.find(db, "ladder")
    assert found is not None
    return found


def test_bots_join_leave_and_are_replaced_between_two_rounds(db: Database) -> None:
    for number, name in enumerate(("ace", "bee", "cow")):
        submit(db, name, number)
    ladder, memory = opened(db, [], decks=2), Memory()
    made = waited(lambda: ladder.players(PLAN, trio.Event())) or []
    begin(db, PLAN, [player.ref for player in made], name="ladder")

    def next_round() -> set[str]:
        async def main() -> None:
            following = await ladder.extended(stored(db), trio.Event())
            assert following is not None
            known = {player.ref.hash: player.ref for player in following[1]}
            assert await run(db, following[0], known, FakeLanes(), lambda _: None, lambda: 2.0, trio.Event(), memory)

        waited(main)
        names = {entrant.number: entrant.name for entrant in tournaments.entrants(db, 1)}
        (last, _) = tournaments.rounds(db, 1, "avalanche")[-1]
        return {names[number] for number in {*last.byes}.union(*last.tables)}

    with writing(db):
        tournaments.finish(db, 1, 2.0)
    assert next_round() == {"ace", "bee", "cow"}
    submit(db, "dog", 3)
    submit(db, "ace", 4)
    with writing(db):
        bots.retire(db, "bee", 4.0)
    assert next_round() == {"ace@2", "cow", "dog"}
    submit(db, "bee", 1)
    with writing(db):
        rate_again(db, corrections.exclude(db, "disqualify", 1, "cow", "because", 4.0))
    assert next_round() == {"ace@2", "bee", "dog"}
    assert len(stored(db).stages) == len({stage.master for stage in stored(db).stages}) == 4
    assert plan_of(stored(db)) == Plan("swiss", {"avalanche": {}}, 3, decks=2)
    names = [entrant.name for entrant in tournaments.entrants(db, 1)]
    assert (sorted(names[:3]), sorted(names[3:])) == (["ace", "bee", "cow"], ["ace@2", "dog"])
    assert [one for _, found in audit(db, [stored(db)], messages=False) for one in found] == []
