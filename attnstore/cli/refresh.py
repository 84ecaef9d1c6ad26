"""This file is `attnstore refresh`."""

from pathlib import Path

import click

from attnstore.cli.options import folder_argument, parameters, params_argument, sharing

EXAMPLES = """\b
Examples:
  attnstore refresh gum.attn head_distances sampled=0
  attnstore refresh gum.attn head_facts eps=0.001
  attnstore refresh gum.attn mention_facts --workers 4"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.argument("table")
@params_argument
@sharing
def command(store: Path, table: str, params: tuple[str, ...], workers: int | None, ray: str | None) -> None:
    """Compute facts anew from the stored maps and keep them, without the model.

    Questions that need it then answer at once. The store keeps what it had; the new table is an addition.
    """
    from attnstore.job.refresh import refresh

    addition = refresh(store, table, parameters(params), workers=workers, ray=ray)
    click.echo(f"{store}: {table} is in the addition {addition}", err=True)
