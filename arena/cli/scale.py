"""What `arena compare` shows while it runs: one line that is redrawn, a line every ten seconds, or event lines."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import msgspec
import trio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from arena.cli.output import console, count_of, emit_json, harmless, say
from arena.cli.progress import LINE_EVERY_S, Mode
from arena.comparison import NEW, OLD, Comparison, Judged
from arena.rating.interval import Interval
from arena.rating.sequential import Judgement
from arena.store.tournaments import Entrant
from arena.tournament import MatchPlayed, MatchVoid

_REDRAW_S = 0.1


class Scale:
    """Told what happens in a comparison, shows to which side it leans."""

    def __init__(self, mode: Mode, err: Console | None = None) -> None:
        self._mode = mode
        self._console = err or console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._comparison: Comparison | None = None

    def __enter__(self) -> Self:
        if self._mode == "bars":
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._mode == "bars":
            self._live.stop()

    def start_from(self, comparison: Comparison, entrants: list[Entrant], lanes: int, *, resumed: bool) -> None:
        """Say what is compared; from then on the line tells of it."""
        self._comparison = comparison
        if self._mode not in ("bars", "lines"):
            return
        word = "is over" if comparison.is_over else "goes on" if resumed else "begins"
        practice = " · practice" if comparison.tournament.practice else ""
        say(
            f"{comparison.tournament.name} {word} · OLD {_named(entrants[OLD])} · NEW {_named(entrants[NEW])} · "
            f"{comparison.game}, {count_of(comparison.plan.seats, 'seat')} · {count_of(lanes, 'lane')} · "
            f"isolation {comparison.tournament.isolation}{practice}"
        )

    async def keep_showing(self) -> None:
        """Redraw, or print a line, at regular times until cancelled."""
        while self._mode in ("bars", "lines"):
            if self._mode == "bars":
                self._live.update(Text(self.line(), no_wrap=True, overflow="ellipsis"), refresh=True)
                await trio.sleep(_REDRAW_S)
            else:
                await trio.sleep(LINE_EVERY_S)
                self._console.print(Text(self.line()), soft_wrap=True)

    def remark(self, text: str) -> None:
        """Say something to a person without disturbing the line."""
        if self._mode in ("bars", "lines"):
            self._console.print(Text(harmless(text)), soft_wrap=True)

    def report(self, event: MatchPlayed | MatchVoid | Judged) -> None:
        """Take an event of the comparison."""
        if self._mode == "events":
            _emit(event)
        match event:
            case MatchVoid(_, number, reason):
                self.remark(f"void match {number}: {reason}; it is played again")
            case MatchPlayed(_, names, record):
                seatings = {(deal.deck, deal.leg): deal.seating for deal in record.deals}
                for fault in record.faults:
                    name = names[seatings[fault.deck, fault.leg][fault.seat]]
                    where = f"{record.id}-{fault.deck}-{fault.leg}"
                    self.remark(f"fault {where} step {fault.step} {name}: {fault.kind}/{fault.detail}")
            case Judged():
                pass

    def line(self) -> str:
        """Return the state of the comparison in one line."""
        assert self._comparison is not None
        said = self._comparison.judgement()
        parts = [
            f"LLR {said.llr:+.2f} ({said.lower:+.2f}…{said.upper:+.2f})",
            f"Elo {elo_text(said.elo)}",
            count_of(said.sets, "set"),
            count_of(self._comparison.faults.total(), "fault"),
            _more(said),
        ]
        return " · ".join(part for part in parts if part)


def elo_text(found: Interval | None) -> str:
    """Return a difference with half of its 95 % interval, or the one end that it has."""
    if found is None:
        return "n/a"
    if found.value is None or found.low is None or found.high is None:
        return f"less than {signed(found.high)}" if found.high is not None else f"more than {signed(found.low or 0.0)}"
    return f"{signed(found.value)} ± {(found.high - found.low) / 2:.1f}"


def signed(value: float) -> str:
    """Return a difference with its sign; there is no negative zero."""
    return f"{round(value, 1) + 0.0:+.1f}"


def _more(said: Judgement) -> str:
    return "" if said.more_sets is None else f"~{said.more_sets:.0f} more"


def _named(entrant: Entrant) -> str:
    return f"{entrant.name} ({entrant.hash[:6]})"


def _emit(event: MatchPlayed | MatchVoid | Judged) -> None:
    match event:
        case MatchPlayed(game, names, record):
            told: dict[str, object] = {"game": game, "match": record.id, "bots": names, "faults": len(record.faults)}
            emit_json("event/1", {"event": "MatchPlayed", **told, "deals": len(record.deals)})
        case MatchVoid():
            emit_json("event/1", {"event": "MatchVoid", **msgspec.structs.asdict(event)})
        case Judged(judgement):
            emit_json("event/1", {"event": "Judged", **msgspec.structs.asdict(judgement)})
