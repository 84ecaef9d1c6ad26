"""This file defines a tokenized text: what a tokenizer, or a corpus of ready-made maps, says of one side."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one side of one example, special tokens included, as parallel tuples.

    `texts` is the tokenizer's own spelling; `spans` are characters (end exclusive) in the text of the
    token's own part, None for special tokens; `parts` is 0, 1 or None for special tokens; `type_ids` is
    what the model is fed; `special` is None, or cls, sep, bos, eos, mask, pad, other.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    spans: tuple[tuple[int, int] | None, ...]
    parts: tuple[int | None, ...]
    type_ids: tuple[int, ...]
    special: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.ids)
