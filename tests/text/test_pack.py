"""This file proves that packing, pairing and cutting keep every word once, in order, within the budget."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.text.example import Example, Link, Mention, Skipped, Word
from attnstore.text.pack import cut_windows, pack_pairs, pack_sentences, truncate


def by_word(text: str) -> list[tuple[int, int]]:
    """A tokenizer that cuts at white space."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def by_three(text: str) -> list[tuple[int, int]]:
    """A tokenizer with pieces of three characters: cutting a word inside moves all its later pieces."""
    return [(start, min(start + 3, end)) for s, end in by_word(text) for start in range(s, end, 3)]


def with_space(text: str) -> list[tuple[int, int]]:
    """A tokenizer that counts the space before a word as part of its token, as byte-level ones do."""
    return [match.span() for match in re.finditer(r"\s?\S+|\s+", text)]


def by_byte(text: str) -> list[tuple[int, int]]:
    """A tokenizer with a token for each byte, so that several share the span of one character."""
    return [(i, i + 1) for i, char in enumerate(text) for _ in char.encode()]


def awkward(text: str) -> list[tuple[int, int]]:
    """A tokenizer with an empty token before each text and after each word."""
    return [(0, 0)] * bool(text.strip()) + [span for s, e in by_word(text) for span in ((s, e), (e, e))]


TOKENIZERS = [by_word, by_three, with_space, by_byte, awkward]


def sentence(name: str, text: str, document: str | None = "d") -> Example:
    """A sentence whose words each depend on the one before; the first is the root."""
    words = tuple(
        Word(match.group(), *match.span(), governor=None if i == 0 else i - 1, deprel="root" if i == 0 else "dep")
        for i, match in enumerate(re.finditer(r"\S+", text))
    )
    return Example(name, text, document=document, words=words, where=f"x:{name}")


def forms(example: Example) -> list[str]:
    """What the texts hold at the places of the words."""
    texts = (example.text, example.second or "")
    return [texts[word.part][word.start_char : word.end_char] for word in example.words]


class TestPackSentences:
    def test_sentences_are_gathered_up_to_the_budget_and_everything_is_shifted(self) -> None:
        first = replace(sentence("s1", "A b."), mentions=(Mention("1", 0, 1, 0, "proper"),), label="x", split="dev")
        second = replace(
            sentence("s2", "He c d."), mentions=(Mention("1", 0, 1, 0),), links=(Link("r", 1, 2, 2, 3),), split="dev"
        )
        packed, last = pack_sentences([first, second, sentence("s3", "e")], by_word, 5)
        assert (packed.name, packed.text, packed.document, packed.where) == ("s1..s2", "A b. He c d.", "d", "x:s1")
        assert (packed.label, packed.split) == (None, "dev")
        assert forms(packed) == ["A", "b.", "He", "c", "d."]
        assert [word.governor for word in packed.words] == [None, 0, None, 2, 3]
        assert [word.sentence for word in packed.words] == [0, 0, 1, 1, 1]
        assert packed.mentions == (Mention("1", 0, 1, 0, "proper"), Mention("1", 2, 3, 2))
        assert packed.links == (Link("r", 3, 4, 4, 5),)
        assert last.name == "s3"

    def test_a_sentence_longer_than_the_budget_comes_alone_and_whole(self) -> None:
        sentences = [sentence("s1", "a"), sentence("s2", "b c d e"), sentence("s3", "f")]
        assert [item.name for item in pack_sentences(sentences, by_word, 3)] == ["s1", "s2", "s3"]

    def test_documents_are_never_mixed_and_sentences_without_one_never_packed(self) -> None:
        sentences = [sentence("s1", "a"), sentence("s2", "b", "e"), sentence("s3", "c", "e")]
        sentences += [sentence("s4", "d", None), sentence("s5", "d", None)]
        assert [item.name for item in pack_sentences(sentences, by_word, 9)] == ["s1", "s2..s3", "s4", "s5"]

    def test_the_budget_holds_for_the_joined_text_not_for_the_sum(self) -> None:
        # Joined, each sentence costs one token more than alone: the space between has a token of its own.
        def spaces_too(text: str) -> list[tuple[int, int]]:
            return [match.span() for match in re.finditer(r"\s|\S+", text)]

        packed = list(pack_sentences([sentence(f"s{i}", "ab") for i in range(3)], spaces_too, 3))
        assert [item.name for item in packed] == ["s0..s1", "s2"]

    def test_words_without_a_place_are_carried_along(self) -> None:
        first = Example("s1", "Du", document="d", words=(Word("De"), Word("le", governor=0, deprel="det")))
        packed, *rest = pack_sentences([first, sentence("s2", "vin")], by_word, 9)
        assert rest == []
        assert [(word.start_char, word.governor, word.sentence) for word in packed.words] == [
            (None, None, 0),
            (None, 0, 0),
            (3, None, 1),
        ]

    def test_pairs_are_refused(self) -> None:
        with pytest.raises(BadInput, match="has a second text"):
            list(pack_sentences([Example("p", "a", second="b")], by_word, 9))

    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(st.text("ab", min_size=1, max_size=7).map(lambda t: " ".join(t)), st.sampled_from("de")),
            max_size=12,
        ),
        st.integers(1, 12),
        st.sampled_from(TOKENIZERS),
    )
    def test_every_word_is_kept_once_in_order(self, texts: list[tuple[str, str]], budget: int, spans: object) -> None:
        assert callable(spans)
        sentences = [sentence(f"s{i}", text, document) for i, (text, document) in enumerate(texts)]
        packed = list(pack_sentences(sentences, spans, budget))
        assert [form for item in packed for form in forms(item)] == [
            word.form for item in sentences for word in item.words
        ]
        for item in packed:
            assert len(spans(item.text)) <= budget or ".." not in item.name
            for number, word in enumerate(item.words):
                starts = number == 0 or item.words[number - 1].sentence != word.sentence
                assert word.governor == (None if starts else number - 1)


