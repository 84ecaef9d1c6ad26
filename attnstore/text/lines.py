"""This file reads plain text: one text a line, or two texts with a tab between them."""

from collections.abc import Iterator

from attnstore.text.example import Example, Skipped
from attnstore.text.files import Source

SEPARATOR = "\t"


def read(source: Source) -> Iterator[Example | Skipped]:
    """The lines of one file in order, white space at both ends cut off; blank lines are passed over.

    The file is the document. A line with a tab whose one side is empty is skipped with a reason.
    Raises `BadInput` with file and line for more than one tab.
    """
    for line, content in source.lines():
        if not content.strip():
            continue
        texts = [text.strip() for text in content.split(SEPARATOR)]
        name, where = source.name(line), source.where(line)
        if len(texts) > 2:
            raise source.error(
                line,
                f"{len(texts) - 1} tabs",
                "one text, or two texts with one tab between them",
                "For more columns use kind = 'table' with a .tsv file",
            )
        if not all(texts):
            yield Skipped(
                name, "the text before the tab is empty" if texts[1] else "the text after the tab is empty", where
            )
        else:
            second = texts[1] if len(texts) == 2 else None
            yield Example(name, texts[0], second, document=source.stem, where=where)
