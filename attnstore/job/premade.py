"""This file reads maps that were made elsewhere: JSON Lines of texts and tokens, beside npz files or Zarr groups.

One object a line: `text`, `tokens` and `maps`, and if wanted `name`, `special` (null, cls, sep, …),
`spans`, `parts`, `token_ids`, `words` and whatever the corpus kind jsonl takes; a decoder's side is
`target`, `target_tokens`, `target_special`, `target_spans`. `maps` is a path relative to the JSON Lines
file; in it lie arrays named `KIND` or `NAME/KIND`, each [layer, head, query, key], rows summing to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.manifest import Kind
from attnstore.format.names import KINDS
from attnstore.job.map_files import Layers, MapFiles
from attnstore.job.premade_tokens import encoded_of
from attnstore.job.prepare import STDIN_FOLDER, corpus_paths
from attnstore.job.recipe import Recipe
from attnstore.job.source import Facts, Prepared, Receive, threads_allowed
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
        places: dict[str, str] = {}
        for file in self.files:
            for line, content in file.lines():
                if not content.strip():
                    continue
                record = jsonl.record_of(file, line, content)
                example = jsonl.example_of(file, line, record)
                if example.name in places:
                    found = f"the name {example.name!r} again, after {places[example.name]}"
                    raise file.error(line, found, "names that are unique over the corpus")
                places[example.name] = example.where
                if isinstance(example, Skipped):
                    yield example
                    continue
                source = encoded_of(file, line, record, "", example.text, example.second)
                target = None
                if "target_tokens" in record:
                    target = encoded_of(file, line, record, "target_", example.target or "", None)
                maps = record.get("maps")
                if not isinstance(maps, str):
                    raise file.error(line, f"maps = {maps!r}", "the path of an npz file or a Zarr group")
                yield Prepared(example, source, target, maps=self._beside(file) / maps)

    def _beside(self, file: File) -> Path:
        folder = file.path.parent
        return self.recipe.folder if folder.name.startswith(STDIN_FOLDER) else folder

    @property
    def spare_threads(self) -> int:
        """All of them: no model runs."""
        return threads_allowed()

    def annotate(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """The examples as they are: their words came with them."""
        return list(batch)

    def start(self, sample: Sequence[Prepared]) -> Mapping[str, Any]:
        """Nothing to load."""
        return {"capture": "arrays"}

    def capture(self, batch: Sequence[Prepared], receive: Receive) -> None:
        """Read the maps of the batch and hand them over, padded to the longest."""
        with MapFiles() as files:
            for name, kind in self._kinds.items():
                # An example without a target has no map of the decoder.
                own = [(item, shape) for item in batch if all(shape := _shape(item, kind))]
                if not own:
                    continue
                arrays = [(item, _layers(files, item, name, kind, shape)) for item, shape in own]
                longest = np.max([shape for _, shape in own], axis=0)
                for layer in range(kind.layers):
                    receive(name, layer, _padded(arrays, name, kind, layer, longest))


def _padded(
    arrays: Sequence[tuple[Prepared, Layers]], name: str, kind: Kind, layer: int, longest: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Weights [example, head, query, key] of one layer, zero beyond the end of an example."""
    if len(arrays) == 1:
        # A long example is a batch of its own: its layer is not copied.
        return _checked(*arrays[0], name, kind, layer)[None]
    weights = np.zeros((len(arrays), kind.heads, *longest), np.float32)
    for row, (item, array) in enumerate(arrays):
        own = _checked(item, array, name, kind, layer)
        weights[row, :, : own.shape[1], : own.shape[2]] = own
    return weights


@contextmanager
def _readable(item: Prepared) -> Iterator[str]:
    """What is being done, for messages; BadInput for whatever a foreign file raises."""
    assert item.maps is not None, "every line names its maps"
    doing = f"reading the maps of {item.example.name} ({item.example.where})"
    try:
        yield doing
    except BadInput:
        raise
    except FileNotFoundError as error:
        raise BadInput(doing, f"no file {item.maps}", "an npz file or a Zarr group") from error
    except Exception as error:  # numpy, zipfile and zarr raise errors of many types on foreign files
        raise BadInput(doing, f"{item.maps.name} cannot be read ({error})", "an npz file or a Zarr group") from error


def _find(files: MapFiles, item: Prepared, kind: str) -> Layers | None:
    """The array KIND or NAME/KIND of an example; NAME/KIND where there are both."""
    assert item.maps is not None, "every line names its maps"
    return files.layers(item.maps, f"{item.example.name}/{kind}") or files.layers(item.maps, kind)


def _kinds(first: Prepared) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    with MapFiles() as files, _readable(first) as doing:
        for name in KINDS:
            array = _find(files, first, name)
            if array is None:
                continue
            if len(array.shape) != 4:
                raise BadInput(doing, f"{name} has the shape {list(array.shape)}", "[layer, head, query, key]")
            layers, heads = array.shape[:2]
            queries, keys = _SIDES[name] if first.target is not None else ("source", "source")
            kinds[name] = Kind(layers, heads, heads, queries, keys, name == "decoder")
        if not kinds:
            assert first.maps is not None, "every line names its maps"
            found = f"arrays named {', '.join(sorted(files.names(first.maps))[:8]) or 'nothing'}"
            raise BadInput(doing, found, f"one of {', '.join(KINDS)}, or NAME/KIND")
    return kinds


def _shape(item: Prepared, kind: Kind) -> tuple[int, int]:
    sides: Mapping[str, Encoded | None] = {"source": item.source, "target": item.target}
    queries, keys = sides[kind.queries], sides[kind.keys]
    return len(queries) if queries else 0, len(keys) if keys else 0


def _layers(files: MapFiles, item: Prepared, name: str, kind: Kind, shape: tuple[int, int]) -> Layers:
    with _readable(item) as doing:
        array = _find(files, item, name)
        expected = [kind.layers, kind.heads, *shape]
        if array is None or list(array.shape) != expected:
            found = "no array" if array is None else f"the shape {list(array.shape)}"
            raise BadInput(doing, f"{found} for {name}", f"{expected} [layer, head, query, key]")
        return array


def _checked(item: Prepared, array: Layers, name: str, kind: Kind, layer: int) -> NDArray[np.float32]:
    """One layer [head, query, key]; BadInput unless its rows sum to 1 and a causal map looks at nothing later."""
    with _readable(item) as doing:
        weights = array.read(layer)
    sums = weights.sum(axis=-1, dtype=np.float64)
    wrong = np.argwhere(~(np.abs(sums - 1) <= ROW_SUM_ERROR))  # NaN fails the comparison
    if len(wrong):
        head, query = (int(index) for index in wrong[0])
        found = f"{name}, layer {layer}, head {head}, query {query}: the row sums to {sums[head, query]:.4g}"
        raise BadInput(doing, found, "rows that sum to 1")
    if kind.causal and any(np.triu(one, 1).any() for one in weights):
        raise BadInput(doing, f"{name}, layer {layer}: weights on later tokens", "a causal (lower triangular) map")
    return weights