def paragraphs(*texts: str, document: str = "d") -> list[Example]:
    return [sentence(f"{document}{i}", text, document) for i, text in enumerate(texts)]


class TestPackPairs:
    def test_paragraphs_are_gathered_to_the_budget_and_cut_at_a_boundary(self) -> None:
        (pair,) = pack_pairs(paragraphs("a b", "c d", "e f"), by_word, 6)
        assert isinstance(pair, Example)
        assert pair.name == "d0..d2"
        assert (pair.text, pair.second) in [("a b", "c d e f"), ("a b c d", "e f")]
        assert forms(pair) == list("abcdef")
        # Each paragraph is a sentence of its own here, and its second word depends on its first.
        assert [word.governor for word in pair.words] == [None, 0, None, 2, None, 4]
        assert [word.sentence for word in pair.words] == [0, 0, 1, 1, 2, 2]

    def test_over_many_seeds_every_boundary_is_drawn(self) -> None:
        found = set()
        for seed in range(40):
            (pair,) = pack_pairs(paragraphs("a", "b", "c", "d"), by_word, 4, seed)
            assert isinstance(pair, Example)
            found.add(pair.text)
        assert found == {"a", "a b", "a b c"}

    def test_at_least_two_paragraphs_are_gathered_and_the_longer_side_is_cut(self) -> None:
        # 6 + 2 tokens for a budget of 5: three go from the longer side, and the rest is consecutive.
        for seed in range(20):
            (pair,) = pack_pairs(paragraphs("a b c d e f", "g h"), by_word, 5, seed)
            assert isinstance(pair, Example)
            assert pair.second == "g h"
            assert pair.text in {"a b c", "b c d", "c d e", "d e f"}

    def test_words_cut_away_take_their_dependents_relation_along(self) -> None:
        pairs = [next(pack_pairs(paragraphs("a b c d", "e"), by_word, 3, seed)) for seed in range(30)]
        found = {item.text: item for item in pairs if isinstance(item, Example)}
        assert set(found) == {"a b", "b c", "c d"}
        cut_front = found["c d"]
        assert [(w.form, w.governor, w.deprel, w.part) for w in cut_front.words] == [
            ("c", None, None, 0),
            ("d", 0, "dep", 0),
            ("e", None, "root", 1),
        ]
        assert forms(cut_front) == ["c", "d", "e"]

    def test_a_single_paragraph_left_over_is_skipped_with_a_reason(self) -> None:
        found = list(pack_pairs([*paragraphs("a b", "c d", "e"), *paragraphs("f", document="z")], by_word, 4))
        assert [item.name for item in found] == ["d0..d1", "d2", "z0"]
        assert found[1] == Skipped("d2", "a paragraph left over at the end of its document; a pair needs two", "x:d2")

    def test_what_is_left_of_a_document_makes_a_shorter_pair(self) -> None:
        found = list(pack_pairs(paragraphs("a b", "c d", "e", "f"), by_word, 4))
        assert [item.name for item in found] == ["d0..d1", "d2..d3"]

    def test_a_paragraph_without_tokens_is_skipped(self) -> None:
        found = list(
            pack_pairs(
                [*paragraphs("a"), replace(sentence("n", "x"), text="\x00"), *paragraphs("b")],
                lambda t: by_word(t.replace("\x00", " ")),
                2,
            )
        )
        assert [type(item) for item in found] == [Skipped, Example]
        assert found[0].name == "n"

    def test_a_pair_depends_on_its_own_paragraphs_and_the_seed_alone(self) -> None:
        texts = [" ".join("abcdefgh"[: 3 + i % 5]) for i in range(9)]
        whole = list(pack_pairs([*paragraphs(*texts), *paragraphs(*texts, document="e")], by_word, 7, seed=3))
        alone = list(pack_pairs(paragraphs(*texts, document="e"), by_word, 7, seed=3))
        assert whole[-len(alone) :] == alone
        assert whole != list(pack_pairs([*paragraphs(*texts), *paragraphs(*texts, document="e")], by_word, 7, seed=4))

    def test_a_budget_too_small_for_two_texts_skips_the_pair(self) -> None:
        (found,) = pack_pairs(paragraphs("🜨", "🜨"), by_byte, 5)
        assert found == Skipped("d0..d1", "the pair cannot be cut to the budget of tokens", "x:d0")

    @settings(deadline=None)
    @given(
        st.lists(st.text("ab é🜨", min_size=1, max_size=15).filter(str.strip), min_size=2, max_size=6),
        st.integers(2, 20),
        st.integers(0, 3),
        st.sampled_from(TOKENIZERS),
    )
    def test_a_pair_never_exceeds_the_budget_and_is_consecutive_text(
        self, texts: list[str], budget: int, seed: int, spans: object
    ) -> None:
        assert callable(spans)
        whole = " ".join(texts)
        for item in pack_pairs(paragraphs(*texts), spans, budget, seed):
            if isinstance(item, Skipped):
                continue
            second = item.second or ""
            assert item.text
            assert second
            assert len(spans(item.text)) + len(spans(second)) <= budget
            assert item.text in whole
            assert second in whole
            assert forms(item) == [word.form for word in item.words]


