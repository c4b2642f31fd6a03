"""The doctor: attacks what contains bots, as bots would, and tells what holds on this machine."""

from __future__ import annotations

from arena.doctor.examination import Verdict, examine
from arena.doctor.finding import Status

__all__ = ["Status", "Verdict", "examine"]
