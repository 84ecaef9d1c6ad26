"""This file is `attnstore sql`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, parameters, reading, store_argument


@click.command()
@store_argument
@click.argument("statement")
@click.argument("params", nargs=-1, metavar="[NAME=VALUE]…")
@output
@reading
def command(
    store: Path,
    statement: str,
    params: tuple[str, ...],
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Run one SQL statement over a store; `-` reads it from standard input.

    \b
    attnstore sql gum.attn "select deprel, count(*) from words group by all order by 2 desc"
    attnstore sql gum.attn "select * from heads where layer = \\$layer" layer=3
    """
    from attnstore.store.store import open as open_store

    text = click.get_text_stream("stdin").read() if statement == "-" else statement
    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        give(opened.sql(text, **parameters(params)).to_arrow(), form, output)
