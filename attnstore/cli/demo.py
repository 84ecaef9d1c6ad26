"""This file is `attnstore demo`."""

import shlex
import time
from pathlib import Path

import click

from attnstore.cli.options import is_terminal

EXAMPLES = """\b
Examples:
  attnstore demo"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("quickstart.attn"),
    show_default=True,
    help="Where the store goes; an earlier one of the demo is used again.",
)
def command(store: Path) -> None:
    """Run a small model over a small corpus and look at the answers."""
    from attnstore.job.recipe import Recipe
    from attnstore.job.run import ingest
    from attnstore.paths import shipped
    from attnstore.show.terminal import grid_text, table_text

    started = time.monotonic()
    with ingest(Recipe.read(shipped("ingest") / "quickstart.toml"), store) as opened:
        took = time.monotonic() - started
        click.echo(f"\n1. Stored in {store} ({took:.0f} s; from here on the model is not needed)\n")
        for name, value in opened.summary().items():
            click.echo(f"   {name:<14} {value}")
        click.echo("\n2. The head that finds each relation best, beside the best fixed offset")
        click.echo("   attnstore ask relations/best: Clark et al. 2019, table 1\n")
        best = opened.ask("relations/best", min_count=15)
        wanted = ["relation", "n", "layer", "head", "direction", "accuracy", "baseline", "offset"]
        click.echo(_indented(table_text(best.to_arrow().select(wanted))))
        click.echo("\n3. Entropy of every head: dark heads look at few tokens, bright ones at many")
        click.echo("   attnstore ask heads/entropy: Clark et al. 2019, section 3.3\n")
        grid = opened.ask("heads/entropy").to_grid("entropy_nats")
        click.echo(_indented(grid_text(grid, title="entropy, nats", colour=is_terminal())))
        first = next(row for row in best if row["relation"] != "all")
    place = shlex.quote(str(store))
    click.echo(f"""
Try next:

   attnstore ask relations/evidence {place} relation={first["relation"]} layer={first["layer"]} head={first["head"]}
   attnstore show {place} 0 --layer {first["layer"]} --head {first["head"]} --level word
   attnstore sql {place} "select layer, avg(entropy_nats) from token_facts group by all order by all"
""")


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())
