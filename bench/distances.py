"""Time and error of the divergences between all heads of an example, and what sampling its query rows costs.

`python bench/distances.py [STORE ...]`; without a store only generated maps are measured. Everything runs on one
thread; processor time is taken, which other processes disturb less.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = "1"  # read when NumPy is imported

import numpy as np

import attnstore
from attnstore.reduce.compiled import compiled_pair_sums
from attnstore.reduce.divergence import condensed, jensen_shannon, sampled_rows

HEADS, TOKENS, EPS, TIMES = 144, 128, 1e-3, 11
ROWS = (2, 4, 8, 16)
EXAMPLES = 100


def published(maps):
    """The computation of Clark et al. 2019 as published: every head against all, three logarithms' worth a cell.

    Their maps are in half precision; here they were widened beforehand, as NumPy is slower in half precision.
    """
    distances = np.zeros((len(maps), len(maps)))
    for head in range(len(maps)):
        p = EPS / maps.shape[-1] + maps[head][None] * (1 - EPS)
        q = EPS / maps.shape[-1] + maps * (1 - EPS)
        m = (p + q) / 2
        js = -p * np.log(m / p)
        js += -q * np.log(m / q)
        js /= 2
        distances[head] += js.sum(-1).sum(-1)
    return distances


def in_double(maps):
    """The definition in double precision, pair by pair: what the others are compared with."""
    smooth = maps.astype(np.float64) * (1 - EPS) + EPS / maps.shape[-1]
    pairs = []
    for head, p in enumerate(smooth):
        for q in smooth[head + 1 :]:
            m = (p + q) / 2
            pairs.append((p * np.log(p / m) + q * np.log(q / m)).sum() / 2)
    return np.array(pairs)


def generated(random):
    """Maps [head, query, key] as heads make them: soft-max of noise of a head's own width, a third of them on the
    token before, a third on the first token."""
    scores = random.normal(size=(HEADS, TOKENS, TOKENS)) * random.uniform(0.5, 3, (HEADS, 1, 1))
    position = np.arange(1, TOKENS)
    scores[0::3, position, position - 1] += random.uniform(2, 8, (HEADS // 3, 1))
    scores[1::3, :, 0] += random.uniform(2, 8, (HEADS // 3, 1))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return as_stored(weights / weights.sum(-1, keepdims=True))


def real(store):
    """As many heads of real maps: the first TOKENS tokens of long examples, rows divided by their sums; or None."""
    long = store.sql(f"select example from examples where n_tokens >= {TOKENS} order by example").to_arrow()["example"]
    found: list[np.ndarray] = []
    for example in long.to_pylist():
        weights = stacked(store, example)[:, :TOKENS, :TOKENS]
        found.append(weights / weights.sum(-1, keepdims=True))
        if sum(map(len, found)) >= HEADS:
            return as_stored(np.concatenate(found)[:HEADS])
    return None


def as_stored(weights):
    """Rounded to half precision, as float32: what the published computation and a store both start from."""
    return weights.astype(np.float16).astype(np.float32)


def stacked(store, example):
    """The maps of one example with the heads of all layers in one axis."""
    weights = np.asarray(store.attention(example).weights, np.float32)
    return weights.reshape(-1, *weights.shape[-2:])


def compare(title, maps):
    """Print how many times faster than the published computation each way is, by turns, and its error."""
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "published": published,
        "numpy": lambda maps: jensen_shannon(maps, compiled=False),
    }
    if compiled_pair_sums():
        ways["numba"] = lambda maps: jensen_shannon(maps, compiled=True)
    expected = in_double(maps)
    print(f"\n{title}: [{', '.join(map(str, maps.shape))}], mean divergence {expected.mean():.2f} nats")
    print("way           median s   times faster (min - max)   largest error / mean   rms error / mean")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(TIMES + 1):
        for name, way in ways.items():
            start = time.process_time()
            way(maps)
            if turn:  # the first is not counted
                taken[name].append(time.process_time() - start)
    for name, way in ways.items():
        ratios = [slow / fast for slow, fast in zip(taken["published"], taken[name], strict=True)]
        error = np.abs(condensed(way(maps)) - expected) / expected.mean()
        print(
            f"{name:<12}  {statistics.median(taken[name]):9.4f}   {statistics.median(ratios):5.1f} ({min(ratios):.1f} -"
            f" {max(ratios):.1f}){'':<12}{error.max():.1e}{'':<16}{np.sqrt((error**2).mean()):.1e}"
        )


def first_call():
    """Print what the first call of a process pays for numba."""
    start = time.process_time()
    if compiled_pair_sums():
        print(f"numba imported and the loop compiled: {time.process_time() - start:.2f} s, once in a process")


def sampling(name, store):
    """Print the error of divergences per row from sampled rows, of one example and of the mean over examples."""
    numbers = store.sql("select example, n_tokens from examples where n_tokens > 2 order by example").to_arrow()
    chosen = sampled_rows(len(numbers), EXAMPLES)
    lengths = numbers["n_tokens"].to_numpy()[chosen]
    everything, some = [], {rows: [] for rows in ROWS}
    for example, n_tokens in zip(numbers["example"].to_numpy()[chosen].tolist(), lengths, strict=True):
        maps = stacked(store, example)
        everything.append(condensed(jensen_shannon(maps, compiled=True)) / n_tokens)
        for rows in ROWS:
            index = sampled_rows(n_tokens, rows)
            some[rows].append(condensed(jensen_shannon(maps, rows=index, compiled=True)) / len(index))
    full = np.array(everything)
    tokens = f"{int(np.median(lengths))} tokens in the middle, {lengths.min()} to {lengths.max()}"
    print(f"\n{name}: {len(full)} examples ({tokens}), {len(maps)} heads, {full.shape[1]} pairs")
    print("rows   one example: error median, 95 %, rank corr.   mean over examples: error median, 95 %, rank corr.")
    for rows, values in some.items():
        sample = np.array(values)
        single = np.median([rank_correlation(a, b) for a, b in zip(sample, full, strict=True)])
        cells = [*errors(sample, full), f"{single:.3f}", *errors(sample.mean(0), full.mean(0))]
        print(f"{rows:>4}   {'  '.join(cells)}  {rank_correlation(sample.mean(0), full.mean(0)):.4f}")


def errors(sample, full):
    """Median and 95th percentile of the relative error over pairs, in percent."""
    return [f"{100 * value:5.1f} %" for value in np.percentile(np.abs(sample - full) / full, [50, 95])]


def rank_correlation(a, b):
    """Spearman's; equal values, of which there are hardly any, are ranked as they come."""
    return np.corrcoef(a.argsort().argsort(), b.argsort().argsort())[0, 1]


def main() -> None:
    """Print every table."""
    first_call()
    compare("generated maps", generated(np.random.default_rng(0)))
    stores = [attnstore.open(path) for path in sys.argv[1:]]
    for path, store in zip(sys.argv[1:], stores, strict=True):
        if (maps := real(store)) is not None:
            compare(f"real maps of {path}", maps)
    for path, store in zip(sys.argv[1:], stores, strict=True):
        sampling(path, store)
        store.close()


if __name__ == "__main__":
    main()
