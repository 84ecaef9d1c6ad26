"""This file builds the axes of a map (which tokens are special, to which word each belongs) from the stored tables."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attnstore.errors import Damaged
from attnstore.reduce.axes import Axis, Frame
from attnstore.store.parquet_files import ParquetFiles

# Its functions are made at run time, so that no type checker knows them.
pc: Any = pyarrow.compute

_SEGMENTS_HELD = 4
_TOKEN_COLUMNS = ["example", "side", "token", "word", "special", "punct"]


class Frames:
    """The frame of any example and kind; the tokens of a segment are read at once, those of the last few are held."""

    def __init__(self, files: ParquetFiles) -> None:
        self._files, self._info = files, files.contents.info
        self._held: OrderedDict[int, dict[str, _Side]] = OrderedDict()
        self._lock = threading.Lock()

    def frame(self, segment: int, kind: str, example: int) -> Frame:
        """The axes of the map of one example, which lies in `segment`. Damaged where its tokens are not there."""
        sides, shape = self._sides(segment), self._info.kinds[kind]
        queries = sides[shape.queries].axis(example)
        keys = queries if shape.keys == shape.queries else sides[shape.keys].axis(example)
        return Frame(queries, keys, shape.causal)

    def _sides(self, segment: int) -> dict[str, "_Side"]:
        with self._lock:
            if segment in self._held:
                self._held.move_to_end(segment)
                return self._held[segment]
        loaded = self._load(segment)
        with self._lock:
            self._held[segment] = loaded
            while len(self._held) > _SEGMENTS_HELD:
                self._held.popitem(last=False)
        return loaded

    def _load(self, segment: int) -> dict[str, "_Side"]:
        if not 0 <= segment < len(self._info.segments):
            raise Damaged("reading tokens", f"an example in segment {segment}", f"{len(self._info.segments)} segments")
        planned = self._info.segments[segment]
        # Not through DuckDB: this also runs while DuckDB scans a table that needs frames.
        self._files.check(("tokens", "words"))
        tokens = self._read("tokens", segment, _TOKEN_COLUMNS, planned.first, planned.stop)
        words = self._read("words", segment, ["example", "side"], planned.first, planned.stop)
        return {side: _side(side, tokens, words, planned.first, planned.stop) for side in ("source", "target")}

    def _read(self, table: str, segment: int, columns: list[str], first: int, stop: int) -> pa.Table | None:
        paths = self._files.segment_paths(table, segment)
        if not paths:
            return None
        condition = (pc.field("example") >= first) & (pc.field("example") < stop)
        try:
            read = (pq.read_table(path, columns=columns, filters=condition, use_threads=False) for path in paths)
            return pa.concat_tables(read)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:  # pages that do not decode
            raise Damaged(f"reading {table} of segment {segment}", str(error)[:300], "pages of a table") from error


@dataclass(frozen=True, slots=True)
class _Side:
    """The tokens of one side of a segment's examples, arrays [token]; `starts`, `n_words` [example]."""

    name: str
    first: int
    starts: NDArray[np.int64]
    n_words: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]

    def axis(self, example: int) -> Axis:
        index = example - self.first
        span = slice(int(self.starts[index]), int(self.starts[index + 1]))
        if span.start == span.stop:
            raise Damaged(f"reading the {self.name} tokens of example {example}", "none", "a row for each token")
        return Axis(**{name: column[span] for name, column in self.columns.items()}, n_words=int(self.n_words[index]))


def _side(side: str, tokens: pa.Table | None, words: pa.Table | None, first: int, stop: int) -> _Side:
    n_words = np.zeros(stop - first, np.int64)
    if words is not None:
        own = words.filter(pc.equal(words["side"], side))
        n_words = np.bincount(own["example"].to_numpy() - first, minlength=stop - first)
    if tokens is None:
        return _Side(side, first, np.zeros(stop - first + 1, np.int64), n_words, {})
    own = tokens.filter(pc.equal(tokens["side"], side)).sort_by([("example", "ascending"), ("token", "ascending")])
    starts = np.searchsorted(own["example"].to_numpy(), np.arange(first, stop + 1))
    numbers, words_of = own["token"].to_numpy(), own["word"].fill_null(-1).to_numpy()
    if (numbers != np.arange(len(own)) - np.repeat(starts[:-1], np.diff(starts))).any() or (words_of < -1).any():
        raise Damaged(f"reading the {side} tokens", "numbers of tokens or words that leave some out", "0, 1, 2, …")
    special = own["special"]
    columns = {
        "special": pc.is_valid(special),
        "cls": pc.equal(special, "cls").fill_null(False),
        "sep": pc.equal(special, "sep").fill_null(False),
        "punct": own["punct"],
    }
    arrays = {name: column.to_numpy() for name, column in columns.items()}
    return _Side(side, first, starts, n_words, {**arrays, "word": words_of})
