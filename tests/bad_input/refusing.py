"""This file makes tiny models and recipes that go wrong, and checks that they are refused and nothing is changed."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

from attnstore.errors import AttnStoreError
from attnstore.format.verify import verify
from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "barked", "."]
SIZES = {"vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "max_position_embeddings": 24}
GOOD = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def tokenizer() -> PreTrainedTokenizerFast:
    """A word-piece tokenizer with every printable letter."""
    letters = [chr(code) for code in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *letters, *(f"##{letter}" for letter in letters[65:91])]
    ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    inner = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    specials = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    inner.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", specials)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def saved(model: Any, folder: Path) -> Path:
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    logging.enable_progress_bar()
    tokenizer().save_pretrained(folder)
    return folder


def recipe(folder: Path, model: Path | str, kind: str, path: Any, **keys: Any) -> Recipe:
    value = {"corpus": {"kind": kind, "path": path}, "model": {"name": str(model)}}
    overrides = {key.replace("__", "."): item for key, item in keys.items()}
    return Recipe.build(value, overrides, folder=folder)


def content(store: Path) -> dict[str, str]:
    """sha256 of every file under a folder."""
    files = (path for path in store.rglob("*") if path.is_file())
    return {path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def refused(standing: Path, wrong: Recipe, kind: type[AttnStoreError], *told: str) -> AttnStoreError:
    """Ingesting raises exactly this kind of error, with all of that in its message; the store stays as it was."""
    before = content(standing)
    with pytest.raises(kind) as caught:
        ingest(wrong, standing).close()
    error = caught.value
    assert type(error) is kind
    for part in told:
        assert part in str(error), f"{part!r} is not in: {error}"
    assert error.doing and error.found  # noqa: PT018
    assert error.expected or error.remedy, f"{error} does not say what to do"
    assert content(standing) == before
    assert verify(standing, deep=True) == []
    # Into a new folder nothing is written either.
    fresh = standing.parent / "fresh.attn"
    with pytest.raises(kind):
        ingest(wrong, fresh)
    assert not fresh.exists()
    return error


def conllu(*rows: str) -> bytes:
    """Lines of a sentence; each row is FORM HEAD."""
    lines = []
    for number, row in enumerate(rows, start=1):
        form, head = row.split(" ")
        lines.append(f"{number}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t_")
    return ("\n".join(lines) + "\n\n").encode()


LONG = " ".join(["the cat sat on a mat ."] * 5)
"""35 words, and 22 tokens fit between [CLS] and [SEP]."""
