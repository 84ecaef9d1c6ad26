"""What is kept of a map is what the recipe says, and the facts beside it are those of the same map."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.typing import NDArray

import attnstore
from attnstore.format.quantise import PRECISIONS
from attnstore.format.tables import HEAD_FACTS, TOKEN_FACTS, WORD_FACTS
from attnstore.format.verify import verify
from attnstore.job import keep as keep_module
from attnstore.job.run import ingest
from attnstore.reduce.axes import Frame
from attnstore.reduce.facts import Facts, facts
from attnstore.reduce.words import word_map
from tests.conftest import arrays_recipe, random_maps, write_arrays

Maps = Mapping[str, NDArray[np.float32]]
LAYERS, HEADS = 2, 3
NO_KEY = 2**32 - 1


def array(store: Path, name: str = "encoder") -> Any:
    return zarr.open_group(store / "segments/000000/maps.zarr", mode="r")[name]


def example_rows(store: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(store / "segments/000000/examples.parquet").to_pylist()
    return sorted(rows, key=lambda row: row["example"])


def listed(store: Path, table: str, column: str, example: int) -> NDArray[Any]:
    """A column of lists over heads of one example, [layer, head, row]; a null is -1."""
    rows = pq.read_table(store / f"segments/000000/{table}.parquet", filters=[("example", "=", example)])
    rows = rows.sort_by(table.removesuffix("_facts"))
    values = np.array([[-1 if item is None else item for item in row] for row in rows[column].to_pylist()])
    return values.reshape(-1, LAYERS, HEADS).transpose(1, 2, 0)


def half_steps(store: Path, row: Mapping[str, Any]) -> NDArray[np.float32]:
    """The largest rounding error of each weight of an example's map, [layer, head, query, key]."""
    size, first = row["n_tokens"], row["cell_encoder"]
    codes = array(store)[:, :, first : first + size**2]
    with attnstore.open(store) as opened:
        bound = PRECISIONS[opened.info.precision].half_step(codes)
    return bound.reshape(LAYERS, HEADS, size, size)


