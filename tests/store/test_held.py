"""Tests of what is held in memory: equal answers, within a budget, from the second use on."""

import gc
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from attnstore.store import held
from attnstore.store.held import Budget, Held
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

QUESTIONS = ("relations/best", "relations/accuracy", "heads/roles", "clusters/features")


def _names(store: Store) -> set[str]:
    (layout,) = store.engine.database._layouts
    return set(layout.held._there)


def test_a_table_is_held_from_its_second_use_on_and_gives_the_same_rows(folder: Path) -> None:
    text = "select * from stored.word_facts order by example, word"
    with open_store(folder) as store:
        first = store.sql(text).to_arrow()
        assert _names(store) == set()
        for _ in range(3):
            assert store.sql(text).to_arrow().equals(first)
            assert _names(store) == {"word_facts"}


def test_views_are_followed_to_what_they_read(folder: Path) -> None:
    with open_store(folder) as store:
        for _ in range(2):
            store.sql("select count(*) from relations join token_facts using (example)")
        assert _names(store) == {"relations", "token_facts"}  # `words` only through `relations`
        assert "held" not in " ".join(store.tables)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_has_one_answer_from_files_and_from_memory(folder: Path, question: str) -> None:
    with open_store(folder) as store:
        answers = [store.ask(question).to_arrow() for _ in range(3)]
    for answer in answers[1:]:
        assert answer.schema == answers[0].schema
        for name in answer.column_names:
            if pa.types.is_floating(answer.schema.field(name).type):
                np.testing.assert_allclose(answer[name].to_numpy(), answers[0][name].to_numpy(), rtol=1e-9)
            else:
                assert answer[name].equals(answers[0][name])


def test_nothing_is_held_beyond_the_budget(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held.Budget.__init__, "__defaults__", (0,))
    with open_store(folder) as store:
        for _ in range(3):
            assert len(store.sql("from words")) == 50
        assert _names(store) == set()


def test_a_database_that_is_closed_gives_its_memory_back(folder: Path) -> None:
    with open_store(folder) as store:
        budget = store.engine.files.budget
        before = budget._left
        for _ in range(2):
            store.ask("relations/accuracy", where="example < 3")
        assert budget._left < before
        store.engine.computed.close()
        for _ in range(2):
            store.sql("from words")
        assert budget._left < before
        store.engine.database.close()
        assert budget._left == before


def test_a_condition_narrows_what_is_held(folder: Path) -> None:
    asked = {"relation": "all", "layer": 0, "head": 0}
    with open_store(folder) as store:
        n = {store.ask("relations/accuracy", **asked).to_arrow()["n"][0].as_py() for _ in range(3)}
        narrow = [store.ask("relations/accuracy", **asked, where="example = 1").to_arrow() for _ in range(3)]
        few = {answer["n"][0].as_py() for answer in narrow}
        assert len(n) == len(few) == 1
        assert min(few) < min(n)


def test_a_budget_is_taken_and_given() -> None:
    budget = Budget(10)
    assert budget.take(6)
    assert not budget.take(5)
    budget.give(1)
    assert budget.take(5)
    assert not budget.take(1)


def test_the_budget_comes_back_with_a_database_that_is_let_go_without_closing() -> None:
    budget, connection = Budget(2**30), duckdb.connect()
    connection.execute("create schema stored")
    connection.execute("create view stored.numbers as select range as n from range(200000)")
    copies = Held(connection, budget)
    assert copies.hold("stored", "numbers", 2**20)
    assert not budget.take(2**30)
    assert connection.execute("select sum(n) from stored.numbers").fetchone() == (19_999_900_000,)
    del copies
    gc.collect()
    assert budget.take(2**30)


@pytest.mark.parametrize("place", ["attnstore.store.layout.Layout._stored", "attnstore.store.held.Held._copied"])
def test_what_an_interruption_stopped_is_made_at_the_next_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def stopped(*args: object) -> None:
        raise KeyboardInterrupt

    with open_store(folder) as store:
        text = "select count(*) as n from stored.word_facts"
        with monkeypatch.context() as patch:
            patch.setattr(place, stopped)
            if place.endswith("_copied"):
                store.sql(text)  # copied from the second use on
            with pytest.raises(KeyboardInterrupt):
                store.sql(text)
        for _ in range(3):
            assert store.sql(text).to_arrow()["n"][0].as_py() > 0
        assert _names(store) == {"word_facts"}
