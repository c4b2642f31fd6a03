"""The bracket of a knockout, as people and other programs are told of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock
from typer.testing import CliRunner, Result

from arena.audit import audit
from arena.bracket import Exit, read_bracket, seeds_of
from arena.cli.commands import app
from arena.errors import ConfigError
from arena.export.everything import everything
from arena.importing import begin as begin_import
from arena.importing import import_everything
from arena.plan import Plan, check_plan, final_standings, plan_of
from arena.schedule.knockout import Deciding
from arena.store import corrections, matches, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.store.tournaments import Tournament
from arena.tournament import run
from arena.web import pages, rendering
from arena.web.page import Source
from arena.web.rendering import Frame
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

CUP = Plan("knockout", {"avalanche": {}}, 3)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    use_fake_bots(monkeypatch)
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


def play(db: Database, tournament: Tournament, rounds: int = 0) -> Tournament:
    """Play on to the end, or until so many rounds are complete."""
    lanes = FakeLanes()

    def report(event: object) -> None:
        if type(event).__name__ == "RoundComplete" and getattr(event, "round", 0) == rounds:
            lanes.stopping.set()

    async def main() -> bool:
        return await run(db, tournament, by_hash(refs(12)), lanes, report, lambda: 2.0, lanes.stopping)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return tournaments.get(db, tournament.id)


def names_of(db: Database, tournament: Tournament) -> dict[int, str]:
    return {one.number: one.name for one in tournaments.entrants(db, tournament.id)}


def leave(db: Database, tournament: Tournament, number: int, kind: str = "withdraw") -> None:
    with writing(db):
        name = names_of(db, tournament)[number]
        corrections.exclude(db, kind, tournament.id, name, "because", 9.0)  # type: ignore[arg-type]  # a word


def void(db: Database, number: int) -> None:
    with writing(db):
        corrections.void(db, number, "because", 9.0)


def arena(tmp_path: Path, *args: str) -> Result:
    result = CliRunner().invoke(app, [*args, "--db", str(tmp_path / "arena.db")])
    assert result.exit_code == 0, result.output
    return result


def told(tmp_path: Path, *args: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in arena(tmp_path, *args, "--json").stdout.splitlines()]


def game_page(tmp_path: Path, path: str) -> tuple[dict[str, Any], str]:
    with open_reader(tmp_path / "arena.db") as opened:
        page = pages.page(Source(opened), path)
        assert page is not None
        return page.data, rendering.html(page, path, Frame([], lambda _: True, "")).decode()


# Seeds


@pytest.mark.slow
def test_seeds_are_given_then_rated_then_drawn(db: Database, tmp_path: Path) -> None:
    play(db, begin(db, Plan("round-robin", {"avalanche": {}}, 1, decks=3), refs(3), name="before"))
    plan = msgspec.structs.replace(CUP, seeds=("bot-4", "bot-0"))
    cup = begin(db, plan, refs(6), name="cup")
    bracket, names = read_bracket(db, cup, "avalanche"), names_of(db, cup)
    assert bracket is not None
    assert [names[seed.entrant] for seed in bracket.seeds[:2]] == ["bot-4", "bot-0"]
    assert [seed.by for seed in bracket.seeds] == ["given", "given", "rating", "rating", "lot", "lot"]
    assert [seed.number for seed in bracket.seeds] == [1, 2, 3, 4, 5, 6]
    (pool,) = ratings.pools(db)
    elo = {one.bot: one.elo for one in ratings.ratings(db, pool.id)}
    hashes = {one.number: one.hash for one in tournaments.entrants(db, cup.id)}
    assert [seed.elo for seed in bracket.seeds[2:4]] == sorted(
        (elo[hashes[seed.entrant]] for seed in bracket.seeds[2:4]), reverse=True
    )
    shown = arena(tmp_path, "pairings", "cup")
    assert f"3  {names[bracket.seeds[2].entrant]}  rating {bracket.seeds[2].elo:.0f}" in shown.stdout
    assert "no round of cup is scheduled yet" in shown.stderr
    (document,) = told(tmp_path, "pairings", "cup")
    assert document["schema"] == "arena.bracket/1"
    assert document["seeds"][0] == {"seed": 1, "name": "bot-4", "by": "given", "elo": None}
    play(db, cup)
    assert [found for _, some in audit(db, [tournaments.get(db, cup.id)]) for found in some] == []


def test_a_seed_that_does_not_play_is_named(db: Database) -> None:
    cup = begin(db, CUP, refs(3))
    plan = msgspec.structs.replace(CUP, seeds=("bot-1", "bot-7"))
    with pytest.raises(ConfigError, match="seed bot-7 is not among the bots, which are bot-0, bot-1, bot-2"):
        check_plan(plan, tournaments.entrants(db, cup.id))


def test_who_is_seeded_by_lot_is_checked_against_the_master_seed(db: Database) -> None:
    cup = begin(db, CUP, refs(5))
    spec = plan_of(cup)
    drawn = tuple(sorted(spec.cast.drawn["avalanche"]))
    assert drawn != spec.cast.drawn["avalanche"]
    changed = msgspec.structs.replace(spec, cast=msgspec.structs.replace(spec.cast, drawn={"avalanche": drawn}))
    with writing(db):
        db.execute("UPDATE stage SET spec = ?", (msgspec.json.encode(changed).decode(),))
    found = [one.what for _, some in audit(db, [tournaments.get(db, cup.id)]) for one in some]
    assert found == ["avalanche seeds by lot"]


def test_a_stage_of_an_older_arena_has_its_lots_by_its_master_seed(db: Database) -> None:
    cup = begin(db, CUP, refs(5))
    stage = cup.stages[0]
    plan = plan_of(stage)
    older = msgspec.structs.replace(plan, cast=msgspec.structs.replace(plan.cast, drawn={}))
    before = msgspec.structs.replace(stage, spec=msgspec.json.encode(older).decode())
    entrants = tournaments.entrants(db, cup.id)
    assert seeds_of(before, "avalanche", entrants) == seeds_of(stage, "avalanche", entrants)


@pytest.mark.parametrize("finished", [False, True])
def test_an_import_takes_no_seeds_that_are_not_the_players(db: Database, tmp_path: Path, finished: bool) -> None:
    cup = begin(db, CUP, refs(5))
    cup = play(db, cup) if finished else cup
    cast = plan_of(cup).cast
    drawn = cast.drawn["avalanche"]
    for index, wrong in enumerate(({}, {"avalanche": drawn[1:]}, {"avalanche": (*drawn[:-1], drawn[0])})):
        plan = msgspec.structs.replace(plan_of(cup), cast=msgspec.structs.replace(cast, drawn=wrong))
        with writing(db):
            db.execute("UPDATE stage SET spec = ?", (msgspec.json.encode(plan).decode(),))
        data = io.BytesIO(b"".join(msgspec.json.encode(line) + b"\n" for line in everything(db)))
        with open_writer(tmp_path / f"copy-{index}.db") as copied:
            if finished and not wrong:  # the master seed tells the lots
                import_everything(copied, begin_import(data, "all"), lambda _: None)
                continue
            with pytest.raises(ConfigError, match="the seeds of avalanche are not the players of stage 1, each once"):
                import_everything(copied, begin_import(data, "all"), lambda _: None)


# Pairings and standings


def test_everything_tells_who_went_on_and_by_which_rule(db: Database, tmp_path: Path) -> None:
    cup = play(db, begin(db, CUP, refs(5)))
    bracket, names = read_bracket(db, cup, "avalanche"), names_of(db, cup)
    assert bracket is not None
    assert bracket.winner is not None
    winner = names[bracket.winner]
    shown = arena(tmp_path, "pairings", "spring").stdout
    assert [shown.count(f"round {n} · {name}") for n, name in ((1, "quarter-final"), (2, "semi-final"), (3, "final"))]
    assert shown.count("bye") == 3
    assert f"winner: {winner}\n" in shown
    head, *documents = told(tmp_path, "pairings", "spring")
    assert head["winner"] == winner
    lines = [line for row in bracket.rounds.values() for line in row if line.match is not None]
    assert len(documents) == len(lines) == 4
    for document, line in zip(documents, lines, strict=True):
        assert line.pairing.winner is not None
        assert document["goes_on"] == names[line.pairing.winner]
        assert document["decided_by"] == line.pairing.decided in ("duels", "deal sets", "seed")
        assert len(document["seeds"]) == 2
        assert sum(line.shares().values()) == 1
        assert (document["void"], document["quality"]) == (False, None)
        if line.pairing.decided == "seed":
            assert "better seed, duels and deal sets equal" in shown
    final = documents[-1]
    standings = told(tmp_path, "standings", "spring")[0]["games"]["avalanche"]
    assert (standings[0]["name"], standings[0]["lost_to"]) == (winner, None)
    second = {key: standings[1][key] for key in ("out_in_round", "lost_to", "decided_by")}
    assert second == {"out_in_round": 3, "lost_to": winner, "decided_by": final["decided_by"]}
    exported = [json.loads(line) for line in arena(tmp_path, "export", "standings", "spring").stdout.splitlines()]
    assert [(one["seed"], one["lost_to"], one["decided_by"]) for one in exported] == [
        (one["seed"], one["lost_to"], one["decided_by"]) for one in standings
    ]
    table = arena(tmp_path, "standings", "spring").stdout
    assert " won " in table
    assert f"final, to {winner}: " in table
    data, text = game_page(tmp_path, "t/spring/avalanche")
    assert data["bracket"]["winner"]["name"] == winner
    assert [one["name"] for one in data["bracket"]["rounds"]] == ["quarter-final", "semi-final", "final"]
    assert f"final, to {winner}: " in text
    assert "Seeds: 1 " in text


def test_one_round_is_shown_alone(db: Database, tmp_path: Path) -> None:
    play(db, begin(db, CUP, refs(5)))
    shown = arena(tmp_path, "pairings", "spring", "--round", "2").stdout
    assert "semi-final" in shown
    assert "seeds" not in shown.splitlines()[0]
    assert "winner" not in shown
    assert [one["schema"] for one in told(tmp_path, "pairings", "spring", "--round", "2")] == ["arena.pairing/1"] * 2
    data, _ = game_page(tmp_path, "t/spring/avalanche-2")
    assert [one["number"] for one in data["bracket"]["rounds"]] == [1, 2]
    assert data["bracket"]["winner"] is None


@pytest.mark.parametrize(
    ("sets_won", "decided", "words"),
    [
        ((2, 1), "deal sets", "deal sets 2 : 1, duels equal"),
        ((), "deal sets", "deal sets , duels equal"),
        ((1, 1), "earlier", "had gone on before the match was void"),
        ((1, 1), "duels", "duels"),
    ],
)
def test_a_rule_is_told_in_words(db: Database, sets_won: tuple[int, ...], decided: Deciding, words: str) -> None:
    cup = play(db, begin(db, CUP, refs(2)))
    bracket = read_bracket(db, cup, "avalanche")
    assert bracket is not None
    (line,) = bracket.rounds[1]
    assert line.score is not None
    pairing = line.pairing._replace(decided=decided, came=line.score.table)
    score = msgspec.structs.replace(line.score, sets_won=sets_won)
    assert msgspec.structs.replace(line, pairing=pairing, score=score).reason() == words


def test_what_is_still_to_be_played_waits(db: Database, tmp_path: Path) -> None:
    cup = play(db, begin(db, CUP, refs(5)), rounds=1)
    lanes = FakeLanes(lanes=1)
    lanes.stop_after = 1

    async def main() -> bool:
        return await run(db, cup, by_hash(refs(12)), lanes, lambda _: None, lambda: 2.0, lanes.stopping)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    shown = arena(tmp_path, "pairings", "spring").stdout
    assert shown.count(" (to play)") > 0
    documents = told(tmp_path, "pairings", "spring", "--round", "2")
    assert [(one["goes_on"], one["decided_by"]) for one in documents] == [(None, None)] * 2
    assert "winner" not in shown
    game_page(tmp_path, "t/spring/avalanche")


def test_a_void_match_is_told_as_one_and_changes_nobody_who_has_gone_on(db: Database, tmp_path: Path) -> None:
    cup = play(db, begin(db, CUP, refs(8)))
    before = read_bracket(db, cup, "avalanche")
    assert before is not None
    for line in before.rounds[1]:
        assert line.match is not None
        void(db, line.match)
    after = read_bracket(db, cup, "avalanche")
    assert after is not None
    assert [line.pairing.winner for line in after.rounds[1]] == [line.pairing.winner for line in before.rounds[1]]
    assert all(line.is_void and line.pairing.decided in ("earlier", "seed") for line in after.rounds[1])
    shown = arena(tmp_path, "pairings", "spring", "--round", "1").stdout
    assert "better seed, match void" in shown or "had gone on before the match was void" in shown
    then = read_bracket(db, cup, "avalanche", 1)
    assert then is not None
    assert then.rounds[1] == before.rounds[1], "as it was known then"


def test_who_leaves_is_told(db: Database, tmp_path: Path) -> None:
    cup = play(db, begin(db, CUP, refs(8)), rounds=1)
    alive = [line.entrant for line in final_standings(db, cup, "avalanche") if line.place == 1]
    leave(db, cup, alive[0])
    cup = play(db, cup, rounds=2)
    bracket, names = read_bracket(db, cup, "avalanche"), names_of(db, cup)
    assert bracket is not None
    assert bracket.exits[alive[0]] == Exit(2, None, "left")
    assert bracket.end(alive[0], names) == "left before the semi-final"
    shown = arena(tmp_path, "pairings", "spring").stdout
    assert f"{names[alive[0]]} (left)" in shown
    assert "no opponent: it had left" in shown
    finalists = [one.pairing.winner for one in bracket.rounds[2] if one.pairing.winner is not None]
    assert [bracket.end(one, names) for one in finalists] == ["", ""]
    leave(db, cup, finalists[0], "disqualify")
    cup = play(db, cup)
    bracket = read_bracket(db, cup, "avalanche")
    assert bracket is not None
    assert bracket.winner == finalists[1]
    assert bracket.end(finalists[0], names) == "left before the final"
    assert len(bracket.rounds) == 2
    fields = next(one for one in told(tmp_path, "standings", "spring")[0]["games"]["avalanche"] if one["mark"])
    assert (fields["lost_to"], fields["decided_by"]) == (None, "left")


@pytest.mark.parametrize("kind", ["withdraw", "disqualify"])
def test_if_all_leave_the_last_to_leave_wins_unless_it_is_disqualified(db: Database, tmp_path: Path, kind: str) -> None:
    cup = play(db, begin(db, CUP, refs(4)), rounds=1)
    early, late = [line.entrant for line in final_standings(db, cup, "avalanche")[:2]]
    leave(db, cup, early)
    cup = play(db, cup)
    bracket, names = read_bracket(db, cup, "avalanche"), names_of(db, cup)
    assert bracket is not None
    assert (bracket.winner, bracket.missed) == (late, (early,)), "it needs no final"
    leave(db, cup, late, kind)
    bracket = read_bracket(db, cup, "avalanche")
    assert bracket is not None
    winner = late if kind == "withdraw" else early
    assert bracket.winner == winner
    assert {*bracket.missed} == {early, late}
    first = final_standings(db, cup, "avalanche")[0]
    assert (first.entrant, first.place, first.mark) == (winner, 1, "withdrawn")
    left = ", ".join(names[one] for one in bracket.missed)
    *_, unplayed, _, last, _ = arena(tmp_path, "pairings", "spring").stdout.splitlines()
    assert unplayed == f"spring · avalanche · final not played: {left} left"
    assert last == f"winner: {names[winner]}, the best placed of those who left"
    head = told(tmp_path, "pairings", "spring")[0]
    assert head["winner"] == names[winner]
    assert head["not_played"] == {"round": 2, "left": [names[one] for one in bracket.missed]}
    data, text = game_page(tmp_path, "t/spring/avalanche")
    assert data["bracket"]["not_played"] == f"final not played: {left} left"
    assert f"Final not played: {left} left." in text


def test_who_moves_up_shares_the_first_place_with_whom_it_lost_beside(db: Database, tmp_path: Path) -> None:
    cup = play(db, begin(db, CUP, refs(4)), rounds=1)
    for line in final_standings(db, cup, "avalanche")[:2]:
        leave(db, cup, line.entrant, "disqualify")
    bracket = read_bracket(db, play(db, cup), "avalanche")
    assert bracket is not None
    assert bracket.winner is None
    assert "no winner: the first place is shared" in arena(tmp_path, "pairings", "spring").stdout


def test_who_is_disqualified_after_it_won_is_not_the_winner(db: Database) -> None:
    other = play(db, begin(db, CUP, refs(4), name="other"))
    first, second = [line.entrant for line in final_standings(db, other, "avalanche")][:2]
    leave(db, other, first, "disqualify")
    bracket = read_bracket(db, other, "avalanche")
    assert bracket is not None
    names = names_of(db, other)
    assert (bracket.winner, bracket.end(first, names), bracket.end(second, names)) == (second, "won the final", "won")


def test_early_rounds_of_a_large_knockout_have_numbers(db: Database) -> None:
    cup = begin(db, msgspec.structs.replace(CUP, rounds=4), refs(12))
    cup = play(db, cup, rounds=1)
    bracket, names = read_bracket(db, cup, "avalanche"), names_of(db, cup)
    assert bracket is not None
    assert [bracket.round_name(number) for number in (1, 2, 3, 4)] == [
        "round 1", "quarter-final", "semi-final", "final"
    ]  # fmt: skip
    loser = next(line.pairing.loser for line in bracket.rounds[1] if line.pairing.loser is not None)
    assert bracket.end(loser, names).startswith("round 1, to bot-")


def test_where_four_neighbours_left_there_is_no_pairing(db: Database) -> None:
    cup = play(db, begin(db, msgspec.structs.replace(CUP, rounds=4), refs(12)), rounds=1)
    bracket = read_bracket(db, cup, "avalanche")
    assert bracket is not None
    for line in bracket.rounds[1][:4]:
        assert line.pairing.winner is not None
        leave(db, cup, line.pairing.winner)
    bracket = read_bracket(db, play(db, cup), "avalanche")
    assert bracket is not None
    assert [len(bracket.rounds[number]) for number in (1, 2, 3)] == [8, 4, 1]
    assert bracket.winner == bracket.rounds[3][0].pairing.winner


def test_other_formats_have_no_bracket(db: Database, tmp_path: Path) -> None:
    swiss = play(db, begin(db, Plan("swiss", {"avalanche": {}}, 1), refs(4)))
    assert read_bracket(db, swiss, "avalanche") is None
    line = told(tmp_path, "standings", "spring")[0]["games"]["avalanche"][0]
    assert (line["seed"], line["lost_to"]) == (None, None)
    assert all(
        one["schema"] == "arena.pairing/1" and one["goes_on"] is None for one in told(tmp_path, "pairings", "spring")
    )
    data, _ = game_page(tmp_path, "t/spring/avalanche")
    assert data["bracket"] is None


# How good a pairing is


def test_a_pairing_is_judged_by_what_was_known_when_it_was_made(db: Database, tmp_path: Path) -> None:
    play(db, begin(db, Plan("swiss", {"avalanche": {}}, 3), refs(8)))
    before = told(tmp_path, "pairings", "spring")
    for document in before[:4]:
        void(db, document["match"])
    after = told(tmp_path, "pairings", "spring")
    assert [one["quality"] for one in after] == [one["quality"] for one in before]
    assert [one["void"] for one in after] == [True] * 4 + [False] * 8
    assert after[0]["scores"] == [0.5, 0.5], "results are shown as they are now"
    assert arena(tmp_path, "pairings", "spring").stdout.count("0.500 (void)") == 4


def test_a_round_paired_after_a_correction_is_judged_with_it(db: Database, tmp_path: Path) -> None:
    spring = play(db, begin(db, Plan("swiss", {"avalanche": {}}, 3), refs(8)), rounds=1)
    for number in matches.played(db, spring.id):
        void(db, number)
    play(db, spring)
    found = [one for one in told(tmp_path, "pairings", "spring") if one["round"] == 2]
    assert {one["quality"]["most_spread"] for one in found} == {0.0}, "all had half a point"
