"""What bots do wrong, and what it costs them: bots in the test's process, under a virtual clock."""

from __future__ import annotations

import os

import pytest
import trio
from trio.testing import MockClock

from arena.games import GAMES
from arena.records import Clock
from arena.rules import Outcome, OutcomeType, Seat, deal
from arena.verdict import is_decided, places_with_faults
from arena.wire import STALE_ANSWERS
from tests.fakes import (
    HELLO,
    BotEnd,
    Do,
    Message,
    Script,
    act,
    at_ask,
    first,
    frame,
    illegal,
    play,
    play_with,
    player,
    silent,
    spec_of,
    where,
)


def exiting(code: int) -> Script:
    """Return a bot that ends before its hello."""

    async def script(end: BotEnd) -> int | None:
        return code

    return script


def exits(code: int) -> Do:
    async def do(end: BotEnd, ask: Message) -> int | None:
        return code

    return do


def writes(*parts: bytes) -> Do:
    """Return what a bot does that answers with these bytes and stays."""

    async def do(end: BotEnd, ask: Message) -> int | None:
        end.write(b"".join(parts))
        return await silent(end, ask)

    return do


async def closes(end: BotEnd, ask: Message) -> int | None:
    os.close(end.stdout)
    end.stdout = -1
    return await silent(end, ask)


async def floods_stderr(end: BotEnd, ask: Message) -> int | None:
    await end.complain(b"x" * (17 << 20))
    raise AssertionError("it was to be killed")


async def answers_the_last_again_and_again(end: BotEnd, ask: Message) -> int | None:
    end.send(*[act({"id": ask["id"] - 1}, "pass")] * (STALE_ANSWERS + 1))
    return await silent(end, ask)


async def answers_the_next_too(end: BotEnd, ask: Message) -> int | None:
    end.send(act(ask, first(ask)), act({"id": ask["id"] + 1}, first(ask)))
    await end.ask()
    return await silent(end, ask)


async def answers_and_a_half(end: BotEnd, ask: Message) -> int | None:
    end.write(frame(act(ask, first(ask))) + b"\0")
    await end.ask()
    return await silent(end, ask)


FAULTS: list[tuple[str, str, str, Do, int]] = [
    # kind, detail, part of the text, what it does at its second ask, the step of the fault
    ("crash", "exit", "exit code 0", exits(0), 2),
    ("crash", "exit", "exit code 127", exits(127), 2),
    ("crash", "signal", "SIGSEGV", exits(-11), 2),
    ("crash", "signal", "signal 200", exits(-200), 2),
    ("crash", "closed", "did not end", closes, 2),
    ("timeout", "silent", "no answer", silent, 2),
    ("timeout", "partial", "part of an answer", writes(frame(HELLO)[:-1]), 2),
    ("illegal", "action", "'castle'", illegal, 2),
    ("garbage", "text", "'Traceback", writes(b"Traceback (most recent call last)\n"), 2),
    ("garbage", "oversize", "4294967295", writes(b"\xff" * 4), 2),
    ("garbage", "malformed", "map", writes(frame([1])), 2),
    ("garbage", "malformed", "'act'", writes(frame({"type": "act", "id": "2", "action": "x"})), 2),
    ("garbage", "type", "'resign'", writes(frame({"type": "resign"})), 2),
    ("garbage", "type", "`hello`", writes(frame(HELLO)), 2),
    ("garbage", "id", "ask 9", writes(frame({"type": "act", "id": 9, "action": "x"})), 2),
    ("garbage", "id", "ask 0", writes(frame({"type": "act", "id": 0, "action": "x"})), 2),
    ("garbage", "id", "before it was asked", answers_the_next_too, 4),
    ("garbage", "id", "part of a message before", answers_and_a_half, 4),
    ("flood", "stdout", "older asks", answers_the_last_again_and_again, 2),
    ("flood", "stderr", "16 MiB", floods_stderr, 2),
]


@pytest.mark.parametrize(("kind", "detail", "text", "do", "step"), FAULTS)
async def test_a_fault_in_play(autojump_clock: MockClock, kind: str, detail: str, text: str, do: Do, step: int) -> None:
    record = await play(spec_of("bad", "good"), {"bad": at_ask(2, do), "good": player()})
    assert [where(fault) for fault in record.faults] == [(kind, detail, 0, 0, 0, step)]
    assert text in record.faults[0].text
    (played,) = record.deals
    assert (played.places, played.points, played.reason, played.rated) == ((2, 1), (0, 0), "fault", True)
    assert len(played.steps) == step


