"""Reading ahead gives the cells that were asked for, decodes each chunk about once, and blames the right cells."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from attnstore.format import ahead as ahead_module
from attnstore.format.ahead import Ahead

VALUES = np.arange(2 * 5 * 60, dtype=np.float32).reshape(2, 5, 60)


def in_memory() -> "zarr.Array[Any]":
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=VALUES.shape, chunks=(1, 1, 7), dtype="float32")
    array[:] = VALUES
    return array


ARRAY = in_memory()


@given(
    st.integers(1, 400),
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sets(st.integers(0, 4), min_size=1).map(sorted),
            st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted),
        ),
        max_size=8,
    ),
)
def test_every_read_gives_what_lies_there(most: int, reads: list[tuple[int, list[int], list[int]]]) -> None:
    ahead = Ahead(ARRAY, most)
    for layer, heads, (start, stop) in reads:
        assert np.array_equal(ahead.read(layer, heads, start, stop), VALUES[layer, heads, start:stop])


def test_short_reads_in_order_share_one_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[slice] = []

    def counted(array: Any, layer: slice, head: slice, cell: slice) -> Any:
        fetched.append(cell)
        return array[layer, head, cell]

    monkeypatch.setattr(ahead_module, "read_cells", counted)
    ahead = Ahead(ARRAY, 40)  # of two heads 20 cells each
    for start in range(0, 60, 5):
        ahead.read(0, [1, 3], start, start + 5)
    assert fetched == [slice(0, 20), slice(20, 40), slice(40, 60)]


def test_damage_further_on_does_not_fail_the_cells_before_it(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "a", shape=VALUES.shape, chunks=(1, 5, 20), dtype="float32")
    array[:] = VALUES
    (tmp_path / "a/c/0/0/1").write_bytes(b"no chunk")
    ahead = Ahead(zarr.open_array(tmp_path / "a", mode="r"), 10**6)
    assert np.array_equal(ahead.read(0, [0, 1], 0, 20), VALUES[0, :2, :20])
    with pytest.raises(Exception, match=r"."):
        ahead.read(0, [0, 1], 15, 25)
