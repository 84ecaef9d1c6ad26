"""This file is `attnstore compare`."""

from pathlib import Path

import click

from attnstore.cli.options import (
    StorePlace,
    give,
    hand_over,
    is_terminal,
    output,
    parameters,
    params_argument,
    pinning,
    where_option,
)

EXAMPLES = """\b
Examples:
  attnstore compare compare/pairs pretrained.attn tuned.attn
  attnstore compare compare/cosine pretrained.attn tuned.attn --format json
  attnstore compare compare/cosine pretrained.attn tuned.attn --picture svg -o cosine.svg
  attnstore compare compare/heads pretrained.attn tuned.attn metric=entropy
  attnstore compare compare/cosine run.attn run.attn --snapshot-a 1
  attnstore compare ./mine.sql pretrained.attn tuned.attn"""


@click.command(epilog=EXAMPLES)
@click.argument("question")
@click.argument("a", type=StorePlace())
@click.argument("b", type=StorePlace())
@params_argument
@where_option
@click.option(
    "--picture",
    type=click.Choice(["terminal", "svg", "html"]),
    help="The answer as the picture that the question paints, instead of a table.",
)
@pinning("b")
@pinning("a")
@output
def command(
    question: str,
    a: Path | str,
    b: Path | str,
    params: tuple[str, ...],
    where: str | None,
    picture: str | None,
    form: str,
    output: Path | None,
    snapshot_a: int | None,
    tag_a: str | None,
    expect_a: str | None,
    snapshot_b: int | None,
    tag_b: str | None,
    expect_b: str | None,
) -> None:
    """Ask a question of two stores: one that compares them, or one of your own in a .sql file.

    In SQL the tables of the first store are a.words and so on, those of the second b.words. What
    --where says has to hold in both.
    """
    from attnstore.store.comparison import compare
    from attnstore.store.store import open as open_store

    with (
        open_store(a, snapshot=snapshot_a, tag=tag_a, expect=expect_a) as first,
        open_store(b, snapshot=snapshot_b, tag=tag_b, expect=expect_b) as second,
        compare(first, second) as opened,
    ):
        answer = opened.ask(question, where=where, **parameters(params))
        if picture is None:
            give(answer.to_arrow(), form, output)
        else:
            from attnstore.show.question import draw_answer

            text = draw_answer(answer, picture, colour=is_terminal(output))
            hand_over(text.rstrip("\n") + "\n", output)
