"""The project's texts: what they promise to document is there, and their links lead somewhere.

The examples of docs/rules.md run in test_rules.py, those of protocol.md in protocol/.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from arena.config import ClockTable, TournamentConfig, load_tournament
from arena.games import GAMES, PRESETS
from arena.rules import Game, Option, show_value

ROOT = Path(__file__).parents[1]
TEXTS = sorted(path for folder in (ROOT, ROOT / "docs", ROOT / "results") for path in folder.glob("*.md"))
RULES = (ROOT / "docs" / "rules.md").read_text()
HEADING = re.compile(r'^### <a id="(\w+)"></a>(\w+) · ', re.MULTILINE)
SETS_UP = {"game", "id", "seats", "options", "deck", "seed", "steps"}
STATES = {"actors", "legal", "sees", "events", "illegal", "outcome"}
LETTERS = {"smokestack": "S", "avalanche": "A", "durak": "D"}

every_game = pytest.mark.parametrize("name", sorted(GAMES))


def section(name: str) -> str:
    """Return what docs/rules.md says about a game."""
    found = re.search(rf"^## {name.title()}\n(.*?)(?=^## )", RULES, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/rules.md has no section on {name}"
    return found[1]


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables in a text."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


# Rules


def values_cell(option: Option) -> str:
    words = [f"`{show_value(v)}`" for v in option.values if not (type(v) is int and option.low <= v <= option.high)]
    if option.high >= option.low:
        words.append(f"`{option.low}` … `{option.high}`")
    return ", ".join(words)


def default_cell(game: Game, option: Option) -> str:
    def value(seats: int) -> str:
        return show_value(option.default_for(seats))

    parts = [(default, [str(seats) for seats in group]) for default, group in groupby(game.seats, key=value)]
    if len(parts) == 1:
        return f"`{parts[0][0]}`"
    return ", ".join(f"`{default}` with {', '.join(seats[:-1])} or {seats[-1]} seats" for default, seats in parts)


@every_game
def test_every_option_is_documented_with_its_values_and_default(name: str) -> None:
    game = GAMES[name]
    documented = {cells[0].strip("`"): (cells[1], cells[2]) for cells in rows(section(name)) if len(cells) == 4}
    assert documented == {key: (values_cell(o), default_cell(game, o)) for key, o in game.schema.items()}


@every_game
def test_every_option_is_explained_at_a_decision(name: str) -> None:
    text = re.split(r"^### ", section(name), flags=re.MULTILINE)
    explained = "".join(part for part in text[1:] if re.search(r"^Options?\b", part, re.MULTILINE))
    for option in GAMES[name].schema.keys() - {"deck"}:
        assert f"`{option}`" in explained


@every_game
def test_every_decision_has_a_heading_and_a_line_in_its_module(name: str) -> None:
    doc = importlib.import_module(f"arena.games.{name}").__doc__ or ""
    assert re.search(r"^Source: ", doc, re.MULTILINE)
    _, listed = re.split(r"^Decisions\b", doc, flags=re.MULTILINE)
    letter = LETTERS[name]
    numbers = re.findall(rf"^ *(?:\* )?({letter}\d+) ", listed, re.MULTILINE)
    assert numbers == [f"{letter}{i}" for i in range(1, len(numbers) + 1)]
    assert HEADING.findall(section(name)) == [(number.lower(), number) for number in numbers]


@every_game
def test_the_number_of_seats_is_documented(name: str) -> None:
    seats = GAMES[name].seats
    assert f"{seats[0]} to {seats[-1]} seats" in section(name)


def test_every_preset_is_documented() -> None:
    documented = {cells[0].strip("`"): cells[1:] for cells in rows(RULES) if len(cells) == 3 and cells[1] in GAMES}
    assert documented == {
        name: [game, ", ".join(f"`{key}={show_value(value)}`" for key, value in options.items())]
        for name, (game, options) in PRESETS.items()
    }


@every_game
def test_examples_stand_at_their_decision_and_state_something(name: str) -> None:
    parts = re.split(r"^### <a id=", section(name), flags=re.MULTILINE)
    shown = 0
    for part in parts[1:]:
        for block in re.findall(r"^```toml vector\n(.*?)^```$", part, re.MULTILINE | re.DOTALL):
            vector = tomllib.loads(block)
            shown += 1
            assert vector["game"] == name
            assert vector.keys() <= SETS_UP | STATES
            assert vector.keys() & (STATES - {"actors"})
            assert part.startswith(f'"{vector["id"].split()[0].lower()}">')
    assert shown >= 5


def test_no_other_fence_in_the_rules() -> None:
    assert set(re.findall(r"^```(.+)$", RULES, re.MULTILINE)) == {"toml vector"}


# All texts


def anchors(text: str) -> set[str]:
    """Return what a link into a text may name: explicit anchors, and headings as code forges turn them into anchors."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]+>", "", heading).lower()).replace(" ", "-") for heading in headings)
    return {*plain, *re.findall(r'<a id="([^"]+)">', text)}


def test_texts_are_there() -> None:
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md", "protocol.md"} <= {p.name for p in TEXTS}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text()), target


def test_every_command_is_in_the_readme() -> None:
    sources = "".join(path.read_text() for path in sorted((ROOT / "arena" / "cli").glob("*.py")))
    declared = re.findall(r"^@(app|bench|db)\.command\(.*?^def (\w+)\(", sources, re.MULTILINE | re.DOTALL)
    commands = {command if group == "app" else f"{group} {command}" for group, command in declared}
    documented = re.findall(r"^\| `arena ((?:(?:bench|db) )?\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(set(documented)) == sorted(command.rstrip("_") for command in commands)  # `import_`


def test_the_readme_shows_every_key_of_a_tournament(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "tournament.toml"
    path.write_text(shown)
    config = load_tournament(path)
    of_practice = {"seed"}  # shown as a comment, since it needs --trusted
    assert set(tomllib.loads(shown)) | of_practice == set(TournamentConfig.model_fields)
    assert "# seed = " in shown
    assert set(tomllib.loads(shown)["clock"]) == set(ClockTable.model_fields)
    assert config.options.keys() == {"durak"}


def test_decisions_of_the_design_are_numbered_dated_and_short() -> None:
    text = (ROOT / "DESIGN.md").read_text()
    found = re.findall(r"^### (\d+)\. [^\n]+\n(.*?)(?=^### |^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    for number, body in found:
        lines = [line for line in body.splitlines() if line and not line.startswith("  - ")]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", lines[0]), f"decision {number} has no date"
        assert len(lines) <= 10, f"decision {number} is too long"
        for word in ("Context:", "Choice:", "Consequence:"):
            assert any(line.startswith(f"- {word}") for line in lines), f"decision {number} lacks {word}"


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    needed = [*project["project"]["dependencies"], *groups["test"], *groups["fuzz"], *extras["rl"]]
    names = {re.split(r"[\[<>=~]", line)[0] for line in needed}
    found = re.search(r"^### 2\. .*?(?=^### 3\. )", (ROOT / "DESIGN.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    assert names <= set(re.findall(r"\*\*([\w-]+)\*\*", found[0]))
