"""Golden traces: tests/playthroughs/<game>-<seats>-<seed>.txt, one for each game and number of seats.

Each holds a random deal with default options: `asked` lines have the legal actions of the seats to move, lines that
begin with `>` the actions as SEAT.ACTION, the others what was told (`(0)` = to seat 0 only). After step 40 the actions
of 50 steps stand together, with a digest of the detail and what a spectator then sees.

A trace is checked by playing its actions again. After a change of the rules (which raises the game's version) write
them anew: `python -m pytest tests/test_playthroughs.py --regen`.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pytest

from arena.cards import deck_order
from arena.errors import IllegalAction
from arena.games import GAMES
from arena.luck import Stream, derive
from arena.rules import Action, Event, Seat, State, complete_options, deal, rule_set_id

FOLDER = Path(__file__).parent / "playthroughs"
SEED = 1
DETAILED = 40
BLOCK = 50
WIDTH = 118
EXPECTED = [(name, seats) for name in sorted(GAMES) for seats in GAMES[name].seats]


def path_of(name: str, seats: int) -> Path:
    return FOLDER / f"{name}-{seats}-{SEED}.txt"


def key_of(name: str, seats: int) -> bytes:
    return derive(b"playthroughs", name, seats, SEED)


def random_choices(name: str, seats: int) -> Iterator[int]:
    """Yield what a random player draws, to be taken modulo the number of choices."""
    luck = Stream(key_of(name, seats), "play")
    while True:
        yield luck.word()


def random_steps(name: str, seats: int) -> list[tuple[Seat, Action]]:
    state, _ = deal(GAMES[name], complete_options(GAMES[name], seats, {}), seats, key_of(name, seats))
    choices = random_choices(name, seats)
    steps = []
    while state.actors:
        seat = state.actors[next(choices) % len(state.actors)]
        legal = state.legal_actions(seat)
        steps.append((seat, legal[next(choices) % len(legal)]))
        state, _ = state.apply(*steps[-1])
    return steps


def steps_in(text: str) -> list[tuple[Seat, Action]]:
    """Return the steps that a trace names."""
    steps = [step for line in text.splitlines() if line.startswith("> ") for step in line[2:].split()]
    return [(int(seat), action) for seat, action in (step.split(".", 1) for step in steps)]


def wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )


def told(events: Iterable[Event]) -> list[str]:
    lines = []
    for event in events:
        seen_by = "" if event.seen_by is None else f"({' '.join(map(str, event.seen_by))}) "
        lines += wrapped(f"{seen_by}{event.kind} {json.dumps(event.data)}", first="  ", rest="    ")
    return lines


def asked(state: State) -> list[str]:
    lines = []
    for legal, seats in groupby(state.actors, key=state.legal_actions):
        lines += wrapped(f"asked {' '.join(map(str, seats))}: {' '.join(legal)}", rest="    ")
    return lines


def block(steps: list[tuple[Seat, Action]], detail: list[str], state: State) -> list[str]:
    digest = hashlib.sha256("\n".join(detail).encode()).hexdigest()[:16]
    actions = wrapped(" ".join(f"{seat}.{action}" for seat, action in steps), first="> ", rest="> ")
    return [*actions, f"detail {digest}", *wrapped(f"spectator {json.dumps(state.observation(None))}"), ""]


def trace(name: str, seats: int, steps: list[tuple[Seat, Action]]) -> str:
    """Play the steps and return the text of the trace."""
    game, key = GAMES[name], key_of(name, seats)
    options = complete_options(game, seats, {})
    state, events = deal(game, options, seats, key)
    deck = " ".join(deck_order(game.deck(options), key))
    lines = [rule_set_id(game, options), f"seats {seats}", *wrapped(f"deck {deck}"), *told(events), ""]
    detail: list[str] = []
    for number, (seat, action) in enumerate(steps, start=1):
        questions = asked(state)
        try:
            state, events = state.apply(seat, action)
        except IllegalAction as error:
            return "\n".join([*lines, *detail, f"step {number}: {error}"])
        if number <= DETAILED:
            lines += [f"step {number}", *questions, f"> {seat}.{action}", *told(events), ""]
            continue
        detail += [*questions, *told(events)]
        done = number - DETAILED
        if done % BLOCK == 0 or number == len(steps):
            lines += [
                f"steps to {number}",
                *block(steps[DETAILED + (done - 1) // BLOCK * BLOCK : number], detail, state),
            ]
            detail = []
    return "\n".join([*lines, f"outcome {state.outcome}", ""])


@pytest.mark.parametrize(("name", "seats"), EXPECTED)
def test_playthrough(name: str, seats: int, request: pytest.FixtureRequest) -> None:
    path = path_of(name, seats)
    if request.config.getoption("--regen"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(trace(name, seats, random_steps(name, seats)))
    assert path.exists(), f"{path.name} is missing: run pytest tests/test_playthroughs.py --regen"
    golden = path.read_text()
    assert trace(name, seats, steps_in(golden)).splitlines() == golden.splitlines()


def test_no_playthrough_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} <= {path_of(*game).name for game in EXPECTED}
