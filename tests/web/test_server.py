"""The server answers everybody as HTTP wants, and nobody takes it down."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.commands import app
from arena.errors import ConfigError
from arena.store.database import open_writer, writing
from arena.store.watching import watching
from arena.web import server as serving_module
from arena.web.rendering import static_files
from arena.web.server import Server
from tests.web.conftest import serving

pytestmark = pytest.mark.slow

Answer = tuple[int, dict[str, str], bytes]


def ask(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()


@contextlib.contextmanager
def streaming(port: int) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/events")
        yield connection.getresponse()


def test_pages_and_their_twins_are_answered(port: int) -> None:
    status, headers, body = ask(port, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert b"Competitions" in body
    status, headers, body = ask(port, "/t/spring/durak.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["schema"] == "arena.page.game/1"
    status, headers, body = ask(port, "/data/standings.csv")
    assert status == 200
    assert body.startswith(b"tournament,game,")
    status, headers, body = ask(port, "/r/0-0-0.html")
    assert status == 404
    assert b'href="../tournaments.html"' in body
    assert ask(port, "/events", "HEAD")[1]["cross-origin-resource-policy"] == "same-origin"


def test_tables_are_read_whole_by_many_at_once(port: int) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(port, "/data/games.ndjson"), range(16)))
    assert {answer[0] for answer in answers} == {200}
    assert len({answer[2] for answer in answers}) == 1
    assert len(answers[0][2].splitlines()) > 200
    assert ask(port, "/data/games.csv", "HEAD")[::2] == (200, b"")


def test_head_etag_and_gzip(port: int) -> None:
    _, headers, body = ask(port, "/leaderboard/1.html")
    assert ask(port, "/leaderboard/1.html", "HEAD")[::2] == (200, b"")
    assert ask(port, "/leaderboard/1.html", If_None_Match=headers["etag"])[::2] == (304, b"")
    _, packed, small = ask(port, "/leaderboard/1.html", Accept_Encoding="gzip")
    assert packed["content-encoding"] == "gzip"
    assert gzip.decompress(small) == body
    assert len(small) < len(body) / 2
    assert ask(port, "/events", "HEAD")[::2] == (200, b"")
    assert ask(port, "/", "POST")[0] == 405


@pytest.mark.parametrize(
    "path",
    ["/../arena.db", "/..%2f..%2fetc/passwd", "/static/../../pages.py", "/static/%2e%2e/pages.py", "//etc/passwd",
     "/static/", "/static", "/data/../arena.db", "/%00", "/arena.db", "/t/..%2fspring.html", "/m/-1.html"],
)  # fmt: skip
def test_no_path_leads_out(port: int, path: str) -> None:
    status, _, body = ask(port, path)
    assert status == 404
    assert b"There is no such page" in body


def test_other_hosts_are_refused(port: int) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80"):
        assert ask(port, "/", Host=host)[0] == 421
    for host in ("localhost", f"127.0.0.1:{port}", "[::1]:80", "LOCALHOST:1", "10.0.0.7"):
        assert ask(port, "/", Host=host)[0] == 200


GARBAGE = (
    b"\x00\xff\x16\x03\x01",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 100_000,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nhalf",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -4\r\n\r\n",
    b"GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81",
    b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /leaderboard/1.html HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
    b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"",
)


def test_malformed_and_aborted_requests_and_open_streams_do_no_harm(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(7)
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(streaming(port)) for _ in range(50)]
        assert {stream.status for stream in streams} == {200}
        for number in range(300):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                data = GARBAGE[number % len(GARBAGE)]
                with contextlib.suppress(ConnectionError):
                    connection.sendall(data[: chance.randint(0, len(data))] if number % 2 else data)
                if number % 3 == 0:  # a reset instead of an end
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        assert ask(port, "/")[0] == 200
        assert streams[0].readline() == b"retry: 1000\n"
    assert not [one for one in caplog.records if one.name.startswith("uvicorn")]


def test_there_are_not_more_streams_than_allowed(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "MAX_STREAMS", 2)
    with serving(whole) as port, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(streaming(port)) for _ in range(2)]
        for stream in streams:
            stream.readline()
        assert ask(port, "/events")[0] == 503


def test_streams_say_that_they_live(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "KEEP_ALIVE_S", 0.5)
    with serving(whole) as port, streaming(port) as stream:
        assert [stream.readline() for _ in range(3)] == [b"retry: 1000\n", b"\n", b": still here\n"]


def test_a_commit_is_told_and_seen(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with serving(path) as port, streaming(port) as stream:
        stream.readline()
        stream.readline()
        before = ask(port, "/bots.html")
        assert ask(port, "/bots.html")[1]["etag"] == before[1]["etag"]
        with open_writer(path) as db, writing(db):
            db.execute("UPDATE submission SET author = 'somebody else'")
        assert stream.readline() == b"event: changed\n"
        assert b"somebody else" in ask(port, "/bots.html")[2]


def test_pages_say_that_a_database_is_gone_and_come_back_with_it(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    shutil.copy(whole, path)
    with serving(path) as port:
        assert ask(port, "/bots.html")[0] == 200
        path.rename(tmp_path / "away.db")
        status, _, body = ask(port, "/bots.html")
        assert status == 503
        assert b"there is no database at" in body
        assert ask(port, "/data/games.csv")[0] == 503
        assert ask(port, "/static/site.css")[0] == 200
        (tmp_path / "away.db").rename(path)
        assert ask(port, "/bots.html")[0] == 200


def test_a_watch_survives_what_happens_to_its_file(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "arena.db"
    with watching(path) as mark:
        assert mark() == ()
        path.write_bytes(b"no database at all")
        mark()
        path.unlink()
        shutil.copy(whole, path)
        first = mark()
        assert first == mark() != ()
        with open_writer(path) as db, writing(db):
            db.execute("UPDATE submission SET author = 'x'")
        assert mark() != first


def test_static_files_are_all_there_is() -> None:
    assert {"static/site.css", "static/live.js", "static/icon.svg"} <= set(static_files())


# The command


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "arena", *arguments]


def test_the_command_prints_where_it_serves_and_ends_quietly(whole: Path) -> None:
    begun = subprocess.Popen(
        command("serve", "--port", "0", "--db", str(whole), "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with begun:
        assert begun.stdout is not None
        told = json.loads(begun.stdout.readline())
        assert told["schema"] == "arena.serve/1"
        port = int(told["url"].rstrip("/").rpartition(":")[2])
        assert ask(port, "/")[0] == 200
        with streaming(port) as stream:
            stream.readline()
            begun.send_signal(signal.SIGINT)
            _, said = begun.communicate(timeout=20)
        assert (begun.returncode, said) == (0, "")


def test_the_command_says_what_is_wrong(whole: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--port", port, "--db", str(whole)], "choose another --host or --port"),
            (["--db", str(tmp_path / "none.db")], "there is no database at"),
            (["--host", "no.such.host.invalid", "--db", str(whole)], "cannot listen at no.such.host.invalid"),
        ):
            error = CliRunner().invoke(app, ["serve", *arguments]).exception
            assert isinstance(error, ConfigError)
            assert words in str(error)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "localhost"])
def test_the_address_is_one_that_a_browser_of_this_machine_opens(
    whole: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(Server, "run", lambda self, sockets: self._listening())
    done = CliRunner().invoke(app, ["serve", "--host", host, "--port", "0", "--db", str(whole)])
    shown = {"0.0.0.0": "localhost", "::1": "[::1]"}.get(host, host)
    assert re.fullmatch(rf"http://{re.escape(shown)}:\d+/\n", done.stdout)
    assert "Ctrl-C ends it" in done.stderr


def test_the_browser_is_opened_at_the_page(whole: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": str(browser), "TMPDIR": str(tmp_path), "ARENA_DB": str(whole)}
    for arguments in (["leaderboard", "durak"], ["replay", "1-0-0"]):
        subprocess.run(command(*arguments, "--open"), env=environment, check=True, capture_output=True, timeout=60)
    opened = (tmp_path / "opened").read_text().split()
    titles = [Path(url.removeprefix("file://")).read_text().partition("<title>")[2] for url in opened]
    assert titles[0].startswith("Durak ratings · arena")
    assert " · deal 1-0-0 · arena" in titles[1]
