"""This file is `attnstore ask`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, parameters, params_argument, reading, store_argument, where_option

EXAMPLES = """\b
Examples:
  attnstore ask relations/best quickstart.attn --format json min_count=50
  attnstore ask heads/entropy quickstart.attn --where "n_tokens < 20"
  attnstore ask ./mine.sql quickstart.attn"""


@click.command(epilog=EXAMPLES)
@click.argument("question")
@store_argument
@params_argument
@where_option
@output
@reading
def command(
    question: str,
    store: Path | str,
    params: tuple[str, ...],
    where: str | None,
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Ask a store a question by name, or one of your own in a .sql file."""
    from attnstore.store.store import open as open_store

    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        give(opened.ask(question, where=where, **parameters(params)).to_arrow(), form, output)
