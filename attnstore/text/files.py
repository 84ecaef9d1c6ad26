"""This file reads one file of a corpus line by line, and makes the names and errors that say where a line is."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from attnstore.errors import BadInput
from attnstore.text.vocabulary import Vocabulary

STDIN = "-"
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a corpus. `stem` begins the names made for its examples and is unique in the corpus.

    `vocabulary` is the model's, for a corpus that gives its own tokens.
    """

    path: Path
    stem: str
    columns: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None

    def name(self, line: int) -> str:
        """The name of an example to which the corpus gives none: "<file stem>:<line>"."""
        return f"{self.stem}:{line}"

    def where(self, line: int) -> str:
        """The place as it is stored, without folders: "<file name>:<line>"."""
        return f"{self.path.name if self.path.name != STDIN else 'stdin'}:{line}"

    def error(self, line: int, found: str, expected: str = "", remedy: str = "") -> BadInput:
        """A `BadInput` that names the file and the line (from 1; for a Parquet file the row)."""
        return BadInput(f"reading {self.path}, line {line}", found, expected, remedy)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Line numbers from 1 with the decoded lines, without their ends (LF or CRLF) and a leading BOM.

        Only LF ends a line: characters such as U+2028 or a form feed belong to the text. Raises
        `BadInput` for a file that cannot be opened and, with line and byte, for one that is not UTF-8.
        """
        require_file(self.path)
        with nullcontext(sys.stdin.buffer) if str(self.path) == STDIN else self.path.open("rb") as stream:
            for number, raw in enumerate(stream, start=1):
                if number == 1:
                    raw = raw.removeprefix(_BOM)
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    hint = "The file looks like UTF-16. " if number == 1 and raw.startswith(_UTF16) else ""
                    raise self.error(
                        number,
                        f"byte {error.start + 1} of the line (0x{raw[error.start]:02x}) is not UTF-8",
                        "text in UTF-8",
                        hint + "Convert the file to UTF-8",
                    ) from None
                yield number, line.removesuffix("\n").removesuffix("\r")


def require_file(path: Path) -> None:
    """Raises `BadInput` unless `path` is standard input ("-") or a file that can be opened."""
    if str(path) == STDIN:
        return
    try:
        path.open("rb").close()
    except FileNotFoundError:
        found = "no such file"
    except IsADirectoryError:
        found = "it is a folder"
    except OSError as error:
        found = error.strerror or type(error).__name__
    else:
        return
    raise BadInput(f"reading {path}", found, "a file of the corpus", "Check corpus.path")
