"""This file tests that all facts in one go are the facts one by one."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.reduce.axes import Frame
from attnstore.reduce.facts import facts
from attnstore.reduce.head_facts import head_facts
from attnstore.reduce.token_facts import token_facts
from attnstore.reduce.word_facts import word_facts


def parts(found):
    """Every column of the facts, under a name of its own."""
    for part in ("tokens", "words", "heads"):
        for name, values in getattr(found, part).items():
            yield f"{part}.{name}", values


@given(
    data=st.data(),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    pieces=st.sampled_from(["mean", "first", "max"]),
    drop=st.sampled_from(["sep", "special"]),
    eps=st.sampled_from([1e-4, 1e-3]),
)
def test_facts_equal_the_separate_functions(data, dtype, pieces, drop, eps, examples):
    case = data.draw(examples)
    weights = case.weights.astype(dtype)
    together = facts(weights, case.frame, eps=eps, drop=drop, pieces=pieces)
    for found, expected in (
        (together.tokens, token_facts(weights, case.frame)),
        (together.words, word_facts(weights, case.frame, pieces=pieces)),
        (together.heads, head_facts(weights, case.frame, eps=eps, drop=drop)),
    ):
        assert list(found) == list(expected)
        for name, values in expected.items():
            assert found[name].dtype == values.dtype
            np.testing.assert_array_equal(found[name], values, err_msg=name)


@given(data=st.data())
def test_permuting_heads_permutes_every_fact(data, examples):
    case = data.draw(examples)
    order = data.draw(st.permutations(range(len(case.weights))))
    shuffled = dict(parts(facts(case.weights[order], case.frame)))
    for name, values in parts(facts(case.weights, case.frame)):
        np.testing.assert_array_equal(shuffled[name], values[order], err_msg=name)


@given(data=st.data(), more=st.integers(1, 5), left=st.integers(0, 5))
def test_padding_that_is_cut_off_again_changes_nothing(data, more, left, examples):
    case = data.draw(examples)
    n_heads, n_queries, n_keys = case.weights.shape
    padded = np.full((n_heads, left + n_queries + more, left + n_keys + more), np.nan)
    cut = padded[:, left : left + n_queries, left : left + n_keys]
    cut[:] = case.weights
    same = dict(parts(facts(cut, case.frame)))
    for name, values in parts(facts(case.weights, case.frame)):
        np.testing.assert_allclose(same[name], values, rtol=1e-13, atol=1e-15, err_msg=name)


def test_maps_that_may_not_be_written_to_are_reduced_and_left_alone(map_x):
    weights = map_x.weights.copy()
    weights.flags.writeable = False
    facts(weights, map_x.frame)
    np.testing.assert_array_equal(weights, map_x.weights)


def test_results_do_not_share_memory(map_x):
    found = facts(map_x.weights.astype(np.float32), map_x.frame)
    assert not np.may_share_memory(found.tokens["max"], found.tokens["entropy_nats"])
    assert found.tokens["max"].base is None


@pytest.mark.slow
@pytest.mark.parametrize("pieces", ["mean", "max"])
@pytest.mark.parametrize("causal", [False, True])
def test_long_maps_need_little_memory(causal, pieces, axis_of):
    # Twelve heads of 2,048 tokens, a third of the words split in two. The heads share their memory here, which
    # no reduction can know: the map itself would take 192 MiB.
    n_tokens = 2048
    one = np.tril(np.ones((n_tokens, n_tokens), np.float32))
    one /= one.sum(axis=-1, keepdims=True)
    weights = np.broadcast_to(one if causal else one[::-1], (12, n_tokens, n_tokens))
    axis = axis_of("C " + " ".join(str(3 * (token // 4) + min(token % 4, 2)) for token in range(2046)) + " S")
    tracemalloc.start()
    try:
        found = facts(weights, Frame(axis, axis, causal), pieces=pieces)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.heads["n_queries"].tolist() == [n_tokens] * 12
    assert peak < 32 * 2**20
