"""This file tests that every function of this DuckDB was judged, once, and where it may stand."""

import contextlib
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from attnstore.serve import gate

IN_FROM = {"table", "table_macro"}
LEAVE_ALONE = {"allow", "allow syntax", "allow table", "refuse", "refuse table"}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """Every function of this DuckDB: its name and what kinds of function go by it.

    Without pragmas, which are statements, and without names with white space, which no list holds: both are refused.
    """
    text = "select function_name, list(distinct function_type) from duckdb_functions() group by all"
    found = {name: set(kinds) - {"pragma"} for name, kinds in duckdb.connect().execute(text).fetchall()}
    return {name: kinds for name, kinds in found.items() if kinds and " " not in name}


def lines() -> list[tuple[str, str]]:
    """Each name of the file with the list that it stands in."""
    found, verdict = [], ""
    for line in (Path(gate.__file__).parent / "functions.txt").read_text(encoding="utf-8").splitlines():
        if line[:1] == " ":
            found += [(name, verdict) for name in line.split()]
        elif line.strip() and not line.startswith("#"):
            verdict = line.strip()
    return found


def test_the_lists_are_those_that_the_gate_knows() -> None:
    assert set(gate.verdicts()) == LEAVE_ALONE


def test_every_function_of_an_expression_is_judged_once(known: dict[str, set[str]]) -> None:
    judged = Counter(name for name, verdict in lines() if verdict in ("allow", "refuse"))
    assert {name for name, kinds in known.items() if kinds - IN_FROM} - set(judged) == set(), "judge these"
    assert set(judged) - {name for name, kinds in known.items() if kinds - IN_FROM} == set(), "there are no such"
    assert {name for name, times in judged.items() if times > 1} == set()


def test_every_function_of_from_is_judged_once(known: dict[str, set[str]]) -> None:
    judged = Counter(name for name, verdict in lines() if verdict in ("allow table", "refuse table"))
    assert {name for name, kinds in known.items() if kinds & IN_FROM} - set(judged) == set(), "judge these"
    assert set(judged) - {name for name, kinds in known.items() if kinds & IN_FROM} == set(), "there are no such"
    assert {name for name, times in judged.items() if times > 1} == set()


def test_syntax_that_is_no_function_is_none_of_this_duckdb(known: dict[str, set[str]]) -> None:
    syntax = gate.verdicts()["allow syntax"]
    assert syntax
    assert not {name for name in syntax if known.get(name, set()) - IN_FROM}


def test_a_function_with_a_side_effect_is_allowed_only_where_it_draws_random_numbers() -> None:
    text = "select distinct function_name from duckdb_functions() where has_side_effects or stability = 'VOLATILE'"
    changing = {name for (name,) in duckdb.connect().execute(text).fetchall()}
    random = {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "apply"}
    waits = {"error"}
    assert changing & gate.functions()[0] - random - waits == set()


@pytest.mark.parametrize(
    "begins", ["read_", "duckdb_", "pragma_", "parquet_", "pg_", "current_s", "has_", "inet_", "__internal", "query"]
)
def test_no_function_of_a_family_that_reads_what_is_not_published_is_allowed(begins: str) -> None:
    assert not [name for names in gate.functions() for name in names if name.startswith(begins)]


@pytest.mark.parametrize("call", ["list_aggregate([1], '{}')", "[1].LIST_AGGR('{}')", "word.array_aggr('{}')"])
def test_an_aggregate_that_a_list_names_is_judged_by_its_name(known: dict[str, set[str]], call: str) -> None:
    judge = gate.Gate({"words"})
    passed = set()
    aggregates = {name for name, kinds in known.items() if "aggregate" in kinds}
    for name in aggregates:
        with contextlib.suppress(gate.Refused):
            judge.check(f"select {call.format(name)} from words")
            passed.add(name)
    assert passed == aggregates & gate.functions()[0]
    assert aggregates - passed  # some are refused
    with pytest.raises(gate.Refused):
        judge.check(f"select {call.replace(chr(39) + '{}' + chr(39), '$name')} from words")
