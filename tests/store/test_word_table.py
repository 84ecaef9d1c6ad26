"""Tests of the virtual table of weights between words."""

from pathlib import Path

import numpy as np
import pytest

from attnstore.reduce.words import word_map
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, Made, make_store, random_examples, stored


def test_every_weight_between_words_is_that_of_the_reduction(store: Store, made: list[Made]) -> None:
    for example, one in enumerate(made):
        expected = word_map(stored(one.maps["encoder"]), one.frame(ENCODER))
        found = store.sql(
            "select layer, head, query, key, weight from word_attention where example = $e order by all", e=example
        ).to_numpy()
        has_tokens = [index for index, word in enumerate(one.source.words) if word["n_tokens"]]
        # A word without tokens has no row and no column.
        assert np.unique(found["query"]).tolist() == np.unique(found["key"]).tolist() == has_tokens
        assert len(found["weight"]) == 6 * len(has_tokens) ** 2
        where = tuple(found[name] for name in ("layer", "head", "query", "key"))
        np.testing.assert_array_equal(found["weight"], expected[where])


def test_a_word_of_two_pieces_sums_its_columns_and_averages_its_rows(store: Store, made: list[Made]) -> None:
    # Word 3 of e4 has the tokens 4 and 5; word 0 has token 1.
    assert list(made[4].source.word[:6]) == [-1, 0, 1, 2, 3, 3]
    weights = stored(made[4].maps["encoder"])[1, 2].astype(np.float64)
    found = {
        (row["query"], row["key"]): row["weight"]
        for row in store.sql("select * from word_attention where example = 4 and layer = 1 and head = 2")
    }
    assert found[0, 3] == pytest.approx(weights[1, 4] + weights[1, 5], rel=1e-6)
    assert found[3, 0] == pytest.approx((weights[4, 1] + weights[5, 1]) / 2, rel=1e-6)
    assert found[3, 3] == pytest.approx(weights[4:6, 4:6].sum() / 2, rel=1e-6)


def test_filters_reach_the_words(store: Store) -> None:
    every = store.sql("select * from word_attention order by all").to_arrow().to_pylist()
    some = store.sql("select * from word_attention where head = 1 and example in (1, 3) and key > query order by all")
    assert list(some) == [
        row for row in every if row["head"] == 1 and row["example"] in (1, 3) and row["key"] > row["query"]
    ]


def test_cross_maps_have_target_words_as_queries(tmp_path: Path) -> None:
    made = random_examples(8, (7, 5), KINDS)
    with open_store(make_store(tmp_path / "cross.attn", made, kinds=KINDS)) as store:
        for example, one in enumerate(made):
            expected = word_map(stored(one.maps["cross"]), one.frame(KINDS["cross"]))
            found = store.sql(
                "select * from word_attention where kind = 'cross' and example = $e order by all", e=example
            ).to_numpy()
            assert found["query"].max() < len(one.target.words if one.target else ())
            where = tuple(found[name] for name in ("layer", "head", "query", "key"))
            np.testing.assert_array_equal(found["weight"], expected[where])
