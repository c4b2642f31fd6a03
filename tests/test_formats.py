"""Gauntlets, knockouts and bots of one author, played whole: what is stored, ranked, checked and carried elsewhere."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner

from arena.audit import audit
from arena.cli.commands import app
from arena.errors import ConfigError
from arena.export.everything import everything
from arena.extension import extend
from arena.history import rate_again
from arena.importing import begin as begin_import
from arena.importing import import_everything
from arena.plan import Plan, check_plan, default_rounds, final_standings, plan_of
from arena.records import Round
from arena.rules import Value
from arena.schedule.meetings import pairs
from arena.store import bots as kept_bots
from arena.store import corrections, matches, ratings, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import run
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

GAME: dict[str, dict[str, Value]] = {"avalanche": {}}
KNOCKOUT = Plan("knockout", GAME, 3)
GAUNTLET = Plan("gauntlet", {**GAME, "durak": {}}, 2, challengers=("bot-0", "bot-3"))


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def play(db: Database, tournament: Tournament, rounds: int = 0) -> Tournament:
    """Play on to the end, or until so many rounds of a game are complete."""
    lanes = FakeLanes()

    def report(event: object) -> None:
        if type(event).__name__ == "RoundComplete" and getattr(event, "round", 0) == rounds:
            lanes.stopping.set()

    async def main() -> bool:
        return await run(db, tournament, by_hash(refs(12)), lanes, report, lambda: 2.0, lanes.stopping)

    assert trio.run(main, clock=MockClock(autojump_threshold=0)) == (rounds == 0)
    return tournaments.get(db, tournament.id)


def all_rounds(db: Database, tournament: Tournament, game: str = "avalanche") -> list[Round]:
    return [played for played, complete in tournaments.rounds(db, tournament.id, game) if complete]


def leave(db: Database, tournament: Tournament, number: int, kind: str = "withdraw") -> None:
    names = {one.number: one.name for one in tournaments.entrants(db, tournament.id)}
    with writing(db):
        name = names[number]
        made = corrections.exclude(db, kind, tournament.id, name, "because", 9.0)  # type: ignore[arg-type]  # a word
        rate_again(db, made)


def places(db: Database, tournament: Tournament, game: str = "avalanche") -> list[int]:
    return [line.place for line in final_standings(db, tournament, game)]


def check_copy(db: Database, tournament: Tournament, other: Path) -> None:
    """What is checked finds no difference, and another database comes to the same standings."""
    assert [one for _, found in audit(db, [tournament]) for one in found] == []
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db))
    with open_writer(other) as copied:
        assert import_everything(copied, begin_import(io.BytesIO(data), "all"), lambda _: None).unverified == 0
        again = tournaments.find(copied, tournament.name)
        assert again is not None
        for game in plan_of(again).games:
            assert final_standings(copied, again, game) == final_standings(db, tournament, game)


# Knockouts


@pytest.mark.parametrize(
    ("bots", "due"),
    [(2, [1, 2]), (3, [1, 2, 3]), (5, [1, 2, 3, 3, 5]), (8, [1, 2, 3, 3, 5, 5, 5, 5])],
)
def test_a_knockout_is_played_until_one_is_left(db: Database, tmp_path: Path, bots: int, due: list[int]) -> None:
    rounds = default_rounds(
        "knockout", [Entrant(n, str(n), refs(9)[n].hash, ("avalanche",)) for n in range(bots)], GAME, 2
    )
    spring = play(db, begin(db, msgspec.structs.replace(KNOCKOUT, rounds=rounds), refs(bots)))
    assert matches.count_played(db, spring.id) == spring.stages[0].match_count == bots - 1
    assert len(all_rounds(db, spring)) == rounds
    assert places(db, spring) == due
    final = all_rounds(db, spring)[-1].tables[0]
    assert {line.entrant for line in final_standings(db, spring, "avalanche")[:2]} == set(final)
    check_copy(db, spring, tmp_path / "copy.db")


def test_seeds_are_by_rating_where_there_is_one_and_meet_late(db: Database) -> None:
    play(db, begin(db, Plan("round-robin", GAME, 1, decks=3), refs(5), name="before"))
    spring = begin(db, KNOCKOUT, refs(8))
    (pool,) = ratings.pools(db)
    hashes = {one.hash: one.number for one in tournaments.entrants(db, spring.id)}
    strength = [hashes[one.bot] for one in ratings.ratings(db, pool.id)]
    assert plan_of(spring).cast.seeds == {"avalanche": tuple(strength)}
    spring = play(db, spring, rounds=1)
    (first,) = all_rounds(db, spring)
    assert {*first.tables[0], *first.tables[1]} >= {strength[0], strength[3]}
    assert not any(set(table) <= set(strength[:4]) for table in first.tables), "the first four seeds do not meet yet"
    assert places(db, spring) == [1, 1, 1, 1, 5, 5, 5, 5], "so far"


def test_who_leaves_a_knockout_lets_the_other_go_on(db: Database, tmp_path: Path) -> None:
    spring = play(db, begin(db, KNOCKOUT, refs(8)), rounds=2)
    alive = [line.entrant for line in final_standings(db, spring, "avalanche") if line.place == 1]
    assert len(alive) == 2
    leave(db, spring, alive[0])
    spring = play(db, spring)
    lines = final_standings(db, spring, "avalanche")
    assert [(line.entrant, line.place, line.mark) for line in lines[:2]] == [
        (alive[1], 1, ""),
        (alive[0], 2, "withdrawn"),
    ]
    assert len(all_rounds(db, spring)) == 2, "nobody was left to play"
    check_copy(db, spring, tmp_path / "copy.db")


def test_who_leaves_before_its_round_gives_a_bye(db: Database) -> None:
    spring = play(db, begin(db, KNOCKOUT, refs(8)), rounds=1)
    winners = [line.entrant for line in final_standings(db, spring, "avalanche") if line.place == 1]
    leave(db, spring, winners[0], "disqualify")
    spring = play(db, spring)
    second, third = all_rounds(db, spring)[1:]
    assert len(second.tables) == len(second.byes) == len(third.tables) == 1
    lines = final_standings(db, spring, "avalanche")
    assert (lines[-1].entrant, lines[-1].mark) == (winners[0], "disqualified")
    assert [one for _, found in audit(db, [spring]) for one in found] == []


@pytest.mark.parametrize("rounds", [-1, 1, 2])
def test_an_unfinished_knockout_is_shown_elsewhere_alike(db: Database, tmp_path: Path, rounds: int) -> None:
    spring = begin(db, KNOCKOUT, refs(5))
    spring = spring if rounds < 0 else play(db, spring, rounds=rounds)
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db))
    with open_writer(tmp_path / "copy.db") as copied:
        import_everything(copied, begin_import(io.BytesIO(data), "all"), lambda _: None)
        again = tournaments.find(copied, "spring")
        assert again is not None
        assert not again.stages[0].master
        assert final_standings(copied, again, "avalanche") == final_standings(db, spring, "avalanche")


def test_a_knockout_cannot_be_extended(db: Database) -> None:
    spring = play(db, begin(db, KNOCKOUT, refs(8)))
    with pytest.raises(ConfigError, match="spring is a knockout, which ends with its winner"):
        extend(db, spring, msgspec.structs.replace(KNOCKOUT, rounds=4), tournaments.entrants(db, spring.id), 9.0)


# Gauntlets


@pytest.mark.parametrize("seats", [2, 3])
def test_in_a_gauntlet_all_tables_of_a_cycle_are_one_round(db: Database, tmp_path: Path, seats: int) -> None:
    plan = msgspec.structs.replace(GAUNTLET, seats=seats, seatings="rotate")
    spring = play(db, begin(db, plan, refs(7)))
    challengers = set(plan_of(spring).cast.challengers)
    names = {one.number: one.name for one in tournaments.entrants(db, spring.id)}
    assert {names[number] for number in challengers} == {"bot-0", "bot-3"}
    for game in plan.games:
        rounds = all_rounds(db, spring, game)
        assert len(rounds) == 2
        for played in rounds:
            met = {pair for table in played.tables for pair in pairs(table)}
            due = {tuple(sorted((one, other))) for one in challengers for other in names if other not in challengers}
            assert {pair for pair in met if challengers & set(pair)} == due
        lines = final_standings(db, spring, game)
        assert all(0 <= line.points <= 2 and line.rounds == 2 for line in lines)
        deals = {line.entrant: line.deals for line in lines}
        assert min(deals[number] for number in challengers) >= max(deals.values()) > 0
    assert matches.count_played(db, spring.id) == spring.stages[0].match_count
    check_copy(db, spring, tmp_path / "copy.db")


def test_a_gauntlet_is_extended_by_cycles_and_new_bots(db: Database, tmp_path: Path) -> None:
    spring = play(db, begin(db, GAUNTLET, refs(5)))
    more = refs(7)
    with writing(db):
        for bot in more[5:]:
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
    asked = [Entrant(0, bot.name, bot.hash, tuple(GAUNTLET.games)) for bot in more]
    spring = extend(db, spring, msgspec.structs.replace(GAUNTLET, rounds=3), asked, 9.0)
    spring = play(db, spring)
    third = all_rounds(db, spring)[2]
    assert len(third.tables) == 2 * 5
    check_copy(db, spring, tmp_path / "copy.db")


def test_a_gauntlet_without_challengers_ends(db: Database) -> None:
    spring = play(db, begin(db, GAUNTLET, refs(5)), rounds=1)
    for number in plan_of(spring).cast.challengers:
        leave(db, spring, number)
    spring = play(db, spring)
    assert len(all_rounds(db, spring)) == 1
    assert [one for _, found in audit(db, [spring]) for one in found] == []


def test_a_gauntlet_goes_on_without_a_challenger_who_left(db: Database) -> None:
    spring = play(db, begin(db, GAUNTLET, refs(5)))
    names = {one.number: one.name for one in tournaments.entrants(db, spring.id)}
    leave(db, spring, next(number for number, name in names.items() if name == "bot-3"), "disqualify")
    asked = tournaments.entrants(db, spring.id)
    spring = play(db, extend(db, spring, msgspec.structs.replace(GAUNTLET, rounds=3), asked, 9.0))
    assert len(all_rounds(db, spring)[2].tables) == 3
    assert [one for _, found in audit(db, [spring]) for one in found] == []


def test_what_a_gauntlet_lacks_is_told() -> None:
    def problems(names: Sequence[str], seats: int = 2, plays: tuple[str, ...] = ("avalanche", "durak")) -> str:
        entrants = [Entrant(n, name, refs(9)[n].hash, plays) for n, name in enumerate(names)]
        with pytest.raises(ConfigError) as raised:
            check_plan(msgspec.structs.replace(GAUNTLET, seats=seats), entrants)
        return str(raised.value)

    assert "challenger bot-3 is not among the bots" in problems(["bot-0", "x"])
    told = problems(["bot-0", "bot-3"])
    assert "a gauntlet of durak at tables of 2 needs at least 1 challenger and 1 of the others;" in told
    assert "; challengers that play it: 2, others: 0" in told
    assert (
        "at tables of 3 needs at least 1 challenger and 2 of the others; challengers that play it: 2, others: 1"
        in problems(["bot-0", "bot-3", "x"], 3)
    )
    assert "that play it: 0, others: 2" in problems(["y", "x"])


# Bots of one author


def test_a_swiss_keeps_bots_of_one_author_apart(db: Database) -> None:
    found = refs(8)
    with writing(db):
        for number, bot in enumerate(found):
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
            kept_bots.submit(db, bot.name, bot.hash, "ada" if number in (1, 4, 6) else "bob" * (number < 3), 1.0)
    asked = [
        Entrant(n, bot.name, bot.hash, ("avalanche",)) for n, bot in enumerate(sorted(found, key=lambda b: b.hash))
    ]
    spring = begin(db, Plan("swiss", GAME, 4, avoid_same_author=True), found)
    numbers = {one.name: one.number for one in asked}
    groups = {frozenset(numbers[f"bot-{n}"] for n in group) for group in ((1, 4, 6), (0, 2))}
    assert set(map(frozenset, plan_of(spring).cast.apart)) == groups
    kept_bots.submit(db, "bot-1", found[1].hash, "zoe", 1.0, force=True)  # later changes nothing
    spring = play(db, spring)
    for played in all_rounds(db, spring):
        assert not any(set(table) <= group for table in played.tables for group in groups)
    assert [one for _, found in audit(db, [spring]) for one in found] == []


# The command line


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--format", "knockout", "--seats", "3"], "a knockout is played at tables of 2, not 3"),
        (["--format", "knockout", "--rounds", "3"], "a knockout has as many as it takes until one is left"),
        (["--format", "knockout", "--forever", "--name", "x"], "a knockout ends with its winner"),
        (["--format", "gauntlet"], "a gauntlet needs some"),
        (["--format", "gauntlet", "--challengers", "A,b"], '"A" is not allowed'),
        (["--challengers", "a"], "only a gauntlet has them"),
        (["--format", "knockout", "--seeds", "a,b,a"], 'seeds[2]: "a" is named more than once'),
        (["--format", "knockout", "--seeds", "A"], 'seeds[0]: "A" is not allowed'),
        (["--format", "round-robin", "--seeds", "a"], "only a knockout has them"),
        (["--format", "round-robin", "--avoid-same-author"], "only a Swiss can"),
        (["--max-rounds", "3"], "--max-rounds is for --until-error"),
    ],
)
def test_what_does_not_fit_a_format_is_told(tmp_path: Path, options: list[str], why: str) -> None:
    given = ["run", "--db", str(tmp_path / "arena.db"), *options]
    result = CliRunner().invoke(app, given)
    assert why in str(result.exception)


def test_crosstable_and_pairings_of_both_are_shown(db: Database, tmp_path: Path) -> None:
    for name, plan in (("cup", KNOCKOUT), ("duels", GAUNTLET)):
        play(db, begin(db, plan, refs(6), name=name))
        for command in ("crosstable", "pairings", "standings"):
            result = CliRunner().invoke(app, [command, name, "--json", "--db", str(tmp_path / "arena.db")])
            assert result.exit_code == 0, result.output
            assert all(json.loads(line)["schema"].startswith("arena.") for line in result.stdout.splitlines())
