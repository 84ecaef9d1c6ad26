"""This file proves that ready-made tokens are fed as the model's tokenizer would, also where a folder has none."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertModel

from attnstore.capture.check import check
from attnstore.capture.encode import Encoder
from attnstore.capture.model import describe, load, load_encoder
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded
from attnstore.text.example import Token

Tiny = Callable[[str], Path]
Make = Callable[[str], Any]
SYMBOLS = ["[PAD]", "C", "Cl", "[UNK]", "[CLS]", "[SEP]", "O", ">>", "[MASK]", " "]


def placed(*texts: str, part: int = 0) -> list[Token]:
    """Tokens that stand two characters apart."""
    return [Token(text, 9 * place, 9 * place + len(text), part) for place, text in enumerate(texts)]


@pytest.fixture
def folder(tiny: Tiny, tmp_path: Path) -> Path:
    """A tiny BERT in the manner of older packages: a list of symbols, and a configuration without a model type."""
    place = Path(shutil.copytree(tiny("bert"), tmp_path / "bert_of_symbols"))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (place / name).unlink(missing_ok=True)
    (place / "vocab.txt").write_text("\n".join(SYMBOLS) + "\n", encoding="utf-8")
    config = json.loads((place / "config.json").read_text())
    del config["model_type"], config["architectures"]
    (place / "config.json").write_text(json.dumps(config))
    return place


# --- a model with a tokenizer of texts


@pytest.mark.parametrize("name", ["wordpiece", "roberta", "gpt2", "unigram"])
@pytest.mark.parametrize("second", [None, "a dog"])
def test_the_tokenizers_own_tokens_come_out_as_its_text_does(tokenizer: Make, name: str, second: str | None) -> None:
    encoder = Encoder(tokenizer(name), n_types=2)
    expected = encoder.encode("the cat sat on mats", second)
    tokens = [
        Token(text, *span, part)
        for text, span, part in zip(expected.texts, expected.spans, expected.parts, strict=True)
        if span is not None and part is not None
    ]
    assert encoder.encode_tokens(tokens) == expected
    assert encoder.encode_tokens(tokens, part_ids="zeros") == encoder.encode(
        "the cat sat on mats", second, part_ids="zeros"
    )


def test_a_token_is_looked_up_whole_and_as_it_is_written(tokenizer: Make) -> None:
    encoder = Encoder(tokenizer("wordpiece"))
    encoded = encoder.encode_tokens(placed("cat", "##s", "[MASK]", "[UNK]"))
    assert encoded.texts == ("[CLS]", "cat", "##s", "[MASK]", "[UNK]", "[SEP]")
    assert encoded.spans == (None, (0, 3), (9, 12), (18, 24), (27, 32), None)
    # A mask that the corpus puts stands in the place of a token.
    assert encoded.special == ("cls", None, None, None, None, "sep")
    for unknown in ("cats", "Cat", "", "the cat"):
        with pytest.raises(BadInput, match="a symbol of the model's vocabulary"):
            encoder.encode_tokens(placed("the", unknown))
    with pytest.raises(BadInput, match="part_ids = 'none'"):
        encoder.encode_tokens(placed("the"), part_ids="none")


@pytest.mark.parametrize(
    ("name", "put_round"),
    [
        ("wordpiece", {"[CLS]", "[SEP]", "[PAD]"}),
        ("roberta", {"<s>", "</s>", "<pad>"}),
        # Nothing goes round a text, so the token may be given.
        ("gpt2", set()),
        ("unigram", {"</s>", "<pad>"}),
    ],
)
def test_the_vocabulary_says_what_is_put_round_a_text(tokenizer: Make, name: str, put_round: set[str]) -> None:
    theirs = tokenizer(name)
    vocabulary = Encoder(theirs).vocabulary
    assert vocabulary.put_round == put_round
    assert vocabulary.ids == theirs.get_vocab()
    assert all(vocabulary.symbols[number] == symbol for symbol, number in vocabulary.ids.items())


# --- a folder with a list of symbols


def test_a_list_of_symbols_is_enough_for_tokens(folder: Path) -> None:
    encoder = load_encoder(str(folder), tokens="given")
    assert encoder.encode_tokens(placed("C", " ", ">>", "Cl")) == Encoded(
        # The ids are the lines of vocab.txt, from 0.
        ids=(4, 1, 9, 7, 2, 5),
        texts=("[CLS]", "C", " ", ">>", "Cl", "[SEP]"),
        spans=(None, (0, 1), (9, 10), (18, 20), (27, 29), None),
        parts=(None, 0, 0, 0, 0, None),
        type_ids=(0,) * 6,
        special=("cls", None, None, None, None, "sep"),
    )
    pair = encoder.encode_tokens([*placed("C"), *placed("O", "O", part=1)])
    assert pair.texts == ("[CLS]", "C", "[SEP]", "O", "O", "[SEP]")
    assert pair.parts == (None, 0, None, 1, 1, None)
    assert pair.type_ids == (0, 0, 0, 1, 1, 1)
    assert (encoder.pad_id, encoder.n_special(False), encoder.n_special(True)) == (0, 2, 3)
    assert encoder.vocabulary.ids == {symbol: number for number, symbol in enumerate(SYMBOLS)}
    assert encoder.vocabulary.put_round == {"[CLS]", "[SEP]", "[PAD]"}
    assert "sha256:vocab.txt" in encoder.facts


def test_a_list_of_symbols_does_not_split_texts(folder: Path) -> None:
    for call in (load_encoder, load):
        with pytest.raises(BadInput, match=r'vocab\.txt lists symbols.*corpus\.kind = "tokens"'):
            call(str(folder))


def test_a_list_of_word_pieces_does(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bert"}))
    (folder / "vocab.txt").write_text("\n".join([*SYMBOLS, "cat", "##s"]), encoding="utf-8")
    assert load_encoder(str(folder)).encode("cats").texts == ("[CLS]", "cat", "##s", "[SEP]")
    assert load_encoder(str(folder), tokens="given").encode_tokens(placed("##s")).texts[1] == "##s"


def test_special_tokens_may_have_other_names(folder: Path) -> None:
    names = {"cls_token": "<C>", "sep_token": {"content": "<S>", "lstrip": False}, "additional": ["x"]}
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    (folder / "vocab.txt").write_text("C\n<C>\n<S>\n[UNK]\n")
    assert load_encoder(str(folder), tokens="given").encode_tokens(placed("C")).ids == (1, 0, 2)
    (folder / "vocab.txt").write_text("C\n<C>\n[SEP]\n")
    with pytest.raises(BadInput, match=r"no <S> and no \[UNK\] among its 3 symbols"):
        load_encoder(str(folder), tokens="given")
    (folder / "special_tokens_map.json").write_text("{")
    with pytest.raises(BadInput, match=r"special_tokens_map\.json"):
        load_encoder(str(folder), tokens="given")
    (folder / "vocab.txt").write_bytes(b"\xff\n")
    with pytest.raises(BadInput, match=r"vocab\.txt.*UTF-8"):
        load_encoder(str(folder), tokens="given")


# --- a configuration without a model type


def test_a_folders_name_tells_the_type_of_a_model_that_does_not(folder: Path) -> None:
    assert describe(str(folder)).model_type == "bert"
    captor = load(str(folder), tokens="given")
    encoded = captor.encoder.encode_tokens(placed("C", "O"))
    assert check(captor, [(encoded, None)]) <= 1e-6
    model = BertModel.from_pretrained(folder.parent / folder.name, attn_implementation="eager").eval()
    with torch.inference_mode():
        own = model(input_ids=torch.tensor([encoded.ids]), output_attentions=True).attentions
    found: dict[int, Any] = {}
    captor.run(
        {"input_ids": torch.tensor([encoded.ids]), "attention_mask": torch.ones(1, 4, dtype=torch.long)},
        lambda kind, layer, weights: found.update({layer: weights}),
    )
    assert all(abs(found[layer] - own[layer].numpy()).max() <= 1e-6 for layer in (0, 1))


@pytest.mark.parametrize(
    ("name", "kind"), [("albert_8_heads", "albert"), ("XLM_RoBERTa-x", "xlm-roberta"), ("my-distilbert", "distilbert")]
)
def test_the_longest_type_in_the_name_counts(folder: Path, name: str, kind: str) -> None:
    assert describe(str(folder.rename(folder.parent / name))).model_type == kind


@pytest.mark.parametrize("name", ["labelled", "mybert", "model"])
def test_a_type_that_is_only_a_part_of_a_word_does_not_count(folder: Path, name: str) -> None:
    place = folder.rename(folder.parent / name)
    with pytest.raises(BadInput, match="no model_type, and the folder's name tells none"):
        describe(str(place))


def test_weights_of_another_type_than_the_name_says_are_refused(folder: Path) -> None:
    place = folder.rename(folder.parent / "distilbert-base")
    with pytest.raises(BadInput, match="are not in its files"):
        load(str(place), tokens="given")
