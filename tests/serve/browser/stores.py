"""This file makes the stores that the browser looks at: a small one, another to compare with, and a hostile one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest
from tests.conftest import random_maps

LAYERS, HEADS = 3, 4
OBJECTS = (1, 2)
"""The head (layer, head) that looks from a direct object at its verb, but for every third sentence."""

SUBJECTS = ("farmer", "sailor", "teacher", "children", "baker", "judge", "painter", "neighbour")
VERBS = ("found", "painted", "sold", "carried", "saw", "repaired")
OBJECT_WORDS = ("boat", "letters", "clock", "apples", "bridge", "map", "ladder")
ADJECTIVES = ("old", "green", "heavy", "small", "broken")
ADVERBS = ("yesterday", "slowly", "again", "twice")

SCRIPT = '<script>alert("text")</script>'
IMAGE = "<img src=x onerror=alert(1)>"
LEAVES = '"><svg onload=alert(2)>'
HOSTILE = (
    SCRIPT,
    IMAGE,
    LEAVES,
    "javascript:alert(3)",
    "{{7*7}}",
    "{%raw%}${7*7}#{7*7}",
    "</title></textarea></style></script><script>alert(4)</script>",
    "\u202eright-to-left\u202c",
    "\u2066isolated\u2069",
    "W" + "o" * 300 + "rd",
    "\U0001f469\u200d\U0001f33e\U0001f600",
    "bell\x07back\x08escape\x1b[31m",
    "'onmouseover='alert(5)",
    "../../etc/passwd?x=1#y&z",
    "a\u0301\u0302\u0303\u0304\u0305\u0306\u0307",
    "--><!--",
)
"""Words that a page must show as they are."""


def sentences(count: int = 27) -> list[list[tuple[str, int | None, str]]]:
    """Sentences of words as (form, governor, relation), each with a subject, a verb and a direct object."""
    found = []
    for number in range(count):
        subject, verb = SUBJECTS[number % 8], VERBS[number % 6]
        thing, adjective = OBJECT_WORDS[number % 7], ADJECTIVES[number % 5]
        words: list[tuple[str, int | None, str]] = [
            ("the", 1, "det"),
            (subject, 2, "nsubj"),
            (verb, None, "root"),
            ("the", 5, "det"),
            (adjective, 5, "amod"),
            (thing, 2, "obj"),
        ]
        words += [(ADVERBS[number % 4], 2, "advmod")] if number % 2 else []
        found.append([*words, (".", 2, "punct")])
    return found


def make_small(folder: Path, *, seed: int = 1, title: str = "Small sentences") -> Path:
    """A store of such sentences whose head `OBJECTS` finds the verb of two direct objects in three."""
    lines, maps = [], {}
    rng = np.random.default_rng(seed)
    for number, words in enumerate(sentences()):
        forms = [form for form, _, _ in words]
        map_ = random_maps(rng, LAYERS, HEADS, len(words) + 2, len(words) + 2)
        for place, (_, governor, relation) in enumerate(words):
            if relation == "obj" and governor is not None:
                _look(map_[OBJECTS], place + 1, governor + 1 if number % 3 else place)
        maps[f"s{number}/encoder"] = map_
        lines.append(_line(f"s{number}", forms, words, ("statement", "with an adverb")[number % 2]))
    return _ingest(folder, lines, maps, title, "CC BY 4.0", "small model")


def make_hostile(folder: Path) -> Path:
    """A store in which every text that its maker chose is hostile: title, licence, model, names, words, labels."""
    lines, maps = [], {}
    rng = np.random.default_rng(3)
    for number, word in enumerate(HOSTILE):
        relation = (IMAGE, LEAVES, SCRIPT, "obj")[number % 4]
        words = [("see", None, "root"), (word, 0, relation), (HOSTILE[number - 1], 1, "obj"), (".", 0, "punct")]
        line = _line(f"{number} {word}", [form for form, _, _ in words], words, IMAGE if number % 2 else SCRIPT)
        maps[f"{line['name']}/encoder"] = random_maps(rng, LAYERS, HEADS, 6, 6)
        lines.append(line)
    return _ingest(folder, lines, maps, f"{SCRIPT}{LEAVES} title", f"{IMAGE} licence", f"{LEAVES} model")


def _look(map_: NDArray[np.float32], query: int, key: int) -> None:
    map_[query] *= 0.2
    map_[query, key] += 0.8


def _line(name: str, forms: Sequence[str], words: Sequence[tuple[str, int | None, str]], label: str) -> dict[str, Any]:
    parse = [{"form": form, "governor": governor, "deprel": relation} for form, governor, relation in words]
    return {
        "name": name,
        "text": " ".join(forms),
        "tokens": ["[CLS]", *forms, "[SEP]"],
        "special": ["cls", *[None] * len(forms), "sep"],
        "words": parse,
        "label": label,
        "maps": "maps.npz",
    }


def _ingest(
    folder: Path, lines: Sequence[dict[str, Any]], maps: dict[str, Any], title: str, licence: str, model: str
) -> Path:
    folder.mkdir(parents=True)
    np.savez(folder / "maps.npz", **maps)
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    recipe = {
        "title": title,
        "corpus": {"kind": "arrays", "path": "corpus.jsonl", "licence": licence},
        "model": {"name": model},
        "words": {"source": "gold"},
    }
    ingest(Recipe.build(recipe, folder=folder), folder / "store.attn").close()
    return folder / "store.attn"
