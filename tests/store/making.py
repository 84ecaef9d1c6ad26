"""This file makes small stores with the format's own writers, for the tests of the read side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.format import names
from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.commit import commit, publish, seal, stage, write_once
from attnstore.format.manifest import Kept, Kind, PlannedSegment, StoreInfo, store_to_json
from attnstore.format.parquet import TableWriter
from attnstore.format.quantise import PRECISIONS
from attnstore.format.tables import TABLES
from attnstore.reduce.axes import Axis, Frame
from attnstore.reduce.facts import facts

Floats = NDArray[np.float32]

ENCODER = Kind(layers=2, heads=3, kv_heads=3, queries="source", keys="source", causal=False)
KINDS = {
    "encoder": Kind(2, 2, 2, "source", "source", False),
    "decoder": Kind(3, 2, 1, "target", "target", True),
    "cross": Kind(3, 2, 2, "target", "source", False),
}
KEEP_ALL = Kept("all", None, None, None)
PARAMETERS = {"eps": 1e-4, "drop": "sep", "pieces": "mean"}
FACTS = ("head_facts", "token_facts", "word_facts")


@dataclass(frozen=True)
class Text:
    """One side of an example: tokens with the special name and the word of each (-1 none), and words as table rows.

    `places` are rows and columns on a grid, where tokens have one; `trigger` says which tokens belong to a trigger.
    """

    tokens: Sequence[str]
    special: Sequence[str | None]
    word: Sequence[int]
    words: Sequence[Mapping[str, Any]] = ()
    places: Sequence[tuple[int, int] | None] = ()
    trigger: Sequence[bool] | None = None

    @property
    def axis(self) -> Axis:
        return Axis(
            special=np.array([name is not None for name in self.special]),
            cls=np.array([name == "cls" for name in self.special]),
            sep=np.array([name == "sep" for name in self.special]),
            punct=np.array([text in (".", ",") for text in self.tokens]),
            word=np.array(self.word, np.int32),
            n_words=len(self.words),
        )


@dataclass(frozen=True)
class Made:
    """One example; `maps` by kind, [layer, head, query, key]."""

    name: str
    source: Text
    maps: Mapping[str, Floats]
    target: Text | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    mentions: Sequence[Mapping[str, Any]] = ()
    links: Sequence[Mapping[str, Any]] = ()

    def frame(self, kind: Kind) -> Frame:
        axes = {"source": self.source.axis, "target": self.target.axis if self.target else None}
        queries, keys = axes[kind.queries], axes[kind.keys]
        assert queries is not None
        assert keys is not None
        return Frame(queries, keys, kind.causal)


def random_maps(rng: np.random.Generator, *shape: int, causal: bool = False) -> Floats:
    """Row-stochastic maps [layer, head, query, key], some heads sharp and some flat."""
    logits = rng.normal(size=shape) * rng.uniform(0.2, 6, size=(*shape[:2], 1, 1))
    if causal:
        logits = np.where(np.tril(np.ones(shape[-2:], bool)), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), np.float32)


RELATIONS = ("det", "nsubj", "obj", "nmod:poss", "punct", "acl:relcl")
FORMS = ("stone", "paper", "lantern", "harbour", ".", ",", "'s", "green", "slowly", "under")


def random_text(rng: np.random.Generator, n_words: int) -> Text:
    """[CLS] words [SEP], every fourth word in two pieces, the last but one without tokens; a random parse."""
    tokens, word = ["[CLS]"], [-1]
    special: list[str | None] = ["cls"]
    words: list[dict[str, Any]] = []
    root = int(rng.integers(n_words))
    for index in range(n_words):
        form = str(rng.choice(FORMS))
        pieces = 0 if index == n_words - 2 and n_words > 4 else 2 if index % 4 == 3 else 1
        tokens += [form, "##er"][:pieces]
        special += [None] * pieces
        word += [index] * pieces
        governor = None if index == root else int(rng.choice([w for w in range(n_words) if w != index]))
        words.append(
            {
                "form": form,
                "lemma": form,
                "upos": "PUNCT" if form in ".," else "NOUN",
                "xpos": "POS" if form == "'s" else "NN",
                "governor": governor,
                "deprel": "root" if governor is None else str(rng.choice(RELATIONS)),
                "n_tokens": pieces,
                "aligned": "exact" if pieces else "none",
            }
        )
    return Text([*tokens, "[SEP]"], [*special, "sep"], [*word, -1], words)


def random_examples(seed: int, lengths: Sequence[int], kinds: Mapping[str, Kind]) -> list[Made]:
    """Examples of so many words; the target, where a kind needs one, has two words fewer."""
    rng, made = np.random.default_rng(seed), []
    two_sided = any("target" in (kind.queries, kind.keys) for kind in kinds.values())
    for number, length in enumerate(lengths):
        texts = {"source": random_text(rng, length)}
        if two_sided:
            texts["target"] = random_text(rng, length - 2)
        maps = {
            name: random_maps(
                rng,
                kind.layers,
                kind.heads,
                len(texts[kind.queries].tokens),
                len(texts[kind.keys].tokens),
                causal=kind.causal,
            )
            for name, kind in kinds.items()
        }
        made.append(Made(f"e{number}", texts["source"], maps, texts.get("target")))
    return made


def make_store(
    root: Path,
    made: Sequence[Made],
    *,
    kinds: Mapping[str, Kind] | None = None,
    precision: str = "standard",
    kept: Kept = KEEP_ALL,
    tables: Sequence[str] = FACTS,
    per_segment: int = 3,
    parameters: Mapping[str, Any] = PARAMETERS,
    skipped: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A store of these examples, in segments of `per_segment`; within a segment the longest map comes first."""
    kinds = {"encoder": ENCODER} if kinds is None else dict(kinds)
    spans = [(first, min(first + per_segment, len(made))) for first in range(0, len(made), per_segment)]
    info = StoreInfo(
        format="1.0",
        store_id="0123456789abcdef",
        title="made by a test",
        recipe={},
        model={"name": "random", "revision": "r1"},
        tokenizer={},
        parser={},
        corpus={"kind": "arrays"},
        kinds=kinds,
        precision=precision,
        kept=kept,
        facts={"tables": list(tables), "parameters": dict(parameters)},
        segments=tuple(PlannedSegment(first, stop, {}) for first, stop in spans),
    )
    write_once(root / names.STORE, store_to_json(info))
    for number, (first, stop) in enumerate(spans):
        folder = f"{names.SEGMENTS}/{names.segment_name(number)}"
        staging = stage(root, folder)
        rows = _write(staging, info, number, first, made[first:stop], skipped if number == 0 else ())
        publish(staging, root, folder) if seal(staging, folder, {"first": first, "stop": stop}, rows) else None
    commit(root, info.store_id)
    return root


