"""This file is `attnstore estimate`."""

import shutil
from pathlib import Path

import click

from attnstore.cli.options import give, output, settings


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path), required=False)
@settings
@output
def command(recipe: Path, store: Path | None, settings: tuple[str, ...], form: str, output: Path | None) -> None:
    """Say what an ingest would store and need, without running the model.

    With STORE, exit status 1 where that disk cannot hold it.

    \b
    attnstore estimate ingest/quickstart.toml
    attnstore estimate gum.toml gum.attn --set keep.precision=compact
    """
    import pyarrow as pa

    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import estimate

    plan = estimate(Recipe.read(recipe, parse_overrides(settings)))
    need = plan.map_bytes + plan.fact_bytes
    row = {
        "examples": plan.n_examples,
        "skipped": plan.skipped,
        "tokens": plan.n_tokens,
        "longest": plan.longest,
        "weights": plan.n_weights,
        "segments": len(plan.info.segments),
        "maps_mb": plan.map_bytes / 1e6,
        "facts_mb": plan.fact_bytes / 1e6,
        "memory_mb": plan.memory_bytes / 1e6,
    }
    give(pa.Table.from_pylist([row]), form, output)
    if store is not None:
        place = next(folder for folder in (store.absolute(), *store.absolute().parents) if folder.exists())
        free = shutil.disk_usage(place).free
        if need > free:
            click.echo(f"The disk of {store} has {free / 1e6:,.0f} MB free.", err=True)
            raise SystemExit(1)
