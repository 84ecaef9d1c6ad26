"""Gradients of pretrained encoders of chemical reactions: those of autograd, and attributions that add up."""

import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if importlib.util.find_spec("rxnfp") is None:
    pytest.skip("rxnfp is not installed: pip install --no-deps rxnfp==0.1.0", allow_module_level=True)

pytestmark = pytest.mark.slow

PRETRAINED, CLASSIFIER = (
    f"package:rxnfp/models/transformers/{name}" for name in ("bert_pretrained", "bert_ft_10k_25s")
)
SYMBOL = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
REACTIONS = ("CC(=O)O.OCC>>CC(=O)OCC", "CCBr.Oc1ccccc1>>CCOc1ccccc1", "CC(=O)Cl.Nc1ccccc1>>CC(=O)Nc1ccccc1")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def recipe(place: Path, model: str, task: str, evidence: Sequence[str]) -> Recipe:
    path = place / "reactions.jsonl"
    lines = [json.dumps({"text": reaction, "tokens": SYMBOL.findall(reaction)}) for reaction in REACTIONS]
    path.write_text("\n".join(lines), encoding="utf-8")
    return Recipe.build(
        {
            "corpus": {"kind": "tokens", "path": str(path)},
            "model": {"name": model},
            "keep": {"evidence": list(evidence)},
            "task": {"kind": task},
        }
    )


def test_gradients_of_a_pretrained_masked_language_model_are_those_of_autograd(tmp_path: Path) -> None:
    from attnstore.capture.locate import locate

    folder = locate(PRETRAINED)
    model = transformers.BertForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    evidence = ("gradients", "gradient_maps", "importance")
    with attnstore.ingest(recipe(tmp_path, PRETRAINED, "masked_lm", evidence), tmp_path / "s.attn") as store:
        for example in range(len(REACTIONS)):
            tokens = store.sql("select token_id, special from tokens where example = $e order by token", e=example)
            rows = tokens.to_arrow().to_pylist()
            ids = torch.tensor([[row["token_id"] for row in rows]])
            plain = [place for place, row in enumerate(rows) if row["special"] is None]
            output = model(input_ids=ids, output_attentions=True)
            for weights in output.attentions:
                weights.retain_grad()
            torch.nn.functional.cross_entropy(output.logits[0, plain], ids[0, plain]).backward()
            expected = np.concatenate([weights.grad.numpy() for weights in output.attentions])
            found = store.attention(example, weights="gradient").weights
            assert np.abs(expected).max() > 1e-5
            np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
            products = (found.astype(np.float64) * store.attention(example).weights).sum(axis=(2, 3))
            head = store.sql("from importance_facts where example = $e order by layer, head", e=example)
            importance = np.array([row["importance"] for row in head]).reshape(products.shape)
            np.testing.assert_allclose(importance, products, atol=2e-2 * np.abs(importance).max())  # rounded weights
        classes = {row["key_class"] for row in store.ask("gradients/classes")}
        assert {"cls", "sep", "other"} <= classes


def test_attributions_of_a_tuned_classifier_add_up_to_the_change_of_its_logit(tmp_path: Path) -> None:
    evidence = ("integrated_gradients",)
    with attnstore.ingest(recipe(tmp_path, CLASSIFIER, "classification", evidence), tmp_path / "s.attn") as store:
        rows = (
            store.sql("""
            select example, layer, any_value(change) as change, sum("sum") as total
            from attribution_facts group by example, layer
        """)
            .to_arrow()
            .to_pylist()
        )
    assert len(rows) == len(REACTIONS) * 12
    change, total = (np.array([row[name] for row in rows]) for name in ("change", "total"))
    assert np.abs(change).max() > 1
    np.testing.assert_allclose(total, change, atol=0.02 * np.abs(change).max())
