"""A tournament until its error bars are small enough: stages of one round, resumable, checked, carried elsewhere."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.cli.until import Until, find_unfinished, sureness
from arena.config import tournament_from_options
from arena.errors import ConfigError
from arena.export.everything import everything
from arena.importing import begin as begin_import
from arena.importing import import_everything
from arena.plan import Plan, final_standings
from arena.precision import Widest, next_stage, unmeasured_in_words, widest_errors, words_of
from arena.records import BotRef
from arena.rules import Value
from arena.store import corrections, matches, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

GAMES: dict[str, dict[str, Value]] = {"avalanche": {}, "durak": {}}
PLAN = Plan("until-error", GAMES, 1, decks=5)


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def as_entrants(count: int) -> list[Entrant]:
    ordered = sorted(refs(count), key=lambda bot: bot.hash)
    return [Entrant(number, bot.name, bot.hash, tuple(GAMES)) for number, bot in enumerate(ordered)]


def until(db: Database, target: float, max_rounds: int = 100) -> tuple[Until, list[str]]:
    told: list[str] = []
    return Until(db, target, max_rounds, 1, [], told.append), told


def whole(
    db: Database, asked: Until, tournament: Tournament, stop_after: int = -1, bots: Sequence[BotRef] | None = None
) -> Tournament:
    """Go on until it is done or stopped."""
    known = by_hash(refs(9) if bots is None else bots)

    async def main() -> Tournament:
        current, lanes = tournament, FakeLanes()
        lanes.stop_after = stop_after
        while True:
            if not await run(db, current, known, lanes, lambda _: None, lambda: 2.0, lanes.stopping):
                return tournaments.get(db, current.id)
            following = await asked.extended(tournaments.get(db, current.id), lanes.stopping)
            if following is None:
                return tournaments.get(db, current.id)
            current, _ = following

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def begun(db: Database, asked: Until, count: int = 4, name: str = "spring") -> Tournament:
    return begin(db, asked.first(PLAN, as_entrants(count), "none"), refs(count), name=name, cast_known=True)


def test_it_goes_on_until_every_error_bar_is_small_enough(db: Database, tmp_path: Path) -> None:
    asked, told = until(db, 90.0)
    spring = begun(db, asked)
    assert [found.error for found in widest_errors(db, spring)] == [math.inf, math.inf]
    spring = whole(db, asked, spring)
    widths = {found.game: found for found in widest_errors(db, spring)}
    assert all(found.error <= 90.0 for found in widths.values())
    assert told[-1].startswith("every difference is within ±90 after ")
    assert words_of(widths["durak"]) in told[-1]
    rounds = [len(tournaments.rounds(db, spring.id, game)) for game in GAMES]
    assert len(spring.stages) == max(rounds) > min(rounds), "a game that is sure enough has no part in later stages"
    assert sum(stage.match_count for stage in spring.stages) == matches.count_played(db, spring.id)
    assert len({stage.master for stage in spring.stages}) == len(spring.stages)
    assert [one for _, found in audit(db, [spring]) for one in found] == []
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db))
    with open_writer(tmp_path / "copy.db") as copied:
        assert import_everything(copied, begin_import(io.BytesIO(data), "all"), lambda _: None).unverified == 0
        again = tournaments.find(copied, "spring")
        assert again is not None
        assert final_standings(copied, again, "durak") == final_standings(db, spring, "durak")
        assert widest_errors(copied, again) == widest_errors(db, spring)
    with pytest.raises(ConfigError, match="every difference between these bots is within ±90 already"):
        asked.first(PLAN, as_entrants(4), "none")


def test_a_stop_changes_nothing(db: Database, tmp_path: Path) -> None:
    spring = whole(db, until(db, 250.0)[0], begun(db, until(db, 250.0)[0]))
    with open_writer(tmp_path / "other.db") as other:
        asked = until(other, 250.0)[0]
        stopped = begun(other, asked)
        for _ in range(200):
            stopped = whole(other, asked, stopped, stop_after=3)
            if stopped.finished_at is not None and not next_stage(other, stopped, 250.0, 3.0, 1):
                break
            stopped = tournaments.get(other, stopped.id)
        for game in GAMES:
            assert tournaments.rounds(other, stopped.id, game) == tournaments.rounds(db, spring.id, game)
            assert final_standings(other, stopped, game) == final_standings(db, spring, game)


def test_it_ends_after_the_most_rounds(db: Database) -> None:
    asked, told = until(db, 5.0, max_rounds=2)
    spring = whole(db, asked, begun(db, asked))
    assert len(spring.stages) == 2
    assert told[0].startswith("widest: avalanche ")
    assert told[-1].startswith("ended by --max-rounds after 2 rounds; widest: avalanche ±")


def test_it_ends_though_a_bot_always_loses(db: Database) -> None:
    """Its faults cost it each deal, and only those before the third in a match are rated."""
    asked, told = until(db, 400.0)
    bots = refs(2, {1: ("illegal", 1)})
    plan = msgspec.structs.replace(PLAN, games={"durak": {}}, decks=2)
    spring = begin(db, asked.first(plan, as_entrants(2), "none"), bots, cast_known=True)
    assert sureness(db, spring) == [
        {"game": "durak", "error": None, "bots": told_of(bots), "tiers": (told_of(bots),), "level": (), "swept": ()}
    ]
    spring = whole(db, asked, spring, bots=bots)
    assert told[-2].startswith("ended after ")
    assert told[-2].endswith("; widest: durak none, all are beyond measure")
    assert told[-1] == "durak: bot-0 is more than 400 Elo above bot-1: beyond measure"
    (sure,) = sureness(db, spring)
    assert (sure["error"], sure["bots"], sure["tiers"]) == (0.0, None, (("bot-0",), ("bot-1",)))
    with pytest.raises(ConfigError, match="within ±400 already or beyond measure"):
        asked.first(plan, as_entrants(2), "none")


def told_of(bots: list[BotRef]) -> tuple[str, ...]:
    return tuple(bot.name for bot in sorted(bots, key=lambda bot: bot.hash))


def test_what_is_not_measured_is_told_in_plain_words() -> None:
    found = Widest(
        "durak",
        9.0,
        ("a", "b"),
        (("a", "b"), ("c",), ("d", "e", "f", "g", "h")),
        (("a", "b"),),
        (("d", "e"), ("d", "f")),
    )
    assert list(unmeasured_in_words(found)) == [
        "durak: a and b are more than 400 Elo above c: beyond measure",
        "durak: c is more than 400 Elo above d, e, f and 2 others: beyond measure",
        "durak: no deal tells a from b: where they sit together, others lose",
        "durak: d took every point of e and f, on 39 decks or more: no rating describes that",
    ]


def test_it_ends_when_too_few_are_left(db: Database) -> None:
    asked, told = until(db, 5.0, max_rounds=3)
    spring = whole(db, until(db, 5.0, max_rounds=1)[0], begun(db, asked))
    with writing(db):
        for name in ("bot-0", "bot-1", "bot-2"):
            corrections.exclude(db, "withdraw", spring.id, name, "because", 9.0)
    assert len(whole(db, asked, spring).stages) == 1
    assert told == ["ended after 1 round: too few bots are left for a table"]


def test_who_leaves_is_not_asked_about_any_more(db: Database) -> None:
    asked = until(db, 5.0, max_rounds=3)[0]
    spring = whole(db, until(db, 5.0, max_rounds=1)[0], begun(db, asked))
    with writing(db):
        corrections.exclude(db, "withdraw", spring.id, "bot-2", "because", 9.0)
    gone = next(one.number for one in tournaments.entrants(db, spring.id) if one.name == "bot-2")
    spring = whole(db, asked, spring)
    for game in GAMES:
        rounds = [played for played, _ in tournaments.rounds(db, spring.id, game)]
        assert not any(gone in table for played in rounds[1:] for table in played.tables)
        assert all("bot-2" not in (found.bots or ()) for found in widest_errors(db, spring))
    assert [one for _, found in audit(db, [spring]) for one in found] == []
    with writing(db):
        for name in ("bot-0", "bot-1", "bot-3"):
            corrections.exclude(db, "withdraw", spring.id, name, "because", 9.0)
    assert widest_errors(db, spring) == []
    assert next_stage(db, spring, 5.0, 9.0, 1) is None


def test_who_leaves_once_its_tables_are_chosen_does_not_sit_at_them(db: Database) -> None:
    spring = begun(db, until(db, 5.0)[0])
    with writing(db):
        for name in ("bot-0", "bot-1", "bot-2"):
            corrections.exclude(db, "withdraw", spring.id, name, "because", 9.0)
    spring = whole(db, until(db, 5.0)[0], spring)
    assert matches.count_played(db, spring.id) == 0
    assert [one for _, found in audit(db, [spring]) for one in found] == []


def test_the_same_command_finds_it_again(db: Database) -> None:
    asked = until(db, 250.0)[0]
    spring = begun(db, asked)
    entrants = as_entrants(4)
    for name in (None, "spring"):
        found = find_unfinished(db, name, PLAN, entrants, "none", 1)
        assert found is not None
        assert found.id == spring.id
    assert find_unfinished(db, "autumn", PLAN, entrants, "none", 1) is None
    assert find_unfinished(db, None, msgspec.structs.replace(PLAN, decks=6), entrants, "none", 1) is None
    with pytest.raises(ConfigError, match=r"spring was begun differently: seats was 2, now 3; choose another --name"):
        find_unfinished(db, "spring", msgspec.structs.replace(PLAN, seats=3), entrants, "none", 1)
    whole(db, asked, spring)
    assert find_unfinished(db, None, PLAN, entrants, "none", 1) is None
    assert find_unfinished(db, "spring", PLAN, entrants, "none", 1) is not None


def test_the_option_chooses_the_format() -> None:
    assert tournament_from_options(until_error=20).format == "until-error"
    for options, why in (
        ({"until_error": 20, "format": "swiss"}, "--until-error pairs by itself; leave out --format swiss"),
        ({"until_error": 20, "rounds": 3}, "it goes on until its errors are small enough"),
        ({"until_error": 0}, "until_error: 0 is not allowed"),
    ):
        with pytest.raises(ConfigError, match=why):
            tournament_from_options(**options)
