"""This file is `attnstore annotate`."""

from pathlib import Path

import click

from attnstore.cli.options import store_argument

EXAMPLES = """\b
Examples:
  attnstore annotate gum.attn --words corrected.conllu
  attnstore annotate gum.attn --labels genres.csv"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.option("--words", type=click.Path(path_type=Path), help="CoNLL-U or JSON Lines with words, by name or text.")
@click.option("--labels", type=click.Path(path_type=Path), help="Table or JSON Lines with labels, by name or text.")
def command(store: Path, words: Path | None, labels: Path | None) -> None:
    """Add or replace words or labels of a store, without the model.

    The store keeps what it had; the new tables are an addition, and the newest snapshot reads them.
    """
    from attnstore.job.annotate import annotate_labels, annotate_words, check_file

    if words is None and labels is None:
        raise click.UsageError("Name what to add: --words FILE or --labels FILE.")
    wanted = [(path, add) for path, add in ((words, annotate_words), (labels, annotate_labels)) if path is not None]
    for path, _ in wanted:
        check_file(path, f"annotating {store}")  # all, before any is added
    for path, add in wanted:
        done = add(store, path)
        click.echo(f"{store}: examples annotated: {done.examples}, in the addition {done.addition}", err=True)
        if done.unmatched:
            shown = ", ".join(done.unmatched[:5]) + (", …" if len(done.unmatched) > 5 else "")
            click.echo(f"entries that match no example: {len(done.unmatched)} ({shown})", err=True)
