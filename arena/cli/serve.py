"""`arena serve`: the pages in a browser, up to date while a tournament runs."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from typing import Annotated

import typer

from arena.cli.app import DEFAULT_DB, Db, Json, Stderr, app
from arena.cli.output import emit_json, say
from arena.errors import ConfigError
from arena.store.database import open_reader

DEFAULT_PORT = 8642


@app.command(epilog="Example: arena serve --port 8080")
def serve(
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; others than loopback can be reached.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.", min=0, max=65535)] = DEFAULT_PORT,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A name that browsers call this host by, e.g. behind a proxy.")
    ] = None,
    stderr: Stderr = False,
    db: Db = DEFAULT_DB,
    as_json: Json = False,
) -> None:
    """Show everything in a browser, live while a tournament runs; only reads, until Ctrl-C."""
    from arena.web.server import Server  # what serves takes a quarter of a second, which other commands need not pay

    with open_reader(db):
        pass  # there is one, and it can be read
    with _bound(host, port) as listener, contextlib.suppress(KeyboardInterrupt):
        url = _url(host, listener.getsockname()[1])
        Server(db, [host, *(name or [])], lambda: _told(url, as_json=as_json), stderr=stderr).run([listener])


def _told(url: str, *, as_json: bool) -> None:
    if as_json:
        emit_json("serve/1", {"url": url})
    else:
        typer.echo(url)
        say("Ctrl-C ends it")


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
        except OSError:
            made.close()
            raise
    except OSError as error:
        what = error.strerror or str(error)
        raise ConfigError(f"cannot listen at {host}:{port}: {what}; choose another --host or --port") from None
    return made


def _url(host: str, port: int) -> str:
    """Return what to open in a browser of this machine."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        host = "localhost" if address.is_unspecified else f"[{host}]" if address.version == 6 else host
    return f"http://{host}:{port}/"