@pytest.mark.parametrize(
    ("kind", "detail", "script"),
    [
        ("startup", "missing", exiting(127)),
        ("startup", "exec", exiting(126)),
        ("startup", "exit", exiting(0)),
        ("startup", "exit", exiting(3)),
        ("crash", "signal", exiting(-9)),
        ("startup", "silent", lambda end: silent(end, {})),
        ("garbage", "text", lambda end: writes(b"hello, world\n")(end, {})),
        ("garbage", "type", lambda end: writes(frame({"type": "act", "id": 1, "action": "x"}))(end, {})),
        ("garbage", "malformed", lambda end: writes(frame({"type": "hello", "protocol": 2}))(end, {})),
        ("garbage", "malformed", lambda end: writes(frame({"type": "hello"}))(end, {})),
        ("crash", "closed", lambda end: closes(end, {})),
    ],
)
async def test_a_fault_at_the_start(autojump_clock: MockClock, kind: str, detail: str, script: Script) -> None:
    record = await play(spec_of("good", "bad"), {"bad": script, "good": player()})
    assert [where(fault) for fault in record.faults] == [(kind, detail, 0, 0, 1, 0)]
    (played,) = record.deals
    assert (played.steps, played.places, played.reason) == ((), (1, 2), "fault")


async def test_a_fault_keeps_the_evidence_and_what_was_said(autojump_clock: MockClock) -> None:
    async def do(end: BotEnd, ask: Message) -> int | None:
        await end.complain(b"I am lost\n")
        end.write(b"Traceback\n")
        return await silent(end, ask)

    record = await play(spec_of("a", "bad"), {"a": player(), "bad": at_ask(1, do)})
    (fault,) = record.faults
    assert (fault.evidence, fault.stderr) == (b"Traceback\n", b"I am lost\n")


async def test_a_fault_keeps_how_long_it_took_and_what_its_limit_was(autojump_clock: MockClock) -> None:
    async def slow(end: BotEnd, ask: Message) -> int | None:
        await trio.sleep(0.25)
        return await illegal(end, ask)

    cases: list[tuple[Script, tuple[int, int]]] = [
        (at_ask(1, slow), (250_000, 300_000)),
        (at_ask(1, silent), (300_000, 300_000)),
        (lambda end: silent(end, {}), (2_000_000, 2_000_000)),
        (at_ask(2, answers_the_next_too), (-1, -1)),
    ]
    for script, told in cases:
        spec = spec_of("bad", "good", clock=Clock(decision_ms=300, startup_ms=2000))
        record = await play(spec, {"bad": script, "good": player()})
        (fault,) = record.faults
        assert (fault.elapsed_us, fault.limit_us) == told


async def test_what_each_process_wrote_is_kept_in_the_order_in_which_they_ended(autojump_clock: MockClock) -> None:
    def talker(name: str) -> Script:
        async def script(end: BotEnd) -> int | None:
            end.send(HELLO)
            while True:
                ask = await end.ask()
                await end.complain(f"{name} {ask['id']}\n".encode())
                bad = name == "bad" and ask["id"] == 1
                end.send(act(ask, "castle" if bad else first(ask)))

        return script

    spec = spec_of("a", "bad", "quiet", decks=2, legs=[(0, 1, 2), (1, 2, 0)])
    record = await play(spec, {"a": talker("a"), "bad": talker("bad"), "quiet": player()})
    told = [(log.leg, log.place, log.first_deck, log.last_deck) for log in record.logs]
    assert told == [(0, 1, 0, 0), (0, 1, 1, 1), (0, 0, 0, 1), (1, 1, 0, 0), (1, 0, 0, 1)]
    assert [log.text.splitlines()[0] for log in record.logs] == [b"bad 1", b"bad 1", b"a 1", b"bad 1", b"a 1"]
    long = record.logs[2].text.splitlines()
    assert long == [f"a {number}".encode() for number in range(1, len(long) + 1)]


async def test_two_bots_that_fail_at_once_share_the_place(autojump_clock: MockClock) -> None:
    record = await play(spec_of("a", "b"), {"a": exiting(3), "b": exiting(4)})
    assert [where(fault) for fault in record.faults] == [("startup", "exit", 0, 0, s, 0) for s in (0, 1)]
    assert record.deals[0].places == (1, 1)


async def test_with_three_seats_the_house_plays_for_it(autojump_clock: MockClock) -> None:
    record = await play(spec_of("a", "bad", "c"), {"a": player(), "bad": at_ask(2, illegal), "c": player()})
    (played,) = record.deals
    (fault,) = record.faults
    assert where(fault) == ("illegal", "action", 0, 0, 1, 4)
    assert (played.places[1], played.reason, played.rated) == (3, "played out", True)
    assert {played.places[0], played.places[2]} <= {1, 2}
    own = [(number, step) for number, step in enumerate(played.steps) if step.seat == 1]
    assert [step.elapsed_us for number, step in own if number < 4] == [0]
    assert {step.elapsed_us for number, step in own if number >= 4} == {-1}
    spec = spec_of("a", "bad", "c")
    game = GAMES["avalanche"]
    state, _ = deal(game, spec.options, 3, spec.decks[0])
    for number, step in enumerate(played.steps):
        if step.elapsed_us < 0:
            assert step.action == game.house_action(state, step.seat), number
        state, _ = state.apply(step.seat, step.action)
    assert state.outcome is not None


