"""This file reads coreference in CoNLL-U: the brackets of `Entity=` in MISC, as GUM and CorefUD write them."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnstore.errors import BadInput
from attnstore.text.example import Mention, Word
from attnstore.text.tree import mention_head, mention_type

# "(3-person-…" opens, "3)" closes, "(3-person-…)" does both; nothing separates one from the next.
_BRACKET = re.compile(r"\((?P<opened>[^()]+)(?P<closed>\))?|(?P<closes>[^()]+)\)")
_PIECE = re.compile(r"(?P<group>.+)\[(?P<number>\d+)/(?P<total>\d+)\]")
_GROUP_FIELDS = ("GRP", "eid")

Fail = Callable[[int, str, str], BadInput]
"""Makes the error from line, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class EntityCell:
    """One `Entity=` value: it stands on the words `start` to `end` (exclusive; empty on an empty node)."""

    start: int
    end: int
    line: int
    value: str


def group_field(order: str) -> int:
    """Which field of a bracket names the entity, by `# global.Entity = GRP-etype-…`; 0 if it does not say."""
    fields = order.split("-")
    return next((index for index, name in enumerate(fields) if name in _GROUP_FIELDS), 0)


def read_mentions(cells: Sequence[EntityCell], words: Sequence[Word], field: int, fail: Fail) -> tuple[Mention, ...]:
    """The mentions of one sentence, by first word, longer ones first.

    Mentions may nest and cross; of two open ones of one entity the later closes first. A mention in
    several pieces ("7[1/2]") gets its head word from all of them and the span of the piece that holds
    the head. A mention over empty nodes alone has no word and is none. `field` is `group_field`'s
    answer. Raises what `fail` makes for a bracket that does not parse or has no partner.
    """
    spans: list[tuple[str, list[int]]] = []
    opened: dict[str, list[tuple[int, int]]] = defaultdict(list)
    pieces: dict[tuple[str, int], dict[int, tuple[int, list[int]]]] = defaultdict(dict)

    def close(group: str, start: int, end: int, line: int) -> None:
        piece = _PIECE.fullmatch(group)
        if piece is None:
            spans.append((group, list(range(start, end))))
            return
        key = (piece["group"], int(piece["total"]))
        pieces[key][int(piece["number"])] = (line, list(range(start, end)))
        if len(pieces[key]) == key[1]:
            whole = sorted(index for _, part in pieces.pop(key).values() for index in part)
            spans.append((key[0], whole))

    for cell in cells:
        position = 0
        while position < len(cell.value):
            bracket = _BRACKET.match(cell.value, position)
            if bracket is None:
                raise fail(cell.line, f"Entity={cell.value}", "brackets such as (3-person or 3)")
            position = bracket.end()
            if bracket["closes"] is not None:
                group = _group(bracket["closes"], field)
                if not opened[group]:
                    raise fail(cell.line, f"the mention {group!r} closes but was not opened", "a bracket to open it")
                close(group, opened[group].pop()[0], cell.end, cell.line)
            elif bracket["closed"]:
                close(_group(bracket["opened"], field), cell.start, cell.end, cell.line)
            else:
                opened[_group(bracket["opened"], field)].append((cell.start, cell.line))
    for group, left in opened.items():
        if left:
            raise fail(
                left[0][1], f"the mention {group!r} opens but does not close in its sentence", "a bracket to close it"
            )
    for (group, total), parts in pieces.items():
        line = next(iter(parts.values()))[0]
        raise fail(line, f"the mention {group!r} has {len(parts)} pieces", f"{total} pieces in its sentence")
    found = [_mention(group, span, words) for group, span in spans if span]
    return tuple(sorted(found, key=lambda mention: (mention.start_word, -mention.end_word)))


def _group(bracket: str, field: int) -> str:
    parts = bracket.split("-")
    # A closing bracket may hold the entity alone, whatever its place among the fields of an opening one.
    return parts[field] if field < len(parts) else bracket


def _mention(group: str, span: list[int], words: Sequence[Word]) -> Mention:
    head = mention_head(words, span)
    start = end = head
    inside = set(span)
    while start - 1 in inside:
        start -= 1
    while end + 1 in inside:
        end += 1
    return Mention(group, start, end + 1, head, mention_type(words[head]))
