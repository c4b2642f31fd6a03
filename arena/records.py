"""Plain frozen data that crosses layers: what to play, what was played, what it says.

Running a match is one function from `MatchSpec` to `MatchRecord`; both are plain values, so that the same function
serves a test, a lane on this machine and a node of a cluster. Times are integers: `_ms` or `_us` by their suffix.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NewType

import msgspec

from arena.errors import FaultKind
from arena.rules import Action, OutcomeType, Seat, Value


class Level(StrEnum):
    """How far a bot is contained, the best first; stored with every match."""

    STRICT = "strict"
    NAMESPACED = "namespaced"
    LANDLOCK = "landlock"
    NONE = "none"


BotHash = NewType("BotHash", str)
"""The identity of a bot: SHA-256 of its bundle in lower-case hex."""


class Clock(msgspec.Struct, frozen=True):
    """The time limits of a deal, in milliseconds."""

    decision_ms: int = 1000
    """Hard cap of each decision."""
    bank_ms: int = 20_000
    """Pays all thinking of a seat in a deal."""
    increment_ms: int = 50
    """Added to the bank after each action."""
    startup_ms: int = 10_000
    """From the start of a process to its hello."""


class BotRef(msgspec.Struct, frozen=True):
    """A bot as a lane needs it.

    Attributes:
        name: for messages and logs; never shown to another bot.
        hash: the bundle.
        folder: where its unpacked bundle lies on this machine.
        out: the folder of its build, or None if it has none.
        command: the argument list, placeholders filled in by the launcher.
    """

    name: str
    hash: BotHash
    folder: str
    command: tuple[str, ...]
    out: str | None = None


class MatchSpec(msgspec.Struct, frozen=True):
    """One table, one game, D decks, each played in every leg.

    Attributes:
        id: the match's number in its database.
        bots: by place at the table (not by seat).
        decks: the 32-byte key of each deck, in the order of play.
        legs: for each leg, who sits where: `legs[leg][seat]` is an index into `bots`.
    """

    id: int
    game: str
    version: int
    options: dict[str, Value]
    bots: tuple[BotRef, ...]
    decks: tuple[bytes, ...]
    legs: tuple[tuple[int, ...], ...]
    clock: Clock = Clock()


class Fault(msgspec.Struct, frozen=True):
    """A bot's failure in a deal.

    Attributes:
        kind: with `detail`, what happened; a closed set (`arena.errors.FAULT_DETAILS`).
        deck: with `leg`, the deal within the match.
        seat: who failed.
        step: the number of actions applied before it.
        text: what happened, in words for the author; what to do about it is `arena.errors.FAULT_ADVICE`.
        evidence: raw bytes that prove it, at most 4 KiB.
        stderr: the tail of what the process wrote to stderr.
        elapsed_us: from the start of writing what was not answered well to its fault; -1 if nothing was asked.
        limit_us: the time there was for it; -1 if nothing was asked.
    """

    kind: FaultKind
    detail: str
    deck: int
    leg: int
    seat: Seat
    step: int
    text: str
    evidence: bytes = b""
    stderr: bytes = b""
    elapsed_us: int = -1
    limit_us: int = -1


class Log(msgspec.Struct, frozen=True):
    """What a process of a bot wrote to stderr, its head and its tail where it is long.

    Attributes:
        place: whose, an index into the match's bots.
        first_deck: with `leg`, the deal that the process was started for.
        last_deck: the last deal that it played in.
    """

    leg: int
    place: int
    first_deck: int
    last_deck: int
    text: bytes


class Step(msgspec.Struct, frozen=True, array_like=True):
    """One action of a deal.

    Attributes:
        elapsed_us: from the start of writing the ask to the end of decoding the answer; -1 if the house played.
        note: what the bot said with it, at most 64 bytes of UTF-8.
    """

    seat: Seat
    action: Action
    elapsed_us: int
    note: str = ""


class DealRecord(msgspec.Struct, frozen=True):
    """One play-out of a deck.

    Attributes:
        seating: `seating[seat]` is an index into the match's bots.
        steps: the replay: every action in order, house actions included.
        places: by seat; faulted seats below all others.
        points: by seat, as the game counts.
        reason: the game's reason, or `fault`, or `forfeit` when nobody was asked.
        rated: False for a deal that counts in the standings only.
        digests: by seat, SHA-256 of all messages sent to it in this deal without `clock`; empty if it was not dealt in.
        first_ids: by seat, the id of its first ask in this deal (ids count per process).
        cpu_us: by seat, CPU time of the bot's process during the deal; -1 where unknown.
        stale: by seat, answers with an older id that were dropped.
        lag_us: the largest lag of the lane during the deal.
    """

    deck: int
    leg: int
    seating: tuple[int, ...]
    steps: tuple[Step, ...]
    places: tuple[int, ...]
    points: tuple[int, ...]
    reason: str
    rated: bool
    digests: tuple[bytes, ...]
    first_ids: tuple[int, ...]
    cpu_us: tuple[int, ...]
    stale: tuple[int, ...]
    lag_us: int
    duration_us: int


class Placing(msgspec.Struct, frozen=True):
    """Who finished where in a deal; `seating` and `places` as in `DealRecord`."""

    deck: int
    leg: int
    seating: tuple[int, ...]
    places: tuple[int, ...]


class Machine(msgspec.Struct, frozen=True):
    """Facts of the machine that a match was played on; two machines with equal facts are one to the store."""

    system: str
    processor: str
    cores: int
    memory_mib: int
    python: str


class MatchRecord(msgspec.Struct, frozen=True):
    """What came of a match.

    Attributes:
        id: the spec's id.
        deals: in the order of play: leg after leg, within a leg deck after deck.
        faults: in the order in which they happened.
        logs: of each process that wrote to stderr, in the order in which they ended.
        isolation: the level its bots ran at.
        engine: version of this project.
        protocol: version of the wire protocol.
        core: the core its lane was pinned to, or -1.
        started_at: seconds since the epoch, UTC.
    """

    id: int
    deals: tuple[DealRecord, ...]
    faults: tuple[Fault, ...]
    isolation: str
    engine: str
    protocol: int
    machine: Machine
    core: int
    started_at: float
    duration_us: int
    logs: tuple[Log, ...] = ()


class TableScore(msgspec.Struct, frozen=True):
    """A complete match as schedules and standings see it: duels in half points, ties included.

    Attributes:
        round: 1-based.
        table: entrants by their number in the tournament.
        duels: `duels[i][j]` half points (2 win, 1 tie, 0 loss) of `table[i]` against `table[j]`, summed over the deals.
        deals: the number of deals, decks times legs.
        sets_won: by entrant, deal sets in which it alone had the most duel points.
    """

    round: int
    table: tuple[int, ...]
    duels: tuple[tuple[int, ...], ...]
    deals: int
    sets_won: tuple[int, ...] = ()


class Round(msgspec.Struct, frozen=True):
    """Tables that may run in parallel.

    Attributes:
        number: 1-based.
        tables: entrants at each table; the order is the circle they sit in.
        byes: entrants that do not play.
    """

    number: int
    tables: tuple[tuple[int, ...], ...]
    byes: tuple[int, ...] = ()


TIEBREAKS = (
    "direct encounter",
    "buchholz",
    "buchholz cut 1",
    "sonneborn-berger",
    "median duel",
    "sets won",
    "lot",
)
"""What decides among equal points, in this order unless a tournament has its own; more is better. A value of None is
worse than any number."""


class Standing(msgspec.Struct, frozen=True):
    """A line of a table of standings.

    Attributes:
        place: 1-based; entrants that no tie-break separates share it.
        points: sum of round scores, each in 0 ... 1.
        tiebreaks: values in the order of `TIEBREAKS`; None where one does not apply.
        rounds: complete rounds in which it sat at a table.
        mark: `withdrawn`, or `disqualified`, which is below all others; else empty.
    """

    entrant: int
    place: int
    points: float
    tiebreaks: tuple[float | None, ...]
    rounds: int
    deals: int
    byes: int
    mark: Literal["", "withdrawn", "disqualified"] = ""


class RatedDeal(msgspec.Struct, frozen=True):
    """A deal as the rating sees it.

    Attributes:
        deck: names the deck; equal decks (all legs, all tables) are one cluster.
        bots: by seat.
        places: by seat.
    """

    deck: str
    bots: tuple[BotHash, ...]
    places: tuple[int, ...]


class RatedMatch(msgspec.Struct, frozen=True):
    """The deals of a match as the rating sees them: many at once, since there may be a million.

    Attributes:
        bots: by place at the table.
        decks: names as those of a `RatedDeal`.
        dealt: by deal, the index of its deck.
        seatings: for each deal a byte a seat, the place at the table of who sits there.
        places: for each deal a byte a seat.

    Raises:
        ValueError: these do not fit together.
    """

    bots: tuple[BotHash, ...]
    decks: tuple[str, ...]
    dealt: tuple[int, ...]
    seatings: bytes
    places: bytes

    def __post_init__(self) -> None:
        seats = len(self.bots)
        if not seats or {len(self.seatings), len(self.places)} != {seats * len(self.dealt)}:
            counts = f"{len(self.seatings)} seats and {len(self.places)} places"
            raise ValueError(f"{len(self.dealt)} deals of deck {self.decks[0]!r} on with {seats} bots have {counts}")
        if self.dealt and not 0 <= min(self.dealt) <= max(self.dealt) < len(self.decks):
            raise ValueError(f"deals of deck {self.decks[0]!r} on are of decks that the match has not")
        if not _each_sits_once(seats, self.seatings):
            raise ValueError(f"in a deal of deck {self.decks[0]!r} on somebody sits twice")

    def deals(self) -> Iterator[RatedDeal]:
        """Yield its deals one by one."""
        seats = len(self.bots)
        for number, deck in enumerate(self.dealt):
            of = slice(number * seats, (number + 1) * seats)
            bots = tuple(self.bots[place] for place in self.seatings[of])
            yield RatedDeal(self.decks[deck], bots, tuple(self.places[of]))


@lru_cache
def _each_sits_once(seats: int, seatings: bytes) -> bool:
    everybody = bytes(range(seats))
    return all(bytes(sorted(seatings[start : start + seats])) == everybody for start in range(0, len(seatings), seats))


class PoolKey(msgspec.Struct, frozen=True, order=True):
    """Results that may be rated together share all of these."""

    game: str
    rule_set: str
    seats: int
    isolation: str
    outcome_type: OutcomeType = "ranking"


class Rating(msgspec.Struct, frozen=True):
    """A bot's strength in a pool, or overall.

    Attributes:
        elo: the fit, mean 1500 over the pool or an anchor bot held at its value.
        error: half width of the 95 % interval against the pool's mean or the anchor, in Elo; None below 10 clusters
            and for a bound.
        deals: rated deals it played.
        wins: deals in which it was first alone or, in a single_loser game, somebody else was the loser.
        bound: `>` or `<` where it beat or lost to everybody and the prior alone keeps the value finite.
        partial: it lacks one of the games of an overall rating, so it is not ranked there.
        ranks: the best and the worst place that it may have in its pool, among those with an error bar.
    """

    bot: BotHash
    elo: float
    error: float | None
    deals: int
    wins: int
    bound: Literal["", ">", "<"] = ""
    partial: bool = False
    ranks: tuple[int, int] | None = None

    @property
    def provisional(self) -> bool:
        """Whether nobody can say yet how sure it is: it rests on fewer than ten decks, or is only a bound."""
        return self.error is None
