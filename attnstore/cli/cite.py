"""This file is `attnstore cite`."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from attnstore.cli.options import (
    StorePlace,
    hand_over,
    parameters,
    params_argument,
    reading,
    store_argument,
    target,
    where_option,
)

EXAMPLES = """\b
Examples:
  attnstore cite gum.attn
  attnstore cite gum.attn --format bibtex -o gum.bib
  attnstore cite gum.attn relations/best min_count=50 --format json -o best.json
  attnstore cite pretrained.attn compare/cosine --with tuned.attn
  attnstore cite --check best.json gum.attn"""


@click.command(epilog=EXAMPLES)
@store_argument
@click.argument("question", required=False)
@params_argument
@where_option
@click.option("--with", "other", type=StorePlace(), metavar="STORE", help="Second store of a comparison.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "bibtex", "json"]),
    default="text",
    show_default=True,
    help="A paragraph, an entry for BibTeX, or all of it, enough to ask again.",
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="JSON",
    help="Ask again what this citation cites; exit status 1 unless the same bytes come back.",
)
@target
@reading
def command(
    store: Path | str,
    question: str | None,
    params: tuple[str, ...],
    where: str | None,
    other: Path | str | None,
    form: str,
    checked: Path | None,
    output: Path | None,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
) -> None:
    """Say what identifies a store or an answer in a publication, or check that a citation still holds.

    The question is asked with one thread, so that whoever checks the citation gets its bytes.
    """
    from attnstore.share.citation import bibtex, json_text, paragraph

    pins = {"snapshot": snapshot, "tag": tag, "expect": expect}
    if checked is not None:
        if question is not None or params or where is not None or output is not None:
            raise click.UsageError("--check takes the question from the citation: give the store alone.")
        _check(checked, store, other, pins)
        return
    if question is None and (where is not None or other is not None):
        raise click.UsageError("--where and --with are for a question.")
    citation = _cited(store, question, parameters(params), where, other, pins)
    write = {"text": paragraph, "bibtex": bibtex, "json": json_text}[form]
    hand_over(write(citation), output)


def _cited(
    store: Path | str,
    question: str | None,
    params: dict[str, object],
    where: str | None,
    other: Path | str | None,
    pins: Mapping[str, Any],
) -> dict[str, Any]:
    from attnstore.share.citation import of_store
    from attnstore.store.comparison import compare
    from attnstore.store.store import open as open_store

    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store, threads=1, **pins))
        if question is None:
            return of_store(opened)
        if other is None:
            return opened.ask(question, where=where, **params).cite()
        second = stack.enter_context(open_store(other, threads=1))
        return stack.enter_context(compare(opened, second)).ask(question, where=where, **params).cite()


def _check(path: Path, store: Path | str, other: Path | str | None, pins: Mapping[str, Any]) -> None:
    from attnstore.share.recheck import check, read_citation

    citation = read_citation(path)
    for note in check(citation, store, other, **pins):
        click.echo(f"Note: {note}", err=True)
    answer = f", and {citation['rows']} rows with the same bytes" if "answer_sha256" in citation else ""
    click.echo(f"{store}: the store that is cited{answer}", err=True)
