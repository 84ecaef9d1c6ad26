"""Tests of heads that are switched off, against models whose weights or maps were changed by hand."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attnstore.capture.encode import collate  # noqa: E402
from attnstore.capture.evidence.ablate import Ablation, Ablations, Head, mean_outputs  # noqa: E402
from attnstore.capture.instrument import Instrument, Watch, real_tokens  # noqa: E402
from attnstore.capture.task_model import load_for, task_of  # noqa: E402
from attnstore.capture.tasks import Item  # noqa: E402
from attnstore.text.encoded import Encoded  # noqa: E402
from tests.job.task_models import HEADS, task_model  # noqa: E402

TEXTS = ["the cat sat on a mat", "a dog barked at night, and the river ran down."]
TASKS = {
    "bert": "classification",
    "albert": "classification",
    "gpt2": "classification",
    "vit": "classification",
    "t5": "translation",
    "bart": "translation",
}


class Lab:
    """A tiny model of a family with its circuits, a padded batch, and the plain model of transformers beside it."""

    def __init__(self, family: str, folder: Path) -> None:
        self.family, self.task_kind = family, TASKS[family]
        self.folder = task_model(folder, family, self.task_kind)
        takes = "pixels" if family == "vit" else "text"
        captor = load_for(self.task_kind, str(self.folder), takes=takes)  # type: ignore[arg-type]
        self.instrument = Instrument(captor)
        self.task = task_of(self.task_kind, captor, labels=[], targets="all", seed=0)
        if family == "vit":
            self.inputs = {"pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))}
            encoded = [Encoded((), (), (), (), (), ())] * 2
            targets: list[Any] = [None, None]
        else:
            encoded = [captor.encoder.encode(text) for text in TEXTS]
            is_pair = self.task_kind == "translation"
            targets = [captor.encoder.encode_target(text) for text in reversed(TEXTS)] if is_pair else [None, None]
            self.inputs = collate(encoded, targets if is_pair else None, captor.encoder.pad_id)
            if self.task_kind == "classification" and family != "bert":
                self.inputs.pop("token_type_ids")
        self.items = [
            Item(number, f"e{number}", ("good", "bad")[number], text, None, encoded[number], targets[number])
            for number, text in enumerate(TEXTS)
        ]

    def plain(self) -> Any:
        model = getattr(transformers, HEADS[self.task_kind][self.family])
        return model.from_pretrained(self.folder, attn_implementation="eager").eval()

    def logits(self, model: Any) -> Any:
        inputs = {name: value for name, value in self.inputs.items() if name != "token_type_ids"}
        if self.family == "bert":
            inputs = self.inputs
        with torch.inference_mode():
            return self.real(model(**inputs).logits)

    def real(self, logits: Any) -> Any:
        """The logits of padding do not count."""
        return logits[real_tokens(self.inputs, "target", logits.shape[1])] if logits.dim() == 3 else logits

    def without(self, heads: list[Head], intervention: str = "zero", means: Any = None) -> Any:
        """The logits of one whole pass with these heads off."""
        watch = Ablation(self.instrument, self.inputs, heads, intervention, means)
        with torch.inference_mode():
            return self.real(self.instrument.run(self.inputs, watch).logits)


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Lab]:
    made: dict[str, Lab] = {}

    def lab(family: str) -> Lab:
        if family not in made:
            made[family] = Lab(family, tmp_path_factory.mktemp(family))
        return made[family]

    return lab


def projection(family: str, model: Any, kind: str, layer: int) -> Any:
    """The module with W_O, by the names of transformers' model files."""
    stack = "decoder" if kind in ("decoder", "cross") and family in ("t5", "bart") else "encoder"
    if family == "bert":
        return model.bert.encoder.layer[layer].attention.output.dense
    if family == "albert":
        return model.albert.encoder.albert_layer_groups[layer].albert_layers[0].attention.dense
    if family == "gpt2":
        return model.transformer.h[layer].attn.c_proj
    if family == "vit":
        ends = ("attention.output.dense", "o_proj")
        return [module for name, module in model.named_modules() if name.endswith(ends)][layer]
    if family == "t5":
        block = getattr(model, stack).block[layer].layer[1 if kind == "cross" else 0]
        return (block.EncDecAttention if kind == "cross" else block.SelfAttention).o
    own = getattr(model.model, stack).layers[layer]
    return (own.encoder_attn if kind == "cross" else own.self_attn).out_proj


