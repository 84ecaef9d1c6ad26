"""Fixtures that every part shares: one thread, the real data where it lies, and a small store made from arrays."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Read when Ray is loaded: a cluster of a test must not depend on a token that an earlier one left on the machine.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes hours unless it was chosen, and what needs a CUDA device where there is none."""
    if "soak" not in config.option.markexpr:
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="takes hours: make soak"))
    wanted = [item for item in items if item.get_closest_marker("gpu")]
    if wanted:
        import torch

        if not torch.cuda.is_available():
            for item in wanted:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora; tests that need it are skipped where it is absent."""
    place = Path(os.environ.get("ATTNSTORE_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not place.is_dir():
        pytest.skip("no real corpora here: set ATTNSTORE_DATA to the folder that holds gum/, ewt/, wiki/")
    return place


SENTENCES = (
    "the old clock stopped .",
    "a letter was found by the gardener , and nobody read it .",
    "she gave him the map",
    "rain fell",
    "two boats that the storm had damaged were repaired in the harbour .",
    "he looked the word up",
    "their neighbours' dog barked at us all night .",
)


def random_maps(rng: np.random.Generator, *shape: int, causal: bool = False) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Row-stochastic maps [layer, head, query, key], some rows sharp and some flat."""
    logits = rng.normal(size=shape) * rng.uniform(0.2, 6, size=(*shape[:2], 1, 1))
    if causal:
        logits = np.where(np.tril(np.ones(shape[-2:], bool)), logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)


def write_arrays(
    folder: Path, sentences: Sequence[str] = SENTENCES, *, layers: int = 2, heads: int = 3, seed: int = 0
) -> Path:
    """A corpus of the kind `arrays`: [CLS] words [SEP], long words in two pieces, a left-branching parse."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines, maps = [], {}
    for number, text in enumerate(sentences):
        words, tokens = text.split(" "), ["[CLS]"]
        for word in words:
            tokens += [word] if len(word) < 7 else [word[:4], "##" + word[4:]]
        tokens.append("[SEP]")
        special = ["cls", *[None] * (len(tokens) - 2), "sep"]
        parse = [
            {"form": word, "governor": index - 1 if index else None, "deprel": "dep" if index else "root"}
            for index, word in enumerate(words)
        ]
        name = f"s{number}"
        lines.append(
            {"name": name, "text": text, "tokens": tokens, "special": special, "words": parse, "maps": "maps.npz"}
        )
        maps[f"{name}/encoder"] = random_maps(rng, layers, heads, len(tokens), len(tokens))
    np.savez(folder / "maps.npz", **maps)
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return folder / "corpus.jsonl"


def arrays_recipe(corpus: Path, **keys: Any) -> Recipe:
    """A recipe for such a corpus; `keys` replace single keys, dots written as two underscores."""
    value = {"title": "tiny", "corpus": {"kind": "arrays", "path": corpus.name}, "model": {"name": "arrays"}}
    overrides = {key.replace("__", "."): item for key, item in {"words__source": "gold", **keys}.items()}
    return Recipe.build(value, overrides, folder=corpus.parent)


@pytest.fixture(scope="session")
def arrays_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the tiny store."""
    return write_arrays(tmp_path_factory.mktemp("arrays"))


@pytest.fixture(scope="session")
def arrays_maps(arrays_corpus: Path) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Its maps by example name, [layer, head, query, key]."""
    with np.load(arrays_corpus.parent / "maps.npz") as file:
        return {name.partition("/")[0]: file[name] for name in file.files}


@pytest.fixture(scope="session")
def tiny_store(arrays_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished store of it at standard precision. Read it only."""
    place = tmp_path_factory.mktemp("tiny") / "tiny.attn"
    ingest(arrays_recipe(arrays_corpus), place).close()
    return place


@pytest.fixture
def make_store(tmp_path: Path, arrays_corpus: Path) -> Callable[..., Path]:
    """Makes a store of one's own from the tiny corpus; keyword arguments replace keys of the recipe."""

    def make(name: str = "own.attn", **keys: Any) -> Path:
        ingest(arrays_recipe(arrays_corpus, **keys), tmp_path / name).close()
        return tmp_path / name

    return make
