"""Divergences between heads are kept at ingest as `refresh` would compute them from exact maps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job import segment as segment_module
from attnstore.job import writer as writer_module
from attnstore.job.plan import DISTANCE_ROWS
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.reduce.divergence import sampled_rows
from tests.conftest import SENTENCES, arrays_recipe, random_maps, write_arrays

SAMPLED = DISTANCE_ROWS["sampled"]


def kept(store: Path, snapshot: int | None = None) -> dict[tuple[int, str], tuple[int, list[float]]]:
    """n_rows and js of each example and kind."""
    with attnstore.open(store, snapshot=snapshot) as opened:
        return {
            (row["example"], row["kind"]): (row["n_rows"], row["js"])
            for row in opened.sql("select * from head_distances")
        }


def plain(maps: NDArray[Any], rows: NDArray[Any], eps: float = 1e-3) -> list[float]:
    """The divergence of every pair of heads of `maps` [layer, head, query, key], by its definition."""
    smooth = (1 - eps) * maps.astype(np.float64).reshape(-1, *maps.shape[2:])[:, rows] + eps / maps.shape[3]

    def kl(p: NDArray[Any], q: NDArray[Any]) -> float:
        return float((p * np.log(p / q)).sum())

    n = len(smooth)
    pairs = [(smooth[a], smooth[b]) for a in range(n) for b in range(a + 1, n)]
    return [kl(p, (p + q) / 2) / 2 + kl(q, (p + q) / 2) / 2 for p, q in pairs]


def near(found: dict[Any, tuple[int, list[float]]], expected: dict[Any, tuple[int, list[float]]]) -> None:
    assert found.keys() == expected.keys()
    assert found
    for key, (n_rows, js) in expected.items():
        assert found[key][0] == n_rows
        np.testing.assert_allclose(found[key][1], js, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("distances", "sampled"), [("sampled", SAMPLED), ("full", 0)])
def test_ingest_keeps_the_divergences_of_the_definition(
    distances: str, sampled: int, make_store: Callable[..., Path], arrays_maps: dict[str, Any]
) -> None:
    # Facts are taken before rounding: the precision of the maps does not matter.
    store = make_store(keep__distances=distances, keep__precision="compact")
    expected = {}
    for number, maps in enumerate(arrays_maps.values()):
        n = maps.shape[2]
        # The middle of each of as many equal parts.
        middles = [(2 * part + 1) * n // (2 * sampled) for part in range(sampled)]
        rows = np.array(middles) if 0 < sampled < n else np.arange(n)
        expected[number, "encoder"] = (len(rows), plain(maps, rows))
    near(kept(store), expected)
    longest = max(maps.shape[2] for maps in arrays_maps.values())
    assert max(n_rows for n_rows, _ in expected.values()) == (sampled or longest)
    with attnstore.open(store) as opened:
        assert opened.engine.files.parameters("head_distances") == {"eps": 1e-3, "sampled": sampled}


@pytest.mark.parametrize("distances", ["sampled", "full"])
@pytest.mark.parametrize("limit", [None, 1])
def test_a_refresh_from_exact_maps_is_what_ingest_kept(
    distances: str, limit: int | None, make_store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit is not None:  # every layer is reduced by itself, as in a long text
        monkeypatch.setattr(writer_module, "TOGETHER_BYTES", limit)
    store = make_store(keep__distances=distances, keep__precision="exact")
    refresh(store, "head_distances")
    near(kept(store), kept(store, snapshot=1))
    with attnstore.open(store) as opened:
        assert len(opened.contents.additions) == 1
    assert verify(store, deep=True) == []


def test_batches_of_any_size_keep_the_same(
    arrays_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = arrays_recipe(arrays_corpus, keep__distances="sampled")
    ingest(recipe, tmp_path / "a.attn").close()
    monkeypatch.setattr(segment_module, "BATCH_TOKENS", 1)
    monkeypatch.setattr(writer_module, "WAITING_BYTES", 1)
    ingest(recipe, tmp_path / "b.attn").close()
    assert kept(tmp_path / "a.attn") == kept(tmp_path / "b.attn")


@pytest.mark.parametrize("keep", [{}, {"keep__facts": "none", "keep__distances": "sampled"}])
def test_a_store_that_keeps_none_computes_them_when_asked(
    keep: dict[str, str], make_store: Callable[..., Path]
) -> None:
    store = make_store(keep__precision="exact", **keep)
    with attnstore.open(store) as opened:
        assert opened.engine.files.parameters("head_distances") is None
        assert opened.engine.files.paths("head_distances") == []
        found = opened.ask("clusters/distances").to_pandas()
    with attnstore.open(make_store("kept.attn", keep__precision="exact", keep__distances="sampled")) as opened:
        expected = opened.ask("clusters/distances").to_pandas()
    np.testing.assert_allclose(found["js_sum"], expected["js_sum"], rtol=1e-5)
    assert found["n_rows"].tolist() == expected["n_rows"].tolist()


def test_maps_are_not_needed_for_what_is_kept(make_store: Callable[..., Path]) -> None:
    store = make_store(keep__maps="none", keep__distances="sampled")
    with attnstore.open(store) as opened:
        assert len(opened.ask("clusters/distances")) == 6 * 5 // 2


def test_an_unknown_choice_is_refused(arrays_corpus: Path) -> None:
    with pytest.raises(BadInput, match="sampled"):
        arrays_recipe(arrays_corpus, keep__distances="some")


def test_both_self_maps_of_two_sided_examples_are_compared_and_cross_maps_are_not(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines, maps = [], {}
    for number, (n, m) in enumerate([(4, 3), (12, 10), (6, 9)]):
        tokens = {"tokens": ["a"] * n, "target_tokens": ["b"] * m}
        text = {"text": " ".join(tokens["tokens"]), "target": " ".join(tokens["target_tokens"])}
        lines.append({"name": f"s{number}", **text, **tokens, "maps": "maps.npz"})
        maps[f"s{number}/encoder"] = random_maps(rng, 2, 2, n, n)
        maps[f"s{number}/decoder"] = random_maps(rng, 3, 2, m, m, causal=True)
        maps[f"s{number}/cross"] = random_maps(rng, 3, 2, m, n)
    np.savez(tmp_path / "maps.npz", **maps)
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    keep = {"keep__precision": "exact", "keep__distances": "sampled"}
    recipe = arrays_recipe(tmp_path / "corpus.jsonl", words__source="none", **keep)
    ingest(recipe, tmp_path / "s.attn").close()
    found = kept(tmp_path / "s.attn")
    expected = {
        (number, kind): (len(rows), plain(own, rows))
        for number in range(3)
        for kind in ("encoder", "decoder")
        for own in [maps[f"s{number}/{kind}"]]
        for rows in [sampled_rows(own.shape[2], SAMPLED)]
    }
    near(found, expected)
    assert len(found[0, "encoder"][1]) == 6
    assert len(found[0, "decoder"][1]) == 15
    refresh(tmp_path / "s.attn", "head_distances")  # with the parameters that are stored
    near(kept(tmp_path / "s.attn"), expected)


def test_a_long_text_does_not_hold_its_maps_to_compare_heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    real = writer_module.sampled_rows

    def counted(n_queries: int, rows: int) -> Any:
        found = real(n_queries, rows)
        held.append(len(found))
        return found

    monkeypatch.setattr(writer_module, "sampled_rows", counted)
    corpus = write_arrays(tmp_path / "c", [" ".join(["rain"] * 60), *SENTENCES[:2]])
    ingest(arrays_recipe(corpus, keep__distances="sampled"), tmp_path / "s.attn").close()
    assert held == [SAMPLED] * 6  # rows of each layer of three texts
