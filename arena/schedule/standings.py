"""Points, tie-breaks and places.

Every criterion compares entrants by exact fractions; at two seats they equal the FIDE definitions. An opponent's points
count with half a point for each round that it did not play, whatever the bye score is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from arena.luck import Stream
from arena.records import TIEBREAKS, Round, Standing, TableScore
from arena.schedule.scores import HALF, Sheet, exact_sum, sheets

Unplayed: TypeAlias = Literal["own", "virtual"]
"""Who stands in as the opponent of a round not played: someone with the entrant's own final points (FIDE's present
rule), or FIDE's virtual opponent of before 2023, which `virtual_opponent` computes."""


class _Keys(NamedTuple):
    """What places are decided by; what follows the points in the order of `TIEBREAKS`."""

    points: Fraction
    direct: Fraction | None
    buchholz: Fraction
    buchholz_cut_1: Fraction
    sonneborn_berger: Fraction
    median: Fraction | None
    sets_won: int
    lot: int | None

    def merit(self, order: Sequence[str]) -> tuple[tuple[bool, Fraction | float], ...]:
        """Return what is compared: points, then some of the tie-breaks."""
        values = (self.points, *(self[1 + TIEBREAKS.index(name)] for name in order))
        return tuple((value is not None, value or 0) for value in values)


def standings(
    entrants: Iterable[int],
    history: Sequence[Round],
    scores: Sequence[TableScore],
    *,
    bye_score: Fraction = HALF,
    unplayed: Unplayed = "own",
    key: bytes | None = None,
    order: Sequence[str] = TIEBREAKS,
) -> list[Standing]:
    """Return the table of standings, best first; only complete rounds count.

    Args:
        entrants: everybody to be listed, the withdrawn too.
        history: rounds in any order.
        scores: matches in any order.
        bye_score: the round score of a bye.
        unplayed: the stand-in of rounds not played, for Buchholz and Sonneborn-Berger.
        key: of the lot that breaks the last ties; without it equal entrants share a place, in ascending order.
        order: the tie-breaks that decide, some of `TIEBREAKS`, the first first.
    """
    listed = sorted(set(entrants))
    all_sheets = sheets(listed, history, scores, bye_score)
    counted = {entrant: opponent_points(sheet) for entrant, sheet in all_sheets.items()}
    lots = {e: i for i, e in enumerate(Stream(key, "lot").shuffled(listed))} if key is not None else {}
    direct = _direct_encounters({entrant: all_sheets[entrant] for entrant in listed})
    keys: dict[int, _Keys] = {}
    for entrant in listed:
        sheet = all_sheets[entrant]
        meetings = _round_opponents(sheet, counted, unplayed)
        keys[entrant] = _Keys(
            sheet.points,
            direct[entrant],
            exact_sum(meetings),
            exact_sum(meetings) - min(meetings, default=Fraction()),
            _sonneborn_berger(sheet, counted, meetings),
            _median_duel(sheet),
            sum(line.sets_won for line in sheet.lines),
            lots.get(entrant),
        )
    merits = {entrant: keys[entrant].merit(order) for entrant in listed}
    ranked = sorted(listed, key=lambda entrant: merits[entrant], reverse=True)
    best_first = [merits[entrant] for entrant in ranked]
    return [_standing(e, 1 + best_first.index(merits[e]), keys[e], all_sheets[e]) for e in ranked]


def _standing(entrant: int, place: int, keys: _Keys, sheet: Sheet) -> Standing:
    return Standing(
        entrant=entrant,
        place=place,
        points=float(keys.points),
        tiebreaks=tuple(None if value is None else float(value) for value in keys[1:]),
        rounds=sum(bool(line.opponents) for line in sheet.lines),
        deals=sum(line.deals for line in sheet.lines),
        byes=sheet.byes,
    )


