"""This file is `attnstore card`."""

from pathlib import Path

import click

from attnstore.cli.options import hand_over, reading, store_argument, target

EXAMPLES = """\b
Examples:
  attnstore card gum.attn
  attnstore card gum.attn --write
  attnstore card gum.attn --croissant -o croissant.json"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.option("--croissant", is_flag=True, help="Describe the store for catalogues, in Croissant (JSON-LD).")
@click.option("--write", is_flag=True, help="Write README.md and croissant.json into the store.")
@target
@reading
def command(
    store: Path | str,
    croissant: bool,
    write: bool,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Say what a store is, whose, and how to open it: the README of a data set on the Hugging Face Hub.

    A README.md that somebody wrote stays as it is.
    """
    from attnstore.share.card import card, write_card
    from attnstore.share.croissant import croissant_text, write_croissant
    from attnstore.store.contents import read_contents

    contents = read_contents(store, snapshot=snapshot, tag=tag, expect=expect)
    if not write:
        hand_over(croissant_text(contents) if croissant else card(contents), output)
        return
    if croissant or output is not None:
        raise click.UsageError("--write writes both files into the store: leave out --croissant and -o.")
    if snapshot is not None or tag is not None:
        raise click.UsageError("--write tells of the newest snapshot, which a folder opens at.")
    write_croissant(contents)
    kept = "" if write_card(contents.folder) else "; README.md is somebody's own and stays"
    click.echo(f"{store}: written{kept}", err=True)
