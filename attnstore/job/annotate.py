"""This file adds words or labels to a finished store, without the model.

New words change which token belongs to which word, so the tables tokens and words are written anew, and word_facts is
computed again from the stored maps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from attnstore.errors import BadInput, NotStored
from attnstore.format.parquet import TableWriter
from attnstore.format.tables import ADDED
from attnstore.job.addition import Annotated, carried, opened, publish_addition, with_column
from attnstore.job.annotation_match import annotations, check_pair, match, stored_examples, stored_words
from attnstore.job.fact_rows import BatchFacts
from attnstore.job.rows import Placed, place, text_rows
from attnstore.job.source import Prepared
from attnstore.reduce.facts import facts
from attnstore.store.store import Store
from attnstore.text.annotations import words_of
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example, Word


def annotate_words(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the words of a CoNLL-U or JSON Lines file, matched by name, else by text.

    Examples that the file does not name keep theirs. Mentions and links that come with the words replace the old
    ones, which counted the old words. BadInput where nothing matches, words do not fit a text or the ingest has not
    ended, NotStored without complete maps.
    """
    doing = f"annotating {store} with {path.name}"
    with opened(Path(store), doing) as source:
        if source.info.kept != replace(source.info.kept, maps="all", layers=None, heads=None):
            raise NotStored(doing, "not every map was kept", "all of them: word facts are computed from the maps")
        stored = stored_examples(source)
        matched = match(stored, annotations(stored, path, doing), doing)
        kept = stored_words(source, matched.found, "target")  # they stay where the annotation has none
        found = {
            number: _with_words(row, item, kept.get(number, ()), doing) for number, (row, item) in matched.found.items()
        }
        # Those of `refresh`, where it made the stored ones: rows that stay were computed with them.
        parameters = source.engine.files.parameters("word_facts")
        with_facts = parameters is not None
        rewritten = ["tokens", "words", "mentions", "links", *(["word_facts"] if with_facts else [])]

        def fill(writers: dict[str, TableWriter]) -> None:
            counts = {number: len(example.words) for number, example in found.items()}
            for batch in with_column(source, "examples", "n_words", counts):
                writers["examples"].append(batch)
            for name in rewritten:
                for batch in carried(source, name, list(found)):
                    writers[name].append(batch)
            for placed, kept in _placed(source, found):
                rows = text_rows([placed], 0, {placed.number: {}})
                rows["tokens"] = [{**row, **own} for row, own in zip(rows["tokens"], kept, strict=True)]
                for name in ("tokens", "words", "mentions", "links"):
                    writers[name].append_rows(rows[name])
                if with_facts:
                    for batch in _word_facts(source, placed, parameters):
                        writers["word_facts"].append(batch)

        told = {"words": path.name, "word_facts": "computed from the stored maps"}
        addition = publish_addition(source, "words", ["examples", *rewritten], told, doing, fill, parameters)
    return Annotated(addition, len(found), matched.unmatched)


def annotate_labels(store: str | Path, path: Path) -> Annotated:
    """Give the examples of a store the labels of a table or JSON Lines file, matched by name, else by text.

    An entry without a label leaves the example's as it is. BadInput where nothing matches, no entry has a label or
    the ingest has not ended.
    """
    doing = f"annotating {store} with {path.name}"
    with opened(Path(store), doing) as source:
        stored = stored_examples(source)
        matched = match(stored, annotations(stored, path, doing), doing)
        for row, item in matched.found.values():
            check_pair(row, item, doing)
        labels = {number: item.label for number, (_, item) in matched.found.items() if item.label is not None}
        if not labels:
            raise BadInput(doing, "no label in it", "a column or key `label`")

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in with_column(source, "examples", "label", labels):
                writers["examples"].append(batch)

        addition = publish_addition(source, "labels", ["examples"], {"labels": path.name}, doing, fill)
    return Annotated(addition, len(labels), matched.unmatched)


def _with_words(row: Mapping[str, Any], item: Example, target_words: tuple[Word, ...], doing: str) -> Example:
    """The stored example with the annotation's words, found again where the texts differ (such as joined words)."""
    where = f"{doing}, {item.where}"
    if not item.words:
        raise BadInput(where, "no words", "an annotated sentence")
    check_pair(row, item, doing)

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


def _placed(store: Store, found: Mapping[int, Example]) -> Iterator[tuple[Placed, list[dict[str, Any]]]]:
    """Each example with its new words, and for each of its tokens what does not depend on words."""
    tokens: dict[int, dict[str, list[dict[str, Any]]]] = {number: {} for number in found}
    for row in store.sql("select * from tokens order by example, side, token"):
        if row["example"] in tokens:
            tokens[row["example"]].setdefault(row["side"], []).append(row)
    # disable=None: shown on a terminal, quiet otherwise.
    for number, example in tqdm(found.items(), desc="annotate", unit=" examples", disable=None, leave=False):
        sides = {side: _encoded(rows) for side, rows in tokens[number].items()}
        kept = [{name: row[name] for name in ADDED["tokens"]} for side in sides for row in tokens[number][side]]
        yield place(number, Prepared(example, sides["source"], sides.get("target")), store.info.kinds), kept


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


def _word_facts(store: Store, placed: Placed, parameters: Mapping[str, Any] | None) -> Iterator[pa.RecordBatch]:
    for kind, frame in placed.frames.items():
        gathered = BatchFacts(kind, store.info.kinds[kind], [placed])
        for layer in range(store.info.kinds[kind].layers):
            weights = store.attention(placed.number, kind=kind, layer=layer).to_numpy()
            gathered.take(slice(layer, layer + 1), [facts(weights, frame, **(parameters or {}))])
        yield gathered.tables()["word_facts"]
