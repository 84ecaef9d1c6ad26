"""This file declares each option that several commands share, and how a table leaves the program."""

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from attnstore.errors import BadInput, NoSpace

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ("table", "csv", "json", "parquet", "markdown", "arrow")


class StorePlace(click.Path):
    """The folder of a store, or an address, which is no path: one of two slashes would be lost."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """An address as it was given, anything else as a path."""
        from attnstore.format.address import is_address

        return value if is_address(value) else super().convert(value, param, ctx)


def _no_address(context: click.Context, param: click.Parameter, value: Path) -> Path:
    from attnstore.format.address import is_address

    if is_address(value):
        raise click.BadParameter(f"{value} is an address; `{context.info_name}` needs the folder of a store")
    return value


store_argument = click.argument("store", type=StorePlace())
"""A store to read: in a folder, or behind an address."""

folder_argument = click.argument("store", type=StorePlace(), callback=_no_address)
"""A store to write, or to look into file by file: in a folder."""


def reading(command: Command) -> Command:
    """Options of every command that reads a store: which state of it."""
    for option in (
        click.option("--expect", metavar="HASH", help="Refuse a store whose content hash does not begin so."),
        click.option("--tag", metavar="NAME", help="Read the snapshot that this tag names."),
        click.option("--snapshot", type=int, metavar="N", help="Read snapshot N instead of the newest."),
    ):
        command = option(command)
    return command


def pinning(side: str) -> Callable[[Command], Command]:
    """The same for one of two stores: `--expect-a`, `--tag-a`, `--snapshot-a`."""

    def add(command: Command) -> Command:
        for option in (
            click.option(f"--expect-{side}", metavar="HASH", help=f"Refuse {side.upper()} with another content hash."),
            click.option(f"--tag-{side}", metavar="NAME", help=f"Read the snapshot of {side.upper()} with this tag."),
            click.option(f"--snapshot-{side}", type=int, metavar="N", help=f"Read snapshot N of {side.upper()}."),
        ):
            command = option(command)
        return command

    return add


def _in_a_folder(context: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    # Found out before the answer is computed, which may take long.
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"there is no folder {value.parent}")
    return value


def target(command: Command) -> Command:
    """`-o FILE`, for every command that gives something to keep."""
    option = click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        callback=_in_a_folder,
        help="Write there instead of standard output.",
    )
    return option(command)


def output(command: Command) -> Command:
    """Options of every command that gives a table."""
    option = click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        help="Form of the answer.",
    )
    return option(target(command))


def settings(command: Command) -> Command:
    """`--set key=value`, which replaces one key of a recipe."""
    option = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_with_equals,
        help="Replace one key of the recipe: model.name=…",
    )
    return option(command)


device_option = click.option("--device", default="cpu", show_default=True, help="Where the model runs, such as cuda.")


def sharing(command: Command) -> Command:
    """`--workers` and `--ray`, for every command whose work can be shared."""
    for option in (
        click.option("--ray", metavar="ADDRESS", help="Share the work among actors on this Ray cluster."),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            metavar="N",
            help="Share the work among N processes, or N actors on Ray.",
        ),
    ):
        command = option(command)
    return command


where_option = click.option(
    "--where", metavar="SQL", help="Only examples for which this holds: a condition on the columns of examples."
)


def params_argument(command: Command) -> Command:
    """`NAME=VALUE …`, the parameters of a question or a statement."""
    return click.argument("params", nargs=-1, metavar="[NAME=VALUE]…", callback=_with_equals)(command)


def _with_equals(context: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if not word.partition("=")[0] or "=" not in word:
            raise click.BadParameter(f"{word!r} is not of the form NAME=VALUE")
    return words


def parameters(words: Sequence[str]) -> dict[str, object]:
    """{"min_count": "50"} from words such as min_count=50; a name that comes twice is wrong usage."""
    found: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name == "where":
            raise click.UsageError(f"where is an option, no parameter: --where {value!r}")
        if name in found:
            raise click.UsageError(f"{name} has two values, {found[name]!r} and {value!r}.")
        found[name] = value
    return found


def read_stdin(what: str) -> str:
    """Standard input as text. BadInput where it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"reading {what} from standard input", f"byte {error.start} is not UTF-8", "UTF-8") from error


def give(table: Any, form: str, target: Path | None) -> None:
    """Write a table in a form to a file or standard output. Only the form `table` leaves rows out, and says so."""
    from attnstore.show.formats import render

    data = render(table, form, max_rows=10_000) if form == "table" else render(table, form)
    # What other programs read is UTF-8 with plain line ends everywhere; a terminal gets its own encoding.
    hand_over(data.encode() if isinstance(data, str) and form != "table" else data, target)


def hand_over(data: str | bytes, target: Path | None) -> None:
    """Write text or bytes to a file; standard output for None and "-". BadInput or NoSpace where that cannot be."""
    with _write_errors_named("standard output" if is_stdout(target) else str(target)):
        if target is not None and not is_stdout(target):
            target.write_bytes(data.encode() if isinstance(data, str) else data)
        elif isinstance(data, bytes) and b"\0" in data and is_terminal(target):
            raise click.UsageError("A terminal cannot show this format: add -o FILE.")
        else:
            click.echo(data, nl=False)


def is_terminal(target: Path | None = None) -> bool:
    """Whether what `-o` names is standard output, and that is a terminal."""
    return is_stdout(target) and sys.stdout is not None and sys.stdout.isatty()


def is_stdout(target: Path | None) -> bool:
    """Whether what `-o` names is standard output."""
    return target is None or str(target) == "-"


@contextmanager
def _write_errors_named(place: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        kind = NoSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else BadInput
        raise kind(f"writing to {place}", error.strerror or str(error), "a place that can be written") from error
