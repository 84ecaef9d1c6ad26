"""This file is `attnstore finish`."""

from pathlib import Path

import click

from attnstore.cli.options import folder_argument

EXAMPLES = """\b
Examples:
  attnstore finish gum.attn"""


@click.command(epilog=EXAMPLES)
@folder_argument
def command(store: Path) -> None:
    """Make a planned store readable once all its segments are there.

    Exit status 1 where some are missing, with the command that makes them.
    """
    from attnstore.cli.ingest import told
    from attnstore.job.parts import finish, lacking_evidence

    with finish(store) as made:
        click.echo(told(store, made), err=True)
        if lacking := lacking_evidence(made):
            click.echo(
                f"Of {', '.join(lacking)} nothing is there. To add it: attnstore ingest RECIPE {store}", err=True
            )
