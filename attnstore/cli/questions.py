"""This file is `attnstore questions`."""

from pathlib import Path

import click

from attnstore.cli.options import give, output


@click.command()
@click.argument("name", required=False)
@output
def command(name: str | None, form: str, output: Path | None) -> None:
    """List the questions that can be asked, or describe one.

    \b
    attnstore questions
    attnstore questions relations/best
    """
    import pyarrow as pa

    from attnstore.catalogue.catalogue import find, questions

    if name is None:
        rows = [
            {"question": question.name, "answers": question.help.partition("\n")[0], "source": question.source}
            for question in questions().values()
        ]
        give(pa.Table.from_pylist(rows), form, output)
        return
    question = find(name)
    click.echo(f"{question.name}\n\n{question.help}\n\nSource: {question.source}\n\nParameters:")
    for param in question.params.values():
        click.echo(f"  {param}")
    click.echo("\nReturns:")
    for column in question.returns:
        click.echo(f"  {column.name}" + (f" [{column.meaning}]" if column.meaning else ""))
