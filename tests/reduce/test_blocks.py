"""This file tests how maps are checked and cut into blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.blocks import CELLS, block_steps, check_map, gather, spans, work_dtype


@given(n_queries=st.integers(1, 5000), n_keys=st.integers(1, 5000))
def test_a_block_holds_at_most_its_cells_and_at_least_one_row(n_queries, n_keys):
    heads, queries = block_steps(n_queries, n_keys)
    assert heads >= 1
    assert queries >= 1
    assert heads * min(queries, n_queries) * n_keys <= max(CELLS, n_keys)
    assert heads == 1 or queries == n_queries


@given(length=st.integers(0, 200), step=st.integers(1, 50))
def test_spans_cover_everything_once_in_order(length, step):
    covered = [position for span in spans(length, step) for position in range(span.start, span.stop)]
    assert covered == list(range(length))


def test_gather_takes_the_weight_at_each_index():
    block = np.arange(12.0).reshape(2, 2, 3)
    assert gather(block, np.array([[0, 2], [1, 1]])).tolist() == [[0, 5], [7, 10]]


def test_half_precision_is_computed_in_single_and_double_stays_double():
    for given_type, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        assert work_dtype(np.zeros(1, given_type)) == expected


@pytest.mark.parametrize("shape", [(2, 5, 4), (2, 4, 5), (4, 4), (1, 2, 4, 4)])
def test_a_map_that_does_not_fit_its_frame_is_refused_with_both_shapes(shape, axis_of):
    axis = axis_of("C 0 1 S")
    with pytest.raises(BadInput, match="4 queries and 4 keys") as caught:
        check_map(np.zeros(shape), Frame(axis, axis), n_axes=3)
    assert str(list(shape)) in caught.value.found
