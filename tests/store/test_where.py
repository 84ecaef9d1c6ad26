"""Tests that `where` answers over some examples as a store of those examples alone would."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from attnstore.errors import AttnStoreError, BadInput, NotFound
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, Made, make_store, random_examples

CHOSEN = [1, 3, 4]
WHERE = "name in ('e1', 'e3', 'e4')"

QUESTIONS = [
    *("heads/entropy", "heads/special", "heads/positions", "heads/confidence", "heads/labels"),
    *("heads/transfer", "heads/flow", "heads/offsets", "heads/sinks", "heads/streaming"),
    *("relations/accuracy", "relations/baselines", "relations/trees", "audit/rows", "audit/rounding"),
]


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return random_examples(12, (6, 9, 4, 11, 7), {"encoder": ENCODER})


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("w") / "w.attn", made, precision="exact")) as opened:
        yield opened


@pytest.fixture(scope="module")
def alone(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of the chosen examples only."""
    some = [made[number] for number in CHOSEN]
    with open_store(make_store(tmp_path_factory.mktemp("a") / "a.attn", some, precision="exact")) as opened:
        yield opened


def same(found: pa.Table, expected: pa.Table) -> None:
    """Equal tables, floats but for the order in which they were added."""
    assert found.schema == expected.schema
    assert len(found) == len(expected) > 0
    for name in found.column_names:
        one, two = found[name].to_pylist(), expected[name].to_pylist()
        numbers = pa.types.is_floating(found[name].type) and None not in two
        assert one == (pytest.approx(two, rel=1e-5, abs=1e-7) if numbers else two), name


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_that_of_a_store_of_those_examples_alone(store: Store, alone: Store, question: str) -> None:
    same(store.ask(question, where=WHERE).to_arrow(), alone.ask(question).to_arrow())


@pytest.mark.parametrize("params", [{"eps": 0.2}, {"variant": "exact"}])
def test_computed_and_stored_facts_are_narrowed_alike(store: Store, alone: Store, params: dict[str, object]) -> None:
    same(store.ask("heads/entropy", where=WHERE, **params).to_arrow(), alone.ask("heads/entropy", **params).to_arrow())


def test_what_is_derived_from_facts_is_made_of_those_examples(store: Store, alone: Store) -> None:
    same(store.ask("clusters/distances", where=WHERE).to_arrow(), alone.ask("clusters/distances").to_arrow())


def test_the_condition_may_look_into_other_tables(store: Store, alone: Store) -> None:
    where = "example in (select example from words group by example having count(*) in (9, 11, 7)) -- those lengths"
    same(store.ask("heads/entropy", where=where).to_arrow(), alone.ask("heads/entropy").to_arrow())


def test_all_examples_is_what_no_condition_gives(store: Store) -> None:
    for question in QUESTIONS:
        same(store.ask(question, where="true").to_arrow(), store.ask(question).to_arrow())


@pytest.mark.parametrize("where", ["false", "null", "n_tokens > 1000"])
def test_no_example_gives_no_row(store: Store, where: str) -> None:
    for question in ("heads/entropy", "heads/transfer", "relations/accuracy"):
        assert len(store.ask(question, where=where)) == 0


def test_a_second_condition_does_not_get_the_answer_of_the_first(store: Store) -> None:
    found = [store.ask("heads/transfer", where=f"example = {number}").to_numpy()["value"] for number in (0, 1, 0)]
    assert not np.allclose(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_answer_says_which_condition_it_had(store: Store) -> None:
    assert store.ask("heads/entropy", where=WHERE).provenance.where == WHERE
    assert store.ask("heads/entropy").provenance.where is None


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("colour = 'red'", NotFound, "colour"),
        ("label = ", BadInput, "label = "),
        ("true) or (true", BadInput, "a condition in SQL"),
        ("label = 'a'; drop table x", BadInput, "a condition in SQL"),
        (" ", BadInput, "a condition in SQL"),
        (["a"], BadInput, "a condition in SQL"),
        ("name = $name", BadInput, "name"),
    ],
)
def test_a_condition_that_cannot_be_read_is_an_error_that_shows_it(
    store: Store, where: str, error: type[AttnStoreError], message: str
) -> None:
    with pytest.raises(error, match="heads/entropy") as caught:
        store.ask("heads/entropy", where=where)
    assert message in str(caught.value)


def test_text_where_numbers_are_meant_is_an_error_of_the_condition(store: Store) -> None:
    with pytest.raises(AttnStoreError):
        store.ask("heads/entropy", where="name")


def test_a_second_statement_is_not_run(store: Store) -> None:
    with pytest.raises(AttnStoreError):
        store.ask("heads/entropy", where="true); drop view main.words; select (1")
    (row,) = store.sql("select count(*) as n from words")
    assert row["n"] == 37


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_maps_is_narrowed(kind: str, tmp_path: Path) -> None:
    made = random_examples(5, (5, 8, 6), KINDS)
    with (
        open_store(make_store(tmp_path / "all.attn", made, kinds=KINDS, precision="exact")) as store,
        open_store(make_store(tmp_path / "one.attn", made[1:2], kinds=KINDS, precision="exact")) as alone,
    ):
        for question in ("heads/transfer", "heads/entropy"):
            found = store.ask(question, kind=kind, where="example = 1").to_arrow()
            same(found, alone.ask(question, kind=kind).to_arrow())
