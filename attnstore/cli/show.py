"""This file is `attnstore show`."""

from pathlib import Path

import click

from attnstore.cli.options import (
    hand_over,
    is_terminal,
    parameters,
    params_argument,
    reading,
    store_argument,
    target,
    where_option,
)

EXAMPLES = """\b
Examples:
  attnstore show quickstart.attn 3 --layer 1 --head 2 --level word
  attnstore show quickstart.attn 3 --layer 1 --head 2 --form html -o map.html
  attnstore show quickstart.attn heads/entropy --form svg -o entropy.svg
  attnstore show quickstart.attn relations/accuracy relation=det
  attnstore show quickstart.attn relations/best --picture "bars(accuracy, baseline, by=relation)\""""


@click.command(epilog=EXAMPLES)
@store_argument
@click.argument("what")
@params_argument
@click.option("--layer", type=int, help="Layer of the map, from 0.")
@click.option("--head", type=int, help="Head of the map, from 0.")
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
    "--format",
    "form",
    type=click.Choice(["terminal", "svg", "lines", "html"]),
    default="terminal",
    show_default=True,
    help="As text, as a picture, as lines from word to word (maps only), or as a page with all of it.",
)
@click.option("--picture", help="Which picture of the answer: a name or a description as in its `paint:`.")
@where_option
@target
@reading
def command(
    store: Path | str,
    what: str,
    params: tuple[str, ...],
    layer: int | None,
    head: int | None,
    kind: str | None,
    level: str,
    form: str,
    picture: str | None,
    where: str | None,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Look at one attention map, or at the answer to a question as the picture that its paper draws.

    WHAT is the number or name of an example, or a question.
    """
    from attnstore.catalogue.catalogue import questions
    from attnstore.show.map import draw
    from attnstore.show.question import draw_answer
    from attnstore.store.store import open as open_store

    is_question = what in questions() or what.endswith(".sql")
    if not is_question and (layer is None or head is None):
        raise click.UsageError("A map needs --layer and --head.")
    if not is_question and params:
        raise click.UsageError(f"A map takes no parameters: {' '.join(params)}")
    if not is_question and (picture or where):
        raise click.UsageError("--picture and --where are for questions; a map is chosen by example, layer and head.")
    if is_question and (layer is not None or head is not None):
        raise click.UsageError("--layer and --head choose a map; a question takes parameters: layer=2")
    with open_store(store, snapshot=snapshot, tag=tag, expect=expect) as opened:
        if is_question:
            given = parameters(params) | ({"kind": kind} if kind else {})
            answer = opened.ask(what, where=where, **given)
            text = draw_answer(answer, form, picture=picture, colour=is_terminal(output))
        else:
            which: int | str = int(what) if what.isdecimal() else what
            found = opened.attention(which, kind=kind, layer=layer, head=head, level=level)  # type: ignore[arg-type]
            text = draw(found, form, colour=is_terminal(output))
    hand_over(text.rstrip("\n") + "\n", output)
