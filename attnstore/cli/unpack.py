"""This file is `attnstore unpack`."""

from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  attnstore unpack gum.attn.zip gum.attn
  attnstore unpack gum.attn.zip gum.attn --expect dad7c428b412ec73"""


@click.command(epilog=EXAMPLES)
@click.argument("package", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--expect", metavar="HASH", help="Refuse a store whose content hash does not begin so.")
def command(package: Path, store: Path, expect: str | None) -> None:
    """Take a store out of a zip file into a new folder, whole or not at all. Every file is held against its sha256."""
    from attnstore.share.packing import unpack

    contents = unpack(package, store, expect=expect)
    click.echo(f"{store}: {len(contents.units)} units, content hash {contents.snapshot.content_hash}", err=True)
