"""Tests of reading one head over the corpus."""

from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import NotFound, NotStored
from attnstore.format.manifest import Kept
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import Made, make_store, stored


def test_every_map_of_a_head_comes_with_its_example(store: Store, made: list[Made]) -> None:
    found = dict(store.head_maps(1, 2))
    assert sorted(found) == list(range(len(made)))
    for number, one in enumerate(made):
        np.testing.assert_array_equal(found[number], stored(one.maps["encoder"])[1, 2])
        np.testing.assert_array_equal(found[number], store.attention(number, layer=1, head=2).weights)


def test_what_is_not_there_is_refused_before_the_first_map(store: Store, made: list[Made], tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="layer=2"):
        store.head_maps(2, 0)
    with pytest.raises(NotFound, match="head=-1"):
        store.head_maps(0, -1)
    with open_store(make_store(tmp_path / "part.attn", made, kept=Kept("all", (1,), None, None))) as part:
        assert len(list(part.head_maps(1, 0))) == len(made)
        with pytest.raises(NotStored, match="layer 0"):
            part.head_maps(0, 0)
    root = make_store(tmp_path / "topk.attn", made, kept=Kept("topk", None, None, 2))
    with open_store(root) as largest, pytest.raises(NotStored, match="2 largest"):
        largest.head_maps(0, 0)
