"""Exports hold what is stored and nothing secret; what is imported is the same again, or marked, or refused."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.audit import audit
from arena.build import prepare
from arena.bundle import read_bundle
from arena.cli.commands import app
from arena.cli.site import Site, recall
from arena.errors import ConfigError, InfraError
from arena.export import lines, rows, tables
from arena.export.everything import everything
from arena.extension import changes
from arena.importing import Imported, import_everything
from arena.importing import begin as begin_import
from arena.plan import Plan, plan_of
from arena.records import BotRef
from arena.sandbox import Level
from arena.store import bots as kept_bots
from arena.store import corrections, matches, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

GAMES = ("avalanche", "durak", "smokestack")
FAULTS = {0: ("illegal", 40), 1: ("crash", 50), 2: ("startup", 3)}
MANIFEST = 'name = "{}"\ncommand = ["python3", "bot.py"]\ngames = ["durak"]\n'
Line = dict[str, Any]


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


def play(db: Database, plan: Plan, bots: Sequence[BotRef], name: str, stop_after: int = -1) -> Tournament:
    """Play a tournament, or a single match if its name is that of a play, to its end or until it is stopped."""
    lanes = FakeLanes()
    lanes.stop_after = stop_after
    kind = "play" if name.startswith("play") else "tournament"
    made = begin(db, plan, bots, name=name, kind=kind, seed=None)
    going = partial(run, db, made, by_hash(bots), lanes, lambda _: None, lambda: 2.0, lanes.stopping)
    trio.run(going, clock=MockClock(autojump_threshold=0))
    if kind == "play":
        db.execute("UPDATE round SET complete = 0 WHERE tournament = ?", (made.id,))
        db.execute("DELETE FROM rating WHERE pool NOT IN (SELECT pool FROM history WHERE tournament != ?)", (made.id,))
        db.execute("DELETE FROM history WHERE tournament = ?", (made.id,))
    return tournaments.get(db, made.id)


def submit(db: Database, bots: Sequence[BotRef]) -> None:
    with writing(db):
        for number, bot in enumerate(bots):
            kept_bots.add_bot(db, bot.hash, MANIFEST.format(bot.name), 2, 500, 3.5)
            kept_bots.submit(db, bot.name, bot.hash, "Zoë" if number else "", 4.0 + number)
        kept_bots.retire(db, bots[0].name, 9.0)


def exported(db: Database) -> bytes:
    """Return the file of everything."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db))


def imported(db: Database, data: bytes) -> Imported:
    return import_everything(db, begin_import(io.BytesIO(data), "all.ndjson"), lambda _: None)


def leaderboard(db: Database) -> list[object]:
    found: list[object] = list(rows.ratings(db))
    for pool in ratings.pools(db):
        found += [(pool.key, pool.deals), ratings.ratings(db, pool.id)]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two finished tournaments, one with faults, a play, and one that was stopped."""
    path = tmp_path_factory.mktemp("whole") / "arena.db"
    with pytest.MonkeyPatch.context() as patch, open_writer(path) as db:
        use_fake_bots(patch)
        play(db, Plan("round-robin", {game: {} for game in GAMES}, 1, decks=2), refs(3), "spring")
        play(db, Plan("swiss", {"durak": {}, "avalanche": {}}, 2, seats=3, decks=3), refs(6, FAULTS), "faulty")
        play(db, Plan("round-robin", {"durak": {}}, 1, decks=1), refs(2), "play 1")
        play(db, Plan("round-robin", {"durak": {}}, 1, decks=1), refs(5), "stopped", stop_after=3)
        submit(db, refs(4))
    return path


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    with open_writer(tmp_path / "new.db") as opened:
        yield opened


def parsed(data: bytes) -> list[Line]:
    return [json.loads(line) for line in data.splitlines()]


def packed(found: Sequence[Line]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in found)


@pytest.fixture(scope="module")
def everything_of(whole: Path) -> bytes:
    with open_reader(whole) as opened:
        return exported(opened)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An export of a small tournament with a fault."""
    with pytest.MonkeyPatch.context() as patch, open_writer(tmp_path_factory.mktemp("small") / "arena.db") as db:
        use_fake_bots(patch)
        play(db, Plan("round-robin", {"durak": {}}, 1), refs(3, {0: ("crash", 20)}), "spring")
        submit(db, refs(2))
        return exported(db)


# There and back


@st.composite
def _plans(draw: st.DrawFn) -> tuple[Plan, list[BotRef], int]:
    seats = draw(st.integers(2, 3))
    games = draw(st.lists(st.sampled_from(GAMES), min_size=1, max_size=2, unique=True))
    form: Literal["swiss", "round-robin"] = draw(st.sampled_from(["swiss", "round-robin"]))
    plan = Plan(form, {game: {} for game in games}, draw(st.integers(1, 2)), seats, draw(st.integers(1, 3)))
    faults = draw(st.sampled_from([{}, FAULTS]))
    return plan, refs(draw(st.integers(seats + 1, 4)), faults), draw(st.sampled_from([-1, -1, 1, 3]))


