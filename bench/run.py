"""Runs every measurement and prints its rows beside the goals: `make bench`, or `python bench/run.py [--full]`.

Real corpora are used where ATTNSTORE_DATA names them. `--full` adds questions over 1,000 texts of 128 tokens, growth to
10,000 texts and 100,000 made-up examples, and the roads of all architectures.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import attnstore
from attnstore.job.recipe import Recipe

HERE = Path(__file__).parent


def step(title: str, script: str, *words: str) -> None:
    """Run one script under its title; one that fails is named, and the others still run."""
    print(f"\n## {title}\n", flush=True)
    ended = subprocess.run([sys.executable, str(HERE / script), *words], stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        print(f"{script} ended with status {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}", flush=True)
        FAILED.append(script)


FAILED: list[str] = []


def small_store(folder: Path) -> tuple[str, Path]:
    """Sentences of GUM, else the shipped ones, with what to call them."""
    recipes = HERE.parent / "ingest"
    data = Path(os.environ.get("ATTNSTORE_DATA") or HERE.parents[1] / "shared" / "data")
    if (data / "gum").is_dir():
        recipe = Recipe.read(recipes / "gum.toml", {"corpus.path": str(data / "gum" / "*.conllu")})
        title = "568 sentences of GUM (MiniLM, 72 heads)"
    else:
        recipe, title = Recipe.read(recipes / "quickstart.toml"), "the quickstart store"
    attnstore.ingest(recipe, folder / "bench.attn").close()
    return title, folder / "bench.attn"


def main() -> None:
    """All of them, one after the other; status 1 where one failed."""
    full = sys.argv[1:] == ["--full"]
    step("1 Ingest against other ways", "ingest.py")
    step("1 The same, facts by NumPy", "ingest.py", "--numpy")
    step("1 Memory above the loaded model", "memory.py")
    step("2 Size", "size.py")
    step("3 Reading", "reading.py")
    step("4 relations/best against a pickle of maps", "published.py")
    with tempfile.TemporaryDirectory() as folder:
        if full:
            step("4 Making stores of 1,030 and 114 texts of 128 tokens", "answers.py", "--make", folder)
            stores = (f"{folder}/big.attn", f"{folder}/small.attn")
            step("4 Questions over 1,030 texts of 128 tokens, and over a ninth of them", "answers.py", *stores)
        title, store = small_store(Path(folder))
        step(f"4 Questions over {title}", "answers.py", str(store))
        step(f"7 The service over {title}", "service.py", str(store), *(["--full"] if full else []))
    step("5 Growth", "growth.py", *(["--full"] if full else []))
    step("6 One process against several", "workers.py")
    step("One head switched off, against a forward pass", "ablations.py")
    step("Distances between all heads of an example", "distances.py")
    if full:
        step("Roads on which maps are taken", "architectures.py")
    if FAILED:
        sys.exit(f"failed: {', '.join(FAILED)}")


if __name__ == "__main__":
    main()
