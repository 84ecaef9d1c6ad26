"""Tests of every shipped question: its columns are those it declares, its answer is the golden one."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from attnstore.catalogue.catalogue import questions
from attnstore.errors import AttnStoreError
from tests.golden.make import FOLDER, REQUIRED, Golden, answer, path

NAMES = sorted(questions())

BESIDE = {("frames/heads", "pairs=zip"): {"level": "token"}}
"""What a choice can only be given together with."""

REFUSED = {
    ("patterns/shares", "labels=own"): "no map was given a pattern",
    **{
        (f"ablation/{name}", "intervention=mean"): "intervention: one that the plan was run with"
        for name in ("heads", "layers", "pruning", "sets")
    },
    **{
        (name, f"{number}=ablation_mean"): "switched off by intervention mean"
        for name, number in (("heads/correlate", "x"), ("heads/correlate", "y"), ("compare/correlate", "number"))
    },
}
"""Choices that need what the golden store lacks, and what is said."""

EMPTY = {
    ("frames/heads", "filter=kovaleva"): "every golden sentence has two targets",
    ("induction/scores", "corpus=repeated"): "no golden text is of random tokens",
}
"""Choices for which the golden store has nothing, and why; their own tests have."""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Golden]:
    with Golden(tmp_path_factory.mktemp("golden")) as opened:
        yield opened


def _same(found: str, expected: str) -> bool:
    if found == expected:
        return True
    try:
        pairs = list(zip(found.split(), expected.split(), strict=True))  # a list has several numbers
        return all(math.isclose(float(one), float(two), rel_tol=1e-4, abs_tol=1e-6) for one, two in pairs)
    except ValueError:
        return False


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_golden_one_in_the_columns_that_the_question_declares(golden: Golden, name: str) -> None:
    with path(name).open(newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file))
    found, again = (list(answer(golden, name)) for _ in range(2))
    assert found[0] == expected[0] == [column.name for column in questions()[name].returns]
    assert len(found) == len(expected) > 1
    for number, (row, wanted) in enumerate(zip(found, expected, strict=True), start=1):
        assert all(map(_same, row, wanted)), f"line {number}: {row} and not {wanted}"
    assert [row[0] for row in found] == [row[0] for row in again], "the order of the rows is not fixed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, f"{param.name}={choice}")
        for name in NAMES
        for param in questions()[name].params.values()
        for choice in param.choices or (("true", "false") if param.type == "boolean" else ())
    ],
)
def test_every_choice_of_a_parameter_is_answered(golden: Golden, name: str, parameter: str) -> None:
    param, _, value = parameter.partition("=")
    asked = {**REQUIRED.get(name, {}), **BESIDE.get((name, parameter), {}), param: value}
    if message := REFUSED.get((name, parameter)):
        with pytest.raises(AttnStoreError, match=message):
            golden.ask(name, **asked)
        return
    found = golden.ask(name, **asked)
    assert found.columns == tuple(column.name for column in questions()[name].returns)
    assert (len(found) > 0) == ((name, parameter) not in EMPTY)


def test_there_is_no_golden_answer_to_a_question_that_does_not_ship() -> None:
    stored = {file.relative_to(FOLDER).with_suffix("").as_posix() for file in Path(FOLDER).rglob("*.csv")}
    assert stored == set(NAMES)
