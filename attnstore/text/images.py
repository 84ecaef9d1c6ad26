"""This file reads images: each file is an example, or each row of a table that names files beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from attnstore.text import table
from attnstore.text.example import Example, Skipped
from attnstore.text.fields import nearest, picks, scalar, to_example
from attnstore.text.files import Source

FIELDS = ("image", "name", "label", "split", "document", "pair_id", "condition")
"""What `columns` may rename; other columns are left unread."""

_TABLES = (".csv", ".tsv")
_COLUMNS = ("image", "file")
"""What the column of files may be called where `columns` does not say."""


def read(source: Source) -> Iterator[Example | Skipped]:
    """One image, named by its file, or the rows of one table (.csv, .tsv) in order.

    The column `image` or `file` of a table is a path relative to the table; an example is named by it, without its
    ending, unless there is a column `name` or `id`. The text of an example is the path. A row without a file is skipped
    with a reason. Raises `BadInput` with file and line for a file that is not there, and whatever `table.read` says.
    Whether a file is an image shows when a model reads its pixels.
    """
    if source.path.suffix.lower() not in _TABLES:
        yield Example(source.stem, source.path.name, image=source.path, where=source.path.name)
        return
    for line, record in table.records(source):
        yield _example(source, line, record)


def _example(source: Source, line: int, record: Mapping[str, object]) -> Example | Skipped:
    key = source.columns.get("image") or next((name for name in _COLUMNS if name in record), _COLUMNS[0])
    if key not in record:
        raise source.error(
            line,
            f"there is no column {key!r} of image files, only {', '.join(map(repr, sorted(record)))}",
            " or ".join(map(repr, _COLUMNS)),
            nearest(key, record) or "Name the one that holds them: columns.image = …",
        )
    file = scalar(source, line, key, record[key]) or ""
    # A store says nothing of the folders of whoever made it.
    shown = Path(file).name if Path(file).is_absolute() else Path(file).as_posix()
    named = {**record, "text": shown if file.strip() else file}
    chosen = picks(source, line, named, ("text", *FIELDS))
    example = to_example(source, line, named, chosen)
    if isinstance(example, Skipped):
        return replace(example, reason="it names no file")
    path = source.path.parent / file
    if not path.is_file():
        raise source.error(line, f"no file {path}", "an image, as seen from the table's folder")
    if example.name == source.name(line):
        example = replace(example, name=str(PurePosixPath(shown).with_suffix("")))
    return replace(example, image=path)
