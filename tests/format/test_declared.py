"""Tests of reading arrays that others laid out: as zarr reads them, chunk by chunk of any shape and order of bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from attnstore.errors import Damaged
from attnstore.format.declared import Guarded, open_array

LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"chunks": (1, 2, 100)},
    "uncompressed": {"chunks": (2, 1, 64), "compressors": None},
    "blosc alone": {"chunks": (1, 1, 90), "compressors": zarr.codecs.BloscCodec(typesize=2)},
    "three codecs": {
        "chunks": (1, 1, 90),
        "compressors": [zarr.codecs.BloscCodec(typesize=2), zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
    },
    "shards": {"chunks": (1, 1, 50), "shards": (1, 3, 200)},
    "shards of all": {"chunks": (2, 3, 50), "shards": (2, 3, 500), "compressors": zarr.codecs.ZstdCodec(checksum=True)},
    "turned": {
        "chunks": (2, 3, 50),
        "filters": [zarr.codecs.TransposeCodec(order=(2, 0, 1))],
        "serializer": zarr.codecs.BytesCodec(endian="big"),
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_of_every_allowed_layout_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    numbers = np.random.default_rng(0).random((2, 3, 430)).astype(np.float16)
    place = tmp_path / "maps.zarr/weights"
    named = {"dimension_names": ("layer", "head", "cell"), "fill_value": np.nan}
    zarr.create_array(place, shape=numbers.shape, dtype="float16", **named, **LAYOUTS[name])[:] = numbers
    guarded, rng = Guarded(open_array(tmp_path, "weights"), place), np.random.default_rng(1)
    for _ in range(20):
        box = [slice(*sorted(rng.choice(n + 1, 2, replace=False).tolist())) for n in numbers.shape]
        np.testing.assert_array_equal(guarded.read(*box), numbers[tuple(box)])
        assert all((place / key).is_file() for key in guarded.keys(*box))


def test_metadata_with_another_hash_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "maps.zarr/weights"
    zarr.create_array(place, shape=(1, 1, 8), chunks=(1, 1, 8), dtype="float16", dimension_names=["a", "b", "c"])
    with pytest.raises(Damaged, match="sha256"):
        open_array(tmp_path, "weights", "0" * 64)
    with pytest.raises(Damaged, match=r"dimensions .*'a'"):
        open_array(tmp_path, "weights")
