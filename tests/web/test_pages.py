"""What pages hold: everything that is told, nothing that is secret, and whatever bots wrote as text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlite_utils import Database

from arena.errors import ConfigError
from arena.records import Round
from arena.store import matches, overview, ratings, tournaments
from arena.store.database import open_reader, open_writer, writing
from arena.web import charts, pages, rendering
from arena.web.page import Page, Source, replay_path, slug
from arena.web.rendering import Frame
from arena.web.writing import Replays, parse_replays, write_site
from tests.web.conftest import HOSTILE


@pytest.fixture
def source(whole: Path) -> Iterator[Source]:
    with open_reader(whole) as db:
        yield Source(db)


def shown(source: Source, path: str) -> Page:
    page = pages.page(source, path)
    assert page is not None, path
    return page


def html(page: Page, path: str = "index.html") -> str:
    return rendering.html(page, path, Frame([], lambda _: True, "")).decode()


def links(text: str) -> set[str]:
    return set(re.findall(r'href="([^"#]+)', text))


# Addresses


def test_names_of_any_kind_make_addresses() -> None:
    assert slug("greedy-2") == "greedy-2"
    for name in ("../../etc", "<b>", "A", "", "-x", "x" * 65, "\ud800"):
        assert re.fullmatch(r"~[0-9a-f]{16}", slug(name))


@pytest.mark.parametrize(
    "path",
    ["", "x", "../index", "m/0", "B/bot-0", "m/01", "m/99999", "m/1٣", "r/1-0", "r/9999-0-0", "r/1-9-0", "t/none",
     "t/spring/chess", "t/spring/durak-9", "t/none/durak", "b/none", "leaderboard/77", "docs/secret", "index/"],
)  # fmt: skip
def test_other_addresses_lead_nowhere(source: Source, path: str) -> None:
    assert pages.page(source, path) is None


def test_every_page_is_listed_and_links_only_to_pages(written: Path) -> None:
    for file in written.rglob("*.html"):
        assert json.loads(file.with_suffix(".json").read_bytes())["schema"].startswith("arena.page.")
        for link in links(file.read_text()):
            if not link.startswith("https://"):
                assert (file.parent / link).resolve().is_relative_to(written), link
                assert (file.parent / link).exists(), (file, link)


# Secrets


def test_the_cards_of_a_round_that_is_played_are_in_no_page(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        one = tournaments.find(db, "faulty")
        assert one is not None
        number = matches.tables(db, one.id, "durak", 2)[1][0]
        with writing(db):
            db.execute("UPDATE round SET complete = 0 WHERE tournament = ? AND game = 'durak' AND number > 1", [one.id])
            db.execute("UPDATE stage SET finished_at = NULL WHERE tournament = ?", (one.id,))
            assert db.execute("UPDATE fault SET text = 'holds the king' WHERE match = ?", (number,)).rowcount
        names = [f"{number}-{deal.deck}-{deal.leg}" for deal in matches.records(db, number)]
        write_site(db, tmp_path / "site", Replays(faulty=True), 1.0)
        source = Source(db)
        assert not any(pages.page(source, f"r/{name}") for name in names)
        assert all(deal["page"] is None for deal in shown(source, f"m/{number}").data["deals"])
        assert shown(source, "t/faulty").data["stages"][0]["master"] is None
    assert not any((tmp_path / "site" / replay_path(name)).exists() for name in names)
    for file in (tmp_path / "site").rglob("*.*"):
        assert one.stages[0].master.hex() not in file.read_text()
        assert "holds the king" not in file.read_text(), file


def test_the_master_seed_of_a_finished_tournament_is_told(source: Source) -> None:
    one = tournaments.find(source.db, "spring")
    assert one is not None
    assert shown(source, "t/spring").data["stages"][0]["master"] == one.stages[0].master.hex()


def test_what_bots_wrote_to_stderr_is_in_no_page(source: Source) -> None:
    (deal, *_) = overview.published_deals(source.db, faulty=True)
    data = shown(source, "r/{}-{}-{}".format(*deal)).data
    assert data["faults"]
    assert not any("stderr" in fault for fault in data["faults"])


# What bots wrote


@pytest.fixture
def hostile(whole: Path, tmp_path: Path) -> Iterator[Database]:
    """A database in which names are such as an import may hold."""
    path = tmp_path / "hostile.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        with writing(db):
            db.execute("UPDATE entrant SET name = ? WHERE name = 'bot-1'", (HOSTILE,))
            db.execute("UPDATE submission SET name = ? WHERE name = 'bot-1'", (HOSTILE,))
            db.execute("UPDATE tournament SET name = ? WHERE name = 'faulty'", ("../../" + HOSTILE,))
            db.execute("UPDATE fault SET text = ?", (HOSTILE,))
        yield db


def test_hostile_names_stay_text(hostile: Database, tmp_path: Path) -> None:
    source = Source(hostile)
    write_site(hostile, tmp_path / "site", Replays(last=1), 1.0)
    found = 0
    for path in pages.paths(source):
        text = (tmp_path / "site" / path).read_text()
        found += "&lt;img src=x onerror=alert(1)&gt;" in text
        assert "<img" not in text
        assert not set(text) & {"\x1b", "\u202e"}
    assert found > 10
    assert shown(source, f"b/{slug(HOSTILE)}").title == HOSTILE


# Single pages


def test_the_leaderboard_tells_what_the_ratings_are(source: Source) -> None:
    data = shown(source, "leaderboard/1").data
    elos = [one.elo for one in ratings.ratings(source.db, 1)]
    assert [row["place"] for row in data["bots"]] == [1 + elos.index(elo) for elo in elos]
    assert [row["shared"] for row in data["bots"]] == [elos.count(elo) > 1 for elo in elos]
    assert {row["author"] for row in data["bots"]} == {"zoe", HOSTILE}
    assert data["bots"][0]["language"] == "python"
    assert all(len(row["history"]) == 3 and row["change"] is not None for row in data["bots"])
    assert shown(source, "leaderboard/overall").data["overall"]
    data["bots"][0] |= {"place": 7, "shared": True}
    text = html(Page("leaderboard", "", data))
    assert text.count("<b>=7</b>") == 1
    assert "A rating is provisional, without an error bar, below 10 decks, and where it is only a bound" in text


def test_a_provisional_rating_is_called_so_on_every_page(source: Source) -> None:
    board = shown(source, "leaderboard/1")
    name = board.data["bots"][0]["name"]
    home, bot = shown(source, "index"), shown(source, f"b/{slug(name)}")
    rows = board.data["bots"][0], home.data["leaders"][0]["bots"][0], bot.data["ratings"][0]["versions"][0]
    for page, row in zip((board, home, bot), rows, strict=True):
        row |= {"provisional": False, "error": 9.0, "bound": ""}
        before = html(page).count('<i class="warn">provisional</i>')
        row |= {"provisional": True, "error": None, "bound": ">", "ranks": None}
        assert html(page).count('<i class="warn">provisional</i>') == before + 1


def test_a_leaderboard_of_200_bots_is_a_page_for_everybody(source: Source) -> None:
    page = shown(source, "leaderboard/1")
    row = {**page.data["bots"][0], "name": "somewhat-long-name", "history": [1500 + n * 7 % 50 for n in range(20)]}
    many = msgspec.structs.replace(page, data={**page.data, "bots": [row] * 200})
    assert len(html(many).encode()) < 150_000


def test_ranks_are_those_that_are_stored(source: Source) -> None:
    stored = [one.ranks for one in ratings.ratings(source.db, 1)]
    assert [row["ranks"] for row in shown(source, "leaderboard/1").data["bots"]] == stored
    assert {row["ranks"] for row in shown(source, "leaderboard/overall").data["bots"]} == {None}


def test_a_round_shows_the_standings_after_it(source: Source) -> None:
    last = shown(source, "t/spring/durak-3").data
    assert [one["name"] for one in last["standings"]] == [
        one["name"] for one in shown(source, "t/spring/durak").data["standings"]
    ]
    first = shown(source, "t/spring/durak-1").data
    assert {one["rounds"] for one in first["standings"]} == {1}
    decided = [one["decided_by"] for one in last["standings"]]
    assert decided[0] is None
    assert "points" in decided
    assert len(first["round"]["matches"]) == 2
    assert shown(source, "t/stopped/durak-1").data["standings"] == []


def test_of_many_rounds_and_stages_the_near_ones_are_offered(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        one = tournaments.find(db, "spring")
        assert one is not None
        with writing(db):
            for number in range(2, 6):
                tournaments.add_stage(db, one.id, msgspec.structs.replace(one.stages[0], number=number))
            for number in range(4, 61):
                tournaments.add_round(db, one.id, "durak", Round(number, ()), [], 1, 5)
        source = Source(db)
        offered = [one["number"] for one in shown(source, "t/spring/durak-30").data["rounds"]]
        text = html(shown(source, "t/spring"))
    assert offered == [1, *range(18, 43), 60]
    assert "Commitment of stage 5" in text
    assert "Commitment of stage 2" not in text
    assert "the JSON twin" in text


def test_a_crosstable_adds_up(source: Source) -> None:
    table = shown(source, "t/spring/durak").data["crosstable"]["rows"]
    for i, row in enumerate(table):
        assert row["cells"][i] is None
        for j, cell in enumerate(row["cells"]):
            assert cell is None or cell + table[j]["cells"][i] == pytest.approx(100, abs=1)
    assert shown(source, "t/stopped/durak").data["crosstable"] is None


def test_corrections_are_shown(whole: Path, tmp_path: Path) -> None:
    from arena.store.corrections import exclude, void

    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        one = tournaments.find(db, "spring")
        assert one is not None
        with writing(db):
            exclude(db, "disqualify", one.id, "bot-2", "copied", 5.0)
            void(db, matches.played(db, one.id)[0], "power cut", 6.0)
        text = html(shown(Source(db), "t/spring"))
    assert "bot-2 is disqualified</a>: copied" in text
    assert "is void</a>: power cut" in text


def test_a_replay_has_every_step_and_position(source: Source) -> None:
    deal = overview.published_deals(source.db)[0]
    record = matches.deal(source.db, *deal)
    assert record is not None
    data = shown(source, "r/{}-{}-{}".format(*deal)).data
    assert [one["action"] for one in data["moments"]] == [None, *(step.action for step in record.steps)]
    assert data["positions"]["shared"]


def test_a_deal_that_breaks_the_rules_says_so(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        with writing(db):
            other = "(SELECT record FROM deal WHERE match = 8 AND deck = 0 AND leg = 0)"
            db.execute(f"UPDATE deal SET record = {other} WHERE match = 1 AND deck = 0 AND leg = 0")
            db.execute("UPDATE pool SET rule_set = replace(rule_set, '/1{', '/9{') WHERE game = 'durak'")
        number = db.execute("SELECT min(id) FROM match WHERE game = 'durak'").fetchone()[0]
        found = [shown(Source(db), f"r/{one}-0-0") for one in (1, number)]
    assert "breaks the rules" in html(found[0])
    assert "is of durak/9, this arena has durak/1" in html(found[1])


def test_an_empty_database_has_pages_too(tmp_path: Path) -> None:
    with open_writer(tmp_path / "arena.db") as db:
        written = write_site(db, tmp_path / "site", Replays(), 1.0)
    assert written.replays == 0
    assert "No tournament is running" in (tmp_path / "site" / "index.html").read_text()
    with open_reader(tmp_path / "arena.db") as db:
        assert "nothing is rated yet" in html(shown(Source(db), "leaderboard/overall"))


# Charts, files and options


def test_a_chart_tells_its_curves_apart_without_colours() -> None:
    curves = [charts.Curve(f"<{number}>", [("R1", 1500), ("R2", 1500 + number)]) for number in range(6)]
    text = charts.chart(curves, "a & b")
    assert "<title>a &amp; b</title>" in text
    assert "<0>" not in text
    assert text.count("<li>") == 6
    style = rendering.static_files()["static/site.css"][1].decode()
    dashes = re.findall(r"polyline\.c\d \{[^}]*stroke-dasharray: ([\d ]+);", style)
    assert len(set(dashes)) == charts.COLOURS - 1


def test_replays_are_chosen_by_a_word() -> None:
    assert parse_replays("all") == Replays()
    assert parse_replays("faults") == Replays(faulty=True)
    assert parse_replays("last:20") == Replays(last=20)
    assert parse_replays("none").last == 0
    for text in ("some", "last:", "last:-1", "last:٣", "first:3"):
        with pytest.raises(ConfigError, match="none of all, faults, last:N and none"):
            parse_replays(text)


def test_only_replays_with_a_fault_are_written_if_asked(whole: Path, tmp_path: Path) -> None:
    with open_reader(whole) as db:
        written = write_site(db, tmp_path / "site", Replays(faulty=True), 1.0)
        assert written.replays == len(overview.published_deals(db, faulty=True)) > 0
    files = list((tmp_path / "site" / "r").glob("*.json"))
    assert all(json.loads(file.read_bytes())["faults"] for file in files)


def test_no_two_parts_of_a_page_have_one_id(written: Path) -> None:
    for file in written.rglob("*.html"):
        text = file.read_text().partition('<script type="application/json"')[0]
        found = re.findall(r'<[^<>]* id="([^"]+)"', text)
        assert len(found) == len(set(found)), file


def test_the_replay_of_a_play_names_no_round(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with open_writer(path) as db:
        key = overview.published_deals(db, last=1)[0]
        assert "never rated" not in replay_head(db, key)
        assert "round 2</a>" in replay_head(db, key)
        with writing(db):
            db.execute("UPDATE tournament SET kind = 'play'")
        assert "never rated" in replay_head(db, key)
        assert "round 2" not in replay_head(db, key)


def replay_head(db: Database, key: tuple[int, int, int]) -> str:
    path = "r/{}-{}-{}".format(*key)
    return html(shown(Source(db), path), f"{path}.html").partition('<p class="quiet">')[2].partition("</p>")[0]


def test_a_tournament_that_is_played_says_which_round_is(source: Source) -> None:
    for name, words in (("stopped", "round 1 is being played"), ("faulty", "2 rounds"), ("spring", "3 rounds")):
        assert f"<small>{words}</small>" in html(shown(source, f"t/{name}"))
