"""This file proves that exactly those governors pass which lead every word to a root."""

from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.text.example import Word
from attnstore.text.tree import first_fault, mention_head, mention_type


def test_faults_are_found_at_their_word() -> None:
    assert first_fault([]) is None
    assert first_fault([None, 0, 1, None]) is None
    assert first_fault([None, 2]) == (1, "its governor is none of the words")
    assert first_fault([None, -1]) == (1, "its governor is none of the words")
    assert first_fault([0]) == (0, "it is its own governor")
    assert first_fault([None, 3, 1, 2]) == (1, "its governors run in a circle")
    # 0 leads into the circle of 1 and 2 but is not on it.
    assert first_fault([1, 2, 1]) == (1, "its governors run in a circle")


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 7)), min_size=8, max_size=8))
def test_without_a_fault_every_word_reaches_a_root(governors: list[int | None]) -> None:
    def reaches_root(word: int) -> bool:
        at: int | None = word
        for _ in range(len(governors)):
            assert at is not None
            at = governors[at]
            if at is None:
                return True
        return False

    assert (first_fault(governors) is None) == all(reaches_root(word) for word in range(len(governors)))


def test_a_long_chain_is_no_matter_of_recursion() -> None:
    assert first_fault([None, *range(99_999)]) is None


def test_the_head_of_a_mention_without_a_parse_is_its_last_word() -> None:
    words = [Word("the"), Word("old"), Word("boat")]
    assert mention_head(words, range(0, 2)) == 1


def test_the_leftmost_of_several_words_governed_from_outside_is_the_head() -> None:
    words = [Word("go", deprel="root"), Word("a", governor=0, deprel="x"), Word("b", governor=0, deprel="x")]
    assert mention_head(words, range(1, 3)) == 1


def test_the_type_follows_the_tags() -> None:
    assert mention_type(Word("x", xpos="PRP$")) == "pronoun"
    assert mention_type(Word("x", xpos="WP", upos="PRON")) == "pronoun"
    assert mention_type(Word("x", xpos="NNPS", upos="PROPN")) == "proper"
    assert mention_type(Word("x", upos="PROPN")) == "proper"
    assert mention_type(Word("x", xpos="NN", upos="NOUN")) == "nominal"
    assert mention_type(Word("x")) is None
