"""This file proves that CoNLL-U is read as written: places in the text, trees, mentions, and errors with their line."""

from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.text.conllu import read
from attnstore.text.example import Example, Skipped
from attnstore.text.files import Source


def row(number: str, form: str, governor: str = "0", deprel: str = "root", misc: str = "_", tags: str = "X Y") -> str:
    upos, xpos = tags.split(" ")
    return "\t".join([number, form, form.lower(), upos, xpos, "_", governor, deprel, "_", misc])


def mwt(number: str, form: str, misc: str = "_") -> str:
    return "\t".join([number, form, *"_______", misc])


def source_of(tmp_path: Path, *lines: str, name: str = "notes.conllu") -> Source:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Source(path, path.stem)


def sentences(tmp_path: Path, *lines: str) -> list[Example]:
    found = list(read(source_of(tmp_path, *lines)))
    assert all(isinstance(item, Example) for item in found)
    return found  # type: ignore[return-value]


def places(example: Example) -> list[str | None]:
    """What the text holds at the place of each word."""
    return [
        None if word.start_char is None else example.text[word.start_char : word.end_char] for word in example.words
    ]


def error_of(tmp_path: Path, *lines: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        list(read(source_of(tmp_path, *lines)))
    return caught.value


GOOD = [
    "# newdoc id = voyage",
    "# sent_id = voyage-1",
    "# text = Čapek doesn't sail.",
    row("1", "Čapek", "4", "nsubj", tags="PROPN NNP"),
    mwt("2-3", "doesn't"),
    row("2", "does", "4", "aux"),
    row("3", "n't", "4", "advmod"),
    row("4", "sail", "0", "root", "SpaceAfter=No"),
    row("4.1", "sail", "_", "_"),
    row("5", ".", "4", "punct", tags="PUNCT ."),
]


def test_words_ranges_and_empty_nodes_become_syntactic_words_with_their_places(tmp_path: Path) -> None:
    (example,) = sentences(tmp_path, *GOOD, "")
    assert example.name == "voyage-1"
    assert example.document == "voyage"
    assert example.where == "notes.conllu:1"
    assert [word.form for word in example.words] == ["Čapek", "does", "n't", "sail", "."]
    assert places(example) == ["Čapek", "does", "n't", "sail", "."]
    assert [word.governor for word in example.words] == [3, 3, 3, None, 3]
    assert [word.deprel for word in example.words] == ["nsubj", "aux", "advmod", "root", "punct"]
    first = example.words[0]
    assert (first.lemma, first.upos, first.xpos, first.sentence, first.part) == ("čapek", "PROPN", "NNP", 0, 0)


def test_crlf_bom_a_missing_last_line_end_and_several_blank_lines_change_nothing(tmp_path: Path) -> None:
    (plain,) = sentences(tmp_path, *GOOD)
    path = tmp_path / "notes.conllu"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*GOOD, "", "", *GOOD]).encode())
    first, second = read(Source(path, "notes"))
    assert isinstance(first, Example)
    assert first == plain
    assert isinstance(second, Example)
    assert second.words == plain.words


def test_without_sent_id_newdoc_and_text_they_come_from_the_file(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path, "", row("1", "Go", misc="SpaceAfter=No"), row("2", "!", "1", "punct"), row("3", "Now", "1", "advmod")
    )
    assert (example.name, example.document, example.text) == ("notes:2", "notes", "Go! Now")
    assert places(example) == ["Go", "!", "Now"]


def test_a_rebuilt_text_takes_the_surface_of_a_range_and_its_space_after(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path,
        mwt("1-2", "Du", "SpaceAfter=No"),
        row("1", "De", "0", "root"),
        row("2", "le", "1", "dep"),
        row("3", ".", "1", "punct"),
    )
    assert example.text == "Du."
    assert places(example) == [None, None, "."]


def test_a_range_whose_letters_differ_in_case_only_is_split(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path, "# text = CANNOT", mwt("1-2", "CANNOT"), row("1", "can"), row("2", "not", "1", "advmod")
    )
    assert places(example) == ["CAN", "NOT"]


def test_every_newdoc_begins_a_document_even_without_an_id(tmp_path: Path) -> None:
    found = sentences(
        tmp_path, "# newdoc", row("1", "One"), "", row("1", "Two"), "", "# newdoc id = second", row("1", "Three"), ""
    )
    assert [example.document for example in found] == ["notes:1", "notes:1", "second"]


def test_several_spaces_a_form_with_a_space_and_a_hash_are_found_in_the_text(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path,
        "# text = about  10\u00a0000 # = x",
        row("1", "about"),
        row("2", "10 000"),
        row("3", "#"),
        row("4", "="),
        row("5", "x"),
    )
    assert places(example) == ["about", "10\u00a0000", "#", "=", "x"]


