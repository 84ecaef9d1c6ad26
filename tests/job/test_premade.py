"""Maps made elsewhere are taken as they are, and refused by file and line where they cannot be right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr

from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest

UNIFORM = np.full((1, 2, 3, 3), 1 / 3, np.float32)
LINE = {"text": "big cat", "tokens": ["big", "cat", "[SEP]"], "special": [None, None, "sep"], "maps": "maps.npz"}


def corpus(tmp_path: Path, line: dict[str, Any], **maps: Any) -> Recipe:
    np.savez(tmp_path / "maps.npz", **maps)
    (tmp_path / "c.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    value = {"corpus": {"kind": "arrays", "path": "c.jsonl"}, "model": {"name": "elsewhere"}}
    return Recipe.build(value, folder=tmp_path)


def test_spans_are_found_in_the_text(tmp_path: Path) -> None:
    ingest(corpus(tmp_path, LINE, encoder=UNIFORM), tmp_path / "s").close()
    tokens = pq.read_table(tmp_path / "s/segments/000000/tokens.parquet").to_pylist()
    assert [(t["text"], t["start_char"], t["end_char"], t["special"]) for t in tokens] == [
        ("big", 0, 3, None),
        ("cat", 4, 7, None),
        ("[SEP]", None, None, "sep"),
    ]


def test_a_zarr_group_serves_like_an_npz_file(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "maps.zarr")
    group.create_array("encoder", data=UNIFORM)
    recipe = corpus(tmp_path, {**LINE, "maps": "maps.zarr"})
    ingest(recipe, tmp_path / "s").close()
    stored = zarr.open_group(tmp_path / "s/segments/000000/maps.zarr", mode="r")["encoder"]
    assert np.allclose(stored[:], 1 / 3, atol=2**-11)


def test_decoder_and_cross_maps_lie_on_their_own_sides(tmp_path: Path) -> None:
    line = {**LINE, "target": "chat", "target_tokens": ["<s>", "chat"], "target_special": ["bos", None]}
    causal = np.array([[1, 0], [0.5, 0.5]], np.float32)[None, None].repeat(2, axis=1)
    cross = np.full((1, 2, 2, 3), 1 / 3, np.float32)
    recipe = corpus(tmp_path, line, encoder=UNIFORM, decoder=causal, cross=cross)
    ingest(recipe, tmp_path / "s").close()
    (example,) = pq.read_table(tmp_path / "s/segments/000000/examples.parquet").to_pylist()
    assert (example["n_tokens"], example["n_target_tokens"]) == (3, 2)
    maps = zarr.open_group(tmp_path / "s/segments/000000/maps.zarr", mode="r")
    assert {name: array.shape for name, array in maps.arrays()} == {
        "encoder": (1, 2, 9),
        "decoder": (1, 2, 4),
        "cross": (1, 2, 6),
    }


@pytest.mark.parametrize(
    ("change", "maps", "message"),
    [
        ({}, {"encoder": UNIFORM[:, :, :2, :2]}, r"the shape \[1, 2, 2, 2\] for encoder; expected \[1, 2, 3, 3\]"),
        ({}, {"encoder": UNIFORM[0]}, r"\[layer, head, query, key\]"),
        ({}, {"attention": UNIFORM}, "one of encoder, decoder, cross"),
        ({}, {"encoder": UNIFORM * 0.5}, "layer 0, head 0, query 0: the row sums to 0.5"),
        ({}, {"encoder": UNIFORM * np.nan}, "the row sums to nan"),
        ({}, {"decoder": UNIFORM}, "weights on later tokens"),
        ({"tokens": []}, {"encoder": UNIFORM}, "a list of strings"),
        ({"tokens": None}, {"encoder": UNIFORM}, "a list of strings"),
        ({"special": [None]}, {"encoder": UNIFORM}, "special does not match tokens"),
        ({"maps": "other.npz"}, {"encoder": UNIFORM}, "no file"),
        ({"maps": 3}, {"encoder": UNIFORM}, "the path of an npz file"),
        ({"maps": "c.jsonl"}, {"encoder": UNIFORM}, "cannot be read"),
        ({}, {"encoder": UNIFORM.astype(complex)}, "it holds complex128, not numbers"),
        ({}, {"encoder": UNIFORM.astype(str)}, "not numbers"),
        ({}, {"encoder": UNIFORM.astype(np.float64) * 1e300}, "the row sums to inf"),
        ({"special": [None, None, "SEP"]}, {"encoder": UNIFORM}, r"special\[2\] = SEP; expected null or one of cls"),
        ({"parts": [0, 1, None]}, {"encoder": UNIFORM}, r"parts\[1\] = 1; expected null, 0, or 1 in a pair"),
        ({"parts": [0, "0", None]}, {"encoder": UNIFORM}, r"parts\[1\] = 0"),
        ({"token_ids": [1, 2.5, 3]}, {"encoder": UNIFORM}, r"token_ids\[1\] = 2\.5; expected a number from 0"),
        ({"token_ids": [1, 2, 2**40]}, {"encoder": UNIFORM}, r"token_ids\[2\]"),
        ({"type_ids": [0, 0, -1]}, {"encoder": UNIFORM}, r"type_ids\[2\]"),
        ({"spans": [[0, 3], [4], None]}, {"encoder": UNIFORM}, r"spans\[1\] = \[4\]; expected null, or \[start, end\]"),
        ({"spans": [[0, 3], [4, 9], None]}, {"encoder": UNIFORM}, "in a text of 7 characters"),
        ({"spans": [[3, 0], [4, 7], None]}, {"encoder": UNIFORM}, r"spans\[0\]"),
    ],
)
def test_maps_that_cannot_be_right_are_refused(
    tmp_path: Path, change: dict[str, Any], maps: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        ingest(corpus(tmp_path, {**LINE, **change}, **maps), tmp_path / "s")
    assert "c.jsonl" in str(caught.value)
    assert not list((tmp_path / "s").glob("segments/*")) if (tmp_path / "s").exists() else True


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    recipe = corpus(tmp_path, LINE, encoder=np.array([print], dtype=object))
    with pytest.raises(BadInput, match=r"cannot be read \(Object arrays"):
        ingest(recipe, tmp_path / "s")


def test_weights_above_one_are_refused(make_store: Callable[..., Path], tmp_path: Path) -> None:
    weights = UNIFORM.copy()
    weights[0, 1, 2] = [1.5, -0.5, 0.0]
    with pytest.raises(BadInput, match=r"weights from -0\.5 to 1\.5"):
        ingest(corpus(tmp_path, LINE, encoder=weights), tmp_path / "s")


def test_spans_that_tokenizers_give_are_taken(tmp_path: Path) -> None:
    # An empty span for a special token is how tokenizers say that it has no place.
    recipe = corpus(tmp_path, {**LINE, "spans": [[0, 3], [4, 7], [0, 0]]}, encoder=UNIFORM)
    ingest(recipe, tmp_path / "s").close()
    tokens = pq.read_table(tmp_path / "s/segments/000000/tokens.parquet").to_pylist()
    assert [(t["start_char"], t["end_char"]) for t in tokens] == [(0, 3), (4, 7), (None, None)]


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    recipe = corpus(tmp_path, {**LINE, "name": "a"}, encoder=UNIFORM)
    path = tmp_path / "c.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(BadInput, match=r"line 2: the name 'a' again, after c\.jsonl:1"):
        ingest(recipe, tmp_path / "s")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_every_way_of_writing_an_npz_file_is_read(tmp_path: Path, save: Any, layout: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    maps = rng.random((3, 2, 3, 3))
    maps = (maps / maps.sum(axis=-1, keepdims=True)).astype(dtype)
    recipe = corpus(tmp_path, LINE, encoder=UNIFORM)
    save(tmp_path / "maps.npz", encoder=np.asarray(maps, order=layout))
    ingest(Recipe.build(recipe.record(), {"keep.precision": "exact"}, folder=tmp_path), tmp_path / "s").close()
    stored = zarr.open_group(tmp_path / "s/segments/000000/maps.zarr", mode="r")["encoder"][:]
    assert np.array_equal(stored.reshape(maps.shape), maps.astype(np.float32))


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_truncated_npz_file_is_named(tmp_path: Path, keep: float) -> None:
    recipe = corpus(tmp_path, LINE, encoder=np.full((4, 8, 3, 3), 1 / 3, np.float32))
    data = (tmp_path / "maps.npz").read_bytes()
    (tmp_path / "maps.npz").write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(BadInput, match=r"maps\.npz cannot be read"):
        ingest(recipe, tmp_path / "s")


def test_a_flipped_bit_in_an_npz_file_is_named(tmp_path: Path) -> None:
    # 1/3 becomes 0.33333334 or so: no sum of a row would tell, but the file's own checksum does.
    recipe = corpus(tmp_path, LINE, encoder=np.full((4, 8, 3, 3), 1 / 3, np.float32))
    data = bytearray((tmp_path / "maps.npz").read_bytes())
    place = data.index(np.float32(1 / 3).tobytes() * 3)
    data[place] ^= 1
    (tmp_path / "maps.npz").write_bytes(data)
    with pytest.raises(BadInput, match=r"maps\.npz cannot be read \(Bad CRC"):
        ingest(recipe, tmp_path / "s")


def test_an_example_may_lack_the_target_side(tmp_path: Path) -> None:
    line = {**LINE, "name": "both", "target": "chat", "target_tokens": ["<s>", "chat"], "maps": "both.npz"}
    causal = np.array([[1, 0], [0.5, 0.5]], np.float32)[None, None].repeat(2, axis=1)
    np.savez(tmp_path / "both.npz", encoder=UNIFORM, decoder=causal, cross=np.full((1, 2, 2, 3), 1 / 3, np.float32))
    recipe = corpus(tmp_path, line, encoder=UNIFORM)
    with (tmp_path / "c.jsonl").open("a") as file:
        file.write(json.dumps({**LINE, "name": "one"}) + "\n")
    ingest(recipe, tmp_path / "s").close()
    rows = pq.read_table(tmp_path / "s/segments/000000/examples.parquet").to_pylist()
    assert {row["name"]: row["cell_decoder"] for row in rows} == {"both": 0, "one": None}
    assert verify(tmp_path / "s", deep=True) == []
