"""This file is `attnstore tag`."""

from dataclasses import asdict
from pathlib import Path

import click

from attnstore.cli.options import folder_argument, give, output

EXAMPLES = """\b
Examples:
  attnstore tag gum.attn paper
  attnstore tag gum.attn paper --snapshot 3 --move
  attnstore tag gum.attn --list
  attnstore tag gum.attn paper --delete"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.argument("name", required=False)
@click.option("--snapshot", type=int, metavar="N", help="Name snapshot N instead of the newest.")
@click.option("--move", is_flag=True, help="Let a tag that is there name another snapshot.")
@click.option("--delete", is_flag=True, help="Delete the tag; `gc` may then collect what it named.")
@click.option("--list", "listing", is_flag=True, help="List the tags: snapshot, content hash, time. So without a NAME.")
@output
def command(
    store: Path,
    name: str | None,
    snapshot: int | None,
    move: bool,
    delete: bool,
    listing: bool,
    form: str,
    output: Path | None,
) -> None:
    """Name a snapshot, so that it can be cited and is never collected; list or delete such names."""
    import pyarrow as pa

    from attnstore.share.tags import tag, tags, untag

    if name is None or listing:
        if name is not None or snapshot is not None or move or delete:
            raise click.UsageError("A list takes no NAME; everything else needs one, and no --list.")
        schema = {"name": pa.string(), "snapshot": pa.int64(), "content_hash": pa.string(), "time": pa.string()}
        rows = [asdict(found) for found in tags(store)]
        give(pa.Table.from_pylist(rows, schema=pa.schema(list(schema.items()))), form, output)
        return
    if delete and (move or snapshot is not None):
        raise click.UsageError("--delete takes neither --move nor --snapshot.")
    found = untag(store, name) if delete else tag(store, name, snapshot, move=move)
    told = "no longer names" if delete else "names"
    pinned = f", content {found.content_hash[:16]}" if found.content_hash else ", which is no longer there"
    click.echo(f"{store}: {name} {told} snapshot {found.snapshot}{pinned}", err=True)
