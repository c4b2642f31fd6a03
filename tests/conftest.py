"""Options and profiles of the test run."""

from __future__ import annotations

import os

import pytest
import trio
from hypothesis import settings

from arena.sandbox import Usage
from tests.fakes import FakeProcess

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=250, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regen", action="store_true", help="rewrite the golden traces of tests/playthroughs")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests measured as the table of DESIGN.md, "Calibration"."""
    reports = terminalreporter.getreports("passed")
    rows = sorted({str(row) for report in reports for name, row in report.user_properties if name == "calibration"})
    if rows:
        terminalreporter.section("calibration")
        for row in ("| what | promised | found |", "|------|----------|-------|", *rows):
            terminalreporter.write_line(row)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bots seem to compute all the time, so that whatever is slow is slow by them."""
    monkeypatch.setattr(FakeProcess, "usage", lambda _: Usage(1, 0, round(trio.current_time() * 1e6)))
