"""This file is `attnstore plan`."""

from pathlib import Path

import click

from attnstore.cli.options import device_option, give, output, settings

EXAMPLES = """\b
Examples:
  attnstore plan ingest/gum.toml gum.attn
  attnstore plan ingest/gum.toml gum.attn --set 'corpus.path=/data/gum/*.conllu' --format csv -o segments.csv"""


@click.command(epilog=EXAMPLES)
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@settings
@device_option
@output
def command(recipe: Path, store: Path, settings: tuple[str, ...], device: str, form: str, output: Path | None) -> None:
    """Cut an ingest into segments that any scheduler can run; the model is checked on two examples.

    The answer has a row for each segment. Next come `attnstore run`, in as many jobs as you like, and `attnstore
    finish`.
    """
    import pyarrow as pa

    from attnstore.job.parts import plan
    from attnstore.job.recipe import Recipe, parse_overrides
    from attnstore.job.run import missing

    info = plan(Recipe.read(recipe, parse_overrides(settings)), store, device=device).info
    left = set(missing(store, range(len(info.segments))))
    rows = [
        {
            "segment": number,
            "first": segment.first,
            "stop": segment.stop,
            "weights": sum(kind.layers * kind.heads * segment.cells[name] for name, kind in info.kinds.items()),
            "is_there": number not in left,
        }
        for number, segment in enumerate(info.segments)
    ]
    give(pa.Table.from_pylist(rows), form, output)
    click.echo(
        f"{store}: {len(rows)} segments, {len(rows) - len(left)} of them there. Next, in any number of jobs, such as 4:"
        f"\n  attnstore run {store} --part 1/4   (to 4/4)\n  attnstore finish {store}",
        err=True,
    )
