"""A text of 4,096 tokens goes through a whole ingest that keeps the largest weights: its memory, and what holds."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.errors import NotStored
from attnstore.format.verify import verify
from attnstore.store.store import Store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.capture.conftest import one_thread, wordpiece  # noqa: E402

__all__ = ["one_thread"]  # a fixture

pytestmark = pytest.mark.slow

TOKENS, LAYERS, HEADS, KEPT = 4096, 4, 2, 32
LAYER_BYTES = HEADS * TOKENS**2 * 4

Floats = NDArray[np.float32]

# In a process of its own: what others used before would hide the peak.
INGEST = """
import json, sys
from pathlib import Path
from attnstore.job.model_source import ModelSource
from attnstore.job.plan import make_plan
from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest
from attnstore.job.source import Prepared

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

recipe = Recipe.read(sys.argv[1])
source = ModelSource(recipe, "cpu")
source.start([next(item for item in source.examples() if isinstance(item, Prepared))])
Path("/proc/self/clear_refs").write_text("5")
before = peak()
ingest(recipe, sys.argv[2]).close()
print(peak() - before)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama that takes 4,096 tokens, sharp enough for its largest weights to matter."""
    place = tmp_path_factory.mktemp("long") / "model"
    tokenizer = wordpiece()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=TOKENS,
    )
    torch.manual_seed(0)
    made = transformers.LlamaModel._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 0.3)
    made.save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def made(model: Path) -> tuple[Path, int]:
    """The store of one text of 4,096 tokens, and the bytes above the loaded model that its ingest needed."""
    folder = model.parent
    words = np.random.default_rng(0).choice(["the", "cat", "sat", "on", "mat", "dog", "barked", "river"], TOKENS - 2)
    (folder / "texts.txt").write_text(" ".join(words) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(
        f'[corpus]\nkind = "lines"\npath = ["texts.txt"]\n[model]\nname = {json.dumps(str(model))}\n'
        f'[encode]\nmax_length = {TOKENS}\n[keep]\nmaps = "topk:{KEPT}"\nprecision = "exact"\n'
    )
    command = [sys.executable, "-c", INGEST, str(folder / "recipe.toml"), str(folder / "long.attn")]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return folder / "long.attn", int(out.splitlines()[-1])


@pytest.fixture(scope="module")
def store(made: tuple[Path, int]) -> Iterator[Store]:
    with attnstore.open(made[0]) as opened:
        yield opened


@pytest.fixture(scope="module")
def maps(model: Path, store: Store) -> list[Floats]:
    """The library's own maps of that text, one [head, query, key] for each layer."""
    text = store.sql("select text from examples").to_arrow()["text"][0].as_py()
    ids = transformers.AutoTokenizer.from_pretrained(model)(text, return_tensors="pt")["input_ids"]
    assert ids.shape == (1, TOKENS)
    eager = transformers.AutoModel.from_pretrained(model, attn_implementation="eager").eval()
    with torch.inference_mode():
        return [one[0].numpy() for one in eager(input_ids=ids, output_attentions=True, use_cache=False).attentions]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are reset through Linux's /proc")
def test_memory_is_bounded_by_a_few_layers_and_not_by_all_of_them(made: tuple[Path, int]) -> None:
    # The model's own attention holds two: the scores and their softmax. All four and their scores would be five.
    assert made[1] < 3.5 * LAYER_BYTES, f"{made[1] / LAYER_BYTES:.2f} layers"


def test_the_store_is_sound(made: tuple[Path, int]) -> None:
    assert verify(made[0], deep=True) == []


