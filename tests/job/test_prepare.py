"""The source of words decides which annotation of the corpus goes on to the parser and the store."""

import json
from pathlib import Path

import pytest

from attnstore.job.prepare import Preparer
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared
from attnstore.text.encoded import Encoded
from attnstore.text.example import Mention
from attnstore.text.fit import Bounds
from attnstore.text.places import split_words


class Signs:
    """A tokenizer whose tokens are words and signs."""

    def spans(self, text: str) -> list[Bounds]:
        return [(word.start_char or 0, word.end_char or 0) for word in split_words(text)]

    def n_special(self, pair: bool) -> int:
        return 0

    def encode(self, text: str, second: str | None = None, *, part_ids: str = "true") -> Encoded:
        spans = self.spans(text)
        n = len(spans)
        forms = tuple(text[start:end] for start, end in spans)
        return Encoded((0,) * n, forms, tuple(spans), (0,) * n, (0,) * n, (None,) * n)

    def encode_target(self, text: str) -> Encoded:
        return self.encode(text)


def prepared(folder: Path, source: str, longest: int = 99) -> list[Prepared]:
    names = {"a": "Ida", "a_offset": 0, "a_coref": True, "b": "Una", "b_offset": 8, "b_coref": False}
    item = {"id": "p", "text": "Ida met Una when she left.", "pronoun": "she", "pronoun_offset": 17, **names}
    (folder / "gap.jsonl").write_text(json.dumps(item))
    corpus = {"kind": "gap", "path": "gap.jsonl"}
    recipe = Recipe.build({"corpus": corpus, "model": {"name": "m"}, "words": {"source": source}}, folder=folder)
    found = list(Preparer(recipe, Signs(), longest, None).examples())
    return [item for item in found if isinstance(item, Prepared)]


@pytest.mark.parametrize("source", ["gold", "spacy:any"])
def test_mentions_go_on_to_the_parser_on_the_words_of_the_corpus(tmp_path: Path, source: str) -> None:
    (item,) = prepared(tmp_path, source)
    assert [word.form for word in item.example.words] == ["Ida", "met", "Una", "when", "she", "left", "."]
    assert [(m.cluster, m.start_word) for m in item.example.mentions] == [("pronoun", 0), ("b", 2), ("pronoun", 4)]


def test_they_go_with_the_window_that_holds_them(tmp_path: Path) -> None:
    first, second = prepared(tmp_path, "spacy:any", longest=4)
    assert [(m.cluster, m.start_word) for m in first.example.mentions] == [("pronoun", 0), ("b", 2)]
    assert second.example.mentions == (Mention("pronoun", 0, 1, 0, "pronoun"),)


def test_without_words_there_are_no_mentions(tmp_path: Path) -> None:
    (item,) = prepared(tmp_path, "none")
    assert (item.example.words, item.example.mentions) == ((), ())
