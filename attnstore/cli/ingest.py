"""This file is `attnstore ingest`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnstore.cli.options import device_option, settings, sharing

if TYPE_CHECKING:
    from attnstore.store.store import Store

EXAMPLES = """\b
Examples:
  attnstore ingest ingest/quickstart.toml quickstart.attn
  attnstore ingest ingest/gum.toml gum.attn --set 'corpus.path=/data/gum/*.conllu' --set keep.precision=exact
  attnstore ingest ingest/gum.toml gum.attn --workers 4
  attnstore ingest ingest/gum.toml gum.attn --ray 10.0.0.1:6379 --device cuda"""


@click.command(epilog=EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@settings
@device_option
@sharing
def command(
    recipe: Path, store: Path, settings: tuple[str, ...], device: str, workers: int | None, ray: str | None
) -> None:
    """Run a recipe: a corpus goes in, a store comes out.

    The same command resumes an interrupted run; several may work on one store at once. With --workers or --ray each
    worker holds a model of its own; evidence that the recipe asks for is made afterwards, in one process.
    """
    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import ingest

    chosen = Recipe.read(recipe, parse_overrides(settings))
    with ingest(chosen, store, device=device, workers=workers, ray=ray) as made:
        click.echo(told(store, made), err=True)


def told(store: Path, made: "Store") -> str:
    """What a finished store holds, in a line."""
    skipped = made.info.corpus["skipped"]
    left_out = f" and {skipped} skipped (see the table skipped)" if skipped else ""
    return f"{store}: {made.info.n_examples} examples{left_out}, content {made.snapshot.content_hash[:16]}"
