"""All checks of a bot, in order; each tells what it found as soon as it knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from arena.check import judging
from arena.check.deals import OpenHost, Played, check_spec, play_deals, random_specs
from arena.check.dialogue import Asked, Case, Ending, Greeting, ask_cases, cases, greet
from arena.check.finding import Finding, failed, skipped
from arena.check.positions import positions
from arena.games import GAMES
from arena.records import BotRef, Clock, Fault, MatchSpec

_TABLES = (2, 4)
"""The numbers of seats at which deals are played, where the game allows them."""


class Examination(msgspec.Struct, frozen=True):
    """What is examined, and how.

    Attributes:
        opponent: a bot that plays at random.
        deals: of each game, half of them against the opponent and half against itself.
        report: is told each finding.
        begin: is told what is looked at next.
    """

    bot: BotRef
    opponent: BotRef
    games: tuple[str, ...]
    hosts: OpenHost
    clock: Clock = Clock()
    deals: int = 20
    report: Callable[[Finding], None] = lambda finding: None
    begin: Callable[[str], None] = lambda what: None


class _Seen:
    """What has been seen of the bot so far; `tell` reports what it says."""

    def __init__(self, exam: Examination) -> None:
        self.findings: list[Finding] = []
        self.asked: list[Asked] = []
        self.endings: list[Ending] = []
        self.played: list[Played] = []
        self.pairs: list[tuple[Played, Played]] = []
        self._report = exam.report

    def tell(self, *findings: Finding) -> None:
        for finding in findings:
            self.findings.append(finding)
            self._report(finding)

    def faults(self) -> list[Fault]:
        asked = [fault for one in self.asked for _, fault in one.faults]
        return asked + [fault for one in self.played for fault in one.faults]


async def examine(exam: Examination) -> list[Finding]:
    """Make all checks; when the bot does not start, all that need it are skipped.

    Raises:
        InfraError: one could not be made for a reason of ours.
    """
    seen = _Seen(exam)
    exam.begin("handshake")
    spec = check_spec(exam.bot, exam.games[0], 1, exam.clock)
    greeting = await greet(spec, exam.hosts(spec))
    if greeting.fault is not None:
        seen.tell(failed("handshake", "at the start", greeting.fault, {}), *_without_a_start(exam, greeting.fault))
        return seen.findings
    seen.tell(judging.judge_hello(greeting.hello_us, exam.clock))
    await _ask_positions(exam, seen, greeting)
    await _play_deals(exam, seen)
    memory_mib = exam.hosts(spec).memory_mib
    answers = sum(len(one.elapsed_us()) for one in seen.played)
    used = max([one.peak_kib for one in seen.asked] + [one.peak_kib for one in seen.played])
    seen.tell(
        judging.judge_stdout(seen.faults(), answers),
        judging.judge_repetition(seen.pairs),
        judging.judge_memory(used, memory_mib, seen.faults()),
        judging.judge_times(seen.played, exam.clock),
        judging.judge_stderr(seen.played),
    )
    return seen.findings


def _without_a_start(exam: Examination, fault: Fault) -> list[Finding]:
    names = [*(f"{game} positions" for game in exam.games), "bye", *(f"{game} deals" for game in exam.games)]
    found = [skipped(name, "the bot does not start") for name in names]
    found.append(judging.judge_stdout([fault], 0))
    later = ("deterministic", "memory", "decision time", "stderr")
    return found + [skipped(name, "the bot does not start") for name in later]


async def _ask_positions(exam: Examination, seen: _Seen, greeting: Greeting) -> None:
    for game in exam.games:
        rules = GAMES[game]
        exam.begin(f"{game} positions")
        tables: list[tuple[MatchSpec, Sequence[Case], Asked]] = []
        for seats in sorted({rules.seats[0], rules.seats[-1]}):
            seat = 0 if seats == rules.seats[0] else seats - 1
            some = cases(positions(rules, seats, seat))
            spec = check_spec(exam.bot, game, 1, exam.clock, seats=seats)
            spec = msgspec.structs.replace(spec, decks=tuple(case.position.key for case in some))
            tables.append((spec, some, await ask_cases(spec, seat, some, exam.hosts(spec))))
        seen.asked += [asked for _, _, asked in tables]
        seen.tell(judging.judge_positions(game, tables))
    endings = [greeting.ending, *(one.ending for one in seen.asked)]
    seen.tell(judging.judge_endings([one for one in endings if one is not None]))


async def _play_deals(exam: Examination, seen: _Seen) -> None:
    for game in exam.games:
        specs = _specs(exam, game)
        played: list[Played] = []
        for spec in specs:
            exam.begin(f"{game} deals, {len(played) + 1} of {len(specs) + 1}")
            played.append(await play_deals(spec, exam.bot, exam.hosts(spec)))
        again = msgspec.structs.replace(specs[0], decks=specs[0].decks[::-1])
        if not played[0].faults:
            exam.begin(f"{game} deals, {len(specs) + 1} of {len(specs) + 1}")
            seen.pairs.append((played[0], await play_deals(again, exam.bot, exam.hosts(again))))
        seen.played += played
        seen.tell(judging.judge_deals(game, played, exam.opponent.name))


def _specs(exam: Examination, game: str) -> list[MatchSpec]:
    """Return the deals of a game: against itself, then against the opponent, each shared among the tables."""
    tables = [seats for seats in _TABLES if seats in GAMES[game].seats]
    itself, others = exam.deals // 2, exam.deals - exam.deals // 2
    found = []
    for seats, decks in zip(tables, _shares(itself, len(tables)), strict=True):
        found.append(check_spec(exam.bot, game, 1, exam.clock, decks, seats))
    for seats, decks in zip(tables, _shares(others, len(tables)), strict=True):
        found += random_specs(exam.bot, exam.opponent, game, exam.clock, decks, seats)
    return [spec for spec in found if spec.decks]


def _shares(count: int, parts: int) -> list[int]:
    return [count // parts + (part < count % parts) for part in range(parts)]