class TestCutWindows:
    def test_a_text_that_fits_is_the_example_itself(self) -> None:
        example = sentence("s", "a b c")
        assert cut_windows(example, by_word, 3) == [example]

    def test_windows_are_cut_at_spaces_and_carry_what_lies_in_them(self) -> None:
        # Pieces of three characters: "aaaa" 2, "bbb" 1, "cccc" 2, "d" 1. Budget 4: aaaa bbb | cccc d.
        example = replace(
            sentence("s", "aaaa bbb cccc d"),
            mentions=(Mention("1", 0, 2, 1, "nominal"), Mention("1", 2, 4, 3), Mention("2", 1, 3, 1)),
            links=(Link("r", 2, 3, 3, 4), Link("q", 0, 1, 3, 4)),
            label="x",
        )
        first, second = cut_windows(example, by_three, 4)
        assert [(w.name, w.text, w.label, w.where) for w in (first, second)] == [
            ("s#1", "aaaa bbb", "x", "x:s"),
            ("s#2", "cccc d", "x", "x:s"),
        ]
        assert forms(first) == ["aaaa", "bbb"]
        assert forms(second) == ["cccc", "d"]
        assert [(w.governor, w.deprel) for w in second.words] == [(None, None), (0, "dep")]
        assert (first.mentions, second.mentions) == ((Mention("1", 0, 2, 1, "nominal"),), (Mention("1", 0, 2, 1),))
        assert (first.links, second.links) == ((), (Link("r", 0, 1, 1, 2),))

    def test_a_word_that_no_window_can_hold_is_cut_and_is_in_none(self) -> None:
        windows = cut_windows(sentence("s", "a CCCCCCCCC b"), by_three, 2)
        assert [w.text for w in windows] == ["a", "CCCCCC", "CCC b"]
        assert [forms(w) for w in windows] == [["a"], [], ["b"]]

    def test_sentences_count_from_the_first_of_the_window(self) -> None:
        (packed,) = pack_sentences([sentence("s1", "a b"), sentence("s2", "c d")], by_word, 4)
        windows = cut_windows(packed, by_word, 2)
        assert [[word.sentence for word in w.words] for w in windows] == [[0, 0], [0, 0]]
        assert [word.governor for word in windows[1].words] == [None, 0]
        assert [word.deprel for word in windows[1].words] == ["root", "dep"]

    def test_a_word_without_a_place_goes_with_the_word_before_it_or_at_the_beginning_after(self) -> None:
        words = (Word("x0"), Word("aa", 0, 2), Word("x1"), Word("bb", 3, 5), Word("x2", governor=3, deprel="dep"))
        first, second = cut_windows(Example("s", "aa bb", words=words), by_word, 1)
        assert [word.form for word in first.words] == ["x0", "aa", "x1"]
        assert [(word.form, word.governor) for word in second.words] == [("bb", None), ("x2", 0)]

    def test_the_span_of_a_leading_space_does_not_count_as_text_of_the_window(self) -> None:
        assert [w.text for w in cut_windows(sentence("s", "aa bb  cc"), with_space, 2)] == ["aa bb", "cc"]

    def test_a_budget_below_one_character_and_pairs_are_refused(self) -> None:
        with pytest.raises(BadInput, match="to 3 tokens"):
            cut_windows(sentence("s", "a 🜨"), by_byte, 3)
        with pytest.raises(BadInput, match="has a second text"):
            cut_windows(Example("s", "a b", second="c"), by_word, 1)
        with pytest.raises(BadInput, match="has a target"):
            cut_windows(Example("s", "a b", target="c"), by_word, 1)

    @settings(deadline=None)
    @given(st.text("ab é🜨\n", max_size=40), st.integers(4, 9), st.sampled_from(TOKENIZERS))
    def test_windows_cover_the_text_in_order_within_the_budget(self, text: str, budget: int, spans: object) -> None:
        assert callable(spans)
        example = sentence("s", text)
        windows = cut_windows(example, spans, budget)
        assert "".join("".join(w.text.split()) for w in windows) == "".join(text.split())
        assert all(len(spans(w.text)) <= budget for w in windows)
        kept = [form for w in windows for form in forms(w)]
        assert kept == [word.form for w in windows for word in w.words]
        # Words are lost only where one alone is longer than a window.
        if all(len(spans(word.form)) <= budget for word in example.words) and spans is by_word:
            assert kept == text.split()


