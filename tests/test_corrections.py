"""What an organiser corrects: standings, ratings and the rounds to come follow, and what was scheduled stays right."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.audit import audit
from arena.cli.commands import app
from arena.errors import ConfigError
from arena.plan import Plan, final_standings, table_scores
from arena.rating.pool import history
from arena.records import Round, TableScore
from arena.rules import Value
from arena.store import corrections, matches, ratings, tournaments
from arena.store.database import open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import run
from tests.fakes_executor import FakeLanes, apart, begin, by_hash, refs, use_fake_bots

GAME: dict[str, dict[str, Value]] = {"avalanche": {}}


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def play(db: Database, tournament: Tournament, bots: int = 6, rounds: int = 0) -> bool:
    """Play on to the end, or until so many rounds are complete."""
    lanes = FakeLanes()

    async def main() -> bool:
        stopping = trio.Event()

        def report(event: object) -> None:
            if type(event).__name__ == "RoundComplete" and getattr(event, "round", 0) == rounds:
                stopping.set()

        return await run(db, tournament, by_hash(refs(bots)), lanes, report, lambda: 2.0, stopping)

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def out(db: Database, tournament: Tournament, kind: str, name: str) -> None:
    with writing(db):
        corrections.exclude(db, kind, tournament.id, name, "because", 9.0)  # type: ignore[arg-type]  # one of two words


def names_of(db: Database, tournament: Tournament) -> dict[str, int]:
    return {entrant.name: entrant.number for entrant in tournaments.entrants(db, tournament.id)}


def differences(db: Database, tournament: Tournament) -> list[object]:
    return [one for _, found in audit(db, [tournament], messages=False, whole=False) for one in found]


@pytest.mark.parametrize("format_", ["swiss", "round-robin"])
@pytest.mark.parametrize(("seats", "bots"), [(2, 6), (2, 5), (3, 7)])
@pytest.mark.parametrize("kind", ["disqualify", "withdraw"])
def test_who_is_out_is_not_paired_again(db: Database, format_: str, seats: int, bots: int, kind: str) -> None:
    plan = Plan(format_, GAME, 4 if format_ == "swiss" else 1, seats=seats, seatings="rotate")  # type: ignore[arg-type]
    spring = begin(db, plan, refs(bots))
    assert not play(db, spring, bots, rounds=2)
    out(db, spring, kind, "bot-1")
    gone = names_of(db, spring)["bot-1"]
    assert play(db, tournaments.get(db, spring.id), bots)
    sat = {
        played.number: gone in played.byes or any(gone in table for table in played.tables)
        for played, _ in tournaments.rounds(db, spring.id, "avalanche")
    }
    assert [number for number, there in sat.items() if there] == [1, 2]
    assert len(sat) > 2
    assert differences(db, tournaments.get(db, spring.id)) == [], "the audit derives the same rounds"


def test_the_disqualified_is_last_and_unrated_and_others_keep_their_points(db: Database) -> None:
    spring = begin(db, Plan("round-robin", GAME, 1), refs(4))
    assert play(db, spring, 4)
    before = {line.entrant: line for line in final_standings(db, spring, "avalanche")}
    best = final_standings(db, spring, "avalanche")[0]
    name = {number: name for name, number in names_of(db, spring).items()}[best.entrant]
    (pool,) = ratings.pools(db)
    deals = pool.deals
    out(db, spring, "disqualify", name)
    lines = final_standings(db, spring, "avalanche")
    assert (lines[-1].entrant, lines[-1].place, lines[-1].mark) == (best.entrant, 4, "disqualified")
    assert [line.place for line in lines] == [1, 2, 3, 4]
    assert all(line.points == before[line.entrant].points for line in lines)
    rated = apart(matches.rated_deals(db, pool.id))
    assert 0 < len(rated) < deals
    hashes = {entrant.number: entrant.hash for entrant in tournaments.entrants(db, spring.id)}
    assert all(hashes[best.entrant] not in deal.bots for deal in rated)


def test_the_withdrawn_keeps_its_place_and_its_rating(db: Database) -> None:
    spring = begin(db, Plan("round-robin", GAME, 1), refs(4))
    play(db, spring, 4)
    before = final_standings(db, spring, "avalanche")
    (pool,) = ratings.pools(db)
    rated = apart(matches.rated_deals(db, pool.id))
    out(db, spring, "withdraw", "bot-2")
    after = final_standings(db, spring, "avalanche")
    assert [(line.entrant, line.place, line.points) for line in after] == [
        (line.entrant, line.place, line.points) for line in before
    ]
    assert {line.mark for line in after} == {"", "withdrawn"}
    assert apart(matches.rated_deals(db, pool.id)) == rated


def test_a_void_match_is_a_tie_and_is_not_rated(db: Database) -> None:
    spring = begin(db, Plan("swiss", GAME, 3), refs(4))
    assert not play(db, spring, 4, rounds=1)
    number = matches.played(db, spring.id)[0]
    with writing(db):
        corrections.void(db, number, "a storm", 9.0)
    match = matches.match(db, number)
    assert match is not None
    assert (match.state, matches.unplayed(db, spring.id, "avalanche", 1)) == ("void", [])
    lines = {line.entrant: line for line in final_standings(db, spring, "avalanche")}
    assert {lines[entrant].points for entrant in match.entrants} == {0.5}
    assert play(db, tournaments.get(db, spring.id), 4)
    (pool,) = ratings.pools(db)
    assert pool.deals == len(apart(matches.rated_deals(db, pool.id)))
    assert differences(db, tournaments.get(db, spring.id)) == []


def test_a_match_void_after_the_next_round_was_scheduled_does_not_change_that_round(db: Database) -> None:
    spring = begin(db, Plan("swiss", GAME, 4), refs(6))
    assert not play(db, spring, rounds=3)
    with writing(db):
        corrections.void(db, matches.played(db, spring.id)[0], "a storm", 9.0)
    assert play(db, tournaments.get(db, spring.id))
    assert differences(db, tournaments.get(db, spring.id)) == []


@pytest.mark.parametrize("format_", ["swiss", "round-robin"])
def test_a_match_that_cannot_be_played_is_void_and_the_tournament_goes_on(db: Database, format_: str) -> None:
    spring = begin(db, Plan(format_, GAME, 3, decks=2), refs(4))  # type: ignore[arg-type]  # one of two words
    (round_,) = [one for one, _ in _scheduled_round(db, spring)]
    stuck, other = matches.unplayed(db, spring.id, "avalanche", round_.number)
    with writing(db):
        corrections.void(db, stuck, "a bot ends its lane", 9.0)
    assert play(db, tournaments.get(db, spring.id), 4)
    (found,) = [matches.match(db, stuck)]
    assert found is not None
    assert stuck not in matches.played(db, spring.id, void=True)
    assert other in matches.played(db, spring.id)
    rounds = tournaments.rounds(db, spring.id, "avalanche")
    assert all(complete for _, complete in rounds)
    scores = {score.table: score for score in table_scores(db, spring.id, "avalanche") if score.round == 1}
    assert scores[found.entrants] == TableScore(1, found.entrants, ((0, 4), (4, 0)), 4, (0, 0))
    assert differences(db, tournaments.get(db, spring.id)) == []
    assert matches.count_played(db, spring.id) == spring.stages[0].match_count


def _scheduled_round(db: Database, tournament: Tournament) -> list[tuple[Round, bool]]:
    """Schedule the first round and stop before anything is played."""
    lanes = FakeLanes()

    async def main() -> None:
        stopping = trio.Event()
        stopping.set()
        await run(db, tournament, by_hash(refs(4)), lanes, lambda _: None, lambda: 2.0, stopping)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return tournaments.rounds(db, tournament.id, "avalanche")


def test_ratings_do_not_need_a_match_that_was_played(db: Database) -> None:
    spring = begin(db, Plan("round-robin", GAME, 1), refs(2))
    _scheduled_round(db, spring)
    with writing(db):
        corrections.void(db, 1, "a bot ends its lane", 9.0)
    assert play(db, tournaments.get(db, spring.id), 2)
    assert ratings.pools(db) == []
    assert [line.points for line in final_standings(db, spring, "avalanche")] == [0.5, 0.5]


def test_with_too_few_left_a_swiss_ends(db: Database) -> None:
    spring = begin(db, Plan("swiss", GAME, 5), refs(3))
    assert not play(db, spring, 3, rounds=1)
    out(db, spring, "withdraw", "bot-0")
    out(db, spring, "disqualify", "bot-1")
    assert play(db, tournaments.get(db, spring.id), 3)
    assert len(tournaments.rounds(db, spring.id, "avalanche")) == 1


def test_a_correction_that_cannot_be_made_is_told(db: Database) -> None:
    spring = begin(db, Plan("round-robin", GAME, 1), refs(2))
    begin(db, Plan("round-robin", GAME, 1), refs(2), name="one", kind="play")
    play(db, spring, 2)
    out(db, spring, "withdraw", "bot-0")
    for kind, name, why in (
        ("withdraw", "bot-0", "bot-0 is withdrawn already"),
        ("withdraw", "nobody", "no entrant is called 'nobody'; there are bot-"),
    ):
        with pytest.raises(ConfigError, match=why):
            out(db, spring, kind, name)
    out(db, spring, "disqualify", "bot-0")
    with pytest.raises(ConfigError, match="bot-0 is disqualified already"):
        out(db, spring, "withdraw", "bot-0")
    with pytest.raises(ConfigError, match="there is no match 99"):
        corrections.void(db, 99, "because", 1.0)
    with pytest.raises(ConfigError, match="--reason wants 1 to 500 characters"):
        corrections.exclude(db, "withdraw", spring.id, "bot-1", " ", 1.0)
    number = matches.played(db, spring.id)[0]
    corrections.void(db, number, "because", 1.0)
    with pytest.raises(ConfigError, match=f"match {number} is void already"):
        corrections.void(db, number, "because", 1.0)


def test_corrections_are_only_added_to(db: Database) -> None:
    spring = begin(db, Plan("round-robin", GAME, 1), refs(2))
    out(db, spring, "withdraw", "bot-0")
    for statement in ("UPDATE correction SET reason = ''", "DELETE FROM correction"):
        with pytest.raises(sqlite3.IntegrityError, match="corrections are only added to"):
            db.execute(statement)


# The commands


def arena(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


Told = dict[tuple[str, int, str, str], float | None]


def told(of: tuple[str, int], bot: str, *rated: float | None) -> Told:
    return {(*of, bot, what): value for what, value in zip(("elo", "error", "deals"), rated, strict=True)}


def kept(db: Database) -> Told:
    query = "SELECT t.name, h.round, h.hash, elo, error, deals FROM history h JOIN tournament t ON t.id = h.tournament"
    found: Told = {}
    for name, number, bot, *rated in db.execute(query):
        found |= told((name, number), bot, *rated)
    return found


def due(db: Database, order: list[tuple[str, int]]) -> Told:
    """Fit the deals that are rated by now after each round, without anything of what is kept."""
    (pool,) = ratings.pools(db)
    ids = {one.name: one.id for one in tournaments.tournaments(db)}
    played = [list(matches.rated_deals(db, pool.id, (ids[name], "avalanche", number))) for name, number in order]
    found: Told = {}
    for of, rated in zip(order, history(played, pool.key.outcome_type), strict=True):
        for one in rated:
            found |= told(of, one.bot, one.elo, one.error, one.deals)
    return found


@pytest.fixture
def two_years(tmp_path: Path) -> Path:
    """Two tournaments in one pool; the first goes on when the second has ended."""
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        spring, autumn = (
            begin(db, Plan("swiss", GAME, rounds, decks=6), refs(4), name=name)
            for name, rounds in (("spring", 4), ("autumn", 2))
        )
        assert not play(db, spring, 4, rounds=2)
        assert play(db, autumn, 4)
        assert play(db, tournaments.get(db, spring.id), 4)
    return path


ORDER = [("spring", 1), ("spring", 2), ("autumn", 1), ("autumn", 2), ("spring", 3), ("spring", 4)]


def test_a_history_is_the_same_fit_after_each_round_with_the_corrections_of_today(two_years: Path) -> None:
    with open_writer(two_years) as db:
        assert kept(db) == pytest.approx(due(db, ORDER), abs=2e-6)
        (pool,) = ratings.pools(db)
        assert [of for alike in ratings.rounds(db, pool.id) for of in alike] == [
            ({"spring": 1, "autumn": 2}[name], number) for name, number in ORDER
        ]
        first = kept(db)
        number = matches.played(db, 2)[0]
    made: list[tuple[str | Path, ...]] = [
        ("void", str(number)),
        ("withdraw", "bot-0", "--tournament", "autumn"),
        ("disqualify", "bot-1", "--tournament", "spring"),
    ]
    for one in made:
        assert arena(*one, "--reason", "because", "--db", two_years).exit_code == 0
        with open_writer(two_years) as db:
            assert kept(db) == pytest.approx(due(db, ORDER), abs=2e-6), one
            bot = ratings.ratings(db, 1)[0].bot
            assert [(past.tournament, past.round) for past in ratings.history(db, 1, bot)][-1] == (1, 4)
            before, after = (ratings.history_after(db, 1, 1, number) for number in (3, 4))
            expected = {bot: after[bot][0] - before[bot][0] for bot in after if bot in before}
            assert ratings.changes(db, 1) == pytest.approx(expected, abs=2e-6)
        assert arena("verify", "--outcomes", "--db", two_years).exit_code == 0
        if one[0] == "void":
            with open_writer(two_years) as db:
                same = [of for of in kept(db) if of[0] == "spring" and of[1] < 3]
                assert same
                assert all(kept(db)[of] == first[of] for of in same), "what came before is not touched"


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE history SET elo = elo + 1 WHERE tournament = 2 AND round = 1", "after round 1 of autumn: rating of"),
        ("UPDATE history SET error = NULL WHERE tournament = 2 AND round = 1", "after round 1 of autumn: rating of"),
        ("DELETE FROM history WHERE tournament = 1 AND round = 4", "deals of all rounds of its history"),
        ("DELETE FROM history WHERE round = 4 AND deals > 0 AND hash = (SELECT max(hash) FROM bot)", "spring: rating"),
    ],
)
def test_a_history_that_was_tampered_with_is_found(two_years: Path, damage: str, what: str) -> None:
    with open_writer(two_years) as db:
        db.execute(damage)
    told = arena("verify", "--outcomes", "--db", two_years)
    assert told.exit_code == 1
    assert what in told.stdout


def test_no_more_deals_are_unverified_than_are_rated(two_years: Path) -> None:
    def counts() -> tuple[int, int]:
        with open_writer(two_years) as db:
            (pool,) = ratings.pools(db)
            assert pool.deals == len(apart(matches.rated_deals(db, pool.id)))
            return pool.unverified, pool.deals

    with open_writer(two_years) as db:
        db.execute("UPDATE deal SET rated = 0 WHERE match = 1 AND deck = 0")
        for number in (*matches.played(db, 1), *matches.played(db, 2)):
            for deck, leg, *_ in matches.columns(db, number):
                assert matches.mark_unverified(db, number, deck, leg, "because")
        number = matches.played(db, 2)[0]
    assert arena("void", str(number), "--reason", "because", "--db", two_years).exit_code == 0
    some, every = counts()
    assert some == every > 0
    assert arena("disqualify", "bot-1", "--tournament", "spring", "--reason", "x", "--db", two_years).exit_code == 0
    assert counts() < (some, every)
    some, every = counts()
    assert some == every > 0
    assert f"{some} of {every} deals unverified" in arena("leaderboard", "--db", two_years).stderr


def test_a_pool_of_which_nothing_is_left_is_rated_no_more(tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        play(db, begin(db, Plan("round-robin", GAME, 1), refs(2)), 2)
    assert arena("void", "1", "--reason", "because", "--db", path).exit_code == 0
    assert arena("disqualify", "bot-1", "--tournament", "spring", "--reason", "x", "--db", path).exit_code == 0
    with open_writer(path) as db:
        assert ratings.pools(db) == []
        assert kept(db) == {}


def test_an_organiser_corrects_and_all_may_read_why(tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    with open_writer(path) as db:
        spring = begin(db, Plan("round-robin", GAME, 1), refs(4))
        play(db, spring, 4)
        number = matches.played(db, spring.id)[0]
    told = arena("void", str(number), "--reason", "a \x1b[31mstorm", "--db", path)
    assert (told.exit_code, told.stdout) == (0, f"match {number} is void; standings and ratings of spring follow\n")
    told = arena("disqualify", "bot-3", "--tournament", "spring", "--reason", "two of one author", "--db", path)
    assert told.exit_code == 0
    told = arena("withdraw", "bot-2", "--tournament", "last", "--reason", "asked", "--db", path, "--json")
    assert json.loads(told.stdout)["after_rounds"] == {"avalanche": 3}
    shown = arena("standings", "spring", "--db", path).stdout
    assert f"match {number} is void: a ·[31mstorm" in shown
    assert "bot-3 is disqualified: two of one author" in shown
    assert "bot-2 (withdrawn)" in shown
    document = json.loads(arena("standings", "spring", "--json", "--db", path).stdout)
    assert [one["kind"] for one in document["corrections"]] == ["void", "disqualify", "withdraw"]
    assert [line["mark"] for line in document["games"]["avalanche"]][-1] == "disqualified"
    assert document["games"]["avalanche"][-1]["decided_by"] == "disqualified"
    exported = json.loads(arena("export", "standings", "--json", "--db", path).stdout)["rows"]
    left = {row["name"]: (row["mark"], row["reason"]) for row in exported}
    assert left == {
        "bot-0": ("", None),
        "bot-1": ("", None),
        "bot-2": ("withdrawn", "asked"),
        "bot-3": ("disqualified", "two of one author"),
    }
    assert arena("verify", "--db", path).exit_code == 0, "the ratings were fitted again"
