"""The Python SDK in a process of its own: whatever its bot prints or starts, only frames leave stdout."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import pytest

from arena import wire
from arena.wire import Act, Hello

SDK = Path(__file__).parents[1] / "bots" / "sdk" / "python"

Message = dict[str, Any]

HELLO: Message = {"type": "hello", "protocol": 1, "limits": {}}
BYE: Message = {"type": "bye"}
OVER: Message = {
    "type": "over",
    "events": [{"kind": "end"}],
    "places": [1, 2],
    "points": [0, -3],
    "reason": "durak",
}


def deal(seed: int = 7) -> Message:
    options = {"deck": 36}
    return {"type": "deal", "game": "durak", "version": 1, "options": options, "seats": 2, "seat": 1, "seed": seed}


def ask(number: int, events: Sequence[Message] = ()) -> Message:
    return {
        "type": "ask",
        "id": number,
        "events": list(events),
        "observation": {"hand": ["7s"]},
        "legal": ["pass", "take"],
        "clock": {"decision_ms": 1000, "bank_ms": 20000},
    }


def start(tmp_path: Path, source: str) -> subprocess.Popen[bytes]:
    program = tmp_path / "bot.py"
    program.write_text(textwrap.dedent(source))
    return subprocess.Popen(
        [sys.executable, str(program)],
        env={"PYTHONPATH": str(SDK), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def talk(tmp_path: Path, source: str, messages: Sequence[Message]) -> tuple[list[Hello | Act], str, int]:
    """Return what a bot answers to all messages at once, what it writes to stderr and its exit code."""
    with start(tmp_path, source) as process:
        out, err = process.communicate(b"".join(map(wire.encode, messages)), timeout=60)
    frames = wire.Frames()
    frames.feed(out)
    answers = []
    while (body := frames.take()) is not None:
        answers.append(wire.decode(body))
    assert not frames
    return answers, err.decode(), process.returncode


FIRST = """
    from arena_bot import Ask, run
    def choose(ask: Ask) -> str:
        return ask.legal[0]
    run(choose, name="first", version="2", games=["durak"])
"""


def test_the_smallest_bot(tmp_path: Path) -> None:
    answers, err, code = talk(tmp_path, FIRST, [HELLO, deal(), ask(1), ask(2), OVER, deal(), ask(3), OVER, BYE])
    assert answers == [Hello(1, "first", "2", ("durak",)), Act(1, "pass"), Act(2, "pass"), Act(3, "pass")]
    assert (err, code) == ("", 0)


def test_the_end_of_stdin_ends_a_bot(tmp_path: Path) -> None:
    answers, err, code = talk(tmp_path, FIRST, [HELLO, deal(), ask(1)])
    assert (len(answers), err, code) == (2, "", 0)


def test_unknown_messages_are_ignored(tmp_path: Path) -> None:
    answers, _, code = talk(tmp_path, FIRST, [HELLO, {"type": "later"}, deal(), ask(1), BYE])
    assert (answers[1:], code) == ([Act(1, "pass")], 0)


def test_prints_and_children_end_up_in_stderr(tmp_path: Path) -> None:
    source = """
        from arena_bot import run
        print("early")
        import os, subprocess
        def choose(ask):
            print("thinking")
            os.write(1, b"raw\\n")
            subprocess.run("echo child; cat", shell=True, check=True)
            return "take"
        run(choose)
    """
    answers, err, code = talk(tmp_path, source, [HELLO, deal(), ask(1), ask(2), BYE])
    assert answers == [Hello(1), Act(1, "take"), Act(2, "take")]
    assert (err.split(), code) == (["early", *["thinking", "raw", "child"] * 2], 0)


def test_what_an_ask_holds(tmp_path: Path) -> None:
    source = """
        from arena_bot import run
        def choose(ask):
            print(ask.id, ask.game, ask.options, ask.seats, ask.seat)
            print(ask.observation, ask.legal, ask.clock, ask.deal.seed)
            print([event["kind"] for event in ask.events], ask.rng.random())
            return "pass", "a note"
        run(choose, on_deal=lambda deal: print("deal", deal.game, deal.version, deal.rng.random()),
            on_over=lambda over: print("over", [e["kind"] for e in over.events], over.places, over.points, over.reason,
                                       over.deal.seat))
    """
    early: Message = {"type": "events", "events": [{"kind": "a"}, {"kind": "b"}]}
    messages = [HELLO, deal(), early, early, ask(1, [{"kind": "c"}]), ask(2), early, OVER, deal(), ask(3), OVER, BYE]
    answers, err, code = talk(tmp_path, source, messages)
    assert (answers[1:], code) == ([Act(n, "pass", "a note") for n in (1, 2, 3)], 0)
    lines = err.splitlines()
    assert lines[1] == "1 durak {'deck': 36} 2 1"
    assert lines[2] == "{'hand': ['7s']} ['pass', 'take'] {'decision_ms': 1000, 'bank_ms': 20000} 7"
    assert lines[3].startswith("['a', 'b', 'a', 'b', 'c'] 0.")
    assert lines[6].startswith("[] 0.")
    assert lines[7] == "over ['a', 'b', 'end'] [1, 2] [0, -3] durak 1"
    assert lines[8] == lines[0], "the same seed gives the same luck"
    assert lines[11].startswith("[] 0.")


def test_an_exception_ends_a_bot_with_a_traceback(tmp_path: Path) -> None:
    source = """
        from arena_bot import run
        run(lambda ask: 1 / 0)
    """
    answers, err, code = talk(tmp_path, source, [HELLO, deal(), ask(1)])
    assert (answers, code) == ([Hello(1)], 1)
    assert "ZeroDivisionError" in err


@pytest.mark.parametrize("size", [1, 3])
def test_messages_may_come_in_any_pieces(tmp_path: Path, size: int) -> None:
    data = b"".join(map(wire.encode, [HELLO, deal(), ask(1), BYE]))
    with start(tmp_path, FIRST) as process:
        assert process.stdin is not None
        for i in range(0, len(data), size):
            process.stdin.write(data[i : i + size])
            process.stdin.flush()
        out, _ = process.communicate(timeout=60)
    assert msgpack.unpackb(out[-30:][out[-30:].index(b"\x83") :]) == {"type": "act", "id": 1, "action": "pass"}


def test_an_answer_comes_before_the_next_message_is_sent(tmp_path: Path) -> None:
    with start(tmp_path, FIRST) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for sent, answer in ((HELLO, "hello"), (deal(), None), (ask(1), "act"), (ask(2), "act")):
            process.stdin.write(wire.encode(sent))
            process.stdin.flush()
            if answer is not None:
                size = int.from_bytes(process.stdout.read(4), "big")
                assert msgpack.unpackb(process.stdout.read(size))["type"] == answer
        process.communicate(wire.encode(BYE), timeout=60)
    assert process.returncode == 0


def test_a_long_message_is_read_whole(tmp_path: Path) -> None:
    source = """
        from arena_bot import run
        run(lambda ask: "pass" if len(ask.observation["hand"]) == 300000 else "take")
    """
    long = {**ask(1), "observation": {"hand": ["7s"] * 300_000}}
    answers, _, _ = talk(tmp_path, source, [HELLO, deal(), long, BYE])
    assert answers[1:] == [Act(1, "pass")]
