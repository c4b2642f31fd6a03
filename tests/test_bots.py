"""Every bot of bots/ is complete and plays its games without a fault, here with real processes at level none."""

from __future__ import annotations

import ast
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from arena.bot import Process
from arena.config import load_manifest
from arena.games import GAMES
from arena.luck import derive
from arena.records import BotHash, BotRef, Clock, Machine, MatchRecord, MatchSpec
from arena.referee import Host, play_match
from arena.rules import Value, complete_options
from arena.sandbox import Level, Limits, Room, open_sandboxed
from arena.sandbox.environment import make_runtime

BOTS = Path(__file__).parents[1] / "bots"
SDK = BOTS / "sdk" / "python" / "arena_bot.py"
FOLDERS = sorted(path.parent for path in BOTS.glob("*/bot.toml"))
CLOCK = Clock(decision_ms=20_000, bank_ms=600_000, startup_ms=60_000)
"""Generous: what is tested is what the bots play, on however busy a machine."""
UNUSUAL: Mapping[str, Mapping[str, Value]] = {
    "avalanche": {"open_pile": "last_player"},
    "durak": {"chain": True, "redeal_if_empty": True, "transfer": True, "first_bout_max": 5, "max_attack": "none"},
    "smokestack": {"sweep": "own_turn", "sweep_scope": "all", "sweeps": 2},
}
STRONGER = [("avalanchist", "avalanche"), ("knave", "durak"), ("sweeper", "smokestack")]

Arena = Mapping[str, BotRef]

every_bot = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
every_pair = pytest.mark.parametrize(
    ("name", "game"),
    [(folder.name, game) for folder in FOLDERS for game in load_manifest(folder).games],
)


def build(folder: Path, out: Path) -> BotRef:
    described = load_manifest(folder)
    if described.build is not None:
        out.mkdir()
        command = [argument.replace("{out}", str(out)) for argument in described.build]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        assert done.stderr == ""
    built = None if described.build is None else str(out)
    return BotRef(described.name, BotHash(described.name), str(folder), described.command, built)


@pytest.fixture(scope="module")
def refs(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    made = tmp_path_factory.mktemp("built")
    return {folder.name: build(folder, made / folder.name) for folder in FOLDERS}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    runtime = make_runtime(tmp_path_factory.mktemp("runtime"))

    def open_process(ref: BotRef) -> AbstractAsyncContextManager[Process]:
        room = Room(Path(ref.folder), runtime, Path(ref.out) if ref.out is not None else None)
        return open_sandboxed(Level.NONE, room, ref.command, Limits(cpu_s=600))

    return Host(open_process, "none", Machine("", "", 1, 0, ""), "test", time.time)


async def play(
    host: Host, bots: tuple[BotRef, ...], game: str, decks: int = 1, options: Mapping[str, Value] | None = None
) -> MatchRecord:
    """Play in every cyclic seating of the bots, or in one when they are all the same."""
    rules, seats = GAMES[game], len(bots)
    legs = tuple(tuple((seat + leg) % seats for seat in range(seats)) for leg in range(len(set(bots))))
    keys = tuple(derive(bytes(32), "deck", game, seats, 1, number) for number in range(decks))
    complete = complete_options(rules, seats, options or {})
    return await play_match(MatchSpec(1, game, rules.version, complete, bots, keys, legs, CLOCK), host)


@every_bot
def test_a_bot_is_described(folder: Path) -> None:
    described = load_manifest(folder)
    assert described.name == folder.name
    assert described.author == "arena"
    assert described.games
    assert described.language


@every_bot
def test_a_bot_is_its_own(folder: Path) -> None:
    """The SDK's copy is the SDK, and nothing but it and the standard library is imported."""
    if load_manifest(folder).language != "python":
        return
    assert (folder / SDK.name).read_bytes() == SDK.read_bytes()
    tree = ast.parse((folder / "bot.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= {"__future__", "arena_bot", "collections.abc", "functools", "random", "typing"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_there_are_the_bots_that_the_documentation_names() -> None:
    assert {folder.name for folder in FOLDERS} >= {"random", "greedy", "avalanchist", "knave", "sweeper", "c-first"}


@every_pair
@pytest.mark.parametrize("seats", [2, 3])
async def test_a_bot_plays_without_a_fault(host: Host, refs: Arena, name: str, game: str, seats: int) -> None:
    record = await play(host, (refs[name],) * seats, game)
    assert record.faults == ()
    assert record.deals[0].rated


@every_pair
async def test_a_bot_plays_unusual_options(host: Host, refs: Arena, name: str, game: str) -> None:
    record = await play(host, (refs[name],) * 4, game, options=UNUSUAL[game])
    assert record.faults == ()


@every_pair
async def test_a_bot_plays_the_same_way_again(host: Host, refs: Arena, name: str, game: str) -> None:
    first, second = [await play(host, (refs[name],) * 2, game, decks=2) for _ in range(2)]
    played = [[[step.action for step in deal.steps] for deal in record.deals] for record in (first, second)]
    assert played[0] == played[1]
    assert [deal.digests for deal in first.deals] == [deal.digests for deal in second.deals]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "game"), STRONGER)
async def test_looking_ahead_beats_the_rule_of_thumb(host: Host, refs: Arena, name: str, game: str) -> None:
    record = await play(host, (refs[name], refs["greedy"]), game, decks=20)
    places = [[deal.places[deal.seating.index(bot)] for bot in (0, 1)] for deal in record.deals]
    assert sum(own < other for own, other in places) > sum(own > other for own, other in places) + len(places) // 5
