"""A corpus that cannot be read ends in one typed error that says what, where and what to do; what was stored stays."""

from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from tests.bad_input.refusing import GOOD, conllu, recipe, refused

FILES: dict[str, tuple[str, bytes | None, list[str]]] = {
    # what is wrong: the kind of corpus, what the file holds (None: there is no file), what the message must say
    "missing": ("lines", None, ["bad.txt", "no such file", "corpus.path"]),
    "empty": ("lines", b"", ["bad.txt", "the file is empty"]),
    "blank lines": ("lines", b"\n  \n\n", ["bad.txt", "nothing to read"]),
    "not utf-8": ("lines", b"the cat\n\xff\xfe\n", ["bad.txt, line 2", "byte 1", "UTF-8"]),
    "utf-16": ("lines", "the cat\n".encode("utf-16"), ["bad.txt, line 1", "UTF-16", "Convert"]),
    "a conllu line of nine columns": ("conllu", b"1\tthe\n", ["bad.conllu, line 1"]),
    "a conllu line in the middle": ("conllu", GOOD.encode() * 2 + b"nonsense\n", ["bad.conllu, line 7"]),
    "word numbers that jump": (
        "conllu",
        GOOD.encode() + b"1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n3\tb",
        ["bad.conllu, line 5"],
    ),
    "governor out of range": ("conllu", conllu("the 0", "cat 7"), ["bad.conllu, line 2", "governor 7"]),
    "governor of its own": ("conllu", conllu("the 0", "cat 2"), ["bad.conllu, line 2", "its own governor"]),
    "cyclic governors": ("conllu", conllu("the 2", "cat 3", "sat 1", "a 0"), ["bad.conllu, line 1", "in a circle"]),
    "governor that is no number": ("conllu", conllu("the x"), ["bad.conllu, line 1"]),
    "broken json": ("jsonl", b'{"text": "a cat"}\n{"text": "a', ["bad.jsonl, line 2", "column"]),
    "json without a text": ("jsonl", b'{"txt": "a cat"}\n', ["bad.jsonl, line 1", "no 'text'", "Did you mean 'txt'?"]),
    "json that is a list": ("jsonl", b'["a cat"]\n', ["bad.jsonl, line 1", "one JSON object a line"]),
    "half a surrogate pair": ("jsonl", b'{"text": "a \\ud800 cat"}\n', ["bad.jsonl, line 1", "surrogate"]),
    "a table without its column": ("table", b"sentence,label\na cat,1\n", ["bad.csv", "text", "columns.text"]),
    "a row of another width": ("table", b"text,label\na cat,1,2\n", ["bad.csv, line 2", "3 fields", "2 fields"]),
    "a parquet file that is none": ("parquet", b"PAR1 not really", ["bad.parquet", "Parquet"]),
}
ENDINGS = {"lines": "txt", "conllu": "conllu", "jsonl": "jsonl", "table": "csv", "parquet": "parquet"}


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_cannot_be_read_is_named_with_its_line(standing: Path, model: Path, what: str) -> None:
    kind, data, told = FILES[what]
    path = standing.parent / f"bad.{ENDINGS[kind]}"
    if data is not None:
        path.write_bytes(data)
    kind = "table" if kind == "parquet" else kind
    source = "gold" if kind == "conllu" else "none"
    refused(standing, recipe(path.parent, model, kind, path.name, words__source=source), BadInput, *told)


def test_a_bad_file_beside_good_ones_stops_all_of_it(standing: Path, model: Path) -> None:
    (standing.parent / "z.conllu").write_bytes(conllu("the 9"))
    wrong = recipe(standing.parent, model, "conllu", "*.conllu", words__source="gold")
    refused(standing, wrong, BadInput, "z.conllu, line 1", "governor 9")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("none/*.txt", ["no file matches none/*.txt", "--set corpus.path="]),
        ([".", "good.conllu"], ["it is a folder"]),
        (["good.conllu", "./good.conllu"], ["twice"]),
    ],
    ids=["no match", "a folder", "twice"],
)
def test_a_path_that_names_no_corpus_is_refused(standing: Path, model: Path, path: Any, told: list[str]) -> None:
    refused(standing, recipe(standing.parent, model, "conllu", path), BadInput, *told)


def test_gold_words_need_a_corpus_that_has_some(standing: Path, model: Path) -> None:
    (standing.parent / "plain.txt").write_text("the cat sat .\n")
    wrong = recipe(standing.parent, model, "lines", "plain.txt", words__source="gold")
    refused(standing, wrong, BadInput, "plain.txt:1", "no words", 'words.source = "none"', "spacy:")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"encode__max_length": 25}, ["encode.max_length", "25", "24 at most"]),
        ({"encode__max_length": 2}, ["max_length"]),
        ({"keep__layers": [0, 2]}, ["keep.layers", "[2]", "0 to 1"]),
        ({"keep__heads": [-1]}, ["keep.heads", "[-1]", "0 to 1"]),
        ({"words__source": "spacy:no_such_pipeline"}, ["no_such_pipeline", "nstall"]),
        ({"corpus__columns": {"text": "a"}}, ["columns.text"]),
        ({"model__revision": "main"}, ["revision"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_key_that_does_not_fit_the_model_or_corpus_is_refused(
    standing: Path, model: Path, keys: dict[str, Any], told: list[str]
) -> None:
    wrong = recipe(standing.parent, model, "conllu", "good.conllu", **{"words__source": "gold", **keys})
    refused(standing, wrong, BadInput, *told)
