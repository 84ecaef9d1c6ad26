"""Tests of trees, rollout, flow and resampled maps against networkx and NumPy, and against answers by hand."""

from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from attnstore.errors import BadInput, NotFound
from attnstore.format.manifest import Kind
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, sentence
from tests.queries.three_kinds import KIND, Floats, examples, rows_of, side
from tests.store.making import KINDS, Made, Text, make_store


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return examples()


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(tmp_path_factory.mktemp("n") / "n.attn", made, kinds=KINDS, precision="exact")
    with open_store(root) as opened:
        yield opened


# --- relations/trees


def word_map(weights: Floats, text: Text) -> tuple[Floats, list[int]]:
    """Mean rows and summed columns of the words that have tokens, and which they are."""
    words = sorted({word for word in text.word if word >= 0})
    pieces = [[token for token, own in enumerate(text.word) if own == word] for word in words]
    return np.array([[weights[np.ix_(q, k)].sum() / len(q) for k in pieces] for q in pieces]), words


def test_trees_are_those_of_networkx(store: Store, made: list[Made]) -> None:
    sums = np.zeros((4, 2))
    n = away_right = away_left = adjacent = 0
    for item in made:
        for head, weights in enumerate(rows_of(item, "encoder")):
            cells, words = word_map(weights, item.source)
            for number in (0, 1):
                own = [place for place, word in enumerate(words) if item.source.words[word]["sentence"] == number]
                governor = {p: item.source.words[words[p]]["governor"] for p in own}
                (root,) = (p for p in own if governor[p] is None)
                gold = {p: words.index(g) for p, g in governor.items() if g is not None and g in words}
                directed = nx.DiGraph()
                directed.add_weighted_edges_from((g, d, cells[d, g]) for d in own for g in own if d not in (g, root))
                tree = nx.maximum_spanning_arborescence(directed) if len(own) > 1 else nx.DiGraph()
                undirected = nx.Graph()
                undirected.add_weighted_edges_from(
                    (a, b, max(cells[a, b], cells[b, a])) for a in own for b in own if a < b
                )
                edges = {frozenset(edge) for edge in nx.maximum_spanning_tree(undirected).edges}
                sums[head, 0] += sum(tree.has_edge(g, d) for d, g in gold.items())
                sums[head, 1] += sum(frozenset((d, g)) in edges for d, g in gold.items())
                if head == 0:
                    n += len(gold)
                    away_right += sum(own.index(g) - own.index(d) == 1 for d, g in gold.items())
                    away_left += sum(own.index(g) - own.index(d) == -1 for d, g in gold.items())
    adjacent = away_left + away_right
    for row in store.ask("relations/trees", sample=0):
        head = row["layer"] * 2 + row["head"]
        assert row["n"] == n
        assert [row["uas"] * n, row["uuas"] * n] == pytest.approx(list(sums[head]))
        assert row["branching"] == pytest.approx(max(away_left, away_right) / n)
        assert row["adjacent"] == pytest.approx(adjacent / n)


def test_the_trees_of_the_syntax_map_by_hand(tmp_path: Path) -> None:
    # w1 w2 w3 weigh (.1 .1 .25) (.3 .35 .2) (.6 .2 .1); w3 is the root, w1 hangs on it and w2 on w1. Directed, w1
    # takes w3 (.25) and w2 takes w1 (.3). Undirected: w1-w3 .6 and w1-w2 .3.
    text = sentence(["w1", "w2", "w3"], [(2, "nsubj"), (0, "obj"), (None, "root")])
    with open_store(make_store(tmp_path / "s.attn", [one(text, SYNTAX)], kinds=ONE, precision="exact")) as store:
        (row,) = store.ask("relations/trees")
        assert row == {"layer": 0, "head": 0, "uas": 1, "branching": 0.5, "uuas": 1, "adjacent": 0.5, "n": 2}
        # The columns summed are the same here, and so are the trees of the other rules.
        assert list(store.ask("relations/trees", pieces="max")) == [row]


def test_a_sample_of_trees_is_spread_over_the_corpus(store: Store, made: list[Made]) -> None:
    (one_of_four,) = {row["n"] for row in store.ask("relations/trees", sample=1)}
    (of_first,) = {row["n"] for row in store.ask("relations/trees", sample=0, where="example = 0")}
    (of_all,) = {row["n"] for row in store.ask("relations/trees", sample=0)}
    assert one_of_four == of_first < of_all
    assert list(store.ask("relations/trees", sample=99)) == list(store.ask("relations/trees", sample=0))


def test_trees_of_the_other_text_have_the_baseline_of_its_words(store: Store, made: list[Made]) -> None:
    (adjacent,) = {row["adjacent"] for row in store.ask("relations/trees", kind="decoder", sample=0)}
    right = n = 0
    for item in made:
        text = side(item, "decoder")
        present = sorted({word for word in text.word if word >= 0})
        if sum(text.words[word]["governor"] is None for word in present) != 1:
            continue
        for word in present:
            governor = text.words[word]["governor"]
            if governor in present:
                n += 1
                right += abs(present.index(governor) - present.index(word)) == 1
    assert n > 0
    assert adjacent == pytest.approx(right / n)


# --- examples/rollout, examples/flow


def combined(item: Made, kind: str, heads: str) -> Floats:
    """Maps [layer, query, key]."""
    weights = item.maps[kind].astype(np.float64)
    if heads == "mean":
        return np.asarray(weights.mean(axis=1))
    found = weights.max(axis=1) if heads == "max" else weights.min(axis=1)
    return np.asarray(found / found.sum(axis=2, keepdims=True))


