"""A schedule is a function of its key: the same in any process, whatever its hashes are, and the same as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import msgspec

from arena.luck import Stream
from arena.rating.pool import rate_pool
from arena.records import BotHash, RatedDeal, Round, TableScore
from arena.schedule.roundrobin import round_robin
from arena.schedule.standings import standings
from arena.schedule.swiss import next_round

KEY = b"repeatable"
SCHEDULES = "bade21a12025bb8024ba97710b5bd659ebeb4fa890f173c968dfe1159f01e064"
"""Of all schedules below: integers and exact fractions only, so every machine must come to it. A change of how rounds
are paired changes it too, and then belongs into the changelog."""


def score(number: int, table: tuple[int, ...]) -> TableScore:
    stream = Stream(KEY, "score", number, *table)
    duels = [[0] * len(table) for _ in table]
    for i, j in combinations(range(len(table)), 2):
        duels[i][j] = stream.below(3)
        duels[j][i] = 2 - duels[i][j]
    return TableScore(number, table, tuple(map(tuple, duels)), 1)


def schedules() -> bytes:
    """Return Swiss events of two and more seats with their standings, and round robins."""
    found: list[object] = []
    for entrants, seats, smaller in ((60, 2, False), (31, 2, False), (30, 4, True), (27, 6, False)):
        history: list[Round] = []
        scores: list[TableScore] = []
        for _ in range(4):
            round_ = next_round(range(entrants), seats, history, scores, KEY, smaller_tables=smaller, work=300_000)
            history.append(round_)
            scores += [score(round_.number, table) for table in round_.tables]
        found += [history, standings(range(entrants), history, scores, key=KEY)]
    found += [list(round_robin(range(entrants), seats, 2, KEY)) for entrants, seats in ((9, 2), (8, 3), (13, 4))]
    found += [list(round_robin(range(11), 4, 1, KEY, work=2_000_000))]
    return msgspec.msgpack.encode(found)


def pool() -> bytes:
    """Return ratings with their errors, places and covariance; the last bits may differ between machines."""
    stream = Stream(KEY, "deals")
    bots = [BotHash(name) for name in "abcdefgh"]
    deals = [RatedDeal(str(number // 3), tuple(stream.shuffled(bots)[:4]), (1, 2, 3, 4)) for number in range(300)]
    found = rate_pool(deals, "ranking")
    return msgspec.msgpack.encode([found.ratings, found.groups, list(found.certainty.covariance)])


def digests() -> str:
    return f"{sha256(schedules()).hexdigest()} {sha256(pool()).hexdigest()}"


def test_every_process_comes_to_the_same_schedules_and_ratings() -> None:
    code = "from tests.test_schedule_repeatable import digests; print(digests())"
    found = {digests()}
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code]
        folder = Path(__file__).parents[1]
        found.add(subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True).stdout.strip())
    assert len(found) == 1


def test_schedules_are_what_they_have_always_been() -> None:
    assert sha256(schedules()).hexdigest() == SCHEDULES
