"""Tests that maps written for other programs are those of `store.attention`, and whole or absent."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from attnstore.errors import BadInput, NoSpace, NotFound, NotStored
from attnstore.format.manifest import Kept
from attnstore.share import others
from attnstore.share.chosen_maps import ChosenMaps
from attnstore.share.others import DIGITS, FORMS, export_maps
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, make_store, random_examples


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = random_examples(12, (6, 9, 4, 11, 7), {"encoder": ENCODER})
    with open_store(make_store(tmp_path_factory.mktemp("x") / "x.attn", made)) as opened:
        yield opened


@pytest.fixture(scope="module")
def three_kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = random_examples(3, (5, 7), KINDS)
    with open_store(make_store(tmp_path_factory.mktemp("k") / "k.attn", made, kinds=KINDS)) as opened:
        yield opened


@pytest.fixture(scope="module")
def largest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of the two largest weights of each row."""
    made = random_examples(12, (6, 9), {"encoder": ENCODER})
    with open_store(
        make_store(tmp_path_factory.mktemp("t") / "t.attn", made, kept=Kept("topk", None, None, 2))
    ) as opened:
        yield opened


@pytest.mark.parametrize("level", ["token", "word"])
def test_npz_holds_the_maps_and_their_labels(store: Store, tmp_path: Path, level: Any) -> None:
    assert export_maps(ChosenMaps(store, level=level), tmp_path / "m.npz", "npz") == 5
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert file["examples"].tolist() == [0, 1, 2, 3, 4]
        assert str(file["content_hash"]) == store.snapshot.content_hash
        assert str(file["level"]) == level
        for example, name in zip(range(5), file["names"].tolist(), strict=True):
            found = store.attention(example, level=level)
            np.testing.assert_array_equal(file[f"{example}/weights"], found.weights)
            assert file[f"{example}/queries"].tolist() == list(found.queries)
            assert (file[f"{example}/keys"].tolist(), name) == (list(found.keys), found.name)


def test_csv_has_every_cell_to_the_last_digit(store: Store, tmp_path: Path) -> None:
    assert export_maps(ChosenMaps(store, where="example in (0, 2, 4)"), tmp_path / "m.csv", "csv") == 3
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["example", "kind", "layer", "head", "query", "key", "weight"]
    found: dict[int, Any] = {n: np.full_like(store.attention(n).weights, np.nan) for n in (0, 2, 4)}
    for row in rows:
        place = tuple(int(row[name]) for name in ("layer", "head", "query", "key"))
        assert np.isnan(found[int(row["example"])][place])  # each cell once
        found[int(row["example"])][place] = np.float32(row["weight"])
        assert row["kind"] == "encoder"
    for example, weights in found.items():
        np.testing.assert_array_equal(weights, store.attention(example).weights)


def test_csv_has_no_row_for_a_weight_that_was_not_kept(largest: Store, tmp_path: Path) -> None:
    export_maps(ChosenMaps(largest), tmp_path / "m.csv", "csv")
    lines = (tmp_path / "m.csv").read_text().splitlines()
    n_queries = sum(len(largest.attention(example).queries) for example in (0, 1))
    assert len(lines) - 1 == ENCODER.layers * ENCODER.heads * n_queries * 2
    assert "nan" not in "".join(lines)


