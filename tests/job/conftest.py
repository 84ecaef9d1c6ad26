"""Stores that the tests of annotations change."""

from pathlib import Path

import pytest

from attnstore.job.run import ingest
from tests.conftest import arrays_recipe


@pytest.fixture
def exact(tmp_path: Path, arrays_corpus: Path) -> Path:
    """The tiny store at exact precision, with the words that blanks give."""
    ingest(arrays_recipe(arrays_corpus, keep__precision="exact"), tmp_path / "exact.attn").close()
    return tmp_path / "exact.attn"
