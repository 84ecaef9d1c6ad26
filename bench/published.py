"""`relations/best` of a store against the same table made as the scripts of Clark et al. 2019 make it, from a pickle.

`python bench/published.py [STORE] [TIMES]`

The other way is written apart from attnstore, after the released notebook: a pickle of one dictionary for each example,
maps turned into maps between words head by head, and for every head and direction a loop over all words. Maps are
float32 where theirs are float16, on which NumPy is slower. Without STORE, the sentences of GUM (MiniLM, 72 heads) or
else the shipped ones are ingested at `exact` precision, so that both ways see the very same weights.
"""

import os
import pickle
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import attnstore
from attnstore.job.recipe import Recipe

OFFSETS = range(-3, 3)
GOAL = 200
Scores = dict[str, tuple[float, Any]]


def export(store: attnstore.Store, path: Path) -> int:
    """Write the pickle: for each example its maps [layer, head, query, key], words and gold governors."""
    data = []
    tokens = store.sql("select example, token, word from tokens where side = 'source' order by all").to_arrow()
    words = store.sql("""
        select example, word, governor, deprel, sentence, aligned from words where side = 'source' order by all
    """).to_arrow()
    for example in np.unique(words["example"].to_numpy()).tolist():
        own = words.filter(np.equal(words["example"].to_numpy(), example)).to_pylist()
        placed = tokens.filter(np.equal(tokens["example"].to_numpy(), example))["word"].to_pylist()
        assert all(word["aligned"] == "exact" for word in own), "the published code has no word without its own tokens"
        data.append(
            {
                "attns": store.attention(example).weights,
                "words_to_tokens": [[i for i, word in enumerate(placed) if word == w["word"]] for w in own],
                "heads": [0 if w["governor"] is None else w["governor"] + 1 for w in own],
                "relns": [w["deprel"] for w in own],
                "sentences": [w["sentence"] for w in own],
            }
        )
    with path.open("wb") as file:
        pickle.dump(data, file)
    return len(data)


def word_level(attention: np.ndarray, words_to_tokens: list[list[int]]) -> np.ndarray:
    """One head's map between words and special tokens: columns of a word added up, its rows averaged."""
    found = np.array(attention)
    others = [token for word in words_to_tokens for token in word[1:]]
    for word in words_to_tokens:
        found[:, word[0]] = found[:, word].sum(axis=-1)
    found = np.delete(found, others, -1)
    for word in words_to_tokens:
        found[word[0]] = np.mean(found[word], axis=0)
    return np.delete(found, others, 0)


def predictions(attention: np.ndarray, transposed: bool) -> np.ndarray:
    """For each word the other word that its row, or its column, weighs most; counted from 1, as 0 is the root."""
    found = np.array(attention.T if transposed else attention)
    found[range(found.shape[0]), range(found.shape[0])] = 0
    return np.asarray(np.argmax(found[1:-1, 1:-1], -1) + 1)


def accuracies(data: list[dict[str, Any]], guesses: list[Any]) -> dict[str, float]:
    """The share of words of each relation whose governor is the guess."""
    correct, wrong = Counter[str](), Counter[str]()
    for example, guessed in zip(data, guesses, strict=True):
        for guess, gold, relation in zip(guessed, example["heads"], example["relns"], strict=True):
            if guess == gold:
                correct[relation] += 1
                correct["all"] += 1
            else:
                wrong[relation] += 1
                wrong["all"] += 1
    return {name: correct[name] / (correct[name] + wrong[name]) for name in {*correct, *wrong}}


def offset_guesses(example: dict[str, Any], offset: int) -> list[int]:
    """For each word the one at an offset, within its sentence; the root before the first word of it."""
    number = np.array(example["sentences"])
    bounds = {one: (int(np.argmax(number == one)), int(np.sum(number == one))) for one in set(example["sentences"])}
    guesses = []
    for word, sentence in enumerate(example["sentences"]):
        first, n = bounds[sentence]
        place = max(0, min(word - first + offset + 1, n))
        guesses.append(first + place if place else 0)
    return guesses


