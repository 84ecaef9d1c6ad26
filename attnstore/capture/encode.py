"""This file turns texts into the tokens that a model is fed, each with its place in the text."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from tokenizers import Encoding, Tokenizer
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from attnstore.capture.literal import literal
from attnstore.capture.symbols import whole
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded
from attnstore.text.example import Token
from attnstore.text.vocabulary import Vocabulary

PADDING_SIDE = "right"
"""Padding follows the text, so that positions count from the first real token."""

_PART_IDS = ("true", "zeros")
_ROLES = ("cls", "sep", "mask", "bos", "eos", "pad")


class Encoder:
    """A fast tokenizer that feeds raw text, truncates nothing and takes no special token from what is typed.

    `n_types` is the number of token types that the model tells apart, 0 for none; without it the tokenizer decides.
    `start` gives the id that a decoder is fed before some label ids. Raises BadInput for a tokenizer without offsets.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        n_types: int | None = None,
        start: Callable[[Sequence[int]], int] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        name = type(tokenizer).__name__
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise BadInput(
                f"preparing the tokenizer {name}",
                "it gives no character offsets",
                "a fast tokenizer (tokenizer.json)",
                "Tokens are joined to words by their offsets; convert the tokenizer to a fast one",
            )
        self._backend = _ready(backend)
        self._target = _target_backend(tokenizer) or self._backend
        self._start = start
        self._n_types = (
            n_types if n_types is not None else (2 if "token_type_ids" in tokenizer.model_input_names else 0)
        )
        self._special = _special_ids(tokenizer, backend)
        # Text may become unknown, unless that token has another use too (GPT-2's is the end of a text).
        unknown = {
            token for token, role in self._special.items() if role == "other" and token == tokenizer.unk_token_id
        }
        self._never_typed = frozenset(self._special) - unknown
        pad: Any = tokenizer.pad_token_id
        self.pad_id: int = int(pad) if pad is not None else next(iter(self._special), 0)
        mask: Any = tokenizer.mask_token_id
        self.mask_id: int | None = None if mask is None else int(mask)
        self.facts: Mapping[str, str] = {
            "class": name,
            "vocabulary": str(backend.get_vocab_size(with_added_tokens=True)),
            "padding_side": PADDING_SIDE,
            **{f"sha256:{file}": digest for file, digest in (files or {}).items() if _is_tokenizer_file(file)},
        }

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Characters of each token of `text` [token], end exclusive, without special tokens."""
        return list(self._encoding(self._backend, text, None, specials=False).offsets)

    def n_special(self, pair: bool) -> int:
        """How many special tokens are put around a text, or around the two texts of a pair."""
        return int(self._backend.num_special_tokens_to_add(pair))

    def encode(self, text: str, second: str | None = None, *, part_ids: str = "true") -> Encoded:
        """A text, or a pair, as the model is fed it: `special` is None for every token that came from text.

        Under `part_ids` "true" each token has the type that the tokenizer gives its part, under "zeros" all have type
        0, as in a model that tells no types apart. Spans may begin with the blank before a word. Raises BadInput for
        another `part_ids`.
        """
        encoding = self._encoding(self._backend, text, second, specials=True)
        return self._encoded(encoding, self._type_ids(encoding, part_ids))

    @property
    def vocabulary(self) -> Vocabulary:
        """Every symbol that `encode_tokens` takes, and which of them it puts round a text itself."""
        return self._vocabulary

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        ids = self._backend.get_vocab(with_added_tokens=True)
        inserted = self._whole.encode([], [], is_pretokenized=True).tokens
        special = {symbol: self._special[token] for symbol, token in ids.items() if token in self._special}
        pad = [symbol for symbol, role in special.items() if role == "pad"]
        return Vocabulary(ids, frozenset((*inserted, *pad)), frozenset((*inserted, *special)))

    def encode_tokens(self, tokens: Sequence[Token], *, part_ids: str = "true") -> Encoded:
        """Ready-made tokens of a text, or of both texts of a pair, as the model is fed them; else like `encode`.

        Each is looked up whole and keeps its place. Raises BadInput for a symbol that is not in the vocabulary.
        """
        parts: tuple[list[Token], list[Token]] = ([], [])
        for token in tokens:
            if token.symbol not in self._vocabulary.ids:
                raise BadInput("looking up tokens", f"{token.symbol!r}", "a symbol of the model's vocabulary")
            parts[token.part].append(token)
        first, second = ([token.symbol for token in part] for part in parts)
        encoding = self._whole.encode(first, second or None, is_pretokenized=True)
        encoded = self._encoded(encoding, self._type_ids(encoding, part_ids))
        ordered = [iter(part) for part in parts]
        given = [None if part is None else next(ordered[part]) for part in encoded.parts]
        places = tuple(None if token is None else token.place for token in given)
        return replace(
            encoded,
            spans=tuple(None if token is None else (token.start_char, token.end_char) for token in given),
            places=places if any(places) else (),
        )

    def encode_target(self, text: str) -> Encoded:
        """A target text as the decoder is fed it: moved right by one, without its last token.

        The start token is called `bos`, whichever id the model uses for it (T5 uses that of padding). Raises BadInput
        for a model without a decoder of its own.
        """
        if self._start is None:
            raise BadInput(
                "tokenizing a target text",
                "the model has no decoder that reads one",
                "an encoder-decoder model",
                "Leave out the target, or name another model",
            )
        labels = self._encoding(self._target, text, None, specials=True)
        whole = self._encoded(labels, (0,) * len(labels.ids))
        start = self._start(whole.ids)
        return Encoded(
            ids=(start, *whole.ids[:-1]),
            texts=(str(self._target.id_to_token(start)), *whole.texts[:-1]),
            spans=(None, *whole.spans[:-1]),
            parts=(None, *whole.parts[:-1]),
            type_ids=whole.type_ids,
            special=("bos", *whole.special[:-1]),
        )

    def _encoding(self, backend: Tokenizer, text: str, second: str | None, *, specials: bool) -> Encoding:
        for one in (text, second or ""):
            _check_characters(one)
        encoding = backend.encode(text, second, add_special_tokens=specials)
        if not any(
            token in self._never_typed and not inserted
            for token, inserted in zip(encoding.ids, encoding.special_tokens_mask, strict=True)
        ):
            return encoding
        pair = None if second is None else self._literal.encode(second, add_special_tokens=False)
        return backend.post_process(self._literal.encode(text, add_special_tokens=False), pair, specials)

    @cached_property
    def _whole(self) -> Tokenizer:
        return whole(self._backend)

    @cached_property
    def _literal(self) -> Tokenizer:
        return literal(self._backend, self._never_typed)

    def _type_ids(self, encoding: Encoding, part_ids: str) -> tuple[int, ...]:
        if part_ids not in _PART_IDS:
            raise BadInput("tokenizing", f"part_ids = {part_ids!r}", f"one of {', '.join(_PART_IDS)}")
        if part_ids == "zeros" or self._n_types < 2:
            return (0,) * len(encoding.ids)
        if max(encoding.type_ids, default=0) >= self._n_types:
            raise BadInput(
                "tokenizing a pair",
                f"the tokenizer gives token type {max(encoding.type_ids)}",
                f"types below {self._n_types}, as the model has",
                'Set part_ids = "zeros" in [encode]',
            )
        return tuple(encoding.type_ids)

    def _encoded(self, encoding: Encoding, type_ids: tuple[int, ...]) -> Encoded:
        inserted = [bool(mark) for mark in encoding.special_tokens_mask]
        return Encoded(
            ids=tuple(encoding.ids),
            texts=tuple(encoding.tokens),
            spans=tuple(None if put else span for put, span in zip(inserted, encoding.offsets, strict=True)),
            parts=tuple(None if put else part for put, part in zip(inserted, encoding.sequence_ids, strict=True)),
            type_ids=type_ids,
            special=tuple(
                self._special.get(token, "other") if put else None
                for put, token in zip(inserted, encoding.ids, strict=True)
            ),
        )


def collate(encoded: Sequence[Encoded], targets: Sequence[Encoded] | None, pad_id: int) -> dict[str, Tensor]:
    """The inputs of one batch, padded on the right, each tensor [example, token].

    Holds input_ids, attention_mask and token_type_ids, and with `targets` decoder_input_ids and
    decoder_attention_mask. A captor leaves out token_type_ids for a model that tells none apart.
    """
    inputs = _padded("", encoded, pad_id)
    inputs["token_type_ids"] = _filled([one.type_ids for one in encoded], 0)
    if targets is not None:
        if len(targets) != len(encoded):
            raise BadInput("making a batch", f"{len(targets)} targets", f"{len(encoded)}, one per text")
        inputs |= _padded("decoder_", targets, pad_id)
    return inputs


def _padded(prefix: str, encoded: Sequence[Encoded], pad_id: int) -> dict[str, Tensor]:
    return {
        f"{prefix}input_ids": _filled([one.ids for one in encoded], pad_id),
        f"{prefix}attention_mask": _filled([(1,) * len(one) for one in encoded], 0),
    }


def _filled(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    longest = max((len(row) for row in rows), default=0)
    if longest == 0:
        raise BadInput("making a batch", "no tokens", "at least one token in one example")
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows], dtype=torch.long)


def _ready(backend: Tokenizer) -> Tokenizer:
    """A copy of our own: the settings below would otherwise change the caller's tokenizer."""
    own = copy.deepcopy(backend)
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = True
    return own


