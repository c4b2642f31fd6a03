"""What a bot is examined for before it is handed in, and the short form of it that `arena submit` asks for."""

from __future__ import annotations

from arena.check.deals import OpenHost, first_fault
from arena.check.examination import Examination, examine
from arena.check.finding import Finding, Verdict

__all__ = ["Examination", "Finding", "OpenHost", "Verdict", "examine", "first_fault"]
