"""A position of a stored deal asked again: the bot is told what its seat was told, in one ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from arena.errors import ConfigError
from arena.explain import dialogue
from arena.games import GAMES
from arena.lane import LaneConfig, host_for
from arena.position import Answer, Position, ask_again, find_position, position_spec
from arena.records import Clock, DealRecord, Fault, MatchRecord
from arena.referee import Host
from arena.rules import rule_set_id
from arena.sandbox import available_level
from arena.sandbox.environment import make_runtime
from arena.store.matches import StoredMatch
from tests.fakes import (
    HELLO,
    MACHINE,
    BotEnd,
    Fakes,
    Message,
    Script,
    act,
    at_ask,
    bot_ref,
    first,
    illegal,
    last,
    play,
    player,
    silent,
    spec_of,
)
from tests.scripts import script

CLOCK = Clock(decision_ms=400, bank_ms=2000, increment_ms=20, startup_ms=3000)


@cache
def played(game: str, seats: int, fault_at: int = 0) -> tuple[StoredMatch, MatchRecord]:
    """Play a match of bots that take their time; seat 1 gives an illegal action at its ask of that number."""
    names = [f"bot-{seat}" for seat in range(seats)]
    spec = spec_of(*names, game=game, clock=CLOCK)
    scripts: dict[str, Script] = {name: player(last, think_s=0.001) for name in names}
    if fault_at:
        scripts["bot-1"] = at_ask(fault_at, illegal)

    async def main() -> MatchRecord:
        return await play(spec, scripts)

    record = trio.run(main, clock=MockClock(autojump_threshold=0))
    rules = rule_set_id(GAMES[game], spec.options)
    places, hashes = tuple(range(seats)), tuple(bot.hash for bot in spec.bots)
    match = StoredMatch(7, 1, game, 1, rules, "played", places, tuple(names), hashes, spec.decks, spec.legs, "none")
    return match, record


def ask(position: Position, bot: Script) -> Answer:
    """Ask a fake bot a position."""

    async def main() -> Answer:
        async with trio.open_nursery() as nursery:
            host = Host(Fakes(nursery, {"mine": bot}).open, "none", MACHINE, "0", lambda: 0.0, spin_s=0.0)
            return await ask_again(position, position_spec(position, bot_ref("mine"), CLOCK), host)

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def listener(heard: list[Message]) -> Script:
    async def listen(end: BotEnd) -> int | None:
        await end.receive()
        end.send(HELLO)
        while True:
            message = await end.receive()
            heard.append(message)
            if message["type"] == "ask":
                await end.complain(b"thinking\n")
                end.send(act(message, first(message), note="hm"))

    return listen


def asked_in(match: StoredMatch, deal: DealRecord, faults: Sequence[Fault], seat: int) -> list[tuple[int, Any, Any]]:
    """Return step and message of each ask that a seat got, each with all events that it had been told by then."""
    lines, is_genuine = dialogue(match, deal, seat, faults, CLOCK)
    assert is_genuine
    events: list[object] = []
    found = []
    for line in lines:
        if line.message.get("type") in ("ask", "events"):
            told = line.message["events"]
            assert isinstance(told, list)
            events = events + told
        if line.message.get("type") == "ask":
            found.append((line.step, line.message, events))
    return found


@pytest.mark.parametrize(
    ("game", "seats", "fault_at"), [("avalanche", 2, 5), ("avalanche", 3, 4), ("durak", 3, 6), ("smokestack", 3, 4)]
)
def test_a_bot_is_asked_as_its_seat_was(game: str, seats: int, fault_at: int) -> None:
    match, record = played(game, seats, fault_at)
    (deal,) = record.deals
    asks = [(seat, *one) for seat in range(seats) for one in asked_in(match, deal, record.faults, seat)]
    for seat, step, message, events in asks[:: len(asks) // 12 + 1]:
        heard: list[Message] = []
        position = find_position(match, deal, record.faults, CLOCK, [seat], step)
        answer = ask(position, listener(heard))
        kinds = [one["type"] for one in heard]
        assert (kinds[0], kinds[1:]) == ("deal", ["events"] * (len(kinds) - 2) + ["ask"])
        again = heard[-1]
        assert {key: again[key] for key in ("observation", "legal", "clock")} == {
            key: message[key] for key in ("observation", "legal", "clock")
        }
        assert [event for one in heard[1:] for event in one["events"]] == events
        assert again["id"] == 1
        assert position.legal == tuple(message["legal"])
        assert (answer.action, answer.note, answer.error) == (message["legal"][0], "hm", None)
        assert (answer.limit_us, answer.stderr) == (message["clock"]["decision_ms"] * 1000, b"thinking\n")


def test_what_was_played_or_went_wrong_there_is_known() -> None:
    match, record = played("avalanche", 2, 3)
    (deal,) = record.deals
    (fault,) = record.faults
    at_fault = find_position(match, deal, record.faults, CLOCK, [1], fault.step)
    assert (at_fault.fault, at_fault.played) == (fault, None)
    before = find_position(match, deal, record.faults, CLOCK, [0, 1], 0)
    assert (before.seat, before.fault, before.played) == (0, None, deal.steps[0])
    house = played("avalanche", 3, 3)
    (fault,) = house[1].faults
    position = find_position(house[0], house[1].deals[0], house[1].faults, CLOCK, [1], fault.step)
    assert position.played is not None
    assert position.played.elapsed_us == -1, "by the house"


def test_a_seat_that_is_not_asked_is_told_who_is_and_where_it_was() -> None:
    match, record = played("avalanche", 3)
    (deal,) = record.deals

    def refusal(seat: int, step: int) -> str:
        with pytest.raises(ConfigError) as error:
            find_position(match, deal, [], CLOCK, [seat], step)
        return str(error.value)

    assert refusal(1, 6) == "bot-1 is not asked at step 6, but bot-0 (seat 0); near it are its steps 1, 4, 7, 10"
    assert refusal(1, len(deal.steps) + 1).startswith("the deal has no step ")
    assert "but nobody: the deal is over; near it" in refusal(0, len(deal.steps))
    nothing = msgspec.structs.replace(deal, steps=())
    with pytest.raises(ConfigError, match=r"but bot-0 \(seat 0\); it is never asked in this deal"):
        find_position(match, nothing, [], CLOCK, [2], 0)


async def dies(end: BotEnd) -> int | None:
    await end.complain(b"no config\n")
    return 3


@pytest.mark.parametrize(
    ("bot", "kind", "detail", "elapsed_us", "limit_us"),
    [
        (dies, "startup", "exit", 0, 3_000_000),
        (lambda end: silent(end, {}), "startup", "silent", 3_000_000, 3_000_000),
        (at_ask(1, silent), "timeout", "silent", 400_000, 400_000),
    ],
)
def test_a_bot_that_fails_is_told_how(bot: Script, kind: str, detail: str, elapsed_us: int, limit_us: int) -> None:
    match, record = played("avalanche", 2)
    answer = ask(find_position(match, record.deals[0], [], CLOCK, [0], 0), bot)
    assert answer.error is not None
    assert (answer.error.kind, answer.error.detail, answer.action) == (kind, detail, None)
    assert (answer.elapsed_us, answer.limit_us) == (elapsed_us, limit_us)


def test_a_bot_that_speaks_before_it_is_asked_fails() -> None:
    match, record = played("avalanche", 2)
    (deal,) = record.deals

    async def hasty(end: BotEnd) -> int | None:
        end.send(HELLO, act({"id": 1}, "snow"))
        return await silent(end, {})

    answer = ask(find_position(match, deal, [], CLOCK, [0], 0), hasty)
    assert answer.error is not None
    assert (answer.error.kind, answer.action) == ("garbage", None)


@pytest.mark.parametrize("game", sorted(GAMES))
def test_a_real_bot_answers_a_position(tmp_path: Path, game: str) -> None:
    match, record = played(game, 2)
    position = find_position(match, record.deals[0], [], CLOCK, [0, 1], 1)
    body = (
        "hello()\nm = ask()\nprint(len(m['events']), file=sys.stderr, flush=True)\nanswer(m, m['legal'][-1])\nhang()\n"
    )
    spec = position_spec(position, script(tmp_path / "mine", body), CLOCK)
    config = LaneConfig(available_level()[0].value, str(make_runtime(tmp_path / "runtime")))
    host = msgspec.structs.replace(host_for(config, spec, MACHINE), clean_up=lambda: None)

    answer = trio.run(ask_again, position, spec, host)
    assert (answer.action, answer.error) == (position.legal[-1], None)
    assert int(answer.stderr) > 0
    assert 0 < answer.elapsed_us < answer.limit_us == 400_000
