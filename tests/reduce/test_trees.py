"""This file tests heaviest trees over word maps against annotated syntax."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.trees import tree_facts
from attnstore.reduce.words import word_map

NAMES = ["n", "correct", "undirected_correct"]


def parsed(*words):
    """The columns of words from (word, governor, sentence)."""
    word, governor, sentence = np.array(words, np.int32).reshape(-1, 3).T
    return {"word": word, "governor": governor, "sentence": sentence}


def found(facts):
    assert list(facts) == NAMES
    return [facts[name].tolist() for name in NAMES]


def test_the_worked_example_under_two_annotations(syntax_map):
    # Words 0 1 2: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1). From root 2: 0 <- 2 (.25), 1 <- 0 (.3).
    # Larger of both directions: 0-1 .3, 0-2 .6, 1-2 .2, so the tree without directions is 0-2, 0-1.
    right = parsed((0, 2, 0), (1, 0, 0), (2, -1, 0))
    assert found(tree_facts(syntax_map.weights, syntax_map.frame, right)) == [[2], [2], [2]]
    chain = parsed((0, 1, 0), (1, 2, 0), (2, -1, 0))
    assert found(tree_facts(syntax_map.weights, syntax_map.frame, chain)) == [[2], [0], [1]]


def test_the_choice_of_each_word_alone_gives_way_to_the_tree(axis_of):
    # Words 1 and 2 attend to each other most, but one of them must lead to the root, word 0.
    axis = axis_of("0 1 2")
    weights = np.array([[[1, 0, 0], [0.3, 0, 0.7], [0.4, 0.6, 0]]])
    rows = parsed((0, -1, 0), (1, 2, 0), (2, 1, 0))
    assert found(tree_facts(weights, Frame(axis, axis), rows)) == [[2], [1], [2]]


def test_a_map_that_is_the_annotation_scores_every_word(axis_of):
    axis = axis_of("C 0 0 1 2 3 S 4 5")
    governor = [1, -1, 1, 2, 5, -1]
    weights = np.zeros((2, 9, 9))
    for token, word in enumerate(axis.word):
        if word >= 0 and governor[word] >= 0:
            weights[:, token, np.flatnonzero(axis.word == governor[word])[0]] = 1
    rows = parsed(*((word, above, word // 4) for word, above in enumerate(governor)))
    assert found(tree_facts(weights, Frame(axis, axis), rows)) == [[4, 4]] * 3


@pytest.mark.parametrize("cells", [1 << 18, 1])
def test_trees_are_those_of_networkx_over_the_word_map(cells, pieced, monkeypatch):
    networkx = pytest.importorskip("networkx")
    monkeypatch.setattr(blocks, "CELLS", cells)
    rows = parsed((4, 3, 1), (0, 1, 0), (2, 0, 0), (1, -1, 0), (3, -1, 1), (5, 3, 1), (6, 5, 1))
    facts = tree_facts(pieced.weights, pieced.frame, rows)
    assert facts["n"].tolist() == [3] * 5  # words 0, 2 and 4; word 5 has no tokens
    for head, words in enumerate(word_map(pieced.weights, pieced.frame)):
        correct = undirected = 0
        for root, members, gold in ((1, [0, 1, 2], {0: 1, 2: 0}), (3, [3, 4, 6], {4: 3})):
            directed, ties = networkx.DiGraph(), networkx.Graph()
            for word in members:
                for above in members:
                    if word != above:
                        ties.add_edge(word, above, weight=max(words[word, above], words[above, word]))
                        if word != root:
                            directed.add_edge(above, word, weight=words[word, above])
            tree, tied = networkx.maximum_spanning_arborescence(directed), networkx.maximum_spanning_tree(ties)
            correct += sum(tree.has_edge(above, word) for word, above in gold.items())
            undirected += sum(tied.has_edge(above, word) for word, above in gold.items())
        assert (facts["correct"][head], facts["undirected_correct"][head]) == (correct, undirected)


@pytest.mark.parametrize(
    "rows",
    [
        parsed(),
        parsed((0, -1, 0)),
        parsed((0, 1, 0), (1, 0, 0)),
        parsed((0, -1, 0), (1, -1, 0), (2, 1, 0)),
    ],
)
def test_a_sentence_of_one_word_or_without_one_root_does_not_count(rows, syntax_map):
    assert found(tree_facts(syntax_map.weights, syntax_map.frame, rows)) == [[0], [0], [0]]


def test_a_sentence_whose_root_has_no_tokens_does_not_count(pieced):
    rows = parsed((5, -1, 0), (4, 5, 0), (6, 4, 0))
    assert found(tree_facts(pieced.weights, pieced.frame, rows)) == [[0] * 5] * 3


def test_in_a_causal_map_a_tree_may_be_tied_by_no_weight(axis_of):
    axis = axis_of("0 1 2")
    weights = np.array([[[1, 0, 0], [0.9, 0.1, 0], [0.1, 0.8, 0.1]]])
    rows = parsed((0, 1, 0), (1, 2, 0), (2, -1, 0))
    # From root 2 no word sees its governor; 1-0 and 2-1 are tied by the weight back.
    facts = tree_facts(weights, Frame(axis, axis, True), rows)
    assert facts["n"].tolist() == facts["undirected_correct"].tolist() == [2]


def test_a_cross_map_has_no_trees(crossed):
    facts = tree_facts(crossed.weights, crossed.frame, parsed((0, -1, 0), (1, 0, 0)))
    assert facts["n"].tolist() == [0, 0]
    assert np.isnan(facts["correct"]).all()
    assert np.isnan(facts["undirected_correct"]).all()


def test_a_governor_that_the_example_does_not_have_is_refused(map_x):
    with pytest.raises(BadInput, match=r"column governor .* 2; expected -1 to 2, exclusive"):
        tree_facts(map_x.weights, map_x.frame, parsed((0, 2, 0)))
