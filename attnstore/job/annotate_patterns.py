"""This file gives the maps of a finished store the patterns that a person or a classifier saw in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.format.parquet import TableWriter
from attnstore.job.addition import Annotated, carried, opened, publish_addition
from attnstore.job.annotation_match import check_file, stored_examples
from attnstore.store.store import Store
from attnstore.text.files import Source
from attnstore.text.table import FORMATS

ENDINGS = tuple(FORMATS)

_COLUMNS = ("example", "layer", "head", "pattern")


def annotate_patterns(store: str | Path, path: Path) -> Annotated:
    """Add a table of labelled maps: columns example (name, else number), layer, head, pattern; also kind, annotator.

    The rows of the examples that the file names are replaced, annotator by annotator. BadInput with file and line for
    a column that is absent, a map that the store does not have, an empty pattern, and a map labelled twice by one
    annotator; also where the ingest has not ended. Names that match no example are handed back.
    """
    doing = f"annotating {store} with {path.name}"
    check_file(path, f"annotating {store}", ENDINGS)
    with opened(Path(store), doing) as found:
        rows, unmatched = _rows(found, path)
        if not rows:
            raise BadInput(doing, "no row for an example of the store", "names or numbers of its examples")
        examples = sorted({row["example"] for row in rows})
        kept = _others(found, {(row["example"], row["annotator"]) for row in rows})

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in carried(found, "pattern_labels", examples):
                writers["pattern_labels"].append(batch)
            writers["pattern_labels"].append_rows([*kept, *rows])

        addition = publish_addition(found, "patterns", ["pattern_labels"], {"patterns": path.name}, doing, fill)
    return Annotated(addition, len(examples), tuple(unmatched))


def _rows(store: Store, path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    names = {name: row["example"] for name, row in stored_examples(store).items()}
    numbers = {str(number): number for number in names.values()}
    # A Parquet file gives only the columns that are asked for.
    source = Source(path, path.name, {name: name for name in (*_COLUMNS, "kind", "annotator")})
    rows, unmatched = list[dict[str, Any]](), dict[str, None]()
    seen: set[tuple[object, ...]] = set()
    for line, record in FORMATS[path.suffix.lower()](source):
        if absent := [name for name in _COLUMNS if name not in record]:
            raise source.error(1, f"no column {absent[0]!r}", ", ".join(_COLUMNS))
        row = _checked(store, source, line, record)
        example = str(record["example"])
        number = names.get(example, numbers.get(example))
        if number is None:
            unmatched[example] = None
            continue
        row["example"] = number
        key = tuple(row[name] for name in ("example", "kind", "layer", "head", "annotator"))
        if key in seen:
            raise source.error(line, f"the map of layer {row['layer']}, head {row['head']} again", "each map once")
        seen.add(key)
        rows.append(row)
    return rows, list(unmatched)


def _checked(store: Store, source: Source, line: int, record: Mapping[str, object]) -> dict[str, Any]:
    kind, pattern = str(record.get("kind") or store.kinds[0]), str(record["pattern"] or "").strip()
    if kind not in store.kinds:
        raise source.error(line, f"kind {kind!r}", f"one of {', '.join(store.kinds)}")
    if not pattern:
        raise source.error(line, "no pattern", "the name of one")
    shape = store.info.kinds[kind]
    places = {}
    for name, most in (("layer", shape.layers), ("head", shape.heads)):
        text = str(record[name])
        if not text.isdecimal() or int(text) >= most:
            raise source.error(line, f"{name} {text!r}", f"0 to {most - 1}")
        places[name] = int(text)
    annotator = str(record["annotator"]) if record.get("annotator") else None
    return {"kind": kind, **places, "pattern": pattern, "annotator": annotator}


def _others(store: Store, named: set[tuple[int, str | None]]) -> Sequence[dict[str, Any]]:
    """The rows of the same examples that other annotators gave."""
    examples = {example for example, _ in named}
    rows = store.sql("from stored.pattern_labels order by all")
    return [row for row in rows if row["example"] in examples and (row["example"], row["annotator"]) not in named]
