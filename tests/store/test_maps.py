"""Tests of reading the maps of one example."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import BadInput, NotFound, NotStored
from attnstore.format.manifest import Kept
from attnstore.reduce.words import word_map
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, Made, largest, make_store, random_examples, stored


@pytest.mark.parametrize(
    ("asked", "index", "dims"),
    [
        ({}, np.s_[:, :], ("layer", "head", "query", "key")),
        ({"layer": 1}, np.s_[1, :], ("head", "query", "key")),
        ({"head": 2}, np.s_[:, 2], ("layer", "query", "key")),
        ({"layer": 1, "head": 0}, np.s_[1, 0], ("query", "key")),
        ({"layer": [1], "head": (2, 0)}, np.s_[1:, [2, 0]], ("layer", "head", "query", "key")),
        ({"layer": np.int64(0), "head": range(1, 3)}, np.s_[0, 1:], ("head", "query", "key")),
    ],
)
def test_a_number_drops_an_axis_and_a_sequence_keeps_it(
    store: Store, made: list[Made], asked: dict[str, Any], index: Any, dims: tuple[str, ...]
) -> None:
    found = store.attention(3, **asked)
    np.testing.assert_array_equal(found.weights, stored(made[3].maps["encoder"])[index])
    assert found.dims == dims
    assert found.shape == found.weights.shape
    assert found.weights.dtype == np.float32
    assert found.queries == found.keys == tuple(made[3].source.tokens)
    assert (found.kind, found.level, found.example, found.name) == ("encoder", "token", 3, "e3")


def test_an_example_is_found_by_its_name(store: Store) -> None:
    by_name, by_number = store.attention("e5", layer=0), store.attention(int(np.int32(5)), layer=0)
    np.testing.assert_array_equal(by_name.weights, by_number.weights)
    assert by_name.example == 5


def test_words_are_merged_by_the_reduction_that_ingest_uses(store: Store, made: list[Made]) -> None:
    weights, frame = stored(made[3].maps["encoder"]), made[3].frame(ENCODER)
    for pieces in ("mean", "first", "max"):
        with_specials = store.attention(3, level="word", pieces=pieces)
        np.testing.assert_array_equal(with_specials.weights, word_map(weights, frame, pieces=pieces, specials=True))
        np.testing.assert_allclose(with_specials.weights.sum(axis=-1), 1, atol=2e-3)
        without = store.attention(3, level="word", pieces=pieces, specials=False)
        np.testing.assert_array_equal(without.weights, word_map(weights, frame, pieces=pieces))
    forms = [word["form"] for word in made[3].source.words]
    assert without.queries == tuple(forms)
    has_tokens = [word["form"] for word in made[3].source.words if word["n_tokens"]]
    assert with_specials.queries == ("[CLS]", *has_tokens, "[SEP]")


def test_special_tokens_can_be_left_out(store: Store, made: list[Made]) -> None:
    found = store.attention(0, layer=1, head=1, specials=False)
    np.testing.assert_array_equal(found.weights, stored(made[0].maps["encoder"])[1, 1, 1:-1, 1:-1])
    assert found.queries == tuple(made[0].source.tokens[1:-1])


def test_a_range_of_tokens_is_renormalised_over_itself(store: Store, made: list[Made]) -> None:
    found = store.attention(3, layer=0, head=0, tokens=slice(-5, None), renormalise=True)
    own = stored(made[3].maps["encoder"])[0, 0, -5:, -5:]
    np.testing.assert_allclose(found.weights, own / own.sum(axis=1, keepdims=True), rtol=1e-6)
    assert found.queries == tuple(made[3].source.tokens[-5:])


def test_hidden_columns_are_zero_and_the_rest_can_be_renormalised(store: Store, made: list[Made]) -> None:
    own = stored(made[4].maps["encoder"])[1, 2].copy()
    own[:, [0, -1]] = 0
    found = store.attention(4, layer=1, head=2, hide=("special",))
    np.testing.assert_array_equal(found.weights, own)
    both = store.attention(4, layer=1, head=2, hide=("cls", "sep"), renormalise=True)
    np.testing.assert_allclose(both.weights, own / own.sum(axis=1, keepdims=True), rtol=1e-6)
    words = store.attention(4, layer=1, head=2, hide=("special",), level="word", renormalise=True)
    assert (words.weights[:, [0, -1]] == 0).all()
    np.testing.assert_allclose(words.weights.sum(axis=1), 1, rtol=1e-5)
    dots = [index for index, token in enumerate(made[1].source.tokens) if token in (".", ",")]
    assert (store.attention(1, hide=("punct",)).weights[..., dots] == 0).all()


@pytest.mark.parametrize(
    ("asked", "kind", "message"),
    [
        ({"layer": 12}, NotFound, "layer=12; expected a layer of this store, 0-1"),
        ({"head": [0, 3]}, NotFound, "head=3; expected a head of this store, 0-2"),
        ({"layer": -1}, NotFound, "layer=-1"),
        ({"layer": [0, 0]}, BadInput, "each layer once"),
        ({"head": []}, BadInput, "at least one"),
        ({"layer": "1"}, BadInput, "a layer, several, or None"),
        ({"kind": "cross"}, NotFound, "a kind of this store: encoder"),
        ({"level": "piece"}, BadInput, "'token' or 'word'"),
        ({"hide": ("pad",)}, BadInput, "special, cls, sep, punct"),
        ({"hide": "special"}, BadInput, "a sequence"),
        ({"level": "word", "pieces": "last"}, BadInput, "'mean', 'first', 'max'"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    store: Store, asked: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        store.attention(2, **asked)
    assert message in str(caught.value)


def test_an_unknown_example_is_refused_with_the_nearest(store: Store) -> None:
    with pytest.raises(NotFound, match="one of 0-6"):
        store.attention(7)
    with pytest.raises(NotFound, match="one of 0-6"):
        store.attention(-1)
    with pytest.raises(NotFound, match="'e0', 'e1', 'e2'"):
        store.attention("example 0")
    with pytest.raises(BadInput, match="the number of an example, or its name"):
        store.attention(1.5)  # type: ignore[arg-type]


def test_a_name_that_comes_twice_is_refused(made: list[Made], tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "twice.attn", [made[0], made[2], made[0]])) as store:
        with pytest.raises(BadInput, match="2 examples of that name"):
            store.attention("e0")
        assert store.attention("e2").example == 1


@pytest.fixture(scope="module")
def two_sided() -> list[Made]:
    return random_examples(9, (6, 8), KINDS)


@pytest.fixture(scope="module")
def cross(two_sided: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("cross") / "cross.attn", two_sided, kinds=KINDS)) as opened:
        yield opened


def test_cross_maps_have_queries_of_the_target_and_keys_of_the_source(cross: Store, two_sided: list[Made]) -> None:
    one = two_sided[1]
    assert one.target is not None
    found = cross.attention(1, kind="cross", layer=2)
    np.testing.assert_array_equal(found.weights, stored(one.maps["cross"])[2])
    assert (found.queries, found.keys) == (tuple(one.target.tokens), tuple(one.source.tokens))
    words = cross.attention(1, kind="cross", layer=2, level="word")
    expected = word_map(stored(one.maps["cross"])[2], one.frame(KINDS["cross"]), specials=True)
    np.testing.assert_array_equal(words.weights, expected)
    assert cross.attention(1).kind == "encoder"
    with pytest.raises(BadInput, match="one text onto itself"):
        cross.attention(1, kind="cross", tokens=slice(2))


def test_an_example_without_a_map_of_that_kind_says_so(two_sided: list[Made], tmp_path: Path) -> None:
    # The maker writes a map for every kind; a null offset is what ingest writes for an example without a target.
    spoilt = Made("none", two_sided[0].source, two_sided[0].maps, two_sided[0].target, {"cell_cross": None})
    with open_store(make_store(tmp_path / "none.attn", [two_sided[1], spoilt], kinds=KINDS)) as store:
        with pytest.raises(NotStored, match="none has no map of this kind"):
            store.attention(1, kind="cross")
        assert store.attention(1, kind="decoder").example == 1
        found = store.sql("select distinct example from attention where kind = 'cross'")
        assert [row["example"] for row in found] == [0]


def test_layers_and_heads_that_were_not_kept_are_named(made: list[Made], tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "part.attn", made, kept=Kept("all", (1,), (0, 2), None))) as store:
        np.testing.assert_array_equal(
            store.attention(3, layer=1, head=[0, 2]).weights, stored(made[3].maps["encoder"])[1, [0, 2]]
        )
        with pytest.raises(NotStored, match="layer 0 were not kept; expected layers 1"):
            store.attention(3)
        with pytest.raises(NotStored, match="head 1 were not kept; expected heads 0, 2"):
            store.attention(3, layer=1)


def test_a_store_of_facts_has_no_maps_to_show(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "facts.attn", made, kept=Kept("none", None, None, None))
    with open_store(root) as store, pytest.raises(NotStored, match="facts, no maps"):
        store.attention(3, layer=1)


def test_weights_that_a_store_of_the_largest_left_out_are_unknown(made: list[Made], tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "topk.attn", made, kept=Kept("topk", None, None, 3))) as store:
        found = store.attention(3)
        weights = made[3].maps["encoder"]
        for layer in range(2):
            key, weight, _ = largest(weights[layer], 3)
            expected = np.full(weights.shape[1:], np.nan, np.float32)
            np.put_along_axis(expected, key.astype(np.intp), stored(weight), axis=2)
            np.testing.assert_array_equal(found.weights[layer], expected)
        # Three words and two special tokens: all five keys are kept by the five largest, none by more.
        for asked in ({"level": "word"}, {"renormalise": True}):
            with pytest.raises(NotStored, match="3 largest weights"):
                store.attention(3, **asked)


def test_the_map_hands_itself_over(store: Store) -> None:
    found = store.attention(2, layer=1, head=0)
    np.testing.assert_array_equal(np.asarray(found), found.weights)
    assert np.asarray(found, np.float64).dtype == np.float64
    assert found.to_numpy() is found.weights
    frame = found.to_pandas()
    assert list(frame.index) == list(frame.columns) == list(found.queries)
    np.testing.assert_array_equal(frame.to_numpy(), found.weights)
    array = store.attention(2, layer=1).to_xarray()
    assert array.dims == ("head", "query", "key")
    assert int(array.layer) == 1
    assert array.coords["head"].values.tolist() == [0, 1, 2]
    assert array.query_label.values.tolist() == list(found.queries)
    assert (array.attrs["kind"], array.attrs["example"]) == ("encoder", 2)
    with pytest.raises(BadInput, match="head, query, key"):
        store.attention(2, layer=1).to_pandas()


def test_the_map_shows_itself(store: Store, made: list[Made], tmp_path: Path) -> None:
    found = store.attention(2, layer=1, head=0)
    assert repr(found) == "<AttentionMap encoder tokens of example 2 (e2), layer 1, head 0 [query: 5, key: 5]>"
    assert found._repr_html_().count("<td") == 25
    assert "<td" not in store.attention(2)._repr_html_()
    hostile = Made("<b>", made[2].source, made[2].maps)
    with open_store(make_store(tmp_path / "hostile.attn", [hostile])) as opened:
        assert "<b>" not in opened.attention(0, layer=0, head=0)._repr_html_()
