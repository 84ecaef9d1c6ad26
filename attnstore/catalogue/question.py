"""This file reads one question: a .sql file whose comment header says what it needs and returns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from attnstore.catalogue.declared import (
    REQUIRED,
    Column,
    Need,
    Param,
    Read,
    parse_needs,
    parse_params,
    parse_reads,
    parse_returns,
)
from attnstore.catalogue.header import Header, split
from attnstore.catalogue.paint import Picture, parse_paint
from attnstore.errors import BadQuestion, NotFound

# What a question is made of is named from here; `declared` holds how it is written.
__all__ = ["REQUIRED", "Column", "Param", "Picture", "Question", "Read", "load", "statement_parameters"]

NEEDED = ("reads", "returns", "source")

COMPARED = ("pairs", "unpaired", "map_differences")
"""Tables about two stores; those of either one have its name before them: a.words, b.words."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `sql` is the statement as written, without the header; `sql_params` are the parameters in it.

    The others of `params` occur in `reads` only; DuckDB refuses a value that the statement does not use.
    `pictures` are those of `paint:`, the default first.
    """

    name: str
    help: str
    sql: str
    reads: tuple[Read, ...]
    params: Mapping[str, Param]
    returns: tuple[Column, ...]
    source: str
    path: Path
    pictures: tuple[Picture, ...] = ()
    sql_params: frozenset[str] = frozenset()
    needs: tuple[Need, ...] = ()

    @property
    def paint(self) -> str | None:
        """The column that the first picture of layers x heads shows; None without such a picture."""
        return next((picture.columns["value"] for picture in self.pictures if picture.kind == "grid"), None)

    @property
    def compares(self) -> bool:
        """Whether it is asked of two stores."""
        return any(read.table in COMPARED or read.table.startswith(("a.", "b.")) for read in self.reads)

    def of(self, store: str) -> "Question":
        """What a question of two stores reads of `a` or of `b`, by the names within that store."""
        prefix = f"{store}."
        own = (read for read in self.reads if read.table.startswith(prefix))
        return replace(self, reads=tuple(replace(read, table=read.table.removeprefix(prefix)) for read in own))


def load(path: Path, name: str, *, own: bool = False) -> Question:
    """The question in a .sql file, checked; raises NotFound, or BadQuestion with file and line.

    `own` is a caller's file outside the catalogue: keys may be absent, and without `params:` the
    parameters are those that DuckDB finds, required and of type "any".
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise NotFound(f"reading the question {path}", str(error.strerror), "a .sql file") from error
    except UnicodeDecodeError as error:
        raise BadQuestion(f"reading {path}", f"byte {error.start} is not UTF-8", "text in UTF-8") from error
    header = split(text, path)
    missing = [key for key in NEEDED if key not in header.keys] + ([] if header.help else ["a first line of help"])
    if missing and not own:
        raise BadQuestion(
            f"reading {path}, line 1",
            f"the header lacks {', '.join(missing)}",
            "a line of help, then the keys reads, params, returns, source and, where it fits, paint",
            "Take any shipped question as the pattern",
        )
    used = statement_parameters(text, path)
    reads = parse_reads(header, path)
    if own and "params" not in header.keys:
        names = sorted(used.union(*(read.parameters.values() for read in reads)))
        params = {param: Param(param, "any") for param in names}
    else:
        params = parse_params(header, path)
    returns = parse_returns(header, path)
    question = Question(
        name=name,
        help=header.help,
        sql="\n".join(text.split("\n")[header.n_lines :]).strip().removesuffix(";"),
        reads=reads,
        params=params,
        returns=returns,
        source=header.text("source"),
        path=path,
        pictures=parse_paint(header, path, [column.name for column in returns]),
        sql_params=used,
        needs=parse_needs(header, path),
    )
    _check_params(question, header)
    return question


def statement_parameters(text: str, path: Path) -> frozenset[str]:
    """The named parameters of the one SELECT that a text holds; raises BadQuestion when it holds anything else."""
    try:
        statements = duckdb.extract_statements(text)
    except Exception as error:  # whatever the parser raises, the file is what has to change
        message = str(error)
        # DuckDB tells the place only in its message; without one the error still names the file.
        digits = message.partition("LINE ")[2].partition(":")[0]
        place = f"reading {path}, line {digits}" if digits.isdigit() else f"reading {path}"
        raise BadQuestion(place, message.splitlines()[0] if message else repr(error), "one SELECT statement") from error
    if len(statements) != 1:
        raise BadQuestion(f"reading {path}", f"it holds {len(statements)} statements", "one SELECT statement")
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        raise BadQuestion(f"reading {path}", f"the statement is of type {kind.name}", "one SELECT statement")
    names = frozenset(str(name) for name in statements[0].named_parameters)
    if nameless := sorted(name for name in names if not name.isidentifier()):
        raise BadQuestion(f"reading {path}", f"a parameter without a name (number {nameless[0]})", "$name, not ? or $1")
    return names


def _check_params(question: Question, header: Header) -> None:
    """Raises BadQuestion unless the declared parameters are those of the SQL and of `reads:` together."""
    for need in question.needs:
        if need.parameter is not None and need.parameter not in question.params:
            raise BadQuestion(
                f"reading {question.path}, line {header.line('needs')}",
                f"`needs:` names the parameter {need.parameter}, which `params:` does not declare",
                f"one of {', '.join(question.params) or 'no parameters at all'}",
            )
    borrowed = {name for read in question.reads for name in read.parameters.values()}
    used = question.sql_params | borrowed
    if surplus := sorted(set(question.params) - used):
        raise BadQuestion(
            f"reading {question.path}, line {header.line('params')}",
            f"`params:` declares {', '.join(surplus)}, which neither the SQL nor `reads:` uses",
            "each declared parameter as $name in one of them",
        )
    if absent := sorted(used - set(question.params)):
        place = "reads" if absent[0] in borrowed and absent[0] not in question.sql_params else "params"
        raise BadQuestion(
            f"reading {question.path}, line {header.line(place)}",
            f"${', $'.join(absent)} is used and `params:` does not declare it",
            f"one of {', '.join(sorted(question.params)) or 'no parameters at all'}",
        )
