"""This file reads what a header declares: parameters, tables that are needed and columns that come back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final, cast

from attnstore.catalogue.header import Header, Token, tokens
from attnstore.catalogue.values import DECLARABLE, Type, convert, written
from attnstore.errors import BadQuestion


class Missing(Enum):
    """The default of a parameter that has none, since null is a default of its own."""

    REQUIRED = "required"


REQUIRED: Final = Missing.REQUIRED

NEEDS = (
    "words",
    "relations",
    "tags",
    "mentions",
    "links",
    "parts",
    "labels",
    "documents",
    "patterns",
    "images",
    "grid",
    "triggers",
    "value_norms",
    "mixing_facts",
    "identity_facts",
    "value_grams",
    "output_norms",
    "head_weights",
    "predictions",
    "ablated_heads",
    "ablated_zero",
    "ablated_uniform",
    "ablated_mean",
    "ablated_layers",
    "pruned_heads",
    "searched_heads",
    "gradient_facts",
    "importance_facts",
    "attribution_facts",
    "logit_contributions",
)
"""What a store may lack. Annotations: words, dependency relations, parts of speech, mentions of entities, links between
spans, two parts an example, labels, documents, patterns given to maps, images, tokens on a grid, triggers planted in
texts. Evidence from the model: the tables of that name."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a question; `default` is REQUIRED where the caller must give a value.

    `least` is the smallest value that a number may have, None where there is none.
    """

    name: str
    type: Type
    default: object = REQUIRED
    choices: tuple[str, ...] = ()
    least: float | None = None

    def __str__(self) -> str:
        kind = f"{self.type}: {', '.join(self.choices)}" if self.choices else self.type
        kind += "" if self.least is None else f", {self.allowed}"
        return (
            f"{self.name} ({kind})" if self.default is REQUIRED else f"{self.name} = {written(self.default)} ({kind})"
        )

    @property
    def allowed(self) -> str:
        """The values that it may have, in words; empty where all of the type are."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return "" if self.least is None else f"{written(self.least)} or more"

    def allows(self, value: object) -> bool:
        """Whether a value of the parameter's type is one of its choices, and not too small."""
        if self.choices:
            return written(value) in self.choices
        return self.least is None or not isinstance(value, int | float) or value >= self.least


