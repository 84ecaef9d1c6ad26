"""This file makes tokenizers that look tokens up whole, for texts that somebody else has split."""

import json
from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from attnstore.capture.folder import tokenizer_files
from attnstore.errors import BadInput

_FILE = "vocab.txt"
_NAMES = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "mask_token": "[MASK]",
}
_NEEDED = ("cls_token", "sep_token", "unk_token")


def whole(backend: Tokenizer) -> Tokenizer:
    """A tokenizer of lists of symbols that are in the vocabulary; the same special tokens go round them."""
    own = Tokenizer(WordLevel(backend.get_vocab(with_added_tokens=True)))
    if backend.post_processor is not None:
        own.post_processor = backend.post_processor
    return own


def symbols_only(folder: Path) -> bool:
    """Whether a folder has a list of symbols and nothing that says how texts are split into them.

    A vocab.txt of word pieces does say it: pieces that continue a word begin with ##.
    """
    return tokenizer_files(folder) == [_FILE] and not any(symbol.startswith("##") for symbol in _symbols(folder))


def symbol_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of such a folder: [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with types 0 and 1.

    The special tokens have BERT's names, or those of special_tokens_map.json. Raises BadInput where [CLS], [SEP] or
    [UNK] is not among the symbols.
    """
    symbols = _symbols(folder)
    names = {**_NAMES, **_declared(folder)}
    lost = [names[role] for role in _NEEDED if names[role] not in symbols]
    if lost:
        raise BadInput(
            f"reading {folder / _FILE}",
            f"no {' and no '.join(lost)} among its {len(symbols)} symbols",
            "the special tokens that go round a text, and the unknown token",
            "Save a tokenizer with the model (tokenizer.json)",
        )
    cls, sep = names["cls_token"], names["sep_token"]
    inner = Tokenizer(WordLevel(dict(symbols), unk_token=names["unk_token"]))
    inner.pre_tokenizer = WhitespaceSplit()
    inner.post_processor = TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, symbols[cls]), (sep, symbols[sep])],
    )
    made: PreTrainedTokenizerBase = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner, **{role: name for role, name in names.items() if name in symbols}
    )
    return made


def cannot_split(name: str) -> BadInput:
    """The error for texts that are to be split by a model whose files do not say how."""
    return BadInput(
        f"loading the tokenizer of {name}",
        f"{_FILE} lists symbols, none that continues a word (##), and no file says how texts are split into them",
        "tokenizer.json, or word pieces",
        'Split the texts yourself and set corpus.kind = "tokens"; docs/recipes.md has an example',
    )


def _symbols(folder: Path) -> Mapping[str, int]:
    try:
        lines = (folder / _FILE).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"reading {folder / _FILE}", str(error), "symbols in UTF-8, one a line") from error
    if not lines[-1]:
        lines.pop()
    return {line: number for number, line in enumerate(lines)}


def _declared(folder: Path) -> dict[str, str]:
    path = folder / "special_tokens_map.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"reading {path}", str(error), "JSON in UTF-8") from error
    # A token is its text, or an object that holds it.
    texts = {role: token.get("content") if isinstance(token, dict) else token for role, token in found.items()}
    return {role: text for role, text in texts.items() if role in _NAMES and isinstance(text, str)}
