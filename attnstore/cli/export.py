"""This file is `attnstore export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from attnstore.cli.options import parameters, params_argument, reading, store_argument, where_option

if TYPE_CHECKING:
    from attnstore.store.store import Store

EXAMPLES = """\b
Examples:
  attnstore export gum.attn small.attn --where "n_tokens < 32" --layers 0-3
  attnstore export gum.attn nameless.attn --no-text
  attnstore export gum.attn maps.npz --maps npz --layers 2 --heads 0,3
  attnstore export gum.attn maps.zarr --maps zarr --level word
  attnstore export gum.attn view.json --maps bertviz --where "name = 's3'"
  attnstore export gum.attn probe.parquet --question probe/features
  attnstore export gum.attn maps.parquet size=32 --question patterns/maps"""

_FOR = {
    "question": {"params", "where", "at_a_time"},
    "maps": {"where", "layers", "heads", "kind", "level"},
    "store": {"where", "layers", "heads", "level", "no_text", "facts_only"},
}
"""Which options each way of exporting takes."""


def _numbers(context: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """(0, 2, 3, 4) from "0,2-4"."""
    if text is None:
        return None
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (item.strip() for item in part.partition("-"))
        if not first.isdecimal() or not (last.isdecimal() or not dash) or len(first + last) > 8:
            raise click.BadParameter(f"{text!r} is not of the form 0,2-4")
        found += range(int(first), int(last or first) + 1)
    if not found or len(set(found)) < len(found):
        raise click.BadParameter(f"{text!r} does not name each number once")
    return tuple(found)


@click.command(epilog=EXAMPLES)
@store_argument
@click.argument("target", type=click.Path(path_type=Path))
@params_argument
@click.option("--question", metavar="NAME", help="Write the answer to this question into a Parquet file.")
@click.option("--at-a-time", type=click.IntRange(min=1), help="Examples in memory for --question.  [default: 16]")
@click.option(
    "--maps",
    "form",
    type=click.Choice(["npz", "csv", "zarr", "bertviz"]),
    help="Write maps: arrays for NumPy, a row a cell, one padded array for xarray, or JSON for BertViz.",
)
@click.option("--kind", help="encoder, decoder or cross, for --maps; needed only where the store has several.")
@click.option(
    "--level", type=click.Choice(["token", "word"]), help="Maps between these; or a store with facts of these."
)
@click.option("--layers", metavar="LIST", callback=_numbers, help="Only these layers, such as 0,2-4.")
@click.option("--heads", metavar="LIST", callback=_numbers, help="Only these heads of each layer.")
@where_option
@click.option("--no-text", is_flag=True, help="A store without text: no words, tokens or names can be read from it.")
@click.option("--facts-only", is_flag=True, help="A store of facts, without maps.")
@reading
def command(
    store: Path | str,
    target: Path,
    params: tuple[str, ...],
    question: str | None,
    form: str | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
    **options: Any,
) -> None:
    """Write maps, a large answer, or a smaller store, for others.

    TARGET is new: it appears when it is whole. Without --maps or --question it is a store with less in it than STORE.
    """
    from attnstore.store.store import open as open_store

    if question is not None and form is not None:
        raise click.UsageError("--question and --maps are two exports.")
    way = "question" if question is not None else "maps" if form is not None else "store"
    given = {name for name, value in {**options, "params": params}.items() if value not in (None, False, ())}
    if wrong := sorted(given - _FOR[way]):
        named = "parameters of a question" if wrong[0] == "params" else "--" + wrong[0].replace("_", "-")
        raise click.UsageError(f"{named} do not fit {f'--{way}' if way != 'store' else 'a smaller store'}.")
    if way == "store" and not given:
        raise click.UsageError("Say what to leave out (--no-text, --where, …), or what to write (--maps, --question).")
    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        if question is not None:
            said = _answer(opened, target, question, parameters(params), options)
        elif form is not None:
            said = _maps(opened, target, form, options)
        else:
            said = _smaller(opened, target, options)
    click.echo(f"{target}: {said}", err=True)


def _answer(store: "Store", target: Path, question: str, params: dict[str, object], options: dict[str, Any]) -> str:
    from attnstore.store.exporting import AT_A_TIME, export

    at_a_time = options["at_a_time"] or AT_A_TIME
    return f"{export(store, question, target, params, where=options['where'], at_a_time=at_a_time)} rows"


def _maps(store: "Store", target: Path, form: str, options: dict[str, Any]) -> str:
    from attnstore.share.chosen_maps import ChosenMaps
    from attnstore.share.others import export_maps

    chosen = ChosenMaps(
        store,
        where=options["where"],
        kind=options["kind"],
        layers=options["layers"],
        heads=options["heads"],
        level="word" if options["level"] == "word" else "token",
    )
    n = export_maps(chosen, target, form)
    return f"maps of {n} example{'' if n == 1 else 's'}"


def _smaller(store: "Store", target: Path, options: dict[str, Any]) -> str:
    from attnstore.share.less import less

    less(
        store,
        target,
        no_text=options["no_text"],
        examples=options["where"],
        layers=options["layers"],
        heads=options["heads"],
        level="word" if options["level"] == "word" else None,
        facts_only=options["facts_only"],
    )
    return "a smaller store"
