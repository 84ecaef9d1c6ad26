"""A model that is incomplete, absent or gives no maps is refused, and leaves no store."""

import shutil
from pathlib import Path

import pytest
from transformers import FNetConfig, FNetModel, LongformerConfig, LongformerModel

from attnstore.errors import BadInput, NotCaptured
from attnstore.format.verify import verify
from attnstore.job.run import ingest
from tests.bad_input.refusing import SIZES, recipe, refused, saved


def without(folder: Path, model: Path, *patterns: str) -> Path:
    """A copy of the model without some of its files."""
    copy = Path(shutil.copytree(model, folder / "model"))
    gone = [path for pattern in patterns for path in copy.glob(pattern)]
    assert gone
    for path in gone:
        path.unlink()
    return copy


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["tokenizer*", "vocab*"], ["there is no tokenizer", "tokenizer.json", "save model and tokenizer there"]),
        (["*.safetensors"], ["there are no weights", "model.safetensors", "The folder holds config.json"]),
        (["config.json"], ["config.json", "save_pretrained"]),
        (["*"], ["config.json"]),
    ],
    ids=["tokenizer", "weights", "configuration", "everything"],
)
def test_a_model_folder_that_lacks_something_says_what(
    standing: Path, model: Path, patterns: list[str], told: list[str]
) -> None:
    broken = without(standing.parent, model, *patterns)
    wrong = recipe(standing.parent, broken, "conllu", "good.conllu")
    refused(standing, wrong, BadInput, str(broken), *told)


@pytest.mark.parametrize("name", ["no/folder/here", "package:no_such_package/model", ""])
def test_a_model_that_is_not_there_is_refused(standing: Path, name: str) -> None:
    refused(standing, recipe(standing.parent, name, "conllu", "good.conllu"), BadInput, repr(name))


def test_a_model_without_attention_is_refused(standing: Path) -> None:
    config = FNetConfig(vocab_size=200, hidden_size=16, num_hidden_layers=2, intermediate_size=32)
    fnet = saved(FNetModel(config), standing.parent / "fnet")
    refused(standing, recipe(standing.parent, fnet, "conllu", "good.conllu"), NotCaptured, "fnet", "attention")


def test_a_model_whose_maps_are_no_maps_is_refused(standing: Path) -> None:
    longformer = saved(LongformerModel(LongformerConfig(**SIZES, attention_window=4)), standing.parent / "longformer")
    wrong = recipe(standing.parent, longformer, "conllu", "good.conllu")
    refused(standing, wrong, NotCaptured, "LongformerModel", "sliding window", "Use a model with full attention")


def test_a_model_that_gives_no_map_leaves_no_store_and_another_may_use_the_folder(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a model whose attention no road reaches: it is known only once the weights are loaded.
    (tmp_path / "a.txt").write_text("the cat sat .\n")
    wanted = recipe(tmp_path, model, "lines", "a.txt")
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.capture.roads.ROADS", ())
        with pytest.raises(NotCaptured, match="none of the 0 roads gives them"):
            ingest(wanted, tmp_path / "s.attn")
    assert not (tmp_path / "s.attn").exists()
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.capture.check.TOLERANCE", -1.0)
        with pytest.raises(NotCaptured):
            ingest(wanted, tmp_path / "s.attn")
    other = recipe(tmp_path, model, "lines", "a.txt", keep__precision="exact")
    ingest(other, tmp_path / "s.attn").close()
    assert verify(tmp_path / "s.attn", deep=True) == []
