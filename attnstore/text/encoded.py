"""This file defines a tokenized text: what a tokenizer, or a corpus of ready-made maps, says of one side."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of an image: the sha256 of its file, and its sizes in pixels as the model reads it.

    `luminance` is the mean of its grey pixels as the file has them, from 0 for black to 1 for white.
    """

    digest: str
    height: int
    width: int
    patch_height: int
    patch_width: int
    luminance: float


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one side of one example, special tokens included, as parallel tuples.

    `texts` is the tokenizer's own spelling; `spans` are characters (end exclusive) in the text of the
    token's own part, None for special tokens; `parts` is 0, 1 or None for special tokens; `type_ids` is
    what the model is fed; `special` is None, or cls, sep, bos, eos, mask, pad, other. `places` are row and column of
    tokens on a grid, None for the others; empty where no token has one. `picture` is the image that they stand for.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    spans: tuple[tuple[int, int] | None, ...]
    parts: tuple[int | None, ...]
    type_ids: tuple[int, ...]
    special: tuple[str | None, ...]
    places: tuple[tuple[int, int] | None, ...] = ()
    picture: Picture | None = None

    def __len__(self) -> int:
        return len(self.ids)
