"""Stores for the tests of the read side."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, Made, make_store, random_examples


@pytest.fixture(scope="session")
def made() -> list[Made]:
    """Seven examples of one encoder with 2 layers of 3 heads."""
    return random_examples(1, (5, 9, 3, 12, 7, 6, 8), {"encoder": ENCODER})


@pytest.fixture(scope="session")
def folder(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of them in three segments. Read it only."""
    return make_store(tmp_path_factory.mktemp("read") / "made.attn", made)


@pytest.fixture(scope="session")
def store(folder: Path) -> Iterator[Store]:
    """That store, opened once for all tests."""
    with open_store(folder) as opened:
        yield opened
