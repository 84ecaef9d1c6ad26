"""This file is `attnstore ask`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, parameters, reading, store_argument


@click.command()
@click.argument("question")
@store_argument
@click.argument("params", nargs=-1, metavar="[NAME=VALUE]…")
@output
@reading
def command(
    question: str,
    store: Path,
    params: tuple[str, ...],
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Ask a store a question by name, or one of your own in a .sql file.

    \b
    attnstore ask relations/best gum.attn --format json min_count=50
    attnstore ask ./mine.sql gum.attn
    """
    from attnstore.store.store import open as open_store

    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        give(opened.ask(question, **parameters(params)).to_arrow(), form, output)
