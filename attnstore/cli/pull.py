"""This file is `attnstore pull`."""

from pathlib import Path

import click

from attnstore.cli.options import reading

EXAMPLES = """\b
Examples:
  attnstore pull hf://datasets/lab/gum-attention gum.attn
  attnstore pull s3://lab/attention/gum.attn gum.attn --tag paper
  attnstore pull https://attention.example.org/stores/gum gum.attn --expect 0a1b2c3d"""


@click.command(epilog=EXAMPLES)
@click.argument("address")
@click.argument("target", type=click.Path(path_type=Path))
@reading
def command(address: str, target: Path, snapshot: int | None, tag: str | None, expect: str | None) -> None:
    """Copy a store from a bucket, the Hugging Face Hub or a service into a folder.

    The same command goes on where it was interrupted. Every file is held against its sha256.
    """
    from tqdm import tqdm

    from attnstore.share.pulling import pull

    with tqdm(desc="pull", unit="B", unit_scale=True, disable=None) as bar:
        done = pull(address, target, snapshot=snapshot, tag=tag, expect=expect, told=bar.update)
    click.echo(
        f"{target}: {done.fetched} files fetched ({done.fetched_bytes:,} bytes), {done.kept} there already, "
        f"snapshot {done.snapshot}, content {done.content_hash[:16]}",
        err=True,
    )
