"""Tests of `attnstore compare`."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadInput
from tests.cli.running import good, invoke
from tests.store.making import ENCODER, make_store, random_examples, random_maps


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Two models over four examples, the second of which lacks one."""
    place, rng = tmp_path_factory.mktemp("two"), np.random.default_rng(2)
    made = random_examples(3, (5, 7, 4, 6), {"encoder": ENCODER})
    other = [replace(one, maps={"encoder": random_maps(rng, *one.maps["encoder"].shape)}) for one in made[:3]]
    return make_store(place / "a.attn", made), make_store(place / "b.attn", other)


def test_an_answer_of_two_stores_comes_in_every_form(stores: Sequence[Path], tmp_path: Path) -> None:
    rows = json.loads(good("compare", "compare/cosine", *stores, "--format", "json").stdout)
    assert [(row["layer"], row["head"]) for row in rows] == [(layer, head) for layer in (0, 1) for head in range(3)]
    assert {row["n"] for row in rows} == {3}
    assert all(0 < row["cosine"] < 1 for row in rows)
    good("compare", "compare/cosine", *stores, "--format", "csv", "-o", tmp_path / "out.csv")
    found = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"))))
    assert [float(row["js"]) for row in found] == [row["js"] for row in rows]


def test_parameters_and_a_condition_are_taken(stores: Sequence[Path]) -> None:
    words = ("compare", "compare/heads", *stores, "metric=entropy", "--where", "n_words < 6", "--format", "json")
    rows = json.loads(good(*words).stdout)
    assert {(row["metric"], row["n_a"], row["n_b"]) for row in rows} == {("entropy", 2, 2)}


def test_an_answer_is_drawn_as_the_question_paints_it(stores: Sequence[Path]) -> None:
    assert good("compare", "compare/cosine", *stores, "--picture", "svg").stdout.startswith("<svg")
    assert "<table" in good("compare", "compare/heads", *stores, "--picture", "html").stdout


def test_the_table_says_who_has_no_partner(stores: Sequence[Path]) -> None:
    found = good("compare", "compare/pairs", *stores).stdout
    assert "only_a" in found
    assert "e3" in found


@pytest.mark.parametrize("words", [("compare", "heads/entropy"), ("ask", "compare/cosine")])
def test_a_question_for_another_number_of_stores_is_refused(stores: Sequence[Path], words: tuple[str, str]) -> None:
    result = invoke(*words, *stores[: 2 if words[0] == "compare" else 1])
    assert isinstance(result.exception, BadInput)
    assert ("attnstore ask" if words[0] == "compare" else "attnstore compare") in str(result.exception)
