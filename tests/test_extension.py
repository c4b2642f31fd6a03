"""Extensions: what was scheduled stays, and what follows has a seed of its own, whatever dies or is corrected."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.errors import ConfigError
from arena.export.everything import everything
from arena.extension import changes, extend, total_matches
from arena.history import rate_again
from arena.importing import begin as begin_import
from arena.importing import import_everything
from arena.plan import Plan, final_standings, plan_of, round_after
from arena.records import BotRef
from arena.rules import Value
from arena.store import bots as kept_bots
from arena.store import corrections, matches, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import RoundComplete, run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, result, use_fake_bots

GAMES: dict[str, dict[str, Value]] = {"avalanche": {}, "durak": {}}
SWISS = Plan("swiss", GAMES, 2)
ROBIN = Plan("round-robin", GAMES, 1)
replace = msgspec.structs.replace


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def as_bots(found: Sequence[BotRef], games: tuple[str, ...] = tuple(GAMES)) -> list[Entrant]:
    return [Entrant(number, bot.name, bot.hash, games) for number, bot in enumerate(found)]


def keep(db: Database, found: Sequence[BotRef]) -> list[Entrant]:
    """Keep bots, as their folders would be, and return them as they are asked for."""
    with writing(db):
        for bot in found:
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
    return as_bots(found)


def play(
    db: Database,
    name: str = "spring",
    lanes: FakeLanes | None = None,
    report: Callable[[object], None] = lambda _: None,
    bots: int = 9,
) -> bool:
    lanes = lanes or FakeLanes()
    found = tournaments.find(db, name)
    assert found is not None

    async def main() -> bool:
        return await run(db, found, by_hash(refs(bots)), lanes, report, lambda: 2.0, lanes.stopping)

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def stored(db: Database) -> Tournament:
    found = tournaments.find(db, "spring")
    assert found is not None
    return found


def differences(db: Database) -> list[object]:
    return [one for _, found in audit(db, tournaments.tournaments(db), messages=False) for one in found]


def seen_in(db: Database, game: str, number: int) -> set[int]:
    played = tournaments.rounds(db, 1, game)[number - 1][0]
    return {*played.byes}.union(*played.tables)


# What an extension adds


@pytest.mark.parametrize("plan", [SWISS, ROBIN, replace(ROBIN, seats=3, seatings="rotate")], ids=repr)
def test_a_finished_tournament_goes_on_with_a_seed_of_its_own(db: Database, plan: Plan) -> None:
    begin(db, plan, refs(4), seed=None)
    assert play(db)
    rounds = len(tournaments.rounds(db, 1, "durak"))
    before = {number: matches.match(db, number) for number in matches.played(db, 1)}
    asked = replace(plan, rounds=plan.rounds + 1, decks=3)
    spring = extend(db, stored(db), asked, keep(db, refs(6)), 3.0)
    assert (spring.finished_at, plan_of(spring)) == (None, asked)
    assert play(db)
    first, second = stored(db).stages
    assert len({first.master, second.master, first.salt, second.salt}) == 4
    assert (first.players, second.players) == ((0, 1, 2, 3), (0, 1, 2, 3, 4, 5))
    assert second.first_match == first.first_match + first.match_count
    assert {number: matches.match(db, number) for number in before} == before, "what was played stays"
    assert all(seen_in(db, "durak", number) == {0, 1, 2, 3} for number in range(1, rounds + 1))
    assert seen_in(db, "durak", rounds + 1) == {0, 1, 2, 3, 4, 5}
    assert tournaments.round_stages(db, 1, "durak")[rounds - 1 : rounds + 1] == [1, 2]
    assert {len(match.decks) for number in matches.played(db, 1) if (match := matches.match(db, number))} == {1, 3}
    assert matches.count_played(db, 1) == total_matches(db, stored(db)) == first.match_count + second.match_count
    assert {line.entrant for line in final_standings(db, stored(db), "durak")} == {0, 1, 2, 3, 4, 5}
    assert differences(db) == []


def test_a_swiss_that_is_not_finished_takes_late_entrants_from_the_next_round_on(db: Database) -> None:
    begin(db, replace(SWISS, rounds=4), refs(4))
    assert not play(db, report=stop_after(1, lanes := FakeLanes()), lanes=lanes)
    scheduled = tournaments.rounds(db, 1, "durak")
    assert len(scheduled) < 4
    extend(db, stored(db), replace(SWISS, rounds=4), keep(db, refs(5)), 3.0, seed=1)
    assert tournaments.rounds(db, 1, "durak") == scheduled
    assert play(db)
    played = [one for one, _ in tournaments.rounds(db, 1, "durak")]
    assert played[: len(scheduled)] == [one for one, _ in scheduled]
    assert len(played) == 4
    assert seen_in(db, "durak", len(scheduled)) == {0, 1, 2, 3}
    late = stored(db).stages[1].players[-1]
    after = played[len(scheduled) :]
    assert all(late in {*one.byes}.union(*one.tables) for one in after)
    assert late not in after[0].byes, "who comes late has sat out already"
    assert [stage.finished_at for stage in stored(db).stages] == [2.0, 2.0]
    assert differences(db) == []


def stop_after(number: int, lanes: FakeLanes) -> Callable[[object], None]:
    def report(event: object) -> None:
        if isinstance(event, RoundComplete) and event.round == number:
            lanes.stopping.set()

    return report


def test_a_round_robin_that_is_not_finished_keeps_its_cycles(db: Database) -> None:
    begin(db, replace(ROBIN, rounds=2), refs(4))
    assert not play(db, report=stop_after(1, lanes := FakeLanes()), lanes=lanes)
    extend(db, stored(db), replace(ROBIN, rounds=3), keep(db, refs(5)), 3.0, seed=1)
    assert play(db)
    assert tournaments.round_stages(db, 1, "durak") == [1] * 6 + [2] * 5
    met = [tuple(sorted(table)) for one, _ in tournaments.rounds(db, 1, "durak")[6:] for table in one.tables]
    assert len(met) == len(set(met)) == 10, "an added cycle is over all entrants"
    assert differences(db) == []


def test_an_extended_tournament_is_exported_and_imported_whole(db: Database, tmp_path: Path) -> None:
    begin(db, SWISS, refs(4))
    assert not play(db, report=stop_after(1, lanes := FakeLanes()), lanes=lanes)
    extend(db, stored(db), replace(SWISS, decks=2), keep(db, refs(5)), 3.0)
    assert play(db)
    extend(db, stored(db), replace(SWISS, rounds=4), as_bots(refs(4)), 3.0)
    assert not play(db, report=stop_after(3, lanes := FakeLanes()), lanes=lanes)
    with writing(db):
        corrections.exclude(db, "disqualify", 1, "bot-1", "because", 4.0)
        corrections.void(db, matches.played(db, 1)[0], "a storm", 4.0)
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db))
    secret = stored(db).stages[2]
    assert secret.master.hex().encode() not in data
    with open_writer(tmp_path / "other.db") as other:
        done = import_everything(other, begin_import(io.BytesIO(data), "all.ndjson"), lambda _: None)
        assert done.unverified == 0
        assert b"".join(msgspec.json.encode(line) + b"\n" for line in everything(other)) == data
        points = [
            [(line.entrant, line.points) for line in final_standings(one, stored(one), "durak")] for one in (db, other)
        ]
        assert sorted(points[0]) == sorted(points[1])
        (difference,) = changes(other, stored(other), plan_of(stored(other)), as_bots(refs(4)), "none")
        assert (difference.text[:26], difference.allowed) == ("it was imported unfinished", False)


def test_tournaments_that_took_turns_are_exported_and_imported_whole(db: Database, tmp_path: Path) -> None:
    for name in ("spring", "autumn"):
        begin(db, SWISS, refs(4), name=name)
        assert not play(db, name, report=stop_after(1, lanes := FakeLanes()), lanes=lanes, bots=4)
    assert play(db, "spring", bots=4)
    extend(db, stored(db), replace(SWISS, rounds=4), as_bots(refs(4)), 3.0)
    assert play(db, "autumn", bots=4)
    assert play(db, "spring", bots=4)
    lines = [msgspec.json.encode(line) + b"\n" for line in everything(db)]
    with open_writer(tmp_path / "other.db") as other:
        done = import_everything(other, begin_import(io.BytesIO(b"".join(lines)), "all.ndjson"), lambda _: None)
        assert done.unverified == 0
        assert [msgspec.json.encode(line) + b"\n" for line in everything(other)] == lines
        for pool, copy in zip(ratings.pools(db), ratings.pools(other), strict=True):
            assert ratings.rounds(db, pool.id) == ratings.rounds(other, copy.id)
            assert ratings.changes(db, pool.id) == ratings.changes(other, copy.id)
            assert ratings.ratings(db, pool.id) == ratings.ratings(other, copy.id)


@pytest.mark.parametrize("plan", [SWISS, ROBIN], ids=repr)
def test_an_extended_run_that_dies_again_and_again_comes_to_the_same(tmp_path: Path, plan: Plan) -> None:
    def whole(path: Path, luck: random.Random | None) -> bytes:
        with open_writer(path) as db:
            begin(db, plan, refs(4))
            through(db, luck)
            extend(db, stored(db), replace(plan, rounds=plan.rounds + 1, decks=2), keep(db, refs(6)), 3.0, seed=1)
            through(db, luck)
            return result(db, stored(db), GAMES)

    def through(db: Database, luck: random.Random | None) -> None:
        while stored(db).finished_at is None:
            lanes = FakeLanes(lanes=luck.randrange(1, 4), shuffle=luck.randrange(99)) if luck else FakeLanes()
            lanes.fail_after = luck.randrange(4) if luck else -1
            try:
                play(db, lanes=lanes)
            except* KeyboardInterrupt:
                pass

    due = whole(tmp_path / "whole.db", None)
    for seed in range(3):
        assert whole(tmp_path / f"{seed}.db", random.Random(seed)) == due


# What it cannot add


def test_an_extension_needs_a_round(db: Database) -> None:
    begin(db, ROBIN, refs(3))
    with pytest.raises(ConfigError, match="cycle 1 of spring is scheduled already; extend it by more --rounds"):
        extend(db, stored(db), ROBIN, keep(db, refs(4)), 3.0)
    with pytest.raises(ConfigError, match="durak at tables of 2 needs 2 bots that play it, not 1"):
        extend(db, stored(db), replace(ROBIN, rounds=2), as_bots(refs(1)), 3.0)
    assert len(stored(db).stages) == 1


def test_who_is_out_does_not_come_in_again_and_need_not_be_named(db: Database) -> None:
    begin(db, SWISS, refs(4))
    assert play(db)
    with writing(db):
        corrections.exclude(db, "withdraw", 1, "bot-1", "asked", 3.0)
    asked = replace(SWISS, rounds=3)
    for found in (as_bots(refs(4)), [one for one in as_bots(refs(4)) if one.name != "bot-1"]):
        assert [one.text for one in changes(db, stored(db), asked, found, "none")] == ["rounds was 2, now 3"]
    spring = extend(db, stored(db), asked, as_bots(refs(4)), 3.0)
    names = {entrant.number: entrant.name for entrant in tournaments.entrants(db, 1)}
    assert {names[number] for number in spring.stages[1].players} == {"bot-0", "bot-2", "bot-3"}
    assert play(db)
    assert differences(db) == []


def test_a_newer_version_enters_under_a_name_of_its_own(db: Database) -> None:
    begin(db, SWISS, refs(3))
    assert play(db)
    newer = [replace(bot, name="bot-0") if bot.name == "bot-3" else bot for bot in refs(4)[1:]]
    asked = keep(db, newer)
    with pytest.raises(ConfigError, match="another version of bot-0 has played under its name; submit it"):
        extend(db, stored(db), replace(SWISS, rounds=3), asked, 3.0)
    with writing(db):
        for bot in (refs(4)[0], refs(4)[3]):
            kept_bots.submit(db, "bot-0", bot.hash, "", 3.0)
    extend(db, stored(db), replace(SWISS, rounds=3), asked, 3.0)
    assert [entrant.name for entrant in tournaments.entrants(db, 1)][3:] == ["bot-0@2"]
    assert changes(db, stored(db), replace(SWISS, rounds=3), asked, "none") == []
    assert play(db)
    assert differences(db) == []


# Others write while a runner plays


def test_corrections_made_while_it_runs_reach_the_next_round_and_the_ratings(db: Database, tmp_path: Path) -> None:
    begin(db, replace(SWISS, rounds=4), refs(6))

    def report(event: object) -> None:
        if isinstance(event, RoundComplete) and (event.game, event.round) == ("durak", 2):
            with open_writer(tmp_path / "arena.db") as other, writing(other):
                rate_again(other, corrections.exclude(other, "disqualify", 1, "bot-1", "two of one author", 3.0))
                rate_again(other, corrections.void(other, matches.played(other, 1)[0], "a storm", 3.0))

    assert play(db, report=report)
    gone = next(one.number for one in tournaments.entrants(db, 1) if one.name == "bot-1")
    assert gone in seen_in(db, "durak", 2)
    assert not any(gone in seen_in(db, "durak", number) for number in (3, 4))
    assert differences(db) == [], "the audit fits the ratings from all deals, the runner from those it remembers"
    with open_reader(tmp_path / "arena.db") as reader:
        assert len(corrections.corrections(reader, 1)) == 2


def test_a_correction_made_while_a_round_is_paired_is_not_missed(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(db, SWISS, refs(4))
    calls: list[object] = []

    def paired(*args: object) -> object:
        found = round_after(*args)  # type: ignore[arg-type]  # as it was called
        if not calls:
            with open_writer(tmp_path / "arena.db") as other, writing(other):
                corrections.exclude(other, "withdraw", 1, "bot-1", "asked", 3.0)
        calls.append(found)
        return found

    monkeypatch.setattr("arena.tournament.round_after", paired)
    assert play(db)
    assert calls[0] != calls[1], "it was paired again"
    assert differences(db) == []
