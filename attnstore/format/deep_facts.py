"""This file holds maps and tables of a segment against one another: of wrong ones, each may be sound alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.format import names
from attnstore.format.manifest import Kind, StoreInfo, Unit
from attnstore.format.quantise import Precision
from attnstore.format.tables import TABLES

HALF_ERROR = 2.0**-10
"""The facts are float16: off by no more than this share of the weight, and nearly nothing below 2^-14."""

Broken = tuple[str, str, str]
"""Rule, file, what was found."""


class LargestWeights:
    """The largest weight of every query as `token_facts` tells it, computed from the maps before they were rounded."""

    def __init__(self, folder: Path, name: str, kind: Kind) -> None:
        path = folder / names.parquet_name("token_facts")
        self._width, self._heads = kind.layers * kind.heads, kind.heads
        self._of: dict[int, Any] = {}
        if not path.is_file():
            return
        found = pq.read_table(path, columns=["example", "token", "max"], filters=[("kind", "=", name)])
        found = found.sort_by([("example", "ascending"), ("token", "ascending")])
        lists = found["max"].combine_chunks()
        lists = lists if isinstance(lists, pa.ListArray) else lists.combine_chunks()
        values = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
        if len(values) != len(found) * self._width:
            return  # the length of the lists is a matter of its own
        rows = values.reshape(len(found), self._width)
        numbers = found["example"].to_numpy()
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        for start, stop in zip(first, [*first[1:], len(numbers)], strict=True):
            self._of[int(numbers[start])] = rows[start:stop]

    def differs(
        self, precision: Precision, codes: Any, layer: int, heads: Any, example: int, queries: range
    ) -> tuple[int, int, float, float] | None:
        """Head, query, weight and fact of the first row of `codes` [head, query, cell] with another largest weight."""
        told = self._of.get(example)
        if told is None or len(told) < queries.stop:
            return None
        wanted = told[queries.start : queries.stop, [layer * self._heads + head for head in heads]].T
        largest = codes.max(axis=2, keepdims=True)  # codes grow with weights
        weights, half = precision.decode(largest)[..., 0], precision.half_step(largest)[..., 0]
        # NaN, where the fact is null, is no other weight.
        wrong = np.argwhere(np.abs(weights - wanted) > half + HALF_ERROR * wanted + 1e-6)
        if not len(wrong):
            return None
        head, query = (int(index) for index in wrong[0])
        return head, query, float(weights[head, query]), float(wanted[head, query])


def check_rows(folder: Path, unit: Unit, info: StoreInfo) -> Iterator[Broken]:
    """Rule F16: rows of a segment's tables are of its examples, and of as many tokens and words as these say."""
    planned, listed = info.segments[int(unit.id)], {file.path for file in unit.files}
    counts: dict[tuple[str, str], dict[int, int]] = {}
    for table, schema in TABLES.items():
        name = names.parquet_name(table)
        if name not in listed or "example" not in schema.names:
            continue
        sided = table in ("tokens", "words")
        rows = pq.read_table(folder / name, columns=["example", "side"] if sided else ["example"])
        numbers = rows["example"].to_numpy()
        if len(numbers) and not planned.first <= numbers.min() <= numbers.max() < planned.stop:
            found = f"rows of examples {numbers.min()} to {numbers.max()}"
            yield "F16", name, f"{found}, not of {planned.first} to {planned.stop} (exclusive) alone"
        if sided:
            for example, side, times in zip(
                *rows.group_by(["example", "side"]).aggregate([([], "count_all")]).to_pydict().values(), strict=True
            ):
                counts.setdefault((table, side), {})[example] = times
    if names.parquet_name("examples") not in listed:
        return
    columns = ["example", "n_tokens", "n_target_tokens", "n_words"]
    for row in pq.read_table(folder / names.parquet_name("examples"), columns=columns).to_pylist():
        for table, side, column in (
            ("tokens", "source", "n_tokens"),
            ("tokens", "target", "n_target_tokens"),
            ("words", "source", "n_words"),
        ):
            times, said = counts.get((table, side), {}).get(row["example"], 0), row[column] or 0
            if times != said:
                name = names.parquet_name(table)
                yield "F16", name, f"{times} rows ({side}) of example {row['example']}, whose {column} is {said}"