def test_each_row_has_its_largest_weights_and_their_sum_and_the_rest_is_one(store: Store, maps: list[Floats]) -> None:
    for layer, weights in enumerate(maps):
        for head in range(HEADS):
            kept = store.attention(0, layer=layer, head=head).to_numpy()
            np.testing.assert_array_equal(np.isfinite(kept).sum(axis=1), KEPT)
            rest = store.engine.cells.rest(
                0, "decoder", slice(layer, layer + 1), slice(head, head + 1), slice(0, TOKENS)
            )
            np.testing.assert_allclose(np.nansum(kept, axis=1, dtype=np.float64) + rest[0, 0], 1, atol=1e-5)
            # Which keys they are may differ where two weights do by less than capture's tolerance; how large not.
            own = -np.sort(-np.nan_to_num(kept), axis=1)[:, :KEPT]
            np.testing.assert_allclose(own, -np.sort(-weights[head], axis=1)[:, :KEPT], atol=1e-6)
            held = np.isfinite(kept)
            np.testing.assert_allclose(kept[held], weights[head][held], atol=1e-6)


def test_facts_are_those_of_the_whole_rows(store: Store, maps: list[Floats]) -> None:
    rows = store.sql("select layer, head, entropy_nats, max from token_facts order by layer, head, token").to_arrow()
    columns = {name: rows[name].to_numpy().reshape(LAYERS, HEADS, TOKENS) for name in ("entropy_nats", "max")}
    for layer, head in np.ndindex(LAYERS, HEADS):
        weights = maps[layer][head].astype(np.float64)
        entropy = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=1)
        # Facts of tokens are stored in half precision: 11 bits, and an entropy here is below 8.4 nats.
        np.testing.assert_allclose(columns["entropy_nats"][layer, head], entropy, atol=5e-3)
        np.testing.assert_allclose(columns["max"][layer, head], weights.max(axis=1), rtol=2**-11, atol=1e-6)
    sums = store.sql("select layer, head, entropy_exact_sum from head_facts").to_arrow().to_pylist()
    for row in sums:  # sums are float64, so that nothing but the model's float32 comes between
        weights = maps[row["layer"]][row["head"]].astype(np.float64)
        total = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)))
        assert row["entropy_exact_sum"] == pytest.approx(total, rel=1e-5)


def test_what_was_cut_is_measured(store: Store, maps: list[Floats]) -> None:
    answer: list[dict[str, Any]] = store.ask("audit/kept").to_arrow().to_pylist()
    assert len(answer) == LAYERS * HEADS
    for row in answer:
        ordered = -np.sort(-maps[row["layer"]][row["head"]].astype(np.float64), axis=1)
        kept, cut = ordered[:, :KEPT].sum(axis=1), ordered[:, KEPT:].sum(axis=1)
        assert row["kept"] == pytest.approx(kept.sum() / TOKENS, abs=1e-5)
        assert row["most_cut"] == pytest.approx(cut.max(), abs=1e-5)
        assert row["largest_cut"] == pytest.approx(ordered[:, KEPT].max(), abs=1e-6)
        assert row["n"] == TOKENS
    assert 0.05 < min(row["kept"] for row in answer) < 0.999, "nothing was cut, and nothing tested"


@pytest.mark.parametrize(
    ("ask", "remedy"),
    [
        (lambda store: store.attention(0, layer=0, head=0, level="word"), "level='token'"),
        (lambda store: store.sql("select avg(weight) from word_attention"), ""),
        (lambda store: store.ask("heads/sinks"), 'maps = "all"'),
    ],
    ids=["words", "word table", "question"],
)
def test_what_needs_every_weight_is_refused_with_what_to_do(
    store: Store, ask: Callable[[Store], object], remedy: str
) -> None:
    with pytest.raises(NotStored, match=f"{KEPT} largest weights of a row") as caught:
        ask(store)
    assert remedy in caught.value.remedy


def test_sql_reads_the_kept_weights_and_no_others(store: Store) -> None:
    row = store.sql("select count(*) as n, min(weight) as low from attention where layer = 1 and head = 0").to_arrow()
    assert row["n"][0].as_py() == TOKENS * KEPT
    assert row["low"][0].as_py() >= 0