@KIND
@pytest.mark.parametrize("heads", ["mean", "max", "min"])
def test_a_rollout_is_the_product_of_the_mixed_layers(store: Store, made: list[Made], kind: str, heads: str) -> None:
    for example in (1, 3):
        found = store.ask("examples/rollout", example=example, kind=kind, heads=heads, residual=0.3)
        reached = np.eye(made[example].maps[kind].shape[2])
        for layer in combined(made[example], kind, heads):
            reached = (0.7 * layer + 0.3 * np.eye(len(layer))) @ reached
        n, tokens = len(reached), side(made[example], kind).tokens
        assert [(row["query"], row["key"]) for row in found] == [(i, j) for i in range(n) for j in range(n)]
        np.testing.assert_allclose([row["weight"] for row in found], reached.ravel(), rtol=1e-5, atol=1e-9)
        assert [row["query_text"] for row in found][::n] == [row["key_text"] for row in found][:n] == tokens
        np.testing.assert_allclose(reached.sum(axis=1), 1, rtol=1e-5)


@KIND
@pytest.mark.parametrize("heads", ["mean", "max"])
def test_a_flow_is_the_maximum_flow_of_networkx(store: Store, made: list[Made], kind: str, heads: str) -> None:
    found = store.ask("examples/flow", example=1, kind=kind, heads=heads)
    maps = combined(made[1], kind, heads) / 2
    n = maps.shape[1]
    graph = nx.DiGraph()
    for layer, own in enumerate(maps, start=1):
        for above in range(n):
            for below in range(n):
                capacity = own[above, below] + (above == below) / 2
                graph.add_edge((layer, above), (layer - 1, below), capacity=capacity)
    flow = [[nx.maximum_flow_value(graph, (len(maps), i), (0, j)) for j in range(n)] for i in range(n)]
    expected = np.array(flow) / np.sum(flow, axis=1, keepdims=True)
    np.testing.assert_allclose([row["weight"] for row in found], expected.ravel(), rtol=1e-4, atol=1e-6)


def test_rollout_by_hand(tmp_path: Path) -> None:
    # Layers (.6 .4)(.2 .8) and (.5 .5)(.9 .1), half identity: (.8 .2)(.1 .9), (.75 .25)(.45 .55); their product.
    maps = np.array([[[[0.6, 0.4], [0.2, 0.8]]], [[[0.5, 0.5], [0.9, 0.1]]]], np.float32)
    kinds = {"encoder": Kind(2, 1, 1, "source", "source", False)}
    made = [Made("x", sentence([]), {"encoder": maps})]
    with open_store(make_store(tmp_path / "r.attn", made, kinds=kinds, precision="exact")) as store:
        found = [row["weight"] for row in store.ask("examples/rollout", example=0)]
        assert found == pytest.approx([0.625, 0.375, 0.415, 0.585], rel=1e-6)
        # From token 0 of the top: .75 below itself and .25 aside. To input 0: min(.75, .8) + min(.25, .1) = .85; to
        # input 1: min(.75, .2) + min(.25, .9) = .45. From token 1: .45 + .1 = .55, and .2 + .55 = .75.
        found = [row["weight"] for row in store.ask("examples/flow", example=0)]
        assert found == pytest.approx([0.85 / 1.3, 0.45 / 1.3, 0.55 / 1.3, 0.75 / 1.3], rel=1e-6)


def test_heads_that_share_no_key_leave_nothing_to_their_least_weights(tmp_path: Path) -> None:
    maps = np.array([[np.eye(2), np.eye(2)[::-1]]], np.float32)
    kinds = {"encoder": Kind(1, 2, 2, "source", "source", False)}
    made = [Made("x", sentence([]), {"encoder": maps})]
    with open_store(make_store(tmp_path / "r.attn", made, kinds=kinds, precision="exact")) as store:
        found = [row["weight"] for row in store.ask("examples/rollout", example=0, heads="min")]
        assert found == [0.5, 0, 0, 0.5]
        found = [row["weight"] for row in store.ask("examples/flow", example=0, heads="min")]
        assert found == [1, 0, 0, 1]


@pytest.mark.parametrize("question", ["examples/rollout", "examples/flow", "patterns/maps"])
def test_an_example_that_is_not_there_is_said_to_be_so(store: Store, question: str) -> None:
    with pytest.raises(NotFound, match="example=4"):
        store.ask(question, example=4)


def test_a_flow_of_more_than_64_tokens_is_refused(tmp_path: Path) -> None:
    made = [one(sentence(["a"] * 63), np.full((65, 65), 1 / 65))]
    with open_store(make_store(tmp_path / "l.attn", made, kinds=ONE)) as store:
        with pytest.raises(BadInput, match="at most 64"):
            store.ask("examples/flow", example=0)
        assert len(store.ask("examples/rollout", example=0)) == 65 * 65


# --- patterns/maps


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_map_at_its_double_size_repeats_every_cell_four_times(store: Store, made: list[Made], kind: str) -> None:
    weights = rows_of(made[2], kind)
    n, m = weights.shape[1:]
    size = int(np.lcm(n, m))
    found = store.ask("patterns/maps", kind=kind, example=2, size=size)
    for row, own in zip(found, weights, strict=True):
        repeated = np.repeat(np.repeat(own, size // n, axis=0), size // m, axis=1)
        np.testing.assert_allclose(np.array(row["weights"]).reshape(size, size), repeated, rtol=1e-5, atol=1e-9)
