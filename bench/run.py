"""Runs every measurement and prints its rows: `make bench`. Real corpora are used where ATTNSTORE_DATA names them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import attnstore
from attnstore.job.recipe import Recipe

HERE = Path(__file__).parent


def step(title: str, script: str, *words: str) -> None:
    """Run one script under its title."""
    print(f"\n## {title}\n", flush=True)
    subprocess.run([sys.executable, str(HERE / script), *words], check=True, stderr=subprocess.DEVNULL)


def main() -> None:
    """All of them, one after the other."""
    step("Ingest against an eager forward pass that stores nothing", "ingest.py")
    step("The same without distances between heads", "ingest.py", "--distances", "none")
    step("Memory above the loaded model", "memory.py")
    step("Roads on which maps are taken", "architectures.py")
    step("One head switched off, against a forward pass", "ablations.py")
    step("Distances between all heads of an example", "distances.py")
    recipes = HERE.parent / "ingest"
    data = Path(os.environ.get("ATTNSTORE_DATA") or HERE.parents[1] / "shared" / "data")
    gum = data / "gum"
    with tempfile.TemporaryDirectory() as folder:
        if gum.is_dir():
            recipe = Recipe.read(recipes / "gum.toml", {"corpus.path": str(gum / "*.conllu")})
            title = "Questions over 568 sentences of GUM (MiniLM, 72 heads)"
        else:
            recipe = Recipe.read(recipes / "quickstart.toml")
            title = "Questions over the quickstart store"
        with attnstore.ingest(recipe, Path(folder) / "bench.attn") as store:
            sizes = {file.path: file.bytes for unit in store.units for file in unit.files}
            cells = store.sql("select sum(n_tokens * n_tokens) * 72 as weights from examples").to_arrow()
        weights = cells["weights"][0].as_py()
        maps = sum(size for path, size in sizes.items() if path.startswith("maps.zarr"))
        print(f"\n## Size\n\nmaps {maps / weights:.2f} B a weight; whole store {sum(sizes.values()) / weights:.2f} B")
        step(title, "answers.py", str(Path(folder) / "bench.attn"))


if __name__ == "__main__":
    main()
