"""Tests of what an encoded chunk is said to unpack to, against the libraries that unpack it."""

import numpy as np
import pytest
from numcodecs import Blosc, Zstd
from numpy.typing import NDArray

from attnstore.format.unpacked import blosc_size, check_encoded, zstd_most

SIZES = (1, 10, 255, 256, 300, 65_535, 65_792, 131_072, 131_073, 1_000_000)


def contents(size: int) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(size)
    return [np.zeros(size, np.uint8), rng.integers(0, 256, size, np.uint8), rng.integers(0, 3, size, np.uint8)]


@pytest.mark.parametrize("size", SIZES)
def test_honest_chunks_are_said_to_unpack_to_what_they_do(size: int) -> None:
    for data in contents(size):
        for level, checksum in ((1, True), (9, False)):
            packed = bytes(Zstd(level, checksum=checksum).encode(data))
            assert zstd_most(packed) == size
            assert zstd_most(packed * 2) == 2 * size
            check_encoded(packed, ["bytes", "zstd"], size)
        inner = bytes(Blosc("zstd", 1, Blosc.SHUFFLE).encode(data))
        assert blosc_size(inner) == size
        check_encoded(inner, ["bytes", "blosc"], size)
        check_encoded(bytes(Zstd(1).encode(inner)) + b"cccc", ["bytes", "blosc", "zstd", "crc32c"], size)


@pytest.mark.parametrize(
    ("data", "codecs"),
    [
        (bytes(Zstd(1).encode(np.zeros(10**7, np.uint8))), ["bytes", "zstd"]),
        (bytes(Zstd(1).encode(np.zeros(4000, np.uint8))) * 20, ["bytes", "zstd"]),
        (bytes(Blosc("zstd", 9).encode(np.zeros(10**6, np.uint8))), ["bytes", "blosc"]),
        (bytes(Zstd(1).encode(Blosc("zstd", 9).encode(np.zeros(10**6, np.uint8)))), ["bytes", "blosc", "zstd"]),
        (bytes(10**6), ["bytes"]),
        (b"", ["bytes", "zstd"]),
        (b"rubbish that is no frame", ["bytes", "zstd"]),
        (b"rubbish that is no buffer", ["bytes", "blosc"]),
    ],
)
def test_a_chunk_that_unpacks_to_more_is_refused(data: bytes, codecs: list[str]) -> None:
    with pytest.raises(ValueError, match=r"unpacks to|for a chunk|no zstd frame|Blosc buffer"):
        check_encoded(data, codecs, 1000)


def test_every_frame_that_is_cut_off_is_refused() -> None:
    whole = bytes(Zstd(1, checksum=True).encode(np.arange(500, dtype=np.uint16)))
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"cut off|no zstd frame"):
            zstd_most(whole[:length])
