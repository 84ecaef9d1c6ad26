"""This file is `attnstore questions`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from attnstore.cli.options import give, hand_over, output

if TYPE_CHECKING:
    from attnstore.catalogue.question import Question

EXAMPLES = """\b
Examples:
  attnstore questions
  attnstore questions relations/best
  attnstore questions relations/best --format json"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False)
@output
def command(name: str | None, form: str, output: Path | None) -> None:
    """List the questions that can be asked, or describe one.

    NAME is that of a question, or the path of a .sql file of your own. With another format than table, its
    description is one row: the help, the parameters, the columns that come back and the SQL.
    """
    import pyarrow as pa

    from attnstore.catalogue.catalogue import find, questions

    if name is None:
        rows = [
            {"question": question.name, "answers": question.help.partition("\n")[0], "source": question.source}
            for question in questions().values()
        ]
        give(pa.Table.from_pylist(rows), form, output)
    elif form == "table":
        hand_over(_described(find(name)), output)
    else:
        give(pa.Table.from_pylist([_row(find(name))]), form, output)


def _described(question: "Question") -> str:
    """The question as a page of text."""
    params = [f"  {param}" for param in question.params.values()] or ["  none"]
    columns = [f"  {column.name}" + (f" [{column.meaning}]" if column.meaning else "") for column in question.returns]
    asked = [f"Asked of two stores: attnstore compare {question.name} A B"] if question.compares else []
    parts = [question.name, "", question.help, "", *asked, f"Source: {question.source}", "", "Parameters:", *params]
    return "\n".join([*parts, "", "Returns:", *columns]) + "\n"


def _row(question: "Question") -> dict[str, object]:
    """The question as one row: parameters and columns as lists of what `attnstore questions NAME` prints."""
    return {
        "question": question.name,
        "answers": question.help,
        "source": question.source,
        "stores": 2 if question.compares else 1,
        "parameters": [str(param) for param in question.params.values()],
        "returns": [column.name for column in question.returns],
        "sql": question.sql,
    }
