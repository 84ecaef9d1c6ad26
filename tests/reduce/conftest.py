"""This file builds axes, frames and maps for the tests of reductions, by hand and by Hypothesis."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from attnstore.reduce.axes import Axis, Frame


@dataclass(frozen=True, slots=True)
class Case:
    """One map [head, query, key] with its frame."""

    weights: NDArray[np.float64]
    frame: Frame


def build_axis(tokens: str, n_words: int | None = None) -> Axis:
    """An axis from one item per token: C [CLS], S [SEP], M another special token, "." or "," with the word's
    number or without, "-" a token of no word, or the number of its word.

    "C 0 0 1 .2 S" is [CLS], a word of two tokens, one of one, a full stop that is word 2, [SEP].
    """
    items = tokens.split()
    word = np.array([int(item.lstrip(".")) if item.lstrip(".").isdigit() else -1 for item in items], np.int32)
    return Axis(
        special=np.array([item in ("C", "S", "M") for item in items]),
        cls=np.array([item == "C" for item in items]),
        sep=np.array([item == "S" for item in items]),
        punct=np.array([item.startswith(".") for item in items]),
        word=word,
        n_words=int(word.max()) + 1 if n_words is None else n_words,
    )


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """An axis of 1 to 12 tokens: words of 1 to 10 tokens among special tokens, some words without tokens."""
    items: list[str] = []
    word = 0
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from("wwwwwCSM-."))
        if kind == "w":
            word += draw(st.sampled_from([0, 0, 0, 1]))  # a word without tokens comes first
            items += [str(word)] * draw(st.sampled_from([1, 1, 1, 2, 3, 10]))
            word += 1
        elif kind == ".":
            items.append(f".{word}")
            word += 1
        else:
            items.append(kind)
    return build_axis(" ".join(items[:12]), n_words=word + draw(st.integers(0, 1)))


@st.composite
def row_maps(draw: st.DrawFn, n_heads: int, n_queries: int, n_keys: int, causal: bool) -> NDArray[np.float64]:
    """Maps [head, query, key] of rows that sum to 1, made of few different values: zeros and ties are common."""
    # Drawing bytes is ten times faster than drawing as many integers.
    size = n_heads * n_queries * n_keys
    drawn = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
    counts = (drawn % 6).astype(np.int64).reshape(n_heads, n_queries, n_keys)
    visible = np.tril(np.ones((n_queries, n_keys), bool)) if causal else np.ones((n_queries, n_keys), bool)
    counts = counts * visible
    counts = np.where(counts.sum(axis=-1, keepdims=True) > 0, counts, visible)
    weights: NDArray[np.float64] = counts / counts.sum(axis=-1, keepdims=True)
    return weights


@st.composite
def self_cases(draw: st.DrawFn, causal: bool | None = None) -> Case:
    """A self-attention map of 1 to 3 heads."""
    axis = draw(axes())
    hidden = draw(st.booleans()) if causal is None else causal
    weights = draw(row_maps(draw(st.integers(1, 3)), len(axis), len(axis), hidden))
    return Case(weights, Frame(axis, axis, hidden))


@st.composite
def cross_cases(draw: st.DrawFn) -> Case:
    """A cross-attention map of 1 to 3 heads."""
    queries, keys = draw(axes()), draw(axes())
    return Case(draw(row_maps(draw(st.integers(1, 3)), len(queries), len(keys), False)), Frame(queries, keys))


@pytest.fixture(scope="session")
def axis_of() -> Callable[..., Axis]:
    return build_axis


@pytest.fixture(scope="session")
def bidirectional_examples() -> st.SearchStrategy[Case]:
    return self_cases(causal=False)


@pytest.fixture(scope="session")
def examples() -> st.SearchStrategy[Case]:
    return st.one_of(self_cases(), cross_cases())


@pytest.fixture(scope="session")
def random_map() -> Callable[..., NDArray[np.float32]]:
    """Softmax maps float32 [head, query, key] of random scores, lower triangular if `causal`."""

    def build(n_heads: int, n_queries: int, n_keys: int, *, causal: bool = False, seed: int = 0) -> NDArray[np.float32]:
        scores = np.random.default_rng(seed).normal(size=(n_heads, n_queries, n_keys)) * 3
        weights = np.exp(scores)
        if causal:
            weights = np.tril(weights)
        normalised: NDArray[np.float32] = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
        return normalised

    return build


@pytest.fixture(scope="session")
def map_x() -> Case:
    """The worked example: tokens [CLS] a b [SEP], one head."""
    rows = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]]
    axis = build_axis("C 0 1 S")
    return Case(np.array([rows]), Frame(axis, axis))


@pytest.fixture(scope="session")
def syntax_map() -> Case:
    """The worked example for governors: tokens [CLS] w1 w2 w3 [SEP], one head."""
    rows = [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.5, 0.1, 0.1, 0.25, 0.05],
        [0.1, 0.3, 0.35, 0.2, 0.05],
        [0.05, 0.6, 0.2, 0.1, 0.05],
        [0.1, 0.1, 0.1, 0.1, 0.6],
    ]
    axis = build_axis("C 0 1 2 S")
    return Case(np.array([rows]), Frame(axis, axis))


@pytest.fixture(scope="session")
def pieced(random_map: Callable[..., NDArray[np.float32]]) -> Case:
    """Five random heads over a pair of sentences of words of one to three tokens; word 5 has none."""
    axis = build_axis("C 0 0 1 2 2 2 S 3 4 4 6 S", n_words=7)
    return Case(random_map(5, 13, 13, seed=7).astype(np.float64), Frame(axis, axis))


@pytest.fixture(scope="session")
def crossed(random_map: Callable[..., NDArray[np.float32]]) -> Case:
    """Two random heads of a cross map from five tokens to four."""
    return Case(random_map(2, 5, 4, seed=3).astype(np.float64), Frame(build_axis("C 0 0 1 S"), build_axis("C 0 1 S")))


@pytest.fixture(scope="session")
def word_weight() -> Callable[..., float]:
    """One cell of a head's word map by its definition, of the map [query, key] and the word of each token."""

    def weight(weights: NDArray[np.float64], word: NDArray[np.int32], word_q: int, word_k: int) -> float:
        rows = [token for token in range(len(word)) if word[token] == word_q]
        columns = [token for token in range(len(word)) if word[token] == word_k]
        return float(sum(weights[row, column] for row in rows for column in columns) / len(rows))

    return weight
