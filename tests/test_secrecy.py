"""What a seat is told: the same again in the same match, and nothing that it may not know."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from trio.testing import MockClock

from arena.cards import deck_order
from arena.games import GAMES
from arena.luck import derive
from arena.records import MatchSpec, Step
from arena.rules import Event, Game, Options, Seat, State, bot_seed, deal, replay
from arena.wire import Conversation
from arena.wire import State as Talk
from tests.fakes import (
    first,
    frame,
    last,
    play,
    play_with,
    player,
    spec_of,
)


@pytest.mark.parametrize(("game", "seats"), [("avalanche", 2), ("smokestack", 3), ("durak", 2)])
async def test_the_same_match_again_gives_the_same_digests_whatever_the_time(
    autojump_clock: MockClock, game: str, seats: int
) -> None:
    names = "abc"[:seats]
    spec = spec_of(*names, game=game, decks=2, legs=[range(seats), [*range(1, seats), 0]])
    records = [await play(spec, {name: player(think_s=think_s) for name in names}) for think_s in (0, 0.04)]
    said = [
        [(d.digests, [(s.seat, s.action) for s in d.steps], d.places, d.points) for d in record.deals]
        for record in records
    ]
    assert said[0] == said[1]
    digests = [digest for played in records[0].deals for digest in played.digests]
    assert len(set(digests)) == len(digests) / 2, "equal bots in equal seats are told the same in both legs"


async def test_a_digest_can_be_computed_again_from_the_record(autojump_clock: MockClock) -> None:
    spec = spec_of("a", "b", game="durak")
    (played,) = (await play(spec, {"a": player(), "b": player(last)})).deals
    game = GAMES["durak"]
    seat = 1
    talk = Conversation(Talk.READY, played.first_ids[seat] - 1)
    key = spec.decks[0]
    talk.deal(game.name, game.version, spec.options, 2, seat, bot_seed(key, seat))
    state, events = deal(game, spec.options, 2, key)
    for step in [None, *played.steps]:
        if step is not None:
            if step.seat == seat:
                view = msgspec.msgpack.encode(state.observation(seat))
                talk.ask(view, state.legal_actions(seat), 1, 1)
                talk.receive(frame({"type": "act", "id": talk.asked, "action": step.action}))
            state, events = state.apply(step.seat, step.action)
        for event in events:
            if event.seen_by is None or seat in event.seen_by:
                talk.tell(msgspec.msgpack.encode(event.message()))
    talk.over(played.places, played.points, played.reason)
    assert talk.digest() == played.digests[seat]


def known_at_asks(spec: MatchSpec, deck: Sequence[str], steps: Sequence[Step], seat: Seat) -> list[object]:
    """Return what a seat may know at each of its asks: the events seen, its observation, its legal actions."""
    game = GAMES[spec.game]
    state, events = game.initial_state(spec.options, len(spec.bots), deck, derive(spec.decks[0], "deal"))
    seen = [event for event in events if event.seen_by is None or seat in event.seen_by]
    known: list[object] = []
    left = list(steps)
    while left:
        actors = state.actors
        if seat in actors:
            known.append((list(seen), state.observation(seat), state.legal_actions(seat)))
        window, left = left[: len(actors)], left[len(actors) :]
        state, events = replay(state, [(step.seat, step.action) for step in window])
        seen += [event for event in events if event.seen_by is None or seat in event.seen_by]
    return known


def common(left: Sequence[object], right: Sequence[object]) -> int:
    """Return the length of the common beginning."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


@pytest.mark.parametrize(
    ("game", "seats", "swap"),
    [
        ("avalanche", 3, (12, 25)),
        ("avalanche", 3, (15, 100)),
        ("avalanche", 3, (60, 109)),
        ("smokestack", 3, (16, 51)),
        ("smokestack", 3, (22, 45)),
        ("durak", 2, (29, 34)),
        ("durak", 3, (20, 30)),
    ],
)
async def test_a_message_is_the_same_while_only_what_a_seat_may_not_know_differs(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, game: str, seats: int, swap: tuple[int, int]
) -> None:
    spec = spec_of(*"abc"[:seats], game=game)
    order = list(deck_order(GAMES[game].deck(spec.options), spec.decks[0]))
    i, j = swap
    other = list(order)
    other[i], other[j] = order[j], order[i]
    assert order != other, "choose cards that differ"
    choose = first if game == "smokestack" else last  # who never sweeps is asked hundreds of times
    known, bodies = [], []
    for deck in (order, other):

        def dealt(
            rules: Game, options: Options, seats: int, key: bytes, deck: Sequence[str] = deck
        ) -> tuple[State, tuple[Event, ...]]:
            return rules.initial_state(options, seats, deck, derive(key, "deal"))

        monkeypatch.setattr("arena.referee.deal", dealt)
        record, opened = await play_with(spec, {name: player(choose) for name in "abc"[:seats]})
        assert not record.faults
        known.append([known_at_asks(spec, deck, record.deals[0].steps, seat) for seat in range(seats)])
        bodies.append([opened[name][0].end.bodies for name in "abc"[:seats]])
    hidden = 0
    for seat in range(seats):
        same = common(known[0][seat], known[1][seat])
        told = common(bodies[0][seat], bodies[1][seat]) - 2  # hello and deal are the same
        assert told >= same
        assert told == same or same == len(known[0][seat]) == len(known[1][seat]), "it was told what it may know"
        hidden += same
    assert hidden > 0, "the difference was hidden for a while"
