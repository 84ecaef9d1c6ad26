"""This file reads maps that were made elsewhere: JSON Lines of texts and tokens, beside npz files or Zarr groups.

One object a line: `text`, `tokens` and `maps`, and if wanted `name`, `special` (null, cls, sep, …),
`spans`, `parts`, `token_ids`, `words` and whatever the corpus kind jsonl takes; a decoder's side is
`target`, `target_tokens`, `target_special`, `target_spans`. `maps` is a path relative to the JSON Lines
file; in it lie arrays named `KIND` or `NAME/KIND`, each [layer, head, query, key], rows summing to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.manifest import Kind
from attnstore.format.names import KINDS
from attnstore.job.prepare import corpus_paths
from attnstore.job.recipe import Recipe
from attnstore.job.source import Facts, Prepared, Receive
from attnstore.text import jsonl
from attnstore.text.encoded import Encoded
from attnstore.text.example import Skipped
from attnstore.text.files import Source as File

ROW_SUM_ERROR = 1e-2
"""Rows of maps made elsewhere may be off by this much: they may have been kept in half precision."""

_SIDES = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}


class ArraysSource:
    """Maps made elsewhere. Needs neither torch nor a tokenizer."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.files = [File(path, path.stem, recipe.corpus.columns) for path in corpus_paths(recipe)]
        first = next((item for item in self.examples() if isinstance(item, Prepared)), None)
        self._kinds = {} if first is None else _kinds(first)

    @property
    def facts(self) -> Facts:
        """The kinds that the first example has; the model's name as the recipe gives it."""
        model = {"name": self.recipe.model.name, "revision": self.recipe.model.revision, "class": "arrays"}
        return Facts(model, {"class": "arrays"}, self._kinds)

    def examples(self) -> Iterator[Prepared | Skipped]:
        """The lines of all files in order. BadInput with file and line for tokens that do not fit."""
        for file in self.files:
            for line, content in file.lines():
                if not content.strip():
                    continue
                record = jsonl.record_of(file, line, content)
                example = jsonl.example_of(file, line, record)
                if isinstance(example, Skipped):
                    yield example
                    continue
                source = _encoded(file, line, record, "", example.text, example.second)
                target = None
                if "target_tokens" in record:
                    target = _encoded(file, line, record, "target_", example.target or "", None)
                maps = record.get("maps")
                if not isinstance(maps, str):
                    raise file.error(line, f"maps = {maps!r}", "the path of an npz file or a Zarr group")
                yield Prepared(example, source, target, maps=file.path.parent / maps)

    def annotate(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """The examples as they are: their words came with them."""
        return list(batch)

    def start(self, sample: Sequence[Prepared]) -> Mapping[str, Any]:
        """Nothing to load."""
        return {"capture": "arrays"}

    def capture(self, batch: Sequence[Prepared], receive: Receive) -> None:
        """Read the maps of the batch and hand them over, padded to the longest."""
        opened = [_open(item) for item in batch]
        for name, kind in self._kinds.items():
            shapes = [_shape(item, kind) for item in batch]
            longest = np.max(shapes, axis=0)
            for layer in range(kind.layers):
                weights = np.zeros((len(batch), kind.heads, *longest), np.float32)
                for row, (item, maps, shape) in enumerate(zip(batch, opened, shapes, strict=True)):
                    weights[row, :, : shape[0], : shape[1]] = _layer(item, maps, name, kind, layer, shape)
                receive(name, layer, weights)


Maps = Mapping[str, Any]


def _open(item: Prepared) -> Maps:
    """The arrays of one example by name: of an npz file in memory, of a Zarr group on disk."""
    path = item.maps
    assert path is not None, "every line names its maps"
    doing = f"reading the maps of {item.example.name} ({item.example.where})"
    wanted = {name for kind in KINDS for name in (kind, f"{item.example.name}/{kind}")}
    try:
        if path.is_dir():
            return {name: array for name, array in _arrays(zarr.open_group(path, mode="r")) if name in wanted}
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files if name in wanted}
            return found or dict.fromkeys(file.files)
    except FileNotFoundError as error:
        raise BadInput(doing, f"no file {path}", "an npz file or a Zarr group") from error
    except Exception as error:  # numpy, zipfile and zarr raise errors of many types on foreign files
        raise BadInput(doing, f"{path.name} cannot be read ({error})", "an npz file or a Zarr group") from error


