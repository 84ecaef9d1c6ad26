"""This file is `attnstore serve`."""

from pathlib import Path
from typing import Any

import click

from attnstore.cli.options import reading
from attnstore.errors import MissingExtra

EXAMPLES = """\b
Examples:
  attnstore serve gum.attn
  attnstore serve base=bert.attn tuned=tuned.attn --port 9000
  attnstore serve gum.attn --host 0.0.0.0 --name maps.example.org --time-limit 10"""

NEEDED = ("fastapi", "uvicorn", "jinja2", "fsspec", "prometheus_client")


@click.command(epilog=EXAMPLES)
@click.argument("stores", nargs=-1, required=True, metavar="[NAME=]STORE…")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen at.")
@click.option("--name", "names", multiple=True, help="Another name that the service goes by, as in Host headers.")
@click.option("--cors-origin", "origins", multiple=True, metavar="URL", help="A site whose pages may read answers.")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="The token that is asked for.")
@click.option("--public", is_flag=True, help="Ask for no token, also beyond this machine.")
@click.option("--time-limit", type=float, help="Seconds for a statement.")
@click.option("--question-time-limit", type=float, help="Seconds for a question that ships.")
@click.option("--max-rows", type=int, help="Rows of an answer as JSON, CSV or a page.")
@click.option("--max-arrow-rows", type=int, help="Rows of an answer as Arrow.")
@click.option("--max-bytes", type=int, help="Bytes of an answer as JSON, CSV or a page.")
@click.option("--max-arrow-bytes", type=int, help="Bytes of an answer as Arrow.")
@click.option("--max-body", type=int, help="Bytes of a request.")
@click.option("--memory", type=int, help="Bytes of memory of DuckDB in a worker.")
@click.option("--address-space", type=int, help="Bytes of memory of a worker in all.")
@click.option("--workers", type=int, help="Processes that answer.")
@click.option("--threads", type=int, help="Threads of DuckDB in a worker; 0 shares the cores.")
@click.option("--queue", type=int, help="Requests that may wait.")
@click.option("--queue-wait", type=float, help="Seconds that a request waits at most.")
@click.option("--cache", type=int, help="Bytes of answers to questions that are kept.")
@click.option("--prepared", type=int, help="Bytes on disk of tables that are computed beforehand; 0 computes none.")
@click.option("--held", type=int, help="Bytes of answers that clients are fetching.")
@click.option("--send-time", type=float, help="Seconds that a client may take for 64 KiB.")
@reading
def command(
    stores: tuple[str, ...],
    host: str,
    port: int,
    names: tuple[str, ...],
    origins: tuple[str, ...],
    token_file: Path | None,
    public: bool,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
    **limits: Any,
) -> None:
    """Publish stores read-only over HTTP: a page for people, an API for programs."""
    try:
        from attnstore.serve.server import run
    except ModuleNotFoundError as error:
        if error.name in NEEDED:
            raise MissingExtra("serving", str(error.name), "serve") from None
        raise
    from attnstore.serve.limits import Limits

    if len(stores) > 1 and (snapshot is not None or tag is not None or expect is not None):
        raise click.UsageError("--snapshot, --tag and --expect are for one store.")
    given = [(name or None, Path(place)) for name, place in map(_named, stores)]
    run(
        given,
        host=host,
        port=port,
        names=names,
        origins=origins,
        token_file=token_file,
        public=public,
        limits=Limits().with_set(limits),
        snapshot=snapshot,
        tag=tag,
        expect=expect,
    )


def _named(text: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    return (name, place) if equals and "/" not in name else ("", text)
