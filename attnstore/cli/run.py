"""This file is `attnstore run`."""

import re
from collections.abc import Callable
from pathlib import Path

import click

from attnstore.cli.options import folder_argument

EXAMPLES = """\b
Examples:
  attnstore run gum.attn --part 1/8
  attnstore run gum.attn --segments 40-59"""


def _two_numbers(pattern: str, form: str) -> Callable[[str], tuple[int, int]]:
    def convert(text: str) -> tuple[int, int]:
        found = re.fullmatch(pattern, text)
        if found is None:
            raise click.BadParameter(f"{text!r} is not of the form {form}")
        first, second = found.groups()
        return int(first), int(first if second is None else second)

    return convert


@click.command(epilog=EXAMPLES)
@folder_argument
@click.option(
    "--part", type=_two_numbers(r"(\d+)/(\d+)", "I/N"), metavar="I/N", help="The I-th of N parts: 1/8, 2/8, … 8/8."
)
@click.option(
    "--segments",
    type=_two_numbers(r"(\d+)(?:-(\d+))?", "A or A-B"),
    metavar="A-B",
    help="Segments A to B, from 0, B included.",
)
@click.option("--device", help="Where the model runs, such as cuda; by default as planned.")
def command(store: Path, part: tuple[int, int] | None, segments: tuple[int, int] | None, device: str | None) -> None:
    """Build a part of a planned store; all of it without --part or --segments.

    The same command resumes; several may work on one part. Nothing can be read before `attnstore finish`.
    """
    if part is not None and segments is not None:
        raise click.UsageError("Give --part or --segments, not both.")
    from attnstore.job.parts import run

    made = run(store, part=part, segments=segments, device=device)
    what = f"segments {made[0]} to {made[-1]} are there" if made else "this part has no segment"
    click.echo(f"{store}: {what}", err=True)
