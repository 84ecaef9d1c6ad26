"""This file makes clusters of heads from their distances: sums over examples, coordinates, merges, labels."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MADE
from attnstore.store.optional import optional

DISTANCES = """
    select d.kind, k.layers, k.heads, d.n_rows, d.js
    from head_distances as d
    join stored.kinds as k using (kind)
    order by d.kind, d.example
"""
"""What every function here is given."""

_LINKAGES = ("average", "single", "complete", "weighted", "ward")


def head_pairs(table: pa.Table) -> pa.Table:
    """One row for each pair of heads a < b: the divergence summed over examples, and over how many rows."""
    found = []
    for kind, heads, js, n_rows, n_examples in _sums(table):
        layer, head = np.divmod(np.arange(heads[0] * heads[1]), heads[1])
        a, b = np.triu_indices(len(layer), 1)
        columns = {
            "kind": pa.array([kind] * len(a), pa.string()),
            **{"layer_a": layer[a], "head_a": head[a], "layer_b": layer[b], "head_b": head[b]},
            "js_sum": js,
            "n_rows": np.full(len(a), n_rows),
            "n_examples": np.full(len(a), n_examples),
        }
        found.append(pa.table(columns))
    return _joined(found, MADE["head_pairs"])


def head_coordinates(table: pa.Table, *, seed: int, root: bool) -> pa.Table:
    """Each head's place in the plane by metric multidimensional scaling of the mean distance of a row.

    Settings are those of Clark et al. 2019, section 6 (five starts, at most 1,000 steps), with a seed. `root` takes
    the square root of the divergence, which is a metric. BadInput for a negative `seed`, MissingExtra without
    scikit-learn.
    """
    if seed < 0:
        raise BadInput("placing heads in the plane", f"seed={seed}", "0 or more")
    found = []
    for kind, heads, js, n_rows, _ in _sums(table):
        layer, head = np.divmod(np.arange(heads[0] * heads[1]), heads[1])
        distance = _square(js / n_rows, len(layer), root=root)
        place, stress = _scaled(distance, seed)
        columns = {
            "kind": pa.array([kind] * len(layer), pa.string()),
            **{"layer": layer, "head": head, "x": place[:, 0], "y": place[:, 1]},
            "stress": np.full(len(layer), stress),
        }
        found.append(pa.table(columns))
    return _joined(found, MADE["head_coordinates"])


def head_linkage(table: pa.Table, *, method: str, root: bool) -> pa.Table:
    """The merges of a hierarchical clustering of heads by the mean distance of a row, as SciPy's `linkage` gives them.

    `root` takes the square root of the divergence. MissingExtra without SciPy, BadInput for an unknown method.
    """
    found = []
    for kind, _, js, n_rows, _ in _sums(table):
        merges = _linkage(js / n_rows, method, root=root)
        columns = {
            "kind": pa.array([kind] * len(merges), pa.string()),
            "step": np.arange(len(merges)),
            **{"a": merges[:, 0].astype(int), "b": merges[:, 1].astype(int), "distance": merges[:, 2]},
            "n_heads": merges[:, 3].astype(int),
        }
        found.append(pa.table(columns))
    return _joined(found, MADE["head_linkage"])


def head_clusters(table: pa.Table, *, method: str, root: bool, clusters: int) -> pa.Table:
    """The cluster of each head when `head_linkage` is cut into `clusters`; numbered by size, then by first head.

    There are fewer clusters where there are fewer heads, or merges of equal distance. BadInput unless `clusters` is 1
    or more, and as for `head_linkage`.
    """
    if clusters < 1:
        raise BadInput("clustering heads", f"clusters={clusters}", "1 or more")
    found = []
    for kind, heads, js, n_rows, _ in _sums(table):
        layer, head = np.divmod(np.arange(heads[0] * heads[1]), heads[1])
        member = np.ones(len(layer), int)
        if len(layer) > 1:
            merges = _linkage(js / n_rows, method, root=root)
            member = _hierarchy().fcluster(merges, clusters, "maxclust")
        numbers = list(dict.fromkeys(member.tolist()))
        numbers.sort(key=lambda number: -np.count_nonzero(member == number))  # stable: the first head decides
        columns = {
            "kind": pa.array([kind] * len(layer), pa.string()),
            **{"layer": layer, "head": head},
            "cluster": np.array([numbers.index(number) for number in member.tolist()]),
        }
        found.append(pa.table(columns))
    return _joined(found, MADE["head_clusters"])


def _sums(table: pa.Table) -> "list[tuple[str, tuple[int, int], NDArray[np.float64], int, int]]":
    """By kind: its layers and heads, the summed divergence of every pair [pair], rows and examples."""
    found = []
    # In order of kind, so that the lists need not be copied.
    kinds, first, counts = np.unique(table["kind"].to_pylist(), return_index=True, return_counts=True)
    for kind, start, length in zip(kinds.tolist(), first.tolist(), counts.tolist(), strict=True):
        own = table.slice(start, length)
        layers, heads = own["layers"][0].as_py(), own["heads"][0].as_py()
        flat = np.asarray(own["js"].combine_chunks().flatten())
        js = flat.reshape(len(own), -1).sum(axis=0, dtype=np.float64)
        found.append((kind, (layers, heads), js, int(np.sum(own["n_rows"].to_numpy())), len(own)))
    return found


def _square(js: NDArray[np.float64], n: int, *, root: bool) -> NDArray[np.float64]:
    square = np.zeros((n, n))
    a, b = np.triu_indices(n, 1)
    square[a, b] = square[b, a] = np.sqrt(js) if root else js
    return square


def _scaled(distance: NDArray[np.float64], seed: int) -> tuple[NDArray[np.float64], float]:
    """Coordinates [head, 2], their mean at 0, and Kruskal's stress-1."""
    if not distance.any():
        return np.zeros((len(distance), 2)), 0.0  # one head, or heads that are all alike
    scaling = optional("scikit-learn", "placing heads in the plane", module="sklearn.manifold").MDS(
        metric="precomputed", init="random", n_init=5, max_iter=1000, eps=1e-10, random_state=seed, n_jobs=1,
        normalized_stress=False,
    )  # fmt: skip
    place: NDArray[np.float64] = scaling.fit_transform(distance)
    place = place - place.mean(axis=0)
    apart = np.sqrt(np.square(place[:, None] - place).sum(axis=-1))
    return place, float(np.sqrt(np.square(apart - distance).sum() / np.square(apart).sum()))


def _linkage(js: NDArray[np.float64], method: str, *, root: bool) -> NDArray[np.float64]:
    if method not in _LINKAGES:
        raise BadInput("clustering heads", f"method={method!r}", f"one of {', '.join(_LINKAGES)}")
    if not len(js):
        return np.zeros((0, 4))  # one head
    return np.asarray(_hierarchy().linkage(np.sqrt(js) if root else js, method))


def _hierarchy() -> Any:
    return optional("scipy", "clustering heads", module="scipy.cluster.hierarchy")


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
