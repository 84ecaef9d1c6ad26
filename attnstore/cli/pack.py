"""This file is `attnstore pack`."""

from pathlib import Path

import click

from attnstore.cli.options import reading, store_argument

EXAMPLES = """\b
Examples:
  attnstore pack gum.attn -o gum.attn.zip
  attnstore pack gum.attn -o paper.attn.zip --tag paper"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The new zip file."
)
@reading
def command(store: Path | str, output: Path, snapshot: int | None, tag: str | None, expect: str | None) -> None:
    """Put a store into one zip file, which every command that reads opens as it is.

    Nothing is compressed a second time. Equal stores give equal files.
    """
    from attnstore.share.packing import pack
    from attnstore.store.contents import read_contents

    contents = read_contents(store, snapshot=snapshot, tag=tag, expect=expect)
    size = pack(contents, output)
    click.echo(f"{output}: {size / 1e6:.1f} MB, content hash {contents.snapshot.content_hash[:16]}", err=True)
