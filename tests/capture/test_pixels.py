"""This file tests what an image is to a vision model: its tokens, its pixels, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from attnstore.capture.check import compare
from attnstore.capture.model import load, load_pixels
from attnstore.errors import BadInput, NotCaptured

pillow = pytest.importorskip("PIL.Image")

Tiny = Callable[[str], Path]
SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def folder(place: Path, config: str, **sizes: Any) -> str:
    """A folder that holds a configuration alone: nothing here loads weights."""
    getattr(transformers, config)(**{**SMALL, "image_size": 16, "patch_size": 4, **sizes}).save_pretrained(place)
    return str(place)


def image(place: Path, height: int = 20, width: int = 30, mode: str = "RGB", seed: int = 0) -> Path:
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    values = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    pillow.fromarray(values, mode).save(place) if mode == "RGB" else pillow.fromarray(values).save(place)
    return place


def test_tokens_are_cls_and_then_the_patches_row_by_row(tmp_path: Path, tiny: Tiny) -> None:
    pixels = load_pixels(str(tiny("vit")))
    encoded = pixels.encode(image(tmp_path / "a.png"))
    assert len(encoded) == len(pixels) == 17
    assert encoded.texts[:3] == ("[CLS]", "patch 0,0", "patch 0,1")
    assert encoded.texts[-1] == "patch 3,3"
    assert encoded.special == ("cls", *(None,) * 16)
    assert encoded.places == (None, *((row, col) for row in range(4) for col in range(4)))
    assert encoded.parts == (None, *(0,) * 16)


@pytest.mark.parametrize(
    ("config", "sizes", "texts", "n_tokens"),
    [
        ("DeiTConfig", {}, ("[CLS]", "[DIST]", "patch 0,0"), 18),
        ("Dinov2WithRegistersConfig", {}, ("[CLS]", "[REG0]", "[REG1]", "[REG2]", "[REG3]", "patch 0,0"), 21),
        ("SiglipVisionConfig", {}, ("patch 0,0",), 16),
        ("CLIPVisionConfig", {}, ("[CLS]", "patch 0,0"), 17),
        ("ViTConfig", {"image_size": [16, 24], "patch_size": [4, 8]}, ("[CLS]", "patch 0,0"), 13),
    ],
)
def test_the_tokens_before_the_patches_are_those_of_the_family(
    tmp_path: Path, config: str, sizes: dict[str, Any], texts: tuple[str, ...], n_tokens: int
) -> None:
    encoded = load_pixels(folder(tmp_path / "m", config, **sizes)).encode(image(tmp_path / "a.png"))
    assert encoded.texts[: len(texts)] == texts
    assert len(encoded) == n_tokens
    assert [special for special in encoded.special if special] == ["cls", *["other"] * 4][: len(texts) - 1]


def test_a_grid_that_is_not_square_counts_rows_and_columns(tmp_path: Path) -> None:
    pixels = load_pixels(folder(tmp_path / "m", "ViTConfig", image_size=[8, 24], patch_size=[4, 8]))
    encoded = pixels.encode(image(tmp_path / "a.png"))
    assert encoded.places[1:] == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
    assert encoded.picture is not None
    sizes = (encoded.picture.height, encoded.picture.width, encoded.picture.patch_height, encoded.picture.patch_width)
    assert sizes == (8, 24, 4, 8)


@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        ("ViTMAEConfig", {}),  # hides three quarters of the patches
        (
            "SwinConfig",
            {"image_size": 32, "embed_dim": 16, "depths": [2, 2], "num_attention_heads": [2, 2], "window_size": 4},
        ),
    ],
)
def test_a_model_without_a_token_for_each_patch_is_refused(tmp_path: Path, config: str, sizes: dict[str, Any]) -> None:
    place = folder(tmp_path / "m", config, **sizes)
    with pytest.raises(NotCaptured, match="no grid of their own"):
        load_pixels(place)


def test_a_model_of_texts_reads_no_images(tiny: Tiny) -> None:
    with pytest.raises(BadInput, match="the model reads text"):
        load_pixels(str(tiny("bert")))


def test_without_a_processor_pixels_run_from_minus_one_to_one(tmp_path: Path, tiny: Tiny) -> None:
    pillow.fromarray(np.array([[0, 255]], np.uint8)).resize((16, 16), pillow.Resampling.NEAREST).save(
        tmp_path / "a.png"
    )
    values = load_pixels(str(tiny("vit"))).inputs([tmp_path / "a.png"])["pixel_values"]
    assert values.shape == (1, 3, 16, 16)
    assert values[0, :, :, 0].unique().tolist() == [-1]
    assert values[0, :, :, -1].unique().tolist() == [1]


@pytest.mark.parametrize("channels", [1, 3])
def test_the_model_s_own_processor_is_used_where_there_is_one(tmp_path: Path, channels: int) -> None:
    place = folder(tmp_path / "m", "ViTConfig", num_channels=channels)
    mean = [0.2] * channels
    processor = transformers.ViTImageProcessorPil(
        size={"height": 16, "width": 16}, image_mean=mean, image_std=mean, do_convert_rgb=False
    )
    processor.save_pretrained(place)
    path = image(tmp_path / "a.png", 16, 16, "RGB" if channels == 3 else "L")
    found = load_pixels(place)
    values = np.asarray(pillow.open(path), np.float32).reshape(16, 16, channels).transpose(2, 0, 1)
    given = found.inputs([path])["pixel_values"][0].numpy()
    np.testing.assert_allclose(given, (values / 255 - 0.2) / 0.2, atol=1e-5)
    assert found.facts["class"] == "ViTImageProcessorPil"
    assert "sha256:preprocessor_config.json" in found.facts


def test_a_processor_that_keeps_proportions_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path / "m", "Dinov2Config")
    transformers.BitImageProcessorPil(size={"shortest_edge": 16}, do_center_crop=False).save_pretrained(place)
    with pytest.raises(BadInput, match="one size for every image"):
        load_pixels(place)


def test_equal_images_have_equal_ids_and_others_do_not(tmp_path: Path, tiny: Tiny) -> None:
    pixels = load_pixels(str(tiny("vit")))
    first, copy = pixels.encode(image(tmp_path / "a.png")), pixels.encode(image(tmp_path / "b.png"))
    other = pixels.encode(image(tmp_path / "c.png", seed=1))
    assert first == copy
    assert first.ids[0] == other.ids[0] == 0
    assert first.ids[1] != other.ids[1]


def test_luminance_is_the_mean_of_the_grey_pixels(tmp_path: Path, tiny: Tiny) -> None:
    pillow.fromarray(np.array([[0, 51], [102, 255]], np.uint8)).save(tmp_path / "a.png")
    picture = load_pixels(str(tiny("vit"))).encode(tmp_path / "a.png").picture
    assert picture is not None
    assert picture.luminance == 0.4  # (0 + .2 + .4 + 1) / 4


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"not an image", "not an image"), (None, "No such file"), ("half", "cut off"), ("deep", "more than 8 bits")],
)
def test_what_is_no_image_is_refused_by_its_name(tmp_path: Path, tiny: Tiny, content: object, found: str) -> None:
    path = tmp_path / "a.png"
    if content == "half":
        raw = image(path, 60, 60).read_bytes()
        path.write_bytes(raw[: len(raw) // 2])
    elif content == "deep":
        pillow.fromarray(np.full((4, 4), 40_000, np.uint16)).save(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(BadInput, match=found) as caught:
        load_pixels(str(tiny("vit"))).encode(path)
    assert str(path) in str(caught.value)


def test_maps_of_real_pixels_are_the_library_s_own(tmp_path: Path, tiny: Tiny) -> None:
    pixels = load_pixels(str(tiny("vit")))
    inputs = pixels.inputs([image(tmp_path / "a.png"), image(tmp_path / "b.png", seed=1)])
    assert inputs["pixel_values"].dtype == torch.float32
    assert compare(load(str(tiny("vit"))), inputs) <= 1e-6
