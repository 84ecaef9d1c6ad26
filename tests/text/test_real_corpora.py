"""This file checks the readers on whole treebanks and paragraphs, where they are at hand."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from attnstore.text.align import align
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Skipped
from attnstore.text.pack import cut_windows, pack_pairs, pack_sentences

DATA = Path(os.environ.get("ATTNSTORE_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data")


def paths(pattern: str) -> tuple[Path, ...]:
    found = tuple(sorted(DATA.glob(pattern)))
    if not found:
        pytest.skip(f"no {pattern} under {DATA}: set ATTNSTORE_DATA to the folder of test corpora")
    return found


@pytest.fixture(scope="module")
def gum() -> list[Example]:
    return [item for item in read(Corpus("conllu", paths("gum/*.conllu"))) if isinstance(item, Example)]


@pytest.fixture(scope="module")
def ewt() -> list[Example]:
    return [item for item in read(Corpus("conllu", paths("ewt/*.conllu"))) if isinstance(item, Example)]


def pieces(text: str) -> list[tuple[int, int]]:
    """Spans as of a small word-piece tokenizer: words and signs, in pieces of five letters."""
    found = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return [(at, min(at + 5, end)) for start, end in found for at in range(start, end, 5)]


def test_gum_has_15_documents_and_13183_words(gum: list[Example]) -> None:
    assert len({example.document for example in gum}) == 15
    assert sum(len(example.words) for example in gum) == 13_183
    assert len({example.name for example in gum}) == len(gum) == 568
    scored = Counter(word.deprel for example in gum for word in example.words)
    assert scored.total() - scored["root"] - scored["punct"] == 10_952


def test_every_word_of_gum_and_ewt_stands_at_its_place(gum: list[Example], ewt: list[Example]) -> None:
    assert len(ewt) == 325
    for example in gum + ewt:
        last = 0
        for word in example.words:
            # All contractions of these two treebanks split by characters.
            assert word.start_char is not None, example.where
            assert example.text[word.start_char : word.end_char] == word.form, example.where
            assert word.start_char >= last
            last = word.start_char


def test_every_mention_of_gum_is_a_span_with_its_head_inside(gum: list[Example]) -> None:
    types = Counter(mention.type for example in gum for mention in example.mentions)
    # As many as there are opening brackets in the files.
    assert types.total() == 3_648
    for example in gum:
        for mention in example.mentions:
            assert 0 <= mention.start_word <= mention.head_word < mention.end_word <= len(example.words)


def test_packed_gum_keeps_every_word_and_mention_within_one_document(gum: list[Example]) -> None:
    packed = list(pack_sentences(gum, pieces, 126))
    assert len(packed) < len(gum) / 3
    assert [word.form for example in packed for word in example.words] == [w.form for e in gum for w in e.words]
    assert sum(len(example.mentions) for example in packed) == sum(len(example.mentions) for example in gum)
    for example in packed:
        assert len(pieces(example.text)) <= 126
        for word in example.words:
            assert example.text[word.start_char : word.end_char] == word.form
            assert word.governor is None or example.words[word.governor].sentence == word.sentence


def test_windows_of_gum_lose_governors_but_no_word(gum: list[Example]) -> None:
    for example in gum:
        windows = cut_windows(example, pieces, 20)
        assert [word.form for window in windows for word in window.words] == [word.form for word in example.words]
        kept = sum(word.deprel is not None for window in windows for word in window.words)
        assert (kept < len(example.words)) == (len(windows) > 1 and len(example.words) > 1)


def test_alignment_finds_tokens_for_nearly_every_word(gum: list[Example], ewt: list[Example]) -> None:
    kinds: Counter[str] = Counter()
    for example in gum + ewt:
        found = align(example.text, pieces(example.text), example.words)
        assert sum(found.n_tokens) == int((found.word >= 0).sum()) == len(pieces(example.text))
        kinds.update(found.aligned)
    assert kinds["exact"] > 0.98 * kinds.total()
    assert kinds["shared"] > 0


def test_pairs_of_wikipedia_paragraphs_fill_the_budget() -> None:
    corpus = Corpus("pairs", paths("wiki/paragraphs.jsonl"), columns={"document": "article"})
    paragraphs = [item for item in read(corpus) if isinstance(item, Example)]
    assert len(paragraphs) == 202
    pairs = list(pack_pairs(paragraphs, pieces, 125))
    made = [item for item in pairs if isinstance(item, Example)]
    assert all(len(pieces(item.text)) + len(pieces(item.second or "")) <= 125 for item in made)
    assert len(made) > 80
    assert all(item.reason for item in pairs if isinstance(item, Skipped))


@pytest.mark.parametrize(
    ("kind", "pattern", "columns", "count"),
    [
        ("jsonl", "glue-like/pairs_nli.jsonl", {"text": "sentence1", "second": "sentence2"}, 200),
        ("jsonl", "glue-like/singles_sentiment.jsonl", {"text": "sentence"}, 300),
        ("jsonl", "coref/gap.jsonl", {}, 200),
        ("lines", "reactions/reactions.txt", {}, 200),
    ],
)
def test_other_packs_are_read_whole(kind: str, pattern: str, columns: dict[str, str], count: int) -> None:
    found = list(read(Corpus(kind, paths(pattern), columns=columns)))
    assert len(found) == count
    assert all(isinstance(item, Example) for item in found)


def test_framenet_has_300_sentences_whose_core_elements_are_told() -> None:
    found = [item for item in read(Corpus("links", paths("framenet/*.jsonl"))) if isinstance(item, Example)]
    assert len(found) == 300
    core = Counter(link.core for example in found for link in example.links)
    assert None not in core
    assert core[True] > 300  # every sentence was chosen for a core element
    for example in found:
        assert example.label
        assert any(link.core for link in example.links), example.where
        assert example.text == " ".join(word.form for word in example.words)
        for link in example.links:
            assert 0 <= link.source_start_word < link.source_end_word <= len(example.words)
            assert len({(link.target_start_word, link.target_end_word) for link in example.links}) == 1


def test_gap_has_200_pronouns_each_beside_two_names() -> None:
    found = [item for item in read(Corpus("gap", paths("coref/gap.jsonl"))) if isinstance(item, Example)]
    assert len(found) == 200
    for example in found:
        assert Counter(mention.type for mention in example.mentions) == {"proper": 2, "pronoun": 1}, example.where
        for mention in example.mentions:
            words = example.words[mention.start_word : mention.end_word]
            spelled = example.text[words[0].start_char : words[-1].end_char]
            if mention.type == "pronoun":
                assert spelled.lower() in ("he", "him", "his", "she", "her", "hers", "himself", "herself")
                assert mention.cluster == "pronoun"
