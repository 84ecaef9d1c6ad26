"""Time of questions over a store: import, open, a command cold, and every stock question warm, each against the goal.

`python bench/answers.py STORE [SMALLER]`

With a SMALLER store, such as one with a tenth of the examples, each question is asked of both by turns, and the ratio
is printed. `python bench/answers.py --make FOLDER [TIMES]` makes two such stores, big.attn and small.attn: windows of
GUM of about 128 tokens (MiniLM, 72 heads), the corpus read 10 TIMES under new names (1,030 examples) and once (114).
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import attnstore
from attnstore.errors import BadInput, NotStored
from attnstore.job.recipe import Recipe

GOAL = 200
"""Milliseconds of a warm question over 1,000 examples of 128 tokens and 72 heads."""

SLOW = 60_000
"""Milliseconds of a first time after which a question is asked only twice more."""

DET = {"relation": "det", "layer": 2, "head": 8}
NEEDED = {
    "relations/evidence": DET,
    "coref/evidence": {"layer": 1, "head": 1},
    "examples/rollout": {"example": 0},
    "examples/flow": {"example": 0},
    "patterns/maps": {"example": 0},
}


def median(run: Callable[[], object], times: int) -> tuple[float, float, float]:
    """Median, minimum and maximum milliseconds of several runs, after one that is not counted."""
    run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken), min(taken), max(taken)


def fresh(code: str) -> None:
    """Run Python code in a process of its own."""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def make(folder: Path, times: int) -> None:
    """Ingest windows of GUM, the corpus read so many times, each time from one sentence later on."""
    here = Path(__file__).parent
    data = Path(os.environ.get("ATTNSTORE_DATA") or here.parents[1] / "shared" / "data")
    for name, repeats in (("big", times), ("small", 1)):
        corpus = folder / f"{name}-corpus"
        corpus.mkdir(parents=True)
        for number in range(repeats):
            for path in sorted((data / "gum").glob("*.conllu")):
                blocks = path.read_text(encoding="utf-8").strip("\n").split("\n\n")
                about = [line for line in blocks[0].split("\n") if line.startswith(("# newdoc id", "# global."))]
                text = "\n".join(about if number else []) + "\n" * bool(number) + "\n\n".join(blocks[number:]) + "\n\n"
                for key in ("# sent_id = ", "# newdoc id = "):
                    text = text.replace(key, f"{key}r{number}-")
                (corpus / f"r{number:03d}-{path.name}").write_text(text, encoding="utf-8")
        given = {"corpus.path": str(corpus / "*.conllu"), "encode.max_length": 152}
        attnstore.ingest(
            Recipe.read(here.parent / "ingest" / "gum-windows.toml", given), folder / f"{name}.attn"
        ).close()


def by_turns(asks: Sequence[Callable[[], object]], times: int) -> list[tuple[float, float, float]]:
    """Median, minimum and maximum milliseconds of each, asked one after the other so often.

    Two rounds are not counted: from the second use on, what a question reads lies in memory.
    """
    taken: list[list[float]] = [[] for _ in asks]
    for turn in range(times + 2):
        for ask, own in zip(asks, taken, strict=True):
            start = time.perf_counter()
            ask()
            if turn > 1:
                own.append(1000 * (time.perf_counter() - start))
    return [(statistics.median(own), min(own), max(own)) for own in taken]


def questions(opened: list[attnstore.Store]) -> None:
    """Print a row for each question: warm, first, over the goal, and the ratio to the second store."""
    against = "   smaller   ratio" if len(opened) > 1 else ""
    print(f"\n{'question, ms':<26}    median  (min - max)               first{against}")
    over = []
    for name, question in opened[0].questions.items():
        if question.compares:
            continue
        asks = [partial(store.ask, name, **NEEDED.get(name, {})) for store in opened]
        start = time.perf_counter()
        try:
            asks[0]()
            first = 1000 * (time.perf_counter() - start)  # facts that were not kept are computed from the maps
            times = 2 if first > SLOW else 7
            found = by_turns(asks, times)
        except (NotStored, BadInput) as error:
            print(f"{name:<26}  {error.found}")
            continue
        middle, low, high = found[0]
        told = f"{name:<26}  {middle:8.1f}  {f'({low:.1f} - {high:.1f})':<20} {first:9.1f}"
        if len(found) > 1:
            told += f"  {found[1][0]:8.1f}  {middle / found[1][0]:6.2f}"
        over += [f"{name} {middle:.0f}"] if middle > GOAL else []
        print(told + ("  over the goal" if middle > GOAL else ""), flush=True)
    print(f"\nover {GOAL} ms: {', '.join(over) or 'none'}")


def main() -> None:
    """Print a row for each figure."""
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10)
        return
    store = sys.argv[1]

    def row(what: str, run: Callable[[], object], times: int) -> None:
        middle, low, high = median(run, times)
        print(f"{what:<34}  {middle:8.1f}  ({low:.1f} - {high:.1f})")

    print(f"{'ms':<34}    median  (min - max)")
    row("python -c pass", lambda: fresh("pass"), 5)
    row("import attnstore (whole process)", lambda: fresh("import attnstore"), 5)
    row("attnstore ask relations/best, cold", lambda: fresh(_ASK.format(store=store)), 5)
    row("attnstore ask heads/entropy, cold", lambda: fresh(_ASK.format(store=store).replace(_BEST, "heads/entropy")), 5)
    row("open", lambda: attnstore.open(store).close(), 20)
    with ExitStack() as held:
        questions([held.enter_context(attnstore.open(path)) for path in sys.argv[1:3]])


_BEST = "relations/best"
_ASK = (
    "import sys; sys.argv = ['attnstore', 'ask', 'relations/best', r'{store}']; from attnstore.cli import main; main()"
)

if __name__ == "__main__":
    main()