@pytest.mark.parametrize("deep", [2**23, 1])
def test_zarr_opens_in_xarray_with_coordinates_and_nan_for_padding(
    store: Store, tmp_path: Path, deep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xarray

    from attnstore.share import padded

    monkeypatch.setattr(padded, "CHUNK_CELLS", deep)
    export_maps(ChosenMaps(store, layers=(1, 0), heads=(2,)), tmp_path / "m.zarr", "zarr")
    most = max(len(store.attention(example).queries) for example in range(5))
    with xarray.open_zarr(tmp_path / "m.zarr") as found:
        assert found["weight"].dims == ("example", "layer", "head", "query", "key")
        assert list(found.data_vars) == ["weight"]
        assert found["layer"].values.tolist() == [1, 0]
        assert found.attrs["content_hash"] == store.snapshot.content_hash
        for example in range(5):
            own = store.attention(example, layer=(1, 0), head=(2,))
            n = len(own.queries)
            one = found.sel(example=example)
            np.testing.assert_array_equal(one["weight"].values[..., :n, :n], own.weights)
            assert np.isnan(one["weight"].values).sum() == 2 * (most * most - n * n)
            assert one["query_label"].values.tolist() == [*own.queries, *[""] * (most - n)]
            assert (int(one["n_keys"]), str(one["name"].values)) == (n, own.name)
        one_head = found["weight"].sel(layer=0, head=2, example=3).values
        np.testing.assert_array_equal(one_head, store.attention(3, layer=0, head=2).weights)


def test_zarr_between_words_is_as_wide_as_the_longest_example_in_words(store: Store, tmp_path: Path) -> None:
    export_maps(ChosenMaps(store, level="word"), tmp_path / "m.zarr", "zarr")
    group = zarr.open_group(tmp_path / "m.zarr", mode="r")
    maps = [store.attention(example, level="word").weights for example in range(5)]
    assert group["weight"].shape[3:] == tuple(max(one.shape[axis] for one in maps) for axis in (2, 3))  # type: ignore[union-attr]
    for cells, own in zip(np.asarray(group["weight"]), maps, strict=True):
        np.testing.assert_array_equal(cells[:, :, : own.shape[2], : own.shape[3]], own)


@pytest.mark.slow  # torch is loaded
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # BertViz leaves its script open
def test_bertviz_draws_a_view_from_the_file(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("bertviz", reason="BertViz is not installed")
    import torch
    from bertviz import head_view  # type: ignore[import-untyped]

    export_maps(ChosenMaps(store, where="example in (1, 3)"), tmp_path / "v.json", "bertviz")
    file = json.loads((tmp_path / "v.json").read_text())
    assert [view["example"] for view in file["examples"]] == [1, 3]
    for view in file["examples"]:
        page = head_view(
            [torch.tensor(layer)[None] for layer in view["attention"]],
            view["tokens"],
            prettify_tokens=False,
            include_layers=list(range(len(file["layers"]))),
            html_action="return",
        )
        assert page is not None
        text = str(page.data)
        start = text.index('{"attention"')
        shown = json.JSONDecoder().raw_decode(text[start:])[0]["attention"][0]
        own = store.attention(view["example"])
        assert shown["left_text"] == shown["right_text"] == list(own.keys)
        np.testing.assert_allclose(np.array(shown["attn"]), own.weights, atol=10.0**-DIGITS)


def test_cross_maps_for_bertviz_have_the_tokens_of_both_sides(three_kinds: Store, tmp_path: Path) -> None:
    export_maps(ChosenMaps(three_kinds, kind="cross"), tmp_path / "v.json", "bertviz")
    for view in json.loads((tmp_path / "v.json").read_text())["examples"]:
        own = three_kinds.attention(view["example"], kind="cross")
        assert (view["decoder_tokens"], view["encoder_tokens"]) == (list(own.queries), list(own.keys))
        np.testing.assert_allclose(np.array(view["attention"]), own.weights, atol=10.0**-DIGITS)


def test_weights_that_were_not_kept_are_zero_for_bertviz(largest: Store, tmp_path: Path) -> None:
    export_maps(ChosenMaps(largest), tmp_path / "v.json", "bertviz")
    view = json.loads((tmp_path / "v.json").read_text())["examples"][0]
    assert (np.count_nonzero(np.array(view["attention"]), axis=-1) <= 2).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_failure_half_way_leaves_nothing(
    store: Store, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def third(chosen: ChosenMaps) -> Iterator[Any]:
        yield chosen.read(0)
        yield chosen.read(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(ChosenMaps, "__iter__", third)
    with pytest.raises(KeyboardInterrupt):
        export_maps(ChosenMaps(store), tmp_path / "m", form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_is_named_and_leaves_nothing(
    store: Store, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NoSpace, match="No space left"):
        export_maps(ChosenMaps(store), tmp_path / "m", form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_already_stays(store: Store, tmp_path: Path, form: str) -> None:
    (tmp_path / "m").write_text("thesis")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("m", "link"):
        with pytest.raises(BadInput, match="is there already"):
            export_maps(ChosenMaps(store), tmp_path / name, form)
    assert (tmp_path / "m").read_text() == "thesis"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "m"]


def test_what_cannot_be_exported_is_said(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "m"
    with pytest.raises(BadInput, match="the form 'hdf5'"):
        export_maps(ChosenMaps(store), target, "hdf5")
    with pytest.raises(BadInput, match="no example with a encoder map"):
        export_maps(ChosenMaps(store, where="false"), target, "npz")
    with pytest.raises(NotFound, match="layer=7"):
        export_maps(ChosenMaps(store, layers=(7,)), target, "csv")
    with pytest.raises(NotFound, match="kind='cross'"):
        export_maps(ChosenMaps(store, kind="cross"), target, "zarr")
    with pytest.raises(BadInput, match="there is no folder"):
        export_maps(ChosenMaps(store), tmp_path / "none" / "m", "npz")
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_maps_says_so(make_store: Any, tmp_path: Path) -> None:
    with open_store(make_store("facts.attn", keep__maps="none")) as facts, pytest.raises(NotStored, match="no maps"):
        export_maps(ChosenMaps(facts), tmp_path / "m.npz", "npz")


def test_one_example_is_read_at_a_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No map is kept while the next is read: memory does not grow with the corpus."""
    import weakref

    seen: list[Any] = []
    read = ChosenMaps.read

    def watched(chosen: ChosenMaps, example: int) -> Any:
        found = read(chosen, example)
        assert sum(one() is not None for one in seen) <= 1, "maps of earlier examples are held"
        seen.append(weakref.ref(found.weights))
        return found

    monkeypatch.setattr(ChosenMaps, "read", watched)
    for form in others.FORMS:
        seen.clear()
        export_maps(ChosenMaps(store), tmp_path / form, form)
        assert len(seen) == 5
