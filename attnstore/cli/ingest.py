"""This file is `attnstore ingest`."""

from pathlib import Path

import click

from attnstore.cli.options import settings


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@settings
@click.option("--device", default="cpu", show_default=True, help="Where the model runs, such as cuda.")
def command(recipe: Path, store: Path, settings: tuple[str, ...], device: str) -> None:
    """Run a recipe: a corpus goes in, a store comes out.

    The same command resumes an interrupted run; several may work on one store at once.

    \b
    attnstore ingest ingest/quickstart.toml quickstart.attn
    attnstore ingest gum.toml gum.attn --set corpus.path=gum/*.conllu --set keep.precision=exact
    """
    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import ingest

    with ingest(Recipe.read(recipe, parse_overrides(settings)), store, device=device) as made:
        click.echo(f"{store}: {made.info.n_examples} examples, content {made.snapshot.content_hash[:16]}", err=True)
