"""What all tests of whole commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def small_machine() -> Iterator[None]:
    """Let bots share few files with this machine, since those are read before a tournament begins."""
    with pytest.MonkeyPatch.context() as patch:
        for command in ("run", "compare"):
            patch.setattr(f"arena.cli.{command}.shared_folders", lambda: [Path("/etc/alternatives")])
        yield
