"""This file runs the service until it is told to stop."""

import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

import click
import uvicorn

from attnstore.errors import BadInput
from attnstore.serve.access import LOOPBACK, Access, hosts, new_token
from attnstore.serve.app import make_app
from attnstore.serve.limits import Limits
from attnstore.serve.published import publish
from attnstore.serve.site.render import style_hash

TOKEN = "ATTNSTORE_TOKEN"


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
    """Serve these stores, given as name and folder, until SIGTERM or SIGINT.

    Beyond loopback a token is asked for, unless `public`: that of `token_file` or of ATTNSTORE_TOKEN, else a new one,
    which is printed once. Raises what opening a store does, and BadInput for settings that contradict each other.
    """
    limits = limits or Limits()
    published = publish(stores, **pins)
    token = _token(host, token_file, public)
    access = Access(hosts(host, names), token, tuple(origins), limits.max_body, limits.send_time, (style_hash(),))
    app = make_app(published, limits, access)
    shown = f"[{host}]" if ":" in host else host
    for name, store in published.items():
        click.echo(f"http://{shown}:{port}/stores/{name}   {store.store.info.title}", err=True)
    if token is not None and TOKEN not in os.environ and token_file is None:
        click.echo(f"token: {token}", err=True)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=round(limits.time_limit) + 2,
        timeout_keep_alive=15,
        limit_concurrency=1000,
        h11_max_incomplete_event_size=128 * 1024,
        ws="none",
    )
    uvicorn.Server(config).run()


def _token(host: str, file: Path | None, public: bool) -> str | None:
    given = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN, "").strip()
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