@pytest.mark.slow
@settings(max_examples=8)
@given(st.lists(_plans(), min_size=1, max_size=2))
def test_what_is_exported_and_imported_exports_the_same(events: list[tuple[Plan, list[BotRef], int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        before, after = (stack.enter_context(open_writer(Path(folder) / name)) for name in ("a.db", "b.db"))
        for number, (plan, bots, stop_after) in enumerate(events):
            play(before, plan, bots, f"spring-{number}", stop_after)
        data = exported(before)
        done = imported(after, data)
        assert exported(after) == data
        assert done.unverified == 0
        assert leaderboard(after) == leaderboard(before)
        for one in tournaments.tournaments(before):
            there, here = (list(rows.standings(db, [tournaments.get(db, one.id)])) for db in (before, after))
            if one.finished_at is None:  # without the master seed there is no lot
                there = [msgspec.structs.replace(row, lot=None) for row in there]
                assert sorted(row.name for row in there) == sorted(row.name for row in here)
                assert {row.name: (row.points, row.deals) for row in there} == {
                    row.name: (row.points, row.deals) for row in here
                }
            else:
                assert there == here


def test_all_that_is_kept_comes_back(whole: Path, everything_of: bytes, db: Database) -> None:
    done = imported(db, everything_of)
    assert exported(db) == everything_of
    with open_reader(whole) as before:
        assert leaderboard(db) == leaderboard(before)
        assert kept_bots.names_by_hash(db) == kept_bots.names_by_hash(before)
        assert kept_bots.submissions(db, retired=True) == kept_bots.submissions(before, retired=True)
        finished = [one for one in tournaments.tournaments(before) if one.finished_at is not None]
        for table in (rows.games, rows.standings, rows.replays):
            assert list(table(db, tournaments.tournaments(db)[1:])) == list(table(before, finished))
        query = (
            "SELECT tournament, rule_set, round, hash, elo FROM history JOIN pool ON id = pool ORDER BY 1, 2, 3, 4, 5"
        )
        assert list(db.execute(query)) == list(before.execute(query))
    assert (done.bots, done.tournaments, done.unverified) == (6, 4, 0)


def test_a_void_match_is_exported_with_its_correction_and_still_verified(tmp_path: Path, db: Database) -> None:
    with open_writer(tmp_path / "old.db") as old:
        spring = play(old, Plan("swiss", {"avalanche": {}}, 3), refs(4), "spring")
        with writing(old):
            corrections.void(old, matches.played(old, spring.id)[0], "a storm", 9.0)
        data = exported(old)
        assert imported(db, data).unverified == 0
        there, here = (list(rows.standings(one, [tournaments.get(one, spring.id)])) for one in (old, db))
    assert here == there
    assert exported(db) == data
    assert [one.reason for one in corrections.corrections(db, 1)] == ["a storm"]
    db.execute("UPDATE deal SET reason = 'none' WHERE match = (SELECT id FROM match WHERE state = 'void')")
    found = [one.what for _, found in audit(db, [tournaments.get(db, 1)], whole=False) for one in found]
    assert found == ["columns"] * 2


def test_a_match_that_was_void_before_it_was_played_comes_back(tmp_path: Path, db: Database) -> None:
    with open_writer(tmp_path / "old.db") as old:
        spring = play(old, Plan("swiss", {"avalanche": {}}, 3), refs(12), "spring", stop_after=1)
        *_, stuck = matches.unplayed(old, spring.id, "avalanche", 1)
        with writing(old):
            corrections.void(old, stuck, "a bot ends its lane", 9.0)
        lanes = FakeLanes()
        going = partial(run, old, spring, by_hash(refs(12)), lanes, lambda _: None, lambda: 2.0, lanes.stopping)
        trio.run(going, clock=MockClock(autojump_threshold=0))
        data = exported(old)
        there = list(rows.standings(old, [tournaments.get(old, spring.id)]))
    assert imported(db, data).unverified == 0
    assert list(rows.standings(db, [tournaments.get(db, 1)])) == there
    assert exported(db) == data
    found = [line for line in parsed(data) if line["schema"] != "arena.export.correction/1"]
    with open_writer(tmp_path / "third.db") as third:
        is_refused(third, packed([*found[:-1], end(len(found) - 1)]), "never played, and no correction says why")


def test_an_import_verifies_but_for_what_is_not_told_yet(everything_of: bytes, db: Database) -> None:
    imported(db, everything_of)
    everyone = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
    found = [one for _, part in audit(db, everyone) for one in part]
    assert found == []


def test_verify_says_what_it_cannot_know_before_a_tournament_ends(everything_of: bytes, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with open_writer(path) as db:
        imported(db, everything_of)
    told = arena("verify", "--outcomes", "--db", path)
    assert told.exit_code == 0
    assert ": 0 differences" in told.stdout
    assert "stopped: imported before its end, and a master seed is not revealed before" in told.stderr
    assert json.loads(arena("verify", "stopped", "--db", path, "--json").stdout)["sealed"] == ["stopped"]
    assert json.loads(arena("verify", "spring", "--db", path, "--json").stdout)["sealed"] == []
    with open_writer(path) as db:  # a finished one must have its seed
        db.execute("UPDATE stage SET master = x'' WHERE finished_at IS NOT NULL AND tournament = 1")
    assert "master: stored 0 bytes, found 32 bytes" in arena("verify", "spring", "--db", path).stdout


def test_long_deals_go_on_in_further_lines(
    whole: Path, everything_of: bytes, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "STEPS_A_LINE", 7)
    with open_reader(whole) as opened:
        data = exported(opened)
    assert data.count(b"arena.export.steps/1") > 20
    assert max(len(line.get("steps", ())) for line in parsed(data)) == 7
    monkeypatch.setattr(lines, "MAX_STEPS", 10)
    with pytest.raises(ConfigError, match="a deal of more than 10 steps"):
        imported(db, data)
    monkeypatch.setattr(lines, "MAX_STEPS", 1 << 20)
    imported(db, data)
    monkeypatch.setattr(lines, "STEPS_A_LINE", 1000)
    assert exported(db) == everything_of


# What must stay secret


def test_nothing_of_a_running_tournament_is_told_too_early(whole: Path, everything_of: bytes) -> None:
    with open_reader(whole) as opened:
        (stopped,) = [one for one in tournaments.tournaments(opened) if one.finished_at is None]
        last = max(played.number for played, done in tournaments.rounds(opened, stopped.id, "durak") if done)
        known = [matches.match(opened, number) for number in matches.played(opened, stopped.id)]
        games, replays = list(rows.games(opened, [stopped])), list(rows.replays(opened, [stopped]))
        told = [*games, *replays, *rows.standings(opened, [stopped])]
    hidden = [key for match in known if match and match.round > last for key in match.decks]
    assert hidden, "the test needs a match of a round that is not complete"
    assert len(games) > len(replays) > 0
    assert {row.round for row in replays} == set(range(1, last + 1))
    assert [row.complete for row in games] == [row.round <= last for row in games]
    everywhere = everything_of + msgspec.json.encode(told)
    (stage,) = stopped.stages
    for secret in (stage.master, stage.salt, *hidden):
        assert secret.hex().encode() not in everywhere
    assert stage.commitment.hex().encode() in everywhere


def test_finished_tournaments_tell_their_master_seed_in_each_replay(whole: Path) -> None:
    with open_reader(whole) as opened:
        one = tournaments.find(opened, "spring")
        assert one is not None
        (secrets,) = {(row.master, row.salt, row.commitment) for row in rows.replays(opened, [one])}
    (stage,) = one.stages
    assert secrets == (stage.master.hex(), stage.salt.hex(), stage.commitment.hex())


def test_stderr_is_never_told(everything_of: bytes) -> None:
    assert b"crash" in everything_of
    assert b"Traceback" not in everything_of


def test_an_imported_tournament_that_was_not_finished_does_not_go_on(everything_of: bytes, db: Database) -> None:
    imported(db, everything_of)
    stopped = tournaments.tournaments(db)[0]
    entrants = tournaments.entrants(db, stopped.id)
    assert stopped.stages[0].master == b""
    (difference,) = changes(db, stopped, plan_of(stopped), entrants, stopped.isolation)
    assert difference.text.startswith("it was imported unfinished")
    assert not difference.allowed


def test_an_imported_bot_cannot_be_run_and_its_manifest_is_not_believed(tmp_path: Path, db: Database) -> None:
    folder = tmp_path / "greedy"
    folder.mkdir()
    (folder / "bot.toml").write_text('name = "greedy"\ncommand = ["python3", "bot.py"]\n')
    bundle = read_bundle(folder)
    evil = 'name = "greedy"\ncommand = ["sh", "-c", "evil"]\n'
    bot = {"schema": "arena.export.bot/1", "hash": bundle.hash, "manifest": evil, "files": 1, "bytes": 1, "added_at": 1}
    named = {"schema": "arena.export.submission/1", "name": "greedy", "version": 1, "hash": bundle.hash, "author": ""}
    named |= {"submitted_at": 1, "retired_at": None}
    imported(db, packed([{"schema": "arena.export.begin/1", "arena": "1"}, bot, named, end(3)]))
    site = Site(tmp_path / "bots", tmp_path / "runtime", Level.NONE)
    kept = kept_bots.latest(db, "greedy")
    assert kept is not None
    with pytest.raises(ConfigError, match="remove it and submit the bot again"):
        trio.run(recall, "greedy", kept.hash, site)
    prepare(site.bots, bundle)
    assert trio.run(recall, "greedy", kept.hash, site).ref.command == ("python3", "bot.py")
    kept_bots.add_bot(db, bundle.hash, "the true one", 1, 1, 1.0)
    kept = kept_bots.latest(db, "greedy")
    assert kept is not None
    assert kept.manifest == "the true one"


def end(before: int) -> Line:
    return {"schema": "arena.export.end/1", "lines": before}


# What differs is marked


def of_kind(found: Sequence[Line], kind: str) -> list[Line]:
    return [line for line in found if line["schema"] == f"arena.export.{kind}/1"]


def another_digest(found: list[Line]) -> None:
    deal = of_kind(found, "deal")[0]
    deal["digests"][0] = "0" * 64


def another_action(found: list[Line]) -> None:
    of_kind(found, "deal")[0]["steps"][3][1] = "play:nothing"


def other_places(found: list[Line]) -> None:
    deal = of_kind(found, "deal")[0]
    deal["places"] = deal["places"][::-1]


def an_invented_fault(found: list[Line]) -> None:
    fault = {"kind": "crash", "detail": "exit", "seat": 0, "step": 1, "text": "", "evidence": ""}
    of_kind(found, "deal")[0]["faults"].append({**fault, "elapsed_us": 1, "limit_us": 1})


def another_deck(found: list[Line]) -> None:
    of_kind(found, "match")[0]["decks"][0] = "0" * 64


def an_older_version(found: list[Line]) -> None:
    match = of_kind(found, "match")[0]
    match["rule_set"] = match["rule_set"].replace("/1{", "/9{")


def another_isolation(found: list[Line]) -> None:
    of_kind(found, "match")[0]["isolation"] = "strict"


MARKED: dict[str, tuple[Callable[[list[Line]], None], int]] = {
    "digest": (another_digest, 1),
    "action": (another_action, 1),
    "places": (other_places, 1),
    "fault": (an_invented_fault, 1),
    "deck": (another_deck, 4),
    "rules": (an_older_version, 4),
    "isolation": (another_isolation, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", sorted(MARKED))
def test_what_cannot_be_executed_again_is_marked(what: str, everything_of: bytes, tmp_path: Path) -> None:
    change, marked = MARKED[what]
    found = parsed(everything_of)
    change(found)
    (tmp_path / "all.ndjson").write_bytes(packed(found))
    new = tmp_path / "new.db"
    told = json.loads(arena("import", tmp_path / "all.ndjson", "--db", new, "--json").stdout)
    assert (told["schema"], told["unverified"]) == ("arena.import/1", marked)
    with open_reader(new) as db:
        spring = tournaments.find(db, "spring")
        assert spring is not None
        doubted = [row.deal for row in rows.games(db, [spring]) if row.unverified]
        assert len(doubted) == marked
        assert doubted[0] == "1-0-0"
        assert len(matches.unverified(db, 1)) == marked
    board, standings = arena("leaderboard", "--db", new), arena("standings", "spring", "--db", new)
    assert re.search(rf"^{marked} of \d+ deals unverified", board.stderr, re.MULTILINE)
    assert f"{marked} of 36 deals unverified" in standings.stderr
    board, standings = (
        arena(*command, "--db", new, "--json") for command in (["leaderboard"], ["standings", "spring"])
    )
    assert sum(pool["unverified"] for pool in json.loads(board.stdout)["pools"]) == marked
    assert json.loads(standings.stdout)["unverified"] == {"avalanche": marked, "durak": 0, "smokestack": 0}


def test_a_schedule_that_does_not_follow_from_the_seed_marks_the_tournament(everything_of: bytes, db: Database) -> None:
    found = parsed(everything_of)
    first, second = (of_kind(found, "round")[number] for number in (0, 1))
    assert (first["number"], second["number"]) == (1, 2)
    first["byes"], second["byes"] = second["byes"], first["byes"]
    one, two = (of_kind(found, "match")[number] for number in (0, 1))
    one["table"], two["table"] = two["table"], one["table"]
    done = imported(db, packed(found))
    spring = tournaments.find(db, "spring")
    assert spring is not None
    assert done.unverified == sum(row.unverified for row in rows.games(db, [spring])) == 36


# What is wrong is refused


def longer(line: Line, key: str) -> None:
    line[key] = [*line[key], *line[key]]


def change(of: str, **values: object) -> Callable[[list[Line]], object]:
    return lambda found: of_kind(found, of)[0].update(values)


def change_plan(**values: object) -> Callable[[list[Line]], object]:
    return lambda found: of_kind(found, "stage")[0]["plan"].update(values)


def twice(kind: str) -> Callable[[list[Line]], object]:
    def repeat(found: list[Line]) -> None:
        place = next(number for number, line in enumerate(found) if line["schema"] == f"arena.export.{kind}/1")
        found.insert(place, found[place])

    return repeat


def without(kind: str) -> Callable[[list[Line]], object]:
    return lambda found: found.remove(of_kind(found, kind)[-1])


def change_fault(**values: object) -> Callable[[list[Line]], object]:
    return lambda found: next(line for line in of_kind(found, "deal") if line["faults"])["faults"][0].update(values)


def two_faults(found: list[Line]) -> None:
    deal = next(line for line in of_kind(found, "deal") if line["faults"])
    deal["faults"] *= 2


def bad_manifests(found: list[Line]) -> None:
    for line in of_kind(found, "bot"):
        line["manifest"] = "x"


def a_second_tournament(found: list[Line]) -> None:
    again = {**of_kind(found, "stage")[0], "finished_at": None, "master": None, "salt": None}
    found[-1:-1] = [of_kind(found, "tournament")[0], again, *of_kind(found, "entrant")[:3]]


def another_stage(**values: object) -> Callable[[list[Line]], object]:
    def add(found: list[Line]) -> None:
        place = next(number for number, line in enumerate(found) if line["schema"] == "arena.export.stage/1")
        again = json.loads(json.dumps(found[place]))
        again["plan"].update(values)
        found.insert(place + 1, again)

    return add


def correction(**values: object) -> Callable[[list[Line]], object]:
    def add(found: list[Line]) -> None:
        made = {"kind": "void", "entrant": None, "match": 1, "rounds": {}, "reason": "why", "made_at": 1, **values}
        places = [number for number, line in enumerate(found) if line["schema"] == "arena.export.tournament/1"]
        found.insert(places[1], {"schema": "arena.export.correction/1", **made})

    return add


def second_stage_first(found: list[Line]) -> None:
    another_stage(rounds=2)(found)
    of_kind(found, "stage")[0].update(finished_at=None, master=None, salt=None)


REFUSED: dict[str, tuple[Callable[[list[Line]], object], str]] = {
    "no begin": (lambda found: found.pop(0), "line 1: a line of begin should be here, not of bot"),
    "no end": (lambda found: found.pop(), "the file ends too early"),
    "a line too few": (without("submission"), "lines are before it, but there are"),
    "a line too many": (lambda found: found.append(found[-1]), "something follows on the end"),
    "another order": (lambda found: found.insert(1, found.pop(-2)), "a line of end should be here, not of deal"),
    "no entrant": (without("entrant"), "before it, somebody plays in stage 1 who is no entrant"),
    "a correction of another match": (correction(match=99), "match 99 is not there, or is void already"),
    "a correction of nobody": (correction(kind="withdraw", match=None, entrant=9), "entrant 9 is not there"),
    "a correction of nothing": (correction(match=None), "a correction of kind void with match None and entrant None"),
    "a correction of another game": (correction(rounds={"hearts": 1}), "of games that the tournament does not play"),
    "no stage": (without("stage"), "a line of stage should be here, not of entrant"),
    "round of no stage": (change("round", stage=2), "round 1 of avalanche is of stage 2 of 1"),
    "nobody plays": (change("stage", players=[]), "its players are not each there once"),
    "somebody plays twice": (change("stage", players=[0, 0, 1, 2]), "its players are not each there once"),
    "somebody who does not play": (change("stage", players=[0, 1]), "entrant 2 is not there, or does not play"),
    "an extension of other rules": (another_stage(seatings="rotate"), "it is no extension of stage 1"),
    "an extension backwards": (another_stage(rounds=0), "rounds is 0, not 1"),
    "an extension too early": (second_stage_first, "it is finished before stage 1"),
    "the numbers of others": (
        lambda found: of_kind(found, "stage")[1].update(first_match=1),
        "before it, stage 1 has the numbers of another's matches",
    ),
    "no deal": (without("deal"), r"before it, match \d+ has 1 of its 2 deals"),
    "no match": (without("match"), "deal 0-0, but deal 0-2 of match"),
    "unknown schema": (change("bot", schema="arena.export.virus/1"), "Invalid value 'arena.export.virus/1'"),
    "unknown key": (change("bot", command="sh"), "unknown field `command`"),
    "a text for a number": (change("match", id="1"), r"line \d+: .* Expected `int`, got `str` - at `\$.id`"),
    "a number for a text": (change("tournament", name=1), "Expected `str`, got `int`"),
    "nothing for a list": (change("deal", places=None), "Expected `array`, got `null`"),
    "a huge id": (change("match", id=10**30), r"at `\$.id`"),
    "a negative id": (change("match", id=-1), r"at `\$.id`"),
    "another's id": (change("match", id=10**6), "1000000 is no match of spring"),
    "huge points": (change("deal", points=[1 << 64, 0]), r"at `\$.points\[0\]`"),
    "a huge time": (change("match", started_at=1e300), r"at `\$.started_at`"),
    "huge match count": (change("stage", match_count=10**12), r"at `\$.match_count`"),
    "many decks": (change_plan(decks=10**12), "decks is 1000000000000, not 1 ... 50000"),
    "many rounds": (change_plan(rounds=10**9), "rounds is 1000000000, not"),
    "many seats": (change_plan(seats=11, seatings="all"), "a table of 2, but tables have 11 seats"),
    "other seatings": (
        lambda found: of_kind(found, "stage")[1]["plan"].update(seatings="rotate"),
        "6 legs, but a match has 3",
    ),
    "a long clock": (change_plan(clock={"bank_ms": 1 << 70}), "bank_ms is"),
    "no game": (change_plan(games={}), "has at least one game"),
    "unknown game": (
        change_plan(games={"hearts": {}}),
        "there is no game 'hearts'; known: avalanche, durak, s",
    ),
    "game of an entrant": (change("entrant", games=["hearts"]), "plays what the tournament does not"),
    "game of a round": (change("round", game="hearts"), "spring has no game 'hearts'"),
    "round number": (change("round", number=2), "round 2 of avalanche, but round 1 is due"),
    "bye of nobody": (change("round", byes=[99]), "entrant 99 is not there"),
    "bye and table": (change("round", byes=[0, 1, 2]), "an entrant is there twice in a round"),
    "bye twice": (change("round", byes=[0, 0]), "an entrant is there twice in a round"),
    "itself": (change("match", table=[1, 1]), "an entrant is there twice in a round"),
    "rule set": (change("match", rule_set="garbage"), "'garbage' is no rule set"),
    "another game's rules": (change("match", rule_set="durak/1{deck=36}"), "is no rule set of avalanche"),
    "impossible option": (change("match", rule_set="avalanche/1{open_pile=x}"), "option open_pile cannot be 'x'"),
    "outcome type": (change("match", outcome_type="single_loser"), "outcome_type is single_loser, but ranking"),
    "too few decks": (change("match", decks=["0" * 64]), "1 decks, but a match has 2"),
    "too few legs": (change("match", legs=[[0, 1]]), "1 legs, but a match has 2"),
    "no seating": (change("match", legs=[[0, 0], [1, 0]]), r"\[0, 0\] is no seating of 2"),
    "a seat too many": (change("deal", seating=[1, 0]), r"seating \[1, 0\], but leg 0 has \[0, 1\]"),
    "another leg": (change("deal", leg=1), "deal 0-1, but deal 0-0 of match 1 is due"),
    "a short list": (change("deal", points=[1]), "1 points for 2 seats"),
    "a low place": (change("deal", places=[1, 3]), r"places \[1, 3\] of 2 seats"),
    "a step of nobody": (change("deal", steps=[[7, "snow", 1, ""]]), "a step of deal 0-0 has no seat"),
    "a long action": (change("deal", steps=[[0, "x" * 999, 1, ""]]), r"length <= 64 - at `\$.steps"),
    "a fault of nobody": (change_fault(seat=9), "a fault of seat 9, but there are 3"),
    "another detail": (change_fault(detail="bogus"), "there is no fault .*/bogus"),
    "another kind": (change_fault(kind="bogus"), "Invalid enum value 'bogus'"),
    "two faults": (two_faults, "a seat has two faults"),
    "malformed digest": (change("deal", digests=["xyz", ""]), r"at `\$.digests\[0\]`"),
    "malformed hash": (change("bot", hash="../../etc"), r"at `\$.hash`"),
    "unknown bot": (change("entrant", hash="0" * 64), "bot 0{64} is not in the file"),
    "unknown submitted bot": (change("submission", hash="0" * 64), "bot 0{64} is not in the file"),
    "path as a bot": (change("submission", name="../../etc"), "'../../etc' is no name of a bot"),
    "path as an entrant": (change("entrant", name="../bot@2"), "'../bot@2' is no name of an entrant"),
    "path as a tournament": (change("tournament", name="a/b"), "'a/b' is no name of a tournament"),
    "a play's name": (change("tournament", kind="play"), "'spring' is no name of a play"),
    "a line in a name": (change("submission", name="bot\n"), "is no name of a bot"),
    "an author": (change("submission", author="\x1b[2J"), "is not printable"),
    "bad manifest": (
        bad_manifests,
        "the bot.toml of bot-",
    ),
    "bot twice": (twice("bot"), "is there twice"),
    "submission twice": (twice("submission"), "is there twice"),
    "tournament twice": (a_second_tournament, "before it, tournament spring is there a second time"),
    "match of another": (lambda found: of_kind(found, "match")[1].update(id=1), "is there twice"),
    "another seed": (change("stage", master="0" * 64), "not the one that was committed to"),
    "no seed": (change("stage", master=None, salt=None), "exactly if it is finished"),
    "half a seed": (change("stage", salt=None), "salt and master belong together"),
    "a seed too early": (change("stage", finished_at=None), "exactly if it is finished"),
    "a match less": (
        change("stage", match_count=99),
        "spring is finished, but has 9 of its 99 matches",
    ),
}


def test_a_file_of_an_older_arena_is_read(everything_of: bytes, db: Database) -> None:
    def older(data: bytes) -> bytes:
        return re.sub(rb',"(first_match|order)":\d+', b"", data)

    assert len(older(everything_of)) < len(everything_of)
    imported(db, older(everything_of))
    assert older(exported(db)) == older(everything_of)


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_hostile_files_are_refused_with_the_line(what: str, everything_of: bytes, db: Database) -> None:
    spoil, text = REFUSED[what]
    found = parsed(everything_of)
    spoil(found)
    is_refused(db, packed(found), text)


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "line 1: the file ends too early"),
    "text": (lambda _: b"hello\n", "line 1: is no line of an export: JSON is malformed"),
    "cut in a line": (
        lambda data: data[: len(data) // 2],
        r"line \d\d+: is no line of an export: Input data was truncated",
    ),
    "cut at a line": (
        lambda data: data[: data.index(b"\n", len(data) // 2) + 1],
        r"line \d\d+: the file ends too early",
    ),
    "a long line": (lambda data: b"x" * 1_000_000 + b"\n" + data, "line 1: is no line of an export"),
    "a very long line": (lambda data: data[:50] + b" " * (9 << 20) + data[50:], "line 2: is longer than 4 MiB"),
    "deep": (lambda data: b'{"schema":' + b"[" * 500_000 + b"\n" + data, "line 1: is no line of an export"),
    "a huge number": (
        lambda data: data.replace(b'"files":1', b'"files":' + b"9" * 100_000),
        r"line \d+: .* out of range",
    ),
    "not UTF-8": (lambda data: data.replace(b'"author":"', b'"author":"\xff'), "line 8: is no line of an export"),
    "half a character": (lambda data: data.replace(b'"author":"', b'"author":"\\ud800'), "line 8: is no line"),
    "an empty line": (lambda data: data.replace(b"\n", b"\n\n"), "line 2: is no line of an export"),
    "a huge word": (
        lambda data: data.replace(b"export.bot", b"b" * 1_000_000),
        r"Invalid value 'arena.b{100,200}\.\.\.;",
    ),
}


@pytest.mark.parametrize("what", sorted(BYTES))
def test_files_that_are_no_export_are_refused(what: str, everything_of: bytes, db: Database) -> None:
    spoil, text = BYTES[what]
    is_refused(db, spoil(everything_of), text)


def is_refused(db: Database, data: bytes, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        imported(db, data)
    assert re.match(r"all\.ndjson, line \d+: ", str(refused.value))
    assert "`arena export all`" in str(refused.value)
    assert len(str(refused.value)) < 400
    for table in db.table_names():
        if not table.startswith(("_", "sqlite")):
            assert db.table(table).count == 0, table


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.integers(-2, 4),
    st.sampled_from([1e300, 0.5, "", "x", "../x", "durak", "swiss", "all", "0" * 64, [], {}, [0], [1, 1], [[0, 1]]]),
)


def change_somewhere(draw: st.DataObject, value: Any) -> Any:
    """Return a JSON value in which one value, somewhere, is another."""
    if isinstance(value, dict) and value and draw.draw(st.integers(0, 7)):
        key = draw.draw(st.sampled_from(sorted(value)))
        return {**value, key: change_somewhere(draw, value[key])}
    if isinstance(value, list) and value and draw.draw(st.integers(0, 7)):
        index = draw.draw(st.integers(0, len(value) - 1))
        return [*value[:index], change_somewhere(draw, value[index]), *value[index + 1 :]]
    return draw.draw(ODD)


@pytest.mark.slow
@given(st.data())
def test_whatever_is_changed_is_refused_or_can_be_shown(small: bytes, data: st.DataObject) -> None:
    found = parsed(small)
    index = data.draw(st.integers(0, len(found) - 1))
    found[index] = change_somewhere(data, found[index])
    with tempfile.TemporaryDirectory() as folder, open_writer(Path(folder) / "new.db") as db:
        try:
            imported(db, packed(found))
        except ConfigError:
            assert not list(kept_bots.kept(db))
            return
        everyone = [*tournaments.tournaments(db), *tournaments.tournaments(db, "play")]
        shown = [*rows.games(db, everyone), *rows.standings(db, everyone), *rows.replays(db, everyone)]
        assert [*shown, *rows.ratings(db), *rows.bots(db), exported(db)]


def test_too_many_lines_are_refused(everything_of: bytes, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 20)
    is_refused(db, everything_of, "line 21: there are more than 20 lines")


def test_only_an_empty_database_imports(whole: Path, everything_of: bytes, tmp_path: Path) -> None:
    file = tmp_path / "all.ndjson"
    file.write_bytes(everything_of)
    assert "the database is not empty" in str(arena("import", file, "--db", whole).exception)
    assert arena("import", file, "--db", tmp_path / "a" / "b.db").exit_code == 0
    assert "cannot be read" in str(arena("import", tmp_path / "none", "--db", tmp_path / "c.db").exception)
    (tmp_path / "other").write_text("[tournament]\n")
    assert "line 1" in str(arena("import", tmp_path / "other", "--db", tmp_path / "c.db").exception)
    assert not (tmp_path / "c.db").exists()


def test_an_import_tells_what_it_read(everything_of: bytes, tmp_path: Path) -> None:
    found = parsed(everything_of)
    another_digest(found)
    (tmp_path / "all.ndjson").write_bytes(packed(found))
    told = arena("import", tmp_path / "all.ndjson", "--db", tmp_path / "new.db")
    assert re.fullmatch(r"4 tournaments and plays, .*, 6 bots; 1 deals unverified\n", told.stdout)
    assert "spring: executing its deals again\n" in told.stderr
    assert "unverified: of other rules, or not the same" in told.stderr
    again = arena("export", "all", "--db", tmp_path / "new.db")
    assert parsed(again.stdout_bytes) == found


# Files and formats


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


TABLES = ("games", "standings", "ratings", "replays", "bots", "crosstable", "pairings", "los", "history")


@pytest.mark.parametrize("table", TABLES)
def test_every_format_holds_the_same_rows(whole: Path, table: str) -> None:
    asked = ["export", table, "--db", str(whole), "--format"]
    document = json.loads(arena(*asked, "json").stdout)
    assert document["schema"] == f"arena.export.{table}/1"
    assert document["rows"]
    told = [json.loads(line) for line in arena(*asked, "ndjson").stdout_bytes.decode().splitlines()]
    assert {row.pop("schema") for row in told} == {f"arena.export.{table}.row/1"}
    assert told == document["rows"]
    text = arena(*asked, "csv").stdout_bytes.decode()
    assert text.endswith("\r\n")
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(read) == len(told)
    for cells, row in zip(read, told, strict=True):
        assert cells.keys() == row.keys()
        for name, value in row.items():
            assert cells[name] == ("" if value is None else value if isinstance(value, str) else cells[name])
            if not isinstance(value, str | None):
                assert json.loads(cells[name]) == value


@pytest.mark.parametrize("name", ["spring", "faulty", "stopped"])
def test_crosstable_and_pairings_are_those_of_the_commands(whole: Path, name: str) -> None:
    met = json.loads(arena("crosstable", name, "--json", "--db", whole).stdout)["games"]
    told = json.loads(arena("export", "crosstable", name, "--json", "--db", whole).stdout)["rows"]
    assert told == [{"tournament": name, "game": game, **one} for game, found in met.items() for one in found]
    sat = [json.loads(line) for line in arena("pairings", name, "--json", "--db", whole).stdout.splitlines()]
    told = json.loads(arena("export", "pairings", name, "--json", "--db", whole).stdout)["rows"]
    assert [{"schema": "arena.pairing/1", **row} for row in told] == [{**one, "tournament": name} for one in sat]


def test_los_and_history_are_those_of_the_commands(whole: Path) -> None:
    pools = json.loads(arena("los", "--json", "--db", whole).stdout)["pools"]
    told = json.loads(arena("export", "los", "--json", "--db", whole).stdout)["rows"]
    where = ("game", "rule_set", "seats", "isolation")
    assert told == [{**{name: pool[name] for name in where}, **one} for pool in pools for one in pool["pairs"]]
    every = json.loads(arena("export", "history", "--json", "--db", whole).stdout)["rows"]
    for bot in {row["name"] for row in every}:
        lines = arena("ratings", bot, "--history", "--json", "--db", whole).stdout.splitlines()
        past = [json.loads(line) for line in lines]
        kept = ("tournament", "round", "name", "elo", "error", "deals", "provisional")
        assert [[row[name] for name in kept] for row in every if row["name"] == bot] == [
            [one[name] for name in kept] for one in past
        ]


def test_an_empty_table_has_its_header(tmp_path: Path) -> None:
    with open_writer(tmp_path / "arena.db"):
        pass
    empty_ones = [arena("export", table, "--format", "csv", "--db", tmp_path / "arena.db").stdout for table in TABLES]
    assert [text.split(",")[0] for text in empty_ones] == [
        "tournament",
        "tournament",
        "game",
        "tournament",
        "name",
        "tournament",
        "tournament",
        "game",
        "game",
    ]
    assert json.loads(arena("export", "bots", "--json", "--db", tmp_path / "arena.db").stdout)["rows"] == []


def test_every_column_and_line_is_documented() -> None:
    text = (Path(__file__).parents[1] / "docs" / "export.md").read_text()
    kinds = {"games": rows.GameRow, "standings": rows.StandingRow, "ratings": rows.RatingRow}
    kinds |= {"replays": rows.ReplayRow, "bots": rows.BotRow}
    kinds |= {"crosstable": tables.CrosstableRow, "pairings": tables.PairingRow}
    kinds |= {"los": tables.LosRow, "history": tables.HistoryRow}
    for name, kind in kinds.items():
        found = re.search(rf"^`{name}`, .*?\n\n(\|.*?)\n\n", text, re.MULTILINE | re.DOTALL)
        assert found is not None
        shown = [column for line in found[1].splitlines() for column in re.findall(r"`(\w+)`", line.split("|")[1])]
        assert sorted(shown) == sorted(kind.__struct_fields__), name
    text = text[text.index("## Everything") :]
    for line in get_args(lines.Line):
        name = line.__name__.lower()
        found = re.search(rf"^\| `{name}` \| (.*) \|$", text, re.MULTILINE)
        assert found is not None, name
        assert re.findall(r"`(\w+)`", found[1]) == [*line.__struct_fields__], name


@pytest.mark.parametrize("author", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a,b", 'a"b', "a\nb"])
def test_a_spreadsheet_executes_no_cell(tmp_path: Path, author: str) -> None:
    with open_writer(tmp_path / "arena.db") as db:
        submit(db, refs(1))
        db.execute("UPDATE submission SET author = ?, submitted_at = -5.5", (author,))
    text = arena("export", "bots", "--format", "csv", "--db", tmp_path / "arena.db").stdout_bytes.decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    unsafe = author[0] in "=+-@\t\r"
    assert row["author"] == ("'" if unsafe else "") + author.replace("\r", "·")
    assert row["submitted_at"] == "-5.5", "numbers are not touched"


def test_one_tournament_can_be_chosen(whole: Path) -> None:
    for table in ("games", "standings", "replays", "crosstable", "pairings"):
        found = json.loads(arena("export", table, "last", "--json", "--db", whole).stdout)["rows"]
        assert {row["tournament"] for row in found} == {"stopped"}
    assert "there is no tournament 'none'" in str(arena("export", "games", "none", "--db", whole).exception)
    faulty = json.loads(arena("export", "history", "faulty", "--json", "--db", whole).stdout)["rows"]
    assert {row["tournament"] for row in faulty} == {"faulty"}
    assert "is not of one tournament" in str(arena("export", "bots", "spring", "--db", whole).exception)


def test_a_full_disk_is_told_with_the_file(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    told = arena("export", "games", "--db", whole, "-o", tmp_path / "games.csv")
    assert isinstance(told.exception, InfraError)
    assert f"{tmp_path}/games.csv cannot be written: No space left on device; make room" in str(told.exception)
    assert [*tmp_path.iterdir()] == []


def test_the_format_is_as_the_file_ends(whole: Path, tmp_path: Path) -> None:
    for name, start in (("a.csv", b"name,"), ("a.ndjson", b'{"schema"'), ("a.json", b'{"schema"'), ("a", b'{"schema"')):
        assert arena("export", "bots", "-o", tmp_path / name, "--db", whole).exit_code == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    odd = arena("export", "bots", "-o", tmp_path / "a.foo", "--db", whole)
    assert isinstance(odd.exception, ConfigError)
    assert "a.foo ends in no format; known are .csv, .ndjson, .json, or name one with --format" in str(odd.exception)
    assert not (tmp_path / "a.foo").exists()
    assert arena("export", "bots", "-o", tmp_path / "a.foo", "--format", "csv", "--db", whole).exit_code == 0
    assert json.loads((tmp_path / "a.json").read_bytes())["schema"] == "arena.export.bots/1"
    assert "contradicts" in str(arena("export", "bots", "--json", "--format", "csv", "--db", whole).exception)
    assert "all is written as ndjson" in str(arena("export", "all", "--format", "csv", "--db", whole).exception)


def test_a_file_is_overwritten_only_by_force_and_appears_whole(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "bots.csv"
    out.write_text("old")
    assert "is there already; --force" in str(arena("export", "bots", "-o", out, "--db", whole).exception)

    def breaks(_: Database) -> Iterator[rows.BotRow]:
        yield rows.BotRow("a", 1, "h", "", (), 1.0, None, "")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rows, "bots", breaks)
        assert arena("export", "bots", "-o", out, "--force", "--db", whole).exit_code != 0
        assert arena("export", "bots", "-o", tmp_path / "new.csv", "--db", whole).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["bots.csv"]
    assert out.read_text() == "old"
    assert arena("export", "bots", "-o", out, "--force", "--db", whole).exit_code == 0
    assert out.read_text().startswith("name,")


def test_a_file_that_appears_meanwhile_is_kept(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "bots.csv"

    def slow(_: Database) -> Iterator[rows.BotRow]:
        out.write_text("another's")
        yield from ()

    monkeypatch.setattr(rows, "bots", slow)
    assert "meanwhile" in str(arena("export", "bots", "-o", out, "--db", whole).exception)
    assert out.read_text() == "another's"


def test_odd_places_are_refused(whole: Path, tmp_path: Path) -> None:
    asked = ["export", "bots", "--force", "--db", str(whole), "-o"]
    assert "is no file" in str(arena(*asked, tmp_path).exception)
    assert "is no file" in str(arena(*asked, "/dev/null").exception)
    assert "is the database itself" in str(arena(*asked, whole).exception)
    assert "cannot be written: No such file" in str(arena(*asked, tmp_path / "no" / "bots.csv").exception)
    assert "there is no database" in str(arena("export", "bots", "--db", tmp_path / "none.db").exception)
