"""This file declares each option that several commands share, and how a table leaves the program."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from attnstore.errors import BadInput

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("table", "csv", "json", "parquet", "markdown", "arrow")

store_argument = click.argument("store", type=click.Path(path_type=Path))


def reading(command: Command) -> Command:
    """Options of every command that reads a store: which state of it."""
    for option in (
        click.option("--expect", metavar="HASH", help="Refuse a store whose content hash does not begin so."),
        click.option("--tag", metavar="NAME", help="Read the snapshot that this tag names."),
        click.option("--snapshot", type=int, metavar="N", help="Read snapshot N instead of the newest."),
    ):
        command = option(command)
    return command


def output(command: Command) -> Command:
    """Options of every command that gives a table."""
    for option in (
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write there instead of standard output."),
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            default="table",
            show_default=True,
            help="Form of the answer.",
        ),
    ):
        command = option(command)
    return command


def settings(command: Command) -> Command:
    """`--set key=value`, which replaces one key of a recipe."""
    option = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Replace one key of the recipe: model.name=…"
    )
    return option(command)


def parameters(words: Sequence[str]) -> dict[str, object]:
    """{"min_count": "50"} from words such as min_count=50."""
    found: dict[str, object] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise BadInput(f"reading the parameter {word!r}", "no '='", "name=value, such as min_count=50")
        found[name] = value
    return found


def give(table: Any, form: str, target: Path | None) -> None:
    """Write a table in a form to a file or standard output. A cut table says so on standard error."""
    from attnstore.show.formats import render

    data = render(table, form, max_rows=10_000) if form == "table" else render(table, form)
    if target is not None:
        target.write_bytes(data.encode() if isinstance(data, str) else data)
    elif isinstance(data, bytes):
        click.get_binary_stream("stdout").write(data)
    else:
        click.echo(data.rstrip("\n"))