def _target_backend(tokenizer: Any) -> Tokenizer | None:
    """The tokenizer of target texts where it differs: in multilingual models it names another language."""
    if not hasattr(tokenizer, "_switch_to_target_mode"):
        return None
    tokenizer._switch_to_target_mode()
    try:
        return _ready(tokenizer.backend_tokenizer)
    finally:
        tokenizer._switch_to_input_mode()


def _special_ids(tokenizer: Any, backend: Tokenizer) -> dict[int, str]:
    """What each special token is; the first role wins where one token has several (RoBERTa's <s> is also [CLS])."""
    roles: dict[int, str] = {}
    for role in _ROLES:
        token = getattr(tokenizer, f"{role}_token_id", None)
        if token is not None:
            roles.setdefault(int(token), role)
    for token in tokenizer.all_special_ids:
        roles.setdefault(int(token), "other")
    for token, added in backend.get_added_tokens_decoder().items():
        if added.special:
            roles.setdefault(int(token), "other")
    return roles


def _check_characters(text: str) -> None:
    """Raises BadInput for half of a surrogate pair, which JSON can escape but no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(
            "tokenizing",
            f"half of a surrogate pair at character {error.start}",
            "text that can be written as UTF-8",
            "Mend the escape in the corpus",
        ) from error


def _is_tokenizer_file(name: str) -> bool:
    return name != "config.json" and not name.endswith((".safetensors", ".bin", ".index.json"))
