"""This file proves that random tokens are drawn from what is no special token, without replacement, and stand twice."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.text import repeated
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example
from attnstore.text.vocabulary import Vocabulary

WORDS = tuple(f"w{number}" for number in range(30))
VOCABULARY = Vocabulary(
    # Ids need not be in the order of the mapping.
    {"[CLS]": 40, **{word: number for number, word in reversed(list(enumerate(WORDS)))}, "[MASK]": 41, "[PAD]": 42},
    frozenset({"[CLS]", "[PAD]"}),
    frozenset({"[CLS]", "[PAD]", "[MASK]"}),
)


def drawn(vocabulary: Vocabulary = VOCABULARY, *, length: int = 10, count: int = 3, seed: int = 0) -> list[Example]:
    corpus = Corpus("repeated_random", (), vocabulary=vocabulary, length=length, count=count, seed=seed)
    examples = list(read(corpus))
    assert all(isinstance(example, Example) for example in examples)
    return [example for example in examples if isinstance(example, Example)]


def symbols(example: Example) -> list[str]:
    return [token.symbol for token in example.tokens]


@settings(max_examples=25, deadline=None)
@given(length=st.integers(2, 30), count=st.integers(1, 4), seed=st.integers(0, 2**40))
def test_a_sequence_stands_twice_and_holds_no_token_twice(length: int, count: int, seed: int) -> None:
    examples = drawn(length=length, count=count, seed=seed)
    assert [example.name for example in examples] == [f"repeated:{number}" for number in range(1, count + 1)]
    for example in examples:
        found = symbols(example)
        assert found[:length] == found[length:]
        assert len(set(found)) == length
        assert set(found) <= set(WORDS)
        assert example.condition == "repeated_random"


def test_the_text_is_the_tokens_with_single_spaces_between_them() -> None:
    for example in drawn():
        assert example.text == " ".join(symbols(example))
        spelled = [example.text[token.start_char : token.end_char] for token in example.tokens]
        assert spelled == symbols(example)
        assert {token.part for token in example.tokens} == {0}


def test_the_seed_decides_what_is_drawn() -> None:
    assert drawn(seed=4) == drawn(seed=4) != drawn(seed=5)


def test_the_order_of_the_mapping_does_not_matter() -> None:
    turned = replace(VOCABULARY, ids=dict(reversed(list(VOCABULARY.ids.items()))))
    assert drawn(turned) == drawn()


def test_more_sequences_begin_with_the_same_ones() -> None:
    assert drawn(count=5)[:3] == drawn(count=3)


def test_a_sequence_may_hold_every_token_that_is_not_special() -> None:
    (example,) = drawn(length=30, count=1)
    assert sorted(symbols(example)[:30]) == sorted(WORDS)


def test_every_token_is_drawn_about_as_often_as_every_other() -> None:
    counts = dict.fromkeys(WORDS, 0)
    for example in drawn(length=10, count=600):
        for symbol in symbols(example)[:10]:
            counts[symbol] += 1
    # 200 expected, with a standard deviation of 11.5.
    assert all(130 < count < 270 for count in counts.values())


def test_a_symbol_without_letters_is_not_drawn() -> None:
    with pytest.raises(BadInput, match="1 tokens beside the special ones"):
        drawn(Vocabulary({"": 0, "a": 1}), length=2)


def test_a_vocabulary_that_is_smaller_than_a_sequence_is_refused() -> None:
    message = r"30 tokens beside the special ones; expected 31 different tokens.*Set corpus\.length = 30 or less"
    with pytest.raises(BadInput, match=message):
        drawn(length=31)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadInput, match=r"corpus\.seed = -1; expected 0 or more"):
        drawn(seed=-1)


def test_without_a_vocabulary_nothing_is_drawn() -> None:
    with pytest.raises(BadInput, match="no vocabulary"):
        repeated.draw(None, length=2, count=1, seed=0)


def test_there_are_no_columns_to_rename() -> None:
    with pytest.raises(BadInput, match=r"columns\.text: no such field"):
        read(Corpus("repeated_random", (), columns={"text": "t"}, vocabulary=VOCABULARY))
