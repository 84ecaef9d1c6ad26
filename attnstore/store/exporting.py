"""This file writes answers that are too large for memory: a question is asked of a few examples at a time."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from tqdm import tqdm

from attnstore.catalogue.catalogue import find
from attnstore.errors import BadInput
from attnstore.store.asking import ask

if TYPE_CHECKING:
    from attnstore.store.store import Store

AT_A_TIME = 16


def export(
    store: "Store",
    question: str,
    path: str | Path,
    params: Mapping[str, object] | None = None,
    *,
    where: str | None = None,
    at_a_time: int = AT_A_TIME,
) -> int:
    """Write the answer to a question into a Parquet file, `at_a_time` examples after another; how many rows.

    Only for questions that answer for each example by itself (with a column `example`): the rows are those of
    `store.ask`, and memory is that of a few examples. The file appears when it is whole. BadInput for another
    question, one with a `limit` (of all examples together), or a path that exists or lies in no folder.
    """
    target, doing = Path(path), f"exporting {question}"
    found = find(question)
    if "example" not in [column.name for column in found.returns]:
        raise BadInput(doing, "an answer over all examples", "a question with a column `example`", "Use: attnstore ask")
    if "limit" in found.params:
        raise BadInput(doing, "it is limited over all examples", "a question without `limit`", "Use: attnstore ask")
    if not target.parent.is_dir():
        raise BadInput(doing, f"there is no folder {target.parent}", "a folder")
    if target.exists():
        raise BadInput(doing, f"{target} is there already", "a new file")
    if at_a_time < 1:
        raise BadInput(doing, f"at_a_time={at_a_time}", "1 or more")
    examples = store.engine.places.examples.tolist() if where is None else _chosen(store, where, doing)
    staging, rows = target.with_name(f".{target.name}.part"), 0
    try:
        with ExitStack() as stack:
            writer: pq.ParquetWriter | None = None
            starts = range(0, max(len(examples), 1), at_a_time)
            for start in tqdm(starts, desc=question, unit=" chunks", disable=None, leave=False):
                chunk = ", ".join(map(str, examples[start : start + at_a_time])) or "null"
                table = ask(store, question, params or {}, f"example in ({chunk})").to_arrow()
                if writer is None:
                    writer = stack.enter_context(pq.ParquetWriter(staging, table.schema, compression="zstd"))
                writer.write_table(table.cast(writer.schema))
                rows += len(table)
        staging.replace(target)
    except BaseException:
        staging.unlink(missing_ok=True)
        raise
    return rows


def _chosen(store: "Store", where: str, doing: str) -> list[int]:
    places = store.engine.computed.places(where, doing)
    return [int(number) for number in places.examples]
