"""Where a command's bots come from: folders and submitted names, made ready to run beside the database."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from sqlite_utils import Database

from arena.build import bot_ref, build, prepare, verified
from arena.bundle import Bundle, read_bundle
from arena.check import OpenHost
from arena.config import BotManifest, load_manifest, manifest_of
from arena.errors import ConfigError
from arena.executor import LocalLanes, open_lanes
from arena.lane import LaneConfig, host_for, machine_facts
from arena.records import BotHash, BotRef
from arena.sandbox import Level
from arena.sandbox.environment import make_runtime
from arena.sandbox.orphans import adopting
from arena.store import bots
from arena.store.database import writing


class Site(NamedTuple):
    """The folder around a database, and the isolation level of its bots.

    Attributes:
        bots: unpacked bundles and builds, by hash.
        runtime: the interpreter that bots find.
    """

    bots: Path
    runtime: Path
    level: Level


class Player(NamedTuple):
    """A bot ready to run."""

    manifest: BotManifest
    ref: BotRef


def open_site(db: Path, level: Level) -> Site:
    """Return the site of a database, its interpreter made.

    Raises:
        ConfigError: the database's folder cannot be written.
    """
    folder = db.absolute().parent
    try:
        return Site(folder / "bots", make_runtime(folder / "runtime"), level)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}; name another with --db or ARENA_DB") from None


@asynccontextmanager
async def open_site_lanes(site: Site, jobs: int) -> AsyncIterator[LocalLanes]:
    """Open lanes for the bots of a site."""
    async with open_lanes(jobs, LaneConfig(site.level.value, str(site.runtime))) as lanes:
        yield lanes


@contextmanager
def own_lane(site: Site) -> Iterator[OpenHost]:
    """Make this process a lane for a while: it plays the bots of a site itself, pinned with them to one core."""
    before = os.sched_getaffinity(0)
    config = LaneConfig(site.level.value, str(site.runtime), max(before))
    with adopting():
        os.sched_setaffinity(0, {config.core})
        try:
            yield partial(host_for, config, machine=machine_facts())
        finally:
            os.sched_setaffinity(0, before)


def check_jobs(jobs: int | None, *, oversubscribe: bool) -> int:
    """Return the number of lanes: as many as cores by default, and not more unless asked for twice.

    Raises:
        ConfigError: more lanes than cores.
    """
    cores = len(os.sched_getaffinity(0))
    if jobs is not None and jobs > cores and not oversubscribe:
        raise ConfigError(
            f"--jobs {jobs} is more than the {cores} cores here: bots would lose time to each other; "
            "pass --oversubscribe if that does not matter"
        )
    return jobs or cores


async def admit(db: Database, folder: str, site: Site, now: float) -> Player:
    """Bundle a bot's folder, build it if it wants to be, and keep it.

    Args:
        folder: as the user wrote it, which messages repeat.

    Raises:
        ConfigError: the folder is not accepted, or its build fails.
    """
    bundle, player = await unpacked(folder, site)
    text = (bundle.find("bot.toml") or b"").decode()
    size = sum(len(file.data) for file in bundle.files)
    with writing(db):
        bots.add_bot(db, bundle.hash, text, len(bundle.files), size, now)
    return player


async def unpacked(folder: str, site: Site) -> tuple[Bundle, Player]:
    """Bundle a bot's folder and build it if it wants to be, but do not keep it in the database.

    Raises:
        ConfigError: the folder is not accepted, or its build fails.
    """
    path = Path(folder)
    check_place(path, site.bots.parent)
    bundle = read_bundle(path)
    manifest = manifest_of(bundle, f"{folder.rstrip('/')}/bot.toml")
    home = prepare(site.bots, bundle)
    await build(site.level, home, site.runtime, manifest)
    return bundle, Player(manifest, bot_ref(site.bots, bundle.hash, manifest))


def check_place(folder: Path, results: Path) -> None:
    """Raise ConfigError if a path is no bot's folder, or if the database's folder would become a part of the bot."""
    if not folder.exists():
        raise ConfigError(f"there is no folder {folder}/")
    if folder.is_dir() and not (folder / "bot.toml").is_file():
        raise ConfigError(f"there is no bot.toml in {folder}/; it belongs into the bot's folder, beside its program")
    if folder.is_dir() and results.absolute().resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"the database's folder {results} lies inside the bot's folder {folder}/ and would become a part of it; "
            "work from another folder, or name a database elsewhere with --db"
        )


def check_places(names: Sequence[str], db: Path) -> None:
    """Check all bots that are named by their folders, before anything is made beside the database.

    Raises:
        ConfigError: names every one that is none.
    """
    problems = []
    for name in names:
        try:
            if "/" in name:
                check_place(Path(name), db.parent)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))


async def recall(name: str, bot: BotHash, site: Site) -> Player:
    """Return a bot that was kept before, built again where its build is missing.

    Args:
        name: the one it plays under.

    Raises:
        ConfigError: its files beside the database are missing or changed.
    """
    # Not the manifest in the database, which an import may have written: the files are what the hash stands for.
    manifest = load_manifest(verified(site.bots, bot) / "src")
    await build(site.level, site.bots / bot, site.runtime, manifest)
    ref = bot_ref(site.bots, bot, manifest)
    return Player(manifest, msgspec.structs.replace(ref, name=name))
