"""What `arena run` shows while it runs: bars on a terminal, a line every ten seconds elsewhere, or event lines."""

from __future__ import annotations

import time
from collections import Counter, deque
from types import TracebackType
from typing import Literal, Self

import msgspec
import trio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from arena.cli.output import console, count_of, emit_json, harmless
from arena.records import MatchRecord
from arena.tournament import MatchPlayed, MatchVoid, RoundBegan, RoundComplete

Mode = Literal["bars", "lines", "events", "quiet"]

LINE_EVERY_S = 10.0
_REDRAW_S = 0.1
_RATE_MATCHES = 50
"""The rate is that of so many of the latest matches, so that it follows the machine and not the whole past."""


class Display:
    """Told what happens in a run, shows it in one of four ways; faults are shown as they happen in all but `quiet`."""

    def __init__(self, mode: Mode, total: int, err: Console | None = None) -> None:
        self._mode = mode
        self._total = total
        self._done = 0
        self._faults = 0
        self._latest: deque[float] = deque([time.monotonic()], maxlen=_RATE_MATCHES)
        self._console = err or console(stderr=True)
        self._bars = Progress(
            TextColumn("  {task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._rounds: dict[str, TaskID] = {}
        self._whole = self._bars.add_task("tournament", total=total, rate="", left="")

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
                self._bars.refresh()
            else:
                self._console.print(Text(self.line()))

    def remark(self, text: str) -> None:
        """Say something to a person without disturbing the bars."""
        if self._mode == "bars":
            self._bars.console.print(Text(text))
            self._bars.refresh()
        else:
            self._console.print(Text(text), soft_wrap=True)

    def start_from(self, done: int) -> None:
        """Count what an earlier run has played."""
        self._done = done
        self._bars.update(self._whole, completed=done)

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
                self._print(Text(f"  void match {number}: {harmless(reason)}; it is played again", style="yellow"))
            case RoundComplete():
                pass

    def line(self) -> str:
        """Return the state of the run in one line."""
        rate = self._rate()
        eta = f"{(self._total - self._done) / rate:.0f}s" if rate else "?"
        return f"progress matches={self._done}/{self._total} rate={rate:.1f}/s eta={eta} faults={self._faults}"

    def _begin(self, game: str, number: int, matches: int, left: int) -> None:
        if self._mode == "lines":
            self._console.print(Text(f"{game} round {number}: {count_of(matches, 'match')}"))
        if (task := self._rounds.get(game)) is not None:
            self._bars.remove_task(task)
        self._rounds[game] = self._bars.add_task(
            f"{game} round {number}", total=matches, completed=matches - left, rate="", left=""
        )

    def _count(self, game: str) -> None:
        self._done += 1
        self._latest.append(time.monotonic())
        rate = self._rate()
        left_s = (self._total - self._done) / rate if rate else 0.0
        self._bars.advance(self._rounds[game])
        shown = f"left {int(left_s) // 60}:{int(left_s) % 60:02}"
        self._bars.update(self._whole, completed=self._done, rate=f"{rate:.1f}/s", left=shown)

    def _rate(self) -> float:
        span = self._latest[-1] - self._latest[0]
        return (len(self._latest) - 1) / span if span > 0 else 0.0

    def _show_faults(self, game: str, names: tuple[str, ...], record: MatchRecord) -> None:
        self._faults += len(record.faults)
        seatings = {(deal.deck, deal.leg): deal.seating for deal in record.deals}
        for fault in record.faults:
            name = names[seatings[fault.deck, fault.leg][fault.seat]]
            where = f"{record.id}-{fault.deck}-{fault.leg}"
            text = f"{game} step {fault.step} {name}: {fault.kind}/{fault.detail} {harmless(fault.text)[:100]}"
            self._print(Text.assemble(("  fault ", "bold red"), f"{where} {text}"))

    def _print(self, text: Text) -> None:
        if self._mode in ("bars", "lines"):
            on_terminal = self._mode == "bars"
            self._console.print(text, soft_wrap=not on_terminal, no_wrap=on_terminal, overflow="ellipsis")


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
