"""This file reads `paint:`, which says what pictures show an answer and which of its columns they take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnstore.catalogue.declared import Reader, items
from attnstore.catalogue.header import Header, Line
from attnstore.errors import BadQuestion, NotFound


@dataclass(frozen=True, slots=True)
class Role:
    """What a column does in a picture; `column` is the one that is taken where the header names none."""

    name: str
    column: str = ""
    needed: bool = True


def _may(*names: str) -> tuple[Role, ...]:
    return tuple(Role(name, needed=False) for name in names)


# The roles of each kind of picture, in the order of its arguments.
KINDS: Mapping[str, tuple[Role, ...]] = {
    "grid": (Role("value"), Role("layer", "layer"), Role("head", "head"), *_may("by")),
    "layers": (Role("value"), Role("layer", "layer"), Role("head", "head", False), *_may("by", "line")),
    "scatter": (Role("x"), Role("y"), *_may("label", "by"), Role("layer", "layer", False), Role("head", "head", False)),
    "bars": (Role("value"), *_may("baseline"), Role("by"), *_may("label", "low", "high")),
    "stack": (Role("value"), Role("of"), Role("by")),
    "matrix": (Role("value"), Role("row"), Role("column"), *_may("by", "row_name", "column_name")),
    "profile": (Role("value"), Role("at"), Role("by", "layer", False), Role("head", "head", False)),
    "evidence": (
        Role("sentence", "sentence"),
        Role("word", "word"),
        Role("predicted", "predicted_word"),
        Role("gold", "gold_word", False),
        Role("start", "first_word", False),
        Role("weight", "weight", False),
        Role("correct", "correct", False),
        Role("example", "example", False),
    ),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its kind, the answer's column for each role, and the name by which a caller chooses it."""

    kind: str
    columns: Mapping[str, str]
    name: str

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{role}={column}' for role, column in self.columns.items())})"


def parse_paint(header: Header, path: Path, columns: Sequence[str]) -> tuple[Picture, ...]:
    """The pictures of `paint:` in order: `kind(column, role=column)`, or a column alone for a grid of it.

    A second picture of a kind is named kind-2. BadQuestion with file and line for an unknown kind or role, one that
    is given twice or lacks its column, and a column that is not among `columns`.
    """
    pictures: list[Picture] = []
    for item in items(header, "paint", path):
        reader = Reader(item, path)
        first = reader.word("a kind of picture, or a column")
        given: dict[str, str] = {}
        kind = first.text
        if reader.takes_mark("("):
            if kind not in KINDS:
                raise reader.error(first, f"a kind of picture: {', '.join(KINDS)}")
            roles = [role.name for role in KINDS[kind]]
            while not given or reader.takes_mark(","):
                token = reader.word("a column")
                is_named = reader.takes_mark("=")
                role = token.text if is_named else next((name for name in roles if name not in given), "")
                if role not in roles or role in given:
                    raise reader.error(token, f"each of {', '.join(roles)} at most once")
                given[role] = reader.word("a column").text if is_named else token.text
            reader.mark(")")
        elif kind in columns or kind not in KINDS:
            kind, given = "grid", {"value": kind}
        reader.end()
        line = f"reading {path}, line {first.line}"
        same = sum(picture.kind == kind for picture in pictures)
        pictures.append(Picture(kind, _filled(kind, given, columns, line), f"{kind}-{same + 1}" if same else kind))
    if "paint" in header.keys and not pictures:
        raise BadQuestion(f"reading {path}, line {header.line('paint')}", "`paint:` is empty", "a picture, or no key")
    return tuple(pictures)


def choose(pictures: Sequence[Picture], wanted: str, columns: Sequence[str]) -> Picture:
    """The picture of that name, or the one that `wanted` describes in the words of `paint:`; NotFound for neither."""
    for picture in pictures:
        if picture.name == wanted:
            return picture
    if "(" in wanted or wanted in KINDS:
        header = Header("", {"paint": (Line(1, wanted),)}, 1)
        return parse_paint(header, Path("the picture that is asked for"), columns)[0]
    names = [picture.name for picture in pictures]
    raise NotFound(
        f"choosing the picture {wanted!r}",
        f"the question paints {', '.join(names) or 'nothing'}",
        "one of them, or a description such as bars(accuracy, by=relation)",
    )


def _filled(kind: str, given: Mapping[str, str], columns: Sequence[str], doing: str) -> dict[str, str]:
    """The columns of all roles, with those that the header left to the usual names."""
    found: dict[str, str] = {}
    for role in KINDS[kind]:
        column = given.get(role.name) or role.column
        if not column and role.needed:
            raise BadQuestion(doing, f"a picture of kind {kind} without {role.name}", "a column for it")
        if column and (column in columns or role.needed or role.name in given):
            found[role.name] = column
    if absent := sorted(set(found.values()) - set(columns)):
        raise BadQuestion(
            doing,
            f"the answer has no column {', '.join(absent)}",
            f"for {kind}, columns of the answer: {', '.join(columns)}",
        )
    return found
