"""A file of everything: what each of its lines is, and how large it may be.

Each line is one JSON document that names its `schema`. They come in this order, and each belongs to the nearest line
above it that it can belong to:

    begin, bot ..., submission ..., (tournament, stage ..., entrant ...,
    (round, (match, (deal, steps ...) ...) ..., unplayed ...) ..., correction ...) ..., end

The types below are what a reader may rely on. A file may come from anybody, so every number, text and list is bounded.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from arena.errors import FaultKind
from arena.plan import Plan
from arena.records import Machine
from arena.rules import OutcomeType

MAX_LINE_BYTES = 4 << 20
"""A manifest may have 1 MiB before it is written as JSON; all else is far shorter."""
MAX_LINES = 50_000_000
MAX_STEPS = 1 << 21
"""Of a deal: more than any game's `max_decisions`."""
STEPS_A_LINE = 1000

_MAX_SEATS = 16
_BIG = 1 << 53  # what JSON numbers hold exactly, in any language
_FAR = 1e11  # seconds since the epoch: some thousand years

Index: TypeAlias = Annotated[int, Meta(ge=0, lt=1_000_000)]
Count: TypeAlias = Annotated[int, Meta(ge=0, lt=_BIG)]
Whole: TypeAlias = Annotated[int, Meta(gt=-_BIG, lt=_BIG)]
Micros: TypeAlias = Annotated[int, Meta(ge=-1, lt=_BIG)]
Time: TypeAlias = Annotated[float, Meta(ge=0, lt=_FAR)]
SeatNumber: TypeAlias = Annotated[int, Meta(ge=0, lt=_MAX_SEATS)]
PlaceNumber: TypeAlias = Annotated[int, Meta(ge=1, le=_MAX_SEATS)]
Key: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
"""32 bytes in hex: a hash, a deck key, a digest."""
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")]
Word: TypeAlias = Annotated[str, Meta(pattern=r"^[!-~]([ -~]{0,62}[!-~])?\Z")]
"""1 to 64 printable ASCII characters."""
Short: TypeAlias = Annotated[str, Meta(max_length=64)]
Long: TypeAlias = Annotated[str, Meta(max_length=8192)]
Bytes: TypeAlias = Annotated[bytes, Meta(max_length=4096)]
Seating: TypeAlias = Annotated[tuple[SeatNumber, ...], Meta(min_length=2, max_length=_MAX_SEATS)]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="schema"):
    """A line of the file."""


class Begin(_Line, frozen=True, tag="arena.export.begin/1"):
    """The first line; `arena` is the version that wrote it."""

    arena: Short


class Bot(_Line, frozen=True, tag="arena.export.bot/1"):
    """A bot by its hash; its files are not part of an export."""

    hash: Key
    manifest: str
    files: Count
    bytes: Count
    added_at: Time


class Submission(_Line, frozen=True, tag="arena.export.submission/1"):
    """A bot under a name, in the order in which they were submitted."""

    name: Short
    version: Annotated[int, Meta(ge=1, lt=1_000_000_000)]
    hash: Key
    author: Short
    submitted_at: Time
    retired_at: Time | None


class Tournament(_Line, frozen=True, tag="arena.export.tournament/1"):
    """A tournament or a play."""

    name: Short
    kind: Literal["tournament", "play"]
    isolation: Word
    engine: Word
    protocol: Index
    created_at: Time


class Stage(_Line, frozen=True, tag="arena.export.stage/1"):
    """A stage of the tournament, in the order of their numbers, which count from 1.

    Attributes:
        salt: with `master`, only once it is finished.
        players: the numbers of the entrants that play in it.
        first_match: the number of its first match; where none is named, the first that is free.
    """

    plan: Plan
    players: Annotated[tuple[Index, ...], Meta(max_length=10_000)]
    practice: bool
    commitment: Key
    salt: Key | None
    master: Key | None
    match_count: Annotated[int, Meta(ge=0, le=10_000_000)]
    created_at: Time
    finished_at: Time | None
    first_match: Count = 0


