"""Tiny random models of several families go through a whole ingest, and the store gives their own eager maps."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import attnstore
from attnstore.format.quantise import PRECISIONS
from attnstore.format.verify import verify
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.capture.conftest import FAMILIES, one_thread, tiny  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

TEXTS = ("the cat sat on a mat", "a dog barked at night , and the river ran down .", "rivers", "the mats sat")
TARGETS = ("a cat", "dogs barked on the mat near the river at night", "the night .", "a mat")
KINDS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}

Floats = NDArray[np.float32]


def words(text: str) -> list[dict[str, Any]]:
    """The words of a text, each governed by the next one, the last the root."""
    forms = text.split(" ")
    last = len(forms) - 1
    return [
        {"form": form, "governor": i + 1 if i < last else None, "deprel": "dep" if i < last else "root"}
        for i, form in enumerate(forms)
    ]


def corpus(folder: Path, *, targets: Sequence[str | None] = ()) -> Path:
    rows: list[dict[str, Any]] = [{"name": f"x{i}", "text": text, "words": words(text)} for i, text in enumerate(TEXTS)]
    for row, target in zip(rows, targets, strict=False):
        row |= {} if target is None else {"target": target, "target_words": words(target)}
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def recipe(path: Path, model: Path, **keys: Any) -> Recipe:
    value = {"corpus": {"kind": "jsonl", "path": str(path)}, "model": {"name": str(model)}, "words": {"source": "gold"}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def eager(family: str, place: Path) -> Iterator[dict[str, Floats]]:
    """The library's own maps [layer, head, query, key] of each text by kind, unpadded and one text at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    model = getattr(transformers, FAMILIES[family][2]).from_pretrained(place, attn_implementation="eager").eval()
    for text, target in zip(TEXTS, TARGETS, strict=True):
        inputs = {"input_ids": tokenizer(text, return_tensors="pt")["input_ids"]}
        if model.config.is_encoder_decoder:
            labels = tokenizer(target, return_tensors="pt")["input_ids"]
            start = torch.tensor([[model.config.decoder_start_token_id]])
            inputs["decoder_input_ids"] = torch.cat([start, labels[:, :-1]], dim=1)
        with torch.inference_mode():
            found = model(**inputs, output_attentions=True)
        if model.config.is_encoder_decoder:
            yield {kind: torch.stack(found[key])[:, 0].numpy() for kind, key in KINDS.items()}
        else:
            causal = family in ("gpt2", "llama", "gpt_oss")
            yield {"decoder" if causal else "encoder": torch.stack(found.attentions)[:, 0].numpy()}


@pytest.mark.parametrize(
    ("family", "precision"),
    [
        pytest.param("albert", "standard", marks=pytest.mark.slow),
        pytest.param("gpt2", "compact", marks=pytest.mark.slow),
        pytest.param("llama", "exact", marks=pytest.mark.slow),
        ("gpt_oss", "standard"),
        ("t5", "exact"),
        pytest.param("bart", "compact", marks=pytest.mark.slow),
    ],
)
def test_a_store_holds_the_eager_maps_of_every_kind_and_is_sound(
    tmp_path: Path, tiny: Callable[[str], Path], family: str, precision: str
) -> None:
    place, code = tiny(family), PRECISIONS[precision]
    targets = TARGETS if family in ("t5", "bart") else ()
    own = recipe(corpus(tmp_path, targets=targets), place, keep__precision=precision)
    with attnstore.ingest(own, tmp_path / "s.attn") as store:
        for number, maps in enumerate(eager(family, place)):
            assert set(store.info.kinds) == set(maps)
            for kind, expected in maps.items():
                found = store.attention(number, kind=kind).to_numpy()
                # Sums over a padded batch come in another order than those over one text.
                assert (np.abs(found - expected) <= code.half_step(code.encode(expected)) + 1e-5).all()
    assert verify(tmp_path / "s.attn", deep=True) == []


def relations(
    maps: Sequence[Floats], words_of: Sequence[Sequence[int | None]]
) -> dict[tuple[int, int, str], list[int]]:
    """(layer, head, direction) -> [n, correct] over words whose governor is the next one, in plain loops."""
    counts: dict[tuple[int, int, str], list[int]] = {}
    for layers, word in zip(maps, words_of, strict=True):
        pieces = [[t for t, w in enumerate(word) if w == i] for i in range(1 + max(w for w in word if w is not None))]
        for layer, heads in enumerate(layers):
            for head, weights in enumerate(heads):
                merged = np.array([[weights[np.ix_(q, k)].sum() / len(q) for k in pieces] for q in pieces])
                np.fill_diagonal(merged, 0)
                for i in range(len(pieces) - 1):
                    for direction, row in (("dep_to_head", merged[i]), ("head_to_dep", merged[:, i])):
                        count = counts.setdefault((layer, head, direction), [0, 0])
                        count[0] += 1
                        count[1] += bool(row.max() > 0 and row.argmax() == i + 1)
    return counts


