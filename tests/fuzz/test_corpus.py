"""What the fuzzer found, as tests: each input of the corpus once again, without the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import FAULT_DETAILS, FaultKind
from tests.fuzz.dialogue import examine

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name[:8])
def test_an_input_of_the_corpus_keeps_every_promise(path: Path) -> None:
    examine(path.read_bytes())


def test_the_corpus_comes_to_everything_that_bytes_can_come_to() -> None:
    seen = {word for path in CORPUS for word in examine(path.read_bytes())}
    assert seen == {"hello", "act", "stdout", *FAULT_DETAILS[FaultKind.GARBAGE]}


def test_the_corpus_is_small() -> None:
    assert len(CORPUS) < 300
    assert sum(path.stat().st_size for path in CORPUS) < 200_000
