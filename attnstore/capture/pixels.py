"""This file turns images into the pixels that a vision model is fed, and says which token is which patch."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoImageProcessor, PreTrainedModel

from attnstore.capture.quiet import quiet
from attnstore.errors import BadInput, MissingExtra, NotCaptured
from attnstore.text.encoded import Encoded, Picture

try:
    from PIL import Image, ImageOps
except ImportError as error:
    raise MissingExtra("reading images", "pillow", "ingest") from error

PROCESSOR = "preprocessor_config.json"
"""The file of a model's folder that says how images are made ready."""

_PLAIN = "resized, then (pixel / 255 - 0.5) / 0.5"
_CLS = ("cls_token", "class_embedding")


class Grid(NamedTuple):
    """The patches of every image: how many rows and columns, and the pixels of a patch."""

    rows: int
    cols: int
    patch_height: int
    patch_width: int


class Pixels:
    """What an image is to a model: `encode` for its tokens, `inputs` for its pixels.

    `model` may be without numbers: a pass over its shapes alone says how many tokens an image has. `place` is the
    model's folder or hub id; where it has no preprocessor_config.json, images are resized to the configured size and
    normalised with mean and deviation 0.5. Raises NotCaptured for a model whose tokens are not special tokens followed
    by one for each patch, BadInput for a processor that gives images of several sizes.
    """

    def __init__(self, name: str, place: Path | str, commit: str | None, model: PreTrainedModel) -> None:
        self.name = name
        config = model.config
        self._channels = int(getattr(config, "num_channels", 3))
        self._size = _pair(getattr(config, "image_size", 224))
        self._processor = _processor(place, commit)
        shapes = {self._prepared(Image.new("L", size)).shape for size in ((40, 40), (40, 90))}
        if len(shapes) > 1:
            found = " and ".join(f"{height} x {width}" for _, height, width in sorted(shapes))
            raise BadInput(f"preparing images for {name}", f"sizes of {found} pixels", "one size for every image")
        ((_, self.height, self.width),) = shapes
        patch = _pair(getattr(config, "patch_size", 0) or 0)
        self.grid = Grid(self.height // max(patch[0], 1), self.width // max(patch[1], 1), *patch)
        self.prefix = self._prefix(model)
        sizes = {"image": f"{self.height} x {self.width}", "patch": f"{patch[0]} x {patch[1]}"}
        self.facts: Mapping[str, str] = {
            "class": _PLAIN if self._processor is None else type(self._processor).__name__,
            **{f"{what} height x width": size for what, size in sizes.items()},
            "tokens before the patches": " ".join(self.prefix) or "none",
            **_hashed(place),
        }

    def __len__(self) -> int:
        """Tokens of an image, special ones included."""
        return len(self.prefix) + self.grid.rows * self.grid.cols

    def encode(self, path: Path) -> Encoded:
        """The tokens of an image: special ones, then the patches row by row, called "patch ROW,COLUMN" from 0.

        Patches are in no vocabulary: their id is a number made from the file, the same in equal images. Raises
        BadInput for a file that Pillow cannot read.
        """
        raw, image = _read(path)
        digest = hashlib.sha256(raw).hexdigest()
        places = [(row, col) for row in range(self.grid.rows) for col in range(self.grid.cols)]
        before, after = len(self.prefix), len(places)
        return Encoded(
            ids=(0,) * before + (int(digest[:7], 16),) * after,
            texts=(*self.prefix, *(f"patch {row},{col}" for row, col in places)),
            spans=(None,) * len(self),
            parts=(None,) * before + (0,) * after,
            type_ids=(0,) * len(self),
            special=(*("cls" if text == "[CLS]" else "other" for text in self.prefix), *(None,) * after),
            places=(*(None,) * before, *places),
            picture=Picture(
                digest,
                self.height,
                self.width,
                self.grid.patch_height,
                self.grid.patch_width,
                round(float(np.asarray(image.convert("L"), np.float64).mean()) / 255, 6),
            ),
        )

    def inputs(self, paths: Sequence[Path]) -> dict[str, Tensor]:
        """`pixel_values` [image, channel, height, width] in float32; raises BadInput as `encode` does."""
        return {"pixel_values": torch.from_numpy(np.stack([self._prepared(_read(path)[1]) for path in paths]))}

    def _prepared(self, image: Image.Image) -> NDArray[np.float32]:
        """Pixels [channel, height, width]."""
        image = image.convert("L" if self._channels == 1 else "RGB")
        if self._processor is None:
            resized = image.resize((self._size[1], self._size[0]), Image.Resampling.BILINEAR)
            plain = np.asarray(resized, np.float32).reshape(*self._size, self._channels) / 255
            return np.ascontiguousarray(((plain - 0.5) / 0.5).transpose(2, 0, 1), np.float32)
        # A grey image has no axis of channels, which processors would have to guess.
        values = np.asarray(image).reshape(image.height, image.width, self._channels)
        found = self._processor(images=values, input_data_format="channels_last", return_tensors="np")
        return np.asarray(found["pixel_values"][0], np.float32)

    def _prefix(self, model: PreTrainedModel) -> tuple[str, ...]:
        """The special tokens before the patches, as the model's parameters name them, in the order of the library."""
        doing = f"looking at the tokens of an image in {self.name} ({type(model).__name__})"
        blank = torch.zeros(1, self._channels, self.height, self.width, device="meta")
        try:
            with torch.inference_mode():
                n_tokens = int(model(pixel_values=blank)[0].shape[1])
        except Exception as error:  # whatever a model's own code raises
            raise NotCaptured(doing, f"the model fails on {self.height} x {self.width} pixels: {error}") from error
        known = {path.rsplit(".", 1)[-1]: parameter for path, parameter in model.named_parameters()}
        found = [*(["[CLS]"] if any(name in known for name in _CLS) else [])]
        found += ["[DIST]"] if "distillation_token" in known else []
        found += [
            f"[REG{index}]" for index in range(known["register_tokens"].shape[-2] if "register_tokens" in known else 0)
        ]
        n_patches = self.grid.rows * self.grid.cols
        if min(self.grid[2:]) < 1 or n_tokens != len(found) + n_patches:
            raise NotCaptured(
                doing,
                f"{n_tokens} tokens for {' '.join(found)} and {self.grid.rows} x {self.grid.cols} patches",
                "special tokens and then one for each patch",
                "Models that merge, hide or add patches have no grid of their own",
            )
        return tuple(found)


def _read(path: Path) -> tuple[bytes, Image.Image]:
    """The bytes of an image file and its pixels, turned upright; BadInput for anything else."""
    doing = f"reading the image {path}"
    try:
        raw = path.read_bytes()
        with Image.open(io.BytesIO(raw)) as opened:
            opened.load()
            image = ImageOps.exif_transpose(opened)
    except OSError as error:
        what = error.strerror or "not an image that Pillow can read, or cut off"
        raise BadInput(doing, what, "a picture such as PNG or JPEG") from error
    except (ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadInput(doing, f"a broken image ({error})", "a picture such as PNG or JPEG") from error
    if image.mode.startswith(("I", "F")):
        # Pillow would cut such pixels off at 255 and say nothing.
        raise BadInput(doing, f"more than 8 bits a pixel (mode {image.mode})", "8 bits for each channel")
    return raw, image


def _processor(place: Path | str, commit: str | None) -> Any:
    """The model's own image processor; None where it has none."""
    if isinstance(place, Path) and not (place / PROCESSOR).is_file():
        return None
    try:
        with quiet():
            found: Any = AutoImageProcessor  # its methods have no types
            return found.from_pretrained(place, revision=commit or "main", trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BadInput(
            f"loading the image processor of {place}",
            str(error).strip().splitlines()[0],
            PROCESSOR,
            "Without that file images are resized and normalised with mean and deviation 0.5",
        ) from error


def _hashed(place: Path | str) -> dict[str, str]:
    file = Path(place) / PROCESSOR
    if isinstance(place, str) or not file.is_file():
        return {}
    return {f"sha256:{PROCESSOR}": hashlib.sha256(file.read_bytes()).hexdigest()}


def _pair(size: Any) -> tuple[int, int]:
    """Height and width of a number or a pair of them."""
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return int(height), int(width)
