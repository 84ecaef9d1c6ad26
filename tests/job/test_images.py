"""Images go through a whole ingest: what is stored are the model's own maps of their pixels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.recipe import Recipe
from attnstore.job.run import estimate
from attnstore.show.map import draw

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pillow = pytest.importorskip("PIL.Image")

from tests.capture.conftest import one_thread, tiny  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

Tiny = Callable[[str], Path]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Four images of two classes, one row without a file and one that is no image; their table."""
    rng = np.random.default_rng(3)
    for number in range(4):
        pillow.fromarray(rng.integers(0, 256, (20, 30, 3), np.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG and no more")
    rows = [*(f"{number}.png,{'ab'[number % 2]}" for number in range(4)), ",a", "broken.png,b"]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *rows, ""]), encoding="utf-8")
    return tmp_path / "labels.csv"


def recipe(path: Path | str, model: Path, **keys: Any) -> Recipe:
    value = {"corpus": {"kind": "images", "path": str(path)}, "model": {"name": str(model)}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def listed(store: attnstore.Store, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.sql(statement)]


def test_stored_maps_are_the_eager_maps_of_the_pixels(tmp_path: Path, tiny: Tiny, images: Path) -> None:
    model = transformers.ViTModel.from_pretrained(tiny("vit"), attn_implementation="eager").eval()
    with attnstore.ingest(recipe(images, tiny("vit"), keep__precision="exact"), tmp_path / "s.attn") as store:
        assert listed(store, "select name, text, label, n_tokens from examples order by example") == [
            (str(number), f"{number}.png", "ab"[number % 2], 17) for number in range(4)
        ]
        for number in range(4):
            with pillow.open(tmp_path / f"{number}.png") as image:
                values = np.asarray(image.resize((16, 16), pillow.Resampling.BILINEAR), np.float32)
            pixels = torch.from_numpy(values.transpose(2, 0, 1)[None] / 127.5 - 1)
            with torch.inference_mode():
                own = torch.stack(model(pixel_values=pixels, output_attentions=True).attentions)[:, 0].numpy()
            assert np.abs(store.attention(number).to_numpy() - own).max() <= 2e-6
        assert listed(store, "select name, reason from skipped order by name") == [
            ("broken", "not an image that Pillow can read, or cut off"),
            ("labels:6", "it names no file"),
        ]
    assert verify(tmp_path / "s.attn", deep=True) == []


def test_tokens_and_examples_say_where_patches_lie(tmp_path: Path, tiny: Tiny, images: Path) -> None:
    with attnstore.ingest(recipe(images, tiny("vit")), tmp_path / "s.attn") as store:
        tokens = 'select text, special, part, word, "row", col from tokens where example = 1 order by token limit 3'
        assert listed(store, tokens) == [
            ("[CLS]", "cls", None, None, None, None),
            ("patch 0,0", None, 0, None, 0, 0),
            ("patch 0,1", None, 0, None, 0, 1),
        ]
        sizes = "select distinct image_height, image_width, patch_height, patch_width, n_words from examples"
        assert listed(store, sizes) == [(16, 16, 4, 4, 0)]
        with pillow.open(tmp_path / "2.png") as image:
            grey = np.asarray(image.convert("L"), float).mean() / 255
        assert listed(store, "select luminance from examples where example = 2") == [(pytest.approx(grey, abs=1e-6),)]
        assert "patch 3,3" in draw(store.attention(0, layer=0, head=0), "svg")
        flow = store.ask("heads/flow", classes="kind", layer=0, head=0)
        assert sorted({row["query_class"] for row in flow}) == ["cls", "patch"]


def test_distances_on_the_grid_are_those_of_the_stored_maps(tmp_path: Path, images: Path) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(1)
    config = transformers.DeiTConfig(**sizes, image_size=[8, 24], patch_size=[4, 8])
    model = transformers.DeiTModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.3)
    model.save_pretrained(tmp_path / "deit")
    with attnstore.ingest(recipe(images, tmp_path / "deit"), tmp_path / "s.attn") as store:
        assert [row[0] for row in listed(store, "select text from tokens where example = 0 order by token")][:3] == [
            "[CLS]", "[DIST]", "patch 0,0",
        ]  # fmt: skip
        row, col = np.divmod(np.arange(6), 3)
        far = np.hypot(4 * (row[:, None] - row), 8 * (col[:, None] - col))
        maps = np.stack([store.attention(number).to_numpy() for number in range(4)])[..., 2:, 2:]
        for renormalise in (False, True):
            own = maps / maps.sum(axis=-1, keepdims=True) if renormalise else maps
            expected = (own * far).sum(axis=-1).mean(axis=(0, 3)).ravel()
            answer = store.ask("heads/grid_distance", renormalise=renormalise)
            assert [found["distance"] for found in answer] == pytest.approx(expected.tolist(), rel=1e-5)
            assert {(found["unit"], found["n"]) for found in answer} == {("pixels", 4)}