class TestTruncate:
    def test_a_single_text_keeps_its_first_tokens_and_the_words_in_them(self) -> None:
        example = replace(sentence("s", "aaaa bbb"), mentions=(Mention("1", 0, 1, 0), Mention("2", 1, 2, 1)))
        found = truncate(example, by_three, 2)
        assert (found.name, found.text, forms(found)) == ("s", "aaaa", ["aaaa"])
        assert found.mentions == (Mention("1", 0, 1, 0),)

    def test_a_pair_is_cut_at_the_end_of_its_longer_text(self) -> None:
        words = (
            Word("a", 0, 1),
            Word("d", 6, 7),
            Word("e", 0, 1, governor=1, deprel="dep", part=1),
            Word("f", 2, 3, part=1),
        )
        pair = Example("p", "a b c d", second="e f", words=words)
        found = truncate(pair, by_word, 4)
        assert (found.text, found.second) == ("a b", "e f")
        assert [(word.form, word.governor, word.deprel) for word in found.words] == [
            ("a", None, None),
            ("e", None, None),
            ("f", None, None),
        ]
        # 4 + 2 down to 3: a b | e, since of two alike the second loses.
        shorter = truncate(pair, by_word, 3)
        assert (shorter.text, shorter.second) == ("a b", "e")

    def test_a_link_from_one_text_to_the_other_survives_a_cut_between(self) -> None:
        words = (Word("a", 0, 1), Word("b", 2, 3), Word("c", 4, 5), Word("e", 0, 1, part=1))
        pair = Example("p", "a b c", second="e", words=words, links=(Link("r", 0, 1, 3, 4), Link("q", 2, 3, 3, 4)))
        assert truncate(pair, by_word, 3).links == (Link("r", 0, 1, 2, 3),)

    def test_the_target_has_a_budget_of_its_own(self) -> None:
        example = Example(
            "t", "a b", target="c d e", target_words=(Word("d", 2, 3, governor=1, deprel="x"), Word("e", 4, 5))
        )
        found = truncate(example, by_word, 2, 2)
        assert (found.text, found.target) == ("a b", "c d")
        assert found.target_words == (Word("d", 2, 3),)
        assert truncate(example, by_word, 2) is example

    def test_a_budget_that_leaves_nothing_is_refused(self) -> None:
        with pytest.raises(BadInput, match="to 3 tokens"):
            truncate(sentence("s", "🜨"), by_byte, 3)

    @settings(deadline=None)
    @given(
        st.text("ab é\n", max_size=30), st.text("ab é\n", max_size=30), st.integers(6, 20), st.sampled_from(TOKENIZERS)
    )
    def test_what_is_left_begins_the_text_and_fits(self, text: str, second: str, budget: int, spans: object) -> None:
        assert callable(spans)
        found = truncate(Example("p", text, second=second), spans, budget)
        assert found.second is not None
        assert len(spans(found.text)) + len(spans(found.second)) <= budget
        assert text.lstrip().startswith(found.text.lstrip())
        assert second.lstrip().startswith(found.second.lstrip())