def test_several_roots_and_words_without_annotation_are_accepted(tmp_path: Path) -> None:
    (example,) = sentences(tmp_path, row("1", "a"), row("2", "b"), row("3", "c", "_", "_"))
    assert [(word.governor, word.deprel) for word in example.words] == [(None, "root"), (None, "root"), (None, None)]


def test_an_underscore_is_a_form_and_the_lemma_of_itself(tmp_path: Path) -> None:
    (example,) = sentences(tmp_path, "# text = _", "\t".join(["1", "_", "_", "SYM", "_", "_", "0", "root", "_", "_"]))
    assert (example.words[0].form, example.words[0].lemma, example.words[0].xpos) == ("_", "_", None)


def test_a_sentence_without_words_is_skipped_and_comments_alone_are_not_a_sentence(tmp_path: Path) -> None:
    found = list(read(source_of(tmp_path, "# a licence", "", "# sent_id = hollow", "", row("1", "Word"), "")))
    assert found[0] == Skipped("hollow", "the sentence has no words", "notes.conllu:3")
    assert [item.name for item in found] == ["hollow", "notes:5"]


@pytest.mark.parametrize(
    ("lines", "line", "found"),
    [
        (["1 Word word X Y _ 0 root _ _"], 1, "1 columns"),
        ([row("1", "a"), row("2", "b") + "\tmore"], 2, "11 columns"),
        ([row("1", "a"), row("3", "b")], 2, "the id 3"),
        ([row("1", "a"), row("1", "b")], 2, "the id 1"),
        ([row("x", "a")], 1, "the id 'x'"),
        ([row("1", " ")], 1, "an empty form"),
        ([row("1", "a", "b")], 1, "the governor 'b'"),
        ([row("1", "a", "-1")], 1, "the governor '-1'"),
        ([row("1", "a", "_", "nsubj")], 1, "the governor '_'"),
        ([row("1", "a"), row("2", "b", "9")], 2, "governor 9: its governor is none of the words"),
        ([row("1", "a"), row("2", "b", "2")], 2, "governor 2: it is its own governor"),
        ([row("1", "a"), row("2", "b", "3"), row("3", "c", "2")], 2, "governor 3: its governors run in a circle"),
        ([mwt("1-3", "ab"), row("1", "a"), row("2", "b")], 1, "a range up to word 3"),
        ([row("1", "a"), mwt("1-2", "ab"), row("2", "b")], 2, "the range 1-2"),
        ([mwt("1-2", "ab"), row("1", "a"), mwt("2-3", "bc"), row("2", "b"), row("3", "c")], 3, "the range 2-3"),
        (["# text = a c", row("1", "a"), row("2", "b")], 3, "the form 'b' where the text goes on 'c'"),
        (["# text = a b c", row("1", "a"), row("2", "b")], 3, "the text goes on 'c'"),
        (["# text = a", row("1", "a"), row("2", "b")], 3, "the form 'b' where the text goes on ''"),
        ([row("1", "a", misc="Entity=(1-person")], 1, "opens but does not close"),
        ([row("1", "a"), row("2", "b", misc="Entity=7)")], 2, "'7' closes but was not opened"),
        ([row("1", "a", misc="Entity=person")], 1, "Entity=person"),
        ([row("1", "a", misc="Entity=(7[1/2]-person)")], 1, "has 1 pieces"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, lines: list[str], line: int, found: str) -> None:
    error = error_of(tmp_path, *lines, "")
    assert error.doing == f"reading {tmp_path / 'notes.conllu'}, line {line}"
    assert found in error.found
    assert error.expected


def test_a_fault_in_the_second_sentence_comes_after_the_first_was_given(tmp_path: Path) -> None:
    items = read(source_of(tmp_path, *GOOD, "", row("1", "a", "7")))
    assert next(items).name == "voyage-1"
    with pytest.raises(BadInput, match="line 12"):
        next(items)


# The young cook , who taught herself , met Ida and her aunt .
# cook is the head of words 0-6 and its governor "met" lies outside of them.
MENTIONS = [
    "# global.Entity = GRP-etype-infstat",
    row("1", "The", "3", "det", "Entity=(3-person-new"),
    row("2", "young", "3", "amod"),
    row("3", "cook", "9", "nsubj", tags="NOUN NN"),
    row("4", ",", "6", "punct", tags="PUNCT ,"),
    row("5", "who", "6", "nsubj", tags="PRON WP", misc="Entity=(3-person-giv)"),
    row("6", "taught", "3", "acl:relcl"),
    row("7", "herself", "6", "obj", "Entity=(3-person-giv)3)", tags="PRON PRP"),
    row("8", ",", "6", "punct", tags="PUNCT ,"),
    row("9", "met", "0", "root"),
    row("10", "Ida", "9", "obj", "Entity=(5-person-new(4-person-new)", tags="PROPN NNP"),
    row("11", "and", "13", "cc"),
    row("12", "her", "13", "nmod:poss", "Entity=(6-person-new(4-person-giv)", tags="PRON PRP$"),
    row("13", "aunt", "10", "conj", "Entity=6)5)", tags="NOUN NN"),
    row("14", ".", "9", "punct", tags="PUNCT ."),
]


def test_concatenated_brackets_give_nested_mentions_with_head_and_type(tmp_path: Path) -> None:
    (example,) = sentences(tmp_path, *MENTIONS)
    found = [(m.cluster, m.start_word, m.end_word, m.head_word, m.type) for m in example.mentions]
    assert found == [
        ("3", 0, 7, 2, "nominal"),
        ("3", 4, 5, 4, "pronoun"),
        ("3", 6, 7, 6, "pronoun"),
        ("5", 9, 13, 9, "proper"),
        ("4", 9, 10, 9, "proper"),
        ("6", 11, 13, 12, "nominal"),
        ("4", 11, 12, 11, "pronoun"),
    ]


def test_punctuation_is_no_mention_head_and_without_another_the_last_word_is(tmp_path: Path) -> None:
    # In '" a b' only the quotation mark and a have governors outside of the span; in ', .' nothing but punctuation.
    (example,) = sentences(
        tmp_path,
        row("1", '"', "4", "punct", "Entity=(1-x", tags="PUNCT ``"),
        row("2", "a", "4", "nsubj"),
        row("3", "b", "2", "flat", "Entity=1)"),
        row("4", "c", "0", "root"),
        row("5", ",", "4", "punct", "Entity=(2-x", tags="PUNCT ,"),
        row("6", ".", "4", "punct", "Entity=2)", tags="PUNCT ."),
    )
    assert [mention.head_word for mention in example.mentions] == [1, 5]


def test_two_mentions_of_one_entity_that_overlap_close_innermost_first(tmp_path: Path) -> None:
    rows = [
        row("1", "a", misc="Entity=(1-x"),
        row("2", "b", misc="Entity=(1-x"),
        row("3", "c", misc="Entity=1)"),
        row("4", "d", misc="Entity=1)"),
    ]
    (example,) = sentences(tmp_path, *rows)
    assert [(m.start_word, m.end_word) for m in example.mentions] == [(0, 4), (1, 3)]


def test_mentions_of_different_entities_may_cross(tmp_path: Path) -> None:
    rows = [
        row("1", "a", misc="Entity=(1-x"),
        row("2", "b", misc="Entity=(2-x"),
        row("3", "c", misc="Entity=1)"),
        row("4", "d", misc="Entity=2)"),
    ]
    (example,) = sentences(tmp_path, *rows)
    assert [(m.cluster, m.start_word, m.end_word) for m in example.mentions] == [("1", 0, 3), ("2", 1, 4)]


def test_a_mention_in_pieces_has_the_span_of_the_piece_with_its_head(tmp_path: Path) -> None:
    # "b … d" is one mention in two pieces; b depends on d, and d on c outside.
    (example,) = sentences(
        tmp_path,
        row("1", "a", "3", "dep"),
        row("2", "b", "4", "dep", "Entity=(8[1/2]-x)"),
        row("3", "c", "0", "root"),
        row("4", "d", "3", "dep", "Entity=(8[2/2]-x)"),
    )
    (mention,) = example.mentions
    assert (mention.cluster, mention.start_word, mention.end_word, mention.head_word) == ("8", 3, 4, 3)


def test_brackets_on_an_empty_node_span_the_words_beside_it(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path,
        row("1", "a", misc="_"),
        row("1.1", "zero", "_", "_", "Entity=(1-x)(2-x"),
        row("2", "b", "1", "dep", "Entity=2)"),
    )
    assert [(m.cluster, m.start_word, m.end_word) for m in example.mentions] == [("2", 1, 2)]


def test_the_header_says_which_field_names_the_entity(tmp_path: Path) -> None:
    (example,) = sentences(
        tmp_path,
        "# global.Entity = etype-GRP-infstat",
        row("1", "a", misc="Entity=(person-12-new"),
        row("2", "b", "1", "dep", "Entity=(place-13-new)person-12)"),
    )
    assert [mention.cluster for mention in example.mentions] == ["12", "13"]


def test_one_id_in_two_documents_stays_apart_by_document(tmp_path: Path) -> None:
    one = [row("1", "a", misc="Entity=(1-x)"), ""]
    found = sentences(tmp_path, "# newdoc id = p", *one, "# newdoc id = q", *one)
    assert [(example.document, example.mentions[0].cluster) for example in found] == [("p", "1"), ("q", "1")]
