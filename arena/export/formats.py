"""How rows are written: CSV, NDJSON or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import msgspec

from arena.words import harmless


class Format(StrEnum):
    """How rows are written."""

    CSV = "csv"
    NDJSON = "ndjson"
    JSON = "json"


_EXECUTED = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins so for a formula."""

Writer = Callable[[str, type[msgspec.Struct] | None, Iterator[msgspec.Struct]], Iterator[bytes]]
"""Takes a schema, the type of the rows or None for lines that name their own, and the rows."""


def _as_csv(schema: str, kind: type[msgspec.Struct] | None, found: Iterator[msgspec.Struct]) -> Iterator[bytes]:
    assert kind is not None
    yield _csv_line(kind.__struct_fields__)
    for row in found:
        yield _csv_line([_cell(getattr(row, name)) for name in kind.__struct_fields__])


def _csv_line(cells: Iterable[object]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)  # RFC 4180 is its default
    return text.getvalue().encode()


def _cell(value: object) -> object:
    """Return a cell: lists as JSON, truth as true or false, and no text that a spreadsheet would execute."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return harmless(f"'{text}" if text.startswith(_EXECUTED) else text)


def _as_ndjson(schema: str, kind: type[msgspec.Struct] | None, found: Iterator[msgspec.Struct]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    for row in found:
        line = row if kind is None else {"schema": f"{schema}.row/1", **msgspec.structs.asdict(row)}
        yield encode(line) + b"\n"


def _as_json(schema: str, kind: type[msgspec.Struct] | None, found: Iterator[msgspec.Struct]) -> Iterator[bytes]:
    yield b'{"schema":"%s/1","rows":[' % schema.encode()
    before = b"\n"
    for row in found:
        yield before + msgspec.json.encode(row)
        before = b",\n"
    yield b"\n]}\n"


WRITERS: dict[Format, Writer] = {Format.CSV: _as_csv, Format.NDJSON: _as_ndjson, Format.JSON: _as_json}
