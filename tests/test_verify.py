"""Stored results are executed again; whatever is changed in them is found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.audit import audit
from arena.plan import Plan, plan_of
from arena.records import DealRecord, Fault, Step
from arena.store import matches, tournaments
from arena.store.database import open_writer
from arena.store.matches import StoredMatch
from arena.store.tournaments import Tournament
from arena.tournament import run
from arena.verify import Difference, check_deals, check_luck, revealed
from tests.fakes_executor import FakeLanes, begin, by_hash, refs, use_fake_bots

SCRIPT = Path(__file__).parents[1] / "docs" / "verify.mjs"
FAULTS = {0: ("illegal", 30), 1: ("crash", 25), 2: ("startup", 3)}
PLANS = {
    "clean": Plan("round-robin", {"durak": {}, "avalanche": {}, "smokestack": {}}, 1, decks=2),
    "faulty": Plan("round-robin", {"durak": {}, "avalanche": {}, "smokestack": {}}, 1, seats=3, decks=4),
}
Played = tuple[StoredMatch, list[DealRecord], list[Fault]]
Change = Callable[[DealRecord], DealRecord]
replace = msgspec.structs.replace


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


def played_through(db: Database, plan: str) -> Tournament:
    bots = refs(3, FAULTS if plan == "faulty" else {})
    lanes = FakeLanes()
    made = begin(db, PLANS[plan], bots)
    play = partial(run, db, made, by_hash(bots), lanes, lambda _: None, lambda: 2.0, lanes.stopping)
    assert trio.run(play, clock=MockClock(autojump_threshold=0))
    return tournaments.get(db, made.id)


@pytest.fixture(params=sorted(PLANS))
def event(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, Tournament]]:
    """A tournament that has been played, clean or with every kind of bad luck."""
    with open_writer(tmp_path / "arena.db") as db:
        yield db, played_through(db, request.param)


def load(db: Database, tournament: Tournament) -> Iterator[Played]:
    for number in matches.played(db, tournament.id):
        match = matches.match(db, number)
        assert match is not None
        yield match, matches.records(db, number), [one.fault for one in matches.faults(db, number=number)]


def differences(tournament: Tournament, played: Played, *, messages: bool = True) -> list[Difference]:
    match, deals, faults = played
    return list(check_deals(match, deals, faults, plan_of(tournament).clock, messages=messages))


def test_what_was_played_is_found_as_it_was(event: tuple[Database, Tournament]) -> None:
    db, tournament = event
    assert list(check_luck(tournament, tournament.stages[0], [tournament])) == []
    for played in load(db, tournament):
        assert differences(tournament, played) == []
        assert differences(tournament, played, messages=False) == []


def another_step(deal: DealRecord) -> DealRecord:
    return replace(deal, steps=(Step(deal.steps[0].seat, "nonsense", 1), *deal.steps[1:]))


CHANGES: dict[str, Change] = {
    "places": lambda deal: replace(deal, places=tuple(place + 1 for place in deal.places)),
    "points": lambda deal: replace(deal, points=tuple(point + 1 for point in deal.points)),
    "reason": lambda deal: replace(deal, reason="luck"),
    "rated": lambda deal: replace(deal, rated=not deal.rated),
    "seating": lambda deal: replace(deal, seating=deal.seating[::-1]),
    "steps": another_step,
}


@pytest.mark.parametrize("what", sorted(CHANGES))
def test_whatever_is_changed_is_found(event: tuple[Database, Tournament], what: str) -> None:
    db, tournament = event
    match, deals, faults = next(iter(load(db, tournament)))
    chosen = next(number for number, deal in enumerate(deals) if len(set(deal.places)) > 1 and deal.steps)
    deals[chosen] = CHANGES[what](deals[chosen])
    found = differences(tournament, (match, deals, faults), messages=False)
    assert what in {difference.what for difference in found}
    assert f"{match.id}-{deals[chosen].deck}-{deals[chosen].leg}" in {difference.where for difference in found}


def test_a_changed_message_is_found_by_its_digest(event: tuple[Database, Tournament]) -> None:
    db, tournament = event
    match, deals, faults = next(iter(load(db, tournament)))
    chosen = next(number for number, deal in enumerate(deals) if deal.digests[0])
    deals[chosen] = replace(deals[chosen], digests=(b"\0" * 32, *deals[chosen].digests[1:]))
    (found,) = differences(tournament, (match, deals, faults))
    assert found.what == "messages"
    assert differences(tournament, (match, deals, faults), messages=False) == []


def test_a_deal_that_is_cut_short_goes_on(tmp_path: Path) -> None:
    with open_writer(tmp_path / "arena.db") as db:
        tournament = played_through(db, "clean")
        match, deals, faults = next(iter(load(db, tournament)))
    deals[0] = replace(deals[0], steps=deals[0].steps[:-1])
    (found,) = differences(tournament, (match, deals, faults), messages=False)
    assert (found.what, found.found) == ("reason", "a deal that goes on")


def test_missing_deals_and_other_rules_are_found(event: tuple[Database, Tournament]) -> None:
    db, tournament = event
    match, deals, faults = next(iter(load(db, tournament)))
    assert [found.what for found in differences(tournament, (match, deals[1:], faults))] == ["deals"]
    older = replace(match, rule_set=match.rule_set.replace("/1{", "/9{"))
    (found,) = differences(tournament, (older, deals, faults))
    assert (found.what, "/9" in found.found) == ("rules", True)


def test_a_fault_that_is_struck_out_is_missed(event: tuple[Database, Tournament]) -> None:
    db, tournament = event
    for match, deals, faults in load(db, tournament):
        for fault in faults:
            rest = [one for one in faults if one != fault]
            assert differences(tournament, (match, deals, rest), messages=False)


def test_luck_that_does_not_follow_from_the_master_is_found(event: tuple[Database, Tournament]) -> None:
    _, tournament = event
    (stage,) = tournament.stages
    assert [one.what for one in check_luck(tournament, replace(stage, master=b"\1" * 32), [])] == ["commitment"]
    cut = replace(stage, master=stage.master[:20], salt=stage.master[20:] + stage.salt)
    assert [one.what for one in check_luck(tournament, cut, [])] == ["master", "salt"], "one commitment fits many cuts"


def test_a_master_that_is_used_again_is_refused(event: tuple[Database, Tournament]) -> None:
    _, tournament = event
    (stage,) = tournament.stages
    first = replace(stage, practice=False)
    real = replace(tournament, stages=(first, replace(first, number=2)))
    again = replace(tournament, id=99, name="again", stages=(first,))
    found = [one.found for one in check_luck(real, first, [real, again])]
    assert found == ["that of spring, stage 2", "that of again"]
    assert list(check_luck(tournament, stage, [again])) == [], "a short seed promises nothing"


TAMPERED = {
    "places": "UPDATE deal SET places = CASE WHEN length(places) = 2 THEN x'0101' ELSE x'010101' END",
    "rated": "UPDATE deal SET rated = 1 - rated",
    "seating": "UPDATE deal SET seating = x'0100' WHERE leg = 0",
    "reason": "UPDATE deal SET reason = 'luck'",
    "record": "UPDATE deal SET record = x'00' WHERE match = 1 AND deck = 0 AND leg = 0",
    "decks": "UPDATE match SET decks = zeroblob(length(decks))",
    "legs": "UPDATE match SET legs = '[[1,0]]'",
    "no legs": "UPDATE match SET legs = 'x'",
    "state": "UPDATE match SET state = 'scheduled' WHERE id = 1",
    "isolation": "UPDATE match SET isolation = 'strict'",
    "pool": "UPDATE pool SET seats = 4",
    "rule set": "UPDATE pool SET rule_set = 'garbage'",
    "option": "UPDATE pool SET rule_set = replace(rule_set, 'transfer=false', 'transfer=true') WHERE game = 'durak'",
    "master": "UPDATE stage SET master = zeroblob(32)",
    "spec": "UPDATE stage SET spec = '{}'",
    "players": "UPDATE stage SET players = '[0,1]'",
    "stage": "UPDATE round SET stage = 2 WHERE number = 1",
    "byes": "UPDATE round SET byes = '[7]' WHERE number = 1",
    "who played": "UPDATE place SET entrant = 2 - entrant",
    "nobody played": "DELETE FROM place WHERE match = 1",
    "elo": "UPDATE rating SET elo = elo + 1",
    "no rating": "DELETE FROM rating WHERE elo > 1500",
    "tournament": "UPDATE match SET tournament = 99 WHERE id = 1",
    "invented fault": "INSERT INTO fault VALUES (NULL, 1, 0, 0, 0, 0, 9999, 'illegal', 'action', '', x'', x'', -1, -1)",
    "fault of another kind": "INSERT INTO fault VALUES (NULL, 1, 0, 0, 0, 0, 0, 'bogus', 'x', '', x'', x'', -1, -1)",
}


@pytest.mark.parametrize("what", sorted(TAMPERED))
@pytest.mark.parametrize("messages", [True, False])
def test_whatever_is_changed_in_the_tables_is_found(tmp_path: Path, what: str, messages: bool) -> None:
    with open_writer(tmp_path / "arena.db") as db:
        tournament = played_through(db, "clean")
        assert [found for _, part in audit(db, [tournament], messages=messages) for found in part] == []
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(TAMPERED[what])
        chosen = [tournaments.get(db, tournament.id)]
        assert [found for _, part in audit(db, chosen, messages=messages) for found in part]


def test_a_swiss_with_faults_is_as_it_had_to_be(tmp_path: Path) -> None:
    bots = refs(6, FAULTS)
    lanes = FakeLanes()
    with open_writer(tmp_path / "arena.db") as db:
        made = begin(db, Plan("swiss", {"durak": {}, "avalanche": {}}, 3, decks=4), bots)
        play = partial(run, db, made, by_hash(bots), lanes, lambda _: None, lambda: 2.0, lanes.stopping)
        assert trio.run(play, clock=MockClock(autojump_threshold=0))
        finished = [tournaments.get(db, made.id)]
        assert [found for _, part in audit(db, finished) for found in part] == []
        db.execute("UPDATE fault SET entrant = (entrant + 1) % 6 WHERE id = 1")
        (found,) = [found for _, part in audit(db, finished) for found in part]
        assert found.what == "entrant of a fault"


def script(document: object) -> subprocess.CompletedProcess[str]:
    told = json.dumps(document)
    return subprocess.run(["node", SCRIPT], input=told, capture_output=True, text=True, timeout=60, check=False)


def test_a_revealed_tournament_is_checked_in_another_language(event: tuple[Database, Tournament]) -> None:
    db, tournament = event
    told = revealed(tournament, [match for match, _, _ in load(db, tournament)])
    good = script(told)
    assert (good.returncode, good.stderr) == (0, "")
    assert f"right for the commitment {tournament.stages[0].commitment.hex()}" in good.stdout
    assert "practice" in good.stdout
    document = msgspec.json.decode(msgspec.json.encode(told))
    (stage,) = document["stages"]
    stage["matches"][-1]["decks"][-1]["bot_seeds"][-1] += 1
    bad = script(document)
    assert bad.returncode != 0
    assert "bot seed" in bad.stderr
    short = {**stage, "master": stage["master"][:40], "salt": stage["master"][40:] + stage["salt"]}
    assert "bytes of master and salt" in script({**document, "stages": [short]}).stderr
    stage["matches"][0]["decks"][0]["order"].reverse()
    assert "order 0" in script(document).stderr
    assert script({**document, "stages": [{**stage, "master": None}]}).returncode != 0
    assert script({**document, "stages": [{**stage, "salt": "00"}]}).returncode != 0


def test_the_script_is_short_enough_to_be_read() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 60
