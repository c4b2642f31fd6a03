"""The positions of a deal by what changes from step to step: what all seats see, and what each view sees besides.

A view is a seat's, or the spectator's, who sees everything. What it sees at a step is the changes up to there, applied
in order, of `shared` and of its own; for a seat that is its observation, key by key, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from arena.rules import Data, State

Change: TypeAlias = tuple[Any, ...]
"""A path and the value that is now there; or a path to a list, where in it, how many items left, and the new ones."""
Changes: TypeAlias = list[tuple[int, list[Change]]]
"""When something changed, in steps after the change before (small numbers are alike, and compress), and what."""

_NOTHING = object()


def views(states: Sequence[State], seats: int) -> dict[str, Any]:
    """Return the positions after each step as `shared`, `spectator` and, by seat, `seats`."""
    seen = [[state.observation(seat) for state in states] for seat in range(seats)]
    every = [state.observation(None) for state in states]
    differ = {key for at in zip(*seen, strict=True) for key in at[0] if any(one[key] != at[0][key] for one in at)}
    shared = {key for view in seen[0] for key in view} - differ
    other = {key for one, known in zip(every, seen[0], strict=True) for key in one if one[key] != known.get(key)}
    return {
        "shared": _told(seen[0], shared),
        "spectator": _told(every, other),
        "seats": [_told(view, differ) for view in seen],
    }


def _told(positions: Sequence[Data], keys: Collection[str]) -> Changes:
    """Return what changes of some keys."""
    told: Changes = []
    before: Data = {}
    last = 0
    for number, now in enumerate(positions):
        made = [one for key in now if key in keys for one in changes(before.get(key, _NOTHING), now[key], [key])]
        if made:
            told.append((number - last, made))
            last = number
        before = now
    return told


def changes(old: Any, new: Any, path: list[str | int]) -> Iterator[Change]:
    """Yield what turns an old value into a new one."""
    if old == new:
        return
    if not _is_list(old) or not _is_list(new):
        yield path, new
    elif len(old) == len(new) and all(isinstance(one, (list, tuple)) for one in (*old, *new)):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from changes(one, other, [*path, index])
    else:
        yield path, *_splice(old, new)


def _is_list(value: object) -> Any:
    return isinstance(value, (list, tuple))


def _splice(old: Sequence[object], new: Sequence[object]) -> tuple[int, int, Sequence[object]]:
    """Return where two lists begin to differ, how many items of the old are replaced there, and by which."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    end = next((i for i in range(shorter - start) if old[-1 - i] != new[-1 - i]), shorter - start)
    return start, len(old) - end - start, new[start : len(new) - end]
