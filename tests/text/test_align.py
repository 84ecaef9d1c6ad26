"""This file proves that tokens go to words by characters: spaces, shared tokens, ties, missing words, a partition."""

import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.text.align import align
from attnstore.text.example import Word


def words_at(*places: tuple[int, int] | None) -> list[Word]:
    return [Word("w", *(place or (None, None))) for place in places]


def test_pieces_of_a_word_belong_to_it_and_special_tokens_to_none() -> None:
    # [CLS] un ##tie knots [SEP]
    found = align("untie knots", [None, (0, 2), (2, 5), (6, 11), None], words_at((0, 5), (6, 11)))
    assert found.word.tolist() == [-1, 0, 0, 1, -1]
    assert found.word.dtype == "int32"
    assert found.n_tokens == (2, 1)
    assert found.aligned == ("exact", "exact")


def test_a_leading_space_in_a_span_belongs_to_no_word() -> None:
    # "a bcd": the span (1, 5) of " bcd" begins at the space right after "a".
    found = align("a bcd", [(0, 1), (1, 5)], words_at((0, 1), (2, 5)))
    assert found.word.tolist() == [0, 1]
    assert found.aligned == ("exact", "exact")


def test_a_trailing_space_in_a_span_belongs_to_no_word() -> None:
    found = align("a  b", [(0, 3), (3, 4)], words_at((0, 1), (3, 4)))
    assert found.word.tolist() == [0, 1]
    assert found.aligned == ("exact", "exact")


def test_a_token_over_two_words_belongs_to_the_larger_overlap() -> None:
    # "don't" as do + n't in one token: 2 against 3 characters.
    found = align("don't", [(0, 5)], words_at((0, 2), (2, 5)))
    assert found.word.tolist() == [1]
    assert found.n_tokens == (0, 1)
    assert found.aligned == ("none", "shared")


def test_on_a_tie_the_earlier_word_gets_the_token() -> None:
    found = align("cannot", [(0, 6)], words_at((0, 3), (3, 6)))
    assert found.word.tolist() == [0]
    assert found.aligned == ("shared", "none")


def test_both_words_are_shared_where_both_have_tokens() -> None:
    # don | 't over do + n't: "don" has 2 characters of the first word and 1 of the second.
    found = align("don't", [(0, 3), (3, 5)], words_at((0, 2), (2, 5)))
    assert found.word.tolist() == [0, 1]
    assert found.aligned == ("shared", "shared")


def test_a_word_that_normalises_to_nothing_has_no_token_and_the_others_keep_theirs() -> None:
    # The tokenizer drops the control character at 2.
    found = align("a \x00 b", [(0, 1), (4, 5)], words_at((0, 1), (2, 3), (4, 5)))
    assert found.word.tolist() == [0, 2]
    assert found.n_tokens == (1, 0, 1)
    assert found.aligned == ("exact", "none", "exact")


def test_words_without_offsets_have_no_token_and_do_not_shift_the_others() -> None:
    # French "du" = de + le, neither of which is there.
    found = align("du vin", [(0, 2), (3, 6)], words_at(None, None, (3, 6)))
    assert found.word.tolist() == [-1, 2]
    assert found.aligned == ("none", "none", "exact")


def test_empty_and_space_tokens_between_words_belong_to_none() -> None:
    found = align("a b", [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3), (3, 3)], words_at((0, 1), (2, 3)))
    assert found.word.tolist() == [-1, 0, -1, -1, 1, -1]


def test_tokens_of_a_word_with_a_space_inside_stay_neighbours() -> None:
    # "10 000" is one word; a sentence-piece tokenizer may give its space a token of its own.
    found = align("10 000 m", [(0, 2), (2, 3), (3, 3), (3, 6), (6, 8)], words_at((0, 6), (7, 8)))
    assert found.word.tolist() == [0, 0, 0, 0, 1]
    assert found.n_tokens == (4, 1)


