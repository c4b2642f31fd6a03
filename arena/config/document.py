"""A TOML text, parsed, and the line that each of its keys stands on."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from arena.errors import ConfigError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value is: keys of tables and 0-based indices of arrays, from the top of a document."""

COMMAND_LINE = "command line"
"""The place of what was given there."""

MAX_BYTES = 1 << 20
"""A configuration is written by hand; a larger file is some other file."""

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")  # the end of tomllib's messages
_BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\])*"|'[^']*\'''', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}#]+(?: \d[^\s,\]}#]*)?")  # a date and its time may have a space between them


class Document(NamedTuple):
    """What was configured, and where.

    Attributes:
        source: the file, or what else the values came from, as named in messages.
        lines: 1-based; the line of each key and of each element of an array.
        given: keys that the command line gave in place of the file.
    """

    source: str
    values: dict[str, object]
    lines: dict[KeyPath, int]
    given: frozenset[str] = frozenset()

    def override(self, values: Mapping[str, object]) -> Document:
        """Return the document with other values of some keys, from the command line."""
        return self._replace(values={**self.values, **values}, given=self.given | values.keys())

    def line(self, path: KeyPath) -> int:
        """Return the line of a value, or of the innermost table around it that has one; 0 if none has."""
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), 0)

    def place(self, path: KeyPath) -> str:
        """Return `source:line` of a value, or the source alone where no line is known."""
        if path[0] in self.given:
            return COMMAND_LINE
        line = self.line(path)
        return f"{self.source}:{line}" if line else self.source


def read_document(path: Path) -> Document:
    """Read a TOML file in UTF-8, with or without a byte order mark, with Unix or Windows line ends.

    Raises:
        ConfigError: it cannot be read or is not TOML; names the line.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_document(data, str(path))


def parse_document(data: bytes, source: str) -> Document:
    """Parse the contents of a TOML file; `read_document` tells more."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{source}: is larger than {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"the byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise ConfigError(f"{source}:{line}: {wrong}") from None
    try:
        return Document(source, tomllib.loads(text), _Scanner(text).scan())
    except RecursionError:
        raise ConfigError(f"{source}: is nested too deeply") from None
    except ValueError as error:  # not only TOMLDecodeError: an integer of thousands of digits gives a plain one
        raise ConfigError(_syntax_error(text, source, str(error))) from None


def _syntax_error(text: str, source: str, message: str) -> str:
    found = _PLACE.search(message)
    if found is None:
        return f"{source}: {message}"
    lines = text.rstrip("\n").split("\n")
    number = int(found[1]) if found[1] else len(lines)
    return f"{source}:{number}: is not TOML: {message[: found.start()]}: {lines[number - 1].strip()[:80]!r}"


class _Scanner:
    """Finds where keys stand in a text that is known to be TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ends = [at for at, character in enumerate(text) if character == "\n"]
        self._elements: dict[KeyPath, int] = {}  # the last index of each array of tables
        self._lines: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._next():
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _header(self) -> KeyPath:
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        *outer, name = self._key()
        self._next()
        self._at += brackets
        path: KeyPath = ()
        for part in outer:
            path = self._innermost((*path, part))
            self._lines.setdefault(path, line)
        path = (*path, name)
        self._lines.setdefault(path, line)
        if brackets == 2:
            self._elements[path] = self._elements.get(path, -1) + 1
        path = self._innermost(path)
        self._lines.setdefault(path, line)
        return path

    def _innermost(self, path: KeyPath) -> KeyPath:
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._next()
        self._at += len("=")
        self._value(path)

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._next()
            part = self._match(_KEY_PART)
            parts.append(next(iter(tomllib.loads(f"{part} = 0"))))
            if not self._match(_DOT):
                return parts

    def _value(self, path: KeyPath) -> None:
        self._next()
        match self._text[self._at]:
            case "[":
                self._array(path)
            case "{":
                self._at += 1
                while self._next() != "}":
                    self._pair(path)
                    self._skip_comma()
                self._at += 1
            case '"' | "'":
                self._match(_STRING)
            case _:
                self._match(_PLAIN)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._next() != "]":
            self._lines[(*path, index)] = self._line()
            self._value((*path, index))
            self._skip_comma()
            index += 1
        self._at += 1

    def _skip_comma(self) -> None:
        if self._next() == ",":
            self._at += 1

    def _next(self) -> str:
        """Go to the next character that is neither blank nor in a comment and return it; empty at the end."""
        self._match(_BLANK)
        return self._text[self._at : self._at + 1]

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _line(self) -> int:
        return bisect_right(self._ends, self._at - 1) + 1
