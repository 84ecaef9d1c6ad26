"""What a store of the largest weights leaves out is measured while the whole map is there, and every reader sees it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.format.verify import verify

Maps = Mapping[str, NDArray[np.float32]]


def measured(maps: Maps, topk: int) -> dict[tuple[str, int, int], list[float]]:
    """(example, layer, head) -> n_queries, kept, rest, the rest of the worst row, the largest weight cut; by loops."""
    found = {}
    for name, weights in maps.items():
        for layer, head in np.ndindex(weights.shape[:2]):
            rows = [sorted(map(float, row), reverse=True) for row in weights[layer, head]]
            rests = [sum(row[topk:]) for row in rows]
            kept, cut = (
                sum(sum(row[:topk]) for row in rows),
                max((row[topk] for row in rows if len(row) > topk), default=0),
            )
            found[name, layer, head] = [len(rows), kept, sum(rests), max(rests), cut]
    return found


@pytest.mark.parametrize("keys", [{}, {"keep__precision": "compact", "keep__facts": "none"}], ids=["facts", "none"])
def test_what_is_left_out_is_measured_for_every_example_and_head(
    make_store: Callable[..., Path], arrays_maps: Maps, keys: dict[str, str]
) -> None:
    place = make_store(keep__maps="topk:4", **keys)
    with attnstore.open(place) as store:
        rows = store.sql("select e.name, f.* from kept_facts as f join examples as e using (example)").to_arrow()
    found = {
        (row["name"], row["layer"], row["head"]): [
            row[name] for name in ("n_queries", "kept_sum", "rest_sum", "rest_max", "largest_cut")
        ]
        for row in rows.to_pylist()
    }
    expected = measured(arrays_maps, 4)
    assert set(found) == set(expected)
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, abs=1e-9), key
    assert any(values[2] == 0 for values in expected.values()), "one example has no more than four tokens"
    assert verify(place, deep=True) == []


def test_the_question_and_the_card_say_how_much_is_held(make_store: Callable[..., Path], arrays_maps: Maps) -> None:
    place = make_store(keep__maps="topk:2", keep__heads=[0, 2], keep__layers=[1])
    expected = measured(arrays_maps, 2)
    with attnstore.open(place) as store:
        answer = store.ask("audit/kept").to_arrow().to_pylist()
    for row in answer:
        own = [value for key, value in expected.items() if key[1:] == (row["layer"], row["head"])]
        n, kept, rest, most, cut = (np.array(column) for column in zip(*own, strict=True))
        if row["layer"] == 1 and row["head"] in (0, 2):
            assert row["kept"] == pytest.approx(kept.sum() / (kept + rest).sum())
            assert (row["most_cut"], row["largest_cut"]) == pytest.approx((most.max(), cut.max()))
            assert row["n"] == n.sum()
        else:
            assert (row["kept"], row["most_cut"], row["largest_cut"], row["n"]) == (None, None, None, 0)
    held = [value for key, value in expected.items() if key[1:] in ((1, 0), (1, 2))]
    share = sum(value[1] for value in held) / sum(value[1] + value[2] for value in held)
    assert (
        f"the 2 largest weights of each row, which hold {share:.2%} of the weight" in (place / "README.md").read_text()
    )


def test_a_store_of_whole_maps_measures_nothing(tiny_store: Path) -> None:
    assert not (tiny_store / "segments/000000/kept_facts.parquet").exists()
    with attnstore.open(tiny_store) as store:
        assert len(store.sql("from kept_facts")) == 0
        assert {row["kept"] for row in store.ask("audit/kept").to_arrow().to_pylist()} == {None}


def test_the_rows_of_an_example_come_by_layer_and_head(make_store: Callable[..., Path]) -> None:
    table = pq.read_table(make_store(keep__maps="topk:2") / "segments/000000/kept_facts.parquet")
    keys = [(row["layer"], row["head"]) for row in table.to_pylist() if row["example"] == 3]
    assert keys == [(layer, head) for layer in range(2) for head in range(3)]
