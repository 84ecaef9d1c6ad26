"""This file is `attnstore compact`."""

from pathlib import Path

import click

from attnstore.cli.options import folder_argument

EXAMPLES = """\b
Examples:
  attnstore compact gum.attn gum-compact.attn
  attnstore compact gum.attn gum-compact.attn --segment-mib 2048"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--segment-mib",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    help="Maps of a segment before compression, in MiB.",
)
def command(store: Path, target: Path, segment_mib: int) -> None:
    """Make a store of the same examples in fewer, larger segments.

    The source stays as it is, and every answer is the same.
    """
    from attnstore.share.compact import compact
    from attnstore.store.store import open as open_store

    with open_store(store) as source, open_store(compact(store, target, segment_mib * 2**20)) as made:
        before, after = len(source.info.segments), len(made.info.segments)
    click.echo(f"{target}: {after} segment{'' if after == 1 else 's'} of {before}", err=True)
