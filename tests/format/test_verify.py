"""`verify` passes a sound store, and names the rule and the file of every damage."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import Damaged
from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.commit import commit, describe, publish, seal, stage
from attnstore.format.manifest import read_unit
from attnstore.format.quantise import PRECISIONS
from attnstore.format.verify import verify
from tests.forging import repin

SEGMENT = "segments/000000"


@pytest.fixture
def copy(tiny_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_store, tmp_path / "copy.attn"))


def rules(store: Path, *, deep: bool = False) -> set[tuple[str, str]]:
    return {(finding.rule, finding.where) for finding in verify(store, deep=deep)}


@pytest.mark.parametrize("keys", [{}, {"keep__precision": "exact"}, {"keep__precision": "compact"}])
@pytest.mark.parametrize("maps", ["all", "topk:2", "none"])
def test_a_sound_store_breaks_no_rule(make_store: Callable[..., Path], keys: dict[str, str], maps: str) -> None:
    assert verify(make_store(keep__maps=maps, **keys), deep=True) == []


def test_a_store_with_chosen_layers_breaks_no_rule(make_store: Callable[..., Path]) -> None:
    assert verify(make_store(keep__layers=[1], keep__heads=[2, 0]), deep=True) == []


def test_a_deleted_file_breaks_f4(copy: Path) -> None:
    (copy / SEGMENT / "words.parquet").unlink()
    assert rules(copy) == {("F4", f"{SEGMENT}/words.parquet")}


def test_a_truncated_shard_breaks_f4(copy: Path) -> None:
    shard = copy / SEGMENT / "maps.zarr/encoder/c/1/0/0"
    shard.write_bytes(shard.read_bytes()[:-1])
    assert rules(copy) == {("F4", f"{SEGMENT}/maps.zarr/encoder/c/1/0/0")}


def test_a_link_in_place_of_a_file_breaks_f4(copy: Path, tiny_store: Path) -> None:
    path = copy / SEGMENT / "tokens.parquet"
    path.unlink()
    path.symlink_to(tiny_store / SEGMENT / "tokens.parquet")
    assert rules(copy) == {("F4", f"{SEGMENT}/tokens.parquet")}


def test_every_flipped_bit_breaks_f5(copy: Path) -> None:
    rng = np.random.default_rng(0)
    for file in read_unit(copy, SEGMENT).files:
        path = copy / SEGMENT / file.path
        good = path.read_bytes()
        bad = bytearray(good)
        bad[int(rng.integers(len(bad)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        assert rules(copy) == {("F5", f"{SEGMENT}/{file.path}")}
        path.write_bytes(good)
    assert rules(copy) == set()


def test_swapped_shards_break_f5(copy: Path) -> None:
    layers = [copy / SEGMENT / f"maps.zarr/encoder/c/{layer}/0/0" for layer in (0, 1)]
    first, second = (path.read_bytes() for path in layers)
    layers[0].write_bytes(second)
    layers[1].write_bytes(first)
    found = rules(copy)
    assert {where for _, where in found} == {f"{SEGMENT}/maps.zarr/encoder/c/{layer}/0/0" for layer in (0, 1)}


def test_a_foreign_file_breaks_f6(copy: Path) -> None:
    (copy / SEGMENT / "notes.txt").write_text("x")
    assert rules(copy) == {("F6", f"{SEGMENT}/notes.txt")}


def test_an_edited_manifest_breaks_f3(copy: Path) -> None:
    path = copy / SEGMENT / "segment.json"
    path.write_text(path.read_text().replace('"examples": 7', '"examples": 8'))
    assert rules(copy) == {("F3", f"{SEGMENT}/segment.json")}


def test_a_deleted_segment_breaks_f3(copy: Path) -> None:
    shutil.rmtree(copy / SEGMENT)
    assert rules(copy) == {("F3", SEGMENT)}


def forged(store: Path, tmp_path: Path, change: Callable[[Path], None]) -> Path:
    """The same store with other content under a manifest and snapshot that fit it."""
    unit = read_unit(store, SEGMENT)
    root = tmp_path / "forged.attn"
    root.mkdir()
    shutil.copy(store / "store.json", root)
    staging = stage(root, SEGMENT)
    shutil.copytree(store / SEGMENT, staging, dirs_exist_ok=True)
    (staging / "segment.json").unlink()
    change(staging)
    seal(staging, SEGMENT, unit.facts, unit.rows)
    publish(staging, root, SEGMENT)
    commit(root, json.loads((root / "store.json").read_text())["store_id"])
    return root


def rewritten_maps(staging: Path, factor: float, cells: int = 818) -> None:
    shutil.rmtree(staging / "maps.zarr")
    code = PRECISIONS["standard"]
    maps = MapsWriter(staging / "maps.zarr", {"encoder": ArraySpec(2, 3, cells, code.dtype, code.fill)})
    for layer in range(2):
        maps.append("encoder", layer, code.encode(np.full((3, cells), factor, np.float32)))
    maps.close()


def test_rows_that_do_not_sum_to_one_break_f12(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    lengths = pq.read_table(tiny_store / SEGMENT / "examples.parquet")["n_tokens"].to_numpy()
    cells = int((lengths**2).sum())
    store = forged(tiny_store, tmp_path, lambda staging: rewritten_maps(staging, 0.5, cells))
    assert rules(store) == set()
    assert rules(store, deep=True) == {("F12", f"{SEGMENT}/maps.zarr/encoder")}


def test_maps_of_another_size_break_f8(tiny_store: Path, tmp_path: Path) -> None:
    store = forged(tiny_store, tmp_path, lambda staging: rewritten_maps(staging, 0.5, 11))
    assert rules(store) == {("F8", f"{SEGMENT}/maps.zarr/encoder")}


def test_an_absent_shard_breaks_f12_not_f4_when_the_manifest_agrees(tiny_store: Path, tmp_path: Path) -> None:
    store = forged(tiny_store, tmp_path, lambda staging: (staging / "maps.zarr/encoder/c/0/0/0").unlink())
    assert rules(store) == set()
    assert rules(store, deep=True) == {("F12", f"{SEGMENT}/maps.zarr/encoder")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"name": "zstd"', '"name": "numcodecs.pickle"'),
        ('"float16"', '"complex128"'),
        ("65536", "99999999999"),
        ('"zarr_format": 3', '"zarr_format": 2'),
    ],
)
def test_foreign_array_metadata_breaks_f8_before_a_byte_is_read(
    tiny_store: Path, tmp_path: Path, old: str, new: str
) -> None:
    def change(staging: Path) -> None:
        path = staging / "maps.zarr/encoder/zarr.json"
        text = path.read_text()
        if old == "65536":  # the tiny store has smaller chunks
            chunk = json.loads(text)["codecs"][0]["configuration"]["chunk_shape"][2]
            assert str(chunk) in text
            path.write_text(text.replace(str(chunk), new))
        else:
            assert old in text
            path.write_text(text.replace(old, new))

    found = rules(forged(tiny_store, tmp_path, change))
    assert {rule for rule, _ in found} == {"F8"}


def test_a_table_with_rows_missing_breaks_f7_and_f9(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    def change(staging: Path) -> None:
        path = staging / "examples.parquet"
        pq.write_table(pq.read_table(path).slice(0, 5), path)

    found = {rule for rule, _ in rules(forged(tiny_store, tmp_path, change))}
    assert {"F7", "F9"} <= found


def test_a_file_is_described_by_its_size_and_checksums(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    described = describe(tmp_path / "empty", "empty")
    assert (described.bytes, described.crc32c) == (0, "00000000")
    assert described.sha256.startswith("e3b0c44298fc1c14")


def resealed_examples(staging: Path, column: str, value: object) -> None:
    """Put a null or another value into a column of every example."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = staging / "examples.parquet"
    table = pq.read_table(path)
    index = table.schema.get_field_index(column)
    changed = pa.array([value] * len(table), table.schema.field(index).type)
    pq.write_table(table.set_column(index, table.schema.field(index), changed), path)


