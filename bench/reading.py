"""What reading costs, each way against what a user would do otherwise, by turns in one process.

`python bench/reading.py [STORE] [--turns 9]`; without a store, 96 texts of 128 tokens are ingested first (MiniLM).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numcodecs
import numpy as np

import attnstore
from attnstore.format import shards
from attnstore.format.halves import widen
from attnstore.format.shard_source import Shard
from attnstore.job.recipe import Recipe
from attnstore.store.attention_table import SCAN_CELLS
from attnstore.store.rectangles import rectangles
from attnstore.store.store import Store
from ingest import MINILM, corpus

GROUP = "select layer, head, avg(weight) from attention group by all"
ONE_HEAD = "select avg(weight) from attention where layer = $layer and head = $head"
EVERY = "select sum(weight) from attention"
JOINS = {
    "3 examples": f"{EVERY} join (select example from examples limit 3) using (example)",
    "2 heads": f"{EVERY} join (values (0, 1), (2, 3)) h(layer, head) using (layer, head)",
}


clock: Callable[[], float] = time.perf_counter


def by_turns(ways: dict[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Seconds of each way, one after the other in every turn, after a first turn that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, run in ways.items():
            start = clock()
            run()
            taken[name] += [clock() - start] * (turn > 0)
    return taken


def row(what: str, values: list[float], unit: str, goal: str) -> None:
    """Median, minimum and maximum beside the goal."""
    spread = f"({min(values):.2f} - {max(values):.2f})"
    print(f"{what:<58} {statistics.median(values):9.2f} {spread:>19} {unit:<9} {goal}", flush=True)


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Turn by turn."""
    return [one / other for one, other in zip(above, below, strict=True)]


def encoded(store: Store, layers: int) -> Iterator[tuple[list[bytes], tuple[str, ...], np.dtype]]:
    """The encoded chunks of the first layers of each array of maps, with their codecs and the type of their codes."""
    for place in store.engine.places.of(store.kinds[0]):
        _, sharded, _ = store.engine.cells._array(place.segment, place.kind)
        for layer in range(layers):
            room = np.empty((1, store.info.kinds[place.kind].heads, place.stop), np.float32)
            opened: list[Shard] = []
            chunks = list(
                sharded._chunks(slice(layer, layer + 1), slice(0, room.shape[1]), slice(0, place.stop), room, opened)
            )
            yield [chunk.shard.read(chunk.size, chunk.offset) for chunk in chunks], sharded._codecs, sharded._dtype
            for shard in opened:
                shard.close()


def one_head(store: Store, folder: Path, turns: int) -> None:
    """The maps of one head, each summed in float32, against a memmap of the same weights in float16."""
    kind = store.info.kinds[store.kinds[0]]
    layer, head = kind.layers // 2, kind.heads // 2
    maps = [own for _, own in store.head_maps(layer, head)]
    ends = np.cumsum([own.size for own in maps]).tolist()
    np.concatenate([own.ravel() for own in maps]).astype(np.float16).tofile(folder / "head.f16")
    mapped = np.memmap(folder / "head.f16", np.float16, "r")
    spans = list(zip([0, *ends], ends, strict=False))
    room = np.empty(max(own.size for own in maps), np.float32)

    def widened() -> float:
        total = 0.0
        for start, stop in spans:
            widen(mapped[start:stop], room[: stop - start])
            total += float(room[: stop - start].sum())
        return total

    ways = {
        "memmap": lambda: sum(float(mapped[start:stop].astype(np.float32).sum()) for start, stop in spans),
        "memmap, our conversion": widened,
        "read": lambda: sum(float(own.sum()) for _, own in store.head_maps(layer, head)),
        "sql": lambda: store.sql(ONE_HEAD, layer=layer, head=head),
    }
    taken = by_turns(ways, turns)
    row("one head, weights a second / a float16 memmap's", ratios(taken["memmap"], taken["read"]), "x", ">= 0.6")
    row("  / a memmap's with the conversion used here", ratios(taken["memmap, our conversion"], taken["read"]), "x", "")
    row("one head", [ends[-1] / second / 1e6 for second in taken["read"]], "M/s", "")
    row("one head in SQL, time / direct", ratios(taken["sql"], taken["read"]), "x", "<= 2")


