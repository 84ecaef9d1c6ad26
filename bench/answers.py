"""Time of questions over a store: import, open, relations/best warm, a whole command cold, and every stock question.

`python bench/answers.py STORE`
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import attnstore

NEEDED = {"relations/evidence": {"relation": "det", "layer": 2, "head": 8}}


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
        for name in opened.questions:
            row(name, lambda name=name: opened.ask(name, **NEEDED.get(name, {})), 3 if name.startswith("audit") else 15)


_BEST = "relations/best"
_ASK = (
    "import sys; sys.argv = ['attnstore', 'ask', 'relations/best', r'{store}']; from attnstore.cli import main; main()"
)

if __name__ == "__main__":
    main()