def test_examples_that_disown_their_cells_break_f10(tiny_store: Path, tmp_path: Path) -> None:
    store = forged(tiny_store, tmp_path, lambda staging: resealed_examples(staging, "cell_encoder", None))
    assert rules(store) == {("F10", f"{SEGMENT}/examples.parquet")}


def test_examples_without_a_column_break_f7_and_nothing_crashes(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    def change(staging: Path) -> None:
        path = staging / "examples.parquet"
        pq.write_table(pq.read_table(path).drop_columns(["cell_encoder"]), path)

    store = forged(tiny_store, tmp_path, change)
    assert rules(store, deep=True) == {("F7", f"{SEGMENT}/examples.parquet")}


def test_negative_weights_break_f12_although_the_rows_sum_to_one(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    lengths = pq.read_table(tiny_store / SEGMENT / "examples.parquet").sort_by("cell_encoder")["n_tokens"].to_pylist()
    # Of each row the first weight is 2, the second -1, the others 0.
    rows = np.concatenate([np.tile([2.0, -1.0] + [0.0] * (n - 2), n) for n in lengths]).astype(np.float16)

    def change(staging: Path) -> None:
        shutil.rmtree(staging / "maps.zarr")
        maps = MapsWriter(staging / "maps.zarr", {"encoder": ArraySpec(2, 3, len(rows), "float16", np.nan)})
        for layer in range(2):
            maps.append("encoder", layer, np.tile(rows, (3, 1)))
        maps.close()

    store = forged(tiny_store, tmp_path, change)
    assert rules(store, deep=True) == {("F12", f"{SEGMENT}/maps.zarr/encoder")}


def test_maps_of_another_type_than_the_precision_break_f8(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    lengths = pq.read_table(tiny_store / SEGMENT / "examples.parquet")["n_tokens"].to_numpy()

    def change(staging: Path) -> None:
        shutil.rmtree(staging / "maps.zarr")
        spec = ArraySpec(2, 3, int((lengths**2).sum()), "float32", np.nan)
        maps = MapsWriter(staging / "maps.zarr", {"encoder": spec})
        for layer in range(2):
            maps.append("encoder", layer, np.zeros((3, spec.cells), np.float32))
        maps.close()

    assert rules(forged(tiny_store, tmp_path, change)) == {("F8", f"{SEGMENT}/maps.zarr/encoder")}


@pytest.mark.parametrize(
    ("old", "new"), [('"fill_value": "NaN"', '"fill_value": 0.0'), ('"head",\n    "cell"', '"cell",\n    "head"')]
)
def test_a_fill_value_that_is_a_weight_and_swapped_dimensions_break_f8(
    tiny_store: Path, tmp_path: Path, old: str, new: str
) -> None:
    def change(staging: Path) -> None:
        path = staging / "maps.zarr/encoder/zarr.json"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    assert rules(forged(tiny_store, tmp_path, change)) == {("F8", f"{SEGMENT}/maps.zarr/encoder")}


def test_a_broken_group_breaks_f8(tiny_store: Path, tmp_path: Path) -> None:
    store = forged(tiny_store, tmp_path, lambda staging: (staging / "maps.zarr/zarr.json").unlink())
    assert rules(store) == {("F8", f"{SEGMENT}/maps.zarr/zarr.json")}


@pytest.mark.parametrize("name", ["encoder_topk_key", "encoder_topk_rest"])
def test_a_lost_key_or_rest_of_the_largest_weights_is_found(
    make_store: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    store = make_store(keep__maps="topk:2")
    missing = forged(store, tmp_path, lambda staging: (staging / f"maps.zarr/{name}/c/1/0/0").unlink())
    assert rules(missing) == set()
    # Keys read as "no key" beside a weight, the rest as NaN.
    wanted = "F11" if name == "encoder_topk_key" else "F12"
    assert rules(missing, deep=True) == {(wanted, f"{SEGMENT}/maps.zarr/encoder")}


def with_info(store: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change store.json, as somebody who makes its hashes right."""
    info = json.loads((store / "store.json").read_text())
    change(info)
    (store / "store.json").write_text(json.dumps(info))
    return repin(store)


def test_rows_may_sum_to_less_only_where_the_model_is_declared_to_do_so(tiny_store: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    cells = int((pq.read_table(tiny_store / SEGMENT / "examples.parquet")["n_tokens"].to_numpy() ** 2).sum())
    # The longest example has 18 tokens, whose rows of 0.05 sum to 0.9.
    store = forged(tiny_store, tmp_path, lambda staging: rewritten_maps(staging, 0.05, cells))
    assert rules(store, deep=True) == {("F12", f"{SEGMENT}/maps.zarr/encoder")}
    with_info(store, lambda info: info["model"].update(row_sums="at most one"))
    # The facts know other weights, but nothing is said of sums any more.
    assert rules(store, deep=True) == {("F15", f"{SEGMENT}/maps.zarr/encoder")}
    more = tmp_path / "more"
    more.mkdir()
    store = with_info(
        forged(tiny_store, more, lambda staging: rewritten_maps(staging, 0.5, cells)),
        lambda info: info["model"].update(row_sums="at most one"),
    )
    assert rules(store, deep=True) == {("F12", f"{SEGMENT}/maps.zarr/encoder")}


def test_a_manifest_of_another_segment_breaks_f3(copy: Path, tmp_path: Path) -> None:
    path = copy / SEGMENT / "segment.json"
    path.write_text(path.read_text().replace('"id": "000000"', '"id": "000001"'))
    (copy / "snapshots/00000001.json").unlink()
    commit(copy, json.loads((copy / "store.json").read_text())["store_id"])
    assert rules(copy) == {("F3", f"{SEGMENT}/segment.json")}


@pytest.mark.parametrize(
    "change",
    [
        lambda info: info.update(precision="half"),
        lambda info: info.update(model=[1]),
        lambda info: info["kept"].update(maps="some"),
        lambda info: info["kinds"]["encoder"].update(queries="left"),
    ],
)
def test_a_description_that_cannot_be_meant_is_damage(copy: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(Damaged):
        verify(with_info(copy, change), deep=True)
