"""This file makes files of annotations for the tiny corpus, and reads the tables that come of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attnstore
from tests.conftest import SENTENCES

Words = dict[str, list[tuple[str, int | None]]]

# Other words than blanks give: "neighbours'" in two, "old clock" as one. Governors count from 0, None is the root.
NEW: Words = {
    "s0": [("the", 1), ("old clock", None), ("stopped", 1), (".", 2)],
    "s3": [("rain", 1), ("fell", None)],
    "s6": [
        ("their", 1),
        ("neighbours", 3),
        ("'", 1),
        ("dog", 4),
        ("barked", None),
        ("at us", 4),
        ("all", 7),
        ("night", 4),
        (".", 4),
    ],
}


def record(words: Sequence[tuple[str, int | None]]) -> list[dict[str, Any]]:
    """Words as JSON Lines have them."""
    return [{"form": form, "governor": governor, "deprel": "x" if governor else "root"} for form, governor in words]


def jsonl(path: Path, words: Words, named: bool = True, **more: Any) -> Path:
    """A file of annotations for the sentences of the tiny corpus."""
    lines = [
        {**({"name": name} if named else {}), "text": SENTENCES[int(name[1:])], "words": record(found), **more}
        for name, found in words.items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def conllu(path: Path, words: Words, comment: str = "# sent_id = {name}\n# text = {text}\n") -> Path:
    """The same as CoNLL-U."""
    text = ""
    for name, found in words.items():
        text += comment.format(name=name, text=SENTENCES[int(name[1:])])
        for number, (form, governor) in enumerate(found, start=1):
            head = 0 if governor is None else governor + 1
            deprel = "x" if governor else "root"
            text += "\t".join([str(number), form, *"____", str(head), deprel, "_", "_"]) + "\n"
        text += "\n"
    path.write_text(text, encoding="utf-8")
    return path


def rewritten(corpus: Path, folder: Path, change: dict[str, dict[str, Any]]) -> Path:
    """The corpus with other keys for some examples, over the same maps."""
    folder.mkdir()
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    for line in lines:
        line.update(change.get(line["name"], {}))
        line["maps"] = str(corpus.parent / "maps.npz")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder / "corpus.jsonl"


def table(store: Path, name: str, **pinned: Any) -> list[dict[str, Any]]:
    with attnstore.open(store, **pinned) as opened:
        return list(opened.sql(f"select * from {name} order by all"))
