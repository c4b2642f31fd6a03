"""A knockout of pairs: who loses a match is out, until one is left; byes of the first round go to the top seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from arena.records import Round, Standing, TableScore

Slot = int | None
"""An entrant, or nobody: whoever meets nobody goes on without playing."""
Deciding: TypeAlias = Literal["duels", "deal sets", "seed", "earlier", "bye", "left", ""]
"""Why somebody goes on: the rule that decided a match; `earlier`, it had gone on before the match was void; `bye`, it
has no opponent in the bracket; `left`, its opponent had left; empty as long as nobody does."""


class Pairing(NamedTuple):
    """Two neighbours of the bracket in a round.

    Attributes:
        slots: in the order of the bracket; those too who had left before the round.
        came: those who play or have a bye.
        winner: who goes on; None as long as that is not known, or if both had left.
    """

    slots: tuple[Slot, Slot]
    came: tuple[int, ...]
    winner: Slot
    decided: Deciding

    @property
    def loser(self) -> Slot:
        """Who lost the match."""
        return next((one for one in self.came if self.winner not in (None, one)), None)


def bracket(seeding: Sequence[int]) -> list[Slot]:
    """Return the slots of the first round, neighbours meet: the first two seeds can meet in the final only.

    Args:
        seeding: entrants, the best first.
    """
    order = [0]
    while len(order) < len(seeding):
        size = 2 * len(order)
        order = [one for seed in order for one in (seed, size - 1 - seed)]
    return [seeding[seed] if seed < len(seeding) else None for seed in order]


def rounds_of(entrants: int) -> int:
    """Return how many rounds it takes until one is left."""
    return max(entrants - 1, 0).bit_length()


def knockout_round(
    seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore], withdrawn: Collection[int] = ()
) -> Round | None:
    """Return the round that follows on complete ones, or None if the winner is known.

    A match goes to whoever won more duels; with equally many to whoever won more deal sets, then to the better seed.
    """
    *_, slots = _slots(seeding, pairings(seeding, history, scores))
    slots = [None if entrant in withdrawn else entrant for entrant in slots]
    if len([entrant for entrant in slots if entrant is not None]) < 2:
        return None
    pairs = list(zip(slots[::2], slots[1::2], strict=True))
    tables = tuple((a, b) for a, b in pairs if a is not None and b is not None)
    byes = tuple(sorted(one for a, b in pairs for one in (a, b) if one is not None and None in (a, b)))
    return Round(len(history) + 1, tables, byes)


def reached(seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore]) -> dict[int, int]:
    """Return for each entrant how many rounds it has survived."""
    survived = dict.fromkeys(seeding, 0)
    for number, slots in enumerate(_slots(seeding, pairings(seeding, history, scores))):
        survived.update({entrant: number for entrant in slots if entrant is not None})
    return survived


def by_survival(
    lines: Sequence[Standing],
    seeding: Sequence[int],
    history: Sequence[Round],
    scores: Sequence[TableScore],
    gone: Sequence[int],
) -> list[Standing]:
    """Return standings in the order of a knockout; those who lost in the same round share a place, better seeds first.

    Args:
        lines: in any order.
        history: complete rounds.
        gone: who left, in this order; before the end they were out before the others. Of the last ones, if all left,
            whoever left last had nobody to lose to any more.
    """
    survived = reached(seeding, history, scores)
    last = [one for one, count in survived.items() if count == len(history)]
    still = [one for one in last if one not in gone] or [one for one in gone if one in last][-1:]
    rounds = {one: count + (one in still) for one, count in survived.items()}
    ranked = sorted(lines, key=lambda line: (-rounds[line.entrant], seeding.index(line.entrant)))
    order = [rounds[line.entrant] for line in ranked]
    return [msgspec.structs.replace(line, place=1 + order.index(rounds[line.entrant])) for line in ranked]


def pairings(
    seeding: Sequence[int], history: Sequence[Round], scores: Sequence[TableScore]
) -> Iterator[tuple[Pairing, ...]]:
    """Yield the pairings of each round, in the order of the bracket, and who goes on.

    Args:
        history: the last round need not be complete.
        scores: of complete rounds.
    """
    slots = bracket(seeding)
    by_table = {(score.round, frozenset[Slot](score.table)): score for score in scores}
    sat = [{*played.byes}.union(*played.tables) for played in history]
    for played, there, later in zip(history, sat, [*sat, set()][1:], strict=True):
        pairs = zip(slots[::2], slots[1::2], strict=True)
        found = [(pair, by_table.get((played.number, frozenset[Slot](pair)))) for pair in pairs]
        yield (row := tuple(_pairing(pair, there, later, seeding, score) for pair, score in found))
        slots = [one.winner for one in row]


def _slots(seeding: Sequence[int], played: Iterator[tuple[Pairing, ...]]) -> Iterator[list[Slot]]:
    """Yield the slots of the bracket, and those after each round."""
    yield bracket(seeding)
    for row in played:
        yield [one.winner for one in row]


def _pairing(
    slots: tuple[Slot, Slot],
    there: Collection[int],
    later: Collection[int],
    seeding: Sequence[int],
    score: TableScore | None,
) -> Pairing:
    """Return who goes on; who has gone on already does, whatever the match is found to be worth since.

    Args:
        there: who was in the round.
        later: who was in the next one.
    """
    came = tuple(one for one in slots if one is not None and one in there)
    if len(came) < 2:
        reason: Deciding = "" if not came else "bye" if None in slots else "left"
        return Pairing(slots, came, came[0] if came else None, reason)
    if score is None:
        return Pairing(slots, came, None, "")
    winner, decided = _judged(came, seeding, score)
    gone_on = [one for one in came if one in later]
    if gone_on and winner not in gone_on:
        winner, decided = gone_on[0], "earlier"
    return Pairing(slots, came, winner, decided)


def _judged(came: Sequence[int], seeding: Sequence[int], score: TableScore) -> tuple[int, Deciding]:
    """Return who won a match, and by which rule."""
    places = [score.table.index(entrant) for entrant in came]
    rules: tuple[tuple[Deciding, list[int]], ...] = (
        ("duels", [sum(score.duels[place]) for place in places]),
        ("deal sets", [score.sets_won[place] if score.sets_won else 0 for place in places]),
        ("seed", [-seeding.index(entrant) for entrant in came]),
    )
    decided, merits = next((name, merits) for name, merits in rules if len({*merits}) > 1)
    return came[merits.index(max(merits))], decided
