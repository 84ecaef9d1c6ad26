"""Pretrained encoders of chemical reactions, whose folders have no tokenizer: their maps, and what tuning changed."""

import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.errors import BadInput
from attnstore.format.quantise import PRECISIONS
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
for package in ("rxnfp", "rxnmapper"):
    if importlib.util.find_spec(package) is None:
        reason = f"{package} is not installed: pip install --no-deps rxnfp==0.1.0 rxnmapper==0.4.3"
        pytest.skip(reason, allow_module_level=True)

PRETRAINED, TUNED, CLASSIFIER = (
    f"rxnfp/models/transformers/{name}" for name in ("bert_pretrained", "bert_ft", "bert_ft_10k_25s")
)
MAPPER = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
SYMBOL = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|.")
REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC",
    "CCC(=O)O.CO>>CCC(=O)OC",
    "OB(O)c1ccccc1.Brc1ccc(C)cc1>>Cc1ccc(-c2ccccc2)cc1",
    "OB(O)c1ccncc1.Ic1ccccc1>>c1ccc(-c2ccncc2)cc1",
    "CC(=O)Cl.Nc1ccccc1>>CC(=O)Nc1ccccc1",
    "O=Cc1ccccc1.NCC>>CCNCc1ccccc1",
    "CCBr.Oc1ccccc1>>CCOc1ccccc1",
)

Floats = NDArray[Any]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def folder(model: str) -> Path:
    """The folder of a model in a package, which is not imported."""
    package, _, inside = model.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / inside


def recipe(place: Path, model: str, reactions: Sequence[str]) -> Recipe:
    lines = [json.dumps({"text": reaction, "tokens": SYMBOL.findall(reaction)}) for reaction in reactions]
    path = place / "reactions.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return Recipe.build({"corpus": {"kind": "tokens", "path": str(path)}, "model": {"name": f"package:{model}"}})


def store_of(place: Path, model: str, reactions: Sequence[str]) -> attnstore.Store:
    return attnstore.ingest(recipe(place, model, reactions), place / f"{Path(model).name}.attn")


def eager(model: str, reactions: Sequence[str]) -> list[Floats]:
    """The library's own maps [layer, head, query, key] of each reaction, its symbols looked up in vocab.txt."""
    place = folder(model)
    lines = (place / "vocab.txt").read_text(encoding="utf-8").splitlines()
    ids = {symbol: number for number, symbol in enumerate(lines)}
    kind = transformers.AlbertModel if model == MAPPER else transformers.BertModel
    loaded = kind.from_pretrained(place, attn_implementation="eager").eval()
    found = []
    for reaction in reactions:
        tokens = ["[CLS]", *SYMBOL.findall(reaction), "[SEP]"]
        with torch.inference_mode():
            maps = loaded(input_ids=torch.tensor([[ids[token] for token in tokens]]), output_attentions=True)
        found.append(torch.stack(maps.attentions)[:, 0].numpy())
    return found


def cosines(before: Sequence[Floats], after: Sequence[Floats]) -> Floats:
    """Mean cosine [layer] of the flattened maps of two models, over reactions and heads (Kovaleva et al. 2019, 4.3)."""
    found = []
    for x, y in zip(before, after, strict=True):
        a, b = (maps.reshape(*maps.shape[:2], -1).astype(np.float64) for maps in (x, y))
        found.append((a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1)))
    return np.mean(found, axis=(0, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "shape"), [(PRETRAINED, (12, 4)), (TUNED, (12, 4)), (CLASSIFIER, (12, 4)), (MAPPER, (12, 8))]
)
def test_stored_maps_are_the_librarys_eager_maps_within_the_bound(
    tmp_path: Path, model: str, shape: tuple[int, int]
) -> None:
    code = PRECISIONS["standard"]
    with store_of(tmp_path, model, REACTIONS[:3]) as store:
        for number, expected in enumerate(eager(model, REACTIONS[:3])):
            found = store.attention(number).to_numpy()
            assert found.shape == expected.shape
            assert found.shape[:2] == shape
            bound = code.half_step(code.encode(expected)) + 2e-6
            assert (np.abs(found - expected) <= bound).all()


@pytest.mark.slow
def test_tuning_changes_the_last_layers_most(tmp_path: Path) -> None:
    with (
        store_of(tmp_path, PRETRAINED, REACTIONS) as before,
        store_of(tmp_path, TUNED, REACTIONS) as after,
    ):
        numbers = range(len(REACTIONS))
        found = cosines(*([store.attention(n).to_numpy() for n in numbers] for store in (before, after)))
    assert found == pytest.approx(cosines(eager(PRETRAINED, REACTIONS), eager(TUNED, REACTIONS)), abs=1e-3)
    # From an independent script on other reactions of this size.
    reference = (0.89, 0.83, 0.90, 0.90, 0.97, 0.91, 0.84, 0.82, 0.78, 0.70, 0.63, 0.53)
    assert found == pytest.approx(reference, abs=0.04)
    assert (np.diff(found[5:]) < 0).all()


def test_reactions_of_patents_are_all_in_the_vocabulary(data: Path, tmp_path: Path) -> None:
    from attnstore.job.model_source import ModelSource

    path = data / "reactions" / "reactions.txt"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {path.parent}")
    reactions = path.read_text(encoding="utf-8").split()
    found = list(ModelSource(recipe(tmp_path, PRETRAINED, reactions), "cpu").examples())
    for item, reaction in zip(found, reactions, strict=True):
        assert isinstance(item, Prepared)
        assert item.cut == "whole"
        # Together, the symbols between [CLS] and [SEP] are the reaction.
        assert "".join(item.source.texts[1:-1]) == item.example.text == reaction
        assert (item.source.special[0], item.source.special[-1]) == ("cls", "sep")


@pytest.mark.parametrize("model", [PRETRAINED, CLASSIFIER, MAPPER])
def test_texts_are_refused_with_the_way_out(tmp_path: Path, model: str) -> None:
    (tmp_path / "texts.txt").write_text("CC(=O)O.OCC>>CC(=O)OCC\n")
    value = {
        "corpus": {"kind": "lines", "path": str(tmp_path / "texts.txt")},
        "model": {"name": f"package:{model}"},
    }
    with pytest.raises(BadInput, match=r'corpus\.kind = "tokens"'):
        attnstore.ingest(Recipe.build(value), tmp_path / "s.attn")
