"""One bit flipped anywhere in any file of a store: `verify` finds it, and reading raises a typed error or is right."""

from pathlib import Path

import numpy as np
import pytest

from tests.survival.flipping import Bench, Tally, flip

pytest.importorskip("zarrs")


@pytest.fixture(scope="module")
def bench(arrays_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(arrays_corpus, tmp_path_factory.mktemp("flips"))


@pytest.mark.parametrize(
    "flips",
    [27, pytest.param(500, marks=pytest.mark.slow), pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.soak])],
)
def test_no_flipped_bit_is_missed_or_read_in_silence(bench: Bench, flips: int) -> None:
    tally, rng = Tally(), np.random.default_rng(flips)
    for number in range(flips):
        flip(bench, rng, number, tally)
    print(f"\n{tally}")
    assert tally.wrong == []
    assert tally.counts["flips"] == flips == tally.counts["typed error"] + tally.counts["right answers"]
    assert tally.counts["typed error"] > flips / 3  # the damage is met by the reads
