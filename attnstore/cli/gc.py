"""This file is `attnstore gc`."""

from dataclasses import asdict
from pathlib import Path

import click

from attnstore.cli.options import folder_argument, give, output

EXAMPLES = """\b
Examples:
  attnstore gc gum.attn --dry-run
  attnstore gc gum.attn --superseded --older-than 72"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="Leave alone what is younger. With 0 nobody else may read or write the store.",
)
@click.option("--superseded", is_flag=True, help="First drop the additions that later ones replace as a whole.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@output
def command(store: Path, older_than: float, superseded: bool, dry_run: bool, form: str, output: Path | None) -> None:
    """Remove what nobody can need: leftovers of killed writers, old snapshots, additions that were dropped.

    Tagged snapshots and the newest one stay, with all that they list. The age of a snapshot counts from the one after
    it.
    """
    import pyarrow as pa

    from attnstore.share.collect import gc

    removed = gc(store, older_than, dry_run=dry_run, superseded=superseded)
    if removed or form != "table" or output is not None:
        schema = pa.schema([("path", pa.string()), ("bytes", pa.int64()), ("why", pa.string())])
        give(pa.Table.from_pylist([asdict(one) for one in removed], schema=schema), form, output)
    size = sum(one.bytes for one in removed) / 1e6
    told = "would go" if dry_run else "removed"
    click.echo(f"{store}: {len(removed) or 'nothing'} {told}{f', {size:.1f} MB' if removed else ''}", err=True)
