"""Tests of what is made from the distances between heads: sums, places in the plane, merges, clusters."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MADE
from attnstore.store.head_pairs import head_clusters, head_coordinates, head_linkage, head_pairs

METHODS = ("average", "single", "complete", "weighted", "ward")


def distances(
    js: Sequence[Sequence[float]], n_rows: Sequence[int], layers: int, heads: int, kind: str = "k"
) -> pa.Table:
    """What the functions are given: the pairs of each example and its rows."""
    n = len(js)
    return pa.table(
        {
            "kind": pa.array([kind] * n, pa.string()),
            "layers": pa.array([layers] * n, pa.int32()),
            "heads": pa.array([heads] * n, pa.int32()),
            "n_rows": pa.array(n_rows, pa.int32()),
            "js": pa.array(js, pa.list_(pa.float32())),
        }
    )


def of_points(points: np.ndarray, n_rows: int = 4) -> pa.Table:
    """One example whose distances of a row are those between `points` [head, axis]."""
    apart = np.sqrt(np.square(points[:, None] - points).sum(axis=-1))
    return distances([(apart[np.triu_indices(len(points), 1)] * n_rows).tolist()], [n_rows], 1, len(points))


def square(coordinates: pa.Table) -> np.ndarray:
    place = np.column_stack([coordinates["x"].to_numpy(), coordinates["y"].to_numpy()])
    return np.sqrt(np.square(place[:, None] - place).sum(axis=-1))


def test_distances_are_added_over_examples_and_named_by_layer_and_head() -> None:
    # Two layers of two heads: pairs 01 02 03 12 13 23.
    found = head_pairs(distances([[1, 2, 3, 4, 5, 6], [0.5, 0, 0, 0, 0, 0.25]], [3, 7], 2, 2))
    assert found.schema == MADE["head_pairs"]
    names = ("layer_a", "head_a", "layer_b", "head_b")
    pairs = [tuple(row[name] for name in names) for row in found.to_pylist()]
    assert pairs == [(0, 0, 0, 1), (0, 0, 1, 0), (0, 0, 1, 1), (0, 1, 1, 0), (0, 1, 1, 1), (1, 0, 1, 1)]
    assert found["js_sum"].to_pylist() == [1.5, 2, 3, 4, 5, 6.25]
    assert set(found["n_rows"].to_pylist()) == {10}
    assert set(found["n_examples"].to_pylist()) == {2}


def test_every_kind_is_added_on_its_own() -> None:
    both = pa.concat_tables([distances([[1.0]], [2], 1, 2, "one"), distances([[2, 4, 6]], [1], 3, 1, "two")])
    found = head_pairs(both)
    assert found["kind"].to_pylist() == ["one", "two", "two", "two"]
    assert found["js_sum"].to_pylist() == [1, 2, 4, 6]
    assert (
        head_clusters(both, method="average", root=False, clusters=1)["kind"].to_pylist() == ["one"] * 2 + ["two"] * 3
    )


def test_heads_in_a_plane_are_placed_without_stress() -> None:
    points = np.random.default_rng(3).uniform(size=(9, 2))
    found = head_coordinates(of_points(points), seed=0, root=False)
    assert found.schema == MADE["head_coordinates"]
    expected = np.sqrt(np.square(points[:, None] - points).sum(axis=-1))
    assert square(found) == pytest.approx(expected, abs=0.01)
    assert max(found["stress"].to_pylist()) < 0.01
    assert (np.mean(found["x"].to_numpy()), np.mean(found["y"].to_numpy())) == pytest.approx((0, 0), abs=1e-9)


def test_stress_is_kruskals_of_distances_that_do_not_fit_into_a_plane() -> None:
    # Five points of which each two are 1 apart: no plane holds them.
    found = head_coordinates(distances([[2.0] * 10], [2], 5, 1), seed=0, root=False)
    apart = square(found)
    off = ~np.eye(5, dtype=bool)
    expected = np.sqrt(np.square(apart[off] - 1).sum() / np.square(apart[off]).sum())
    assert found["stress"].to_pylist() == pytest.approx([expected] * 5)
    assert expected > 0.1


@pytest.mark.parametrize("seed", [0, 1, 17])
def test_the_nearest_heads_stay_the_nearest_and_a_seed_gives_the_same_places(seed: int) -> None:
    rng = np.random.default_rng(5)
    # Four tight groups of three heads in five dimensions.
    points = np.repeat(4 * np.eye(5)[:4], 3, axis=0) + rng.normal(scale=0.1, size=(12, 5))
    table = of_points(points)
    found = head_coordinates(table, seed=seed, root=False)
    apart = square(found) + np.diag([np.inf] * 12)
    for head in range(12):
        assert set(np.argsort(apart[head])[:2]) == set(range(head // 3 * 3, head // 3 * 3 + 3)) - {head}
    assert head_coordinates(table, seed=seed, root=False).equals(found)


def test_the_root_places_by_the_square_root() -> None:
    points = np.random.default_rng(8).uniform(size=(6, 2))
    squared = np.square(points[:, None] - points).sum(axis=-1)
    table = distances([squared[np.triu_indices(6, 1)].tolist()], [1], 2, 3)
    assert square(head_coordinates(table, seed=0, root=True)) == pytest.approx(np.sqrt(squared), abs=0.01)


def test_two_heads_lie_their_distance_apart() -> None:
    found = head_coordinates(distances([[3.0], [1.0]], [4, 4], 1, 2), seed=0, root=False)
    assert square(found)[0, 1] == pytest.approx(0.5, abs=1e-4)
    merges = head_linkage(distances([[3.0], [1.0]], [4, 4], 1, 2), method="average", root=False).to_pylist()
    assert merges == [{"kind": "k", "step": 0, "a": 0, "b": 1, "distance": 0.5, "n_heads": 2}]


@pytest.mark.parametrize("n_heads", [1, 4])
def test_heads_without_distances_lie_on_one_point(n_heads: int) -> None:
    table = distances([[0.0] * (n_heads * (n_heads - 1) // 2)] * 2, [3, 3], n_heads, 1)
    found = head_coordinates(table, seed=0, root=False)
    assert {(row["x"], row["y"], row["stress"]) for row in found.to_pylist()} == {(0.0, 0.0, 0.0)}
    assert found.num_rows == n_heads
    assert head_pairs(table).num_rows == n_heads * (n_heads - 1) // 2
    assert head_linkage(table, method="ward", root=True).num_rows == n_heads - 1
    assert head_clusters(table, method="ward", root=True, clusters=3)["cluster"].to_pylist() == [0] * n_heads


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_merges_are_scipys_of_the_square_matrix(method: str, root: bool) -> None:
    table = of_points(np.random.default_rng(2).uniform(size=(8, 3)), n_rows=16)
    matrix = np.zeros((8, 8))
    matrix[np.triu_indices(8, 1)] = np.array(table["js"][0].as_py()) / 16
    matrix += matrix.T
    expected = linkage(squareform(np.sqrt(matrix) if root else matrix), method)
    found = head_linkage(table, method=method, root=root)
    assert found.schema == MADE["head_linkage"]
    values = np.column_stack([found[name].to_numpy() for name in ("a", "b", "distance", "n_heads")])
    assert values == pytest.approx(expected)
    assert found["step"].to_pylist() == list(range(7))


def test_clusters_are_numbered_by_size_and_then_by_their_first_head() -> None:
    # On a line: heads 0 and 3 far out, 1 2 4 together, 5 6 together.
    points = np.array([[0.0], [10], [10.1], [50], [10.2], [30], [30.1]])
    found = head_clusters(of_points(points), method="single", root=False, clusters=4)
    assert found.schema == MADE["head_clusters"]
    assert found["cluster"].to_pylist() == [2, 0, 0, 3, 0, 1, 1]


def test_no_examples_have_no_rows() -> None:
    none = distances([], [], 1, 2)
    assert head_pairs(none).num_rows == 0
    assert head_coordinates(none, seed=0, root=False).num_rows == 0
    assert head_linkage(none, method="average", root=False).num_rows == 0
    assert head_clusters(none, method="average", root=False, clusters=2).num_rows == 0


def test_what_cannot_be_clustered_is_refused() -> None:
    table = distances([[1.0]], [1], 1, 2)
    with pytest.raises(BadInput, match="centroids"):
        head_linkage(table, method="centroids", root=False)
    with pytest.raises(BadInput, match="clusters=0"):
        head_clusters(table, method="average", root=False, clusters=0)
    with pytest.raises(BadInput, match="seed=-1"):
        head_coordinates(table, seed=-1, root=False)
