"""Everything a Python bot needs to play in the arena: this one file and the `msgpack` package.

Copy it beside your `bot.py`. A whole bot:

    from arena_bot import Ask, run

    def choose(ask: Ask) -> str:
        return ask.rng.choice(ask.legal)

    run(choose, name="dice", version="1", games=["avalanche", "durak", "smokestack"])

`choose` is called for each decision and returns one of `ask.legal`, or a pair of it and a note (at most 64 bytes, kept
with the replay). What an ask holds is described at `Ask`; the observation alone is enough to play well, `ask.events`
tells what happened since the last ask. What the keys mean is in protocol.md.

`on_deal(deal)` is called when a deal starts, `on_over(over)` when it has ended: keep what you learn in globals or in an
object of your own. One process plays many deals, so start each of them afresh. Take all luck from `ask.rng`, which is
seeded for each deal: then your bot plays the same way every time, and a game it lost can be played again.

stdout is the protocol. Importing this file moves it aside, so that `print()` and the programs you start write to stderr
instead (which the arena keeps). `run` returns at the end of the match; an exception in `choose` ends the bot.
"""

from __future__ import annotations

import os
import random
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgpack

__all__ = ["Ask", "Deal", "Over", "run"]

PROTOCOL = 1

_out = os.dup(1)
os.dup2(2, 1)
sys.stdout = sys.stderr


class Deal:
    """What stays the same during a deal.

    game: "avalanche", "durak" or "smokestack"; version: of its rules; options: every rule option with its value.
    seats: how many play; seat: yours, 0 moves first. seed: of this deal; rng: a random.Random made from it.
    """

    __slots__ = ("game", "options", "rng", "seat", "seats", "seed", "version")

    def __init__(self, message: dict[str, Any]) -> None:
        self.game: str = message["game"]
        self.version: int = message["version"]
        self.options: dict[str, Any] = message["options"]
        self.seats: int = message["seats"]
        self.seat: int = message["seat"]
        self.seed: int = message["seed"]
        self.rng = random.Random(self.seed)


class Ask:
    """One decision to take.

    game, options, seats, seat, rng: as in `deal`. id: of this ask.
    events: what happened since the last ask, a list of dicts with a `kind`.
    observation: all you may know now, a dict. legal: the legal actions, a list of strings in ASCII order.
    clock: {"decision_ms": the time for this decision, "bank_ms": what is left for the deal}.
    """

    __slots__ = (
        "clock",
        "deal",
        "events",
        "game",
        "id",
        "legal",
        "observation",
        "options",
        "rng",
        "seat",
        "seats",
    )

    def __init__(self, deal: Deal, message: dict[str, Any], events: list[dict[str, Any]]) -> None:
        self.deal = deal
        self.game = deal.game
        self.options = deal.options
        self.seats = deal.seats
        self.seat = deal.seat
        self.rng = deal.rng
        self.id: int = message["id"]
        self.events = events
        self.observation: dict[str, Any] = message["observation"]
        self.legal: list[str] = message["legal"]
        self.clock: dict[str, int] = message["clock"]


class Over:
    """How a deal ended: `places` (1 is best) and `points` by seat, the `reason`, the last `events`, the `deal`."""

    __slots__ = ("deal", "events", "places", "points", "reason")

    def __init__(self, deal: Deal, message: dict[str, Any], events: list[dict[str, Any]]) -> None:
        self.deal = deal
        self.events = events
        self.places: list[int] = message["places"]
        self.points: list[int] = message["points"]
        self.reason: str = message["reason"]


Choose = Callable[[Ask], "str | tuple[str, str]"]


def run(
    choose: Choose,
    *,
    name: str = "",
    version: str = "",
    games: Sequence[str] = (),
    on_deal: Callable[[Deal], object] | None = None,
    on_over: Callable[[Over], object] | None = None,
) -> None:
    """Greet, then answer every ask with what `choose` returns, until the referee says bye or closes stdin.

    name, version, games: tell who you are; free text for logs.
    """
    if os.isatty(0):
        sys.exit("This bot is started by the arena, which talks to it on stdin and stdout; see protocol.md.")
    hello = {"type": "hello", "protocol": PROTOCOL, "name": name, "version": version, "games": list(games)}
    pack = msgpack.Packer(autoreset=True).pack
    deal: Deal | None = None
    events: list[dict[str, Any]] = []
    for message in _messages(_take_stdin()):
        kind = message["type"]
        if kind == "ask":
            assert deal is not None
            answer = choose(Ask(deal, message, events + message["events"] if events else message["events"]))
            events = []
            act = {"type": "act", "id": message["id"], "action": answer}
            if not isinstance(answer, str):
                act["action"], act["note"] = answer
            _send(pack(act))
        elif kind == "events":
            events += message["events"]
        elif kind == "deal":
            deal, events = Deal(message), []
            if on_deal is not None:
                on_deal(deal)
        elif kind == "over":
            if on_over is not None and deal is not None:
                on_over(Over(deal, message, events + message["events"]))
            events = []
        elif kind == "hello":
            _send(pack(hello))
        elif kind == "bye":
            return


def _take_stdin() -> int:
    """Move stdin aside too: a program that the bot starts must not read the referee's messages."""
    stdin = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return stdin


def _messages(stdin: int) -> Iterator[dict[str, Any]]:
    """Yield each message; os.read returns what is there, where a buffered reader would wait for more."""
    buffer = b""
    size = -1
    while True:
        while len(buffer) < 4 or len(buffer) < (size := 4 + int.from_bytes(buffer[:4], "big")):
            data = os.read(stdin, 1 << 16)
            if not data:
                return
            buffer = buffer + data if buffer else data
        yield msgpack.unpackb(buffer[4:size])
        buffer = buffer[size:]


def _send(body: bytes) -> None:
    data = struct.pack(">I", len(body)) + body
    while data:
        data = data[os.write(_out, data) :]
