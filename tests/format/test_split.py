"""A chunk is a Blosc buffer that any Blosc decoder reads, with a stream for each byte of its items."""

import struct
from typing import Any

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.format.arrays import _blosc, _encode


@given(
    st.sampled_from(["<f2", "<f4", "<u4"]),
    st.sampled_from([1, 2, 31, 32, 127, 128, 129, 1000, 65_536]),
    st.sampled_from(["zeros", "noise", "weights"]),
)
def test_numcodecs_reads_what_was_encoded(dtype: str, count: int, what: str) -> None:
    random = np.random.default_rng(count)
    values: Any = {"zeros": np.zeros(count), "noise": random.integers(0, 2**31, count), "weights": random.random(count)}
    size = np.dtype(dtype).itemsize
    codes = values[what].astype(dtype) if what != "noise" else values[what].astype(f"<u{size}").view(dtype)
    found = np.frombuffer(numcodecs.Blosc().decode(_blosc(codes)), dtype)
    np.testing.assert_array_equal(found.view(f"<u{size}"), codes.view(f"<u{size}"))
    outer = numcodecs.Zstd().decode(_encode(codes))
    np.testing.assert_array_equal(np.frombuffer(numcodecs.Blosc().decode(outer), f"<u{size}"), codes.view(f"<u{size}"))


@pytest.mark.parametrize(("dtype", "size"), [("<f2", 2), ("<f4", 4)])
def test_the_buffer_says_that_bytes_lie_in_streams_of_their_own(dtype: str, size: int) -> None:
    buffer = _blosc(np.linspace(0, 1, 500).astype(dtype))
    version, _, flags, item, n, block, own, first = struct.unpack_from("<4B4I", buffer)
    assert (version, item, n, block, own, first) == (2, size, 500 * size, 500 * size, len(buffer), 20)
    assert (flags & 1, flags >> 5, flags & 0x10) == (1, 4, 0)  # shuffled bytes, zstd, streams not joined
    place = first
    for _ in range(size):
        place += 4 + struct.unpack_from("<i", buffer, place)[0]
    assert place == len(buffer)


def test_what_does_not_shrink_is_as_long_as_it_was() -> None:
    noise = np.random.default_rng(0).integers(0, 2**16, 4096).astype("<u2").view("<f2")
    assert len(_blosc(noise)) == 20 + 2 * (4 + 4096)
