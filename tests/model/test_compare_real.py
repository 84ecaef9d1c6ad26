"""A pretrained and a fine-tuned model on the same reactions: what differs is what the library's own maps say."""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if find_spec("rxnfp") is None:
    pytest.skip("the pair of models is not installed: pip install --no-deps rxnfp==0.1.0", allow_module_level=True)

MODELS = tuple(f"rxnfp/models/transformers/{name}" for name in ("bert_pretrained", "bert_ft"))
SYMBOL = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC",
    "CCC(=O)O.CO>>CCC(=O)OC",
    "OB(O)c1ccccc1.Brc1ccc(C)cc1>>Cc1ccc(-c2ccccc2)cc1",
    "CC(=O)Cl.Nc1ccccc1>>CC(=O)Nc1ccccc1",
    "O=Cc1ccccc1.NCC>>CCNCc1ccccc1",
)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Comparison]:
    place = tmp_path_factory.mktemp("reactions")
    rows = ({"text": text, "tokens": SYMBOL.findall(text)} for text in REACTIONS)
    (place / "reactions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for number, model in enumerate(MODELS):
        value = {"corpus": {"kind": "tokens", "path": "reactions.jsonl"}, "model": {"name": f"package:{model}"}}
        value["words"] = {"source": "none"}
        attnstore.ingest(Recipe.build(value, folder=place), place / f"{number}.attn").close()
    with attnstore.compare(place / "0.attn", place / "1.attn") as comparison:
        yield comparison


def eager(model: str, ids: list[int]) -> NDArray[np.float64]:
    """The library's own maps [layer, head, query, key] of one text."""
    package, _, inside = model.partition("/")
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / inside
    loaded: Any = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        maps = loaded(torch.tensor([ids]), output_attentions=True).attentions
    found: NDArray[np.float64] = torch.stack(maps)[:, 0].double().numpy()
    return found


def test_every_reaction_has_its_partner(compared: attnstore.Comparison) -> None:
    (row,) = compared.ask("compare/pairs")
    assert (row["item"], row["state"], row["n"]) == ("paired", "tokens", len(REACTIONS))


@pytest.mark.slow
def test_differences_are_those_of_the_librarys_eager_maps(compared: attnstore.Comparison) -> None:
    vocabulary = [line.strip() for line in _vocabulary().read_text(encoding="utf-8").splitlines()]
    expected = []
    for text in REACTIONS:
        ids = [vocabulary.index(token) for token in ("[CLS]", *SYMBOL.findall(text), "[SEP]")]
        a, b = (eager(model, ids) for model in MODELS)
        angle = (a * b).sum(axis=(2, 3)) / np.sqrt((a**2).sum(axis=(2, 3)) * (b**2).sum(axis=(2, 3)))
        p, q = (0.999 * maps + 0.001 / len(ids) for maps in (a, b))
        middle = (p + q) / 2
        js = ((p * np.log(p / middle)).sum(axis=3) + (q * np.log(q / middle)).sum(axis=3)).mean(axis=2) / 2
        expected.append((angle, js, np.abs(a - b).sum(axis=3).mean(axis=2) / 2))
    found = compared.ask("compare/cosine")
    for column, value in zip(("cosine", "js", "tv"), np.mean(expected, axis=0), strict=True):
        np.testing.assert_allclose(found.to_grid(column), value, atol=1e-3)


def test_the_last_layers_change_most(compared: attnstore.Comparison) -> None:
    # Kovaleva et al. 2019, section 4.3, found it on GLUE.
    by_layer = compared.ask("compare/cosine").to_grid("cosine").mean(axis=1)
    assert by_layer.shape == (12,)
    assert {int(layer) for layer in np.argsort(by_layer)[:2]} == {10, 11}


def _vocabulary() -> Path:
    spec = find_spec("rxnfp")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "models/transformers/bert_pretrained/vocab.txt"
