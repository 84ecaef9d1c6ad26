"""This file runs the service until it is told to stop."""

import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import uvicorn

from attnstore.errors import AttnStoreError, BadInput
from attnstore.serve.access import LOOPBACK, Access, hosts, new_token
from attnstore.serve.app import make_app
from attnstore.serve.connection import connections
from attnstore.serve.limits import Limits
from attnstore.serve.pages.render import style_hash
from attnstore.serve.published import publish

TOKEN = "ATTNSTORE_TOKEN"
_MOST_CONNECTIONS = 1000
_MOST_HEADERS = 64 * 1024


def run(
    stores: Sequence[tuple[str | None, Path]],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    names: Sequence[str] = (),
    origins: Sequence[str] = (),
    token_file: Path | None = None,
    public: bool = False,
    limits: Limits | None = None,
    **pins: object,
) -> None:
    """Serve these stores, given as name and folder, until SIGTERM or SIGINT, then finish what runs and exit with 0.

    Port 0 takes one that is free. Where it listens is told when it does, a line for each store on standard error.
    Beyond loopback a token is asked for, unless `public`: that of `token_file` or of ATTNSTORE_TOKEN, else a new one,
    which is printed once. Raises what opening a store does, and BadInput for settings that contradict each other, an
    address that cannot be had, or workers that do not start.
    """
    limits = limits or Limits()
    # uvicorn raises the signal once more when it is done; until then, nothing is there to be finished.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s")
    token = _token(host, token_file, public)
    published = publish(stores, **pins)
    access = Access(hosts(host, names), token, tuple(origins), limits.max_body, (style_hash(),))
    app = make_app(published, limits, access)
    with _listener(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        lines = [f"http://{shown}:{listener.getsockname()[1]}/stores/{name}" for name in published]

        def listens() -> None:
            for line, store in zip(lines, published.values(), strict=True):
                click.echo(f"{line}   {store.store.info.title}", err=True)
            if token is not None and not os.environ.get(TOKEN) and token_file is None:
                click.echo(f"token: {token}", err=True)

        config = uvicorn.Config(
            app,
            http=connections(limits.send_time, _MOST_CONNECTIONS),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nothing here depends on the address of a client
            timeout_graceful_shutdown=round(max(limits.time_limit, limits.question_time_limit)) + 2,
            timeout_keep_alive=15,
            h11_max_incomplete_event_size=_MOST_HEADERS,
        )
        _Server(config, listens).run([listener])


class _Server(uvicorn.Server):
    """One that says when it listens, and raises what kept it from doing so."""

    def __init__(self, config: uvicorn.Config, listens: Callable[[], None]) -> None:
        super().__init__(config)
        self._listens = listens

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:
            raise AttnStoreError("starting the service", "its workers do not start", "", "See above") from None
        self._listens()


def _listener(host: str, port: int) -> socket.socket:
    """A socket that is bound there and does not listen yet; BadInput where that cannot be."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        # Only where the protocol is named does asyncio send small pieces at once, and not 40 ms later.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        said = error.strerror or str(error)
        raise BadInput(f"listening at {host}, port {port}", said, "an address of this machine that is free") from error
    return listener


def _token(host: str, file: Path | None, public: bool) -> str | None:
    try:
        given = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN, "").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or "it cannot be read as text"
        raise BadInput(f"reading {file}", said, "a file with the token on one line") from error
    if file is not None and not given:
        raise BadInput(f"reading {file}", "no token", "one line")
    if public:
        if given:
            raise BadInput("serving", "--public and a token", "one of them")
        return None
    if given:
        return given
    return None if _is_loopback(host) else new_token()


def _is_loopback(host: str) -> bool:
    if host in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
