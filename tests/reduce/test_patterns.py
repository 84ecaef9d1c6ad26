"""This file tests the patterns that maps are compared with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.patterns import duplicate_pattern, induction_pattern


def edges(pattern):
    return [(int(query), int(key)) for query, key in np.argwhere(pattern)]


def test_fixture_duplicate_and_induction_of_9_5_6_5_6():
    assert edges(duplicate_pattern([9, 5, 6, 5, 6])) == [(3, 1), (4, 2)]
    assert edges(induction_pattern([9, 5, 6, 5, 6])) == [(3, 2), (4, 3)]


def test_fixture_adjacent_duplicates_9_5_5_give_no_self_edge():
    assert edges(duplicate_pattern([9, 5, 5])) == [(2, 1)]
    assert edges(induction_pattern([9, 5, 5])) == []


@given(ids=st.lists(st.integers(0, 3), max_size=10))
def test_patterns_are_what_their_definitions_say(ids):
    pairs = [(query, key) for query in range(len(ids)) for key in range(query)]
    assert edges(duplicate_pattern(ids)) == [(query, key) for query, key in pairs if ids[key] == ids[query]]
    after = [(query, key) for query, key in pairs if key > 0 and ids[key - 1] == ids[query]]
    assert edges(induction_pattern(ids)) == after


def test_a_batch_of_ids_is_refused():
    with pytest.raises(BadInput, match=r"ids of shape \[1, 2\]"):
        induction_pattern([[1, 2]])
