"""From a document to a checked model, or to one error that tells all mistakes."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar, get_args

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from arena.config.document import Document, KeyPath
from arena.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

_TYPE = "mistakes"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_CHARACTERS = 60


class Mistake(NamedTuple):
    """What is wrong with a value; `path` starts at the field whose validator found it."""

    path: KeyPath
    text: str


def refuse(mistakes: Sequence[Mistake]) -> None:
    """Raise what a validator reports its mistakes with, if there are any."""
    if mistakes:
        raise PydanticCustomError(_TYPE, "mistakes", {"mistakes": list(mistakes)})


def not_allowed(value: object, allowed: str) -> str:
    """Return the text of a mistake: the value and what is allowed."""
    shown = json.dumps(value, default=str)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 3] + "..."
    return f"{shown} is not allowed; allowed: {allowed}"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return the text of a mistake: a name that nothing has, perhaps the one that was meant, and all there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]}" if near else ""
    return f"there is no {what} {json.dumps(name)}; known: {', '.join(names)}{hint}"


def check_texts(value: object, allowed: str, problem: Callable[[str], str], *, unique: bool = True) -> tuple[str, ...]:
    """Return a list of texts, in a validator.

    Args:
        allowed: what the list may be, in words.
        problem: returns the text of a mistake, or an empty one.
        unique: no text may be there twice.
    """
    items: Sequence[object] = value if isinstance(value, list | tuple) else ()
    if not items:
        refuse([Mistake((), not_allowed(value, allowed))])
    checked: list[str] = []
    mistakes = []
    for index, item in enumerate(items):
        if not isinstance(item, str):
            mistakes.append(Mistake((index,), not_allowed(item, "a text")))
        elif unique and item in checked:
            mistakes.append(Mistake((index,), f"{json.dumps(item)} is named more than once"))
        elif text := problem(item):
            mistakes.append(Mistake((index,), text))
        else:
            checked.append(item)
    refuse(mistakes)
    return tuple(checked)


def validate(model: type[M], document: Document) -> M:
    """Return the model of a document.

    Raises:
        ConfigError: a line `place: path: mistake` for each mistake, in the order of the file.
    """
    try:
        return model.model_validate(document.values)
    except ValidationError as error:
        mistakes = [mistake for detail in error.errors(include_url=False) for mistake in _mistakes(model, detail)]
    mistakes.sort(key=lambda mistake: document.line(mistake.path))
    raise ConfigError("\n".join(f"{document.place(path)}: {_show_path(path)}: {text}" for path, text in mistakes))


def _mistakes(model: type[BaseModel], detail: ErrorDetails) -> list[Mistake]:
    path = detail["loc"]
    if detail["type"] == _TYPE:
        return [Mistake(path + inner, text) for inner, text in detail["ctx"]["mistakes"]]
    fields = _fields(model, path[:-1])
    key = str(path[-1])
    if detail["type"] == "extra_forbidden":
        return [Mistake(path, unknown("key", key, fields))]
    if detail["type"] == "missing":
        return [Mistake(path, f"is missing; allowed: {_allowed(fields[key])}")]
    return [Mistake(path, not_allowed(detail["input"], _allowed(fields[key])))]


def _fields(model: type[BaseModel], table: KeyPath) -> dict[str, FieldInfo]:
    """Return the keys of a table of a document."""
    for key in table:
        inner = model.model_fields[str(key)].annotation
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        model = inner
    return model.model_fields


def _allowed(field: FieldInfo) -> str:
    """Return what a field may be, from what it is checked with unless it is described in words."""
    if field.description:
        return field.description
    bounds = {type(one): one for one in field.metadata}
    low, high = bounds.get(annotated_types.Ge), bounds.get(annotated_types.Le)
    if isinstance(low, annotated_types.Ge) and isinstance(high, annotated_types.Le):
        return f"an integer, {low.ge} ... {high.le}"
    return " | ".join(map(str, get_args(field.annotation)))


def _show_path(path: KeyPath) -> str:
    shown = ""
    for key in path:
        if isinstance(key, int):
            shown += f"[{key}]"
        else:
            shown += ("." if shown else "") + (key if _BARE_KEY.fullmatch(key) else json.dumps(key))
    return shown
