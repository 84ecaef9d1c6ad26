"""Random tokens that stand twice go through a whole ingest: what is stored are the model's own maps of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.job.plan import make_plan
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.capture.conftest import one_thread, tiny  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

Tiny = Callable[[str], Path]


def recipe(model: Path, **keys: Any) -> Recipe:
    value = {"corpus": {"kind": "repeated_random", "length": 6, "count": 3}, "model": {"name": str(model)}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def listed(store: attnstore.Store, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.sql(statement)]


@pytest.mark.parametrize(
    ("family", "kind", "before", "after"),
    [("bert", "encoder", ["cls"], ["sep"]), ("gpt2", "decoder", [], [])],
)
def test_stored_maps_are_the_eager_maps_of_the_drawn_tokens(
    tmp_path: Path, tiny: Tiny, family: str, kind: str, before: list[str], after: list[str]
) -> None:
    place = tiny(family)
    model = transformers.AutoModel.from_pretrained(place, attn_implementation="eager").eval()
    special = set(transformers.AutoTokenizer.from_pretrained(place).all_special_ids)
    with attnstore.ingest(recipe(place, keep__precision="exact"), tmp_path / "s.attn") as store:
        assert list(store.kinds) == [kind]
        assert listed(store, "select name, condition, cut, n_tokens from examples order by example") == [
            (f"repeated:{number}", "repeated_random", "whole", 12 + len(before) + len(after)) for number in (1, 2, 3)
        ]
        for example in range(3):
            rows = listed(store, f"select token_id, special from tokens where example = {example} order by token")
            ids, roles = ([row[column] for row in rows] for column in (0, 1))
            assert roles == [*before, *[None] * 12, *after]
            drawn = ids[len(before) : len(before) + 12]
            assert drawn[:6] == drawn[6:]
            assert len(set(drawn)) == 6
            assert not set(drawn) & special
            with torch.inference_mode():
                own = torch.stack(model(torch.tensor([ids]), output_attentions=True).attentions)[:, 0].numpy()
            assert np.abs(store.attention(example).to_numpy() - own).max() <= 2e-6


def test_scores_skip_the_special_tokens_that_go_round(tmp_path: Path, tiny: Tiny) -> None:
    with attnstore.ingest(recipe(tiny("bert"), keep__precision="exact"), tmp_path / "s.attn") as store:
        found = {(row["layer"], row["head"], row["score"]): row for row in store.ask("induction/scores")}
        maps = [store.attention(example).to_numpy() for example in range(3)]
        # [CLS] is token 0: the first token of the second time is 7.
        expected = np.mean([[own[:, :, i, i - 6] for i in range(7, 13)] for own in maps], axis=(0, 1))
    for (layer, head, score), row in found.items():
        if score == "duplicate":
            assert row["value"] == pytest.approx(expected[layer, head], rel=1e-4)
            assert (row["pairs"], row["n"], row["chance"]) == (18, 3, pytest.approx(1 / 14))
        if score == "induction":
            assert (row["value"], row["chance"], row["pairs"], row["n"]) == (None, None, 0, 0)


def test_scores_of_a_decoder_are_means_over_the_diagonals(tmp_path: Path, tiny: Tiny) -> None:
    with attnstore.ingest(recipe(tiny("gpt2"), keep__precision="exact"), tmp_path / "s.attn") as store:
        found = {(row["layer"], row["head"], row["score"]): row["value"] for row in store.ask("induction/scores")}
        maps = [store.attention(example).to_numpy() for example in range(3)]
    pairs = {
        "previous": [(i, i - 1) for i in range(1, 12)],
        "duplicate": [(i, i - 6) for i in range(6, 12)],
        "induction": [(i, i - 5) for i in range(6, 12)],
    }
    assert {score for _, _, score in found} == set(pairs)
    for (layer, head, score), value in found.items():
        expected = np.mean([own[layer, head, i, j] for own in maps for i, j in pairs[score]])
        assert value == pytest.approx(expected, rel=1e-4)


def test_the_seed_decides_which_store_it_is(tiny: Tiny) -> None:
    from attnstore.job.model_source import ModelSource

    def store_id(seed: int) -> str:
        chosen = recipe(tiny("gpt2"), corpus__seed=seed)
        return make_plan(chosen, ModelSource(chosen, "cpu")).info.store_id

    assert store_id(0) == store_id(0) != store_id(1)


def test_a_vocabulary_without_a_way_to_split_texts_is_enough(tmp_path: Path, tiny: Tiny) -> None:
    place = tmp_path / "symbols"
    place.mkdir()
    for name in ("config.json", "model.safetensors"):
        (place / name).write_bytes((tiny("bert") / name).read_bytes())
    (place / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"ABCDEF"]) + "\n")
    with attnstore.ingest(recipe(place), tmp_path / "s.attn") as store:
        assert listed(store, "select count(*) from examples where n_tokens = 14") == [(3,)]
        drawn = listed(store, "select distinct text from tokens where special is null order by text")
        assert drawn == [(letter,) for letter in "ABCDEF"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"corpus__length": 40}, r"82 tokens, special ones included; expected 80 at most.*Set corpus\.length lower"),
        ({"encode__max_length": 13}, r"14 tokens, special ones included; expected 13 at most"),
        ({"words__source": "gold"}, r'words\.source = "gold"; expected "none"'),
    ],
)
def test_what_would_not_stay_repeated_is_refused(tmp_path: Path, tiny: Tiny, keys: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        attnstore.ingest(recipe(tiny("bert"), **keys), tmp_path / "s.attn")


def test_a_sequence_that_just_fits_is_taken(tmp_path: Path, tiny: Tiny) -> None:
    with attnstore.ingest(recipe(tiny("bert"), encode__max_length=14), tmp_path / "s.attn") as store:
        assert listed(store, "select distinct n_tokens from examples") == [(14,)]


def test_a_model_with_two_stacks_is_refused(tmp_path: Path, tiny: Tiny) -> None:
    with pytest.raises(BadInput, match=r'no target text.*kind "repeated_random" has none: name a model that reads one'):
        attnstore.ingest(recipe(tiny("t5")), tmp_path / "s.attn")
