"""This file tests whether rows pass on few tokens or mix many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.transfer import transfer_facts


def test_the_worked_example(map_x):
    facts = transfer_facts(map_x.weights, map_x.frame, {}, top=2, above=0.25)
    entropies = [1.2798542, 1.2798542, np.log(4), 0.9404480]
    assert facts["n_queries"].tolist() == [4]
    assert facts["effective_keys_sum"] == pytest.approx(np.exp(entropies).sum(), rel=1e-6)
    # Squares sum to .3 .3 .25 .52.
    assert facts["inverse_square_sum"] == pytest.approx(2 / 0.3 + 4 + 1 / 0.52)
    assert facts["top1_sum"] == pytest.approx(0.4 + 0.4 + 0.25 + 0.7)
    assert facts["top_sum"] == pytest.approx(0.7 + 0.7 + 0.5 + 0.8)
    # .3 .4, .4 .3, none of the quarters, .7.
    assert facts["keys_above_sum"].tolist() == [5]


@pytest.mark.parametrize("cells", [1 << 18, 30])
@given(data=st.data(), top=st.integers(1, 14), above=st.sampled_from([0, 0.1, 0.25, 0.5, 1]))
def test_every_sum_is_what_its_definition_says(cells, data, top, above, examples):
    case = data.draw(examples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", cells)
        facts = transfer_facts(case.weights, case.frame, {}, top=top, above=above)
    for head, weights in enumerate(case.weights):
        entropies = [-sum(weight * np.log(weight) for weight in row if weight > 0) for row in weights]
        assert facts["n_queries"][head] == len(weights)
        assert facts["effective_keys_sum"][head] == pytest.approx(np.exp(entropies).sum(), rel=1e-6)
        assert facts["inverse_square_sum"][head] == pytest.approx(sum(1 / sum(row**2) for row in weights))
        assert facts["top1_sum"][head] == pytest.approx(sum(max(row) for row in weights))
        assert facts["top_sum"][head] == pytest.approx(sum(sum(sorted(row)[-top:]) for row in weights))
        assert facts["keys_above_sum"][head] == sum(weight > above for row in weights for weight in row)


@pytest.mark.parametrize("n_keys", [1, 3, 8])
def test_equal_weights_have_as_many_effective_keys_as_there_are(n_keys, axis_of):
    axis = axis_of(" ".join(map(str, range(n_keys))))
    facts = transfer_facts(np.full((1, n_keys, n_keys), 1 / n_keys), Frame(axis, axis), {}, above=0)
    for name in ("effective_keys_sum", "inverse_square_sum", "keys_above_sum"):
        assert facts[name] == pytest.approx(n_keys * n_keys)
    assert facts["top_sum"] == pytest.approx(min(5, n_keys))


def test_the_map_is_left_as_it_is(map_x):
    weights = map_x.weights.copy()
    transfer_facts(weights, map_x.frame, {}, top=1)
    np.testing.assert_array_equal(weights, map_x.weights)


@pytest.mark.parametrize("parameters", [{"top": 0}, {"above": -0.1}, {"above": 1.5}, {"above": float("nan")}])
def test_parameters_out_of_range_are_refused(parameters, map_x):
    with pytest.raises(BadInput, match="expected top >= 1 and 0 <= above <= 1"):
        transfer_facts(map_x.weights, map_x.frame, {}, **parameters)
