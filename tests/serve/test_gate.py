"""This file tests the first wall alone: what it refuses and what it lets through, before anything runs."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from attnstore.serve.gate import MOST_BRACKETS, MOST_CHARACTERS, MOST_TOKENS, Gate, Refused
from tests.serve.hostile import Hostile, honest, hostile

PUBLISHED = {"words", "examples", "heads", "head_facts", "tokens", "attention", "word_attention", "word_facts"}


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    """A gate over some tables."""
    found = Gate(PUBLISHED)
    yield found
    found.close()


def check(gate: Gate, one: Hostile) -> None:
    """As the service asks."""
    if one.kind == "where":
        gate.check_condition(one.text)
    else:
        gate.check(one.text)


@pytest.mark.parametrize("one", [one for one in hostile() if one.must == "refused"], ids=str)
def test_a_hostile_statement_is_refused(gate: Gate, one: Hostile) -> None:
    with pytest.raises(Refused):
        check(gate, one)


@pytest.mark.parametrize("what", honest())
def test_an_honest_statement_passes(gate: Gate, what: str) -> None:
    gate.check(honest()[what])


def test_there_are_many_of_each() -> None:
    assert sum(one.must == "refused" for one in hostile()) >= 450
    assert sum(one.must == "limited" for one in hostile()) >= 200
    assert len(honest()) >= 100
    assert len({str(one) for one in hostile()}) == len(hostile())


@pytest.mark.parametrize("where", ["n_words > 3", "text like '%map%' -- a comment", "example in (select 1)", "(true)"])
def test_a_condition_passes(gate: Gate, where: str) -> None:
    gate.check_condition(where)


@pytest.mark.parametrize(
    "text", ["select '" + "(" * 500 + "'", "select 1 -- " + "[" * 500, "select $$" + "{" * 500 + "$$"]
)
def test_brackets_in_texts_and_comments_do_not_count(gate: Gate, text: str) -> None:
    gate.check(text)


def test_texts_with_letters_of_several_bytes_do_not_move_brackets(gate: Gate) -> None:
    gate.check("select 'é日本語', (1), [2], 'é' as \"ключ\"")
    with pytest.raises(Refused, match="brackets"):
        gate.check("select 'é日本語', " + "(" * (MOST_BRACKETS + 1))


def test_a_statement_at_the_limits_passes_and_one_beyond_does_not(gate: Gate) -> None:
    gate.check("select " + "(" * MOST_BRACKETS + "1" + ")" * MOST_BRACKETS)
    gate.check("select 1 --" + "x" * (MOST_CHARACTERS - 11))
    gate.check("select 1" + ";" * (MOST_TOKENS - 2))
    for text in (
        "select " + "(" * (MOST_BRACKETS + 1) + "1" + ")" * (MOST_BRACKETS + 1),
        "select 1 --" + "x" * (MOST_CHARACTERS - 10),
        "select 1" + ";" * (MOST_TOKENS - 1),
    ):
        with pytest.raises(Refused):
            gate.check(text)


def test_what_confuses_a_parser_costs_the_gate_little_memory() -> None:
    """In a process of its own, whose largest size is measured: one such text took gigabytes from DuckDB's parser."""
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "from attnstore.serve.gate import Gate, Refused\n"
        "from tests.serve.hostile import hostile\n"
        "gate = Gate({'words'})\n"
        "for one in hostile():\n"
        "    if one.kind in ('parser', 'planning'):\n"
        "        try:\n"
        "            gate.check(one.text)\n"
        "        except Refused:\n"
        "            pass\n"
        # What getrusage says begins with the size of the process that started this one.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 500 * 1024, "KiB"  # of which 80 MiB are Python and DuckDB


def test_names_of_tables_do_not_tell_capitals_from_small_letters(gate: Gate) -> None:
    gate.check('FROM "Words" JOIN WORDS w USING (Word)')


def test_refusals_say_what_was_met_and_what_there_is(gate: Gate) -> None:
    with pytest.raises(Refused, match="the table duckdb_views") as error:
        gate.check("from duckdb_views")
    assert "words" in error.value.expected
    with pytest.raises(Refused, match="the function read_text in FROM"):
        gate.check("from read_text('x')")
    with pytest.raises(Refused, match="the value current_user"):
        gate.check("select current_user")
    with pytest.raises(Refused) as error:
        gate.check("pivot words on upos using count(*)")
    assert "PIVOT … IN (values)" in error.value.expected


def test_a_statement_that_was_refused_leaves_the_gate_as_it_was(gate: Gate) -> None:
    for _ in range(3):
        with pytest.raises(Refused):
            gate.check("set threads = 1")
        gate.check("from words")
