"""Bytes and values changed at random, under hashes that fit: no use of such a store ends otherwise than typed."""

import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.mutations import mutate
from tests.hostile.test_hostile_stores import used

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of a process")

AT_ONCE = 100


def crashes(store: Path, folder: Path, seeds: range) -> list[str]:
    """The mutations whose use crashed, hung or took all memory."""
    found = []
    for start in range(seeds.start, seeds.stop, AT_ONCE):
        copies = {}
        for seed in range(start, min(start + AT_ONCE, seeds.stop)):
            copy = Path(shutil.copytree(store, folder / f"{seed}.attn"))
            copies[copy] = f"{seed}, {mutate(copy, seed)}"
        taken = used(list(copies))
        for copy, name in copies.items():
            steps = taken[str(copy)].items()
            found += [f"mutation {name}: {step}: {' '.join(what)}" for step, what in steps if what[0] == "crash"]
            shutil.rmtree(copy)
    return found


def test_some_mutations_end_typed(tiny_store: Path, tmp_path: Path) -> None:
    assert crashes(tiny_store, tmp_path, range(130, 136)) == []


@pytest.mark.slow
def test_three_hundred_mutations_end_typed(tiny_store: Path, tmp_path: Path) -> None:
    assert crashes(tiny_store, tmp_path, range(300)) == []


@pytest.mark.soak
def test_ten_thousand_mutations_end_typed(tiny_store: Path, tmp_path: Path) -> None:
    assert crashes(tiny_store, tmp_path, range(1000, 11_000)) == []
