"""Tournaments without processes: whatever the order, the stops and the troubles, the tables are the same."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path

import msgspec
import pytest
import trio
from sqlite_utils import Database
from trio.testing import MockClock

from arena.errors import ConfigError, InfraError, LaneError, OverloadError
from arena.extension import changes
from arena.games import GAMES
from arena.plan import (
    Plan,
    check_plan,
    final_standings,
    new_stage,
    new_tournament,
    plan_of,
)
from arena.rating.pool import rate
from arena.records import BotRef, Clock, MatchRecord, MatchSpec, Round
from arena.rules import Value, complete_options
from arena.schedule.roundrobin import round_robin
from arena.schedule.seatings import seatings
from arena.schedule.swiss import swiss_rounds
from arena.store import matches, ratings, tournaments
from arena.store.database import open_writer
from arena.store.tournaments import Entrant, Tournament
from arena.tournament import ATTEMPTS, OVERLOADS, MatchPlayed, MatchVoid, RoundBegan, RoundComplete, run
from tests.fakes_executor import FakeLanes, apart, begin, by_hash, refs, result, use_fake_bots

ALL: dict[str, dict[str, Value]] = {
    "avalanche": {"open_pile": "last_player"},
    "durak": {"deck": 36, "transfer": True},
    "smokestack": {"sweeps": 2, "straight": "off"},
}
SMALL: dict[str, dict[str, Value]] = {"durak": {}, "avalanche": {}}
LONG = Plan("swiss", ALL, 3, decks=2)
FAULTY = {0: ("illegal", 70), 3: ("startup", 3), 4: ("crash", 40)}
Event = RoundBegan | MatchPlayed | MatchVoid | RoundComplete


@pytest.fixture(autouse=True)
def fake_bots(monkeypatch: pytest.MonkeyPatch) -> None:
    use_fake_bots(monkeypatch)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "arena.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    with open_writer(tmp_path / "other.db") as opened:
        yield opened


def play(
    db: Database, tournament: Tournament, bots: Iterable[BotRef], lanes: FakeLanes | None = None
) -> tuple[bool, list[Event]]:
    """Run what is left of a tournament in virtual time; return whether it is finished and what was reported."""
    lanes = lanes or FakeLanes()
    events: list[Event] = []

    async def main() -> bool:
        return await run(db, tournament, by_hash(bots), lanes, events.append, lambda: 2.0, lanes.stopping)

    return trio.run(main, clock=MockClock(autojump_threshold=0)), events


def whole(db: Database, plan: Plan, bots: Sequence[BotRef], lanes: FakeLanes | None = None, seed: int = 1) -> bytes:
    """Play a new tournament to its end and return all that it came to."""
    tournament = begin(db, plan, bots, seed=seed)
    assert play(db, tournament, bots, lanes)[0]
    return result(db, tournament, plan.games)


def all_rounds(db: Database, tournament: Tournament, game: str) -> list[Round]:
    return [played for played, _ in tournaments.rounds(db, tournament.id, game)]


# What is played


@pytest.mark.parametrize(
    ("plan", "entrants", "sizes"),
    [
        (Plan("round-robin", ALL, 2), 4, {2}),
        (Plan("round-robin", ALL, 1), 5, {2}),
        (Plan("round-robin", ALL, 1, seats=3), 4, {3}),
        (Plan("round-robin", SMALL, 1, seats=4, seatings="rotate"), 5, {4}),
        (Plan("swiss", ALL, 3, decks=2), 5, {2}),
        (Plan("swiss", ALL, 2, seats=3, seatings="rotate"), 8, {3, 2}),
        (Plan("swiss", SMALL, 2, seats=4, seatings="rotate"), 7, {4, 3}),
        (Plan("swiss", ALL, 3, seats=4, seatings="rotate"), 5, {4}),
    ],
    ids=lambda value: f"{value.format}-{value.seats}" if isinstance(value, Plan) else str(value),
)
def test_a_whole_tournament(db: Database, plan: Plan, entrants: int, sizes: set[int]) -> None:
    bots = refs(entrants)
    lanes = FakeLanes(shuffle=5)
    spring = begin(db, plan, bots)
    expected = spring.stages[0].match_count
    finished, events = play(db, spring, bots, lanes)
    assert finished
    assert tournaments.get(db, spring.id).finished_at == 2.0
    assert len(lanes.played) == len(set(lanes.played)) == expected == matches.count_played(db, spring.id)
    decks_of: dict[tuple[str, int, int], set[tuple[bytes, ...]]] = {}
    for game in plan.games:
        rounds = all_rounds(db, spring, game)
        assert {len(table) for played in rounds for table in played.tables} == sizes
        for played in rounds:
            assert sorted(chain(*played.tables, played.byes)) == list(range(entrants)), "nobody sits twice or is lost"
            for number, table in matches.tables(db, spring.id, game, played.number):
                check_match(db, plan, number, len(table))
                stored = matches.match(db, number)
                assert stored is not None
                decks_of.setdefault((game, played.number, len(table)), set()).add(stored.decks)
        table_of_points = final_standings(db, tournaments.get(db, spring.id), game)
        bye = 0.5 if plan.format == "swiss" else 0
        shared = sum(len(table) / 2 for played in rounds for table in played.tables)
        byes = sum(bye * len(played.byes) for played in rounds)
        assert sum(line.points for line in table_of_points) == pytest.approx(shared + byes)
        assert {line.entrant for line in table_of_points} == set(range(entrants))
        assert [line.place for line in table_of_points] == list(range(1, entrants + 1)), "the lot decides last"
    assert all(len(decks) == 1 for decks in decks_of.values()), "the tables of a round share their decks"
    every_deck = [deck for decks in decks_of.values() for deck in next(iter(decks))]
    assert len(every_deck) == len(set(every_deck)), "no deck is dealt in two rounds, games or sizes"
    check_ratings(db, spring)
    assert [type(event) for event in events].count(MatchPlayed) == expected


def check_match(db: Database, plan: Plan, number: int, seats: int) -> None:
    """Every deck was played in every seating."""
    stored = matches.match(db, number)
    assert stored is not None
    assert stored.state == "played"
    assert stored.legs == seatings(seats, plan.seatings)
    assert len(stored.decks) == plan.decks
    deals = matches.deals(db, number)
    assert [(deal.deck, deal.seating) for deal in deals] == [(d, s) for d in range(plan.decks) for s in stored.legs]


def check_ratings(db: Database, tournament: Tournament) -> None:
    """Stored ratings and their history are what the stored deals give, in whatever order they are read."""
    found = ratings.pools(db)
    assert found
    for pool in found:
        deals = apart(matches.rated_deals(db, pool.id))
        assert len(deals) == pool.deals
        random.Random(3).shuffle(deals)
        assert ratings.ratings(db, pool.id) == list(rate(deals, pool.key.outcome_type))
        rounds_of = dict(rounds_of_decks(db, tournament, pool.key.game))
        numbers = sorted({rounds_of[deal.deck] for deal in deals})
        for number in numbers:
            until = rate([deal for deal in deals if rounds_of[deal.deck] <= number], pool.key.outcome_type)
            history = {bot.bot: ratings.history(db, pool.id, bot.bot) for bot in until}
            assert {b: {past.round: past.elo for past in h}[number] for b, h in history.items()} == {
                rating.bot: rating.elo for rating in until
            }


def rounds_of_decks(db: Database, tournament: Tournament, game: str) -> Iterator[tuple[str, int]]:
    for played in all_rounds(db, tournament, game):
        for number, _ in matches.tables(db, tournament.id, game, played.number):
            stored = matches.match(db, number)
            assert stored is not None
            yield from ((deck.hex(), played.number) for deck in stored.decks)


def test_a_round_robin_plays_every_pair_in_every_cycle(db: Database) -> None:
    bots = refs(5)
    spring = begin(db, Plan("round-robin", {"durak": {}}, 2), bots)
    play(db, spring, bots)
    pairs = [tuple(sorted(table)) for played in all_rounds(db, spring, "durak") for table in played.tables]
    assert sorted(pairs) == sorted([*combinations(range(5), 2)] * 2)


def test_a_swiss_pairs_by_what_was_played(db: Database, other: Database) -> None:
    plan, bots = Plan("swiss", {"avalanche": {}}, 4), refs(8)
    changed = [msgspec.structs.replace(bot, command=("hash", "illegal", "1")) for bot in bots[:3]] + bots[3:]
    rounds = []
    for database, field in ((db, bots), (other, changed)):
        spring = begin(database, plan, field)
        play(database, spring, field)
        rounds.append(all_rounds(database, spring, "avalanche"))
    assert rounds[0][0] == rounds[1][0], "the first round is drawn by lot"
    assert rounds[0] != rounds[1]
    pairs = [tuple(sorted(table)) for played in rounds[0] for table in played.tables]
    assert len(pairs) == len(set(pairs)), "no rematch"


def test_options_differ_by_size_and_so_do_pools(db: Database) -> None:
    bots = refs(7)
    spring = begin(db, Plan("swiss", {"durak": {}}, 1, seats=4, seatings="rotate"), bots)
    play(db, spring, bots)
    keys = [pool.key for pool in ratings.pools(db)]
    assert [(key.seats, "deck=36" in key.rule_set, key.outcome_type) for key in keys] == [
        (3, True, "single_loser"),
        (4, False, "single_loser"),
    ]


def test_a_spec_is_what_was_stored(db: Database) -> None:
    specs: list[MatchSpec] = []

    class Watching(FakeLanes):
        async def play(self, spec: MatchSpec) -> MatchRecord:
            specs.append(spec)
            return await super().play(spec)

    clock = msgspec.structs.replace(LONG.clock, decision_ms=5)
    plan, bots = msgspec.structs.replace(LONG, rounds=1, clock=clock), refs(4)
    spring = begin(db, plan, bots)
    play(db, spring, bots, Watching())
    assert {spec.game for spec in specs} == set(ALL)
    for spec in specs:
        assert spec.options == complete_options(GAMES[spec.game], 2, ALL[spec.game])
        assert [type(value) for value in spec.options.values()] == [
            type(value) for value in complete_options(GAMES[spec.game], 2, ALL[spec.game]).values()
        ]
        assert spec.clock == clock
        stored = matches.match(db, spec.id)
        assert stored is not None
        assert tuple(bot.hash for bot in spec.bots) == stored.hashes
        assert (spec.decks, spec.legs) == (stored.decks, stored.legs)


def test_bots_sit_only_at_tables_of_their_games(db: Database) -> None:
    bots = refs(5)
    games = {"bot-0": ("durak",), "bot-1": ("durak",), "bot-2": ("avalanche",)}
    spring = begin(db, Plan("round-robin", SMALL, 1), bots, games=games)
    play(db, spring, bots)
    names = {entrant.number: entrant.name for entrant in tournaments.entrants(db, spring.id)}
    seen = {
        game: {names[n] for played in all_rounds(db, spring, game) for n in chain(*played.tables, played.byes)}
        for game in SMALL
    }
    assert seen == {"durak": {"bot-0", "bot-1", "bot-3", "bot-4"}, "avalanche": {"bot-2", "bot-3", "bot-4"}}
    assert {names[line.entrant] for line in final_standings(db, spring, "avalanche")} == seen["avalanche"]
    assert spring.stages[0].match_count == matches.count_played(db, spring.id) == 6 + 3


def test_few_deals_give_ratings_without_errors(db: Database) -> None:
    bots = refs(2)
    spring = begin(db, Plan("swiss", {"avalanche": {}}, 1), bots)
    play(db, spring, bots)
    (pool,) = ratings.pools(db)
    assert [(r.deals, r.error) for r in ratings.ratings(db, pool.id)] == [(2, None), (2, None)]


def test_bots_that_never_start_are_scored_and_rated(db: Database) -> None:
    bots = refs(3, dict.fromkeys(range(3), ("startup", 1)))
    spring = begin(db, Plan("round-robin", SMALL, 1, decks=4), bots)
    assert play(db, spring, bots)[0]
    for pool in ratings.pools(db):
        assert 0 < pool.deals < 3 * 8, "from the third fault in a match on the deals are forfeited"
        assert {r.elo for r in ratings.ratings(db, pool.id)} == {1500.0}
    assert {line.points for line in final_standings(db, spring, "durak")} == {1.0}


# The same, whatever happens


@pytest.mark.parametrize(("lanes", "shuffle"), [(1, None), (2, 1), (3, 2), (8, 3)])
def test_order_and_number_of_lanes_change_nothing(
    db: Database, other: Database, lanes: int, shuffle: int | None
) -> None:
    plan, bots = Plan("swiss", ALL, 3), refs(6, FAULTY)
    reference = whole(other, plan, bots, FakeLanes(2))
    watched = FakeLanes(lanes, shuffle)
    assert whole(db, plan, bots, watched) == reference
    assert watched.most == 2 * lanes or lanes == 8, "lanes never wait for the coordinator"
    assert watched.most <= 2 * lanes
    if shuffle:
        assert watched.played != sorted(watched.played)


def test_another_master_is_another_tournament(db: Database, other: Database) -> None:
    plan, bots = Plan("round-robin", SMALL, 1), refs(4)
    assert whole(db, plan, bots, seed=1) != whole(other, plan, bots, seed=2)


@pytest.mark.parametrize(
    "plan",
    [Plan("swiss", SMALL, 3), Plan("round-robin", SMALL, 2), Plan("swiss", SMALL, 2, seats=3, seatings="rotate")],
    ids=lambda plan: f"{plan.format}-{plan.seats}",
)
@pytest.mark.parametrize("trouble", ["stop", "power", "cancel"])
def test_stopped_again_and_again_it_ends_the_same(db: Database, other: Database, plan: Plan, trouble: str) -> None:
    bots = refs(5, FAULTY)
    reference = whole(other, plan, bots)
    spring = begin(db, plan, bots)
    played: list[int] = []
    sessions = 0
    finished = False
    while not finished:
        lanes = FakeLanes(2, shuffle=sessions)
        after = 1 + sessions % 3
        if trouble == "stop":
            lanes.stop_after = after
            finished, _ = play(db, spring, bots, lanes)
        elif trouble == "power":
            lanes.fail_after = after
            with contextlib.suppress(BaseExceptionGroup):
                finished, _ = play(db, spring, bots, lanes)
        else:
            finished = cancelled(db, spring, bots, lanes, after / 2)
        played += lanes.played
        sessions += 1
        assert sessions < 100
        assert matches.count_played(db, spring.id) == len(played) == len(set(played)), "each is played and stored once"
    assert sessions > 1
    assert result(db, spring, plan.games) == reference


def cancelled(db: Database, tournament: Tournament, bots: Sequence[BotRef], lanes: FakeLanes, after_s: float) -> bool:
    """Play until the time is up, as the second Ctrl-C would have it; return whether it is finished."""

    async def main() -> bool:
        with trio.move_on_after(after_s):
            return await run(db, tournament, by_hash(bots), lanes, lambda event: None, lambda: 2.0, lanes.stopping)
        return False

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def test_after_a_stop_no_match_is_begun_and_those_in_play_are_kept(db: Database) -> None:
    bots = refs(9)
    spring = begin(db, Plan("round-robin", {"durak": {}}, 1), bots)
    lanes = FakeLanes(2, shuffle=1)
    lanes.stop_after = 1
    finished, events = play(db, spring, bots, lanes)
    assert not finished
    assert tournaments.get(db, spring.id).finished_at is None
    assert 1 < len(lanes.played) <= 4
    assert events[0] == RoundBegan("durak", 1, 4, 4)
    assert not [event for event in events if isinstance(event, RoundComplete)]
    again = FakeLanes(2)
    again.stopping.set()
    finished, events = play(db, spring, bots, again)
    assert (finished, again.played, events[0]) == (False, [], RoundBegan("durak", 1, 4, 4 - len(lanes.played)))


def test_incomplete_rounds_count_nowhere(db: Database) -> None:
    bots = refs(6)
    spring = begin(db, Plan("swiss", {"durak": {}}, 2), bots)
    lanes = FakeLanes(1)
    lanes.stop_after = 4
    play(db, spring, bots, lanes)
    assert [complete for _, complete in tournaments.rounds(db, spring.id, "durak")] == [True, False]
    (pool,) = ratings.pools(db)
    assert pool.deals == 3 * 2
    assert {line.rounds for line in final_standings(db, spring, "durak")} == {1}


def test_a_finished_tournament_has_nothing_left(db: Database) -> None:
    bots = refs(3)
    spring = begin(db, Plan("round-robin", SMALL, 1), bots)
    play(db, spring, bots)
    before = result(db, spring, SMALL)
    lanes = FakeLanes()
    assert play(db, spring, bots, lanes) == (True, [])
    assert lanes.played == []
    assert result(db, spring, SMALL) == before


def test_void_matches_are_played_again(db: Database, other: Database) -> None:
    plan, bots = Plan("swiss", SMALL, 2), refs(4)
    lanes = FakeLanes()
    lanes.voids = {1: ATTEMPTS - 1, 4: 1}
    spring = begin(db, plan, bots)
    finished, events = play(db, spring, bots, lanes)
    assert finished
    voids = [(event.match, event.reason) for event in events if isinstance(event, MatchVoid)]
    assert sorted(voids) == [(1, "the lane died")] * (ATTEMPTS - 1) + [(4, "the lane died")]
    assert result(db, spring, SMALL) == whole(other, plan, bots)


def test_a_machine_that_is_too_loaded_twice_stops_the_tournament(db: Database, other: Database) -> None:
    """Sooner than other failures: a bot that can bring it about must not have many tries."""
    plan, bots = Plan("swiss", SMALL, 2), refs(4)
    lanes = FakeLanes()
    lanes.void = OverloadError("too loaded")
    lanes.voids = {1: OVERLOADS - 1}
    assert play(db, begin(db, plan, bots), bots, lanes)[0]
    lanes = FakeLanes()
    lanes.void = OverloadError("too loaded")
    lanes.voids = {2: OVERLOADS}
    told = f"^match 2 was void {OVERLOADS} times; the last time: too loaded; mend that .* `arena void 2`$"
    with pytest.raises(InfraError, match=told):
        play(other, begin(other, plan, bots), bots, lanes)


def test_in_whose_matches_lanes_die_is_told(db: Database) -> None:
    plan, bots = Plan("round-robin", SMALL, 1), refs(3)
    lanes = FakeLanes(lanes=1)
    lanes.void = LaneError("a lane ended with -9")
    spring = begin(db, plan, bots)
    numbers = {entrant.name: entrant.number for entrant in tournaments.entrants(db, spring.id)}
    lanes.voids = {1: 1, 2: ATTEMPTS}
    with pytest.raises(
        InfraError, match=r"void 3 times; the last time: a lane ended with -9; lanes have died in"
    ) as caught:
        play(db, spring, bots, lanes)
    match = matches.match(db, 2)
    assert match is not None
    assert all(f"{name} (" in str(caught.value) for name, number in numbers.items() if number in match.entrants)


def test_a_match_that_is_void_too_often_stops_the_tournament_and_scores_nobody(db: Database, other: Database) -> None:
    plan, bots = Plan("swiss", SMALL, 2), refs(4)
    lanes = FakeLanes(shuffle=1)
    lanes.voids = {2: -1}
    spring = begin(db, plan, bots)
    told = f"^match 2 was void {ATTEMPTS} times; the last time: the lane died; mend that .* `arena void 2`$"
    with pytest.raises(InfraError, match=told):
        play(db, spring, bots, lanes)
    stored = matches.match(db, 2)
    assert stored is not None
    assert stored.state == "scheduled"
    assert matches.deals(db, 2) == []
    assert {line.rounds for line in final_standings(db, spring, stored.game)} == {0}
    assert play(db, spring, bots)[0]
    assert result(db, spring, SMALL) == whole(other, plan, bots)


def test_a_report_that_fails_loses_no_match(db: Database) -> None:
    bots = refs(3)
    spring = begin(db, Plan("round-robin", SMALL, 1), bots)

    def report(event: Event) -> None:
        if isinstance(event, MatchPlayed):
            raise BrokenPipeError

    async def main() -> None:
        await run(db, spring, by_hash(bots), FakeLanes(), report, lambda: 2.0, trio.Event())

    with pytest.raises(ExceptionGroup):
        trio.run(main)
    assert matches.count_played(db, spring.id) > 0
    assert play(db, spring, bots)[0]


def test_a_match_scheduled_by_other_rules_is_not_played_by_these(db: Database) -> None:
    bots = refs(3)
    spring = begin(db, Plan("round-robin", {"durak": {}}, 1), bots)
    lanes = FakeLanes()
    lanes.stopping.set()
    play(db, spring, bots, lanes)
    db.execute("UPDATE pool SET rule_set = replace(rule_set, 'durak/', 'durak/9')")
    with pytest.raises(ConfigError, match=r"^match 1 is of durak/9\d, this arena has durak/\d;"):
        play(db, spring, bots)


def test_what_happens_is_reported_in_order(db: Database) -> None:
    bots = refs(3)
    spring = begin(db, Plan("round-robin", {"durak": {}}, 1), bots)
    _, events = play(db, spring, bots)
    kinds = [type(event) for event in events]
    assert kinds == [RoundBegan, MatchPlayed, RoundComplete] * 3
    assert [event for event in events if isinstance(event, RoundComplete)] == [
        RoundComplete("durak", number) for number in (1, 2, 3)
    ]
    named = [event.names for event in events if isinstance(event, MatchPlayed)]
    assert {frozenset(pair) for pair in named} == {frozenset(p) for p in combinations(("bot-0", "bot-1", "bot-2"), 2)}


def test_the_schedule_of_a_round_robin_is_made_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def watched(entrants: Iterable[int], seats: int, cycles: int, key: bytes) -> Iterator[Round]:
        made.append(key)
        return round_robin(entrants, seats, cycles, key)

    monkeypatch.setattr("arena.plan.round_robin", watched)
    bots = refs(4)
    play(db, begin(db, Plan("round-robin", {"durak": {}}, 2, seats=3, seatings="rotate"), bots), bots)
    assert len(made) == 1


# Plans


def test_a_master_is_committed_to_and_fresh() -> None:
    one, two = (new_tournament("t", LONG, "none", 1.0, 1).stages[0] for _ in range(2))
    assert one.commitment == hashlib.sha256(one.master + one.salt).digest()
    assert len(one.master) == len(one.salt) == 32
    assert len({one.master, two.master, one.salt, two.salt}) == 4
    assert not one.practice
    practice = new_stage(1, LONG, 1.0, 1, seed=7)
    assert practice == new_stage(1, LONG, 1.0, 1, seed=7)
    assert len({new_stage(number, LONG, 1.0, 1, seed=seed).master for number in (1, 2, 3) for seed in (7, 8)}) == 6
    assert practice.practice
    assert practice.commitment == hashlib.sha256(practice.master + practice.salt).digest()


def test_a_plan_comes_back_from_the_store_as_it_was(db: Database) -> None:
    plan = Plan("swiss", {"durak": {"transfer": True, "max_attack": 1, "score": "places"}}, 3, 4, 2, "all")
    back = plan_of(begin(db, plan, refs(4)))
    assert back == plan
    assert [type(value) for value in back.games["durak"].values()] == [bool, int, str]
    assert msgspec.json.decode(new_stage(1, Plan("swiss", {}, 1), 1.0, 1).spec).keys() == {
        "format",
        "games",
        "hypotheses",
        "avoid_same_author",
        "challengers",
        "cast",
        "one_leg",
        "seeds",
        "tiebreaks",
        "rounds",
        "seats",
        "decks",
        "seatings",
        "clock",
    }, "defaults are stored too"


def test_what_differs_from_a_stored_tournament_is_named(db: Database) -> None:
    bots = refs(3)
    spring = begin(db, LONG, bots)
    kept = tournaments.entrants(db, spring.id)

    def differ(plan: Plan, entrants: list[Entrant], isolation: str = "none", seed: int | None = None) -> list[str]:
        return [f"{one.text} {one.allowed}" for one in changes(db, spring, plan, entrants, isolation, seed)]

    assert differ(LONG, kept[::-1], seed=1) == []
    asked = msgspec.structs.replace(LONG, rounds=2, decks=5, format="round-robin", clock=Clock(bank_ms=1))
    assert differ(asked, kept, "strict", 2) == [
        "format was swiss, now round-robin False",
        "rounds was 3, now 2 False",
        "decks was 2, now 5 True",
        "isolation was none, now strict False",
        f"clock.bank_ms was {LONG.clock.bank_ms}, now 1 False",
        "its seed was another than 2 False",
    ]
    new = Entrant(0, kept[0].name, refs(4)[3].hash, ("durak",))
    assert differ(msgspec.structs.replace(LONG, rounds=5), [new, *kept[1:]]) == [
        "rounds was 3, now 5 True",
        f"{kept[0].name} ({kept[0].hash[:12]}) no longer plays False",
        f"{kept[0].name} ({new.hash[:12]}) is new True",
    ]
    (difference,) = differ(msgspec.structs.replace(LONG, games={**ALL, "durak": {"deck": 52}}), kept)
    assert difference.startswith("games was avalanche (open_pile=last_player), durak (deck=36, transfer=true), smoke")
    assert ", now avalanche (open_pile=last_player), durak (deck=52), smoke" in difference
    assert differ(msgspec.structs.replace(LONG, games=dict(reversed(LONG.games.items()))), kept) == []
    asked = msgspec.structs.replace(LONG, avoid_same_author=True, seeds=("bot-1", "bot-2"), tiebreaks=("buchholz",))
    assert differ(asked, kept) == [
        "avoid_same_author was false, now true False",
        f"tiebreaks was {', '.join(LONG.tiebreaks)}, now buchholz False",
        "seeds was none, now bot-1, bot-2 False",
    ]


def test_a_plan_that_cannot_be_played_names_every_problem() -> None:
    some = [Entrant(n, f"bot-{n}", bot.hash, ("durak",)) for n, bot in enumerate(refs(3))]
    check_plan(Plan("swiss", {"durak": {}}, 1, seats=3), some)
    none = Entrant(3, "lost", refs(4)[3].hash, ())
    with pytest.raises(ConfigError) as raised:
        check_plan(Plan("swiss", {"durak": {"deck": 40}, "avalanche": {}}, 1), [*some, none])
    assert str(raised.value).split("; ") == [
        "lost plays none of durak, avalanche",
        "avalanche at tables of 2 needs 2 bots that play it, not 0",
        "durak option deck cannot be 40",
        "allowed: 36 | 52",
    ]
    with pytest.raises(ConfigError, match="durak is played by 2 to 6 seats, not 7"):
        check_plan(Plan("swiss", {"durak": {}}, 1, seats=7), some)


@pytest.mark.parametrize(
    ("entrants", "seats", "rounds"),
    [
        *[(1, 2, 3), (2, 2, 3), (3, 2, 4), (4, 2, 4), (5, 2, 5), (8, 2, 5), (9, 2, 6), (1024, 2, 12)],
        *[(3, 3, 3), (9, 3, 4), (10, 3, 5), (243, 3, 7), (125, 5, 5), (126, 5, 6), (216, 6, 5), (1000, 10, 5)],
    ],
)
def test_the_default_number_of_swiss_rounds(entrants: int, seats: int, rounds: int) -> None:
    assert swiss_rounds(entrants, seats) == rounds
