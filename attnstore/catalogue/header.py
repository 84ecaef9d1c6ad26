"""This file splits the comment header of a .sql file into its help text, its keys and their tokens."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnstore.errors import BadQuestion

KEYS = ("reads", "needs", "params", "returns", "source", "paint")
MARKS = "(),="


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a header, without the comment marker and the key; `number` is one-based."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a 'quoted text', a [note] or one of the marks ( ) , = together with its one-based line."""

    kind: Literal["word", "quoted", "note", "mark", "end"]
    text: str
    line: int

    def is_mark(self, mark: str) -> bool:
        """Whether this is the mark given, and not the same character in quotes."""
        return self.kind == "mark" and self.text == mark


@dataclass(frozen=True, slots=True)
class Header:
    """`help` in paragraphs; `keys` from a key to its lines (continuations follow); `n_lines` of the file it fills."""

    help: str
    keys: dict[str, tuple[Line, ...]]
    n_lines: int

    def text(self, key: str) -> str:
        """What follows the key, its lines joined by spaces; empty when the key is absent."""
        return " ".join(line.text for line in self.keys.get(key, ()) if line.text)

    def line(self, key: str) -> int:
        """The one-based line of the key, or line 1 when it is absent."""
        return self.keys[key][0].number if key in self.keys else 1


def split(text: str, path: Path) -> Header:
    """The header at the top of a .sql file; raises BadQuestion for a misspelt or repeated key.

    The first comment lines are help. `-- key:` begins a key, and a line indented by two spaces or more
    continues it. An empty comment line after the keys ends the header: what follows is the author's own note.
    """
    help_lines: list[str] = []
    keys: dict[str, list[Line]] = {}
    current: str | None = None
    lines = text.split("\n")
    n_lines = 0
    for number, raw in enumerate(lines, start=1):
        stripped = raw.strip()
        if not stripped.startswith("--"):
            if stripped or help_lines or keys:
                break
            n_lines = number
            continue
        n_lines = number
        body = stripped[2:]
        content = body.strip()
        key = _key(content, after_help=current is not None, number=number, path=path)
        if key is not None:
            if key in keys:
                raise BadQuestion(_at(path, number), f"the key `{key}:` stands here a second time", "each key once")
            keys[key] = [Line(number, content.partition(":")[2].strip())]
            current = key
        elif current is None:
            help_lines.append(content)
        elif not content:
            break
        elif body.startswith("  "):
            keys[current].append(Line(number, content))
        else:
            raise BadQuestion(
                _at(path, number),
                f"{content!r} is neither a key nor the continuation of one",
                f"one of {', '.join(KEYS)}",
                f"Indent a continuation of `{current}:` by three spaces, or put an empty `--` line before a note",
            )
    return Header(_paragraphs(help_lines), {key: tuple(value) for key, value in keys.items()}, n_lines)


def tokens(lines: tuple[Line, ...], path: Path) -> Iterator[Token]:
    """The tokens of a key's lines, closed by one of kind "end"; raises BadQuestion for an open quote or bracket."""
    for line in lines:
        text, at = line.text, 0
        while at < len(text):
            letter = text[at]
            if letter.isspace():
                at += 1
            elif letter in MARKS:
                yield Token("mark", letter, line.number)
                at += 1
            elif letter == "'":
                content, at = _quoted(line, at, path)
                yield Token("quoted", content, line.number)
            elif letter == "[":
                end = text.find("]", at)
                if end < 0:
                    raise BadQuestion(_at(path, line.number), "a bracket is opened and not closed", "[unit]")
                yield Token("note", text[at + 1 : end].strip(), line.number)
                at = end + 1
            else:
                start = at
                while at < len(text) and not text[at].isspace() and text[at] not in MARKS + "'[":
                    at += 1
                yield Token("word", text[start:at], line.number)
    yield Token("end", "the end of the line", lines[-1].number if lines else 1)


def _quoted(line: Line, start: int, path: Path) -> tuple[str, int]:
    """The text of the quote that begins at `start`, where two quotes stand for one, and the place after it."""
    content, at = "", start + 1
    while at < len(line.text):
        if line.text[at] != "'":
            content += line.text[at]
            at += 1
        elif line.text[at + 1 : at + 2] == "'":
            content += "'"
            at += 2
        else:
            return content, at + 1
    raise BadQuestion(_at(path, line.number), "a quote is opened and not closed", "'text'")


def _key(content: str, *, after_help: bool, number: int, path: Path) -> str | None:
    """The key that a comment line begins with, or None; a near miss is an error, so that no key gets lost in help."""
    word, colon, _ = content.partition(":")
    if not colon or not word.isidentifier():
        return None
    if word in KEYS:
        return word
    near = difflib.get_close_matches(word.lower(), KEYS, n=1, cutoff=0.75)
    if near or after_help:
        remedy = f"Did you mean `{near[0]}:`?" if near else ""
        raise BadQuestion(_at(path, number), f"the key `{word}:` is unknown", f"one of {', '.join(KEYS)}", remedy)
    return None


def _paragraphs(lines: list[str]) -> str:
    """Lines joined by spaces; an empty line begins a new paragraph."""
    return "\n\n".join(part.strip() for part in " ".join(line or "\n" for line in lines).split("\n") if part.strip())


def _at(path: Path, line: int) -> str:
    return f"reading {path}, line {line}"
