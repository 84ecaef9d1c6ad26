"""This file proves that joined words lie one space apart, each at its new place."""

import pytest

from attnstore.errors import BadInput
from attnstore.text.example import Example, Mention, Word
from attnstore.text.join import join_words


def test_forms_are_joined_by_single_spaces_and_unaligned_words_get_a_place() -> None:
    words = (
        Word("I", 0, 1, governor=2, deprel="nsubj"),
        Word("do", governor=2, deprel="aux"),
        Word("10 000", None, None),
    )
    mention = Mention("1", 0, 1, 0, "pronoun")
    example = join_words(Example("s", "I  don't", words=words, mentions=(mention,), label="x"))
    assert example.text == "I do 10 000"
    assert [(word.start_char, word.end_char) for word in example.words] == [(0, 1), (2, 4), (5, 11)]
    assert [(word.governor, word.deprel) for word in example.words] == [(2, "nsubj"), (2, "aux"), (None, None)]
    assert (example.name, example.label, example.mentions) == ("s", "x", (mention,))


def test_each_text_is_joined_from_its_own_words() -> None:
    words = (Word("a"), Word("c", part=1), Word("b"), Word("d", part=1))
    example = join_words(Example("s", "ab", second="cd", target="ef", words=words, target_words=(Word("e"), Word("f"))))
    assert (example.text, example.second, example.target) == ("a b", "c d", "e f")
    assert [(word.form, word.start_char) for word in example.words] == [("a", 0), ("c", 0), ("b", 2), ("d", 2)]
    assert [word.start_char for word in example.target_words] == [0, 2]


@pytest.mark.parametrize(
    "example",
    [
        Example("s", "a", where="x.txt:3"),
        Example("s", "a", second="b", words=(Word("a"),), where="x.txt:3"),
        Example("s", "a", target="b", words=(Word("a"),), where="x.txt:3"),
    ],
)
def test_a_text_without_words_cannot_be_joined(example: Example) -> None:
    with pytest.raises(BadInput, match=r"'s' \(x\.txt:3\): a text without words"):
        join_words(example)