@dataclass(frozen=True, slots=True)
class Read:
    """A table that a question needs; `parameters` from a fact's parameter to the question's, `literals` to a value."""

    table: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    literals: Mapping[str, object] = field(default_factory=dict)

    def wanted(self, values: Mapping[str, object]) -> dict[str, object]:
        """The parameters that the fact must have been computed with, given the question's bound values."""
        return {**self.literals, **{ours: values[theirs] for ours, theirs in self.parameters.items()}}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer; the note in brackets, or empty where the name says it all."""

    name: str
    meaning: str = ""


def parse_params(header: Header, path: Path) -> dict[str, Param]:
    """The parameters of `params:` by name, in order: `name type [in (choice, ...) | from least] [= default]`."""
    params: dict[str, Param] = {}
    for item in items(header, "params", path):
        reader = Reader(item, path)
        name_token = reader.word("a parameter's name")
        type_token = reader.word("a type")
        kind = DECLARABLE.get(type_token.text)
        if kind is None:
            raise reader.error(type_token, f"one of the types {', '.join(DECLARABLE)}")
        choices: list[str] = []
        least: float | None = None
        if reader.takes_word("in"):
            reader.mark("(")
            while not choices or reader.takes_mark(","):
                choices.append(written(_value(reader.value(), kind, path)))
            reader.mark(")")
        elif kind in ("integer", "real") and reader.takes_word("from"):
            least = cast("float", _value(reader.value(), kind, path))
        param = Param(name_token.text, kind, REQUIRED, tuple(choices), least)
        if reader.takes_mark("="):
            token = reader.value()
            default = None if token.kind == "word" and token.text == "null" else _value(token, kind, path)
            if default is not None and not param.allows(default):
                raise reader.error(token, param.allowed)
            param = replace(param, default=default)
        reader.end()
        if param.name in params or not param.name.isidentifier():
            raise reader.error(name_token, "a new parameter's name")
        params[param.name] = param
    return params


def parse_reads(header: Header, path: Path) -> tuple[Read, ...]:
    """The tables of `reads:`: `table` or `fact(parameter=$question_parameter, other=literal)`."""
    reads = []
    for item in items(header, "reads", path):
        reader = Reader(item, path)
        table = reader.word("a table's name").text
        parameters: dict[str, str] = {}
        literals: dict[str, object] = {}
        if reader.takes_mark("("):
            while not (parameters or literals) or reader.takes_mark(","):
                fact_token = reader.word("a parameter of the fact")
                reader.mark("=")
                token = reader.value()
                if fact_token.text in parameters or fact_token.text in literals:
                    raise reader.error(fact_token, "each parameter of a fact once")
                if token.kind == "word" and token.text.startswith("$"):
                    parameters[fact_token.text] = token.text[1:]
                else:
                    literals[fact_token.text] = token.text if token.kind == "quoted" else convert(token.text, "any")
            reader.mark(")")
        reader.end()
        reads.append(Read(table, parameters, literals))
    return tuple(reads)


@dataclass(frozen=True, slots=True)
class Need:
    """An annotation without which a question has nothing to answer, where its parameter has one of the values."""

    annotation: str
    parameter: str | None = None
    choices: tuple[str, ...] = ()

    def holds(self, values: Mapping[str, object]) -> bool:
        """Whether the question, with these parameters, needs it."""
        return self.parameter is None or written(values.get(self.parameter)) in self.choices


def parse_needs(header: Header, path: Path) -> tuple[Need, ...]:
    """The annotations of `needs:`, each one of NEEDS: `annotation [if parameter=value]`, or `in (value, …)`."""
    found = []
    for item in items(header, "needs", path):
        reader = Reader(item, path)
        token = reader.word("an annotation")
        if token.text not in NEEDS:
            raise reader.error(token, f"one of {', '.join(NEEDS)}")
        need = Need(token.text)
        if reader.takes_word("if"):
            parameter = reader.word("a parameter").text
            chosen: list[str] = []
            if reader.takes_word("in"):
                reader.mark("(")
                while not chosen or reader.takes_mark(","):
                    chosen.append(reader.value().text)
                reader.mark(")")
            else:
                reader.mark("=")
                chosen.append(reader.value().text)
            need = Need(token.text, parameter, tuple(chosen))
        reader.end()
        found.append(need)
    return tuple(found)


def parse_returns(header: Header, path: Path) -> tuple[Column, ...]:
    """The columns of `returns:`: `name` or `name [unit or meaning]`."""
    columns: list[Column] = []
    for item in items(header, "returns", path):
        reader = Reader(item, path)
        name = reader.word("a column's name")
        if name.text in [column.name for column in columns]:
            raise reader.error(name, "each column once")
        columns.append(Column(name.text, reader.note()))
        reader.end()
    return tuple(columns)


class Reader:
    """Walks over the tokens of one item and says what it expected where it stumbles."""

    def __init__(self, item: list[Token], path: Path) -> None:
        self.item, self.path, self.at = item, path, 0

    def next(self) -> Token:
        token = self.item[self.at]
        self.at += token.kind != "end"
        return token

    def word(self, expected: str) -> Token:
        token = self.next()
        if token.kind != "word":
            raise self.error(token, expected)
        return token

    def value(self) -> Token:
        token = self.next()
        if token.kind not in ("word", "quoted"):
            raise self.error(token, "a value")
        return token

    def mark(self, mark: str) -> None:
        token = self.next()
        if not token.is_mark(mark):
            raise self.error(token, f"`{mark}`")

    def takes_mark(self, mark: str) -> bool:
        found = self.item[self.at].is_mark(mark)
        self.at += found
        return found

    def takes_word(self, word: str) -> bool:
        found = self.item[self.at].kind == "word" and self.item[self.at].text == word
        self.at += found
        return found

    def note(self) -> str:
        token = self.item[self.at]
        self.at += token.kind == "note"
        return token.text if token.kind == "note" else ""

    def end(self) -> None:
        token = self.next()
        if token.kind != "end":
            raise self.error(token, "a comma or the end")

    def error(self, token: Token, expected: str) -> BadQuestion:
        found = token.text if token.kind == "end" else repr(token.text)
        return BadQuestion(f"reading {self.path}, line {token.line}", f"{found} in the header", expected)


def items(header: Header, key: str, path: Path) -> Iterator[list[Token]]:
    """The tokens of each item between the commas of a key that lie outside parentheses, closed by an "end"."""
    item: list[Token] = []
    depth = 0
    for token in tokens(header.keys.get(key, ()), path):
        depth += token.is_mark("(") - token.is_mark(")")
        if token.kind == "end" or (depth == 0 and token.is_mark(",")):
            if item:
                yield [*item, Token("end", "the end of the item", item[-1].line)]
            elif token.kind != "end":
                raise BadQuestion(
                    f"reading {path}, line {token.line}", f"nothing before a comma in `{key}:`", "an item"
                )
            item = []
        else:
            item.append(token)


def _value(token: Token, kind: Type, path: Path) -> object:
    """The token as a value of a parameter's type; a quoted one is always text."""
    try:
        if token.kind == "quoted" and kind != "text":
            raise ValueError(kind)
        return convert(token.text, kind)
    except ValueError as error:
        raise BadQuestion(f"reading {path}, line {token.line}", f"the value {token.text!r}", str(error)) from error
