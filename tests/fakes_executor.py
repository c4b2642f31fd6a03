"""An executor without processes: the real referee, with bots that are functions of what they are asked.

A bot's command says how it plays: `("hash",)` chooses by a hash of what it sees, `("hash", FAULT, N)` also commits the
fault on about one in N asks (or starts). So a match is a function of its spec, whenever and wherever it is played.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgpack
import msgspec
import pytest
import trio
from sqlite_utils import Database

from arena.bot import Process, Tail
from arena.errors import BotError, FaultKind, InfraError
from arena.extension import cast
from arena.games import GAMES
from arena.luck import derive
from arena.plan import Plan, final_standings, match_counts, new_tournament
from arena.records import BotHash, BotRef, DealRecord, Machine, MatchRecord, MatchSpec, RatedDeal, RatedMatch
from arena.referee import Host, play_match
from arena.rules import complete_options
from arena.sandbox import Excess, Usage
from arena.schedule.seatings import seatings
from arena.store import bots as kept_bots
from arena.store import matches, ratings, tournaments
from arena.store.database import writing
from arena.store.tournaments import Entrant, Tournament
from arena.wire import PROTOCOL, Act, Conversation, Hello, encode

MACHINE = Machine("Linux 6", "fake", 2, 4096, "3.11")


class FakeProcess:
    """A process that only knows whose it is and the how many-th of its match."""

    stdin = stdout = stderr = pidfd = -1

    def __init__(self, ref: BotRef, start: int) -> None:
        self.ref = ref
        self.start = start

    def exit_code(self) -> int | None:
        return None

    def cpu_us(self) -> int:
        return 7

    def usage(self) -> Usage:
        return Usage(1, 0, 0)

    def excess(self, used: Usage | None = None) -> Excess | None:
        return None

    def pause(self) -> None:
        """Nothing runs."""

    def resume(self) -> None:
        """Nothing runs."""

    def kill(self) -> None:
        """Nothing runs."""


class FakeBot:
    """What the referee needs of `arena.bot.Bot`; an ask is answered while it is sent."""

    def __init__(self, process: Process) -> None:
        assert isinstance(process, FakeProcess)
        self.process = process
        self.talk = Conversation()
        self.stderr = Tail()
        self.answer: Act | Hello | None = None
        self.error: BotError | None = None
        self.elapsed_us = 0
        self.began = 0.0
        command = process.ref.command
        self._fault, self._one_in = (command[1], int(command[2])) if len(command) > 1 else ("", 1)

    def close(self) -> None:
        """Nothing is held."""

    def excuse(self, seconds: float) -> None:
        """Nothing takes time."""

    def look(self) -> int:
        return 0

    async def drain_stderr(self) -> None:
        """Nothing is written."""

    def read_stderr(self) -> bool:
        return True

    def send(self, data: bytes) -> None:
        """Nobody reads."""

    def check_waiting(self) -> None:
        if self._fault == "waiting" and self.talk.asked % self._one_in == 0:
            raise BotError(FaultKind.GARBAGE, "id", "your bot sent a message before it was asked")

    def begin(self, ask: bytes, limit_s: float, limit_is: str = "") -> None:
        self.answer = self.error = None
        self.elapsed_us = 0
        if not self.talk.asked and self.talk.state.value == "greeting":
            self._greet()
            return
        message = msgpack.unpackb(ask[4:])
        seen = msgpack.packb([self.process.ref.hash, message["observation"], message["legal"]])
        luck = int.from_bytes(hashlib.sha256(seen).digest()[:8], "big")
        self.elapsed_us = 50 + luck % 50
        if self._fault == "crash" and luck % self._one_in == 0:
            self.error = BotError(FaultKind.CRASH, "exit", "your bot ended", b"evidence \x00\xff")
            self.stderr.add(b"Traceback \xff")
            return
        action = "nonsense" if self._fault == "illegal" and luck % self._one_in == 0 else None
        chosen = action or message["legal"][luck // 1000 % len(message["legal"])]
        answer = {"type": "act", "id": message["id"], "action": chosen}
        if luck % 5 == 0:
            answer["note"] = f"thought {luck % 100}"
        self.answer = self.talk.receive(encode(answer))

    def _greet(self) -> None:
        if self._fault == "startup" and self.process.start % self._one_in == 0:
            self.error = BotError(FaultKind.STARTUP, "exit", "your bot ended with exit code 1 before its hello")
        else:
            self.answer = self.talk.receive(encode({"type": "hello", "protocol": PROTOCOL}))


async def settle(bots: Sequence[FakeBot], spin_s: float = 0, others: Iterable[FakeBot] = ()) -> None:
    """All are settled already."""


def use_fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the referee play with fake bots."""
    monkeypatch.setattr("arena.referee.Bot", FakeBot)
    monkeypatch.setattr("arena.referee.settle", settle)


def fake_host() -> Host:
    """Return a host for one match."""
    starts: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def open_process(ref: BotRef) -> AsyncIterator[Process]:
        starts[ref.hash] += 1
        yield FakeProcess(ref, starts[ref.hash])

    return Host(open_process, "none", MACHINE, "0.1.0", now=lambda: 1_000_000.0)


