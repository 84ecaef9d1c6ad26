"""This file reads CoNLL-U: gold words with their places in the raw text, dependencies and mentions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attnstore.text.entity import EntityCell, group_field, read_mentions
from attnstore.text.example import Example, Skipped, Word
from attnstore.text.files import Source
from attnstore.text.tree import first_fault

N_COLUMNS = 10
_ID = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)|\.(?P<empty>[0-9]+))?")
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class _Surface:
    """One piece of the written text: the words `start` to `end` (exclusive; several in a multi-word token)."""

    form: str
    start: int
    end: int
    line: int
    space_after: bool


@dataclass(slots=True)
class _Sentence:
    """What the lines of one sentence say, before it is checked as a whole."""

    words: list[Word]
    lines: list[int]
    surface: list[_Surface]
    entities: list[EntityCell]


def read(source: Source) -> Iterator[Example | Skipped]:
    """The sentences of one CoNLL-U file, in order, as examples named by `sent_id`.

    Words are the syntactic words (ids without range or point); empty nodes are passed over.
    `start_char`, `end_char` lie in `# text`, or in a text rebuilt from `SpaceAfter` where that is
    missing. The words of a multi-word token share its characters if their forms spell it (letter case
    aside), else they have no place. A word with `_` as both governor and relation is not annotated; several roots are
    accepted. `document` is the id of the last `# newdoc`, else the stem of the file. A sentence
    without words is skipped with a reason. Raises `BadInput` with file and line for a line without
    ten columns, ids out of order, governors that are no number, no word, their own or in a circle,
    forms that do not fit the text, and brackets of mentions that do not match.
    """
    document = source.stem
    field = 0
    for block in _blocks(source):
        comments, rows = _split(block)
        first = block[0][0]
        if "newdoc id" in comments:
            document = comments["newdoc id"]
        elif "newdoc" in comments:
            document = source.name(first)
        if "global.Entity" in comments:
            field = group_field(comments["global.Entity"])
        name = comments.get("sent_id") or source.name(first)
        sentence = _parse(source, rows)
        if not sentence.words:
            # A block of comments alone, such as a licence at the head of the file, is no sentence.
            if rows or "sent_id" in comments or "text" in comments:
                yield Skipped(name, "the sentence has no words", source.where(first))
            continue
        text = comments.get("text") or _rebuilt(sentence.surface)
        words = _placed(source, text, sentence)
        mentions = read_mentions(sentence.entities, words, field, source.error)
        yield Example(name, text, document=document, words=words, mentions=mentions, where=source.where(first))


def _blocks(source: Source) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in source.lines():
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _split(block: Sequence[tuple[int, str]]) -> tuple[dict[str, str], list[tuple[int, str]]]:
    comments: dict[str, str] = {}
    rows = []
    for number, line in block:
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        else:
            rows.append((number, line))
    return comments, rows


def _parse(source: Source, rows: Sequence[tuple[int, str]]) -> _Sentence:
    sentence = _Sentence([], [], [], [])
    covered = 0  # words up to here are spelled by a multi-word token
    for number, line in rows:
        cells = line.split("\t")
        if len(cells) != N_COLUMNS:
            raise source.error(number, f"{len(cells)} columns", f"{N_COLUMNS} columns, separated by tabs")
        form, misc = cells[1], _misc(cells[9])
        if not form.strip():
            raise source.error(number, "an empty form", "the word as written, in the second column")
        identity = _ID.fullmatch(cells[0])
        if identity is None:
            raise source.error(
                number, f"the id {cells[0]!r}", "a number, a range such as 1-2, or an empty node such as 8.1"
            )
        start = len(sentence.words)
        space_after = misc.get("SpaceAfter") != "No"
        if identity["empty"] is not None:
            end = start
        elif identity["last"] is not None:
            end = int(identity["last"])
            if int(identity["first"]) != start + 1 or end <= start or start < covered:
                raise source.error(
                    number, f"the range {cells[0]}", f"a range that begins with {start + 1} and overlaps no other"
                )
            covered = end
            sentence.surface.append(_Surface(form, start, end, number, space_after))
        else:
            end = start + 1
            if int(identity["first"]) != end:
                raise source.error(
                    number, f"the id {cells[0]}", f"the id {end}", "Is an empty line missing before a sentence?"
                )
            if start >= covered:
                sentence.surface.append(_Surface(form, start, end, number, space_after))
            sentence.words.append(_word(source, number, cells))
            sentence.lines.append(number)
        if "Entity" in misc:
            sentence.entities.append(EntityCell(start, end, number, misc["Entity"]))
    _check(source, sentence, covered)
    return sentence


def _misc(cell: str) -> dict[str, str]:
    entries = (entry.partition("=") for entry in cell.split("|"))
    return {key: value for key, _, value in entries}


def _word(source: Source, number: int, cells: Sequence[str]) -> Word:
    governor: int | None = None
    if not (cells[6] == cells[7] == "_"):
        if _NUMBER.fullmatch(cells[6]) is None:
            raise source.error(number, f"the governor {cells[6]!r}", "the number of a word, or 0 for the root")
        governor = int(cells[6]) - 1 if int(cells[6]) else None
    lemma, upos, xpos, deprel = (None if cells[column] == "_" else cells[column] for column in (2, 3, 4, 7))
    # An underscore as the lemma of an underscore is the lemma.
    lemma = "_" if cells[1] == cells[2] == "_" else lemma
    return Word(cells[1], lemma=lemma, upos=upos, xpos=xpos, governor=governor, deprel=deprel)


def _check(source: Source, sentence: _Sentence, covered: int) -> None:
    count = len(sentence.words)
    if covered > count:
        token = sentence.surface[-1]
        raise source.error(
            token.line, f"a range up to word {covered}", f"at most {count}, the last word of the sentence"
        )
    fault = first_fault([word.governor for word in sentence.words])
    if fault is not None:
        index, reason = fault
        governor = sentence.words[index].governor
        shown = 0 if governor is None else governor + 1
        raise source.error(
            sentence.lines[index], f"word {index + 1} has governor {shown}: {reason}", f"a tree over words 1 to {count}"
        )


def _rebuilt(surface: Sequence[_Surface]) -> str:
    return "".join(token.form + " " * token.space_after for token in surface).strip()


def _placed(source: Source, text: str, sentence: _Sentence) -> tuple[Word, ...]:
    """The words with their characters in `text`, found by walking the surface tokens over it."""
    words = list(sentence.words)
    position = 0
    for token in sentence.surface:
        while position < len(text) and text[position].isspace():
            position += 1
        end = _match(text, position, token.form)
        if end is None:
            raise source.error(
                token.line,
                f"the form {token.form!r} where the text goes on {text[position : position + 20]!r}",
                "forms that spell the comment '# text = …', spaces aside",
            )
        _place(words, token, text[position:end], position)
        position = end
    rest = text[position:].strip()
    if rest:
        raise source.error(
            sentence.surface[-1].line,
            f"after the last word the text goes on {rest[:20]!r}",
            "forms that spell the comment '# text = …', spaces aside",
        )
    return tuple(words)


def _match(text: str, position: int, form: str) -> int | None:
    """The end of `form` at `position` of `text`, or None. A space within a form fits any white space."""
    if text.startswith(form, position):
        return position + len(form)
    pattern = r"\s+".join(re.escape(part) for part in form.split())
    found = re.compile(pattern).match(text, position)
    return found.end() if found else None


def _place(words: list[Word], token: _Surface, written: str, position: int) -> None:
    if token.end == token.start + 1:
        words[token.start] = replace(words[token.start], start_char=position, end_char=position + len(written))
        return
    places = []
    start = 0
    for index in range(token.start, token.end):
        end = start + len(words[index].form)
        if written[start:end].casefold() != words[index].form.casefold():
            return
        places.append((index, start, end))
        start = end
    if start != len(written):
        return
    for index, start, end in places:
        words[index] = replace(words[index], start_char=position + start, end_char=position + end)
