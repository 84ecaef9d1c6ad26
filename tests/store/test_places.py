"""Tests of how the runs of cells are cut into blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.store.places import GAP_CELLS, Places
from attnstore.store.rectangles import by_kind, head_numbers, rectangles
from attnstore.store.store import Store
from tests.store.making import Made


def _places(sizes: list[tuple[int, int]], gaps: list[int] | None = None) -> Places:
    rows, keys = (np.array(column, np.int64) for column in zip(*sizes, strict=True))
    ends = np.cumsum(rows * keys + np.array(gaps or [0] * len(sizes)))
    cell = np.concatenate([[0], ends[:-1]])
    return Places(0, "encoder", np.arange(len(sizes)) * 10, np.zeros(len(sizes), np.int64), rows, keys, cell)


def _cells(places: Places) -> list[tuple[int, int, int]]:
    return list(zip(*(column.tolist() for column in places.coordinates()), strict=True))


def test_coordinates_count_rows_and_keys_of_each_example() -> None:
    # Two examples, 2 x 2 and 1 x 3 cells.
    assert _cells(_places([(2, 2), (1, 3)])) == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (0, 1, 1),
        (10, 0, 0),
        (10, 0, 1),
        (10, 0, 2),
    ]


SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)


@given(SIZES, st.integers(1, 60), st.booleans())
def test_blocks_cover_every_cell_once_in_order(sizes: list[tuple[int, int]], most: int, whole: bool) -> None:
    places = _places(sizes)
    blocks = list(places.blocks(most, whole=whole))
    assert [cell for block in blocks for cell in _cells(block)] == _cells(places)
    starts = [block.start for block in blocks]
    assert starts == sorted(starts)
    for block in blocks:
        # One run may be larger: one row, or one example where these stay whole.
        assert block.stop - block.start <= most or len(block) == 1
        if not whole:
            assert block.stop - block.start <= most or int(block.n_rows[0]) == 1
        assert block.index() is None


@given(SIZES, st.data())
def test_the_index_of_a_block_with_gaps_picks_the_cells_of_its_runs(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    places = _places(sizes)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)).filter(any))
    part = places[np.array(chosen)]
    (block,) = part.blocks(10_000)
    everything = np.arange(block.start, block.stop)
    index = block.index()
    found = everything if index is None else everything[index]
    expected = [
        cell
        for cell, size in zip(part.cell.tolist(), part.sizes.tolist(), strict=True)
        for cell in range(cell, cell + size)
    ]
    assert found.tolist() == expected


def test_a_wide_gap_starts_a_new_block() -> None:
    near, far = (list(_places([(2, 2), (2, 2)], [gap, 0]).blocks()) for gap in (GAP_CELLS, GAP_CELLS + 1))
    assert (len(near), len(far)) == (1, 2)


def test_an_example_larger_than_a_block_is_cut_by_rows() -> None:
    blocks = list(_places([(5, 4)]).blocks(8))
    assert [(block.first_row.tolist(), block.n_rows.tolist(), block.start) for block in blocks] == [
        ([0], [2], 0),
        ([2], [2], 8),
        ([4], [1], 16),
    ]


def test_places_follow_the_cells_and_not_the_numbers(store: Store, made: list[Made]) -> None:
    (first, *_) = store.engine.places.of("encoder")
    # The maker writes the longest example of a segment first: e1 has 9 words, e0 5, e2 3.
    assert first.example.tolist() == [1, 0, 2]
    assert (np.diff(first.cell) > 0).all()
    place = store.engine.places.find("encoder", 4)
    assert place is not None
    assert (place.segment, place.n_rows.tolist()) == (1, [len(made[4].source.tokens)])
    assert store.engine.places.find("encoder", 99) is None
    assert store.engine.places.of("cross") == ()


@given(
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1),
    st.integers(1, 50),
    st.integers(1, 200),
)
def test_rectangles_cover_every_head_once(pairs: set[tuple[int, int]], cells: int, most: int) -> None:
    found = []
    for rectangle in rectangles(sorted(pairs), cells, most):
        layers, heads = head_numbers(rectangle)
        assert len(layers) * cells <= most or len(layers) == 1
        found += list(zip(layers.tolist(), heads.tolist(), strict=True))
    assert sorted(found) == sorted(pairs)
    assert len(found) == len(pairs)


def test_all_heads_of_a_model_are_one_rectangle_when_they_fit() -> None:
    pairs = [(layer, head) for layer in range(6) for head in range(12)]
    (rectangle,) = rectangles(pairs, 100)
    assert rectangle.shape == (6, 12)
    assert by_kind([("encoder", 0, 1), ("cross", 2, 3), ("encoder", 1, 1)]) == {
        "encoder": [(0, 1), (1, 1)],
        "cross": [(2, 3)],
    }


@pytest.mark.parametrize("kind", ["encoder"])
def test_all_examples_are_known(store: Store, kind: str) -> None:
    assert store.engine.places.examples.tolist() == list(range(7))
    assert sum(map(len, store.engine.places.of(kind))) == 7