class FakeLanes:
    """Plays matches in this process; with a shuffle they take random times, so that they end in any order.

    Attributes:
        voids: by match id, how often it is void before it can be played; -1 for ever.
        void: why.
        played: ids in the order of completion.
        most: the most matches that were handed over at a time.
        stop_after: matches after which `stopping` is set, as Ctrl-C would.
        fail_after: matches after which playing raises, as if the power went.
    """

    def __init__(self, lanes: int = 2, shuffle: int | None = None) -> None:
        self.lanes = lanes
        self.voids: dict[int, int] = {}
        self.void = InfraError("the lane died")
        self.played: list[int] = []
        self.most = 0
        self.stopping = trio.Event()
        self.stop_after = self.fail_after = -1
        self._idle = trio.CapacityLimiter(lanes)
        self._luck = random.Random(shuffle) if shuffle is not None else None
        self._given = 0

    async def play(self, spec: MatchSpec) -> MatchRecord:
        self._given += 1
        self.most = max(self.most, self._given)
        try:
            async with self._idle:
                return await self._play(spec)
        finally:
            self._given -= 1

    async def _play(self, spec: MatchSpec) -> MatchRecord:
        if self.voids.get(spec.id, 0):
            self.voids[spec.id] -= 1
            raise self.void
        if len(self.played) == self.fail_after:
            raise KeyboardInterrupt
        if self._luck:
            await trio.sleep(self._luck.random())
        record = await play_match(spec, fake_host())
        self.played.append(spec.id)
        if len(self.played) == self.stop_after:
            self.stopping.set()
        return record


def refs(count: int, faults: Mapping[int, tuple[str, int]] | None = None) -> list[BotRef]:
    """Return so many bots; some with a habit of committing a fault on one in so many asks."""
    found = []
    for number in range(count):
        fault = (faults or {}).get(number)
        command = ("hash", fault[0], str(fault[1])) if fault else ("hash",)
        digest = hashlib.sha256(f"bot {number}".encode()).hexdigest()
        found.append(BotRef(f"bot-{number}", BotHash(digest), "/nowhere", command))
    return found


def begin(
    db: Database,
    plan: Plan,
    bots: Iterable[BotRef],
    *,
    name: str = "spring",
    seed: int | None = 1,
    kind: str = "tournament",
    games: Mapping[str, tuple[str, ...]] | None = None,
    cast_known: bool = False,
) -> Tournament:
    """Store a new tournament and its bots, which play all its games unless `games` says otherwise by name."""
    ordered = sorted(bots, key=lambda bot: bot.hash)
    played = {bot.name: (games or {}).get(bot.name, tuple(plan.games)) for bot in ordered}
    entrants = [Entrant(number, bot.name, bot.hash, played[bot.name]) for number, bot in enumerate(ordered)]
    count = sum(match_counts(plan, entrants).values())
    with writing(db):
        for bot in ordered:
            kept_bots.add_bot(db, bot.hash, "", 1, 1, 1.0)
        if not cast_known:
            plan = msgspec.structs.replace(plan, cast=cast(db, plan, entrants, "none"))
        made = new_tournament(name, plan, "none", 1.0, count, seed=seed, kind=kind)
        return tournaments.get(db, tournaments.create(db, made, entrants))


def by_hash(bots: Iterable[BotRef]) -> dict[BotHash, BotRef]:
    return {bot.hash: bot for bot in bots}


def timeless(deal: DealRecord) -> DealRecord:
    """Return a deal without what a clock said."""
    return msgspec.structs.replace(deal, lag_us=0, duration_us=0)


def result(db: Database, tournament: Tournament, games: Iterable[str]) -> bytes:
    """Return everything that a tournament came to, without the numbers and times that its course depends on."""
    found: list[object] = [(stage.master, stage.commitment) for stage in tournament.stages]
    for game in games:
        for played, complete in tournaments.rounds(db, tournament.id, game):
            found.append((game, played, complete))
            for number, table in matches.tables(db, tournament.id, game, played.number):
                stored = matches.match(db, number)
                assert stored is not None
                deals = matches.deals(db, number)
                records = [matches.deal(db, number, deal.deck, deal.leg) for deal in deals]
                faults = [one.fault for one in matches.faults(db, number=number)]
                kept = (table, stored.state, stored.rule_set, stored.decks, stored.legs)
                found.append((kept, deals, [timeless(record) for record in records if record], faults))
        found.append(final_standings(db, tournament, game))
    for pool in ratings.pools(db):
        found += [pool.key, pool.deals, ratings.ratings(db, pool.id)]
        query = "SELECT tournament, round, hash, elo, error, deals FROM history WHERE pool = ? ORDER BY 1, 2, 3"
        found.append(list(db.execute(query, (pool.id,))))
    return msgspec.msgpack.encode(found)


def spec_of(bots: Sequence[BotRef], game: str, decks: int, number: int = 1) -> MatchSpec:
    """Return a match with the default options in the cyclic seatings."""
    rules = GAMES[game]
    options = complete_options(rules, len(bots), {})
    keys = tuple(derive(b"test", "deck", game, deck) for deck in range(decks))
    return MatchSpec(number, game, rules.version, options, tuple(bots), keys, seatings(len(bots), "rotate"))


def apart(rated: Iterable[RatedMatch]) -> list[RatedDeal]:
    """Return the deals of matches one by one."""
    return [deal for match in rated for deal in match.deals()]
