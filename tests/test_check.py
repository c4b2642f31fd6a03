"""What a bot is examined for: each check told apart by a bot that fails it, and the short form for a submission."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import trio

from arena.check import Examination, Finding, examine, first_fault
from arena.check.deals import check_spec, play_deals, random_specs
from arena.check.dialogue import cases
from arena.check.finding import fix_of
from arena.check.judging import judge_memory, judge_stderr
from arena.check.positions import history_bytes, positions
from arena.check.usage import peak_kib
from arena.errors import FAULT_DETAILS, BotError, FaultKind, InfraError
from arena.games import GAMES
from arena.records import Clock, MatchSpec
from arena.referee import Host
from arena.wire import BACKLOG_BYTES
from tests.fakes import HELLO, MACHINE, BotEnd, Fakes, Message, Script, act, bot_ref, first
from tests.fakes_executor import fake_host, refs, use_fake_bots

BOT, RANDOM = bot_ref("bad"), bot_ref("random", command=("random",))
CHECKS = ["handshake", "durak positions", "bye", "durak deals"]
CHECKS += ["stdout", "deterministic", "memory", "decision time", "stderr"]
KEYS = {"type", "id", "events", "observation", "legal", "clock"}

OnMessage = Callable[[BotEnd, Message, int], int | None]
"""What a bot does with a message, the n-th of its process, before it answers it; a number ends it."""


def bot(on: OnMessage = lambda end, message, number: None, *, choose: Callable[[Message], str] = first) -> Script:
    """Return a bot that is honest but for one habit."""

    async def script(end: BotEnd) -> int | None:
        number = -1
        while True:
            number += 1
            message = await end.receive()
            if (code := on(end, message, number)) is not None:
                return code
            if message["type"] == "hello":
                end.send(HELLO)
            elif message["type"] == "ask":
                end.send(act(message, choose(message)))
            elif message["type"] == "bye":
                return 0

    return script


async def examined(script: Script, *, game: str = "durak", deals: int = 4) -> dict[str, Finding]:
    """Return the findings of a check of one game, by name."""
    told: list[Finding] = []
    begun: list[str] = []
    async with trio.open_nursery() as nursery:
        fakes = Fakes(nursery, {"bad": script, "random": bot()})

        def hosts(spec: MatchSpec) -> Host:
            return Host(fakes.open, "none", MACHINE, "0", lambda: 0.0, spin_s=0.0)

        exam = Examination(BOT, RANDOM, (game,), hosts, Clock(), deals, told.append, begun.append)
        found = await examine(exam)
    assert told == found
    assert begun[0] == "handshake"
    return {finding.name: finding for finding in found}


def verdicts(found: dict[str, Finding]) -> dict[str, str]:
    """Return the verdicts that are not ok; fake processes have no memory."""
    return {name: one.verdict for name, one in found.items() if one.verdict != "ok" and name != "memory"}


async def test_an_honest_bot_passes(autojump_clock: object) -> None:
    found = await examined(bot())
    assert list(found) == CHECKS
    assert verdicts(found) == {}
    assert not any(one.fix or one.fault for one in found.values())
    assert found["durak positions"].figures == {"asks": 16, "faults": 0}
    assert found["durak deals"].figures["deals"] == 4
    assert found["durak deals"].figures["score"] == 0.8
    assert found["durak deals"].evidence == "4 deals at 2 and 4 seats, no fault; 80% of its duels with random won"
    assert found["bye"].evidence == "exit code 0 within 0 ms, 3 processes"
    assert found["deterministic"].figures == {"deterministic": True}
    assert found["memory"].verdict == "skip"


@pytest.mark.parametrize("game", sorted(GAMES))
async def test_each_game_is_checked(autojump_clock: object, game: str) -> None:
    found = await examined(bot(), game=game, deals=1)
    assert verdicts(found) == {}
    assert found[f"{game} deals"].figures["deals"] == 1


async def never_greets(end: BotEnd) -> int | None:
    await trio.sleep_forever()


def prints_first(end: BotEnd, message: Message, number: int) -> int | None:
    if number == 0:
        end.write(b"loading the weights\n")
    return None


async def test_a_bot_that_does_not_start_skips_the_rest(autojump_clock: object) -> None:
    found = await examined(never_greets)
    assert list(found) == CHECKS
    assert found["handshake"].fault == "startup/silent"
    assert found["handshake"].fix.startswith("Send hello before")
    assert verdicts(found) == {"handshake": "FAIL"} | dict.fromkeys({*CHECKS} - {"handshake", "memory"}, "skip")


async def test_text_on_stdout_is_shown(autojump_clock: object) -> None:
    found = await examined(bot(prints_first))
    assert found["handshake"].fault == found["stdout"].fault == "garbage/text"
    assert found["stdout"].evidence.startswith("text: 'loading the weights\\n")


def chokes_on(condition: Callable[[Message], bool]) -> OnMessage:
    """Return a habit: it ends at the first message of a kind."""

    def on(end: BotEnd, message: Message, number: int) -> int | None:
        if not condition(message):
            return None
        os.write(end.stderr, b"KeyError: oops")
        return 3

    return on


EDGES = [
    (lambda message: len(message.get("legal", ())) > 20, "the longest list of legal actions"),
    (lambda message: len(message.get("legal", ())) == 1, "the shortest list of legal actions"),
    (lambda message: message["type"] == "ask" and not {*message} <= KEYS, "keys and a kind of event that are unknown"),
    (lambda message: message["type"] == "deal" and "later" in message, "keys and a kind of event that are unknown"),
    (lambda message: message["type"] == "events", "KiB of events in messages before the ask"),
]


@pytest.mark.parametrize(("condition", "what"), EDGES)
async def test_a_bot_that_trips_at_an_edge(
    autojump_clock: object, condition: Callable[[Message], bool], what: str
) -> None:
    found = await examined(bot(chokes_on(condition)), deals=1)
    told = found["durak positions"]
    assert (told.verdict, told.fault, told.stderr) == ("FAIL", "crash/exit", b"KeyError: oops")
    assert what in told.evidence
    assert " of 16 asks failed; at 2 seats, " in told.evidence
    assert told.fix.startswith("Read the end of its stderr")


async def test_a_bot_that_needs_the_events_is_only_warned(autojump_clock: object) -> None:
    told: list[Message] = []

    def remembers(end: BotEnd, message: Message, number: int) -> int | None:
        if message["type"] == "deal":
            told.clear()
        told.extend(message.get("events", ()))
        return 3 if message["type"] == "ask" and not told else None

    found = await examined(bot(remembers), deals=2)
    assert verdicts(found) == {"durak positions": "warn"}
    assert "2 of 16 asks failed; at 2 seats, a position without the events" in found["durak positions"].evidence
    assert found["durak positions"].fix.startswith("That is allowed")


async def test_a_bot_that_leaves_after_a_deal(autojump_clock: object) -> None:
    found = await examined(bot(chokes_on(lambda message: message["type"] == "over")), deals=8)
    assert found["durak positions"].fault == found["durak deals"].fault == "crash/exit"
    assert found["durak positions"].fix.endswith("exit only at `bye` or the end of stdin.")
    assert "deal 2, seat 0, step 0" in found["durak deals"].evidence


async def test_a_bot_that_fails_at_bye(autojump_clock: object) -> None:
    found = await examined(bot(chokes_on(lambda message: message["type"] == "bye")))
    assert verdicts(found) == {"bye": "warn"}
    assert found["bye"].evidence == "3 of 3 processes ended with exit code 3 after `bye`"


async def test_a_bot_that_stays_after_bye(autojump_clock: object) -> None:
    async def stays(end: BotEnd) -> int | None:
        await bot(lambda end, message, number: None)(end)
        await trio.sleep_forever()

    found = await examined(stays)
    assert verdicts(found) == {"bye": "warn"}
    assert found["bye"].evidence == "3 of 3 processes still ran 1000 ms after `bye`"


async def test_a_bot_that_never_answers(autojump_clock: object) -> None:
    found = await examined(bot(chokes_on(lambda message: message["type"] in ("ask", "bye"))))
    assert found["durak positions"].figures["faults"] == 16
    assert found["decision time"] == Finding("decision time", "skip", "it took no decision")
    assert found["deterministic"].verdict == "skip"
    assert found["durak deals"].figures["faults"] == 4


async def test_a_bot_that_forfeits_is_not_asked_on(autojump_clock: object) -> None:
    found = await examined(bot(choose=lambda ask: "castle"), deals=20)
    told = found["durak deals"].figures
    assert told["faults"] == told["deals"]
    assert told["deals"] in range(6, 20)


async def test_a_bot_that_starts_only_sometimes(autojump_clock: object) -> None:
    starts: list[int] = []

    def limps(end: BotEnd, message: Message, number: int) -> int | None:
        if message["type"] == "hello":
            starts.append(number)
            return 7 if len(starts) % 3 == 0 else None
        return 3 if message["type"] == "ask" and len(message["legal"]) > 20 else None

    found = await examined(bot(limps), deals=2)
    assert found["handshake"].verdict == "ok"
    assert found["durak positions"].verdict == "FAIL"
    assert found["durak deals"].verdict == "FAIL"


async def test_a_fault_in_a_whole_deal_names_the_place(autojump_clock: object) -> None:
    def choose(ask: Message) -> str:
        return "castle" if ask["observation"]["seats"] == 4 else first(ask)  # which no position has

    found = await examined(bot(choose=choose))
    assert verdicts(found) == {"durak deals": "FAIL"}
    assert found["durak deals"].fault == "illegal/action"
    assert "at 4 seats, deal 1, seat 1, step 0: illegal/action: " in found["durak deals"].evidence
    assert found["durak deals"].evidence.startswith("2 faults in 4 deals; against itself ")


async def test_a_bot_that_remembers_earlier_deals_is_warned(autojump_clock: object) -> None:
    def counts(message: Message) -> str:
        legal = message["legal"]
        chosen: str = legal[message["id"] % len(legal)]
        return chosen

    found = await examined(bot(choose=counts), deals=8)
    assert verdicts(found) == {"deterministic": "warn"}
    assert found["deterministic"].evidence.startswith("no: durak deal ")
    assert "cannot be played again" in found["deterministic"].fix


async def test_a_slow_bot_is_warned(autojump_clock: object) -> None:
    async def slow(end: BotEnd) -> int | None:
        await trio.sleep(6)
        end.send(HELLO)
        while (message := await end.receive())["type"] != "bye":
            if message["type"] == "ask":
                await trio.sleep(0.6)
                end.send(act(message, first(message)))
        return 0

    found = await examined(slow, deals=1)
    assert found["handshake"].verdict == found["decision time"].verdict == "warn"
    assert found["handshake"].figures == {"hello_ms": 6000.0, "startup_ms": 10_000}
    assert "p50 600.0  p95 600.0  p99 600.0  max 600.0 of 1000 ms" in found["decision time"].evidence


async def test_a_bot_that_prints_much_is_warned(autojump_clock: object) -> None:
    async def talkative(end: BotEnd) -> int | None:
        while (message := await end.receive())["type"] != "bye":
            if message["type"] == "hello":
                end.send(HELLO)
            elif message["type"] == "deal":
                await end.complain(b"." * (2 << 20))
            elif message["type"] == "ask":
                end.send(act(message, first(message)))
        return 0

    found = await examined(talkative, deals=1)
    assert verdicts(found).get("stderr") == "warn"
    assert "2.0 MiB a deal" in found["stderr"].evidence


@pytest.mark.parametrize("game", sorted(GAMES))
def test_positions_are_at_the_edges_and_always_the_same(game: str) -> None:
    rules = GAMES[game]
    for seats in (rules.seats[0], rules.seats[-1]):
        found = positions(rules, seats, seats - 1)
        assert [one.events for one in found] == [one.events for one in positions(rules, seats, seats - 1)]
        for one in found:
            assert seats - 1 in one.state.actors
            assert len(one.state.legal_actions(seats - 1)) == one.legal
            assert all(event.seen_by is None or seats - 1 in event.seen_by for event in one.events)
        asked = {case.what: case.position for case in cases(found)}
        assert len(asked) == len(found) + 3
        assert max(one.legal for one in found) > 15
        assert min(one.legal for one in found) <= 2


def test_some_backlog_is_too_long_for_an_ask() -> None:
    rules = GAMES["smokestack"]
    found = positions(rules, rules.seats[-1], rules.seats[-1] - 1)
    assert max(map(history_bytes, found)) > BACKLOG_BYTES


def test_every_fault_has_its_fix_in_one_sentence() -> None:
    for kind, details in FAULT_DETAILS.items():
        for detail in details:
            fix = fix_of(BotError(kind, detail, ""))
            assert fix.endswith(".")
            assert ". " not in fix


def test_against_the_opponent_every_deck_is_dealt_once_and_every_seat_is_taken() -> None:
    for seats in (2, 4):
        specs = random_specs(BOT, RANDOM, "durak", Clock(), 5, seats)
        keys = [key for spec in specs for key in spec.decks]
        assert len(keys) == len(set(keys)) == 5
        taken = [seat for spec in specs for seat, place in enumerate(spec.legs[0]) if spec.bots[place] == BOT]
        assert sorted(taken) == list(range(seats))
    assert len(random_specs(BOT, RANDOM, "durak", Clock(), 1, 2)) == 1


def test_memory_is_judged_against_the_limit() -> None:
    assert judge_memory(0, 512).verdict == "skip"
    assert judge_memory(256 << 10, 512).evidence == "at most 256 of 512 MiB"
    assert judge_memory(257 << 10, 512).verdict == "warn"


class Real:
    """A process that is known by its descriptor only."""

    def __init__(self, pidfd: int) -> None:
        self.pidfd = pidfd


def test_the_memory_of_a_tree_is_read_while_it_lives() -> None:
    hog = "print(end=str(len(bytearray(40 << 20))), flush=True); input()"
    tree = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hog!r}])"
    started = subprocess.Popen([sys.executable, "-c", tree], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert started.stdin is not None
    assert started.stdout is not None
    process = Real(os.pidfd_open(started.pid))
    try:
        started.stdout.read(1)
        assert 40 << 10 < peak_kib(process) < 200 << 10
    finally:
        started.communicate(b"\n")
        assert peak_kib(process) == 0
        os.close(process.pidfd)
    assert peak_kib(Real(-1)) == 0


async def test_stderr_is_told_in_sizes_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)
    spec = check_spec(BOT, "durak", 1, Clock())
    played = await play_deals(spec, BOT, fake_host())
    assert judge_stderr([played]).evidence == "0 bytes a deal in 1 deal"


class TestSubmission:
    """The short form."""

    @pytest.fixture(autouse=True)
    def fake_bots(self, monkeypatch: pytest.MonkeyPatch) -> None:
        use_fake_bots(monkeypatch)

    @pytest.mark.parametrize("game", sorted(GAMES))
    def test_the_match_is_always_the_same_one_against_itself(self, game: str) -> None:
        (one,) = refs(1)
        spec = check_spec(one, game, 3, Clock(decision_ms=9))
        assert spec == check_spec(one, game, 3, Clock(decision_ms=9))
        assert (spec.id, spec.bots, len(spec.decks), spec.legs) == (3, (one, one), 1, ((0, 1),))
        assert spec.clock.decision_ms == 9
        assert len({check_spec(one, name, 1, Clock()).decks for name in GAMES}) == len(GAMES)

    async def test_a_clean_bot_plays_all_its_games(self) -> None:
        played: list[str] = []

        def hosts(spec: MatchSpec) -> Host:
            played.append(spec.game)
            return fake_host()

        assert await first_fault(refs(1)[0], sorted(GAMES), hosts) is None
        assert played == sorted(GAMES)

    async def test_the_first_game_with_a_fault_ends_it(self) -> None:
        (one,) = refs(1, {0: ("startup", 1)})
        found = await first_fault(one, ["durak", "avalanche"], lambda spec: fake_host(), Clock(startup_ms=5))
        assert found is not None
        game, fault = found
        assert (game, fault.kind, fault.deck, fault.leg) == ("durak", FaultKind.STARTUP, 0, 0)

    async def test_a_void_deal_is_not_the_bots_fault(self) -> None:
        def hosts(spec: MatchSpec) -> Host:
            raise InfraError("the sandbox is gone")

        with pytest.raises(InfraError, match="the sandbox is gone"):
            await first_fault(refs(1)[0], sorted(GAMES), hosts)
