"""This file proves that tokens of a corpus's own are looked up, find their places, and are cut where they end."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Link, Skipped, Token, Word
from attnstore.text.pack import cut_windows, truncate
from attnstore.text.vocabulary import Vocabulary

SYMBOLS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "C", "Cl", "O", "=", ">>", "##l", "\u0120the", "\u2581", " "]
VOCABULARY = Vocabulary(
    {symbol: number for number, symbol in enumerate(SYMBOLS)}, frozenset({"[PAD]", "[CLS]", "[SEP]"})
)


def load(tmp_path: Path, *records: dict[str, Any], columns: dict[str, str] | None = None) -> list[Example | Skipped]:
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return list(read(Corpus("tokens", (path,), columns=columns or {}, vocabulary=VOCABULARY)))


def one(tmp_path: Path, record: dict[str, Any], **columns: str) -> Example:
    (example,) = load(tmp_path, record, columns=columns)
    assert isinstance(example, Example)
    return example


def error_of(tmp_path: Path, record: dict[str, Any], **columns: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, {"tokens": ["C"]}, record, columns=columns)
    assert f"{tmp_path / 'own.jsonl'}, line 2" in str(caught.value)
    return str(caught.value)


def no_spans(text: str) -> list[tuple[int, int]]:
    raise AssertionError("a text whose tokens are given is not tokenized")


# --- reading


def test_without_a_text_the_tokens_are_joined_by_single_spaces(tmp_path: Path) -> None:
    example = one(tmp_path, {"tokens": ["C", "Cl", "##l", "O"], "label": 3, "name": "n", "document": "d", "split": "a"})
    assert example == Example(
        "n",
        "C Cl ##l O",
        label="3",
        document="d",
        split="a",
        tokens=(Token("C", 0, 1), Token("Cl", 2, 4), Token("##l", 5, 8), Token("O", 9, 10)),
        where="own.jsonl:1",
    )


def test_tokens_are_found_in_the_text_that_comes_with_them(tmp_path: Path) -> None:
    example = one(
        tmp_path, {"text": "CCl>>O, the Cl", "tokens": ["C", "Cl", ">>", "O", "\u2581", "\u0120the", "C", "##l"]}
    )
    assert [(token.start_char, token.end_char) for token in example.tokens] == [
        # The comma is no token's; a mark for a space alone is an empty token.
        *((0, 1), (1, 3), (3, 5), (5, 6), (6, 6), (8, 11), (12, 13), (13, 14))
    ]
    assert [token.symbol for token in example.tokens][4:6] == ["\u2581", "\u0120the"]


def test_ids_stand_for_their_symbols(tmp_path: Path) -> None:
    by_id = one(tmp_path, {"ids": [5, 6, 4]})
    assert by_id.text == "C Cl [MASK]"
    assert by_id.tokens == one(tmp_path, {"tokens": ["C", "Cl", "[MASK]"]}).tokens
    assert one(tmp_path, {"text": "CCl", "ids": [5, 6]}).tokens == (Token("C", 0, 1), Token("Cl", 1, 3))


def test_a_pair_has_tokens_in_both_parts(tmp_path: Path) -> None:
    example = one(tmp_path, {"tokens": ["C"], "second": "CO", "second_ids": [5, 7]})
    assert (example.text, example.second) == ("C", "CO")
    assert example.tokens == (Token("C", 0, 1, 0), Token("C", 0, 1, 1), Token("O", 1, 2, 1))


def test_columns_rename_tokens_and_text(tmp_path: Path) -> None:
    record = {"pieces": ["C", "O"], "smiles": "CO", "text": "not this", "target": "nor this"}
    example = one(tmp_path, record, tokens="pieces", text="smiles")
    assert (example.text, example.target) == ("CO", None)
    assert example.tokens == (Token("C", 0, 1), Token("O", 1, 2))


def test_a_column_that_is_named_and_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no 'smiles' for the field 'text'"):
        load(tmp_path, {"tokens": ["C"]}, columns={"text": "smiles"})


def test_words_and_links_lie_over_the_text(tmp_path: Path) -> None:
    link = {
        "relation": "becomes",
        "source_start_word": 0,
        "source_end_word": 1,
        "target_start_word": 1,
        "target_end_word": 2,
    }
    example = one(
        tmp_path, {"text": "CCl>>O", "tokens": ["C", "Cl", ">>", "O"], "words": ["CCl", "O"], "links": [link]}
    )
    assert example.words == (Word("CCl", 0, 3), Word("O", 5, 6))
    assert example.links == (Link("becomes", 0, 1, 1, 2),)


def test_an_example_without_a_token_is_skipped_with_a_reason(tmp_path: Path) -> None:
    records = [{"tokens": []}, {"text": "CO", "tokens": []}, {"tokens": ["C"], "second": "O", "second_tokens": []}]
    reasons = [item.reason for item in load(tmp_path, *records) if isinstance(item, Skipped)]
    assert reasons == ["its text is empty", "its text has no tokens", "its second has no tokens"]


def test_an_unknown_symbol_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    message = error_of(tmp_path, {"tokens": ["C", "CCl"]})
    assert "tokens[1] is 'CCl'; expected one of the 14 symbols" in message
    assert "Did you mean 'Cl'?" in message


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"tokens": ["C", ""]}, r"tokens[1] is ''"),
        ({"tokens": ["C", 5]}, "tokens[1] is 5; expected a symbol as a string. Numbers belong under ids"),
        ({"ids": [5, 14]}, "ids[1] is 14; expected an id of the model's vocabulary of 14"),
        ({"ids": [5, -1]}, "ids[1] is -1"),
        ({"ids": [True]}, "ids[0] is True"),
        ({"ids": ["C"]}, "ids[0] is 'C'"),
        ({"tokens": "C O"}, "'tokens' is a str; expected a list"),
        ({"token": ["C"]}, "neither 'tokens' nor 'ids'; expected one of them. Did you mean 'token'?"),
        ({"tokens": None}, "neither 'tokens' nor 'ids'"),
        ({"tokens": ["C"], "ids": [5]}, "'tokens' and 'ids'; expected one of them"),
        ({"tokens": ["[CLS]", "C"]}, "tokens[0] is '[CLS]'; expected tokens without the special ones"),
        ({"ids": [5, 0]}, "ids[1] is '[PAD]'"),
        ({"text": "OC", "tokens": ["C", "O"]}, "tokens[1], 'O', is not in the text from character 2 on"),
        ({"tokens": ["C"], "second": "O"}, "a second text without its tokens"),
        ({"tokens": ["C"], "second": "CC", "second_tokens": ["O"]}, "second_tokens[0], 'O'"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, record: dict[str, Any], found: str) -> None:
    assert found in error_of(tmp_path, record)


def test_a_corpus_of_tokens_cannot_be_read_without_a_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"tokens": ["C"]}')
    with pytest.raises(BadInput, match="no vocabulary"):
        list(read(Corpus("tokens", (path,))))


# --- cutting


def test_a_text_with_spaces_between_its_tokens_is_cut_after_as_many_as_fit(tmp_path: Path) -> None:
    example = one(tmp_path, {"name": "n", "tokens": ["C", "Cl", "O", "C", "O"]})
    first, second, third = cut_windows(example, no_spans, 2)
    assert [window.name for window in (first, second, third)] == ["n#1", "n#2", "n#3"]
    assert (first.text, second.text, third.text) == ("C Cl", "O C", "O")
    assert second.tokens == (Token("O", 0, 1), Token("C", 2, 3))
    assert third.tokens == (Token("O", 0, 1),)


def test_a_window_ends_at_white_space_if_there_is_any(tmp_path: Path) -> None:
    example = one(tmp_path, {"text": "CO, CCO", "tokens": ["C", "O", "C", "C", "O"], "words": ["CO", ",", "CCO"]})
    first, second = cut_windows(example, no_spans, 3)
    # The comma has no token and stays with the window before it, as does its word.
    assert (first.text, second.text) == ("CO,", "CCO")
    assert [word.form for word in first.words] == ["CO", ","]
    assert second.words == (Word("CCO", 0, 3),)
    assert [token.start_char for token in second.tokens] == [0, 1, 2]
    assert [window.text for window in cut_windows(example, no_spans, 2)] == ["CO,", "CC", "O"]


def test_a_token_that_is_white_space_is_not_stripped(tmp_path: Path) -> None:
    example = one(tmp_path, {"text": "C O", "tokens": ["C", " ", "O"]})
    first, second = cut_windows(example, no_spans, 2)
    assert (first.text, second.text) == ("C ", "O")
    assert first.tokens == (Token("C", 0, 1), Token(" ", 1, 2))


def test_the_first_tokens_stay_and_the_longer_text_of_a_pair_loses(tmp_path: Path) -> None:
    single = truncate(one(tmp_path, {"text": "CClO", "tokens": ["C", "Cl", "O"]}), no_spans, 2)
    assert (single.text, single.tokens) == ("CCl", (Token("C", 0, 1), Token("Cl", 1, 3)))
    pair = one(tmp_path, {"tokens": ["C", "O"], "second": "CClO", "second_tokens": ["C", "Cl", "O"]})
    # 3 and 2: the second loses one; 2 and 2: the later of two alike loses.
    shorter = truncate(pair, no_spans, 3)
    assert (shorter.text, shorter.second) == ("C O", "C")
    assert shorter.tokens == (Token("C", 0, 1), Token("O", 2, 3), Token("C", 0, 1, 1))
    assert truncate(pair, no_spans, 5) == pair


def test_a_budget_that_leaves_a_text_without_a_token_is_an_error(tmp_path: Path) -> None:
    pair = one(tmp_path, {"tokens": ["C", "O"], "second_tokens": ["C", "O"]})
    for cut, budget in ((truncate, 1), (truncate, -1)):
        with pytest.raises(BadInput, match="without a token"):
            cut(pair, no_spans, budget)
    with pytest.raises(BadInput, match="without a token"):
        cut_windows(one(tmp_path, {"tokens": ["C", "O"]}), no_spans, 0)
    with pytest.raises(BadInput, match="has a second text"):
        cut_windows(pair, no_spans, 2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["C", "Cl", "O", "\u2581", " "]), min_size=1, max_size=25),
    st.lists(st.sampled_from(["", " ", "-", ", "]), min_size=26, max_size=26),
    st.integers(1, 6),
)
def test_windows_hold_every_token_once_at_its_characters(symbols: list[str], gaps: list[str], budget: int) -> None:
    text, tokens = gaps[0], []
    for symbol, gap in zip(symbols, gaps[1:], strict=False):
        spelled = "" if symbol == "\u2581" else symbol
        tokens.append(Token(symbol, len(text), len(text) + len(spelled)))
        text += spelled + gap
    example = Example("x", text, tokens=tuple(tokens))
    windows = cut_windows(example, no_spans, budget)
    assert [token.symbol for window in windows for token in window.tokens] == symbols
    for window in windows:
        assert 1 <= len(window.tokens) <= budget
        for token in window.tokens:
            spelled = "" if token.symbol == "\u2581" else token.symbol
            assert window.text[token.start_char : token.end_char] == spelled
    # Texts together leave out nothing but white space.
    assert "".join("".join(window.text.split()) for window in windows) == "".join(text.split())
