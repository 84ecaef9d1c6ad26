"""Tests of the questions about distances between heads and clusters of them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage

from attnstore.errors import BadInput, NotStored
from attnstore.format.manifest import Kept, Kind
from attnstore.job.refresh import refresh
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries import plain
from tests.queries.sentences import pointing, sentence
from tests.store.making import KINDS, Made, make_store, random_examples

THREE = {"encoder": Kind(1, 3, 3, "source", "source", False)}
METHODS = ("average", "single", "complete", "weighted", "ward")


def three_heads(name: str) -> Made:
    """Four tokens; a head on itself, one on the next token (the last on the first), one on all alike."""
    maps = np.stack([np.eye(4), np.roll(np.eye(4), 1, axis=1), np.full((4, 4), 0.25)])
    return Made(name, sentence(["a", "b"]), {"encoder": maps[None].astype(np.float32)})


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return random_examples(7, (5, 9, 3, 8), {"encoder": Kind(2, 3, 3, "source", "source", False)})


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("c") / "c.attn", made, precision="exact")) as opened:
        yield opened


def matrix(store: Store, column: str, **params: object) -> np.ndarray:
    """[head, head] from the pairs of the answer."""
    found = store.ask("clusters/distances", **params)
    n = 6
    square = np.zeros((n, n))
    for row in found:
        a, b = 3 * row["layer_a"] + row["head_a"], 3 * row["layer_b"] + row["head_b"]
        assert a < b
        square[a, b] = square[b, a] = row[column]
    return square


@pytest.mark.parametrize("copies", [1, 2])
def test_distances_of_the_worked_maps(copies: int, tmp_path: Path) -> None:
    # Worked out for eps 1e-3, summed over four rows: itself and next 2.7619090, itself and all alike 1.5100551.
    with open_store(
        make_store(tmp_path / "w.attn", [three_heads(f"e{n}") for n in range(copies)], kinds=THREE, precision="exact")
    ) as store:
        rows = list(store.ask("clusters/distances", sampled=0))
        assert [(row["head_a"], row["head_b"]) for row in rows] == [(0, 1), (0, 2), (1, 2)]
        expected = [2.7619090, 1.5100551, 1.5100551]
        assert [row["js_sum"] for row in rows] == pytest.approx([copies * value for value in expected], abs=1e-5)
        assert [row["js_mean"] for row in rows] == pytest.approx([value / 4 for value in expected], abs=1e-6)
        assert {(row["n_rows"], row["n"]) for row in rows} == {(4 * copies, copies)}


@pytest.mark.parametrize("sampled", [0, 1, 3, 8, 50])
@pytest.mark.parametrize("eps", [1e-3, 0.1])
def test_distances_are_those_of_plain_loops(store: Store, made: list[Made], sampled: int, eps: float) -> None:
    expected, n_rows = plain.divergences(plain.of_made(made), eps=eps, sampled=sampled)
    assert matrix(store, "js_sum", sampled=sampled, eps=eps) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert matrix(store, "js_mean", sampled=sampled, eps=eps) == pytest.approx(expected / n_rows, rel=1e-4, abs=1e-6)


def test_four_rows_are_compared_where_no_distances_are_stored(store: Store) -> None:
    # Examples of 7 to 12 tokens: four rows of each.
    tokens = [row["n_tokens"] for row in store.sql("select n_tokens from examples")]
    assert {row["n_rows"] for row in store.ask("clusters/distances")} == {sum(min(n, 4) for n in tokens)}


def test_distances_over_chosen_examples_are_those_of_the_examples(store: Store, made: list[Made]) -> None:
    expected, _ = plain.divergences(plain.of_made(made[1:3]))
    found = store.ask("clusters/distances", where="example in (1, 2)", sampled=0)
    assert [row["js_sum"] for row in found] == pytest.approx(expected[np.triu_indices(6, 1)], rel=1e-4, abs=1e-5)
    assert {row["n"] for row in found} == {2}


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_linkage_is_scipys_of_the_distances(store: Store, method: str, root: bool) -> None:
    square = matrix(store, "js_mean")
    condensed = square[np.triu_indices(6, 1)]
    expected = linkage(np.sqrt(condensed) if root else condensed, method)
    found = store.ask("clusters/linkage", method=method, root=root)
    assert [row["step"] for row in found] == list(range(5))
    rows = [[row["a"], row["b"], row["distance"], row["n_heads"]] for row in found]
    assert np.array(rows) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("clusters", range(1, 8))
def test_labels_are_those_of_the_cut_dendrogram(store: Store, clusters: int) -> None:
    condensed = matrix(store, "js_mean")[np.triu_indices(6, 1)]
    expected = cut_tree(linkage(condensed, "average"), min(clusters, 6))[:, 0]
    found = list(store.ask("clusters/labels", clusters=clusters))
    labels = [row["cluster"] for row in found]
    for a in range(6):
        for b in range(6):
            assert (labels[a] == labels[b]) == (expected[a] == expected[b])
    sizes = [labels.count(number) for number in range(max(labels) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert [row["n_heads"] for row in found] == [labels.count(own) for own in labels]


@pytest.mark.parametrize(
    ("question", "params"),
    [
        ("labels", {"clusters": 0}),
        ("coordinates", {"seed": -1}),
        ("distances", {"eps": 1.5}),
        ("linkage", {"sampled": -1}),
    ],
)
def test_a_parameter_without_meaning_is_refused(store: Store, question: str, params: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        store.ask(f"clusters/{question}", **params)


def test_coordinates_keep_who_is_nearest(tmp_path: Path) -> None:
    # Heads 0 and 1 of layer 0 look ahead, almost alike; those of layer 1 look at the first token, almost alike.
    ahead, first = pointing([1, 2, 3, 4, 5, 5]), pointing([0] * 6)
    maps = np.stack([np.stack([ahead, 0.98 * ahead + 0.02 / 6]), np.stack([first, 0.98 * first + 0.02 / 6])])
    kinds = {"encoder": Kind(2, 2, 2, "source", "source", False)}
    made = [Made("x", sentence(list("abcd")), {"encoder": maps.astype(np.float32)})]
    with open_store(make_store(tmp_path / "n.attn", made, kinds=kinds, precision="exact")) as store:
        for root in (False, True):
            rows = list(store.ask("clusters/coordinates", root=root, sampled=0))
            place = np.array([[row["x"], row["y"]] for row in rows])
            apart = np.sqrt(np.square(place[:, None] - place).sum(axis=-1)) + np.diag([np.inf] * 4)
            assert apart.argmin(axis=1).tolist() == [1, 0, 3, 2]
            assert {row["stress"] for row in rows} == {rows[0]["stress"]}
            assert 0 <= rows[0]["stress"] < 0.1
        again = list(store.ask("clusters/coordinates", root=True, sampled=0, seed=0))
        assert [(row["x"], row["y"]) for row in again] == [(row["x"], row["y"]) for row in rows]
        assert [row["head_label"] for row in rows] == ["1-1", "1-2", "2-1", "2-2"]
        # Rows on the next token: 5 of 6 rows with .9 and the last with .02, over the 5 that have one.
        assert [row["label"] for row in rows] == ["next", "next", "cls", "cls"]


def test_a_later_threshold_overrides_an_earlier_one(tmp_path: Path) -> None:
    # Three tokens: the next of 0 is [SEP] for row 1; a head on the last token is next for row 1 and sep for all.
    maps = np.array([pointing([2, 2, 2])])[None].astype(np.float32)
    kinds = {"encoder": Kind(1, 1, 1, "source", "source", False)}
    made = [Made("x", sentence(["a"]), {"encoder": maps})]
    with open_store(make_store(tmp_path / "l.attn", made, kinds=kinds, precision="exact")) as store:
        (row,) = store.ask("clusters/coordinates")
        assert (row["x"], row["y"], row["stress"], row["label"]) == (0, 0, 0, "sep")
        assert len(store.ask("clusters/distances")) == len(store.ask("clusters/linkage")) == 0
        assert [(row["cluster"], row["n_heads"]) for row in store.ask("clusters/labels")] == [(0, 1)]


def test_a_head_is_broad_by_its_share_of_uniform_attention_where_inputs_are_short(tmp_path: Path) -> None:
    # Entropies of the three heads of four tokens: 0, 0 and ln 4; the second is on the next token in three of four rows.
    with open_store(make_store(tmp_path / "b.attn", [three_heads("x")], kinds=THREE, precision="exact")) as store:
        assert [row["label"] for row in store.ask("clusters/coordinates")] == ["other", "next", "other"]
        found = store.ask("clusters/coordinates", broad_share=0.9)
        assert [row["label"] for row in found] == ["other", "next", "broad"]


def test_distances_need_maps_or_stored_distances(tmp_path: Path) -> None:
    kept = Kept("none", None, None, None)
    with (
        open_store(make_store(tmp_path / "m.attn", [three_heads("x")], kinds=THREE, kept=kept)) as store,
        pytest.raises(NotStored, match=r'no maps; .*\[keep\] distances = "sampled" or "full", or maps = "all"'),
    ):
        store.ask("clusters/distances")


def test_stored_distances_answer_where_their_parameters_fit(tmp_path: Path) -> None:
    root = make_store(tmp_path / "r.attn", [three_heads("x")], kinds=THREE, precision="exact")
    refresh(root, "head_distances", {"sampled": 2, "eps": 0.01})
    with open_store(root) as store:
        # Rows 1 and 3 of four. Without a wish the stored ones serve, but eps is one.
        assert {row["n_rows"] for row in store.ask("clusters/distances", eps=0.01)} == {2}
        expected, _ = plain.divergences(plain.of_made([three_heads("x")]), eps=0.01, sampled=2)
        found = [row["js_sum"] for row in store.ask("clusters/distances", eps=0.01)]
        assert found == pytest.approx(expected[np.triu_indices(3, 1)], rel=1e-4)
        assert {row["n_rows"] for row in store.ask("clusters/distances", sampled=0)} == {4}


def test_heads_that_are_all_alike_lie_on_one_point(tmp_path: Path) -> None:
    alike = np.repeat(three_heads("x").maps["encoder"][:, :1], 3, axis=1)
    with open_store(
        make_store(tmp_path / "a.attn", [Made("x", sentence(["a", "b"]), {"encoder": alike})], kinds=THREE)
    ) as store:
        assert {row["js_sum"] for row in store.ask("clusters/distances")} == {0}
        assert {(row["x"], row["y"], row["stress"]) for row in store.ask("clusters/coordinates")} == {(0, 0, 0)}
        assert {row["distance"] for row in store.ask("clusters/linkage")} == {0}


def test_no_example_has_no_answer(store: Store) -> None:
    for name in ("distances", "coordinates", "linkage", "labels", "features"):
        assert len(store.ask(f"clusters/{name}", where="false")) == 0


def test_every_kind_of_self_attention_has_clusters_and_cross_attention_none(tmp_path: Path) -> None:
    made = random_examples(3, (5, 6), KINDS)
    with open_store(make_store(tmp_path / "k.attn", made, kinds=KINDS)) as store:
        assert len(store.ask("clusters/distances", kind="encoder")) == 6
        assert len(store.ask("clusters/distances", kind="decoder")) == 15
        assert len(store.ask("clusters/distances", kind="cross")) == 0
        assert len(store.ask("clusters/labels", kind="decoder")) == 6
        cross = {row["feature"] for row in store.ask("clusters/features", kind="cross", min_count=1)}
        assert cross == {"cls", "sep", "punct", "entropy_nats", "confidence"}


def test_features_are_the_answers_of_the_questions_they_come_from(store: Store) -> None:
    found = {(row["layer"], row["head"], row["feature"]): row for row in store.ask("clusters/features", min_count=1)}
    for question, key, column in (
        ("heads/positions", "metric", "value"),
        ("heads/special", "metric", "value"),
        ("heads/entropy", None, "entropy_nats"),
        ("heads/distance", None, "distance_tokens"),
    ):
        for row in store.ask(question):
            own = found.get((row["layer"], row["head"], row[key] if key else column))
            if own is not None:
                assert own["value"] == pytest.approx(row[column])
                assert own["n"] == row["n"]
    n_relations = 0
    for row in store.ask("relations/accuracy"):
        if row["relation"] not in ("all", "root") and row["direction"] != "head_row":
            own = found[row["layer"], row["head"], f"{row['relation']}:{row['direction']}"]
            assert own["value"] == pytest.approx(row["accuracy"])
            assert own["n"] == row["n"]
            n_relations += 1
    names = {name for _, _, name in found}
    assert {"self", "next", "previous", "cls", "sep", "punct", "entropy_nats", "distance_tokens", "confidence"} < names
    assert n_relations == 6 * sum(":dep_to_head" in name or ":head_to_dep" in name for name in names) > 0
    counted = {row["feature"] for row in store.ask("clusters/features", min_count=5) if ":" in row["feature"]}
    assert counted == {name for _, _, name in found if name.endswith(("_head", "_dep")) and found[0, 0, name]["n"] >= 5}


def test_a_store_without_words_has_features_of_rows_alone(tmp_path: Path) -> None:
    made = [three_heads("x")]
    bare = Made("x", sentence([]), {"encoder": made[0].maps["encoder"][:, :, :2, :2]})
    with open_store(make_store(tmp_path / "b.attn", [bare], kinds=THREE, precision="exact")) as store:
        assert len(store.ask("clusters/features", min_count=1)) == 3 * 9