def test_several_tokens_with_the_span_of_one_character_all_belong_to_its_word() -> None:
    # A byte-level tokenizer cuts one emoji into several tokens.
    found = align("a 🜨", [(0, 1), (1, 3), (2, 3), (2, 3)], words_at((0, 1), (2, 3)))
    assert found.word.tolist() == [0, 1, 1, 1]


def test_the_literal_text_of_a_special_token_is_aligned_like_any_other() -> None:
    text = "the [SEP] mark"
    found = align(text, [None, (0, 3), (4, 9), (10, 14), None], words_at((0, 3), (4, 9), (10, 14)))
    assert found.word.tolist() == [-1, 0, 1, 2, -1]


def test_spans_that_step_back_are_aligned_all_the_same() -> None:
    found = align("a b c", [(4, 5), (0, 1), (2, 3)], words_at((0, 1), (2, 3), (4, 5)))
    assert found.word.tolist() == [2, 0, 1]


def test_no_words_and_no_tokens_are_no_error() -> None:
    assert align("", [], []).word.tolist() == []
    assert align("a", [(0, 1)], []).word.tolist() == [-1]


@st.composite
def segmented(draw: st.DrawFn) -> tuple[str, list[tuple[int, int] | None], list[Word]]:
    """A text, tokens that tile part of it (some with a leading space), and words that do not overlap."""
    text = draw(st.text(alphabet="ab é\n", max_size=30))

    def tiles() -> list[tuple[int, int]]:
        cuts = sorted(draw(st.sets(st.integers(0, len(text)))))
        spans = list(itertools.pairwise(cuts))
        return [span for span in spans if draw(st.booleans())]

    words = [Word("w", *span) for span in tiles()]
    words = [word if draw(st.booleans()) else Word("w") for word in words]
    return text, [span if draw(st.booleans()) else None for span in tiles()], words


@settings(deadline=None)
@given(segmented())
def test_alignment_is_a_partition(case: tuple[str, list[tuple[int, int] | None], list[Word]]) -> None:
    text, spans, words = case
    found = align(text, spans, words)
    assert len(found.word) == len(spans)
    for word in range(len(words)):
        tokens = [token for token, owner in enumerate(found.word) if owner == word]
        assert found.n_tokens[word] == len(tokens)
        assert (found.aligned[word] == "none") == (not tokens)
    assert sum(found.n_tokens) == int((found.word >= 0).sum())
    owners = [owner for owner in found.word.tolist() if owner >= 0]
    assert owners == sorted(owners)


@settings(deadline=None)
@given(segmented())
def test_the_owner_of_a_token_is_the_word_with_most_of_its_characters(
    case: tuple[str, list[tuple[int, int] | None], list[Word]],
) -> None:
    text, spans, words = case
    found = align(text, spans, words)
    for token, span in enumerate(spans):
        if span is None:
            assert found.word[token] == -1
            continue
        kept = range(*span) if not text[slice(*span)].strip() else _without_edges(text, *span)
        overlaps = [
            0 if w.start_char is None else len(set(kept) & set(range(w.start_char, w.end_char or 0))) for w in words
        ]
        best = max(overlaps, default=0)
        assert found.word[token] == (overlaps.index(best) if best else -1)


def _without_edges(text: str, start: int, end: int) -> range:
    inner = text[start:end]
    left = len(inner) - len(inner.lstrip())
    return range(start + left, start + len(inner.rstrip()))


@settings(deadline=None)
@given(st.text(alphabet="abc .é", max_size=60))
def test_words_cut_at_spaces_get_exactly_their_own_characters(text: str) -> None:
    words = [Word(m.group(), *m.span()) for m in re.finditer(r"\S+", text)]
    spans = [(i, i + 1) for i in range(len(text))]
    found = align(text, list(spans), words)
    assert found.n_tokens == tuple(len(word.form) for word in words)
    assert set(found.aligned) <= {"exact"}