def unshared(model: Any) -> Any:
    """An ALBERT with a copy of the shared weights for each layer."""
    config = model.config.__class__(**{**model.config.to_dict(), "num_hidden_groups": model.config.num_hidden_layers})
    apart = model.__class__._from_config(config, attn_implementation="eager").eval()
    state = model.state_dict()
    copied = {}
    for name in apart.state_dict():
        before, _, after = name.partition("albert_layer_groups.")
        copied[name] = state[f"{before}albert_layer_groups.0.{after.partition('.')[2]}" if after else name]
    apart.load_state_dict(copied)
    return apart


def zeroed(lab: Lab, heads: list[Head]) -> Any:
    """The plain model without these heads' rows of W_O."""
    model = lab.plain()
    if lab.family == "albert":
        model = unshared(model)
    with torch.no_grad():
        for kind, layer, head in heads:
            module = projection(lab.family, model, kind, layer)
            weight = module.weight if lab.family == "gpt2" else module.weight.T
            width = weight.shape[0] // 4
            weight[head * width : (head + 1) * width] = 0.0
    return model


SINGLES = [
    ("bert", ("encoder", 0, 2)),
    ("bert", ("encoder", 1, 3)),
    ("albert", ("encoder", 0, 1)),
    ("albert", ("encoder", 1, 1)),
    ("gpt2", ("decoder", 0, 0)),
    ("gpt2", ("decoder", 1, 2)),
    ("vit", ("encoder", 1, 3)),
    ("t5", ("encoder", 1, 0)),
    ("t5", ("decoder", 0, 3)),
    ("t5", ("cross", 1, 1)),
    ("bart", ("encoder", 0, 1)),
    ("bart", ("decoder", 2, 0)),
    ("bart", ("cross", 1, 2)),
]


@pytest.mark.parametrize(("family", "head"), SINGLES)
def test_zero_is_the_model_without_the_rows_of_the_output_matrix(labs: Any, family: str, head: Head) -> None:
    lab = labs(family)
    wanted = lab.logits(zeroed(lab, [head]))
    torch.testing.assert_close(lab.without([head]), wanted, rtol=1e-4, atol=2e-5)
    assert (wanted - lab.logits(lab.plain())).abs().max() > 1e-3


def test_in_a_model_that_shares_its_layers_a_head_is_off_in_one_layer_alone(labs: Any) -> None:
    lab = labs("albert")
    each = [lab.without([("encoder", layer, 1)]) for layer in range(3)]
    assert min((one - other).abs().max() for one, other in ((each[0], each[1]), (each[1], each[2]))) > 1e-3


@pytest.mark.parametrize("family", ["bert", "albert", "bart"])
def test_a_set_is_all_of_its_heads_at_once(labs: Any, family: str) -> None:
    lab = labs(family)
    heads: list[Head] = [("encoder", 0, 0), ("encoder", 1, 3), ("encoder", 1, 2)]
    if family == "bart":
        heads += [("decoder", 1, 1), ("cross", 2, 0)]
    torch.testing.assert_close(lab.without(heads), lab.logits(zeroed(lab, heads)), rtol=1e-4, atol=2e-5)