def everything(store: Store, turns: int) -> None:
    """Weights of some layers in float32, against decoding the same chunks with numcodecs and doing nothing else."""
    kind, layers = store.kinds[0], min(2, store.info.kinds[store.kinds[0]].layers)
    held = list(encoded(store, layers))
    heads = store.info.kinds[kind].heads

    def decode(part: tuple[list[bytes], tuple[str, ...], np.dtype], first: int, step: int) -> None:
        chunks, codecs, dtype = part
        room = np.empty(shards_chunk, dtype)
        for data in chunks[first::step]:
            if codecs == ("blosc", "zstd"):
                numcodecs.Blosc().decode(numcodecs.Zstd().decode(data), room)
            else:
                numcodecs.Zstd().decode(data)

    def raw(threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            for part in held:
                list(pool.map(lambda first, part=part: decode(part, first, threads), range(threads)))

    pairs = [(layer, head) for layer in range(layers) for head in range(heads)]

    def read(helpers: int) -> None:
        shards._cores._helpers = helpers
        for place in store.engine.places.of(kind):
            for block in place.blocks(SCAN_CELLS):
                span = slice(block.start, block.stop)
                for part in rectangles(pairs, block.stop - block.start):
                    store.engine.cells.weights(block.segment, kind, part.layer, part.head, span)

    shards_chunk = store.engine.cells._array(store.engine.places.of(kind)[0].segment, kind)[0].chunks[2]
    cells = sum(place.stop for place in store.engine.places.of(kind)) * heads * layers
    shards._cores._started()
    most = shards._cores._helpers + 1
    for threads in dict.fromkeys((1, most)):
        ways = {"raw": lambda n=threads: raw(n), "read": lambda n=threads: read(n - 1)}
        taken = by_turns(ways, max(3, turns // 2))
        shards._cores._helpers = most - 1
        what = f"everything as float32 / raw decompression, {threads} thread{'s' * (threads > 1)}"
        row(what, ratios(taken["raw"], taken["read"]), "x", ">= 0.6")
        row("  everything", [cells / second / 1e6 for second in taken["read"]], "M/s", "")


def in_sql(store: Store, cells: int, turns: int) -> None:
    """All rows of the virtual table, and joins against reading all of it."""
    taken = by_turns({"group": lambda: store.sql(GROUP)}, max(2, turns // 3))["group"]
    row("SQL, every weight grouped by head", [cells / second / 1e6 for second in taken], "M rows/s", ">= 60")
    ways: dict[str, Callable[[], object]] = {"all": lambda: store.sql(EVERY)}
    ways |= {name: lambda text=text: store.sql(text) for name, text in JOINS.items()}
    taken_by = by_turns(ways, max(2, turns // 3))
    for name in JOINS:
        row(
            f"SQL, weights of {name} in a join, time / all weights",
            ratios(taken_by[name], taken_by["all"]),
            "x",
            "prunes",
        )


def one_example(store: Store, turns: int) -> None:
    """The maps of all heads of some examples, each read once before."""
    examples = store.engine.places.examples
    some = examples[:: max(1, len(examples) // turns)].tolist()
    taken = [by_turns({"read": lambda number=number: store.attention(number)}, 1)["read"][0] for number in some]
    row("one example, all heads", [1000 * second for second in taken], "ms", "< 15")


def made(folder: Path) -> Path:
    """A store of texts of 128 tokens."""
    value = {"corpus": {"kind": "lines", "path": str(corpus(folder, "minilm-128", 96))}, "model": {"name": MINILM}}
    options = {"words.source": "none", "encode.max_length": 128, "encode.long": "truncate"}
    attnstore.ingest(Recipe.build(value, options), folder / "bench.attn").close()
    return folder / "bench.attn"


def main() -> None:
    """Print a row for each goal."""
    global clock
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    options = parser.parse_args()
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder, attnstore.open(options.store or made(Path(folder))) as store:
        kind = store.info.kinds[store.kinds[0]]
        places = store.engine.places.of(store.kinds[0])
        cells = sum(int(place.sizes.sum()) for place in places) * kind.layers * kind.heads
        sizes = f"{len(store.engine.places.examples)} examples, {cells / 1e6:.0f} M weights"
        print(f"{sizes}; {options.clock} time, median (minimum - maximum) of turns, goal\n")
        one_head(store, Path(folder), options.turns)
        one_example(store, options.turns)
        everything(store, options.turns)
        in_sql(store, cells, options.turns)


if __name__ == "__main__":
    main()
