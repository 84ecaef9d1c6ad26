"""Tests of widening half precision."""

import numpy as np

from attnstore.format.halves import widen


def test_every_half_becomes_what_a_cast_makes_of_it() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for halves in (every[:0x7C00], every[0x7C00:], every):
        out = np.full(len(halves), 7, np.float32)
        assert widen(halves, out) == (halves is not every and bool(halves[0] == 0))
        np.testing.assert_array_equal(out.view(np.uint32), halves.astype(np.float32).view(np.uint32))


def test_a_part_of_a_block_and_nothing_at_all_are_widened() -> None:
    halves, out = np.linspace(0, 1, 40).astype(np.float16).reshape(4, 10), np.zeros((4, 10), np.float32)
    assert widen(halves[:, 3:5], out[:, 3:5])
    np.testing.assert_array_equal(out[:, 3:5], halves[:, 3:5].astype(np.float32))
    assert not out[:, 5:].any()
    assert widen(halves[:0], out[:0])
