"""This file is `attnstore export`."""

from pathlib import Path

import click

from attnstore.cli.options import parameters, params_argument, reading, store_argument, where_option

EXAMPLES = """\b
Examples:
  attnstore export probe/features gum.attn -o probe.parquet
  attnstore export patterns/maps gum.attn -o maps.parquet size=32"""


@click.command(epilog=EXAMPLES)
@click.argument("question")
@store_argument
@params_argument
@where_option
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Parquet file.")
@click.option("--at-a-time", type=click.IntRange(min=1), default=16, show_default=True, help="Examples in memory.")
@reading
def command(
    question: str,
    store: Path | str,
    params: tuple[str, ...],
    where: str | None,
    output: Path,
    at_a_time: int,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Write a large answer into a Parquet file, some examples at a time."""
    from attnstore.store.exporting import export
    from attnstore.store.store import open as open_store

    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        rows = export(opened, question, output, parameters(params), where=where, at_a_time=at_a_time)
    click.echo(f"{output}: {rows} rows", err=True)