def _write(
    staging: Path, info: StoreInfo, number: int, first: int, made: Sequence[Made], skipped: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    order = sorted(range(len(made)), key=lambda index: -len(made[index].source.tokens))
    cells = _write_maps(staging, info, [made[index] for index in order]) if info.kept.maps != "none" else {}
    writers = {name: TableWriter(staging, name) for name in TABLES}
    for index, example in enumerate(made):
        row = {
            "example": first + index,
            "name": example.name,
            "text": " ".join(word["form"] for word in example.source.words),
            "n_tokens": len(example.source.tokens),
            "n_target_tokens": len(example.target.tokens) if example.target else None,
            "n_words": len(example.source.words),
            "n_parts": 1,
            "cut": "whole",
            "segment": number,
            **{f"cell_{kind}": offsets.get(example.name) for kind, offsets in cells.items()},
            **example.columns,
        }
        writers["examples"].append_rows([row])
        for side, text in (("source", example.source), ("target", example.target)):
            if text is not None:
                writers["tokens"].append_rows(_token_rows(first + index, side, text))
                writers["words"].append_rows(_word_rows(first + index, side, text))
        for name, own in (("mentions", example.mentions), ("links", example.links)):
            key = name.removesuffix("s")
            writers[name].append_rows([{"example": first + index, key: at, **item} for at, item in enumerate(own)])
    for kind, shape in info.kinds.items():
        if info.facts["tables"]:
            _write_facts(writers, info, kind, shape, first, made)
    writers["skipped"].append_rows(list(skipped))
    return {name: rows for name, writer in writers.items() if (rows := writer.close())}


def _token_rows(example: int, side: str, text: Text) -> list[dict[str, Any]]:
    return [
        {
            "example": example,
            "side": side,
            "token": position,
            "text": spelling,
            "token_id": position,
            "word": None if word < 0 else word,
            "part": None if special else text.words[word].get("part", 0) if word >= 0 else 0,
            "special": special,
            "punct": spelling in (".", ","),
            **(dict(zip(("row", "col"), place, strict=True)) if (place := _place(text, position)) else {}),
            "trigger": None if text.trigger is None else text.trigger[position],
        }
        for position, (spelling, special, word) in enumerate(zip(text.tokens, text.special, text.word, strict=True))
    ]


def _place(text: Text, position: int) -> tuple[int, int] | None:
    return text.places[position] if text.places else None


def _word_rows(example: int, side: str, text: Text) -> list[dict[str, Any]]:
    plain = {"derived": False, "sentence": 0, "part": 0, "n_tokens": 1, "aligned": "exact"}
    return [{**plain, "example": example, "side": side, "word": index, **word} for index, word in enumerate(text.words)]


def _write_facts(
    writers: Mapping[str, TableWriter], info: StoreInfo, kind: str, shape: Kind, first: int, made: Sequence[Made]
) -> None:
    for index, example in enumerate(made):
        number = first + index
        weights = example.maps[kind].reshape(-1, *example.maps[kind].shape[2:])
        found = facts(weights, example.frame(shape), **info.facts["parameters"])
        for table, key, columns in (("token_facts", "token", found.tokens), ("word_facts", "word", found.words)):
            if table in info.facts["tables"]:
                writers[table].append(_list_batch(table, key, number, kind, columns))
        if "head_facts" in info.facts["tables"]:
            heads = {name: values for name, values in found.heads.items()}
            rows = [
                {"example": number, "kind": kind, "layer": head // shape.heads, "head": head % shape.heads}
                | {name: None if np.isnan(values[head]) else float(values[head]) for name, values in heads.items()}
                for head in range(len(weights))
            ]
            writers["head_facts"].append_rows(rows)


def _list_batch(table: str, key: str, number: int, kind: str, columns: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    n_heads, n_rows = next(iter(columns.values())).shape
    offsets = pa.array(np.arange(n_rows + 1, dtype=np.int32) * n_heads)
    arrays = [
        pa.array(np.full(n_rows, number, np.int32)),
        pa.array([kind] * n_rows, pa.string()),
        pa.array(np.arange(n_rows, dtype=np.int32)),
    ]
    for name in TABLES[table].names[3:]:
        kind_of = TABLES[table].field(name).type
        flat = columns[name].T.reshape(-1).astype(kind_of.value_type.to_pandas_dtype())
        items = pa.array(flat, mask=flat < 0 if name.startswith("attend") and flat.dtype == np.int32 else None)
        arrays.append(pa.ListArray.from_arrays(offsets, items, type=kind_of))
    assert key == TABLES[table].names[2]
    return pa.RecordBatch.from_arrays(arrays, schema=TABLES[table])


def _write_maps(staging: Path, info: StoreInfo, made: Sequence[Made]) -> dict[str, dict[str, int]]:
    precision, kept = PRECISIONS[info.precision], info.kept
    specs: dict[str, ArraySpec] = {}
    cells: dict[str, dict[str, int]] = {}
    for kind, shape in info.kinds.items():
        cells[kind], total, rows = {}, 0, 0
        for example in made:
            cells[kind][example.name] = total
            n_queries, n_keys = example.maps[kind].shape[2:]
            total += n_queries * (kept.topk or n_keys)
            rows += n_queries

        def spec(shape: Kind, cells: int, dtype: str, fill: float) -> ArraySpec:
            return ArraySpec(shape.layers, shape.heads, cells, dtype, fill, kept.layers, kept.heads)

        if kept.topk is None:
            specs[kind] = spec(shape, total, precision.dtype, precision.fill)
        else:
            specs[f"{kind}_topk_key"] = spec(shape, total, "uint32", 2**32 - 1)
            specs[f"{kind}_topk_weight"] = spec(shape, total, precision.dtype, precision.fill)
            specs[f"{kind}_topk_rest"] = spec(shape, rows, "float32", float("nan"))
    writer = MapsWriter(staging / names.MAPS, specs)
    for example in made:
        for kind, shape in info.kinds.items():
            for layer in range(shape.layers) if kept.layers is None else kept.layers:
                weights = example.maps[kind][layer]
                weights = weights if kept.heads is None else weights[list(kept.heads)]
                if kept.topk is None:
                    writer.append(kind, layer, precision.encode(weights).reshape(len(weights), -1))
                else:
                    key, weight, rest = largest(weights, kept.topk)
                    writer.append(f"{kind}_topk_key", layer, key.reshape(len(weights), -1))
                    writer.append(f"{kind}_topk_weight", layer, precision.encode(weight).reshape(len(weights), -1))
                    writer.append(f"{kind}_topk_rest", layer, rest)
    writer.close()
    return cells


def largest(weights: Floats, n: int) -> tuple[NDArray[np.uint32], Floats, Floats]:
    """Keys and weights [head, query, n] of the largest weights of each row, and the rest [head, query]."""
    heads, queries, keys = weights.shape
    key = np.full((heads, queries, n), 2**32 - 1, np.uint32)
    weight = np.zeros((heads, queries, n), np.float32)
    top = np.argsort(-weights, axis=2, kind="stable")[:, :, :n]
    key[:, :, : min(n, keys)] = top
    weight[:, :, : min(n, keys)] = np.take_along_axis(weights, top, axis=2)
    return key, weight, np.asarray(weights.sum(axis=2) - weight.sum(axis=2), np.float32)


def stored(weights: Floats, precision: str = "standard") -> Floats:
    """The weights as a store of this precision gives them back."""
    own = PRECISIONS[precision]
    return own.decode(own.encode(np.ascontiguousarray(weights)))
