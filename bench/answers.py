"""Time of questions over a store: import, open, relations/best warm, a whole command cold, and every stock question.

`python bench/answers.py STORE`
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import attnstore
from attnstore.errors import NotStored

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


def main() -> None:
    """Print a row for each figure."""
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
    with attnstore.open(store) as opened:
        print(f"\n{'question, ms':<34}    median  (min - max)      first")
        for name, question in opened.questions.items():
            if question.compares:
                continue
            ask = partial(opened.ask, name, **NEEDED.get(name, {}))
            start = time.perf_counter()
            try:
                ask()
            except NotStored as error:
                print(f"{name:<34}  {error.found}")
                continue
            first = 1000 * (time.perf_counter() - start)  # facts that were not kept are computed from the maps
            middle, low, high = median(ask, 3 if name.startswith(("audit", "probe")) else 9)
            print(f"{name:<34}  {middle:8.1f}  ({low:.1f} - {high:.1f})  {first:9.1f}", flush=True)


_BEST = "relations/best"
_ASK = (
    "import sys; sys.argv = ['attnstore', 'ask', 'relations/best', r'{store}']; from attnstore.cli import main; main()"
)

if __name__ == "__main__":
    main()
