"""This file is `attnstore push`."""

from pathlib import Path

import click

from attnstore.cli.options import folder_argument, reading

EXAMPLES = """\b
Examples:
  attnstore push gum.attn s3://lab/attention/gum.attn
  attnstore push gum.attn hf://datasets/lab/gum-attention
  attnstore push gum.attn s3://lab/attention/gum.attn --tag paper"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.argument("address")
@reading
def command(store: Path, address: str, snapshot: int | None, tag: str | None, expect: str | None) -> None:
    """Send a store into a bucket or to the Hugging Face Hub, where it can be opened by its address.

    The same command goes on where it was interrupted: what is there is not sent again. Keys are taken from
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL, or from HF_TOKEN.
    """
    from tqdm import tqdm

    from attnstore.share.pushing import push
    from attnstore.store.contents import read_contents

    contents = read_contents(store, snapshot=snapshot, tag=tag, expect=expect)
    if not contents.info.corpus.get("licence"):
        click.echo("No licence is stated for the texts: say in README.md who may use them, and how.", err=True)
    with tqdm(total=contents.n_bytes, desc="push", unit="B", unit_scale=True, disable=None) as bar:
        done = push(store, address, snapshot=contents.snapshot.number, expect=expect, told=bar.update)
    for name in done.other_tags:
        click.echo(f"The tag {name} names another snapshot there, and was left as it is.", err=True)
    if done.snapshot != contents.snapshot.number:
        click.echo(f"Its number {contents.snapshot.number} is taken there: it is snapshot {done.snapshot}.", err=True)
    at = f", commit {done.revision}" if done.revision else ""
    click.echo(
        f"{address}: {done.sent} files sent ({done.sent_bytes:,} bytes), {done.kept} there already, "
        f"snapshot {done.snapshot}, content {done.content_hash[:16]}{at}",
        err=True,
    )
