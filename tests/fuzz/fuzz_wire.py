"""The coverage-guided fuzzer of what a bot may write: `python tests/fuzz/fuzz_wire.py -runs=N CORPUS`.

`make fuzz` calls it; all options are libFuzzer's.
An input that breaks a promise ends it and is left as a file `crash-...`.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[0] = str(HERE.parents[1])
with atheris.instrument_imports(include=["arena.wire"]):
    from tests.fuzz.dialogue import examine


def one_input(data: bytes) -> None:
    examine(data)


if __name__ == "__main__":
    again = shlex.join([sys.executable, __file__])  # how libFuzzer starts itself, to merge
    atheris.Setup([again, f"-dict={HERE / 'wire.dict'}", *sys.argv[1:]], one_input)
    atheris.Fuzz()