def test_a_store_is_the_same_wherever_its_images_lie_and_another_for_other_pixels(
    tmp_path: Path, tiny: Tiny, images: Path
) -> None:
    first = estimate(recipe(images, tiny("vit"))).info
    pillow.fromarray(np.zeros((20, 30, 3), np.uint8)).save(tmp_path / "3.png")
    other = estimate(recipe(images, tiny("vit"))).info
    assert first.corpus["fingerprint"] != other.corpus["fingerprint"]
    assert first.store_id != other.store_id
    assert first.tokenizer["tokens before the patches"] == "[CLS]"
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (*tmp_path.glob("*.png"), images):
        (moved / path.name).write_bytes(path.read_bytes())
    there = estimate(recipe(moved / "labels.csv", tiny("vit"))).info
    assert there.corpus["fingerprint"] == other.corpus["fingerprint"]


def test_texts_and_images_need_models_of_their_own(tmp_path: Path, tiny: Tiny, images: Path) -> None:
    with pytest.raises(BadInput, match="the model reads text"):
        estimate(recipe(images, tiny("bert")))
    (tmp_path / "t.txt").write_text("the cat\n", encoding="utf-8")
    with pytest.raises(BadInput, match='A corpus of images has the kind "images"'):
        estimate(recipe(tmp_path / "t.txt", tiny("vit"), corpus__kind="lines"))


@pytest.mark.parametrize(("key", "value"), [("words__source", "gold"), ("encode__max_length", 9)])
def test_keys_about_texts_are_refused(tiny: Tiny, images: Path, key: str, value: object) -> None:
    with pytest.raises(BadInput, match="that is about texts"):
        estimate(recipe(images, tiny("vit"), **{key: value}))


def test_a_corpus_without_any_image_is_refused(tmp_path: Path, tiny: Tiny) -> None:
    (tmp_path / "a.png").write_bytes(b"no")
    with pytest.raises(BadInput, match="no usable example; skipped"):
        estimate(recipe(tmp_path / "*.png", tiny("vit")))
    with pytest.raises(BadInput, match="no file matches"):
        estimate(recipe(tmp_path / "*.jpg", tiny("vit")))


def codes(folder: Path, model: Path, *records: dict[str, Any]) -> Recipe:
    path = folder / "codes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return Recipe.build({"corpus": {"kind": "tokens", "path": str(path)}, "model": {"name": str(model)}}, {})


def test_codes_of_an_image_bring_their_places(tmp_path: Path, tiny: Tiny) -> None:
    words = ["the", "cat", "sat", "on"]
    record = {"tokens": ["a", *words], "rows": [None, 0, 0, 1, 1], "cols": [None, 0, 1, 0, 1], "label": "x"}
    with attnstore.ingest(codes(tmp_path, tiny("bert"), record), tmp_path / "s.attn") as store:
        assert listed(store, 'select text, "row", col from tokens order by token') == [
            ("[CLS]", None, None), ("a", None, None), ("the", 0, 0), ("cat", 0, 1), ("sat", 1, 0), ("on", 1, 1),
            ("[SEP]", None, None),
        ]  # fmt: skip
        far = np.array([[0, 1, 1, 2**0.5], [1, 0, 2**0.5, 1], [1, 2**0.5, 0, 1], [2**0.5, 1, 1, 0]])
        maps = store.attention(0).to_numpy()[..., 2:6, 2:6]
        answer = store.ask("heads/grid_distance")
        assert {row["unit"] for row in answer} == {"steps"}
        expected = (maps * far).sum(axis=-1).mean(axis=-1).ravel()
        assert [row["distance"] for row in answer] == pytest.approx(expected.tolist(), rel=1e-5)
        flow = store.ask("heads/flow", classes="kind", layer=0, head=0)
        assert sorted({row["query_class"] for row in flow}) == ["cls", "code", "sep", "text"]


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ({"rows": [0], "cols": [0, 1]}, "rows = .*expected a list of 2"),
        ({"rows": [0, -1], "cols": [0, 1]}, "rows = "),
        ({"rows": [0, 1]}, "a row without a column"),
        ({"rows": [0, None], "cols": [0, 1]}, "a row without a column"),
        ({"rows": "01", "cols": [0, 1]}, "rows = 01"),
    ],
)
def test_places_that_do_not_fit_the_codes_are_refused(
    tmp_path: Path, tiny: Tiny, places: dict[str, Any], found: str
) -> None:
    with pytest.raises(BadInput, match=found):
        estimate(codes(tmp_path, tiny("bert"), {"tokens": ["the", "cat"], **places}))
