"""This file is `attnstore ingest`."""

from pathlib import Path

import click

from attnstore.cli.options import settings

EXAMPLES = """\b
Examples:
  attnstore ingest ingest/quickstart.toml quickstart.attn
  attnstore ingest ingest/gum.toml gum.attn --set 'corpus.path=/data/gum/*.conllu' --set keep.precision=exact"""


@click.command(epilog=EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@settings
@click.option("--device", default="cpu", show_default=True, help="Where the model runs, such as cuda.")
def command(recipe: Path, store: Path, settings: tuple[str, ...], device: str) -> None:
    """Run a recipe: a corpus goes in, a store comes out.

    The same command resumes an interrupted run; several may work on one store at once.
    """
    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import ingest

    with ingest(Recipe.read(recipe, parse_overrides(settings)), store, device=device) as made:
        skipped = made.info.corpus["skipped"]
        left_out = f" and {skipped} skipped (see the table skipped)" if skipped else ""
        hashed = made.snapshot.content_hash[:16]
        click.echo(f"{store}: {made.info.n_examples} examples{left_out}, content {hashed}", err=True)
