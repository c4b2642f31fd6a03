"""Why a bot lost: told from records of matches in which bots do everything wrong."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest
import trio
from trio.testing import MockClock

from arena.errors import FaultKind, IllegalAction
from arena.games import GAMES
from arena.records import DealRecord, Fault, MatchRecord
from arena.referee import play_match
from arena.retelling import moments
from arena.rules import Seat, rule_set_id
from arena.store.matches import StoredMatch
from arena.why import Why, chosen_seat, escaped, explain_deal
from tests.fakes_executor import fake_host, refs, spec_of, use_fake_bots

HABITS = {
    "clean": {},
    "illegal": {0: ("illegal", 25)},
    "two": {0: ("crash", 40), 1: ("illegal", 30)},
    "never starts": {1: ("startup", 1)},
    "speaks unasked": {1: ("waiting", 9)},
}


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@cache
def played(game: str, seats: int, habit: str) -> tuple[StoredMatch, MatchRecord]:
    spec = spec_of(refs(seats, HABITS[habit]), game, 3)
    record = trio.run(play_match, spec, fake_host(), clock=MockClock(autojump_threshold=0))
    names, hashes = tuple(bot.name for bot in spec.bots), tuple(bot.hash for bot in spec.bots)
    rules = rule_set_id(GAMES[game], spec.options)
    places = tuple(range(seats))
    match = StoredMatch(spec.id, 1, game, 1, rules, "played", places, names, hashes, spec.decks, spec.legs, "none")
    return match, record


def faults_of(record: MatchRecord, deal: DealRecord) -> list[Fault]:
    return [fault for fault in record.faults if (fault.deck, fault.leg) == (deal.deck, deal.leg)]


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_seat_of_every_deal_can_be_explained(game: str, seats: int, habit: str) -> None:
    match, record = played(game, seats, habit)
    for deal in record.deals:
        faults = faults_of(record, deal)
        for seat in range(seats):
            told = explain_deal(match, deal, record.faults, seat)
            assert told.names[seat] == match.names[deal.seating[seat]]
            assert (told.place, told.points, told.reason) == (deal.places[seat], deal.points[seat], deal.reason)
            fault = next((one for one in faults if one.seat == seat), None)
            assert told.fault is fault
            if fault is None:
                assert (told.seen, told.legal, told.sent, told.rule) == (None, (), "", "")
            else:
                check_fault(match, deal, told, fault)
            own = [step for step in deal.steps if step.seat == seat and step.elapsed_us >= 0]
            assert [(one.action, one.elapsed_us) for one in told.decisions] == [
                (step.action, step.elapsed_us) for step in own[-5:]
            ]
            assert all(deal.steps[one.step].action == one.action for one in told.decisions)


def check_fault(match: StoredMatch, deal: DealRecord, told: Why, fault: Fault) -> None:
    assert told.result == "lost" or told.place < len(deal.places)
    assert f"place {told.place} of {len(deal.places)}; fault " in told.came
    if not deal.first_ids[told.seat]:
        assert (told.seen, told.legal, told.rule) == (None, (), "")
        return
    (state,) = [moment.state for moment in moments(match, deal) if moment.number == fault.step]
    assert told.seen == state.observation(told.seat)
    assert told.legal == state.legal_actions(told.seat) != ()
    assert bool(told.rule) is (fault.kind is FaultKind.ILLEGAL)


def story(game: str, seats: int, habit: str, seat_of: str, number: int = 0) -> Why:
    """Return why a bot lost the deal of its fault of that number."""
    match, record = played(game, seats, habit)
    place = match.names.index(seat_of)
    faults = [fault for fault in record.faults if match.legs[fault.leg][fault.seat] == place]
    fault = faults[number]
    (deal,) = [deal for deal in record.deals if (deal.deck, deal.leg) == (fault.deck, fault.leg)]
    return explain_deal(match, deal, record.faults, fault.seat)


def test_an_illegal_action_is_told_with_its_rule_and_what_came_of_it() -> None:
    told = story("durak", 2, "illegal", "bot-0")
    assert told.result == "lost"
    assert told.sent == "nonsense"
    assert told.rule.startswith("durak has no such action")
    assert told.came == "the fault ended the deal: place 2 of 2; fault 1 of this bot in the match"
    assert told.fault is not None
    assert told.fault.limit_us == 1_000_000


def test_the_third_fault_says_what_it_costs() -> None:
    told = story("durak", 2, "illegal", "bot-0", 2)
    assert told.came.endswith("fault 3 of this bot in the match; the rest of the match is forfeited")


def test_evidence_is_told_in_printable_bytes() -> None:
    told = story("durak", 2, "two", "bot-0")
    assert told.sent == "evidence \\x00\\xff"
    assert story("avalanche", 2, "speaks unasked", "bot-1").sent == "nothing"
    assert escaped(b"back\\slash \x7f" + b"x" * 4000).startswith("back\\x5cslash \\x7fxxx")
    assert escaped(b"x" * 4000).endswith("x... (4000 bytes)")


def test_a_late_answer_is_not_nothing() -> None:
    match, record = played("durak", 2, "illegal")
    fault = msgspec.structs.replace(record.faults[0], kind=FaultKind.TIMEOUT, detail="late", evidence=b"")
    (deal,) = [deal for deal in record.deals if (deal.deck, deal.leg) == (fault.deck, fault.leg)]
    assert explain_deal(match, deal, [fault], fault.seat).sent == "an answer, but late"


def test_what_the_house_played_is_told() -> None:
    came = story("avalanche", 3, "illegal", "bot-0").came
    assert came.startswith("the house played ")
    assert " more for it: place 3 of 3; fault 1" in came


def test_a_forfeited_deal_is_told_as_one() -> None:
    match, record = played("durak", 2, "never starts")
    deal = record.deals[-1]
    assert deal.reason == "forfeit"
    told = explain_deal(match, deal, record.faults, deal.seating.index(1))
    assert told.came == "it had failed 3 times in this match, so it forfeited this deal: place 2 of 2"
    other = explain_deal(match, deal, record.faults, deal.seating.index(0))
    assert other.result == "won"
    assert other.came.startswith("nobody was asked, since")


@pytest.mark.parametrize(
    ("places", "results"),
    [
        ((1, 2), ["won", "lost"]),
        ((1, 1), ["drew", "drew"]),
        ((1, 3, 2), ["won", "lost", "came 2 of 3 in"]),
        ((1, 1, 3), ["won", "won", "lost"]),
    ],
)
def test_how_a_deal_ended_is_one_word_for_first_and_last(places: tuple[int, ...], results: list[str]) -> None:
    match, record = played("avalanche", len(places), "clean")
    deal = msgspec.structs.replace(record.deals[0], places=places)
    assert [explain_deal(match, deal, [], seat).result for seat in range(len(places))] == results


@pytest.mark.parametrize(
    ("failed", "seats", "places", "chosen"),
    [
        ([2, 1], [0, 1, 2], (1, 2, 3), 2),
        ([2, 1], [0, 1], (1, 2, 3), 1),
        ([2], [0, 1], (2, 1, 3), 0),
        ([], [0, 1, 2], (1, 3, 2), 1),
        ([], [0, 1, 2], (1, 1, 1), 0),
    ],
)
def test_who_failed_first_is_chosen_else_who_came_last(
    failed: list[Seat], seats: list[Seat], places: tuple[int, ...], chosen: Seat
) -> None:
    _, record = played("avalanche", 3, "clean")
    deal = msgspec.structs.replace(record.deals[0], places=places)
    faults = [Fault(FaultKind.CRASH, "exit", 0, 0, seat, 3, "") for seat in failed]
    assert chosen_seat(deal, faults, seats) == chosen


def test_a_record_that_breaks_the_rules_is_not_explained() -> None:
    match, record = played("durak", 2, "illegal")
    fault = record.faults[0]
    (deal,) = [deal for deal in record.deals if (deal.deck, deal.leg) == (fault.deck, fault.leg)]
    with pytest.raises(IllegalAction):
        explain_deal(msgspec.structs.replace(match, decks=(bytes(32),) * 3), deal, record.faults, fault.seat)