@pytest.fixture(scope="module", params=list(PRECISIONS))
def store(request: pytest.FixtureRequest, arrays_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny store at each precision."""
    place = tmp_path_factory.mktemp("keep") / f"{request.param}.attn"
    ingest(arrays_recipe(arrays_corpus, keep__precision=request.param), place).close()
    return place


def both_roads(
    store: Path, maps: Maps, use: Callable[[Any, int, Facts, Facts, NDArray[np.float32], Frame], None]
) -> None:
    """Call `use` for every example and layer with its facts of the true map and of the stored one."""
    with attnstore.open(store) as opened:
        for row in example_rows(store):
            steps = half_steps(store, row)
            frame = opened.engine.frames.frame(0, "encoder", row["example"])
            for layer in range(LAYERS):
                kept = opened.attention(row["example"], layer=layer).to_numpy()
                true = maps[row["name"]][layer]
                assert (np.abs(kept - true) <= steps[layer]).all()
                use(row, layer, facts(true, frame), facts(kept, frame), steps[layer], frame)


def test_head_facts_are_those_of_the_true_map_at_every_precision(store: Path, arrays_maps: Maps) -> None:
    rows = {
        (row["example"], row["layer"], row["head"]): row
        for row in pq.read_table(store / "segments/000000/head_facts.parquet").to_pylist()
    }

    def compare(row: Any, layer: int, true: Facts, kept: Facts, steps: NDArray[np.float32], frame: Frame) -> None:
        # Every weight may be off by its step: so may their sum, and a distance by that times its length.
        slack = steps.sum(axis=(1, 2), dtype=np.float64) + 1e-6
        # |x ln x - y ln y| <= -d ln d for d = |x - y| <= 1/e; a normalised entropy is divided by ln 2 at least.
        entropy = np.where(steps > 0, -steps * np.log(np.maximum(steps, 1e-30)), 0).sum(axis=(1, 2)) / np.log(2) + 1e-5
        for head in range(HEADS):
            stored = rows[row["example"], layer, head]
            for name in HEAD_FACTS.names[4:]:
                assert stored[name] == pytest.approx(true.heads[name][head], rel=1e-12), name
                if name == "max_drop_renormalised_sum":
                    continue  # a quotient: a small denominator may enlarge the error without bound
                bound = (
                    entropy[head] if "entropy" in name else slack[head] * (row["n_tokens"] if "distance" in name else 1)
                )
                assert abs(stored[name] - kept.heads[name][head]) <= bound, name

    both_roads(store, arrays_maps, compare)
    assert len(rows) == len(arrays_maps) * LAYERS * HEADS


def test_token_facts_are_those_of_the_true_map_in_half_precision(store: Path, arrays_maps: Maps) -> None:
    def compare(row: Any, layer: int, true: Facts, kept: Facts, steps: NDArray[np.float32], frame: Frame) -> None:
        stored = {name: listed(store, "token_facts", name, row["example"])[layer] for name in TOKEN_FACTS.names[3:]}
        assert np.array_equal(stored["argmax"], true.tokens["argmax"])
        for name in ("max", "entropy_nats"):
            assert np.array_equal(stored[name], true.tokens[name].astype(np.float16).astype(float)), name
        worst = steps.max(axis=2)
        assert (np.abs(stored["max"] - kept.tokens["max"]) <= worst + 2**-11).all()
        entropy = np.where(steps > 0, -steps * np.log(np.maximum(steps, 1e-30)), 0).sum(axis=2)
        assert (np.abs(stored["entropy_nats"] - kept.tokens["entropy_nats"]) <= entropy + 2e-3).all()
        # Another key may have won by rounding, if it was that close.
        with attnstore.open(store) as opened:
            weights = opened.attention(row["example"], layer=layer).to_numpy()
        chosen = np.take_along_axis(weights, stored["argmax"][..., None].astype(int), axis=2)[..., 0]
        assert (kept.tokens["max"] - chosen <= 2 * worst).all()

    both_roads(store, arrays_maps, compare)


def test_word_facts_are_those_of_the_true_map_in_half_precision(store: Path, arrays_maps: Maps) -> None:
    def compare(row: Any, layer: int, true: Facts, kept: Facts, steps: NDArray[np.float32], frame: Frame) -> None:
        stored = {name: listed(store, "word_facts", name, row["example"])[layer] for name in WORD_FACTS.names[3:]}
        # Over words, weights are added over key pieces and averaged over query pieces: so are their errors.
        bound = word_map(steps, frame, specials=False).max(axis=(1, 2))[:, None]
        for name in ("attends_to", "attended_by"):
            assert np.array_equal(stored[name], true.words[name])
            weight = stored[f"{name}_weight"]
            assert np.array_equal(weight, true.words[f"{name}_weight"].astype(np.float16).astype(float))
            assert (np.abs(weight - kept.words[f"{name}_weight"]) <= bound + 2**-11).all()

    both_roads(store, arrays_maps, compare)


def test_the_store_reads_back_what_facts_were_kept(store: Path) -> None:
    """The tables that SQL gives are the lists that were written."""
    with attnstore.open(store) as opened:
        found = opened.sql("select * from token_facts where example = 2 and layer = 1 and head = 2 order by token")
        assert [row["argmax"] for row in found] == listed(store, "token_facts", "argmax", 2)[1, 2].tolist()


def test_chosen_layers_and_heads_keep_their_numbers(make_store: Callable[..., Path], arrays_maps: Maps) -> None:
    store = make_store(keep__layers=[1], keep__heads=[2, 0], keep__precision="exact")
    assert array(store).attrs["kept_layers"] == [1]
    assert array(store).attrs["kept_heads"] == [0, 2]
    for row in example_rows(store):
        size, first = row["n_tokens"], row["cell_encoder"]
        cells = array(store)[:, :, first : first + size**2].reshape(LAYERS, HEADS, size, size)
        assert np.array_equal(cells[1, [0, 2]], arrays_maps[row["name"]][1, [0, 2]])
        assert np.isnan(cells[0]).all()
        assert np.isnan(cells[1, 1]).all()
    whole = make_store("whole.attn", keep__precision="exact")
    facts_of = lambda place: pq.read_table(place / "segments/000000/head_facts.parquet")  # noqa: E731
    assert facts_of(store).equals(facts_of(whole))  # facts are of every head


@pytest.mark.parametrize("precision", list(PRECISIONS))
@pytest.mark.parametrize("topk", [1, 3, 50])
def test_topk_rows_hold_the_largest_weights_in_order_and_the_rest(
    make_store: Callable[..., Path], arrays_maps: Maps, topk: int, precision: str
) -> None:
    store = make_store(keep__maps=f"topk:{topk}", keep__precision=precision)
    decode = PRECISIONS[precision].decode
    arrays = {name: array(store, f"encoder_topk_{name}") for name in ("key", "weight", "rest")}
    for row in example_rows(store):
        size, first = row["n_tokens"], row["cell_encoder"]
        cells = slice(first, first + size * topk)
        key, code = (arrays[name][:, :, cells].reshape(LAYERS, HEADS, size, topk) for name in ("key", "weight"))
        rest = arrays["rest"][:, :, first // topk : first // topk + size]
        true = arrays_maps[row["name"]]
        n = min(topk, size)
        assert (key[..., n:] == NO_KEY).all()
        assert (decode(code[..., n:]) == 0).all()
        kept = np.take_along_axis(true, key[..., :n].astype(np.int64), axis=3)
        assert np.array_equal(kept, -np.sort(-true, axis=3)[..., :n])
        # Each row names each key once, and what is missing from 1 is the rest.
        assert (np.sort(key[..., :n], axis=3)[..., 1:] != np.sort(key[..., :n], axis=3)[..., :-1]).all()
        assert np.allclose(kept.sum(axis=3) + rest, true.sum(axis=3), atol=1e-6)
        assert (np.abs(decode(code[..., :n]) - kept) <= PRECISIONS[precision].half_step(code[..., :n])).all()
    assert verify(store, deep=True) == []


def test_topk_of_a_row_by_hand(tmp_path: Path) -> None:
    # Row 0: .25 .25 .5: the largest is key 2; of the two equal ones the lower key comes first. Row 1 has one weight.
    maps = np.array([[0.25, 0.25, 0.5], [0, 1, 0], [0.125, 0.5, 0.375]], np.float32)[None, None]
    np.savez(tmp_path / "m.npz", encoder=maps)
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": "a b c", "tokens": ["a", "b", "c"], "maps": "m.npz"}))
    ingest(arrays_recipe(tmp_path / "c.jsonl", keep__maps="topk:2"), tmp_path / "s").close()
    assert array(tmp_path / "s", "encoder_topk_key")[0, 0].tolist() == [2, 0, 1, 0, 1, 2]
    assert array(tmp_path / "s", "encoder_topk_weight")[0, 0].tolist() == [0.5, 0.25, 1, 0, 0.5, 0.375]
    assert array(tmp_path / "s", "encoder_topk_rest")[0, 0].tolist() == [0.25, 0, 0.125]


def test_without_maps_the_facts_stay(make_store: Callable[..., Path], tiny_store: Path) -> None:
    store = make_store(keep__maps="none")
    assert not (store / "segments/000000/maps.zarr").exists()
    assert {row["cell_encoder"] for row in example_rows(store)} == {None}
    for table in ("head_facts", "token_facts", "word_facts"):
        path = f"segments/000000/{table}.parquet"
        assert pq.read_table(store / path).equals(pq.read_table(tiny_store / path))


def test_without_facts_the_maps_stay(make_store: Callable[..., Path], tiny_store: Path) -> None:
    store = make_store(keep__facts="none")
    assert {path.name for path in (store / "segments/000000").glob("*_facts.parquet")} == set()
    for layer in range(LAYERS):
        shard = f"segments/000000/maps.zarr/encoder/c/{layer}/0/0"
        assert (store / shard).read_bytes() == (tiny_store / shard).read_bytes()


@pytest.mark.parametrize("maps", ["all", "topk:3"])
def test_the_block_size_changes_no_byte(
    make_store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, maps: str
) -> None:
    stores = [make_store("large.attn", keep__maps=maps)]
    monkeypatch.setattr(keep_module, "BLOCK_CELLS", 1)  # one query at a time
    stores.append(make_store("small.attn", keep__maps=maps))
    shards = [sorted((store / "segments").rglob("c/*/0/0")) for store in stores]
    assert len(shards[0]) == len(shards[1]) >= LAYERS
    for one, other in zip(*shards, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_cells_follow_one_another_in_run_order(store: Path) -> None:
    rows = sorted(example_rows(store), key=lambda row: row["cell_encoder"])
    lengths = [row["n_tokens"] for row in rows]
    assert lengths == sorted(lengths)  # batches of like length
    assert [row["cell_encoder"] for row in rows] == [sum(n * n for n in lengths[:i]) for i in range(len(lengths))]
    assert array(store).shape == (LAYERS, HEADS, sum(n * n for n in lengths))


@pytest.fixture
def two_depths(tmp_path: Path) -> Callable[..., Path]:
    """Makes a store whose encoder has 1 layer of 2 heads, and whose decoder has 3 of 4."""
    rng = np.random.default_rng(3)
    maps = {"encoder": random_maps(rng, 1, 2, 2, 2), "cross": random_maps(rng, 3, 4, 3, 2)}
    np.savez(tmp_path / "m.npz", decoder=random_maps(rng, 3, 4, 3, 3, causal=True), **maps)
    line = {"text": "a b", "tokens": ["a", "b"], "target": "c d e", "target_tokens": ["c", "d", "e"], "maps": "m.npz"}
    (tmp_path / "c.jsonl").write_text(json.dumps(line))

    def make(**keys: Any) -> Path:
        ingest(arrays_recipe(tmp_path / "c.jsonl", **keys), tmp_path / "s").close()
        return tmp_path / "s"

    return make


def test_kinds_of_different_depth_each_keep_the_layers_they_have(two_depths: Callable[..., Path]) -> None:
    store = two_depths(keep__layers=[0, 2], keep__heads=[1, 3])
    encoder, cross = (array(store, kind)[:] for kind in ("encoder", "cross"))
    assert [bool(np.isnan(head).all()) for head in encoder[0]] == [True, False]
    assert [bool(np.isnan(layer).all()) for layer in cross] == [False, True, False]
    assert [bool(np.isnan(head).any()) for head in cross[2]] == [True, False, True, False]
    assert verify(store) == []


@pytest.mark.parametrize("maps", ["all", "topk:2"])
def test_a_kind_may_lack_every_head_that_is_kept(two_depths: Callable[..., Path], maps: str) -> None:
    store = two_depths(keep__heads=[3], keep__maps=maps)
    names = ("encoder", "cross") if maps == "all" else ("encoder_topk_weight", "cross_topk_weight")
    encoder, cross = (array(store, name)[:] for name in names)
    assert np.isnan(encoder).all()
    assert not np.isnan(cross[:, 3]).any()
    assert verify(store) == []


def test_kinds_of_different_depth_break_no_rule(two_depths: Callable[..., Path]) -> None:
    assert verify(two_depths(keep__layers=[0, 2], keep__heads=[1, 3]), deep=True) == []


def test_a_corpus_of_one_token_is_kept(tmp_path: Path) -> None:
    write_arrays(tmp_path / "c", ["a"], layers=1, heads=1)
    line = {"text": "a", "tokens": ["a"], "maps": "m.npz"}
    np.savez(tmp_path / "c/m.npz", encoder=np.ones((1, 1, 1, 1), np.float32))
    (tmp_path / "c/corpus.jsonl").write_text(json.dumps(line))
    for maps in ("all", "topk:4", "none"):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        ingest(arrays_recipe(tmp_path / "c/corpus.jsonl", keep__maps=maps), tmp_path / "s").close()
        assert verify(tmp_path / "s", deep=True) == []
