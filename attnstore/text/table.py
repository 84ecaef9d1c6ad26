"""This file reads tables with named columns: .csv, .tsv and .parquet."""

import csv
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.errors import BadInput
from attnstore.text.example import Example, Skipped
from attnstore.text.fields import SCALARS, TRIGGER, picks, to_example
from attnstore.text.files import Source, require_file

FIELDS = (*SCALARS, TRIGGER)
"""What `columns` may rename; other columns are left unread."""
_BATCH_ROWS = 1024


class _Rows(Protocol):
    """A reader of the csv module, which counts the lines it has taken."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


Records = Iterator[tuple[int, Mapping[str, object]]]


def read(source: Source) -> Iterator[Example | Skipped]:
    """The rows of one table in order; the ending of the file name says how it is written.

    In .csv a quoted field may hold commas, quotes ("") and line ends; in .tsv a quote is an ordinary
    character. The line of a .parquet row is the number of the row, from 1. A row whose text is empty or
    null is skipped with a reason. Raises `BadInput` with file and line for a missing column (naming the
    nearest and those there are), a row of another width, and a file that does not parse.
    """
    chosen: dict[str, str] | None = None
    for line, record in records(source):
        # Every record of a table has the same keys.
        chosen = chosen or picks(source, 1, record, FIELDS)
        yield to_example(source, line, record, chosen)


def records(source: Source) -> Records:
    """The rows of one table with their lines, columns by name. Raises `BadInput` for an ending that is no table's."""
    reader = FORMATS.get(source.path.suffix.lower())
    if reader is None:
        raise BadInput(
            f"reading {source.path}", f"the ending {source.path.suffix!r}", ", ".join(FORMATS), "Rename the file"
        )
    return reader(source)


def _csv(source: Source) -> Records:
    return _delimited(source, csv.reader((line + "\n" for _, line in source.lines()), strict=True))


def _tsv(source: Source) -> Records:
    # GLUE and most .tsv corpora hold lone quotes: read with quoting they would swallow whole lines.
    lines = (line for _, line in source.lines())
    return _delimited(source, csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def _delimited(source: Source, rows: _Rows) -> Records:
    header: list[str] | None = None
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise source.error(line, str(error), "a row of the table") from None
        if row is None:
            return
        if not row:
            continue
        if header is None:
            header = row
            if len(set(header)) < len(header):
                raise source.error(line, f"the columns {', '.join(map(repr, header))}", "columns with different names")
        elif len(row) != len(header):
            raise source.error(line, f"{len(row)} fields", f"{len(header)} fields, one for each column of line 1")
        else:
            yield line, dict(zip(header, row, strict=True))


def _parquet(source: Source) -> Records:
    require_file(source.path)
    row = 0
    try:
        with pq.ParquetFile(source.path) as table:
            names = [name for name in table.schema_arrow.names if name in _wanted(source)]
            # All names go into the message about a missing column, so the first record must know them.
            others = dict.fromkeys(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=names or None):
                for record in batch.to_pylist():
                    row += 1
                    yield row, {**others, **record}
    except (pa.ArrowException, OSError) as error:
        raise source.error(row + 1, str(error).splitlines()[0], "a Parquet file") from None


def _wanted(source: Source) -> set[str]:
    return {*FIELDS, "id", *source.columns.values()}


FORMATS: Mapping[str, Callable[[Source], Records]] = {".csv": _csv, ".tsv": _tsv, ".parquet": _parquet}
