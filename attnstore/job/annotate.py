"""This file adds annotations to a finished store, without the model: new words or labels, published as an addition.

An addition replaces whole tables. New words change which token belongs to which word, so the tables
tokens and words are written anew, and word_facts is computed again from the stored maps.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm import tqdm

from attnstore.errors import BadInput, NotStored
from attnstore.format import names
from attnstore.format.commit import commit, publish, published, seal, stage
from attnstore.format.parquet import TableWriter
from attnstore.job.fact_rows import BatchFacts
from attnstore.job.rows import Placed, place, text_rows
from attnstore.job.source import Prepared
from attnstore.reduce.facts import facts
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from attnstore.text.annotations import words_of
from attnstore.text.corpus import Corpus, read
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example, Skipped

_KINDS = {".conllu": "conllu", ".jsonl": "jsonl", ".csv": "table", ".tsv": "table", ".parquet": "table"}


@dataclass(frozen=True, slots=True)
class Annotated:
    """What an annotation did: the addition's id, how many examples it changed, names that match no example."""

    addition: str
    examples: int
    unmatched: tuple[str, ...]


def annotate_words(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the words of a CoNLL-U or JSON Lines file, matched by name, else by text.

    Examples that the file does not name keep theirs. Mentions that come with the words replace the old
    ones. BadInput where nothing matches or words do not fit a text, NotStored without complete maps.
    """
    doing = f"annotating {store} with {path.name}"
    with open_store(store) as opened:
        if opened.info.kept != replace(opened.info.kept, maps="all", layers=None, heads=None):
            raise NotStored(doing, "not every map was kept", "all of them: word facts are computed from the maps")
        matched, unmatched = _matched(opened, _examples(path, doing), doing)
        found = {number: _with_words(example, item, doing) for number, (example, item) in matched.items()}
        with_facts = bool(opened.info.facts["tables"])
        tables = ["tokens", "words", "mentions", *(["word_facts"] if with_facts else [])]

        def fill(writers: dict[str, TableWriter]) -> None:
            for name, writer in writers.items():
                for batch in _carried(opened, name, list(found)):
                    writer.append(batch)
            for placed in _placed(opened, found):
                rows = text_rows([placed], 0, {placed.number: {}})
                for name in ("tokens", "words", "mentions"):
                    writers[name].append_rows(rows[name])
                if with_facts:
                    for batch in _word_facts(opened, placed):
                        writers["word_facts"].append(batch)

        source = {"words": path.name, "word_facts": "computed from the stored maps"}
        addition = _publish(opened, "words", tables, source, fill)
    return Annotated(addition, len(found), unmatched)


def annotate_labels(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the labels of a table or JSON Lines file, matched by name, else by text."""
    doing = f"annotating {store} with {path.name}"
    with open_store(store) as opened:
        matched, unmatched = _matched(opened, _examples(path, doing), doing)
        labels = {number: item.label for number, (_, item) in matched.items()}
        if all(label is None for label in labels.values()):
            raise BadInput(doing, "no label in it", "a column or key `label`")

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in _carried(opened, "examples", []):
                numbers, old = batch["example"].to_pylist(), batch["label"].to_pylist()
                new = [labels.get(number, label) for number, label in zip(numbers, old, strict=True)]
                column = batch.schema.get_field_index("label")
                writers["examples"].append(
                    batch.set_column(column, batch.schema.field(column), pa.array(new, pa.string()))
                )

        addition = _publish(opened, "labels", ["examples"], {"labels": path.name}, fill)
    return Annotated(addition, len(labels), unmatched)


def _examples(path: Path, doing: str) -> Iterator[Example]:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise BadInput(doing, f"the ending {path.suffix!r}", f"one of {', '.join(_KINDS)}")
    for item in read(Corpus(kind, (path,))):
        if isinstance(item, Skipped):
            raise BadInput(f"reading {item.where}", item.reason, "an annotated text")
        yield item


Matched = dict[int, tuple[dict[str, Any], Example]]


def _matched(store: Store, annotations: Iterable[Example], doing: str) -> tuple[Matched, tuple[str, ...]]:
    """Example number -> (its row, its annotation), and the names of annotations that match nothing."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    by_text: dict[str, list[dict[str, Any]]] = {}
    for row in store.sql("select example, name, text, second from examples order by example"):
        by_name.setdefault(row["name"], []).append(row)
        by_text.setdefault(row["text"], []).append(row)
    matched: Matched = {}
    unmatched = []
    for item in annotations:
        rows = by_name.get(item.name) or by_text.get(item.text) or []
        matched |= {row["example"]: (row, item) for row in rows}
        if not rows:
            unmatched.append(item.name)
    if not matched:
        shown = ", ".join(unmatched[:3]) or "nothing"
        raise BadInput(
            doing, f"no example of the store has the name or text of {shown}", "names or texts of its examples"
        )
    return matched, tuple(unmatched)


def _with_words(row: dict[str, Any], item: Example, doing: str) -> Example:
    """The stored example with the annotation's words, found again where the texts differ (such as joined words)."""
    where = f"{doing}, {item.where}"
    if not item.words:
        raise BadInput(where, "no words", "an annotated sentence")
    if row["second"] is not None and item.second is None:
        raise BadInput(where, f"example {row['name']} is a pair", "words of both parts, as JSON Lines can give them")
    words = item.words
    if (item.text, item.second) != (row["text"], row["second"]):
        records = [
            {name: getattr(word, name) for name in word.__slots__ if name not in ("start_char", "end_char")}
            for word in words
        ]
        words = words_of(
            records, (row["text"], row["second"]), lambda found, expected: BadInput(where, found, expected)
        )
    return Example(row["name"], row["text"], row["second"], words=words, mentions=item.mentions)


def _placed(store: Store, found: dict[int, Example]) -> Iterator[Placed]:
    tokens: dict[int, dict[str, list[dict[str, Any]]]] = {number: {} for number in found}
    for row in store.sql("select * from tokens order by example, side, token"):
        if row["example"] in tokens:
            tokens[row["example"]].setdefault(row["side"], []).append(row)
    # disable=None: shown on a terminal, quiet otherwise.
    for number, example in tqdm(found.items(), desc="annotate", unit=" examples", disable=None, leave=False):
        sides = {side: _encoded(rows) for side, rows in tokens[number].items()}
        yield place(number, Prepared(example, sides["source"], sides.get("target")), store.info.kinds)


def _encoded(rows: Sequence[dict[str, Any]]) -> Encoded:
    spans = tuple(None if row["start_char"] is None else (row["start_char"], row["end_char"]) for row in rows)
    return Encoded(
        ids=tuple(row["token_id"] for row in rows),
        texts=tuple(row["text"] for row in rows),
        spans=spans,
        parts=tuple(row["part"] for row in rows),
        type_ids=tuple(row["type_id"] for row in rows),
        special=tuple(row["special"] for row in rows),
    )


def _word_facts(store: Store, placed: Placed) -> Iterator[pa.RecordBatch]:
    for kind, frame in placed.frames.items():
        gathered = BatchFacts(kind, store.info.kinds[kind], [placed])
        for layer in range(store.info.kinds[kind].layers):
            weights = store.attention(placed.number, kind=kind, layer=layer).to_numpy()
            gathered.take(layer, [facts(weights, frame, **store.info.facts["parameters"])])
        yield gathered.tables()["word_facts"]


def _carried(store: Store, table: str, without: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows of a table that stay as they are."""
    store.engine.files.check([table])
    for path in store.engine.files.paths(table):
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches():
                kept = batch.filter(pc.invert(pc.is_in(batch["example"], value_set=pa.array(without, pa.int32()))))
                yield kept


def _publish(
    store: Store,
    what: str,
    tables: Sequence[str],
    source: dict[str, str],
    fill: Callable[[dict[str, TableWriter]], None],
) -> str:
    root = store.path
    while True:
        number = 1 + max((int(name.partition("-")[0]) for name in published(root, names.ADDITIONS)), default=0)
        folder = f"{names.ADDITIONS}/{number:06d}-{what}"
        staging = stage(root, folder)
        writers = {name: TableWriter(staging, name) for name in tables}
        try:
            fill(writers)
            rows = {name: count for name, writer in writers.items() if (count := writer.close())}
            seal(staging, folder, {"scope": "store", "source": source, "replaces": sorted(tables)}, rows)
            done = publish(staging, root, folder)
        except BaseException:
            for writer in writers.values():
                writer.abandon()
            shutil.rmtree(staging, ignore_errors=True)
            raise
        if done:
            commit(root, store.info.store_id)
            return folder.rpartition("/")[2]
