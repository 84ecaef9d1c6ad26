"""This file is `attnstore info`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, reading, store_argument

EXAMPLES = """\b
Examples:
  attnstore info quickstart.attn
  attnstore info quickstart.attn --format json"""


@click.command(epilog=EXAMPLES)
@store_argument
@output
@reading
def command(
    store: Path | str,
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Say what a store holds: model, corpus, sizes, tables."""
    import pyarrow as pa

    from attnstore.store.store import open as open_store

    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        rows = [{"what": name, "value": value} for name, value in opened.summary().items()]
        give(pa.Table.from_pylist(rows), form, output)
