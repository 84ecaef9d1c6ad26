"""This file is `attnstore estimate`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output, settings

EXAMPLES = """\b
Examples:
  attnstore estimate ingest/quickstart.toml
  attnstore estimate ingest/quickstart.toml quickstart.attn --set keep.precision=compact"""


@click.command(epilog=EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path), required=False)
@settings
@output
def command(recipe: Path, store: Path | None, settings: tuple[str, ...], form: str, output: Path | None) -> None:
    """Say what an ingest would store and need, without running the model.

    With STORE, exit status 1 where that disk cannot hold it.
    """
    import pyarrow as pa

    from attnstore.job.begin import check_space
    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import estimate

    plan = estimate(Recipe.read(recipe, parse_overrides(settings)))
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
        check_space(store, plan, f"estimating what {store} needs")
