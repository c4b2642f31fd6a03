"""The lines of a file of everything, read one at a time; what is wrong is told with the number of its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TypeVar

import msgspec

from arena.errors import ConfigError
from arena.export import lines

L = TypeVar("L", bound=lines.Line)

_SHOWN_CHARACTERS = 200


class Lines:
    """The lines of a file, one at a time; errors name the one that is wrong."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.number = 0
        self._file = file
        self._name = name
        self._decode = msgspec.json.Decoder(lines.Line).decode
        self._waiting: lines.Line | None = None

    def problem(self, text: str) -> ConfigError:
        """Return the error that the last line read is wrong."""
        shown = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
        return ConfigError(
            f"{self._name}, line {self.number}: {shown}; nothing was imported, `arena export all` writes the file anew"
        )

    def check(self, holds: bool, text: str) -> None:
        """Raise the error that the last line read is wrong unless something holds."""
        if not holds:
            raise self.problem(text)

    def take(self, kind: type[L]) -> L | None:
        """Return the next line if it is of a kind."""
        if self._waiting is None:
            self._waiting = self._read()
        if not isinstance(self._waiting, kind):
            return None
        found, self._waiting = self._waiting, None
        return found

    def all_of(self, kind: type[L]) -> Iterator[L]:
        """Yield the next lines as long as they are of a kind."""
        while (found := self.take(kind)) is not None:
            yield found

    def need(self, kind: type[L]) -> L:
        """Return the next line, which must be of a kind."""
        found = self.take(kind)
        if found is None:
            got = type(self._waiting).__name__.lower()
            raise self.problem(f"a line of {kind.__name__.lower()} should be here, not of {got}")
        return found

    def at_end(self) -> bool:
        """Tell whether nothing follows."""
        return self._waiting is None and not self._file.read(1)

    def _read(self) -> lines.Line:
        line = self._file.readline(lines.MAX_LINE_BYTES + 1)
        self.number += 1
        self.check(len(line) <= lines.MAX_LINE_BYTES, f"is longer than {lines.MAX_LINE_BYTES >> 20} MiB")
        self.check(self.number <= lines.MAX_LINES, f"there are more than {lines.MAX_LINES} lines")
        self.check(bool(line), "the file ends too early, its end is missing")
        try:
            return self._decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.problem(f"is no line of an export: {error}") from None


def begin(file: IO[bytes], name: str) -> Lines:
    """Begin to read a file of everything.

    Args:
        name: of the file, for errors.

    Raises:
        ConfigError: it is something else.
    """
    read = Lines(file, name)
    read.need(lines.Begin)
    return read
