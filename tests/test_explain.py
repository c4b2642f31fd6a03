"""Stored deals told again: what the referee really said, for every deal and seat, whatever went wrong in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import msgpack
import msgspec
import pytest
import trio
from trio.testing import MockClock

from arena.bot import Process
from arena.errors import ConfigError, IllegalAction
from arena.explain import Line, dialogue
from arena.games import GAMES
from arena.plan import Plan, plan_of
from arena.records import BotRef, Clock, DealRecord, Fault, MatchRecord, MatchSpec
from arena.referee import play_match
from arena.retelling import Retelling, moments, rules_of
from arena.rules import Value, complete_options, rule_set_id
from arena.store import matches, tournaments
from arena.store.database import open_reader, open_writer
from arena.store.matches import StoredMatch
from arena.tournament import run
from tests.fakes_executor import FakeBot, FakeLanes, begin, by_hash, fake_host, refs, spec_of, use_fake_bots

HABITS: dict[str, Mapping[int, tuple[str, int]]] = {
    "clean": {},
    "illegal": {0: ("illegal", 25)},
    "at once": {1: ("illegal", 1)},
    "two": {0: ("crash", 40), 1: ("illegal", 30)},
    "never starts": {1: ("startup", 1)},
    "starts again": {0: ("startup", 2)},
    "speaks unasked": {1: ("waiting", 9)},
    "all": {0: ("illegal", 20), 1: ("crash", 20), 2: ("waiting", 15)},
}
CLOCK = Clock()
Message = dict[str, object]


class WatchedBot(FakeBot):
    """Keeps what it was sent, in the order in which bots were started."""

    started: list[WatchedBot] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.sent: list[bytes] = []
        self.started.append(self)

    def send(self, data: bytes) -> None:
        self.sent += [data] if data else []

    def begin(self, ask: bytes, limit_s: float, limit_is: str = "") -> None:
        self.send(ask)
        super().begin(ask, limit_s, limit_is)


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)
    monkeypatch.setattr("arena.referee.Bot", WatchedBot)
    WatchedBot.started.clear()


@cache
def played(game: str, seats: int, habit: str) -> tuple[StoredMatch, MatchRecord, list[list[Message]]]:
    """Play a match; return it, its record, and what was sent to each seat in each deal that it was dealt into."""
    match, record = play(refs(seats, HABITS[habit]), game, 3 if seats == 2 else 2)
    sent: list[list[Message]] = []
    for bot in WatchedBot.started:
        for message in (msgpack.unpackb(frame[4:]) for frame in bot.sent):
            if message["type"] == "deal":
                sent.append([])
            if message["type"] not in ("hello", "bye"):
                sent[-1].append(message)
    return match, record, sent


def play(bots: Sequence[BotRef], game: str, decks: int = 1) -> tuple[StoredMatch, MatchRecord]:
    spec = spec_of(bots, game, decks)
    return stored(spec), trio.run(play_match, spec, fake_host(), clock=MockClock(autojump_threshold=0))


def stored(spec: MatchSpec) -> StoredMatch:
    """Return a match as the store would."""
    names, hashes = tuple(bot.name for bot in spec.bots), tuple(bot.hash for bot in spec.bots)
    rules = rule_set_id(GAMES[spec.game], spec.options)
    places = tuple(range(len(spec.bots)))
    return StoredMatch(spec.id, 1, spec.game, 1, rules, "played", places, names, hashes, spec.decks, spec.legs, "none")


def faults_of(record: MatchRecord, deal: DealRecord) -> list[Fault]:
    return [fault for fault in record.faults if (fault.deck, fault.leg) == (deal.deck, deal.leg)]


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("game", sorted(GAMES))
def test_every_dialogue_digests_to_what_was_stored(game: str, seats: int, habit: str) -> None:
    match, record, _ = played(game, seats, habit)
    for deal in record.deals:
        faults = faults_of(record, deal)
        for seat in range(seats):
            lines, is_genuine = dialogue(match, deal, seat, faults, CLOCK)
            assert is_genuine, (deal.deck, deal.leg, seat, [(f.kind, f.seat, f.step) for f in faults])
            check_lines(deal, seat, faults, lines)


def check_lines(deal: DealRecord, seat: int, faults: list[Fault], lines: list[Line]) -> None:
    """A dialogue begins with the deal, says each answer and ends with the end or with the fault."""
    mine = [fault for fault in faults if fault.seat == seat]
    assert [line.message["detail"] for line in lines if line.sender == "fault"] == [fault.detail for fault in mine]
    if not deal.first_ids[seat]:
        assert len(lines) == len(mine), "a seat that did not start was told nothing"
        return
    assert lines[0].message["type"] == "deal"
    answers = [line for line in lines if line.sender == "bot"]
    steps = [step for step in deal.steps if step.seat == seat and step.elapsed_us >= 0]
    assert [(a.message["action"], a.message.get("note", ""), a.elapsed_us) for a in answers] == [
        (step.action, step.note, step.elapsed_us) for step in steps
    ]
    asks = [line.message["id"] for line in lines if line.message.get("type") == "ask"]
    assert asks == list(range(deal.first_ids[seat], deal.first_ids[seat] + len(asks)))
    assert [line.step for line in lines] == sorted(line.step for line in lines)
    if mine:
        assert lines[-1].sender == "fault"
        assert lines[-1].step == mine[0].step
    else:
        last = lines[-1].message
        assert (last["type"], last["places"], last["points"], last["reason"]) == (
            "over",
            list(deal.places),
            list(deal.points),
            deal.reason,
        )


@pytest.mark.parametrize("habit", ["clean", "illegal", "two", "never starts"])
@pytest.mark.parametrize(("game", "seats"), [("avalanche", 2), ("durak", 3), ("smokestack", 3)])
def test_the_messages_are_those_that_were_sent(game: str, seats: int, habit: str) -> None:
    match, record, sent = played(game, seats, habit)
    told: list[list[Message]] = []
    for deal in record.deals:
        for seat in range(seats):
            lines, _ = dialogue(match, deal, seat, faults_of(record, deal), CLOCK)
            messages = [line.message for line in lines if line.sender == "referee"]
            if deal.first_ids[seat]:
                told.append(messages)
            if not faults_of(record, deal):
                said = Retelling(match, deal, (), CLOCK, [seat]).follow()
                frames = [one.what for one in said if isinstance(one.what, bytes)]
                assert [msgpack.unpackb(frame[4:]) for frame in frames] == messages
    assert sorted(map(msgpack.packb, told)) == sorted(map(msgpack.packb, sent)), "the clocks too"


def test_a_backlog_of_events_is_told_as_it_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arena.wire.BACKLOG_BYTES", 30)
    match, record = play(refs(3), "durak", 1)
    seen = set()
    for deal in record.deals:
        for seat in range(3):
            lines, is_genuine = dialogue(match, deal, seat, [], CLOCK)
            assert is_genuine
            seen |= {line.message["type"] for line in lines}
    assert seen == {"deal", "events", "ask", "act", "over"}


def test_what_was_looked_at_here_happened() -> None:
    """The habits bring about all that can go wrong: else the tests above would prove nothing."""
    seen = set()
    for game, seats, habit in product(GAMES, (2, 3), HABITS):
        _, record, _ = played(game, seats, habit)
        for deal in record.deals:
            faults = faults_of(record, deal)
            happened = {
                f"{len(faults)} faults": True,
                deal.reason: True,
                "house": any(step.elapsed_us < 0 for step in deal.steps),
                "unrated but played": deal.steps and not deal.rated,
                "nobody asked": faults and not deal.steps and not any(deal.first_ids[f.seat] for f in faults),
                "in a window": any("legal: sweep, wait" in f.text for f in faults),
                "ids go on": max(deal.first_ids) > 1,
                "note": any(step.note for step in deal.steps),
            }
            seen |= {what for what, is_so in happened.items() if is_so}
    assert seen >= {"0 faults", "1 faults", "2 faults", "fault", "forfeit", "house", "unrated but played"}
    assert seen >= {"nobody asked", "in a window", "ids go on", "note"}


def test_a_record_that_was_changed_is_found_out() -> None:
    match, record = play(refs(2), "avalanche", 1)
    deal = record.deals[0]
    for changed in (
        msgspec.structs.replace(deal, reason="magic"),
        msgspec.structs.replace(deal, places=deal.places[::-1] if deal.places[0] != deal.places[1] else (1, 2)),
        msgspec.structs.replace(deal, first_ids=(2, 2)),
        msgspec.structs.replace(deal, digests=(bytes(32), bytes(32))),
    ):
        assert not dialogue(match, changed, 0, [], CLOCK)[1]
    other = msgspec.structs.replace(match, decks=(bytes(32),))
    with pytest.raises(IllegalAction):
        dialogue(other, deal, 0, [], CLOCK)


@pytest.mark.parametrize("habit", ["clean", "two", "starts again"])
@pytest.mark.parametrize("game", sorted(GAMES))
def test_moments_reproduce_a_deal(game: str, habit: str) -> None:
    match, record, _ = played(game, 3, habit)
    for deal in record.deals:
        told = list(moments(match, deal))
        assert [moment.step for moment in told] == [None, *deal.steps]
        assert [moment.number for moment in told] == list(range(len(deal.steps) + 1))
        assert all(moment.events for moment in told[:1])
        outcome = told[-1].state.outcome
        if deal.reason in ("fault", "forfeit"):
            assert outcome is None
            continue
        assert outcome is not None
        assert (outcome.points, outcome.reason) == (deal.points, deal.reason)
        if deal.rated and not faults_of(record, deal):
            assert outcome.places == deal.places


OPTIONS: list[tuple[str, int, dict[str, Value]]] = [
    ("durak", 3, {}),
    ("durak", 4, {"transfer": True, "max_attack": 2, "first_bout_max": 5, "score": "places", "stall": "draw"}),
    ("durak", 2, {"max_attack": "none", "first_bout_max": "none", "deck": 52, "chain": True}),
    ("smokestack", 2, {"sweeps": 0, "sweep": "own_turn", "double": "off"}),
    ("smokestack", 5, {"sweeps": 99, "sweep_scope": "all"}),
    ("avalanche", 6, {"open_pile": "last_player"}),
]


@pytest.mark.parametrize(("game", "seats", "given"), OPTIONS)
def test_rules_come_back_from_their_id(game: str, seats: int, given: dict[str, Value]) -> None:
    options = complete_options(GAMES[game], seats, given)
    match = msgspec.structs.replace(stored(spec_of(refs(2), game, 1)), rule_set=rule_set_id(GAMES[game], options))
    rules, back = rules_of(match)
    assert rules is GAMES[game]
    assert [*back.items()] == [*options.items()]
    assert [type(value) for value in back.values()] == [type(value) for value in options.values()]


def test_rules_that_this_arena_lacks_are_refused() -> None:
    match = stored(spec_of(refs(2), "durak", 1))
    older = msgspec.structs.replace(match, rule_set=match.rule_set.replace("durak/", "durak/9"))
    with pytest.raises(ConfigError, match=r"match 1 is of durak/9\d, this arena has durak/\d; it can only"):
        rules_of(older)
    unknown = msgspec.structs.replace(match, rule_set="hearts/1{}")
    with pytest.raises(ConfigError, match=r"match 1 is of hearts/1, this arena has no such game"):
        list(moments(unknown, play(refs(2), "durak", 1)[1].deals[0]))


def test_a_stored_tournament_is_told_from_the_database(tmp_path: Path) -> None:
    plan = Plan("round-robin", {"smokestack": {"sweeps": 2}, "durak": {"transfer": True}}, 1, seats=3, decks=2)
    bots = refs(4, HABITS["all"])
    path = tmp_path / "arena.db"

    async def main() -> None:
        with open_writer(path) as db:
            spring = begin(db, plan, bots)
            await run(db, spring, by_hash(bots), FakeLanes(), lambda event: None, lambda: 2.0, trio.Event())

    trio.run(main, clock=MockClock(autojump_threshold=0))
    told = 0
    with open_reader(path) as db:
        (spring,) = tournaments.tournaments(db)
        for (number,) in db.execute("SELECT id FROM match"):
            match = matches.match(db, number)
            assert match is not None
            faults = [found.fault for found in matches.faults(db, number=number)]
            for placing in matches.deals(db, number):
                deal = matches.deal(db, number, placing.deck, placing.leg)
                assert deal is not None
                mine = [fault for fault in faults if (fault.deck, fault.leg) == (deal.deck, deal.leg)]
                for seat in range(3):
                    assert dialogue(match, deal, seat, mine, plan_of(spring).clock)[1]
                    told += 1
    assert told == 2 * 4 * 2 * 6 * 3
