"""This file is `attnstore sql`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, parameters, params_argument, read_stdin, reading, store_argument

EXAMPLES = """\b
Examples:
  attnstore sql quickstart.attn "select deprel, count(*) from words group by all order by 2 desc"
  attnstore sql quickstart.attn 'select * from heads where layer = $layer' layer=1"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.argument("statement")
@params_argument
@output
@reading
def command(
    store: Path | str,
    statement: str,
    params: tuple[str, ...],
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Run one SQL statement over a store; `-` reads it from standard input."""
    from attnstore.store.store import open as open_store

    text = read_stdin("the statement") if statement == "-" else statement
    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        give(opened.sql(text, **parameters(params)).to_arrow(), form, output)
