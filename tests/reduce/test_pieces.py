"""This file tests which tokens are found to make up which word."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.pieces import Pieces, pieces_of, tokens_of


def listed(pieces: Pieces) -> list[tuple[int, int, int]]:
    return list(zip(pieces.word.tolist(), pieces.start.tolist(), pieces.count.tolist(), strict=True))


def test_words_come_in_word_order_without_special_tokens(axis_of):
    # tokens                                0 1 2 3 4 5
    assert listed(pieces_of(axis_of("C 0 0 1 S 2"))) == [(0, 1, 2), (1, 3, 1), (2, 5, 1)]
    assert listed(pieces_of(axis_of("C 1 1 0 S"))) == [(0, 3, 1), (1, 1, 2)]


def test_tokens_without_a_word_stay_in_place_as_units_of_their_own(axis_of):
    assert listed(pieces_of(axis_of("C C 1 1 - 0 S"), specials=True)) == [
        (-1, 0, 1),
        (-1, 1, 1),
        (1, 2, 2),
        (-1, 4, 1),
        (0, 5, 1),
        (-1, 6, 1),
    ]


def test_a_word_without_tokens_is_no_unit(axis_of):
    assert listed(pieces_of(axis_of("C 0 2 S", n_words=5))) == [(0, 1, 1), (2, 2, 1)]


def test_an_axis_of_special_tokens_has_no_words(axis_of):
    assert listed(pieces_of(axis_of("C S", n_words=0))) == []
    assert len(pieces_of(axis_of("C S", n_words=0), specials=True)) == 2


def test_the_tokens_of_chosen_units_are_listed_in_turn(axis_of):
    tokens, local = tokens_of(pieces_of(axis_of("C 0 0 1 2 2 2 S"))[np.array([0, 2])])
    assert tokens.tolist() == [1, 2, 4, 5, 6]
    assert listed(local) == [(0, 0, 2), (2, 2, 3)]


def test_a_word_whose_tokens_are_not_neighbours_is_refused_by_number(axis_of):
    with pytest.raises(BadInput, match="tokens of word 0 are not neighbours"):
        pieces_of(axis_of("C 0 1 0 S"))
    with pytest.raises(BadInput, match="tokens of word 3 are not neighbours"):
        pieces_of(axis_of("C 3 - 3 S"), specials=True)


def test_a_token_of_a_word_that_does_not_exist_is_refused(axis_of):
    with pytest.raises(BadInput, match="a token of word 2, and 2 words"):
        pieces_of(axis_of("C 0 2 S", n_words=2))