@pytest.mark.parametrize(("family", "kind", "side"), [("gpt2", "decoder", "source"), ("t5", "decoder", "target")])
def test_relations_are_those_of_the_words_on_the_side_of_the_kind(
    tmp_path: Path, tiny: Callable[[str], Path], family: str, kind: str, side: str
) -> None:
    path = corpus(tmp_path, targets=TARGETS if side == "target" else ())
    with attnstore.ingest(recipe(path, tiny(family), keep__precision="exact"), tmp_path / "s.attn") as store:
        maps = [store.attention(number, kind=kind).to_numpy() for number in range(len(TEXTS))]
        tokens = store.sql(f"select example, word from tokens where side = '{side}' order by example, token")
        word: list[list[int | None]] = [[] for _ in TEXTS]
        for row in tokens.to_arrow().to_pylist():
            word[row["example"]].append(row["word"])
        answer = store.ask("relations/accuracy", kind=kind, relation="dep").to_arrow().to_pylist()
        found = {
            (row["layer"], row["head"], row["direction"]): [row["n"], row["correct"]]
            for row in answer
            if row["direction"] != "head_row"
        }
        assert found == relations(maps, word)
        if side == "target":
            assert store.ask("relations/accuracy", kind="cross").to_arrow().num_rows == 0


def test_facts_of_a_causal_map_count_the_keys_that_a_row_sees(tmp_path: Path, tiny: Callable[[str], Path]) -> None:
    with attnstore.ingest(recipe(corpus(tmp_path), tiny("llama")), tmp_path / "s.attn") as store:
        for row in store.sql("select * from head_facts").to_arrow().to_pylist():
            size = int(row["n_queries"])
            assert (row["n_keys"], row["n_normalised"], row["next_sum"]) == (size, size - 1, 0.0)
            # Uniform attention over 1, 2, …, size keys: ln size!
            assert row["log_keys_sum"] == pytest.approx(sum(np.log(n) for n in range(1, size + 1)))
            assert 0 <= row["entropy_normalised_sum"] <= row["n_normalised"] + 1e-6
        kv_heads = store.sql("select distinct head, kv_head from heads order by head").to_arrow().to_pylist()
    assert [row["kv_head"] for row in kv_heads] == [0, 0, 1, 1]


@pytest.mark.parametrize("keys", [{"keep__layers": [2]}, {"keep__layers": [2], "keep__maps": "topk:3"}])
def test_a_layer_that_only_the_decoder_has_may_be_kept(
    tmp_path: Path, tiny: Callable[[str], Path], keys: dict[str, Any]
) -> None:
    # BART here has two encoder layers and three decoder layers.
    own = recipe(corpus(tmp_path, targets=TARGETS), tiny("bart"), **keys)
    with attnstore.ingest(own, tmp_path / "s.attn") as store:
        kept = store.sql("select distinct kind, layer from attention order by kind").to_arrow().to_pylist()
    assert kept == [{"kind": "cross", "layer": 2}, {"kind": "decoder", "layer": 2}]
    assert verify(tmp_path / "s.attn", deep=True) == []


def test_an_example_without_the_target_that_a_model_reads_is_an_error_with_its_line(
    tmp_path: Path, tiny: Callable[[str], Path]
) -> None:
    path = corpus(tmp_path, targets=[TARGETS[0], None, TARGETS[2], TARGETS[3]])
    with pytest.raises(attnstore.AttnStoreError, match=r"corpus\.jsonl:2: no target text"):
        attnstore.ingest(recipe(path, tiny("t5")), tmp_path / "s.attn")
    assert not (tmp_path / "s.attn").exists()


def test_a_target_that_is_too_long_is_cut_like_its_source(tmp_path: Path, tiny: Callable[[str], Path]) -> None:
    long = " ".join(["the cat sat"] * 20)
    path = corpus(tmp_path, targets=[long, *TARGETS[1:]])
    with attnstore.ingest(recipe(path, tiny("bart"), encode__max_length=30), tmp_path / "s.attn") as store:
        rows = store.sql("select n_target_tokens, target, cut from examples order by example").to_arrow().to_pylist()
    assert rows[0]["n_target_tokens"] <= 30
    assert rows[0]["cut"] == "truncated"
    assert long.startswith(rows[0]["target"])


def test_a_window_with_the_name_of_another_example_is_an_error(tmp_path: Path, tiny: Callable[[str], Path]) -> None:
    rows = [{"name": "a", "text": " ".join(["the cat sat"] * 20)}, {"name": "a#1", "text": "a dog barked"}]
    path = tmp_path / "names.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own = recipe(path, tiny("albert"), encode__max_length=20, words__source="none")
    with pytest.raises(attnstore.AttnStoreError, match="the name 'a#1' again"):
        attnstore.ingest(own, tmp_path / "s.attn")