class Entrant(_Line, frozen=True, tag="arena.export.entrant/1"):
    """An entrant of the tournament, in the order of their numbers, which count from 0."""

    name: Short
    hash: Key
    games: Annotated[tuple[Short, ...], Meta(min_length=1, max_length=16)]


class Round(_Line, frozen=True, tag="arena.export.round/1"):
    """A complete round of a game of the tournament; numbers count from 1.

    Attributes:
        order: the how many-th of all rounds it was to be completed; 0 where that is not known.
    """

    game: Short
    number: Index
    stage: Index
    byes: Annotated[tuple[Index, ...], Meta(max_length=10_000)]
    order: Count = 0


class Scheduled(_Line, frozen=True):
    """A match of the round, as scheduled.

    Attributes:
        table: the entrants, by their place at the table.
        outcome_type: what the places of this rule set say.
    """

    id: Count
    table: Annotated[tuple[Index, ...], Meta(min_length=2, max_length=_MAX_SEATS)]
    rule_set: Annotated[str, Meta(max_length=1024)]
    outcome_type: OutcomeType
    decks: Annotated[tuple[Key, ...], Meta(min_length=1)]
    legs: Annotated[tuple[Seating, ...], Meta(min_length=1)]


class Unplayed(Scheduled, frozen=True, tag="arena.export.unplayed/1"):
    """A match of the round that is void without having been played."""


class Match(Scheduled, frozen=True, tag="arena.export.match/1"):
    """A match of the round, as played."""

    isolation: Word
    engine: Word
    protocol: Index
    machine: Machine
    core: Annotated[int, Meta(ge=-1, lt=1_000_000)]
    started_at: Time
    duration_us: Micros


class Move(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A step of a deal: seat, action, microseconds (-1 if the house played), note."""

    seat: SeatNumber
    action: Short
    elapsed_us: Micros
    note: Short = ""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault in the deal; what the bot wrote to stderr is not part of an export.

    Attributes:
        evidence: in base64.
        elapsed_us: with `limit_us`, -1 if nothing was asked.
    """

    kind: FaultKind
    detail: Short
    seat: SeatNumber
    step: Count
    text: Long
    evidence: Bytes
    elapsed_us: Micros
    limit_us: Micros


Moves: TypeAlias = Annotated[tuple[Move, ...], Meta(max_length=STEPS_A_LINE)]


class Deal(_Line, frozen=True, tag="arena.export.deal/1"):
    """A deal of the match, in the order of play; as `arena.records.DealRecord`, lists by seat.

    Attributes:
        steps: the first of them; `steps` lines have those that follow.
    """

    deck: Index
    leg: Index
    seating: Seating
    steps: Moves
    places: tuple[PlaceNumber, ...]
    points: tuple[Whole, ...]
    reason: Word
    rated: bool
    digests: tuple[Digest, ...]
    first_ids: tuple[Count, ...]
    cpu_us: tuple[Micros, ...]
    stale: tuple[Count, ...]
    lag_us: Micros
    duration_us: Micros
    faults: Annotated[tuple[Fault, ...], Meta(max_length=_MAX_SEATS)]


class Steps(_Line, frozen=True, tag="arena.export.steps/1"):
    """More steps of the deal."""

    steps: Moves


class Correction(_Line, frozen=True, tag="arena.export.correction/1"):
    """A correction of the tournament, in the order in which they were made.

    Attributes:
        rounds: by game, how many had been scheduled.
    """

    kind: Literal["void", "disqualify", "withdraw"]
    entrant: Index | None
    match: Count | None
    rounds: Annotated[dict[Short, Index], Meta(max_length=16)]
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    made_at: Time


class End(_Line, frozen=True, tag="arena.export.end/1"):
    """The last line: how many there are before it, so that a file that was cut is told from a whole one."""

    lines: Count


Line: TypeAlias = (
    Begin | Bot | Submission | Tournament | Stage | Entrant | Round | Match | Unplayed | Deal | Steps | Correction | End
)