def published(data: list[dict[str, Any]]) -> tuple[Scores, Scores]:
    """For each relation the best head, with layer, head and direction, and the best offset."""
    maps = [
        np.stack([[word_level(head, example["words_to_tokens"]) for head in layer] for layer in example["attns"]])
        for example in data
    ]
    heads: Scores = {}
    for layer in range(maps[0].shape[0]):
        for head in range(maps[0].shape[1]):
            for direction, transposed in (("dep_to_head", False), ("head_to_dep", True)):
                guesses = [predictions(own[layer, head], transposed) for own in maps]
                for relation, value in accuracies(data, guesses).items():
                    if relation not in heads or value > heads[relation][0]:
                        heads[relation] = value, (layer, head, direction)
    offsets: Scores = {}
    for offset in OFFSETS:
        for relation, value in accuracies(data, [offset_guesses(example, offset) for example in data]).items():
            if relation not in offsets or value > offsets[relation][0]:
                offsets[relation] = value, offset
    return heads, offsets


def check(store: attnstore.Store, heads: Scores, offsets: Scores) -> tuple[int, float]:
    """Rows that were compared, and the largest difference between accuracies; the heads must be the same."""
    rows, worst = list(store.ask("relations/best", derived=False)), 0.0
    for row in rows:
        value, place = heads[row["relation"]]
        baseline, _ = offsets[row["relation"]]
        worst = max(worst, abs(row["accuracy"] - value), abs(row["baseline"] - baseline))
        if store.info.precision == "exact":
            assert place == (row["layer"], row["head"], row["direction"]), (row, place)
    assert {row["relation"] for row in rows} == set(heads) - {"root", "punct"}
    return len(rows), worst


def spread(values: list[float]) -> str:
    """Median with minimum and maximum."""
    return f"{statistics.median(values):.3g} ({min(values):.3g} - {max(values):.3g})"


def compare(path: str, times: int) -> None:
    """Print the rows for one store."""
    with tempfile.TemporaryDirectory() as folder, attnstore.open(path) as store:
        file = Path(folder) / "attention.pkl"
        n = export(store, file)
        store.ask("relations/best", derived=False)
        store.ask("relations/best", derived=False)  # from the second time on, what it reads lies in memory
        theirs, whole, ours, opened, busy = [], [], [], [], []
        heads, offsets = Scores(), Scores()
        for _ in range(times):
            begin, cpu = time.perf_counter(), time.process_time()
            with file.open("rb") as pickled:
                data = pickle.load(pickled)
            loaded = time.perf_counter()
            heads, offsets = published(data)
            end = time.perf_counter()
            cpu = time.process_time() - cpu
            del data
            whole.append(end - begin)
            theirs.append(end - loaded)
            begin, own = time.perf_counter(), time.process_time()
            for _ in range(5):
                store.ask("relations/best", derived=False)
            ours.append((time.perf_counter() - begin) / 5)
            busy.append(cpu / ((time.process_time() - own) / 5))
            begin = time.perf_counter()
            with attnstore.open(path) as fresh:
                fresh.ask("relations/best", derived=False)
            opened.append(time.perf_counter() - begin)
        rows, worst = check(store, heads, offsets)
        if store.info.precision == "exact":
            assert worst < 1e-12, worst
        size = file.stat().st_size / 1e6
        print(
            f"{n} examples, {rows} relations; largest difference between accuracies {worst:.1e}; pickle {size:.0f} MB"
        )
    print(f"pickle, published way, loading it too: {spread(whole)} s; without loading: {spread(theirs)} s")
    print(f"relations/best, warm: {spread(ours)} s; opening the store and asking once: {spread(opened)} s")
    print(f"{'the same in processor time':<44}  {spread(busy)}")
    for what, above, below in (
        ("loading and computing / warm", whole, ours),
        ("computing / warm", theirs, ours),
        ("loading and computing / opening and asking", whole, opened),
    ):
        ratio = spread([a / b for a, b in zip(above, below, strict=True)])
        print(f"{what:<44}  {ratio:<26}" + (f"  goal {GOAL}" if below is ours else ""))


def main() -> None:
    """Compare on a given store, or on one that is made for it."""
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if len(sys.argv) > 1:
        compare(sys.argv[1], times)
        return
    here = Path(__file__).parent
    gum = Path(os.environ.get("ATTNSTORE_DATA") or here.parents[1] / "shared" / "data") / "gum"
    given = {"corpus.path": str(gum / "*.conllu")} if gum.is_dir() else {}
    recipe = Recipe.read(
        here.parent / "ingest" / ("gum.toml" if given else "quickstart.toml"),
        {
            **given,
            "keep.precision": "exact",
            "keep.distances": "none",
        },
    )
    with tempfile.TemporaryDirectory() as folder:
        attnstore.ingest(recipe, Path(folder) / "exact.attn").close()
        compare(str(Path(folder) / "exact.attn"), times)


if __name__ == "__main__":
    main()
