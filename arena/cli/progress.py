"""What `arena run` shows while it runs: bars on a terminal, a line every ten seconds elsewhere, or event lines."""

from __future__ import annotations

import time
from collections import Counter, deque
from types import TracebackType
from typing import Literal, Self

import msgspec
import trio
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from arena.cli.output import console, count_of, emit_json, harmless
from arena.records import MatchRecord
from arena.tournament import MatchPlayed, MatchVoid, RoundBegan, RoundComplete

Mode = Literal["bars", "lines", "events", "quiet"]

LINE_EVERY_S = 10.0
_REDRAW_S = 0.1
_RATE_MATCHES = 50
"""The rate is that of so many of the latest matches, so that it follows the machine and not the whole past."""
_BESIDE_BAR = 68
"""Columns of a line of progress without its bar, where numbers are of usual size."""
_FAULT_CHARACTERS = 100
_LEAST_CHARACTERS = 40
HINT = "Ctrl-C: finish the matches being played and stop · again: stop now · the same command goes on where it stopped"


class Pace:
    """How fast matches end, and when the rest will have: a moving rate, which falls while nothing ends."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total = total
        self.done = done
        self.began = time.monotonic()
        self._latest: deque[float] = deque([self.began], maxlen=_RATE_MATCHES + 1)

    def count(self) -> None:
        """Count a match that has just ended."""
        self.done += 1
        self._latest.append(time.monotonic())

    def rate(self) -> float:
        """Return matches a second; 0 until the first has ended."""
        span = time.monotonic() - self._latest[0]
        return (len(self._latest) - 1) / span if span > 0 else 0.0

    def left_s(self) -> float | None:
        """Return how many seconds the rest will take, or None while nothing is known."""
        rate = self.rate()
        return (self.total - self.done) / rate if rate else None


class _Beside(ProgressColumn):
    """What stands beside a bar."""

    def render(self, task: Task) -> Text:
        told: Text = task.fields["told"]
        return told


class Display:
    """Told what happens in a run, shows it in one of four ways; faults are shown as they happen in all but `quiet`."""

    def __init__(self, mode: Mode, total: int, err: Console | None = None) -> None:
        self._mode = mode
        self._pace = Pace(total)
        self._faults: Counter[str] = Counter()
        self._console = err or console(stderr=True)
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=max(8, min(42, self._console.width - _BESIDE_BAR))),
            _Beside(),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._rounds: dict[str, tuple[TaskID, Pace, Counter[str]]] = {}
        self._whole = self._bars.add_task("tournament", total=total, told=Text())

    def __enter__(self) -> Self:
        if self._mode == "bars":
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mode == "bars":
            self._bars.stop()

    async def keep_showing(self) -> None:
        """Redraw, or print a line, at regular times until cancelled."""
        while self._mode in ("bars", "lines"):
            await trio.sleep(_REDRAW_S if self._mode == "bars" else LINE_EVERY_S)
            if self._mode == "bars":
                self._redraw()
            else:
                self._console.print(Text(self.line()), soft_wrap=True)

    def remark(self, text: str) -> None:
        """Say something to a person without disturbing the bars."""
        if self._mode == "bars":
            self._bars.console.print(Text(text))
            self._bars.refresh()
        else:
            self._console.print(Text(text), soft_wrap=True)

    def start_from(self, done: int, *, silent: bool = False) -> None:
        """Count what has been played before, and say it and how a run is stopped unless that was said."""
        self._pace = Pace(self._pace.total, done)
        if silent:
            return
        if done and self._mode in ("bars", "lines"):
            self.remark(f"{done:,} of {self._pace.total:,} matches were played before")
        if self._mode == "bars":
            self.remark(HINT)

    def report(self, event: RoundBegan | MatchPlayed | MatchVoid | RoundComplete) -> None:
        """Take an event of the run."""
        if self._mode == "events":
            emit_json("event/1", _document(event))
        match event:
            case RoundBegan(game, number, matches, left):
                self._begin(game, number, matches, left)
            case MatchPlayed(game, names, record):
                self._count(game)
                self._show_faults(game, names, record)
            case MatchVoid(_, number, reason):
                text = Text(f"  void match {number}: {harmless(reason)}; it is played again", style="yellow")
                if self._mode in ("bars", "lines"):
                    self._console.print(text, soft_wrap=self._mode == "lines")
            case RoundComplete(game, number):
                self._complete(game, number)

    def line(self) -> str:
        """Return the state of the run in one line."""
        pace, left_s = self._pace, self._pace.left_s()
        eta = "?" if left_s is None else f"{left_s:.0f}s"
        faults = self._faults.total()
        return f"progress matches={pace.done}/{pace.total} rate={pace.rate():.1f}/s eta={eta} faults={faults}"

    def _begin(self, game: str, number: int, matches: int, left: int) -> None:
        if self._mode == "lines":
            self._console.print(Text(f"{game} round {number}: {count_of(matches, 'match')}"))
        if game in self._rounds:
            self._bars.remove_task(self._rounds[game][0])
        task = self._bars.add_task(f"{game} round {number}", total=matches, told=Text())
        self._bars.remove_task(self._whole)  # it stays below the rounds
        self._whole = self._bars.add_task("tournament", total=self._pace.total, told=Text())
        self._rounds[game] = task, Pace(matches, matches - left), Counter()

    def _count(self, game: str) -> None:
        self._pace.count()
        self._rounds[game][1].count()

    def _complete(self, game: str, number: int) -> None:
        _, pace, faults = self._rounds[game]
        line = Text.assemble(f"  {game} round {number} complete  {count_of(pace.total, 'match')}  ")
        line.append(_minutes(time.monotonic() - pace.began), style="green")
        if faults:
            by_bot = ", ".join(f"{name} {times}" for name, times in faults.most_common(4))
            line.append(f"  faults {faults.total()} ({by_bot})", style="red")
        self._print(line)

    def _redraw(self) -> None:
        for task, pace in ((self._whole, self._pace), *((task, pace) for task, pace, _ in self._rounds.values())):
            self._bars.update(task, completed=pace.done, told=_told(pace))
        self._bars.refresh()

    def _show_faults(self, game: str, names: tuple[str, ...], record: MatchRecord) -> None:
        seatings = {(deal.deck, deal.leg): deal.seating for deal in record.deals}
        for fault in record.faults:
            name = names[seatings[fault.deck, fault.leg][fault.seat]]
            self._faults[name] += 1
            self._rounds[game][2][f"{name} {fault.kind}"] += 1
            where = f"{record.id}-{fault.deck}-{fault.leg}"
            text = f" {game} step {fault.step} {name}: {fault.kind}/{fault.detail} "
            why = f"  arena why {where}"
            room = (
                self._console.width - len(f"  fault {where}{text}{why}") if self._mode == "bars" else _FAULT_CHARACTERS
            )
            if room < _LEAST_CHARACTERS:  # the deal's name says as much
                room, why = room + len(why), ""
            said = harmless(fault.text)
            said = said if len(said) <= room else f"{said[: max(0, room - 1)]}…"
            self._print(Text.assemble(("  fault ", "bold yellow"), where, text, said, (why, "dim")))

    def _print(self, text: Text) -> None:
        if self._mode in ("bars", "lines"):
            on_terminal = self._mode == "bars"
            self._console.print(text, soft_wrap=not on_terminal, no_wrap=on_terminal, overflow="ellipsis")


def _told(pace: Pace) -> Text:
    """Return what stands beside a bar."""
    left_s = pace.left_s()
    return Text.assemble(
        (f"{pace.done}/{pace.total}  ", "green"),
        (f"{100 * pace.done // max(1, pace.total):3}% ", "magenta"),
        (f"{pace.rate():.1f}/s ", "cyan"),
        (f"elapsed {_minutes(time.monotonic() - pace.began)} left ", "dim"),
        ("?" if left_s is None else _minutes(left_s), "bold"),
    )


def _minutes(seconds: float) -> str:
    """Return e.g. `4:31` or `2:04:31`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _document(event: RoundBegan | MatchPlayed | MatchVoid | RoundComplete) -> dict[str, object]:
    if not isinstance(event, MatchPlayed):
        return {"event": type(event).__name__, **msgspec.structs.asdict(event)}
    record = event.record
    wins = Counter(
        event.names[place] for deal in record.deals for seat, place in enumerate(deal.seating) if deal.places[seat] == 1
    )
    return {
        "event": "MatchPlayed",
        "game": event.game,
        "match": record.id,
        "bots": event.names,
        "first_places": wins,
        "deals": len(record.deals),
        "faults": len(record.faults),
    }
