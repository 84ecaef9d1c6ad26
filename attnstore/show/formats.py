"""This file writes a table in the formats that other programs read."""

import io
import json
import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.errors import BadInput
from attnstore.show.cell import written
from attnstore.show.terminal import is_number, table_text
from attnstore.store.answer_text import as_json, csv_text, each_row

TEXT_FORMATS = ("table", "csv", "json", "markdown")
BINARY_FORMATS = ("parquet", "arrow")
FORMATS = TEXT_FORMATS + BINARY_FORMATS
STEERING = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
LONE_UNDERSCORE = re.compile("(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: "\\" + mark for mark in "\\`*[]|~"})


def render(table: pa.Table, format: str, *, max_rows: int = 50) -> str | bytes:  # noqa: A002  # the option's name
    """The table as one of FORMATS: text for table, csv, json, markdown, bytes for parquet and arrow (IPC stream).

    Text ends with a newline. Only "table" leaves rows out, after `max_rows`, and says so. Raises BadInput for
    another format, and where a format would lose a column because two share a name.
    """
    if format == "table":
        return table_text(table, max_rows=max_rows) + "\n"
    if format == "csv":
        return csv_text(table)
    if format == "json":
        return json_text(table)
    if format == "markdown":
        return markdown_text(table)
    if format == "parquet":
        return parquet_bytes(table)
    if format == "arrow":
        return arrow_bytes(table)
    raise BadInput("writing the answer", f"the format {format!r}", f"one of {', '.join(FORMATS)}")


def json_text(table: pa.Table) -> str:
    """An array of row objects, one a line; NaN and the infinities become null, since JSON has no word for them."""
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise BadInput(
            "writing the answer as json",
            f"the column {twice[0]!r} occurs twice",
            "each name once",
            "Give one of them another name with `as`",
        )
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    rows = [
        "{" + ", ".join(f"{name}: {as_json(value)}" for name, value in zip(names, row, strict=True)) + "}"
        for row in each_row(table)
    ]
    # Characters that steer a terminal may stand raw in JSON; escaped they mean the same.
    text = "[" + ",".join("\n  " + row for row in rows) + ("\n" if rows else "") + "]\n"
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def markdown_text(table: pa.Table) -> str:
    """A pipe table with every row, numbers as on a terminal, and all marks of Markdown escaped."""
    if table.num_columns == 0:
        return "(no columns)\n"
    edge = ["---:" if is_number(column.type) else "---" for column in table.columns]
    lines = [[_markdown(written(name)) for name in table.column_names], edge]
    lines += [[_markdown(written(value)) for value in row] for row in each_row(table)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parquet_bytes(table: pa.Table) -> bytes:
    """A Parquet file, with checksums on its pages and the table's metadata."""
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


def arrow_bytes(table: pa.Table) -> bytes:
    """An Arrow IPC stream."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _markdown(text: str) -> str:
    # An underscore inside a name is not emphasis, and stays readable.
    return LONE_UNDERSCORE.sub(r"\\_", text.translate(MARKDOWN))