def uniform_eager(real: Any, wanted: int, head: int, causal: bool, is_real: Any) -> Any:
    """transformers' own eager attention, but for one head of one call whose map is replaced."""
    calls = iter(range(1000))

    def attend(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        output, weights = real(module, query, key, value, *args, **kwargs)
        if next(calls) != wanted:
            return output, weights
        visible = is_real[:, None, :].expand(-1, query.shape[2], -1).to(weights.dtype)
        if causal:
            visible = visible.tril()
        weights = weights.clone()
        weights[:, head] = visible / visible.sum(-1, keepdim=True).clamp(min=1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    return attend


@pytest.mark.parametrize(("family", "head"), [one for one in SINGLES if one[0] != "t5"])
def test_uniform_is_the_model_with_a_map_of_equal_weights_on_real_keys(
    labs: Any, family: str, head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs(family)
    found = lab.without([head], "uniform")
    model = lab.plain()
    kind, layer, number = head
    call = layer if family != "bart" or kind == "encoder" else 2 + 2 * layer + (kind == "cross")
    circuits = lab.instrument.captor.facts.kinds[kind]
    tokens = 17 if family == "vit" else lab.inputs["input_ids"].shape[1]
    if circuits.keys == "target":
        tokens = lab.inputs["decoder_input_ids"].shape[1]
    is_real = real_tokens(lab.inputs, circuits.keys, tokens)
    assert family == "vit" or not is_real.all()
    file = sys.modules[type(model).__module__]
    attend = uniform_eager(file.eager_attention_forward, call, number, circuits.causal, is_real)
    monkeypatch.setattr(file, "eager_attention_forward", attend)
    wanted = lab.logits(model)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=2e-5)
    assert (wanted - lab.without([])).abs().max() > 1e-3


class Keep(Watch):
    def __init__(self, kind: str, layer: int) -> None:
        self.place, self.outputs = (kind, layer), torch.empty(0)

    def heads(self, circuit: Any, outputs: Any) -> None:
        if (circuit.kind, circuit.layer) == self.place:
            self.outputs = outputs.clone()


@pytest.mark.parametrize(("family", "kind"), [("bert", "encoder"), ("gpt2", "decoder"), ("bart", "cross")])
def test_mean_outputs_are_means_over_the_real_tokens_of_all_batches(labs: Any, family: str, kind: str) -> None:
    lab = labs(family)
    short = {name: value[:1] for name, value in lab.inputs.items()}
    means, counts = mean_outputs(lab.instrument, [lab.inputs, short])
    rows = []
    for inputs in (lab.inputs, short):
        keep = Keep(kind, 1)
        lab.instrument.run(inputs, keep)
        side = "target" if kind == "cross" else "source"
        rows.append(keep.outputs.transpose(1, 2)[real_tokens(inputs, side, keep.outputs.shape[2])])
    every = torch.cat(rows)
    assert counts[kind] == len(every)
    torch.testing.assert_close(means[kind, 1], every.mean(0), rtol=1e-4, atol=1e-6)
    keep = Keep(kind, 1)
    ablation = Ablation(lab.instrument, lab.inputs, [(kind, 1, 2)], "mean", means)
    given = torch.randn(2, 4, 3, means[kind, 1].shape[1])
    changed = ablation.heads(next(one for one in lab.instrument.circuits if (one.kind, one.layer) == (kind, 1)), given)
    assert changed is not None
    torch.testing.assert_close(changed[:, 2], means[kind, 1][2].expand(2, 3, -1))
    torch.testing.assert_close(changed[:, [0, 1, 3]], given[:, [0, 1, 3]])


@pytest.mark.parametrize("family", list(TASKS))
@pytest.mark.parametrize("intervention", ["zero", "uniform"])
def test_layers_below_the_lowest_head_are_taken_from_the_pass_before(
    labs: Any, family: str, intervention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = labs(family)
    some = Ablations(lab.instrument, lab.task, lab.items, lab.inputs)
    starts = []
    real = lab.instrument.run

    def run(inputs: Any, watch: Any = None, *, start: int = 0) -> Any:
        starts.append(start)
        return real(inputs, watch, start=start)

    monkeypatch.setattr(lab.instrument, "run", run)
    places = [(one.kind, one.layer, 1) for one in lab.instrument.circuits]
    for head in [*places, places[0]]:
        fast = some.scored([head], intervention)
        with torch.inference_mode():
            watch = Ablation(lab.instrument, lab.inputs, [head], intervention)
            whole = lab.task.score(real(lab.inputs, watch), lab.items, lab.inputs)
        assert torch.equal(fast.loss, whole.loss)
    blocks = {"t5": [0, 1, 2, 2, 3, 3], "bart": [0, 1, 2, 2, 3, 3, 4, 4], "albert": [0, 1, 2]}.get(family, [0, 1])
    assert starts == [*blocks, 0]


@pytest.mark.parametrize("family", list(TASKS))
def test_the_empty_set_is_the_model_as_it_is_to_the_last_bit(labs: Any, family: str) -> None:
    lab = labs(family)
    some = Ablations(lab.instrument, lab.task, lab.items, lab.inputs)
    some.scored([(lab.instrument.circuits[0].kind, 0, 0)], "zero")
    with torch.inference_mode():
        plain = lab.task.score(lab.instrument.run(lab.inputs), lab.items, lab.inputs)
        watched = lab.task.score(
            lab.instrument.run(lab.inputs, Ablation(lab.instrument, lab.inputs, [], "zero")), lab.items, lab.inputs
        )
    for one in (some.scored([], "zero"), some.scored([], "uniform"), watched):
        assert torch.equal(one.loss, plain.loss)
        assert one.predicted == plain.predicted
