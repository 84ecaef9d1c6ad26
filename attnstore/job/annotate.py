"""This file adds annotations to a finished store, without the model: new words or labels, published as an addition.

An addition replaces whole tables. New words change which token belongs to which word, so the tables
tokens and words are written anew, and word_facts is computed again from the stored maps.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from attnstore.errors import BadInput, NotStored
from attnstore.format import names
from attnstore.format.commit import commit, publish, published, seal, stage
from attnstore.format.parquet import TableWriter
from attnstore.job.annotation_match import check_file, match
from attnstore.job.fact_rows import BatchFacts
from attnstore.job.rows import Placed, place, text_rows
from attnstore.job.source import Prepared
from attnstore.reduce.facts import facts
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from attnstore.text.annotations import words_of
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example, Word

__all__ = ["Annotated", "annotate_labels", "annotate_words", "check_file"]


@dataclass(frozen=True, slots=True)
class Annotated:
    """What an annotation did: the addition's id, how many examples it changed, names that match no example."""

    addition: str
    examples: int
    unmatched: tuple[str, ...]


def annotate_words(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the words of a CoNLL-U or JSON Lines file, matched by name, else by text.

    Examples that the file does not name keep theirs. Mentions and links that come with the words replace the old
    ones, which counted the old words. BadInput where nothing matches, words do not fit a text or the ingest has not
    ended, NotStored without complete maps.
    """
    doing = f"annotating {store} with {path.name}"
    with _opened(Path(store), doing) as opened:
        if opened.info.kept != replace(opened.info.kept, maps="all", layers=None, heads=None):
            raise NotStored(doing, "not every map was kept", "all of them: word facts are computed from the maps")
        matched = match(opened, path, doing)
        kept = _target_words(opened, matched.found)
        found = {
            number: _with_words(row, item, kept.get(number, ()), doing) for number, (row, item) in matched.found.items()
        }
        with_facts = bool(opened.info.facts["tables"])
        rewritten = ["tokens", "words", "mentions", "links", *(["word_facts"] if with_facts else [])]

        def fill(writers: dict[str, TableWriter]) -> None:
            counts = {number: len(example.words) for number, example in found.items()}
            for batch in _with_column(opened, "examples", "n_words", counts):
                writers["examples"].append(batch)
            for name in rewritten:
                for batch in _carried(opened, name, list(found)):
                    writers[name].append(batch)
            for placed in _placed(opened, found):
                rows = text_rows([placed], 0, {placed.number: {}})
                for name in ("tokens", "words", "mentions", "links"):
                    writers[name].append_rows(rows[name])
                if with_facts:
                    for batch in _word_facts(opened, placed):
                        writers["word_facts"].append(batch)

        source = {"words": path.name, "word_facts": "computed from the stored maps"}
        addition = _publish(opened, "words", ["examples", *rewritten], source, doing, fill)
    return Annotated(addition, len(found), matched.unmatched)


def annotate_labels(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the labels of a table or JSON Lines file, matched by name, else by text.

    An entry without a label leaves the example's as it is. BadInput where nothing matches, no entry has a label or
    the ingest has not ended.
    """
    doing = f"annotating {store} with {path.name}"
    with _opened(Path(store), doing) as opened:
        matched = match(opened, path, doing)
        for row, item in matched.found.values():
            _check_pair(row, item, doing)
        labels = {number: item.label for number, (_, item) in matched.found.items() if item.label is not None}
        if not labels:
            raise BadInput(doing, "no label in it", "a column or key `label`")

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in _with_column(opened, "examples", "label", labels):
                writers["examples"].append(batch)

        addition = _publish(opened, "labels", ["examples"], {"labels": path.name}, doing, fill)
    return Annotated(addition, len(labels), matched.unmatched)


@contextmanager
def _opened(root: Path, doing: str) -> Iterator[Store]:
    with open_store(root) as store:
        store_id, known = store.info.store_id, [unit.id for unit in store.contents.additions]
    if published(root, names.ADDITIONS) != known:
        commit(root, store_id)  # an annotation was interrupted between its last two steps
    with open_store(root) as store:
        there, planned = len(store.contents.segments), len(store.info.segments)
        if there < planned:
            # An addition replaces whole tables: segments that come later would not be in them.
            found, remedy = f"{there} of {planned} segments", "Run its ingest to the end first"
            raise BadInput(doing, found, "a finished store", remedy)
        yield store


def _check_pair(row: Mapping[str, Any], item: Example, doing: str) -> None:
    if (row["second"] is None) != (item.second is None):
        found = f"example {row['name']} is {'a pair' if item.second is None else 'no pair'}"
        expected = "both parts, as JSON Lines can give them" if item.second is None else "one text"
        raise BadInput(f"{doing}, {item.where}", found, expected)


def _with_words(row: Mapping[str, Any], item: Example, target_words: tuple[Word, ...], doing: str) -> Example:
    """The stored example with the annotation's words, found again where the texts differ (such as joined words)."""
    where = f"{doing}, {item.where}"
    if not item.words:
        raise BadInput(where, "no words", "an annotated sentence")
    _check_pair(row, item, doing)

    def found_again(words: Sequence[Word], own: Sequence[str | None], texts: Sequence[str | None]) -> tuple[Word, ...]:
        if list(own) == list(texts):
            return tuple(words)
        records = [
            {name: getattr(word, name) for name in word.__slots__ if name not in ("start_char", "end_char")}
            for word in words
        ]
        return words_of(records, texts, lambda found, expected: BadInput(where, found, expected))

    if item.target_words:
        target_words = found_again(item.target_words, [item.target], [row["target"]])
    words = found_again(item.words, [item.text, item.second], [row["text"], row["second"]])
    return Example(
        row["name"],
        row["text"],
        row["second"],
        target=row["target"],
        words=words,
        target_words=target_words,
        mentions=item.mentions,
        links=item.links,
    )


def _target_words(store: Store, numbers: Mapping[int, object]) -> dict[int, tuple[Word, ...]]:
    """The stored words of the target side, by example: they stay where the annotation has none."""
    found: dict[int, list[Word]] = {}
    for row in store.sql("select * from words where side = 'target' order by example, word"):
        if row["example"] in numbers:
            found.setdefault(row["example"], []).append(Word(**{name: row[name] for name in Word.__slots__}))
    return {number: tuple(words) for number, words in found.items()}


def _placed(store: Store, found: Mapping[int, Example]) -> Iterator[Placed]:
    tokens: dict[int, dict[str, list[dict[str, Any]]]] = {number: {} for number in found}
    for row in store.sql("select * from tokens order by example, side, token"):
        if row["example"] in tokens:
            tokens[row["example"]].setdefault(row["side"], []).append(row)
    # disable=None: shown on a terminal, quiet otherwise.
    for number, example in tqdm(found.items(), desc="annotate", unit=" examples", disable=None, leave=False):
        sides = {side: _encoded(rows) for side, rows in tokens[number].items()}
        yield place(number, Prepared(example, sides["source"], sides.get("target")), store.info.kinds)


def _encoded(rows: Sequence[Mapping[str, Any]]) -> Encoded:
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
            gathered.take(slice(layer, layer + 1), [facts(weights, frame, **store.info.facts["parameters"])])
        yield gathered.tables()["word_facts"]


def _batches(store: Store, table: str) -> Iterator[pa.RecordBatch]:
    store.engine.files.check([table])
    for path in store.engine.files.paths(table):
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches()


def _carried(store: Store, table: str, without: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows of a table that stay as they are."""
    for batch in _batches(store, table):
        yield batch.filter(pa.array(~np.isin(batch["example"].to_numpy(), without)))


def _with_column(store: Store, table: str, name: str, values: Mapping[int, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a table, with the value of one column replaced for the examples that are named."""
    for batch in _batches(store, table):
        place, field = batch.schema.get_field_index(name), batch.schema.field(name)
        pairs = zip(batch["example"].to_pylist(), batch[name].to_pylist(), strict=True)
        new = [values.get(number, old) for number, old in pairs]
        yield batch.set_column(place, field, pa.array(new, field.type))


def _publish(
    store: Store,
    what: str,
    tables: Sequence[str],
    source: Mapping[str, str],
    doing: str,
    fill: Callable[[dict[str, TableWriter]], None],
) -> str:
    """Write and commit an addition; its id. BadInput where another addition came in between: it would be undone."""
    root, before = store.path, [unit.id for unit in store.contents.additions]
    numbers = (name.partition("-")[0] for name in published(root, names.ADDITIONS))
    number = 1 + max((int(digits) for digits in numbers if digits.isdecimal()), default=0)
    folder = f"{names.ADDITIONS}/{number:06d}-{what}"
    staging = stage(root, folder)
    writers = {name: TableWriter(staging, name) for name in tables}
    try:
        fill(writers)
        rows = {name: writer.close() for name, writer in writers.items()}
        for name, count in rows.items():
            if not count:
                # Without a file the older table would stay in force.
                pq.write_table(writers[name].schema.empty_table(), staging / names.parquet_name(name))
        seal(staging, folder, {"scope": "store", "source": dict(source), "replaces": sorted(tables)}, rows)
        if published(root, names.ADDITIONS) != before or not publish(staging, root, folder):
            remedy = "Run the same command again"
            raise BadInput(doing, "another addition was made meanwhile", "one at a time", remedy)
    except BaseException:
        for writer in writers.values():
            writer.abandon()
        shutil.rmtree(staging, ignore_errors=True)
        raise
    commit(root, store.info.store_id)
    return folder.rpartition("/")[2]