def decided_by(lines: Sequence[Standing], order: Sequence[str]) -> list[str | None]:
    """Return for each line of a table of standings what puts it below the line before.

    Args:
        order: as for `standings`.

    Returns:
        `points`, a tie-break, or `disqualified`; None for the first line, for one that shares its place, and where
        exact fractions differ by less than these numbers tell.
    """
    before = [None, *lines[:-1]] if lines else []
    return [None if one is None else _decided_by(one, line, order) for one, line in zip(before, lines, strict=True)]


def _decided_by(before: Standing, line: Standing, order: Sequence[str]) -> str | None:
    if before.place == line.place:
        return None
    if line.mark == "disqualified":
        return line.mark
    return next((name for name in ("points", *order) if value_of(before, name) != value_of(line, name)), None)


def value_of(line: Standing, name: str) -> float | None:
    """Return what a line has of `points` or a tie-break."""
    return line.points if name == "points" else line.tiebreaks[TIEBREAKS.index(name)]


def opponent_points(sheet: Sheet) -> Fraction:
    """Return an entrant's points as its opponents' tie-breaks count them: half a point for each round not played."""
    return exact_sum(line.score if line.opponents else HALF for line in sheet.lines)


def virtual_opponent(sheet: Sheet, index: int) -> Fraction:
    """Return the points of FIDE's virtual opponent (C.02 13.15 before 2023) for the round at an index not played.

    It starts with the entrant's points before the round, scores the rest of that round's point and draws
    all rounds that follow.
    """
    before = sum((line.score for line in sheet.lines[:index]), Fraction())
    return before + 1 - sheet.lines[index].score + HALF * (len(sheet.lines) - index - 1)


def _round_opponents(sheet: Sheet, counted: Mapping[int, Fraction], unplayed: Unplayed) -> list[Fraction]:
    """Return for each round the mean points of the opponents, so that tables of different sizes compare."""
    own = sheet.points
    means = []
    for index, line in enumerate(sheet.lines):
        if line.opponents:
            means.append(_mean([counted[o] for o in line.opponents]))
        else:
            means.append(own if unplayed == "own" else virtual_opponent(sheet, index))
    return means


def _sonneborn_berger(sheet: Sheet, counted: Mapping[int, Fraction], meetings: Sequence[Fraction]) -> Fraction:
    parts = []
    for line, stand_in in zip(sheet.lines, meetings, strict=True):
        if line.opponents:
            parts.append(_mean([share * counted[o] for share, o in zip(line.shares, line.opponents, strict=True)]))
        else:
            parts.append(line.score * stand_in)
    return exact_sum(parts)


def _mean(values: Sequence[Fraction]) -> Fraction:
    return values[0] if len(values) == 1 else exact_sum(values) / len(values)


def _median_duel(sheet: Sheet) -> Fraction | None:
    shares = [share for line in sheet.lines for share in line.shares]
    return median(shares) if shares else None


def _direct_encounters(listed: Mapping[int, Sheet]) -> dict[int, Fraction | None]:
    """Return the mean share among those with equal points where all of them met, else None."""
    result: dict[int, Fraction | None] = {}
    points = {entrant: sheet.points for entrant, sheet in listed.items()}
    for _, group in groupby(sorted(listed, key=points.__getitem__), key=points.__getitem__):
        tied = list(group)
        means = {entrant: _mean_share(listed[entrant], {*tied} - {entrant}) for entrant in tied}
        result |= means if None not in means.values() else dict.fromkeys(tied)
    return result


def _mean_share(sheet: Sheet, rivals: set[int]) -> Fraction | None:
    """Return the mean over the rivals of the mean share against each; None if one was never met or there is none."""
    met: dict[int, list[Fraction]] = {}
    for line in sheet.lines:
        for opponent, share in zip(line.opponents, line.shares, strict=True):
            if opponent in rivals:
                met.setdefault(opponent, []).append(share)
    if not rivals or len(met) < len(rivals):
        return None
    return sum((sum(shares, Fraction()) / len(shares) for shares in met.values()), Fraction()) / len(rivals)
