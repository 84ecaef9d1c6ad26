"""This file refuses a question whose annotation a store lacks, and says how it gets it."""

from collections.abc import Mapping
from typing import NamedTuple

from attnstore.catalogue.question import Question
from attnstore.errors import NotStored
from attnstore.store.database import Database


class _Need(NamedTuple):
    there: str
    found: str
    expected: str
    remedy: str


_WORDS = (
    "No model is needed: attnstore annotate STORE --words FILE.conllu. Or ingest again with "
    '[words] source = "gold" or "spacy:PIPELINE"'
)

_NEEDS: Mapping[str, _Need] = {
    "words": _Need("words", "the store has no words", "words of each example", _WORDS),
    "relations": _Need(
        "words where deprel is not null", "no word has a dependency relation", "words with governors", _WORDS
    ),
    "tags": _Need(
        "words where upos is not null or xpos is not null", "no word has a part of speech", "tagged words", _WORDS
    ),
    "mentions": _Need(
        "mentions",
        "the store has no mentions of entities",
        "mentions with their clusters",
        "No model is needed: attnstore annotate STORE --mentions FILE. Or ingest again with "
        '[corpus] kind = "conllu" (Entity= in MISC), "gap", or "jsonl" with `mentions`',
    ),
    "links": _Need(
        "links",
        "the store has no links between spans",
        "annotated pairs of word spans",
        "No model is needed: attnstore annotate STORE --links FILE. Or ingest again with "
        '[corpus] kind = "links", or "jsonl" with `links`',
    ),
    "parts": _Need(
        "tokens where part = 1",
        "no example has a second part",
        "pairs of texts",
        'Ingest a corpus of pairs, which needs the model: [corpus] kind = "pairs", or a key `second`',
    ),
    "labels": _Need(
        "examples where label is not null",
        "no example has a label",
        "labelled examples",
        "No model is needed: attnstore annotate STORE --labels FILE. Or name the column: [corpus] columns.label",
    ),
    "patterns": _Need(
        "pattern_labels",
        "no map was given a pattern",
        "maps with patterns",
        "No model is needed: attnstore annotate STORE --patterns FILE",
    ),
    "documents": _Need(
        "examples where document is not null",
        "no example belongs to a document",
        "examples with documents",
        "Ingest a corpus that names them, which needs the model: kind conllu, pairs, or a key `document`",
    ),
}


def check_needs(question: Question, values: Mapping[str, object], database: Database) -> None:
    """Raise NotStored where the store has examples and none has what the question needs."""
    doing = f"asking {question.name}"
    for need in question.needs:
        if not need.holds(values):
            continue
        there, found, expected, remedy = _NEEDS[need.annotation]
        text = f"select exists(from examples) as asked, exists(from {there}) as there"
        row = database.run(text, doing=doing).to_pylist()[0]
        if row["asked"] and not row["there"]:
            raise NotStored(doing, found, expected, remedy)
