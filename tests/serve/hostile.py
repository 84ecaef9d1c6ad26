"""What the tests of the walls share: hostile and honest statements, from `hostile/` and `honest/`, and some made.

A file of `hostile/` holds statements of one kind, each behind a line that says what must happen and what it is:
`-- refused: …` by the gate alone, before anything runs; `-- limited: …` ends within the limits, with a part of its
answer or a problem. `{folder}` in a statement is the folder of the store.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
_HOSTILE = re.compile(r"^-- (refused|limited): (.*)$", re.MULTILINE)
_HONEST = re.compile(r"^-- (.*)$", re.MULTILINE)

PARAMETERS = {"example": 0, "layer": 1, "examples": [0, 1], "number": 1, "text": "a", "list": [1, 2], "truth": True}
PARAMETERS |= {"nothing": None}  # type: ignore[dict-item]
"""Values for the parameters of honest statements."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """A statement, or a condition where `kind` is `where`; `must` is `refused` or `limited`."""

    kind: str
    what: str
    text: str
    must: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"

    def at(self, folder: Path) -> str:
        """The text with this folder in it."""
        return self.text.replace("{folder}", str(folder))

    @property
    def statement(self) -> str:
        """The statement that runs: a condition stands in one that the service writes."""
        return f"select example from examples where (\n{self.text}\n)" if self.kind == "where" else self.text


@cache
def hostile() -> tuple[Hostile, ...]:
    """Every hostile statement."""
    return (*_written(), *_made())


@cache
def honest() -> dict[str, str]:
    """Every honest statement by what it is."""
    found: dict[str, str] = {}
    for file in sorted((HERE / "honest").glob("*.sql")):
        _, _, text = file.read_text(encoding="utf-8").partition("\n\n")  # behind what the file says of itself
        _, *parts = _HONEST.split(text)
        for what, statement in zip(parts[::2], parts[1::2], strict=True):
            assert what not in found, what
            found[what] = statement.strip("\n")
    return found


def parameters(text: str) -> dict[str, object]:
    """Values for the parameters that an honest statement uses."""
    return {name: value for name, value in PARAMETERS.items() if re.search(rf"\${name}\b", text)}


def _written() -> Iterator[Hostile]:
    for file in sorted((HERE / "hostile").glob("*.sql")):
        _, *parts = _HOSTILE.split(file.read_text(encoding="utf-8"))
        for must, what, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            yield Hostile(file.stem, what, text.strip("\n"), must)


def _made() -> Iterator[Hostile]:
    """What is too long, or holds what no file of text may."""
    yield from (Hostile("parser", what, text, "refused") for what, text in _confusing().items())
    yield from (Hostile("planning", what, text, "limited") for what, text in _planned().items())


def _confusing() -> dict[str, str]:
    """Texts that confuse parsers, or that try to say one thing to one of them and another to the next."""
    deep = 30_000
    return {
        "brackets": "(" * deep + "select 1" + ")" * deep,
        "brackets of an expression": "select " + "(" * deep + "1" + ")" * deep,
        "brackets that stay open": "select " + "(" * 60_000,
        "lists in lists": "select " + "[" * deep + "]" * deep,
        "structs in structs": "select " + "{'a':" * 10_000 + "1" + "}" * 10_000,
        "subqueries in subqueries": "select * from (" * 3_000 + "select 1" + ")" * 3_000,
        "scalar subqueries in one another": "select (" * 5_000 + "select 1" + ")" * 5_000,
        "NOT of NOT": "select " + "not " * 15_000 + "true",
        "minus of minus": "select " + "- " * 30_000 + "1",
        "a sum of many": "select " + "+".join(["1"] * 30_000),
        "a chain of OR": "select " + " or ".join(["a=1"] * 8_000) + " from (select 1 a)",
        "CASE in CASE": "select " + "case when true then " * 3_000 + "1" + " end" * 3_000,
        "casts of casts": "select 1" + "::int" * 10_000,
        "methods of methods": "select 'a'" + ".lower()" * 7_000,
        "functions of functions": "select " + "abs(" * 12_000 + "1" + ")" * 12_000,
        "lambdas in lambdas": "select " + "list_transform([1], lambda x: " * 2_000 + "1" + ")" * 2_000,
        "types in types": "select null::" + "struct(a " * 5_000 + "int" + ")" * 5_000,
        "lists of types": "select null::int" + "[]" * 30_000,
        "unions of unions": " union all ".join(["select 1"] * 4_000),
        "joins of joins": "from " + " join ".join(f"words w{number} using (word)" for number in range(2_000)),
        "CTEs in CTEs": "with a as (" * 5_000 + "select 1" + ") from a" * 5_000,
        "too many characters": "select 1 --" + "x" * 70_000,
        "too many values": "select 1 in (" + ",".join(map(str, range(12_000))) + ")",
        "a long string and one more": "select '" + "x" * 65_600 + "'",
        "a zero byte at the end": "select 1\0",
        "a zero byte before another statement": "select 1;\0 drop view words",
        "a zero byte in a string": "select 'a\0b'",
        "a zero byte in a comment": "select 1 /* \0 */",
        "half of a surrogate": "select '\ud800'",
        "half of a surrogate in a name": 'select 1 as "\udfff"',
        "two statements and white space": "select 1;\u00a0select 2",
        "two statements and a line of Unicode": "select 1;\u2028select 2",
        "a comment that a line of Unicode does not end": "select 1 --\u2028 + 1\n; drop view words",
        "a comment that a carriage return may end": "select 1 --\r; drop view words\n; select 2",
        "a comment that is not closed": "select 1 /* ",
        "a comment that is closed twice": "select 1 /* */ */",
        "a string that is not closed": "select 'a",
        "a name that is not closed": 'select "a',
        "dollars that are not closed": "select $a$ x",
        "dollars that close otherwise": "select $a$ $b$ ; drop view words; select $b$ $a$ ; drop view words",
        "an escape that closes a string": "select e'\\'; drop view words; --'; drop view words",
        "a letter of full width": "select 1； drop view words",  # noqa: RUF001
        "a call in letters of full width": "from ｒｅａｄ_text('/etc/passwd')",  # noqa: RUF001
        "a call with a letter without width": "from read_\u200btext('/etc/passwd')",
        "a call with a letter that combines": "from read_te\u0301xt('/etc/passwd')",
        "a call with the Turkish i": "from duckdb_settİngs()",
        "a call with a long s": "from duckdb_\u017fettings()",
        "a call with the sign for Kelvin": "from duc\u212adb_settings()",
        "a mark of byte order before a statement that writes": "\ufeffdrop view words",
        "only a mark of byte order": "\ufeff",
        "nothing": "",
        "only white space": " \n\t ",
        "only semicolons": ";;;",
        "only a comment": "-- nothing",
        "only a word": "words",
        "no SQL": "<script>alert(1)</script>",
        "JSON": '{"sql": "select 1"}',
        "percent signs": "select 1%00; drop view words",
        "a backslash": "\\copy words to 'x.csv'",
        "a command of a shell": ".read x.sql",
        "a command of the system": ".shell ls",
    }


def _planned() -> dict[str, str]:
    """Statements that take long before they run, in memory or time."""
    doubling = ", ".join(f"t{n} as (select a.x from t{n - 1} a, t{n - 1} b)" for n in range(1, 40))
    rows = ",".join(f"({number})" for number in range(2_000))
    return {
        "CTEs that double": f"with t0 as (select 1 x), {doubling} select count(*) from t39",
        "CTEs that double by union": "with t0 as (select 1 x), "
        + ", ".join(f"t{n} as (from t{n - 1} union all from t{n - 1})" for n in range(1, 40))
        + " select count(*) from t39",
        "CTEs that are not held and double": "with t0 as (select 1 x), "
        + ", ".join(f"t{n} as not materialized (from t{n - 1} union all from t{n - 1})" for n in range(1, 25))
        + " select count(*) from t24",
        "expressions that double": "select x from (select x + x as x from (" * 30 + "select 1 x" + "))" * 30,
        "strings that double": "select length(x) from (select x || x as x from (" * 30 + "select 'xx' x" + "))" * 30,
        "lists that double": "select len(x) from (select x || x as x from (" * 30 + "select [1, 2] x" + "))" * 30,
        "columns that double": "with t0 as (select 1 a), "
        + ", ".join(f"t{n} as (select * from t{n - 1} a, t{n - 1} b)" for n in range(1, 20))
        + " from t19",
        "a hundred joins": "select count(*) from words w0 "
        + " ".join(f"join words w{n} using (example, word)" for n in range(1, 100)),
        "joins of all with all": "select count(*) from "
        + ", ".join(f"words w{n}" for n in range(60))
        + " where "
        + " and ".join(f"w{a}.word = w{b}.word" for a in range(60) for b in range(a) if (a + b) % 5 == 0),
        "joins from outside": "select count(*) from words w0 "
        + " ".join(f"full join words w{n} on w{n}.word = w{n - 1}.word" for n in range(1, 60)),
        "subqueries that are correlated": "select count(*) from words w0 where "
        + "exists (select 1 from words w1 where w1.word = w0.word and " * 50
        + "true"
        + ")" * 50,
        "many subqueries": "select " + ", ".join(f"(select count(*) from words where word = {n})" for n in range(700)),
        "a table of many values": f"select sum(a.x * b.x) from (values {rows}) a(x), (values {rows}) b(x)",
        "a long list of IN": "select count(*) from range(1000000) where range in ("
        + ",".join(str(number * 7) for number in range(8_000))
        + ")",
        "a long list of IN over columns": "select count(*) from words where "
        + " or ".join(f"(word, example) in (({n}, {n}), ({n + 1}, {n}))" for n in range(500)),
        "many conditions": "select count(*) from words where "
        + " and ".join(f"(word > {n} or word < {n + 5})" for n in range(1_200)),
        "many columns": "select " + ", ".join(f"{number} c{number}" for number in range(4_000)),
        "many columns of all": "select " + ", ".join(["*"] * 4_000) + " from words",
        "many windows": "select "
        + ", ".join(f"sum(word + {n}) over (order by word % {n + 1})" for n in range(600))
        + " from words",
        "many aggregates": "select "
        + ", ".join(f"quantile_cont(word + {n}, 0.5)" for n in range(1_000))
        + " from words",
        "a wide pivot": "pivot words on word in (" + ", ".join(map(str, range(4_000))) + ") using count(*), max(form)",
        "a pivot of pivots": "from words "
        + " ".join(
            "pivot (count(*) for {} in ({}))".format(n, ", ".join(map(str, range(100)))) for n in ("word", "part")
        ),
        "a pivot of products": "from words pivot (count(*) for word in ({0}) part in ({0}) n_tokens in ({0}))".format(
            ", ".join(map(str, range(150)))
        ),
        "a cube of many columns": "select count(*) from words group by cube ("
        + ", ".join(f"word % {n + 2}" for n in range(30))
        + ")",
        "a cube of some columns": "select count(*) from words group by cube ("
        + ", ".join(f"word % {n + 2}" for n in range(14))
        + ")",
        "grouping sets of grouping sets": "select count(*) from words group by "
        + ", ".join("grouping sets ((word), (example), ())" for _ in range(12)),
        "names that are long": 'select 1 as "' + "x" * 60_000 + '"',
        "a large union": " union all ".join(["from words"] * 150),
        "a large union of what is distinct": " union ".join(["select hash(range) from range(1000000)"] * 100),
        "recursions in recursions": "with recursive "
        + ", ".join(f"r{n}(x) as (select 1 union all select x + 1 from r{n} where x < 50)" for n in range(60))
        + " select count(*) from "
        + ", ".join(f"r{n}" for n in range(60)),
        "unnest of unnest": "select " + "unnest(" * 30 + "[" * 30 + "1" + "]" * 30 + ")" * 30,
        "lateral joins in a row": "select count(*) from words w0, "
        + ", ".join(f"lateral (select * from words where word = w{n - 1}.word) w{n}" for n in range(1, 60)),
        "a mark of byte order": "\ufeffselect 1",
        "comments that nest": "select " + "/*" * 20_000 + "*/" * 20_000 + " 1",
        "a comment at the end": "select form from words -- )",
        "semicolons at the end": "select 1" + ";" * 50_000,
        "a limit that is negative": "from words limit -1",
        "a limit that is no number": "from words limit 'x'",
        "a number without an end": "select " + "9" * 60_000,
        "a fraction without an end": "select 0." + "1" * 60_000,
        "an exponent": "select 1e999999999",
        "an error that names a path": "select cast('/var/lib/secret/file' as int)",
        "an error that names much": "select cast('" + "x/" * 30_000 + "' as int)",
        "an error of a strange column": 'select "<img src=x onerror=alert(1)>" from words',
        "an error of the program's own": "select error('Traceback (most recent call last): File \"x.py\"')",
    }
