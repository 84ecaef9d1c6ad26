"""This file reads consecutive paragraphs of documents, from which `pack_pairs` lays out pairs."""

from collections.abc import Iterator

from attnstore.text import jsonl
from attnstore.text.example import Example, Skipped
from attnstore.text.files import Source

FIELDS = jsonl.FIELDS


def read(source: Source) -> Iterator[Example | Skipped]:
    """One example a paragraph, in order, each with its document.

    A .jsonl file has an object a paragraph, with `text` and `document` (or what `columns` names); any
    other file is plain text: blank lines separate paragraphs, line ends within one become spaces,
    and the file is the document. Raises `BadInput` with file and line as `jsonl.read` does, and for an
    object without a document.
    """
    if source.path.suffix.lower() in (".jsonl", ".json", ".ndjson"):
        yield from _objects(source)
    else:
        yield from _paragraphs(source)


def _objects(source: Source) -> Iterator[Example | Skipped]:
    for paragraph in jsonl.read(source):
        # Without it, the last paragraph of one article and the first of the next would become a pair.
        if isinstance(paragraph, Example) and paragraph.document is None:
            line = int(paragraph.where.rpartition(":")[2])
            raise source.error(
                line,
                "a paragraph without a document",
                "the document it is a part of",
                "Name the key: columns.document = …",
            )
        yield paragraph


def _paragraphs(source: Source) -> Iterator[Example]:
    if source.columns:
        raise source.error(1, "columns for a plain text file", "a .jsonl file", "Leave corpus.columns out")
    gathered: list[str] = []
    first = 0
    for line, content in source.lines():
        if content.strip():
            first = first if gathered else line
            gathered.append(content.strip())
        elif gathered:
            yield _paragraph(source, first, gathered)
            gathered = []
    if gathered:
        yield _paragraph(source, first, gathered)


def _paragraph(source: Source, line: int, content: list[str]) -> Example:
    return Example(source.name(line), " ".join(content), document=source.stem, where=source.where(line))
