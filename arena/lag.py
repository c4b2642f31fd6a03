"""How late a lane's loop is, and whether that is the doing of the match that it plays."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

EVERY_S = 0.02
FOREIGN_S = 0.05
"""A lag of more than this that the match's own processes did not cause voids an answer that comes too late."""
_LOOKS_EVERY = 5
"""Between two looks at the bots' processes, in measurements."""


class Lag:
    """How late a regular short sleep ends, since the last reset; and when others last kept this core from us.

    A bot that is about to lose gains nothing by making the machine slow: the CPU time that the match's own processes
    used meanwhile is taken off.
    """

    def __init__(self, own_cpu_us: Callable[[], int]) -> None:
        """Prepare to measure.

        Args:
            own_cpu_us: looks at the match's own processes and returns the CPU time they have used together.
        """
        self._own_cpu_us = own_cpu_us
        self._own_us = 0
        self._worst_s = 0.0
        self._due = math.inf
        self._foreign_at = -math.inf

    async def measure(self) -> None:
        """Keep measuring until cancelled."""
        looks = 0
        while True:
            self._due = trio.current_time() + EVERY_S
            await trio.sleep_until(self._due)
            self._note()
            looks += 1
            if looks % _LOOKS_EVERY == 0:
                self._own_us = self._own_cpu_us()

    def _note(self) -> None:
        now = trio.current_time()
        late_s = now - self._due
        self._worst_s = max(self._worst_s, late_s)
        if late_s > FOREIGN_S:
            before_us, self._own_us = self._own_us, self._own_cpu_us()
            if late_s - max(self._own_us - before_us, 0) / 1e6 > FOREIGN_S:
                self._foreign_at = now

    def was_foreign_since(self, began: float) -> bool:
        """Tell whether others kept this core from us for long at a time, as late as `began` by trio's clock."""
        self._note()  # the sleep may be over without this having been told yet
        return self._foreign_at >= began

    def reset(self) -> int:
        """Return the worst so far in microseconds and start again."""
        worst_us, self._worst_s = round(self._worst_s * 1e6), 0.0
        return worst_us
