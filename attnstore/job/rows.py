"""This file turns the prepared examples of a segment into its text tables, and into the axes of their maps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnstore.format.manifest import Kind
from attnstore.job.source import Prepared
from attnstore.reduce.axes import Axis, Frame
from attnstore.text.align import align
from attnstore.text.encoded import Encoded
from attnstore.text.example import Link, Mention, Skipped, Word

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Aligned:
    """One side of an example with its words: `word` is the word of each token, -1 for none."""

    encoded: Encoded
    words: tuple[Word, ...]
    word: np.ndarray[Any, np.dtype[np.int32]]
    n_tokens: tuple[int, ...]
    aligned: tuple[str, ...]

    @property
    def axis(self) -> Axis:
        """The tokens as a reduction sees them."""
        special = self.encoded.special
        return Axis(
            special=np.array([name is not None for name in special]),
            cls=np.array([name == "cls" for name in special]),
            sep=np.array([name == "sep" for name in special]),
            punct=np.array(_punct(self.encoded)),
            word=self.word,
            n_words=len(self.words),
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """An example with its number, its words aligned, and one frame for each kind that it has maps of."""

    number: int
    prepared: Prepared
    source: Aligned
    target: Aligned | None
    frames: Mapping[str, Frame]


def place(number: int, prepared: Prepared, kinds: Mapping[str, Kind]) -> Placed:
    """Align the words of an example with its tokens."""
    example = prepared.example
    source = _aligned(prepared.source, example.words, {0: example.text, 1: example.second or ""})
    target = None
    if prepared.target is not None:
        target = _aligned(prepared.target, example.target_words, {0: example.target or ""})
    axes = {"source": source.axis, "target": target.axis if target else None}
    frames = {}
    for name, kind in kinds.items():
        queries, keys = axes[kind.queries], axes[kind.keys]
        if queries is not None and keys is not None:
            frames[name] = Frame(queries, keys, kind.causal)
    return Placed(number, prepared, source, target, frames)


def text_rows(placed: Sequence[Placed], segment: int, cells: Mapping[int, Mapping[str, int | None]]) -> Rows:
    """Rows of examples, tokens, words, mentions and links, in the order given; `cells` are first cells by kind."""
    rows: Rows = {name: [] for name in ("examples", "tokens", "words", "mentions", "links")}
    for item in placed:
        example, number = item.prepared.example, item.number
        rows["examples"].append(
            {
                **{name: getattr(example, name) for name in _COPIED},
                "example": number,
                "n_tokens": len(item.source.encoded),
                "n_target_tokens": len(item.target.encoded) if item.target else None,
                "n_words": len(item.source.words),
                "n_parts": 1 if example.second is None else 2,
                "cut": item.prepared.cut,
                "origin": example.where or None,
                "segment": segment,
                **_picture(item.source.encoded),
                **{f"cell_{kind}": cell for kind, cell in cells[number].items()},
            }
        )
        for side, aligned in (("source", item.source), ("target", item.target)):
            if aligned is not None:
                rows["tokens"] += _tokens(number, side, aligned, example.trigger if side == "source" else None)
                rows["words"] += _words(number, side, aligned)
        rows["mentions"] += mention_rows(number, example.mentions)
        rows["links"] += link_rows(number, example.links)
    return rows


def _picture(encoded: Encoded) -> dict[str, Any]:
    picture = encoded.picture
    if picture is None:
        return {}
    return {
        "image_height": picture.height,
        "image_width": picture.width,
        **{name: getattr(picture, name) for name in ("patch_height", "patch_width", "luminance")},
    }


def skipped_rows(skipped: Sequence[Skipped]) -> list[dict[str, Any]]:
    """Rows of the table skipped."""
    return [{"name": item.name, "reason": item.reason, "origin": item.where or None} for item in skipped]


_COPIED = ("name", "text", "second", "document", "target", "label", "split", "pair_id", "condition")


def _aligned(encoded: Encoded, words: tuple[Word, ...], texts: Mapping[int, str]) -> Aligned:
    word = np.full(len(encoded), -1, np.int32)
    n_tokens, aligned = [0] * len(words), ["none"] * len(words)
    for part, text in texts.items():
        own = [index for index, item in enumerate(words) if item.part == part]
        places = [position for position, item in enumerate(encoded.parts) if item == part]
        if not own or not places:
            continue
        found = align(text, [encoded.spans[position] for position in places], [words[index] for index in own])
        for position, local in zip(places, found.word.tolist(), strict=True):
            word[position] = own[local] if local >= 0 else -1
        for local, index in enumerate(own):
            n_tokens[index], aligned[index] = found.n_tokens[local], found.aligned[local]
    return Aligned(encoded, words, word, tuple(n_tokens), tuple(aligned))


def _punct(encoded: Encoded) -> list[bool]:
    # The spelling of a byte-level or metaspace tokenizer carries a mark for the space before it.
    return [
        special is None and text.lstrip("\u0120\u2581 ") in (".", ",")
        for text, special in zip(encoded.texts, encoded.special, strict=True)
    ]


def _tokens(number: int, side: str, aligned: Aligned, trigger: tuple[int, int] | None) -> list[dict[str, Any]]:
    encoded, words = aligned.encoded, aligned.word.tolist()
    punct = _punct(encoded)
    places = encoded.places or (None,) * len(encoded)
    return [
        {
            "example": number,
            "side": side,
            "token": position,
            "text": encoded.texts[position],
            "token_id": encoded.ids[position],
            "word": None if words[position] < 0 else words[position],
            "part": encoded.parts[position],
            "type_id": encoded.type_ids[position],
            "special": encoded.special[position],
            "punct": punct[position],
            "start_char": span[0] if span else None,
            "end_char": span[1] if span else None,
            "row": place[0] if place else None,
            "col": place[1] if place else None,
            "trigger": None if trigger is None else encoded.parts[position] == 0 and _overlaps(span, trigger),
        }
        for position, (span, place) in enumerate(zip(encoded.spans, places, strict=True))
    ]


def _overlaps(span: tuple[int, int] | None, trigger: tuple[int, int]) -> bool:
    return span is not None and max(span[0], trigger[0]) < min(span[1], trigger[1])


def _words(number: int, side: str, aligned: Aligned) -> list[dict[str, Any]]:
    return [
        {
            "example": number,
            "side": side,
            "word": index,
            "form": word.form,
            "lemma": word.lemma,
            "upos": word.upos,
            "xpos": word.xpos,
            "governor": word.governor,
            "deprel": word.deprel,
            "derived": False,
            "sentence": word.sentence,
            "part": word.part,
            "start_char": word.start_char,
            "end_char": word.end_char,
            "n_tokens": aligned.n_tokens[index],
            "aligned": aligned.aligned[index],
        }
        for index, word in enumerate(aligned.words)
    ]


def mention_rows(number: int, mentions: Sequence[Mention]) -> list[dict[str, Any]]:
    """Rows of the table mentions for one example."""
    return [
        {"example": number, "mention": index, **{name: getattr(mention, name) for name in mention.__slots__}}
        for index, mention in enumerate(mentions)
    ]


def link_rows(number: int, links: Sequence[Link]) -> list[dict[str, Any]]:
    """Rows of the table links for one example."""
    return [
        {"example": number, "link": index, **{name: getattr(link, name) for name in link.__slots__}}
        for index, link in enumerate(links)
    ]
