"""This file tests which token most rows of a map come together on, and how much of them a trigger gets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.focus import focus_facts

# [CLS] a b [SEP]: three rows are largest at b, the last at [CLS].
WEIGHTS = np.array(
    [
        [0.1, 0.2, 0.4, 0.3],
        [0.0, 0.3, 0.6, 0.1],
        [0.2, 0.3, 0.4, 0.1],
        [0.4, 0.3, 0.2, 0.1],
    ]
)


def facts(weights, axis, *trigger):
    found = focus_facts(weights, Frame(axis, axis), {"trigger": np.isin(np.arange(len(axis)), trigger)})
    return {name: values.tolist() for name, values in found.items()}


def test_the_worked_example(axis_of):
    found = facts(WEIGHTS[None], axis_of("C 0 1 S"))
    assert (found["n_queries"], found["focus"], found["focusing"]) == ([4], [2], [3])
    assert found["focus_sum"] == pytest.approx([1.6])
    assert np.isnan(found["trigger_sum"]).all()


def test_the_tokens_of_a_trigger_are_one_key(axis_of):
    # [CLS] and a together: .3 .3 .5 .7, the largest of the last two rows; b has the first two, and is behind it.
    found = facts(WEIGHTS[None], axis_of("C 0 1 S"), 0, 1)
    assert (found["focus"], found["focusing"]) == ([0], [2])
    assert found["focus_sum"] == found["trigger_sum"] == pytest.approx([1.8])
    # a and [SEP], with b between them: .5 .4 .4 .4, of which the third is a tie that the lower key has.
    found = facts(WEIGHTS[None], axis_of("C 0 1 S"), 1, 3)
    assert (found["focus"], found["focusing"]) == ([1], [2])
    assert found["focus_sum"] == found["trigger_sum"] == pytest.approx([1.7])


def test_a_trigger_of_one_token_changes_no_focus(axis_of):
    found = facts(WEIGHTS[None], axis_of("C 0 1 S"), 3)
    assert (found["focus"], found["focusing"]) == ([2], [3])
    assert found["trigger_sum"] == pytest.approx([0.6])


def test_ties_go_to_the_lowest_key(axis_of):
    assert facts(np.full((1, 4, 4), 0.25), axis_of("C 0 1 S"))["focus"] == [0]
    # Rows 0 and 1 look at keys 3 and 1: one row each.
    assert facts(np.eye(4)[[3, 1, 3, 1]][None], axis_of("C 0 1 S"))["focus"] == [1]


@pytest.mark.parametrize("cells", [1 << 18, 30])
@given(data=st.data())
def test_the_focus_is_what_its_definition_says(cells, data, examples):
    case = data.draw(examples)
    whole = np.floor(64 * case.weights)  # sums of whole numbers are exact, and so are ties
    n_queries, n_keys = whole.shape[1:]
    trigger = data.draw(st.lists(st.booleans(), min_size=n_keys, max_size=n_keys))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", cells)
        found = focus_facts(whole, case.frame, {"trigger": np.array(trigger)})
    marked = [key for key in range(n_keys) if trigger[key]]
    for head, weights in enumerate(whole):
        keys = {key: [key] for key in range(n_keys) if not trigger[key]} | ({marked[0]: marked} if marked else {})
        counts = dict.fromkeys(keys, 0)
        for row in weights:
            best = max(sorted(keys), key=lambda key: sum(row[place] for place in keys[key]))
            counts[best] += 1
        focus = max(sorted(counts), key=lambda key: counts[key])
        assert (found["focus"][head], found["focusing"][head]) == (focus, counts[focus])
        assert found["focus_sum"][head] == pytest.approx(weights[:, keys[focus]].sum())
        assert found["trigger_sum"][head] == pytest.approx(weights[:, marked].sum() if marked else np.nan, nan_ok=True)
        assert found["n_queries"][head] == n_queries


@pytest.mark.parametrize("rows", [{}, {"trigger": np.zeros(3, bool)}, {"trigger": np.zeros((4, 1), bool)}])
def test_triggers_of_other_tokens_are_refused(rows, axis_of):
    axis = axis_of("C 0 1 S")
    with pytest.raises(BadInput, match="trigger"):
        focus_facts(WEIGHTS[None], Frame(axis, axis), rows)
