"""Serves the pages of a database: reads only, and tells open pages of each commit by server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from arena.errors import ArenaError
from arena.store.database import open_reader
from arena.store.watching import Mark, watching
from arena.web import downloads, pages, rendering
from arena.web.page import Page, Source
from arena.web.rendering import Frame

POLL_S = 0.25
"""How often the database is looked at; a look costs some microseconds."""
KEEP_ALIVE_S = 15.0
"""A comment as often keeps proxies from closing a quiet stream, and finds readers that have left."""
MAX_STREAMS = 64
CACHED = 256
"""Addresses kept until the next commit, so that all who look at a page share the work."""

_PIECE_BYTES = 1 << 16
_HTML = "text/html; charset=utf-8"
_NOTE = "Served by arena"
HEADERS = {
    "Content-Security-Policy": f"{rendering.POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Body(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    type: str
    data: bytes

    @property
    def tag(self) -> str:
        """The ETag; weak, since it may be sent compressed."""
        return f'W/"{hashlib.sha256(self.data).hexdigest()[:24]}"'


class _State:
    """What was made of one state of the database."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.kept: dict[str, Body] = {}
        self.making: dict[str, threading.Lock] = {}


class Site:
    """The pages of a database, each made once for each state of it."""

    def __init__(self, db: Path, *, stderr: bool = False) -> None:
        self._db = db
        self._stderr = stderr
        self._state = _State(())
        self._lock = threading.Lock()

    def get(self, path: str, mark: Mark) -> Body:
        """Return what an address of the site is.

        Args:
            mark: of the database's state now.
        """
        if path in rendering.static_files():
            return Body(200, *rendering.static_files()[path])
        with self._lock:
            if mark != self._state.mark or not mark or len(self._state.making) > CACHED:
                self._state = _State(mark)
            state = self._state
            making = state.making.setdefault(path, threading.Lock())
        with making:  # many who ask at once, as after a commit, wait for the first
            if path in state.kept:
                return state.kept[path]
            made = self._made(path)  # of a state not older than the mark
            if made.status == 200:
                state.kept[path] = made
            return made

    def _made(self, path: str) -> Body:
        name, _, end = path.rpartition(".")
        try:
            with open_reader(self._db) as db:
                source = Source(db, stderr=self._stderr)
                page = pages.page(source, name) if end in ("html", "json") else None
                if page is None:
                    words = f"{path} leads nowhere, or is not told yet."
                    return _refusal(path, 404, "There is no such page", words, source.tabs)
                if end == "json":
                    return Body(200, "application/json", rendering.json(page))
                return Body(200, _HTML, rendering.html(page, path, Frame(source.tabs, _everywhere, _NOTE, live=True)))
        except ArenaError as error:
            return _refusal(path, 503, "This cannot be shown now", str(error))

    def download(self, path: str) -> IO[bytes]:
        """Return a table as a file without a name, so that a slow reader keeps no moment of the database open.

        Raises:
            ArenaError: the database cannot be read.
        """
        with open_reader(self._db) as db, contextlib.ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.writelines(downloads.download(db, path))
            file.seek(0)
            stack.pop_all()  # whoever sends it closes it
            return file


def _refusal(path: str, status: int, title: str, words: str, tabs: Sequence[tuple[str, str]] = ()) -> Body:
    """Return a page that says why there is none."""
    page = Page("missing", title, {"words": words})
    return Body(status, _HTML, rendering.html(page, path, Frame([*tabs], _everywhere, _NOTE)))


def _everywhere(_: str) -> bool:
    return True


def application(
    db: Path, names: Collection[str] = (), stopping: Callable[[], bool] = lambda: False, *, stderr: bool = False
) -> Starlette:
    """Return the application that serves a database.

    Args:
        names: names of this host besides `localhost`; addresses in numbers are always allowed, since no other site can
            make a browser take a number for its own name.
        stopping: tells whether streams are to end.
        stderr: as in `Source`.
    """
    site = Site(db, stderr=stderr)
    state = _Events(stopping)
    one_at_a_time = asyncio.Lock()  # a table may be large, and many may ask for it

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with watching(db) as mark:
            state.mark = mark
            yield

    async def get(request: Request) -> Response:
        path = request.path_params["path"] or "index.html"
        if path in downloads.FILES:
            return await _download(site, path, request.method, one_at_a_time)
        body = await run_in_threadpool(site.get, path, state.mark())
        headers = {**HEADERS, "ETag": body.tag, "Cache-Control": "no-cache"}
        if body.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body.data, body.status, headers, media_type=body.type)

    async def events(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=HEADERS)
        if state.open >= MAX_STREAMS:
            return Response("too many open streams\n", 503, {"Retry-After": "30"})
        headers = {**HEADERS, "Cache-Control": "no-store"}  # other sites' pages cannot hold streams open
        return StreamingResponse(state.stream(), media_type="text/event-stream", headers=headers)

    routes = [Route("/events", events), Route("/{path:path}", get)]
    middleware = [Middleware(_OwnHost, names=frozenset(names)), Middleware(GZipMiddleware, minimum_size=500)]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


async def _download(site: Site, path: str, method: str, turn: asyncio.Lock) -> Response:
    kind = downloads.FILES[path]
    if method == "HEAD":
        return Response(media_type=kind, headers=HEADERS)
    try:
        async with turn:
            file = await run_in_threadpool(site.download, path)
    except ArenaError as error:
        body = _refusal(path, 503, "This cannot be read now", str(error))
        return Response(body.data, body.status, HEADERS, media_type=body.type)
    return StreamingResponse(_pieces(file), media_type=kind, headers=HEADERS)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


class _Events:
    """Streams that say `changed` after each commit."""

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self.mark: Callable[[], Mark] = tuple
        self.open = 0
        self._stopping = stopping

    async def stream(self) -> AsyncIterator[str]:
        self.open += 1
        try:
            before = self.mark()
            yield "retry: 1000\n\n"
            quiet = 0.0
            while not self._stopping():
                await asyncio.sleep(POLL_S)
                quiet += POLL_S
                if (now := self.mark()) != before:
                    before, quiet = now, 0.0
                    yield "event: changed\ndata:\n\n"
                elif quiet >= KEEP_ALIVE_S:
                    quiet = 0.0
                    yield ": still here\n\n"
        finally:
            self.open -= 1


class _OwnHost:
    """Refuses requests that name a host which is not ours, as those of a rebound name of another site do."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
            if not self._is_ours(given):
                refusal = Response("this server has no such name; see arena serve --help, --name\n", 421)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_ours(self, given: str) -> bool:
        host = given.rsplit(":", 1)[0] if not given.endswith("]") else given
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return host.lower() in self._names
        return True


class Server(uvicorn.Server):
    """Serves a database at a bound socket, `run([socket])`, until a signal or `should_exit` ends it."""

    def __init__(
        self,
        db: Path,
        names: Collection[str] = (),
        listening: Callable[[], None] = lambda: None,
        *,
        stderr: bool = False,
    ) -> None:
        """Prepare to serve.

        Args:
            names: as for `application`.
            listening: called once requests are answered.
            stderr: as in `Source`.
        """
        config = uvicorn.Config(
            application(db, names, lambda: self.should_exit, stderr=stderr),
            log_config=None,
            log_level="error",  # what malformed requests are is theirs to know
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            limit_concurrency=400,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=2,
        )
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._listening()