async def test_the_second_fault_of_three_ends_the_deal(autojump_clock: MockClock) -> None:
    scripts = {"a": at_ask(3, illegal), "b": player(), "c": at_ask(2, illegal)}
    record = await play(spec_of("a", "b", "c"), scripts)
    assert [where(fault)[4:] for fault in record.faults] == [(2, 5), (0, 6)]
    (played,) = record.deals
    assert (played.places, played.reason, len(played.steps)) == ((2, 1, 3), "fault", 6)


async def test_in_durak_the_faulted_seat_is_the_durak(autojump_clock: MockClock) -> None:
    record = await play(
        spec_of("a", "b", "bad", game="durak"), {"a": player(), "b": player(), "bad": at_ask(1, illegal)}
    )
    (played,) = record.deals
    assert (played.places, played.reason, played.rated) == ((1, 1, 3), "fault", True)
    assert where(record.faults[0])[:2] == ("illegal", "action")


async def test_a_process_is_started_anew_after_its_fault_only(autojump_clock: MockClock) -> None:
    record, opened = await play_with(spec_of("a", "bad", decks=2), {"a": player(), "bad": at_ask(1, illegal)})
    assert [len(opened[name]) for name in ("a", "bad")] == [1, 2]
    assert [played.first_ids for played in record.deals] == [(1, 1), (2, 1)]
    record, opened = await play_with(spec_of("a", "b", legs=[(0, 1), (1, 0)], decks=2), {"a": player(), "b": player()})
    assert [len(opened[name]) for name in ("a", "b")] == [2, 2], "each leg has fresh processes"
    assert [(played.leg, played.deck, played.seating) for played in record.deals] == [
        (0, 0, (0, 1)),
        (0, 1, (0, 1)),
        (1, 0, (1, 0)),
        (1, 1, (1, 0)),
    ]


async def test_from_the_third_fault_on_deals_are_forfeited(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "bad", decks=2, legs=[(0, 1), (1, 0), (0, 1)])
    record, opened = await play_with(spec, {"a": player(), "bad": at_ask(1, illegal)})
    assert [where(fault)[2:5] for fault in record.faults] == [(0, 0, 1), (1, 0, 1), (0, 1, 0)]
    assert [played.rated for played in record.deals] == [True, True, True, False, False, False]
    assert [played.reason for played in record.deals] == ["fault"] * 3 + ["forfeit"] * 3
    assert [played.places for played in record.deals] == [(1, 2), (1, 2), (2, 1), (2, 1), (1, 2), (1, 2)]
    assert [len(opened[name]) for name in ("a", "bad")] == [2, 3], "nobody is started for a forfeit"
    forfeit = record.deals[-1]
    assert (forfeit.steps, forfeit.digests, forfeit.points) == ((), (b"", b""), (0, 0))


async def test_with_three_seats_the_house_plays_forfeited_deals(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "bad", "c", decks=4)
    record, opened = await play_with(spec, {"a": player(), "bad": at_ask(1, illegal), "c": player()})
    assert len(record.faults) == len(opened["bad"]) == 3
    played = record.deals[3]
    assert (played.rated, played.places[1], played.reason) == (False, 3, "played out")
    assert {step.elapsed_us for step in played.steps if step.seat == 1} == {-1}
    assert (played.digests[1], played.first_ids[1]) == (b"", 0)
    assert all(step.elapsed_us >= 0 for step in played.steps if step.seat != 1)


@pytest.mark.parametrize(
    ("places", "faulted", "outcome_type", "expected"),
    [
        (None, {}, "ranking", (1, 1, 1, 1)),
        (None, {2: 5}, "ranking", (1, 1, 4, 1)),
        (None, {2: 5, 0: 9}, "ranking", (3, 1, 4, 1)),
        (None, {2: 5, 0: 5}, "ranking", (3, 1, 3, 1)),
        (None, {2: -1, 0: 5, 1: 5}, "ranking", (2, 2, 4, 1)),
        (None, {0: 1, 1: 2, 2: 3, 3: 4}, "ranking", (4, 3, 2, 1)),
        ((1, 2, 3, 4), {0: 7}, "ranking", (4, 1, 2, 3)),
        ((1, 2, 2, 4), {3: 7}, "ranking", (1, 2, 2, 4)),
        ((2, 2, 1, 2), {2: 0}, "ranking", (1, 1, 4, 1)),
        ((4, 1, 1, 1), {3: 7}, "single_loser", (1, 1, 1, 4)),
        (None, {3: 7, 0: 7}, "single_loser", (3, 1, 1, 3)),
    ],
)
def test_places_with_faults(
    places: tuple[int, ...] | None, faulted: dict[Seat, int], outcome_type: OutcomeType, expected: tuple[int, ...]
) -> None:
    outcome = None if places is None else Outcome(places, (0,) * 4, "x")
    assert places_with_faults(outcome, faulted, 4, outcome_type) == expected


def test_what_faults_decide() -> None:
    assert not is_decided([], 2, "single_loser")
    assert is_decided([0], 2, "ranking")
    assert not is_decided([0], 3, "ranking")
    assert is_decided([0, 2], 3, "ranking")
    assert is_decided([0], 6, "single_loser")