def _arrays(group: "zarr.Group", prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, member in group.members():
        if isinstance(member, zarr.Group):
            yield from _arrays(member, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", member


def _array(item: Prepared, maps: Maps, kind: str) -> Any:
    for name in (f"{item.example.name}/{kind}", kind):
        if name in maps:
            return maps[name]
    return None


def _kinds(first: Prepared) -> dict[str, Kind]:
    maps, kinds = _open(first), {}
    doing = f"reading the maps of {first.example.name} ({first.example.where})"
    for name in KINDS:
        array = _array(first, maps, name)
        if array is None:
            continue
        if len(array.shape) != 4:
            raise BadInput(doing, f"{name} has the shape {list(array.shape)}", "[layer, head, query, key]")
        layers, heads = array.shape[:2]
        queries, keys = _SIDES[name] if first.target is not None else ("source", "source")
        kinds[name] = Kind(layers, heads, heads, queries, keys, name == "decoder")
    if not kinds:
        raise BadInput(doing, f"arrays named {sorted(maps)}", f"one of {', '.join(KINDS)}, or NAME/KIND")
    return kinds


def _shape(item: Prepared, kind: Kind) -> tuple[int, int]:
    sides = {"source": item.source, "target": item.target}
    queries, keys = sides[kind.queries], sides[kind.keys]
    return len(queries or ()), len(keys or ())


def _layer(
    item: Prepared, maps: Maps, name: str, kind: Kind, layer: int, shape: tuple[int, int]
) -> NDArray[np.float32]:
    doing = f"reading the maps of {item.example.name} ({item.example.where})"
    array = _array(item, maps, name)
    expected = [kind.layers, kind.heads, *shape]
    if array is None or list(array.shape) != expected:
        found = "no array" if array is None else f"the shape {list(array.shape)}"
        raise BadInput(doing, f"{found} for {name}", f"{expected} [layer, head, query, key]")
    weights = np.asarray(array[layer], np.float32)
    sums = weights.sum(axis=-1, dtype=np.float64)
    wrong = np.argwhere(~(np.abs(sums - 1) <= ROW_SUM_ERROR))  # NaN fails the comparison
    if len(wrong):
        head, query = (int(index) for index in wrong[0])
        found = f"{name}, layer {layer}, head {head}, query {query}: the row sums to {sums[head, query]:.4g}"
        raise BadInput(doing, found, "rows that sum to 1")
    if kind.causal and np.triu(weights, 1).any():
        raise BadInput(doing, f"{name}, layer {layer}: weights on later tokens", "a causal (lower triangular) map")
    return weights


def _encoded(file: File, line: int, record: Mapping[str, Any], prefix: str, text: str, second: str | None) -> Encoded:
    def column(name: str, default: Sequence[Any]) -> tuple[Any, ...]:
        value = record.get(f"{prefix}{name}", default)
        if not isinstance(value, list | tuple) or len(value) != len(tokens):
            raise file.error(line, f"{prefix}{name} does not match {prefix}tokens", f"a list of {len(tokens)}")
        return tuple(value)

    tokens = record.get(f"{prefix}tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise file.error(line, f"{prefix}tokens = {str(tokens)[:60]}", "a list of strings, one for each token")
    special = column("special", [None] * len(tokens))
    parts = column("parts", [None if name is not None else 0 for name in special])
    spans = record.get(f"{prefix}spans")
    if spans is None:
        places = _found(tokens, special, parts, (text, second or ""))
    else:
        places = tuple(None if span is None else (int(span[0]), int(span[1])) for span in column("spans", []))
    return Encoded(
        ids=tuple(int(number) for number in column("token_ids", [0] * len(tokens))),
        texts=tuple(tokens),
        spans=places,
        parts=parts,
        type_ids=tuple(int(number) for number in column("type_ids", [part or 0 for part in parts])),
        special=special,
    )


def _found(
    tokens: Sequence[str], special: Sequence[str | None], parts: Sequence[int | None], texts: tuple[str, str]
) -> tuple[tuple[int, int] | None, ...]:
    """Spans of tokens in their texts, from left to right; None for a token that is not found as written."""
    position, spans = [0, 0], list[tuple[int, int] | None]()
    for token, name, part in zip(tokens, special, parts, strict=True):
        piece = token.removeprefix("##").lstrip("\u0120\u2581")
        start = -1 if name is not None or part is None or not piece else texts[part].find(piece, position[part])
        if start < 0 or part is None:
            spans.append(None)
        else:
            position[part] = start + len(piece)
            spans.append((start, position[part]))
    return tuple(spans)
