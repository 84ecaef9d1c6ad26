"""This file is `attnstore show`."""

from pathlib import Path

import click

from attnstore.cli.options import hand_over, is_terminal, reading, store_argument, target

EXAMPLES = """\b
Examples:
  attnstore show quickstart.attn 3 --layer 1 --head 2 --level word
  attnstore show quickstart.attn 3 --layer 1 --head 2 --form html -o map.html"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.argument("example")
@click.option("--layer", type=int, required=True, help="Layer, from 0.")
@click.option("--head", type=int, required=True, help="Head, from 0.")
@click.option("--kind", help="encoder, decoder or cross; needed only where the store has several.")
@click.option(
    "--level",
    type=click.Choice(["token", "word"]),
    default="token",
    show_default=True,
    help="Between tokens, or between words.",
)
@click.option(
    "--form",
    type=click.Choice(["terminal", "svg", "lines", "html"]),
    default="terminal",
    show_default=True,
    help="As text, as a picture, as lines from word to word, or as a page with both.",
)
@target
@reading
def command(
    store: Path,
    example: str,
    layer: int,
    head: int,
    kind: str | None,
    level: str,
    form: str,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Look at one attention map: EXAMPLE is a number, or a name given by the corpus."""
    from attnstore.show.map import draw
    from attnstore.store.store import open as open_store

    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        which: int | str = int(example) if example.isdecimal() else example
        found = opened.attention(example=which, kind=kind, layer=layer, head=head, level=level)  # type: ignore[arg-type]
        text = draw(found, form, colour=is_terminal(output))
    hand_over(text.rstrip("\n") + "\n", output)
