"""How commands speak: data on stdout, everything else on stderr, what bots wrote made harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from arena.words import harmless as harmless

_SUIT_STYLES = {"♣": "green", "♦": "blue", "♥": "red", "♠": "bold"}
_CARD = re.compile(r"(?:10|[2-9JQKA])?([♣♦♥♠])")

Pair = tuple[str, str]
"""A label and a text."""
QUOTED_LINES = 20
PLAIN_WIDTH = 160
"""Columns of a table that does not go to a terminal."""
_CELL = 5  # columns of a cell of a matrix


def console(file: IO[str] | None = None, *, stderr: bool = False) -> Console:
    """Return a console that colours nothing by guessing."""
    made = Console(file=file, stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = max(made.width, PLAIN_WIDTH)
    return made


def emit_json(schema: str, document: Mapping[str, object]) -> None:
    """Print one document, its schema first."""
    typer.echo(msgspec.json.encode({"schema": f"arena.{schema}", **document}).decode())


def emit_lines(schema: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Print one valid document a line; each names the schema, so that a line can stand alone."""
    for row in rows:
        emit_json(schema, row)


def say(text: str) -> None:
    """Print a remark for a person on stderr."""
    console(stderr=True).print(Text(harmless(text)), soft_wrap=True)


def emit_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a table.

    Args:
        columns: names; after `<` a text, aligned to the left, after `<~` one that may be broken into lines.
    """
    table = Table(box=None, pad_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column.startswith("<") else "right"
        table.add_column(column.lstrip("<~"), justify=justify, header_style="dim", no_wrap=not column.startswith("<~"))
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(harmless(str(cell))) for cell in row))
    out = console()
    if title:
        out.print(Text(harmless(title), style="bold"))
    out.print(table)


def emit_matrix(title: str, names: Sequence[str], cells: Sequence[Sequence[object]]) -> None:
    """Print what each has to do with each other one, in parts where it is wider than the terminal."""
    widest = max(map(len, names), default=0)
    columns = max(1, (console().width - widest - 6) // _CELL)
    for start in range(0, max(1, len(names)), columns):
        shown = range(start, min(start + columns, len(names)))
        rows = (
            [place, name, *(row[i] for i in shown)]
            for place, (name, row) in enumerate(zip(names, cells, strict=True), 1)
        )
        emit_table(("#", "<bot", *(str(i + 1) for i in shown)), rows, title)
        typer.echo()


def emit_pairs(pairs: Sequence[Pair], style: str = "", *, wrap: bool = True) -> None:
    """Print texts, each beside its label, wrapped to the width; cards in the colours of their suits.

    Args:
        wrap: False for what is to be copied whole.
    """
    out = console()
    width = 4 + max((len(label) for label, _ in pairs), default=0)
    for label, text in pairs:
        shown = Text(harmless(text), style=style)
        for found in _CARD.finditer(shown.plain):
            shown.stylize(_SUIT_STYLES[found[1]], *found.span())
        for number, line in enumerate(shown.wrap(out, max(20, out.width - width)) if wrap else [shown]):
            line.rstrip()
            out.print(Text(f"  {'' if number else label}".ljust(width)).append(line), soft_wrap=True)


def emit_quote(title: str, said: bytes) -> None:
    """Print the end of what a bot wrote to stderr, so that it cannot be taken for a word of ours."""
    out = console()
    out.print(f"\n  {title}")
    for line in harmless(said.decode(errors="replace")).rstrip().splitlines()[-QUOTED_LINES:]:
        for part in Text(line.expandtabs(), style="dim").wrap(out, out.width - 5) or [Text()]:
            out.print(Text("  │  ", style="dim").append(part), soft_wrap=True)


def count_of(count: int, thing: str) -> str:
    """Return e.g. `1 round` or `3 rounds`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}es" if thing.endswith("ch") else f"{count} {thing}s"


def faults_cell(count: int) -> Text:
    """Return a number of faults, red unless it is zero."""
    return Text(str(count), style="bold red" if count else "")


def say_unverified(some: int, deals: int) -> None:
    """Say on stderr how many deals came from a file and could not be confirmed, if any did."""
    if some:
        say(f"{some} of {deals} deals unverified: imported, but not the same when executed again; see arena verify")
