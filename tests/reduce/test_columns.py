"""This file tests the columns that come with a map."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.columns import column, first_copies, indices


def test_a_column_of_whole_numbers_comes_back_as_indices():
    rows = {"word": np.array([2, 0, 1], np.int32)}
    assert indices(rows, "word", 3).tolist() == [2, 0, 1]
    assert indices({"governor": np.array([-1, 5])}, "governor", None, lowest=-1).tolist() == [-1, 5]


def test_an_empty_column_may_have_any_type():
    assert indices({"word": np.array([])}, "word", 0).dtype == np.intp


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 3], "3; expected 0 to 3, exclusive"),
        ([-1, 0], "-1; expected 0 to 3, exclusive"),
        ([0.0, 1.0], "type float64; expected whole numbers"),
        ([[0], [1]], r"shape \[2, 1\]; expected \[2\]"),
        ([0, 1, 2], r"shape \[3\]; expected \[2\]"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_name(values, message):
    with pytest.raises(BadInput, match=f"reading the column word that comes with an attention map: {message}"):
        indices({"word": np.array(values)}, "word", 3, length=2)


def test_an_absent_column_is_refused_with_those_that_are_there():
    with pytest.raises(BadInput, match="only the columns link, word; expected a column governor"):
        column({"link": np.zeros(1), "word": np.zeros(1)}, "governor")
    with pytest.raises(BadInput, match="no columns; expected a column governor"):
        column({}, "governor")


def test_every_row_has_its_first_copy():
    values = np.empty(5, object)
    values[:] = ["the", None, ("a", 1), "the", ("a", 1)]
    assert first_copies(values).tolist() == [0, 1, 2, 0, 2]
    assert first_copies(np.array([])).tolist() == []
