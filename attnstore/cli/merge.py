"""This file is `attnstore merge`."""

from pathlib import Path

import click

EXAMPLES = """\b
Examples:
  attnstore merge gum.attn ewt.attn both.attn"""


@click.command(epilog=EXAMPLES)
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
def command(sources: tuple[Path, ...], target: Path) -> None:
    """Make one store of several stores of one model.

    The sources stay as they are. Examples are numbered anew, and all licences hold for the whole.
    """
    from attnstore.share.merge import merge
    from attnstore.store.store import open as open_store

    if len(sources) < 2:
        raise click.UsageError("name two stores or more, and the folder of the new one")
    with open_store(merge(sources, target)) as store:
        click.echo(f"{target}: {store.info.n_examples} examples of {len(sources)} stores", err=True)
