"""Uses stores as a reader does and prints what came of it, a line of JSON a store; run as a process with limits.

What is right goes by a hash, what is refused by the class and the text of its error; anything else is told as a crash.
"""

import hashlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any

MEMORY, SECONDS = 4 * 2**30, 20

TABLES = ("examples", "tokens", "words", "head_facts", "token_facts", "word_facts")


def main() -> None:
    """Each argument is a store."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import attnstore  # noqa: F401 - loaded once, under the limit

    for place in sys.argv[1:]:
        signal.alarm(SECONDS)  # ends the process: the line of this store is missing then
        print(json.dumps({"store": place, "steps": used(place)}), flush=True)


def used(place: str) -> dict[str, list[str]]:
    """What each step of using a store gave."""
    import attnstore
    from attnstore.cli import group
    from attnstore.errors import AttnStoreError
    from attnstore.format.fact_tables import DECLARED
    from attnstore.format.verify import verify

    steps: dict[str, list[str]] = {}

    def step(name: str, use: Callable[[], Any]) -> Any:
        try:
            value = use()
            steps[name] = ["right", hashlib.sha256(repr(value).encode()).hexdigest()[:16]]
            return value
        except AttnStoreError as error:
            steps[name] = ["refused", type(error).__name__, str(error)[:1500]]
        except BaseException as error:
            steps[name] = ["crash", type(error).__name__, str(error)[:600]]
        return None

    def said() -> str:
        import click.testing

        found = click.testing.CliRunner().invoke(group, ["info", place])
        if isinstance(found.exception, Exception) and not isinstance(found.exception, SystemExit):
            raise found.exception
        assert "\x1b" not in found.output, found.output
        return "said"

    opened = step("open", lambda: type(attnstore.open(place)).__name__) and attnstore.open(place)
    step("info", said)
    if opened:
        with opened as store:
            step("shown", lambda: ("<img" in store._repr_html_(), len(repr(store)) > 10))
            for table in TABLES:
                known = ", ".join(f'"{name}"' for name in DECLARED[table].names)
                text = f"select {known} from stored.{table} order by all"
                step(f"table {table}", lambda text=text: store.sql(text).to_arrow().to_pylist())
            step("map", lambda: store.attention(0, layer=0, head=1).to_numpy().tolist())
            step("map of words", lambda: store.attention(1, layer=1, head=2, level="word").to_numpy().tolist())
            text = "select layer, round(sum(weight), 2) from attention group by all order by all"
            step("maps in SQL", lambda: store.sql(text).to_arrow().to_pylist())
            step("question", lambda: store.ask("heads/entropy").to_arrow().to_pylist())
    findings = step("verify", lambda: sorted((one.rule, one.where, one.found) for one in verify(place, deep=True)))
    if findings:
        steps["verify"] = ["refused", "Finding", json.dumps(findings)[:1500]]
    return steps


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
